/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/lane.h"
#include "core/schedule.h"
#include "core/text.h"
#include "tests/core/reactor_fixture.h"
#include "tests/harness/test.h"

/* Ticks of schedules, which no handler sees. The store's clock begins at
 * 1,000,000 ms: 00:16:40. */

#define EVERY_SECOND                                          \
    "0000001000000 0000001000000 0000000000000 0000000000000" \
    " 0000001000000 0000000001000 0000000000000 "

static void add_tick(const char *schedule)
{
    mem_store_add(store, "s@next", 0, NULL, true);
    mem_store_tick(store, schedule);
}

/* --- the job before ------------------------------------------------------- */

/* The store's, and one that shows jobs, with this answer. */
static struct weir__store_ops ops;
static weir_show_fn show_fn; /* NULL: nobody asks */
static void *show_arg;
static size_t shown;

static int show(struct weir__store_topic *topic, struct weir_slice id,
                weir_show_fn fn, void *arg)
{
    (void)topic;
    EXPECT_TRUE(id.len > 0 && show_fn == NULL);
    show_fn = fn;
    show_arg = arg;
    shown++;
    return WEIR_OK;
}

static void open_showing(void)
{
    open_with_ladder("1s");
    ops = *mem_store_port(store)->ops;
    ops.show = show;
    mem_store_port(store)->ops = &ops;
}

/* Let seconds pass; who asks has this answer. */
static void pass_showing(int seconds, int code, enum weir_job_state state)
{
    const struct weir_job_info job = {.state = state};

    for (; seconds > 0; seconds--) {
        weir_show_fn fn;

        pass(1000);
        fn = show_fn;
        show_fn = NULL;
        if (fn != NULL)
            fn(code, code == WEIR_OK ? &job : NULL, show_arg);
        (void)settle_down();
    }
}

static const struct mem_job *tick(void)
{
    return mem_store_job(store, "s@next");
}

TEST(a_tick_adds_its_jobs_and_comes_again_before_the_next_time)
{
    open_with_ladder("1s");
    add_tick(EVERY_SECOND "once allow - -");
    (void)settle_down();
    EXPECT_STR("waiting", tick()->state);
    EXPECT_INT(1001000 - WEIR__AHEAD_MS / 2, tick()->due_ms);
    EXPECT_STR("", tick()->made);
    pass(2500);
    EXPECT_STR("s@1970-01-01T00:16:41Z s@1970-01-01T00:16:42Z ", tick()->made);
    EXPECT_INT(1003000 - WEIR__AHEAD_MS / 2, tick()->due_ms);
    EXPECT_CONTAINS("0000001000000 0000001002000 0000001002000", tick()->cron);
    EXPECT_INT(0, runs); /* no handler saw it */
}

TEST(a_tick_whose_worker_died_is_no_suspect_and_never_dead)
{
    open_with_ladder("none");
    add_tick(EVERY_SECOND "once allow - -");
    mem_store_suspect(store, 50);
    (void)settle_down();
    pass(1000);
    EXPECT_STR("waiting", tick()->state);
    EXPECT_STR("s@1970-01-01T00:16:41Z ", tick()->made);
    EXPECT_INT(0, mem_store_starts(store));
    EXPECT_INT(0, tick()->counters.crashes);
    EXPECT_INT(0, tick()->counters.snoozes);
}

TEST(a_tick_has_no_ttl)
{
    open_with_ladder("1s");
    add_tick(EVERY_SECOND "once allow - -");
    mem_store_ttl(store, 1);
    (void)settle_down();
    mem_store_advance(store, 60000);
    pass(1);
    EXPECT_STR("s@1970-01-01T00:17:40Z ", tick()->made);
}

TEST(a_tick_waits_for_no_room_among_jobs)
{
    open_with_ladder("1s");
    add_tick(EVERY_SECOND "all allow - -");
    mem_store_advance(store, 3000);
    (void)settle_down();
    EXPECT_STR("s@1970-01-01T00:16:41Z s@1970-01-01T00:16:42Z "
               "s@1970-01-01T00:16:43Z ",
               tick()->made);
}

TEST(a_tick_in_a_zone_that_is_not_known_waits_for_seconds)
{
    open_with_ladder("1s");
    add_tick("0000001000000 0000001000000 0000000000000 0000000000000 "
             "0000000000000 0000000000000 0000000000000 once allow "
             "Europe/Berlin * * * * *");
    (void)settle_down();
    EXPECT_INT(1005000, tick()->due_ms);
    EXPECT_STR("", tick()->made);
    EXPECT_CONTAINS("time zone that is not known here", last_log);
}

TEST(a_schedule_that_cannot_be_read_waits_for_seconds_and_stays)
{
    open_with_ladder("1s");
    add_tick("something of a newer weir");
    (void)settle_down();
    EXPECT_INT(1005000, tick()->due_ms);
    EXPECT_STR("something of a newer weir", tick()->cron);
    EXPECT_CONTAINS("cannot be read here", last_log);
}

TEST(what_has_a_schedule_and_another_id_is_malformed)
{
    open_with_ladder("1s");
    mem_store_add(store, "s", 0, NULL, true);
    mem_store_tick(store, EVERY_SECOND "once allow - -");
    (void)settle_down();
    EXPECT_STR("malformed", mem_store_job(store, "s")->reason);
}

TEST(while_the_job_before_is_there_the_next_one_is_skipped)
{
    open_showing();
    add_tick(EVERY_SECOND "once skip - -");
    (void)settle_down();
    pass_showing(1, WEIR_OK, WEIR_JOB_RUNNING);
    EXPECT_INT(0, shown); /* there was none before */
    EXPECT_STR("s@1970-01-01T00:16:41Z ", tick()->made);
    pass_showing(1, WEIR_OK, WEIR_JOB_RUNNING);
    EXPECT_INT(1, shown);
    EXPECT_STR("s@1970-01-01T00:16:41Z ", tick()->made);
    EXPECT_CONTAINS("is not over", last_log);
    EXPECT_CONTAINS("0000001002000 0000001001000", tick()->cron);
    pass_showing(1, WEIR_ENOTFOUND, WEIR_JOB_DEAD);
    EXPECT_STR("s@1970-01-01T00:16:41Z s@1970-01-01T00:16:43Z ", tick()->made);
}

TEST(a_dead_job_is_over)
{
    open_showing();
    add_tick(EVERY_SECOND "once skip - -");
    (void)settle_down();
    pass_showing(2, WEIR_OK, WEIR_JOB_DEAD);
    EXPECT_STR("s@1970-01-01T00:16:41Z s@1970-01-01T00:16:42Z ", tick()->made);
}

TEST(where_the_server_does_not_say_the_tick_comes_again_with_its_lease)
{
    open_showing();
    add_tick(EVERY_SECOND "once skip - -");
    (void)settle_down();
    pass_showing(2, WEIR_ECONN, WEIR_JOB_DEAD);
    EXPECT_STR("running", tick()->state);
    pass_showing(20, WEIR_ENOTFOUND, WEIR_JOB_DEAD);
    EXPECT_STR("waiting", tick()->state);
    EXPECT_CONTAINS("s@1970-01-01T00:16:41Z s@1970-01-01T00:1", tick()->made);
}

/* The tick asks whether the job before is there; the answer is not here yet. */
static void begin_to_look(void)
{
    open_showing();
    add_tick(EVERY_SECOND "once skip - -");
    (void)settle_down();
    pass(2000);
    EXPECT_INT(1, shown);
}

TEST(a_tick_that_asks_goes_back_when_the_worker_stops)
{
    begin_to_look();
    weir__reactor_stop(reactor, on_stopped, NULL);
    (void)settle_down();
    EXPECT_INT(1, stops);
    EXPECT_STR("waiting", tick()->state);
    EXPECT_STR("s@1970-01-01T00:16:41Z ", tick()->made);
    show_fn(WEIR_ENOTFOUND, NULL, show_arg); /* too late */
}

TEST(a_tick_whose_lease_is_lost_while_it_asks_adds_nothing)
{
    begin_to_look();
    mem_store_lose(store, "s@next");
    show_fn(WEIR_ENOTFOUND, NULL, show_arg); /* too late */
    (void)turn();
    EXPECT_STR("s@1970-01-01T00:16:41Z ", tick()->made);
    EXPECT_STR("waiting", tick()->state);
}
