/* SPDX-License-Identifier: MIT */

/* For tests: writes down every attempt when it starts, then does as told.
 *
 *     {"id":"1","attempt":2,"at_ms":1767225600123,"late_us":412}
 *
 * The line is written at once, so that what a killed worker had started is
 * known. Then it waits for a byte of the FIFO `gate` and holds the loop so
 * long. With verdict=hold the handler never returns. */

#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <weir/plugin.h>

enum { FILE_NAME, FAIL, VERDICT, MS, GATE };

static const struct weir_option options[] = {
    [FILE_NAME] = {.name = "file",
                   .type = WEIR_OPTION_TEXT,
                   .help = "File that lines are appended to."},
    [FAIL] = {.name = "fail",
              .type = WEIR_OPTION_INT,
              .fallback = "0",
              .max = 1000000,
              .help = "How many attempts get the verdict."},
    [VERDICT] = {.name = "verdict",
                 .type = WEIR_OPTION_CHOICE,
                 .fallback = "retry",
                 .choices = "retry|fail|snooze|hold",
                 .help = "What these attempts return."},
    [MS] = {.name = "ms",
            .type = WEIR_OPTION_INT,
            .fallback = "0",
            .max = 10000,
            .help = "How long each attempt holds the loop."},
    [GATE] = {.name = "gate",
              .type = WEIR_OPTION_TEXT,
              .fallback = "",
              .help = "FIFO; each attempt waits for a byte of it."},
};

struct trace {
    int fd;
    uint32_t fail;
    char verdict[16];
    int64_t ms;
    char gate[512];
};

static int open_trace(const struct weir_open *open_args, void **ret_self)
{
    struct trace *trace = calloc(1, sizeof(*trace));

    if (trace == NULL)
        return WEIR_ENOMEM;
    trace->fd = open(open_args->values[FILE_NAME].text,
                     O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    trace->fail = (uint32_t)open_args->values[FAIL].number;
    (void)snprintf(trace->verdict, sizeof(trace->verdict), "%s",
                   open_args->values[VERDICT].text);
    trace->ms = open_args->values[MS].number;
    (void)snprintf(trace->gate, sizeof(trace->gate), "%s",
                   open_args->values[GATE].text);
    *ret_self = trace;
    return 0;
}

static void write_line(const struct trace *trace, const struct weir_job *job)
{
    struct weir_slice id = weir_job_id(job);
    struct timespec now = {0};
    char line[320];
    int len;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    len = snprintf(line, sizeof(line),
                   "{\"id\":\"%.*s\",\"attempt\":%" PRIu32 ",\"at_ms\":%" PRId64
                   ",\"late_us\":%" PRId64 "}\n",
                   (int)id.len, (const char *)id.ptr,
                   weir_job_counters(job).attempt,
                   (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000,
                   weir_job_lateness_us(job));
    if (len <= 0 || write(trace->fd, line, (size_t)len) != len)
        abort(); /* the test would not see why */
}

static void hold_loop(int64_t ms)
{
    struct timespec left = {ms / 1000, (long)(ms % 1000) * 1000000};

    while (ms > 0 && nanosleep(&left, &left) != 0)
        continue;
}

static void pass_gate(const char *gate)
{
    char byte;
    int fd = open(gate, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || read(fd, &byte, 1) != 1)
        abort();
    (void)close(fd);
}

static enum weir_verdict run(void *self, struct weir_job *job)
{
    const struct trace *trace = self;
    struct weir_counters counters = weir_job_counters(job);

    write_line(trace, job);
    if (trace->gate[0] != '\0')
        pass_gate(trace->gate);
    hold_loop(trace->ms);
    if (strcmp(trace->verdict, "hold") == 0) {
        for (;;)
            (void)pause();
    }
    if (counters.attempt + counters.snoozes > trace->fail)
        return WEIR_DONE;
    if (strcmp(trace->verdict, "snooze") == 0)
        return weir_snooze(job, 50);
    return strcmp(trace->verdict, "fail") == 0
               ? weir_fail(job, "told to fail")
               : weir_retry(job, "told to retry");
}

static void close_trace(void *self)
{
    struct trace *trace = self;

    (void)close(trace->fd);
    free(trace);
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "trace",
    .summary = "Writes down every attempt, for tests.",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .option_size = sizeof(struct weir_option),
    .open = open_trace,
    .run = run,
    .close = close_trace,
};
