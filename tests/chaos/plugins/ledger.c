/* SPDX-License-Identifier: MIT */

/* For tests: writes down when each run starts and ends, one write a line, and
 * does as told meanwhile.
 *
 *     S ID TOKEN ATTEMPT MS      the run starts
 *     E ID TOKEN VERDICT MS      it returns done, retry or fail
 *
 * Where jobs have no ids of their own it is the "number" of the body. A job
 * whose body has "fail": true fails. With follow_to, a job ID that is done or
 * fails adds ID.here to its topic and ID.there to that one; these add none. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <weir/plugin.h>

enum {
    FILE_NAME,
    WORK,
    UNTIL,
    RETRY_EVERY,
    BLOCK,
    BLOCK_ID,
    CRASH_ID,
    FOLLOW_TO
};

static const struct weir_option options[] = {
    [FILE_NAME] = {.name = "file",
                   .type = WEIR_OPTION_TEXT,
                   .help = "File that lines are appended to."},
    [WORK] = {.name = "work",
              .type = WEIR_OPTION_DURATION,
              .fallback = "0ms",
              .max = 600000,
              .help = "How long each run takes."},
    [UNTIL] = {.name = "until",
               .type = WEIR_OPTION_TEXT,
               .fallback = "/",
               .help = "File; a run does not end before it exists."},
    [RETRY_EVERY] = {.name = "retry_every",
                     .type = WEIR_OPTION_INT,
                     .fallback = "0",
                     .max = 1000000,
                     .help = "Each n-th run asks for a retry; 0: none."},
    [BLOCK] = {.name = "block",
               .type = WEIR_OPTION_DURATION,
               .fallback = "0ms",
               .max = 600000,
               .help = "How long the run of block_id takes."},
    [BLOCK_ID] = {.name = "block_id",
                  .type = WEIR_OPTION_TEXT,
                  .fallback = "-",
                  .help = "The job that takes so long."},
    [CRASH_ID] = {.name = "crash_id",
                  .type = WEIR_OPTION_TEXT,
                  .fallback = "-",
                  .help = "The job that crashes the process."},
    [FOLLOW_TO] = {.name = "follow_to",
                   .type = WEIR_OPTION_TEXT,
                   .fallback = "",
                   .help = "Topic for jobs that jobs add; empty: none do."},
};

struct ledger {
    int fd;
    int64_t work_ms, block_ms, retry_every, runs;
    char *until, *block_id, *crash_id, *follow_to;
};

static char *copy_of(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);

    return copy == NULL ? NULL : memcpy(copy, text, size);
}

static void close_ledger(void *self)
{
    struct ledger *ledger = self;

    (void)close(ledger->fd);
    free(ledger->until);
    free(ledger->block_id);
    free(ledger->crash_id);
    free(ledger->follow_to);
    free(ledger);
}

static int open_ledger(const struct weir_open *open_args, void **ret_self)
{
    const struct weir_option_value *values = open_args->values;
    struct ledger *ledger = calloc(1, sizeof(*ledger));

    if (ledger == NULL)
        return WEIR_ENOMEM;
    ledger->fd = open(values[FILE_NAME].text,
                      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ledger->work_ms = values[WORK].number;
    ledger->block_ms = values[BLOCK].number;
    ledger->retry_every = values[RETRY_EVERY].number;
    ledger->until = copy_of(values[UNTIL].text);
    ledger->block_id = copy_of(values[BLOCK_ID].text);
    ledger->crash_id = copy_of(values[CRASH_ID].text);
    ledger->follow_to = copy_of(values[FOLLOW_TO].text);
    if (ledger->fd < 0 || ledger->until == NULL || ledger->block_id == NULL ||
        ledger->crash_id == NULL || ledger->follow_to == NULL) {
        (void)snprintf(open_args->error, open_args->error_cap,
                       "cannot open %s: %s", values[FILE_NAME].text,
                       strerror(errno));
        close_ledger(ledger);
        return WEIR_ESYSTEM;
    }
    *ret_self = ledger;
    return 0;
}

static void write_down(const struct ledger *ledger, const struct weir_job *job,
                       char what, const char *detail)
{
    struct weir_slice id = weir_job_id(job);
    struct timespec now = {0};
    char line[320], digits[24];
    int64_t number;
    int len;

    if (weir_job_i64(job, "number", &number)) {
        id.ptr = (const uint8_t *)digits;
        id.len = (size_t)snprintf(digits, sizeof(digits), "%" PRId64, number);
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    len = snprintf(line, sizeof(line), "%c %.*s %" PRIu64 " %s %" PRId64 "\n",
                   what, (int)id.len, (const char *)id.ptr, weir_job_token(job),
                   detail, (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    if (len <= 0 || write(ledger->fd, line, (size_t)len) != len)
        abort(); /* a run that nobody knows of would be a wrong account */
}

static void spend(int64_t ms)
{
    struct timespec left = {.tv_sec = (time_t)(ms / 1000),
                            .tv_nsec = (long)(ms % 1000 * 1000000)};

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

static bool is_called(const struct weir_job *job, const char *name)
{
    struct weir_slice id = weir_job_id(job);

    return id.len == strlen(name) && memcmp(id.ptr, name, id.len) == 0;
}

static void add_one(struct weir_job *job, const char *topic, const char *end)
{
    struct weir_slice own = weir_job_id(job);
    char id[160];
    struct weir_follow follow = {.id = id};
    int rc;

    (void)snprintf(id, sizeof(id), "%.*s.%s", (int)own.len,
                   (const char *)own.ptr, end);
    rc = topic == NULL ? weir_job_follow(job, &follow)
                       : weir_job_follow_to(job, topic, &follow);
    if (rc != 0)
        abort(); /* as above */
}

static void add_follows(const struct ledger *ledger, struct weir_job *job)
{
    struct weir_slice own = weir_job_id(job);

    if (*ledger->follow_to == '\0' || memchr(own.ptr, '.', own.len) != NULL)
        return;
    add_one(job, NULL, "here");
    add_one(job, ledger->follow_to, "there");
}

static enum weir_verdict run(void *self, struct weir_job *job)
{
    struct ledger *ledger = self;
    bool fails = false;
    char attempt[16];

    (void)snprintf(attempt, sizeof(attempt), "%" PRIu32,
                   weir_job_counters(job).attempt);
    write_down(ledger, job, 'S', attempt);
    if (is_called(job, ledger->crash_id))
        abort();
    spend(is_called(job, ledger->block_id) ? ledger->block_ms
                                           : ledger->work_ms);
    while (access(ledger->until, F_OK) != 0)
        spend(5);
    ledger->runs++;
    if (weir_job_bool(job, "fail", &fails) && fails) {
        write_down(ledger, job, 'E', "fail");
        add_follows(ledger, job);
        return weir_fail(job, "told to fail");
    }
    if (ledger->retry_every > 0 && ledger->runs % ledger->retry_every == 0) {
        write_down(ledger, job, 'E', "retry");
        return weir_retry(job, "told to retry");
    }
    write_down(ledger, job, 'E', "done");
    add_follows(ledger, job);
    return WEIR_DONE;
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "ledger",
    .summary = "Writes down every start and end, for tests.",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .option_size = sizeof(struct weir_option),
    .open = open_ledger,
    .run = run,
    .close = close_ledger,
};
