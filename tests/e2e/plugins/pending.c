/* SPDX-License-Identifier: MIT */

/* For tests: every run is pending, and finished as `how` says.
 *
 *     timer      from a timer, after `after`
 *     thread     from a thread of its own, after `after`
 *     twice      from a timer, twice
 *     late       from a timer, started when the run is given up
 *     close      in close, when the reactor is gone
 *     never      by nobody
 *
 * With leak=yes it leaves a timer and a watch behind for each run. */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <weir/plugin.h>

enum { HOW, AFTER, LEAK };

static const struct weir_option options[] = {
    [HOW] = {.name = "how",
             .type = WEIR_OPTION_CHOICE,
             .fallback = "timer",
             .choices = "timer|thread|twice|late|close|never",
             .help = "Who finishes runs."},
    [AFTER] = {.name = "after",
               .type = WEIR_OPTION_DURATION,
               .fallback = "10ms",
               .help = "How long a run takes."},
    [LEAK] = {.name = "leak",
              .type = WEIR_OPTION_BOOL,
              .fallback = "no",
              .help = "Leave things behind."},
};

struct pending {
    struct weir_loop *loop;
    char how[16];
    int64_t after_ms;
    bool leaks;
    struct weir_handle last;
};

struct run {
    struct pending *pending;
    struct weir_handle handle;
    struct weir_timer *timer;
};

static int open_pending(const struct weir_open *open_args, void **ret_self)
{
    struct pending *pending = calloc(1, sizeof(*pending));

    if (pending == NULL)
        return WEIR_ENOMEM;
    pending->loop = weir_open_loop(open_args);
    strncat(pending->how, open_args->values[HOW].text,
            sizeof(pending->how) - 1);
    pending->after_ms = open_args->values[AFTER].number;
    pending->leaks = open_args->values[LEAK].number != 0;
    *ret_self = pending;
    return 0;
}

static bool is_how(const struct pending *pending, const char *how)
{
    return strcmp(pending->how, how) == 0;
}

static void finish(struct weir_handle handle)
{
    if (weir_complete(handle, WEIR_DONE, 0, NULL) != WEIR_OK)
        abort(); /* the test would not see why */
}

static void on_timer(void *arg)
{
    struct run *run = arg;

    finish(run->handle);
    if (is_how(run->pending, "twice"))
        finish(run->handle);
    weir_timer_free(run->timer);
    free(run);
}

static void *finish_later(void *arg)
{
    struct run *run = arg;
    struct timespec after = {run->pending->after_ms / 1000,
                             run->pending->after_ms % 1000 * 1000000};

    (void)nanosleep(&after, NULL);
    finish(run->handle);
    free(run);
    return NULL;
}

static void start_timer(struct run *run)
{
    run->timer = weir_timer_new(run->pending->loop, on_timer, run);
    weir_timer_start(run->timer, run->pending->after_ms);
}

static void on_cancel(struct weir_job *job, enum weir_cancel why, void *arg)
{
    (void)job;
    (void)why;
    start_timer(arg);
}

static void start(struct run *run, struct weir_job *job)
{
    pthread_t thread;

    if (is_how(run->pending, "late"))
        weir_job_on_cancel(job, on_cancel, run);
    else if (!is_how(run->pending, "thread"))
        start_timer(run);
    else if (pthread_create(&thread, NULL, finish_later, run) != 0 ||
             pthread_detach(thread) != 0)
        abort();
}

static void on_ready(int fd, unsigned events, void *arg)
{
    (void)fd;
    (void)events;
    (void)arg;
}

static void leak(const struct pending *pending)
{
    int ends[2];

    if (pipe(ends) != 0)
        abort();
    weir_timer_start(weir_timer_new(pending->loop, on_timer, NULL),
                     3600 * 1000);
    weir_watch_set(weir_watch_new(pending->loop, ends[0], on_ready, NULL),
                   WEIR_FD_READ);
}

static enum weir_verdict run(void *self, struct weir_job *job)
{
    struct pending *pending = self;
    struct run *run;

    pending->last = weir_job_handle(job);
    if (pending->leaks)
        leak(pending);
    if (is_how(pending, "never") || is_how(pending, "close"))
        return WEIR_PENDING;
    run = calloc(1, sizeof(*run));
    if (run == NULL)
        return weir_retry(job, "out of memory");
    run->pending = pending;
    run->handle = pending->last;
    start(run, job);
    return WEIR_PENDING;
}

static void close_pending(void *self)
{
    struct pending *pending = self;

    if (is_how(pending, "close"))
        finish(pending->last);
    free(pending);
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "pending",
    .summary = "Finishes its runs later, for tests.",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .option_size = sizeof(struct weir_option),
    .open = open_pending,
    .run = run,
    .close = close_pending,
};
