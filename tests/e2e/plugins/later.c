/* SPDX-License-Identifier: MIT */

/* For tests: every run is pending. A thread finishes it after a while or when
 * some file exists; without both options nobody does. Starts and cancels are
 * lines of a file:
 *
 *     start 17
 *     cancel 17 timeout|stop|lost */

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <weir/plugin.h>

enum { FILE_NAME, AFTER, UNTIL, THREADS_MAX = 4096, LOOK_MS = 10 };

static const struct weir_option options[] = {
    [FILE_NAME] = {.name = "file",
                   .type = WEIR_OPTION_TEXT,
                   .help = "File that lines are appended to."},
    [AFTER] = {.name = "after",
               .type = WEIR_OPTION_DURATION,
               .fallback = "0ms",
               .help = "When a run is finished; 0ms: never."},
    [UNTIL] = {.name = "until",
               .type = WEIR_OPTION_TEXT,
               .fallback = "",
               .help = "File; runs are finished when it exists."},
};

struct later {
    int fd;
    int64_t after_ms;
    char *until; /* "": no file is waited for */
    pthread_t threads[THREADS_MAX];
    int count;
};

/* One run that a thread finishes, or nobody. */
struct wait {
    struct later *later;
    struct weir_handle handle;
};

static int open_later(const struct weir_open *open_args, void **ret_self)
{
    struct later *later = calloc(1, sizeof(*later));

    if (later == NULL)
        return WEIR_ENOMEM;
    later->until = strdup(open_args->values[UNTIL].text);
    if (later->until == NULL)
        abort();
    later->fd = open(open_args->values[FILE_NAME].text,
                     O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    later->after_ms = open_args->values[AFTER].number;
    *ret_self = later;
    return 0;
}

static void write_line(const struct later *later, const struct weir_job *job,
                       const char *what, const char *why)
{
    struct weir_slice id = weir_job_id(job);
    char line[200];
    int len = snprintf(line, sizeof(line), "%s %.*s%s\n", what, (int)id.len,
                       (const char *)id.ptr, why);

    if (write(later->fd, line, (size_t)len) != len)
        abort();
}

static void on_cancel(struct weir_job *job, enum weir_cancel why, void *arg)
{
    static const char *const names[] = {" timeout", " stop", " lost"};

    write_line(arg, job, "cancel", names[why]);
}

/* Nobody else has the handle. */
static void on_cancel_unfinished(struct weir_job *job, enum weir_cancel why,
                                 void *arg)
{
    struct wait *wait = arg;

    on_cancel(job, why, wait->later);
    (void)weir_complete(wait->handle, WEIR_DONE, 0, NULL);
    free(wait);
}

static void sleep_ms(int64_t ms)
{
    struct timespec span = {.tv_sec = ms / 1000,
                            .tv_nsec = ms % 1000 * 1000000};

    (void)nanosleep(&span, NULL);
}

static void *finish(void *arg)
{
    struct wait *wait = arg;
    const struct later *later = wait->later;

    sleep_ms(later->after_ms);
    while (later->until[0] != '\0' && access(later->until, F_OK) != 0)
        sleep_ms(LOOK_MS);
    (void)weir_complete(wait->handle, WEIR_DONE, 0, NULL);
    free(wait);
    return NULL;
}

static enum weir_verdict run(void *self, struct weir_job *job)
{
    struct later *later = self;
    struct wait *wait;

    write_line(later, job, "start", "");
    wait = malloc(sizeof(*wait));
    if (wait == NULL || later->count == THREADS_MAX)
        abort();
    wait->later = later;
    wait->handle = weir_job_handle(job);
    if (later->after_ms == 0 && later->until[0] == '\0') {
        weir_job_on_cancel(job, on_cancel_unfinished, wait);
        return WEIR_PENDING;
    }
    weir_job_on_cancel(job, on_cancel, later);
    if (pthread_create(&later->threads[later->count], NULL, finish, wait) != 0)
        abort();
    later->count++;
    return WEIR_PENDING;
}

static void close_later(void *self)
{
    struct later *later = self;

    for (int i = 0; i < later->count; i++)
        (void)pthread_join(later->threads[i], NULL);
    (void)close(later->fd);
    free(later->until);
    free(later);
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "later",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .option_size = sizeof(struct weir_option),
    .open = open_later,
    .run = run,
    .close = close_later,
};
