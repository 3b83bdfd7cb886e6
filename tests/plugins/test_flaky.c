/* SPDX-License-Identifier: MIT */
#include "tests/harness/test.h"
#include "tests/plugins/fake.h"

TEST(flaky_retries_the_first_attempts_and_is_then_done)
{
    struct bound bound;
    struct fake_job job = job_of("a", "1");
    const char *const options[3] = {"fail=2"};

    bind_plugin(&bound, "flaky", options);
    EXPECT_INT(WEIR_RETRY, run(&bound, &job));
    EXPECT_STR("flaky: attempt 1 of 2 that fail", job.reason);
    job.counters.attempt = 2;
    EXPECT_INT(WEIR_RETRY, run(&bound, &job));
    EXPECT_STR("flaky: attempt 2 of 2 that fail", job.reason);
    EXPECT_STR("flaky: attempt 2 of 2 that fail", last_logged());
    job.counters.attempt = 3;
    EXPECT_INT(WEIR_DONE, run(&bound, &job));
    weir__instance_close(&bound.instance);
}

TEST(flaky_fails_once_when_told_nothing)
{
    struct bound bound;
    struct fake_job job = job_of("a", "1");
    const char *const options[3] = {NULL};

    bind_plugin(&bound, "flaky", options);
    EXPECT_INT(WEIR_RETRY, run(&bound, &job));
    EXPECT_INT(-1, job.delay_ms);
    job.counters.attempt = 2;
    EXPECT_INT(WEIR_DONE, run(&bound, &job));
    weir__instance_close(&bound.instance);
}

TEST(flaky_fails_for_good_when_told_so)
{
    struct bound bound;
    struct fake_job job = job_of("a", "1");
    const char *const options[3] = {"verdict=fail"};

    bind_plugin(&bound, "flaky", options);
    EXPECT_INT(WEIR_FAIL, run(&bound, &job));
    EXPECT_STR("flaky: attempt 1 of 1 that fail", job.reason);
    weir__instance_close(&bound.instance);
}

TEST(flaky_counts_snoozes_because_they_use_no_attempt)
{
    struct bound bound;
    struct fake_job job = job_of("a", "1");
    const char *const options[3] = {"verdict=snooze", "fail=2", "delay=250ms"};

    bind_plugin(&bound, "flaky", options);
    EXPECT_INT(WEIR_SNOOZE, run(&bound, &job));
    EXPECT_INT(250, job.delay_ms);
    job.counters.snoozes = 1;
    EXPECT_INT(WEIR_SNOOZE, run(&bound, &job));
    job.counters.snoozes = 2;
    EXPECT_INT(WEIR_DONE, run(&bound, &job));
    weir__instance_close(&bound.instance);
}

TEST(flaky_never_fails_with_zero)
{
    struct bound bound;
    struct fake_job job = job_of("a", "1");
    const char *const options[3] = {"fail=0"};

    bind_plugin(&bound, "flaky", options);
    EXPECT_INT(WEIR_DONE, run(&bound, &job));
    weir__instance_close(&bound.instance);
}

TEST(flaky_refuses_options_with_a_sentence)
{
    static const struct {
        const char *option;
        const char *sentence;
    } cases[] = {
        {"fail=x", "plugin flaky: option \"fail\" wants a whole number from 0 "
                   "to 1000000, got \"x\""},
        {"fail=1000001", "plugin flaky: option \"fail\" wants a whole number "
                         "from 0 to 1000000, got \"1000001\""},
        {"fial=1",
         "plugin flaky: unknown option \"fial\"; it knows: fail, verdict, "
         "delay"},
        {"verdict=done", "plugin flaky: option \"verdict\" wants one of "
                         "retry|fail|snooze, got \"done\""},
        {"delay=1", "plugin flaky: option \"delay\" wants a duration such as "
                    "15s from 0ms to 365d, got \"1\""}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bound bound;
        const char *const options[3] = {cases[i].option};

        bind_plugin(&bound, "flaky", options);
        EXPECT_INT(WEIR_EINVAL, bound.rc);
        EXPECT_STR(cases[i].sentence, bound.err.text);
    }
}
