/* SPDX-License-Identifier: MIT */
/* A program with a GLib main loop, as GTK has one, embeds weir: the reactor has
 * a thread, what concerns the program runs in its loop. Adds an order that is
 * due in one second, closes it, stops. Usage: embed_glib redis://127.0.0.1:6379
 */
#include <glib-unix.h>
#include <stdio.h>
#include <weir/thread.h>

struct host {
    GMainLoop *loop;
    struct weir_thread *weir;
};

/* One order on its way from the handler to the program's loop. */
struct work {
    struct host *host;
    struct weir_handle handle;
    int64_t order;
};

static void on_stopped(void *arg)
{
    struct host *host = arg;

    g_main_loop_quit(host->loop);
}

static gboolean on_readable(gint fd, GIOCondition condition, gpointer arg)
{
    struct host *host = arg;

    (void)fd;
    (void)condition;
    weir_thread_dispatch(host->weir);
    return G_SOURCE_CONTINUE;
}

/* On the host's thread: what it has needs no lock. */
static void close_order(void *arg)
{
    struct work *work = arg;

    printf("closing order %lld\n", (long long)work->order);
    if (weir_complete(work->handle, WEIR_DONE, 0, NULL) < 0 ||
        weir_thread_stop(work->host->weir, on_stopped, work->host) < 0)
        g_main_loop_quit(work->host->loop);
    g_free(work);
}

/* On the reactor's thread: hand the job over, it is finished later. */
static enum weir_verdict run(void *self, struct weir_job *job)
{
    struct work *work = g_new0(struct work, 1);

    work->host = self;
    work->handle = weir_job_handle(job);
    if (!weir_job_i64(job, "order", &work->order)) {
        g_free(work);
        return weir_fail(job, "the body has no order number");
    }
    if (weir_thread_tell(work->host->weir, close_order, work) < 0) {
        g_free(work);
        return weir_retry(job, "the program does not keep up");
    }
    return WEIR_PENDING;
}

/* Among it that no server answers: weir tries again until one does. */
static void say(enum weir_level level, const char *text, void *arg)
{
    (void)level;
    (void)arg;
    fprintf(stderr, "embed_glib: %s\n", text);
}

/* Until it is started its reactor is still ours: serve, add, see errors. */
static int open_weir(struct host *host, const char *url, struct weir_error *err)
{
    struct weir_options options = {
        .redis_url = url, .log = say, .log_level = WEIR_LEVEL_WARN};
    struct weir_topic_options topic = {.run = run, .self = host};
    struct weir_new_job job = {.delay_ms = 1000};
    struct weir_reactor *reactor;
    int rc = weir_thread_open(&options, &host->weir, err);

    if (rc < 0)
        return rc;
    reactor = weir_thread_reactor(host->weir);
    rc = weir_reactor_serve(reactor, "order.close", &topic, err);
    if (rc == WEIR_OK)
        rc = weir_body_from_json("{\"order\": 17}", 13, &job.body, err);
    if (rc == WEIR_OK)
        rc = weir_reactor_add(reactor, "order.close", &job, NULL, NULL, err);
    weir_body_free(job.body);
    return rc == WEIR_OK ? weir_thread_start(host->weir, err) : rc;
}

int main(int argc, char **argv)
{
    struct host host = {.loop = g_main_loop_new(NULL, FALSE)};
    struct weir_error err = {0};

    if (open_weir(&host, argv[argc - 1], &err) == WEIR_OK) {
        (void)g_unix_fd_add(weir_thread_fd(host.weir), G_IO_IN, on_readable,
                            &host);
        g_main_loop_run(host.loop);
    }
    weir_thread_free(host.weir);
    g_main_loop_unref(host.loop);
    if (err.code != WEIR_OK)
        fprintf(stderr, "embed_glib: %s\n", err.text);
    return err.code == WEIR_OK ? 0 : 1;
}
