/* SPDX-License-Identifier: MIT */
#include <weir/past.h>

#include <stdio.h>

#include "core/text.h"
#include "tests/weir/host.h"

/* A job's past through <weir/past.h>, on a real server. */

static int answers, last_code;
static enum weir_job_state state;
static size_t count;
static char shown[WEIR_MAX_ATTEMPTS][80]; /* outcome, error, worker */

static void open_host(void)
{
    host_open(&(struct weir_options){.name = "w1"});
}
TEST_SETUP(open_host)

static void on_added(int code, const char *id, void *arg)
{
    (void)id;
    (void)arg;
    last_code = code;
    answers++;
}

static void on_shown(int code, const struct weir_job_info *job, void *arg)
{
    struct weir_attempt attempts[WEIR_MAX_ATTEMPTS];
    const size_t *cap = arg;

    EXPECT_INT(WEIR_OK, code);
    state = job->state;
    count = weir_job_info_attempts(job, attempts, *cap);
    for (size_t i = 0; i < count; i++)
        (void)snprintf(
            shown[i], sizeof(shown[i]), "%s %.*s %.*s",
            weir_attempt_outcome_name(attempts[i].outcome),
            (int)attempts[i].error.len, (const char *)attempts[i].error.ptr,
            (int)attempts[i].worker.len, (const char *)attempts[i].worker.ptr);
    answers++;
}

static void show(size_t cap)
{
    int before = answers;

    EXPECT_INT(WEIR_OK, weir_reactor_show(weir, "t", "1", on_shown, &cap));
    AWAIT(answers > before);
}

static int restore(const struct weir_attempt *attempts, size_t attempt_count)
{
    const struct weir_old_job old = {
        .job = {.id = "1"},
        .attempts = attempts,
        .attempt_count = attempt_count,
    };
    int before = answers;
    int rc = weir_reactor_restore(weir, "t", &old, on_added, NULL, NULL);

    if (rc == WEIR_OK)
        AWAIT(answers > before);
    return rc;
}

static enum weir_verdict run_fail(void *self, struct weir_job *job)
{
    (void)self;
    return weir_fail(job, "no");
}

TEST(an_attempt_goes_behind_those_that_a_job_brought)
{
    const struct weir_topic_options options = {.run = run_fail};
    const struct weir_attempt before[] = {
        {.outcome = WEIR_ATTEMPT_CRASH, .ended_ms = 1},
        {WEIR_ATTEMPT_TIMEOUT, 2, weir__slice_str("late"),
         weir__slice_str("w0")},
    };

    EXPECT_INT(WEIR_OK, restore(before, 2));
    EXPECT_INT(WEIR_OK, last_code);
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "t", &options, NULL));
    do
        show(WEIR_MAX_ATTEMPTS);
    while (state != WEIR_JOB_DEAD);
    EXPECT_INT(3, count);
    EXPECT_STR("crash  ", shown[0]);
    EXPECT_STR("timeout late w0", shown[1]);
    EXPECT_STR("fail no w1", shown[2]);
    show(1);
    EXPECT_INT(1, count);
    EXPECT_STR("fail no w1", shown[0]);
}

TEST(an_attempt_that_cannot_have_been_is_refused)
{
    const struct weir_attempt bad[] = {
        {.outcome = (enum weir_attempt_outcome)(WEIR_ATTEMPT_CRASH + 1)},
        {.ended_ms = -1},
        {.ended_ms = INT64_MAX},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        EXPECT_INT(WEIR_EINVAL, restore(&bad[i], 1));
}
