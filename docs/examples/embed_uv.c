/* SPDX-License-Identifier: MIT */
/* A program with a libuv loop embeds weir: the reactor has a thread, what
 * concerns the program runs in its loop. Adds an order that is due in one
 * second, closes it, stops. Usage: embed_uv redis://127.0.0.1:6379 */
#define _POSIX_C_SOURCE 200809L /* for -std=c11 */
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>
#include <weir/thread.h>

struct host {
    uv_poll_t poll;
    struct weir_thread *weir;
};

/* One order on its way from the handler to the program's loop. */
struct work {
    struct host *host;
    struct weir_handle handle;
    int64_t order;
};

/* Nothing is left to poll: uv_run returns. */
static void on_stopped(void *arg)
{
    struct host *host = arg;

    uv_close((uv_handle_t *)&host->poll, NULL);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct host *host = poll->data;

    (void)status;
    (void)events;
    weir_thread_dispatch(host->weir);
}

/* On the host's thread: what it has needs no lock. */
static void close_order(void *arg)
{
    struct work *work = arg;

    printf("closing order %lld\n", (long long)work->order);
    if (weir_complete(work->handle, WEIR_DONE, 0, NULL) < 0 ||
        weir_thread_stop(work->host->weir, on_stopped, work->host) < 0)
        on_stopped(work->host);
    free(work);
}

/* On the reactor's thread: hand the job over, it is finished later. */
static enum weir_verdict run(void *self, struct weir_job *job)
{
    struct work *work = malloc(sizeof(*work));

    if (work == NULL)
        return weir_snooze(job, 1000); /* out of memory: no attempt is lost */
    work->host = self;
    work->handle = weir_job_handle(job);
    if (!weir_job_i64(job, "order", &work->order)) {
        free(work);
        return weir_fail(job, "the body has no order number");
    }
    if (weir_thread_tell(work->host->weir, close_order, work) < 0) {
        free(work);
        return weir_retry(job, "the program does not keep up");
    }
    return WEIR_PENDING;
}

/* Among it that no server answers: weir tries again until one does. */
static void say(enum weir_level level, const char *text, void *arg)
{
    (void)level;
    (void)arg;
    fprintf(stderr, "embed_uv: %s\n", text);
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
    uv_loop_t *loop = uv_default_loop();
    struct host host = {0};
    struct weir_error err = {0};
    int rc = 0;

    if (open_weir(&host, argv[argc - 1], &err) == WEIR_OK) {
        rc = uv_poll_init(loop, &host.poll, weir_thread_fd(host.weir));
        host.poll.data = &host;
        if (rc == 0)
            rc = uv_poll_start(&host.poll, UV_READABLE, on_readable);
        if (rc == 0)
            (void)uv_run(loop, UV_RUN_DEFAULT);
    }
    weir_thread_free(host.weir);
    (void)uv_loop_close(loop);
    if (rc < 0)
        fprintf(stderr, "embed_uv: %s\n", uv_strerror(rc));
    if (err.code != WEIR_OK)
        fprintf(stderr, "embed_uv: %s\n", err.text);
    return err.code == WEIR_OK && rc == 0 ? 0 : 1;
}
