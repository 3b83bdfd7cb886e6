/* SPDX-License-Identifier: MIT */
/* A program with an epoll loop of its own embeds weir: the reactor has a
 * thread, what concerns the program runs in its loop. Adds an order that is due
 * in one second, closes it, stops; SIGTERM and SIGINT stop it, too.
 * Usage: embed_epoll redis://127.0.0.1:6379 */
#define _POSIX_C_SOURCE 200809L /* for -std=c11 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <weir/thread.h>

struct host {
    struct weir_thread *weir;
    int epoll, signals;
    bool is_over;
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

    host->is_over = true;
}

/* On the host's thread: what it has needs no lock. */
static void close_order(void *arg)
{
    struct work work = *(struct work *)arg;
    int rc;

    free(arg);
    printf("closing order %lld\n", (long long)work.order);
    rc = weir_complete(work.handle, WEIR_DONE, 0, NULL);
    if (rc == WEIR_OK)
        rc = weir_thread_stop(work.host->weir, on_stopped, work.host);
    if (rc < 0) {
        fprintf(stderr, "embed_epoll: %s\n", weir_error_text(rc));
        work.host->is_over = true;
    }
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

static void on_added(const struct weir_added *added, size_t count, void *arg)
{
    struct host *host = arg;

    (void)count; /* one, as we gave one */
    if (added[0].code == WEIR_OK)
        return;
    fprintf(stderr, "embed_epoll: the order was not added: %s\n",
            weir_error_text(added[0].code));
    host->is_over = true;
}

static int watch(struct host *host, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    return epoll_ctl(host->epoll, EPOLL_CTL_ADD, fd, &event);
}

static int open_loop(struct host *host)
{
    sigset_t signals;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    host->epoll = epoll_create1(EPOLL_CLOEXEC);
    host->signals = signalfd(-1, &signals, SFD_CLOEXEC);
    if (host->epoll < 0 || host->signals < 0)
        return -1;
    return watch(host, host->signals);
}

/* Among it that no server answers: weir tries again until one does. */
static void say(enum weir_level level, const char *text, void *arg)
{
    (void)level;
    (void)arg;
    fprintf(stderr, "embed_epoll: %s\n", text);
}

static int open_weir(struct host *host, const char *url, struct weir_error *err)
{
    struct weir_options options = {
        .redis_url = url, .log = say, .log_level = WEIR_LEVEL_WARN};
    struct weir_topic_options topic = {.run = run, .self = host};
    struct weir_new_job job = {.delay_ms = 1000};
    struct weir_new_jobs jobs = {"order.close", &job, 1, on_added, host};
    int rc = weir_thread_open(&options, &host->weir, err);

    if (rc == WEIR_OK) /* before it starts: its reactor is still ours */
        rc = weir_reactor_serve(weir_thread_reactor(host->weir), "order.close",
                                &topic, err);
    if (rc == WEIR_OK)
        rc = weir_thread_start(host->weir, err);
    if (rc == WEIR_OK)
        rc = weir_body_from_json("{\"order\": 17}", 13, &job.body, err);
    if (rc == WEIR_OK)
        rc = weir_thread_submit(host->weir, &jobs, err);
    weir_body_free(job.body);
    return rc;
}

static void run_loop(struct host *host)
{
    struct epoll_event event;

    while (!host->is_over) {
        if (epoll_wait(host->epoll, &event, 1, -1) < 1)
            continue;
        if (event.data.fd == weir_thread_fd(host->weir))
            weir_thread_dispatch(host->weir);
        else
            host->is_over = true; /* a signal; jobs not settled come back */
    }
}

int main(int argc, char **argv)
{
    struct host host = {.epoll = -1, .signals = -1};
    struct weir_error err = {0};

    if (open_loop(&host) < 0) {
        perror("embed_epoll");
        return 1;
    }
    if (open_weir(&host, argv[argc - 1], &err) == WEIR_OK &&
        watch(&host, weir_thread_fd(host.weir)) == 0)
        run_loop(&host);
    weir_thread_free(host.weir);
    (void)close(host.signals);
    (void)close(host.epoll);
    if (err.code != WEIR_OK)
        fprintf(stderr, "embed_epoll: %s\n", err.text);
    return err.code == WEIR_OK ? 0 : 1;
}
