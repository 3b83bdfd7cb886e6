/* SPDX-License-Identifier: MIT */

/* Appends each batch to `file` as one line, "GROUP ATTEMPT TOKEN MS NUMBER..."
 * with the bodies of its events, in one write; MS is the time from its call to
 * that line. An event with the number `poison` ends the process; `retry=N` has
 * the first N batches retried as a whole; each takes `work`, half before its
 * line is written and half after. Before that it waits for a byte from the FIFO
 * `gate`. */

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/plugin.h>

struct batches {
    int fd;
    char *gate;
    int64_t poison;
    int64_t retries;
    int64_t each;
    int64_t work_ms;
};

static const struct weir_option options[] = {
    {.name = "file", .type = WEIR_OPTION_TEXT},
    {.name = "poison", .type = WEIR_OPTION_INT, .fallback = "-1"},
    {.name = "retry", .type = WEIR_OPTION_INT, .fallback = "0"},
    {.name = "each", .type = WEIR_OPTION_BOOL, .fallback = "no"},
    {.name = "work",
     .type = WEIR_OPTION_DURATION,
     .fallback = "0ms",
     .max = 10000},
    {.name = "gate", .type = WEIR_OPTION_TEXT, .fallback = ""},
};

static int open_instance(const struct weir_open *open_with, void **ret_self)
{
    struct batches *self = calloc(1, sizeof(*self));

    if (self == NULL)
        return WEIR_ENOMEM;
    self->fd = open(open_with->values[0].text,
                    O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    self->poison = open_with->values[1].number;
    self->retries = open_with->values[2].number;
    self->each = open_with->values[3].number;
    self->work_ms = open_with->values[4].number;
    self->gate = strdup(open_with->values[5].text);
    if (self->gate == NULL || self->fd < 0) {
        if (self->fd >= 0)
            (void)close(self->fd);
        free(self->gate);
        free(self);
        return WEIR_ESYSTEM;
    }
    *ret_self = self;
    return WEIR_OK;
}

static void spend_half(int64_t ms)
{
    struct timespec half = {.tv_sec = ms / 2000,
                            .tv_nsec = (long)(ms % 2000 * 500000)};

    (void)nanosleep(&half, NULL); /* less will do */
}

static bool pass_gate(const char *gate)
{
    char byte;
    int fd = open(gate, O_RDONLY | O_CLOEXEC);
    bool is_open = fd >= 0 && read(fd, &byte, 1) == 1;

    if (fd >= 0)
        (void)close(fd);
    return is_open;
}

static int64_t now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The line's first words. */
static size_t begin_line(char *line, size_t cap, const struct weir_job *job,
                         int64_t ms)
{
    struct weir_slice group = weir_job_group(job);

    return (size_t)snprintf(line, cap, "%.*s %" PRIu32 " %" PRIu64 " %" PRId64,
                            (int)group.len, (const char *)group.ptr,
                            weir_job_counters(job).attempt, weir_job_token(job),
                            ms);
}

static enum weir_verdict run_batch(void *arg, struct weir_job *const *jobs,
                                   size_t count, enum weir_verdict *verdicts)
{
    struct batches *self = arg;
    int64_t begin_ms = now_ms();
    char line[16384];
    size_t len;

    if (*self->gate != '\0' && !pass_gate(self->gate))
        return weir_retry(jobs[0], "the gate cannot be read");
    spend_half(self->work_ms);
    len = begin_line(line, sizeof(line), jobs[0], now_ms() - begin_ms);
    for (size_t i = 0; i < count && len < sizeof(line) - 32; i++) {
        int64_t number = -1;

        (void)weir_job_i64(jobs[i], "", &number);
        if (number == self->poison)
            (void)raise(SIGKILL);
        len += (size_t)snprintf(line + len, sizeof(line) - len, " %" PRId64,
                                number);
        if (self->each != 0 && number % 2 != 0)
            verdicts[i] = weir_fail(jobs[i], "odd");
    }
    line[len++] = '\n';
    if (write(self->fd, line, len) != (ssize_t)len)
        return weir_retry(jobs[0], "the file cannot be written");
    spend_half(self->work_ms);
    if (self->retries > 0) {
        self->retries--;
        return weir_retry_after(jobs[0], 50, "as it was told");
    }
    return self->each != 0 ? WEIR_EACH : WEIR_DONE;
}

static void close_instance(void *arg)
{
    struct batches *self = arg;

    (void)close(self->fd);
    free(self->gate);
    free(self);
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "batches",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .option_size = sizeof(struct weir_option),
    .open = open_instance,
    .close = close_instance,
    .run_batch = run_batch,
};
