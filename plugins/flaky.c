/* SPDX-License-Identifier: MIT */

/* Fails on purpose, for demonstrations and tests: the first `fail` attempts of
 * each job get the verdict `verdict`, the next one is done. It keeps nothing of
 * its own: how often a job came is read from the job, so that it holds across
 * workers and restarts. A snooze uses no attempt; with that verdict snoozes
 * are counted instead. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/plugin.h>

struct flaky {
    uint32_t fail;
    enum weir_verdict verdict;
    int64_t delay_ms;
};

enum { OPTION_FAIL, OPTION_VERDICT, OPTION_DELAY };

static const struct weir_option options[] = {
    [OPTION_FAIL] =
        {
            .name = "fail",
            .type = WEIR_OPTION_INT,
            .fallback = "1",
            .max = 1000000,
            .help = "How many attempts of each job fail.",
        },
    [OPTION_VERDICT] =
        {
            .name = "verdict",
            .type = WEIR_OPTION_CHOICE,
            .fallback = "retry",
            .choices = "retry|fail|snooze",
            .help = "What those attempts return.",
        },
    [OPTION_DELAY] =
        {
            .name = "delay",
            .type = WEIR_OPTION_DURATION,
            .fallback = "0ms",
            .max = (int64_t)365 * 86400000,
            .help = "How long a snooze lasts.",
        },
};

static enum weir_verdict verdict_of(const char *text)
{
    if (strcmp(text, "snooze") == 0)
        return WEIR_SNOOZE;
    return strcmp(text, "fail") == 0 ? WEIR_FAIL : WEIR_RETRY;
}

static int open_flaky(const struct weir_open *open, void **ret_self)
{
    struct flaky *flaky = calloc(1, sizeof(*flaky));

    if (flaky == NULL)
        return WEIR_ENOMEM;
    flaky->fail = (uint32_t)open->values[OPTION_FAIL].number;
    flaky->verdict = verdict_of(open->values[OPTION_VERDICT].text);
    flaky->delay_ms = open->values[OPTION_DELAY].number;
    *ret_self = flaky;
    return 0;
}

static enum weir_verdict run(void *self, struct weir_job *job)
{
    const struct flaky *flaky = self;
    struct weir_counters counters = weir_job_counters(job);
    char why[80];

    if (flaky->verdict == WEIR_SNOOZE)
        return counters.snoozes < flaky->fail
                   ? weir_snooze(job, flaky->delay_ms)
                   : WEIR_DONE;
    if (counters.attempt > flaky->fail)
        return WEIR_DONE;
    (void)snprintf(why, sizeof(why),
                   "flaky: attempt %" PRIu32 " of %" PRIu32 " that fail",
                   counters.attempt, flaky->fail); /* fits */
    weir_job_log(job, WEIR_LEVEL_INFO, why);
    return flaky->verdict == WEIR_FAIL ? weir_fail(job, why)
                                       : weir_retry(job, why);
}

static void close_flaky(void *self)
{
    free(self);
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "flaky",
    .version = WEIR_VERSION,
    .summary = "Fails the first attempts of each job on purpose.",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .option_size = sizeof(struct weir_option),
    .open = open_flaky,
    .run = run,
    .close = close_flaky,
};
