/* SPDX-License-Identifier: MIT */
#include "adapters/cli/new_job.h"

#include <string.h>

#include "adapters/cli/rates.h"
#include "tests/harness/oom.h"
#include "tests/harness/test.h"
#include "tests/msgpack/bytes.h"

static void expect_job(struct weir_slice json)
{
    struct weir__job_line line = {0};

    EXPECT_INT(WEIR_OK, weir__job_line_read(&line, json, NULL));
    EXPECT_STR("42", line.job.id);
    EXPECT_STR("15s 3m", line.job.retry);
    EXPECT_STR("http://here/", line.job.url);
    EXPECT_INT(1500, line.job.delay_ms);
    EXPECT_INT(0, line.job.at_ms);
    EXPECT_INT(60000, line.job.ttl_ms);
    EXPECT_MEM("\x91\xa1"
               "a",
               3, line.job.body.ptr, line.job.body.len);
    weir__job_line_fini(&line);
}

TEST(a_line_is_read_whatever_is_escaped)
{
    expect_job(BYTES("{\"id\":\"42\",\"delay\":\"1500ms\",\"ttl\":\"1m\","
                     "\"body\":[\"a\"],\"retry\":\"15s 3m\","
                     "\"url\":\"http://here/\"}"));
    expect_job(BYTES(" { \"\\u0069d\" : \"\\u00342\", \"delay\":\"1500ms\", "
                     "\"at\":null, \"ttl\":\"1m\",\"body\":[\"\\u0061\"],"
                     "\"retry\":\"15s\\u00203m\",\"url\":\"http:\\/\\/here/\"}"
                     "\r"));
}

TEST(of_equal_names_the_last_counts)
{
    struct weir__job_line line = {0};

    EXPECT_INT(WEIR_OK, weir__job_line_read(
                            &line,
                            BYTES("{\"id\":\"1\",\"body\":1,\"id\":\"2\","
                                  "\"body\":2}"),
                            NULL));
    EXPECT_STR("2", line.job.id);
    EXPECT_MEM("\x02", 1, line.job.body.ptr, line.job.body.len);
    weir__job_line_fini(&line);
}

TEST(nothing_stays_of_the_line_before)
{
    struct weir__job_line line = {0};

    EXPECT_INT(
        WEIR_OK,
        weir__job_line_read(
            &line, BYTES("{\"id\":\"1\",\"body\":1,\"ttl\":\"1s\"}"), NULL));
    EXPECT_INT(WEIR_EINVAL,
               weir__job_line_read(&line, BYTES("{\"body\":1,}"), NULL));
    EXPECT_INT(WEIR_OK, weir__job_line_read(&line, BYTES("{}"), NULL));
    EXPECT_TRUE(line.job.id == NULL && line.job.ttl_ms == 0);
    EXPECT_INT(0, line.job.body.len);
    weir__job_line_fini(&line);
}

TEST(a_time_may_not_lie_beyond_what_is_kept)
{
    struct weir__job_line line = {0};
    struct weir_error err = {0};

    EXPECT_INT(WEIR_EINVAL,
               weir__job_line_read(
                   &line, BYTES("{\"at\":\"2286-11-20T17:46:40Z\"}"), &err));
    EXPECT_STR("at: 2286-11-20T17:46:40Z is too late; at most "
               "2286-11-20T17:46:39Z is kept",
               err.text);
    weir__job_line_fini(&line);
}

static void sweep(struct weir_slice json)
{
    int rc = WEIR_ENOMEM, failures = 0;

    for (; rc == WEIR_ENOMEM; failures++) {
        struct weir__job_line line = {0};
        struct weir_error err = {0};

        oom_after(failures);
        rc = weir__job_line_read(&line, json, &err);
        oom_off();
        EXPECT_INT(rc, err.code);
        weir__job_line_fini(&line);
    }
    EXPECT_INT(WEIR_OK, rc);
    EXPECT_TRUE(failures > 1);
}

TEST(a_line_survives_any_allocation_failure)
{
    sweep(BYTES("{\"id\":\"1\",\"body\":{\"a\":[1,2,3]}}"));
    sweep(BYTES("{\"id\":\"1\",\"body\":{\"a\":\"\\u0041\"}}"));
}

TEST(rates_are_the_growth_a_second)
{
    struct weir__rates rates = {0};

    EXPECT_TRUE(weir__rates_next(&rates, "a", 100, 1.0) < 0.0);
    EXPECT_TRUE(weir__rates_next(&rates, "b", 7, 1.0) < 0.0);
    EXPECT_INT(50, (int)weir__rates_next(&rates, "a", 200, 3.0));
    EXPECT_INT(0, (int)weir__rates_next(&rates, "b", 7, 2.0));
    EXPECT_TRUE(weir__rates_next(&rates, "b", 7, 1.0) < 0.0);
    EXPECT_TRUE(weir__rates_next(&rates, "a", 10, 5.0) < 0.0);
    EXPECT_INT(5, (int)weir__rates_next(&rates, "a", 20, 7.0));
    weir__rates_fini(&rates);
}

/* One job each 10 s, looked at each second. */
TEST(a_rate_is_seen_of_what_happens_seldom)
{
    struct weir__growth growth = {0};
    double rate = -1.0;

    for (int second = 1; second <= 200; second++) {
        rate =
            weir__growth_take(&growth, (uint64_t)second / 10, (double)second);
        EXPECT_TRUE(second < 60 || (rate > 0.08 && rate < 0.12));
    }
    for (int second = 201; second <= 280; second++)
        rate = weir__growth_take(&growth, 20, (double)second);
    EXPECT_TRUE(rate >= 0.0 && rate <= 0.0);
}

TEST(a_rate_follows_what_happens_often_at_once)
{
    struct weir__growth growth = {0};
    uint64_t total = 0;

    for (int second = 1; second <= 100; second++)
        (void)weir__growth_take(&growth, total, (double)second);
    EXPECT_INT(500, (int)weir__growth_take(&growth, total += 500, 101.0));
    for (int second = 102; second <= 200; second++)
        EXPECT_INT(1000, (int)weir__growth_take(&growth, total += 1000,
                                                (double)second));
}

TEST(without_memory_there_is_no_rate)
{
    struct weir__rates rates = {0};

    oom_after(0);
    EXPECT_TRUE(weir__rates_next(&rates, "a", 1, 1.0) < 0.0);
    EXPECT_TRUE(weir__rates_next(&rates, "a", 2, 2.0) < 0.0);
    oom_off();
    weir__rates_fini(&rates);
}
