/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/lane.h"
#include "core/text.h"
#include "tests/core/reactor_fixture.h"

/* Built twice: with the store in memory, and with one on a real server, where
 * asking takes time. */
#ifndef SLACK_MS
#    define SLACK_MS 0
#endif

TEST(an_idle_lane_claims_only_for_its_safety_check)
{
    size_t claims;

    open_with_ladder("1s");
    (void)settle_down();
    claims = mem_store_claims(store);
    pass(60000);
    EXPECT_TRUE(mem_store_claims(store) - claims <= 12);
    EXPECT_TRUE(mem_store_claims(store) - claims >= 11);
    EXPECT_TRUE(idles > 0);
}

TEST(a_lost_wake_up_costs_no_more_than_the_safety_check)
{
    open_with_ladder("1s");
    (void)settle_down();
    mem_store_add(store, "a", 0, NULL, false);
    pass(5002);
    EXPECT_INT(1, runs);
}

TEST(a_wake_up_that_overtakes_a_claims_answer_is_not_lost)
{
    open_with_ladder("1s");
    (void)turn(); /* the claim is out */
    mem_store_add(store, "late", 1, NULL, true);
    (void)mem_store_answer(store); /* says: nothing due yet */
    mem_store_advance(store, 1);
    (void)settle_down();
    EXPECT_INT(1, runs);
}

TEST(a_resumption_that_overtakes_a_claims_answer_is_not_lost)
{
    open_with_ladder("1s");
    mem_store_pause(store, true);
    mem_store_add(store, "a", 0, NULL, true);
    (void)turn(); /* the claim is out */
    mem_store_pause(store, false);
    (void)mem_store_answer(store); /* says: paused */
    (void)settle_down();
    EXPECT_INT(1, runs);
}

TEST(a_fast_handler_gets_batches_that_grow)
{
    open_with_ladder("1s");
    add_many(4000);
    (void)settle_down();
    EXPECT_INT(4000, runs);
    EXPECT_INT(1024, mem_store_largest_claim(store));
    EXPECT_TRUE(mem_store_claims(store) < 20);
}

TEST(a_claim_says_whether_jobs_keep_the_worker)
{
    open_with_ladder("1s");
    mem_store_add(store, "quick", 0, NULL, true);
    (void)settle_down();
    EXPECT_TRUE(!mem_store_is_slow(store));
    cost_ms = 10;
    mem_store_add(store, "slow", 0, NULL, true);
    (void)settle_down();
    mem_store_add(store, "next", 0, NULL, true);
    (void)settle_down();
    EXPECT_INT(3, runs);
    EXPECT_TRUE(mem_store_is_slow(store));
}

TEST(a_slow_handler_does_not_hoard)
{
    struct weir__lane_options lane = lane_options("1s");

    lane.options.concurrency = 1;
    open_reactor(&lane);
    cost_ms = 100;
    add_many(20);
    (void)settle_down();
    EXPECT_INT(20, runs);
    EXPECT_INT(1, mem_store_largest_claim(store));
}

#if SLACK_MS == 0 /* a server is as far as it is, and fails no claim */

/* Behind those of add_many. */
static void add_more(int count)
{
    static int number = 1000;
    char id[16];

    for (int i = 0; i < count; i++) {
        (void)snprintf(id, sizeof(id), "j%d", number++);
        mem_store_add(store, id, 0, NULL, i + 1 == count);
    }
}

/* How long all of them take where a claim and its answer take `far_ms`. */
static int64_t serve_far(int jobs, int64_t far_ms)
{
    int64_t start_ms = mem_store_now_ms(store), answer_ms = 0;
    size_t claims = mem_store_claims(store);

    add_more(jobs);
    while (runs < jobs) {
        int64_t wait_ns = turn();

        if (mem_store_claims(store) > claims)
            answer_ms = mem_store_now_ms(store) + far_ms;
        claims = mem_store_claims(store);
        if (wait_ns == 0 && mem_store_now_ms(store) < answer_ms)
            continue; /* something runs meanwhile */
        if (mem_store_now_ms(store) < answer_ms)
            mem_store_advance(store, answer_ms - mem_store_now_ms(store));
        if (mem_store_answer(store) == 0 && wait_ns > 0)
            mem_store_advance(store, wait_ns / 1000000 + 1); /* it sleeps */
    }
    return mem_store_now_ms(store) - start_ms;
}

TEST(where_a_claim_takes_long_more_is_held)
{
    open_with_ladder("1s");
    cost_ms = 5;
    EXPECT_TRUE(serve_far(1000, 100) < 5000 * 5 / 4);
    EXPECT_TRUE(mem_store_largest_claim(store) <= (100 + 20) / 5);
}

TEST(what_takes_the_place_of_others_is_not_held_for_a_long_way)
{
    struct weir__lane_options lane = lane_options("1s");

    lane.options.concurrency = 1;
    lane.options.parallel = 500;
    open_reactor(&lane);
    cost_ms = 5;
    (void)serve_far(200, 100);
    EXPECT_TRUE(mem_store_largest_claim(store) <= 4);
    close_reactor();
    runs = 0;
    lane.options.parallel = WEIR__OPTION_NONE;
    lane.options.key_parallel = 1;
    open_reactor(&lane);
    (void)serve_far(200, 100);
    EXPECT_TRUE(mem_store_largest_claim(store) <= 4);
}

TEST(a_way_that_is_short_beside_a_run_is_not_worth_another_job)
{
    struct weir__lane_options lane = lane_options("1s");

    lane.options.concurrency = 1;
    open_reactor(&lane);
    cost_ms = 100;
    (void)serve_far(200, 2);
    EXPECT_INT(1, mem_store_largest_claim(store));
}

static void open_one_by_one(void)
{
    struct weir__lane_options lane = lane_options("1s");

    lane.options.concurrency = 1;
    open_reactor(&lane);
    cost_ms = 5;
    add_many(32);
    (void)settle_down(); /* four are held */
}

/* Nothing could be had for an hour: that is no long way. */
static void expect_no_hoard(void)
{
    mem_store_advance(store, 3600 * 1000);
    add_more(100);
    pass(10000);
    EXPECT_INT(132, runs);
    EXPECT_INT(4, mem_store_largest_claim(store));
    close_reactor();
    runs = 0;
}

TEST(a_pause_is_no_long_way)
{
    open_one_by_one();
    pass(4000);
    mem_store_pause(store, true);
    mem_store_advance(store, 2000);
    (void)turn(); /* the claim is out */
    (void)mem_store_answer(store);
    mem_store_pause(store, false);
    expect_no_hoard();
}

TEST(a_claim_that_fails_is_no_long_way)
{
    static const int codes[] = {WEIR_ECONN, WEIR_ESERVER};

    for (size_t i = 0; i < 2; i++) {
        open_one_by_one();
        mem_store_fail_claim(store, codes[i]);
        pass(6000);
        expect_no_hoard();
    }
}

TEST(one_long_way_at_most_doubles_what_is_held)
{
    size_t claims;

    open_one_by_one();
    claims = mem_store_claims(store);
    add_more(200);
    while (mem_store_claims(store) == claims) { /* it slept */
        mem_store_advance(store, 100);
        (void)turn();
    }
    mem_store_advance(store, 2000); /* of a lease of 5 s */
    (void)mem_store_answer(store);
    (void)settle_down();
    EXPECT_INT(232, runs);
    EXPECT_TRUE(mem_store_largest_claim(store) <= 8);
}

TEST(claims_that_bring_some_of_their_room_have_more_held_and_not_much_more)
{
    open_one_by_one();
    runs = 0;
    mem_store_give(store, 3);
    (void)serve_far(600, 12);
    EXPECT_TRUE(mem_store_largest_claim(store) > 4);
    EXPECT_TRUE(mem_store_largest_claim(store) <= 12);
}

#endif

TEST(a_slow_handler_of_a_topic_with_parallel_takes_no_job_from_others)
{
    struct weir__lane_options lane = lane_options("1s");

    lane.options.parallel = 4;
    open_reactor(&lane);
    cost_ms = 100;
    add_many(20);
    (void)settle_down();
    EXPECT_INT(20, runs);
    EXPECT_INT(1, mem_store_largest_claim(store));
}

TEST(who_holds_jobs_asks_each_second_whether_it_still_may_run_them)
{
    struct weir__lane_options lane = lane_options("1s");
    size_t claims;

    lane.options.prefetch = 20;
    open_reactor(&lane);
    cost_ms = 500;
    add_many(12); /* all claimed at once: nothing else is to be had */
    (void)turn();
    claims = mem_store_claims(store);
    (void)settle_down();
    EXPECT_INT(12, runs); /* in six seconds */
    EXPECT_TRUE(mem_store_claims(store) - claims >= 4);
    EXPECT_TRUE(mem_store_claims(store) - claims <= 7);
}

TEST(an_explicit_prefetch_bounds_what_is_held)
{
    struct weir__lane_options lane = lane_options("1s");

    lane.options.concurrency = 3;
    lane.options.prefetch = 4;
    open_reactor(&lane);
    add_many(100);
    (void)settle_down();
    EXPECT_INT(100, runs);
    EXPECT_INT(7, mem_store_largest_claim(store));
}

TEST(claims_go_in_portions_of_half_of_what_is_held)
{
    struct weir__lane_options lane = lane_options("1s");

    lane.options.concurrency = 1;
    lane.options.prefetch = 11;
    open_reactor(&lane);
    cost_ms = 20; /* one run fills a turn */
    add_many(60);
    (void)settle_down();
    EXPECT_INT(60, runs);
    EXPECT_TRUE(mem_store_claims(store) <= 12);
}

static int64_t least_lease_ms;

static enum weir_verdict note_lease(struct weir_job *job)
{
    const struct mem_job *own =
        mem_store_job(store, (const char *)weir_job_id(job).ptr);
    int64_t left_ms = own->lease_ms - mem_store_now_ms(store) + cost_ms;

    if (runs > 3 && left_ms < least_lease_ms) /* that turns are long is known */
        least_lease_ms = left_ms;
    return WEIR_DONE;
}

TEST(where_turns_are_long_each_one_begins_with_a_renewal)
{
    struct weir__lane_options lane = lane_options("1s");

    lane.options.prefetch = 0; /* hold them all */
    open_reactor(&lane);
    cost_ms = 1000;
    least_lease_ms = INT64_MAX;
    behaviour = note_lease;
    add_many(12);
    (void)settle_down();
    EXPECT_INT(12, runs);
    EXPECT_TRUE(least_lease_ms <= 5000);
    EXPECT_TRUE(least_lease_ms >= 5000 - SLACK_MS);
}

TEST(a_new_claim_does_not_make_older_leases_younger)
{
    struct weir__lane_options lane = lane_options("1s");

    lane.options.concurrency = 1;
    lane.options.prefetch = 20;
    open_reactor(&lane);
    cost_ms = 300;
    add_many(10);
    (void)turn();
    (void)mem_store_answer(store); /* ten are under lease until 5,000 */
    for (int i = 0; i < 5; i++)
        (void)turn();
    EXPECT_INT(5, runs); /* at 1,500, ahead of the first renewal */
    EXPECT_INT(0, mem_store_renewals(store));
    EXPECT_INT(2, mem_store_claims(store)); /* room enough for a second one */
    (void)mem_store_answer(store);
    mem_store_advance(store, 3600); /* stopped and continued */
    (void)turn();
    EXPECT_INT(5, runs);
    (void)settle_down();
    EXPECT_INT(10, runs);
}

static size_t seen_renewals;

static enum weir_verdict note_renewals(struct weir_job *job)
{
    (void)job;
    seen_renewals = mem_store_flushed_renewals(store);
    return WEIR_DONE;
}

TEST(leases_of_long_work_are_renewed)
{
    struct weir__lane_options lane = lane_options("1s");

    lane.options.prefetch = 0; /* hold them all */
    open_reactor(&lane);
    cost_ms = 1000;
    add_many(30);
    (void)settle_down();
    EXPECT_INT(30, runs); /* none twice */
    EXPECT_TRUE(mem_store_renewals(store) >= 5);
}

TEST(a_renewal_leaves_before_the_handlers_of_its_turn)
{
    open_with_ladder("1s");
    cost_ms = 3000; /* of a lease of 5,000 */
    add_many(4);
    (void)turn();
    while (mem_store_answer(store) > 0)
        continue;
    (void)turn(); /* the first run */
    EXPECT_INT(0, mem_store_flushed_renewals(store));
    seen_renewals = 0;
    behaviour = note_renewals;
    (void)turn();
    EXPECT_INT(2, runs);
    EXPECT_INT(1, seen_renewals);
}

static enum weir_verdict pend(struct weir_job *job)
{
    (void)weir_job_handle(job);
    return WEIR_PENDING;
}

/* A worker learns of a stored lease from the answer to its first claim. */
TEST(a_stored_lease_holds_from_the_first_run_on)
{
    struct weir__setting stored = {weir__slice_str("lease"),
                                   weir__slice_str("500ms")};
    int64_t from_ms;

    open_with_ladder("1s");
    behaviour = pend;
    add_many(1);
    (void)turn();
    while (mem_store_answer(store) > 0)
        continue;
    EXPECT_INT(0, runs);
    from_ms = mem_store_now_ms(store) + 500;
    weir__lane_events().options(
        (void *)(uintptr_t)weir__lane_find(reactor, weir__slice_str("orders")),
        &stored, 1);
    (void)turn();
    EXPECT_INT(1, runs);
    EXPECT_TRUE(mem_store_job(store, "j0")->lease_ms >= from_ms);
    EXPECT_TRUE(mem_store_job(store, "j0")->lease_ms <=
                mem_store_now_ms(store) + 500);
}

TEST(what_was_held_beyond_its_lease_does_not_start)
{
    open_with_ladder("1s");
    cost_ms = 20; /* one run fills a turn */
    add_many(10);
    (void)turn();
    while (mem_store_answer(store) > 0)
        continue;
    (void)turn();
    EXPECT_INT(1, runs);
    mem_store_advance(store, 6000); /* stopped and continued */
    (void)turn();
    EXPECT_INT(1, runs);
    (void)settle_down();
    EXPECT_INT(10, runs);
    EXPECT_INT(0, mem_store_job(store, "j9")->counters.crashes);
}

TEST(what_comes_beyond_its_lease_does_not_start)
{
    open_with_ladder("1s");
    add_many(10);
    (void)turn();                   /* the claim is out */
    mem_store_advance(store, 6000); /* stopped and continued */
    (void)mem_store_answer(store);
    (void)turn();
    EXPECT_INT(0, runs);
    (void)settle_down();
    EXPECT_INT(10, runs);
    EXPECT_INT(0, mem_store_job(store, "j9")->counters.crashes);
}

TEST(an_expired_lease_makes_the_job_run_again_and_refuses_the_first_verdict)
{
    open_with_ladder("1s");
    cost_ms = 6000; /* beyond the lease, in one run */
    mem_store_add(store, "a", 0, NULL, true);
    (void)settle_down();
    EXPECT_STR("gone", mem_store_job(store, "a")->state);
    EXPECT_INT(1, runs); /* settled before anyone else claimed it */
}
