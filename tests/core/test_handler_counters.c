/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/handler_counters.h"
#include "core/text.h"
#include "tests/core/reactor_fixture.h"

/* Counters that handlers keep. */

static char seen[4096];
static int ends;

static void on_counter(const char *name, uint64_t value, void *arg)
{
    size_t used = strlen(seen);

    EXPECT_TRUE(arg == seen);
    if (name == NULL)
        ends++;
    else
        (void)snprintf(seen + used, sizeof(seen) - used, "%s=%" PRIu64 " ",
                       name, value);
}

static const char *counters_now(void)
{
    seen[0] = '\0';
    ends = 0;
    EXPECT_INT(WEIR_OK,
               weir__reactor_counters(reactor, weir__slice_of("orders", 6),
                                      on_counter, seen));
    EXPECT_INT(1, ends);
    return seen;
}

static enum weir_verdict count_some(struct weir_job *job)
{
    weir_job_count(job, "sent", 2);
    weir_job_count(job, "failed", 1);
    weir_job_count(job, "sent_2", 0);
    return WEIR_DONE;
}

TEST(counters_add_up_over_runs_and_come_in_byte_order)
{
    open_with_ladder("1s");
    EXPECT_STR("", counters_now());
    behaviour = count_some;
    add_many(3);
    (void)settle_down();
    EXPECT_STR("failed=3 sent=6 sent_2=0 ", counters_now());
}

TEST(a_topic_that_is_not_served_has_no_counters)
{
    open_with_ladder("1s");
    ends = 0;
    EXPECT_INT(WEIR_ENOTFOUND,
               weir__reactor_counters(reactor, weir__slice_of("other", 5),
                                      on_counter, seen));
    EXPECT_INT(0, ends);
}

static enum weir_verdict count_too_many(struct weir_job *job)
{
    char name[8];

    for (int i = 0; i < 34; i++) {
        (void)snprintf(name, sizeof(name), "n%02d", i);
        weir_job_count(job, name, 1);
    }
    return WEIR_DONE;
}

TEST(a_counter_too_many_is_ignored_and_logged_once)
{
    open_with_ladder("1s");
    behaviour = count_too_many;
    add_many(1);
    (void)settle_down();
    EXPECT_CONTAINS("orders: counter \"n32\" is ignored, a handler has 32",
                    last_log);
    EXPECT_CONTAINS(" n31=1 ", counters_now());
    EXPECT_TRUE(strstr(seen, "n32") == NULL);
    last_log[0] = '\0';
    mem_store_add(store, "next", 0, NULL, true);
    (void)settle_down();
    EXPECT_STR("", last_log);
    EXPECT_CONTAINS("n00=2 ", counters_now());
}

#define TEN "abcdefghij"

TEST(a_name_that_is_none_is_refused)
{
    static const char *const bad[] = {"", "Sent", "a-b", "a b",
                                      TEN TEN TEN TEN "k"};
    struct weir__handler_counters counters = {0};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        counters.refused = 0;
        weir__handler_counters_add(&counters, bad[i], 1);
        EXPECT_INT(WEIR_EINVAL, counters.refused);
        EXPECT_INT(0, counters.count);
    }
    counters.refused = 0;
    weir__handler_counters_add(&counters, TEN TEN TEN TEN, 1);
    weir__handler_counters_add(&counters, "0", 1);
    EXPECT_INT(0, counters.refused);
    EXPECT_INT(2, counters.count);
}

static enum weir_verdict count_badly(struct weir_job *job)
{
    weir_job_count(job, "Sent", 1);
    return WEIR_DONE;
}

TEST(a_bad_name_is_logged)
{
    open_with_ladder("1s");
    behaviour = count_badly;
    add_many(1);
    (void)settle_down();
    EXPECT_CONTAINS("orders: counter \"Sent\" is ignored, a name is 1 to 40",
                    last_log);
    EXPECT_STR("", counters_now());
}

TEST(an_older_host_is_not_asked)
{
    const struct weir_host host = {.size =
                                       offsetof(struct weir_host, job_count)};
    struct weir_job job = {.host = &host};

    weir_job_count(&job, "sent", 1);
    EXPECT_TRUE(host.job_count == NULL);
}
