/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "tests/core/reactor_fixture.h"

TEST(a_job_due_in_nine_thousand_years_is_waited_for)
{
    open_with_ladder("1s");
    mem_store_add(store, "a", INT64_C(9000) * 365 * 86400000, NULL, true);
    EXPECT_INT(5000, settle_down() / 1000000); /* the safety check */
    EXPECT_INT(0, runs);
}

TEST(a_delayed_job_runs_at_its_due_time_and_not_before)
{
    open_with_ladder("1s");
    mem_store_add(store, "a", 3000, NULL, true);
    pass(2999);
    EXPECT_INT(0, runs);
    pass(2);
    EXPECT_INT(1, runs);
    EXPECT_STR("gone", mem_store_job(store, "a")->state);
}

static enum weir_verdict retry(struct weir_job *job)
{
    return weir_retry(job, "gateway said no");
}

TEST(a_failing_job_climbs_its_ladder_and_dies_exhausted)
{
    static const int64_t steps[] = {15000, 180000, 600000};
    int64_t due;

    open_with_ladder("15s 3m 10m");
    behaviour = retry;
    mem_store_add(store, "a", 0, NULL, true);
    (void)settle_down();
    for (int i = 0; i < 3; i++) {
        EXPECT_INT(i + 1, runs);
        due = mem_store_job(store, "a")->due_ms;
        EXPECT_INT(steps[i], due - mem_store_now_ms(store));
        pass(steps[i]);
    }
    EXPECT_INT(4, runs);
    EXPECT_STR("dead", mem_store_job(store, "a")->state);
    EXPECT_STR("exhausted", mem_store_job(store, "a")->reason);
    EXPECT_STR("gateway said no", mem_store_job(store, "a")->error);
    EXPECT_INT(4, mem_store_job(store, "a")->counters.attempt);
    EXPECT_INT(4, mem_store_job(store, "a")->counters.failures);
}

TEST(the_ladder_of_the_job_beats_that_of_the_topic)
{
    open_with_ladder("15s");
    behaviour = retry;
    mem_store_add(store, "a", 0, "none", true);
    (void)settle_down();
    EXPECT_STR("dead", mem_store_job(store, "a")->state);
}

TEST(a_repeated_last_step_never_exhausts)
{
    open_with_ladder("1s 2s ...");
    behaviour = retry;
    mem_store_add(store, "a", 0, NULL, true);
    pass(21100);
    EXPECT_INT(12, runs); /* at 0, 1, 3, 5, ... 21 s */
    EXPECT_STR("waiting", mem_store_job(store, "a")->state);
}

static enum weir_verdict done_on_third(struct weir_job *job)
{
    return weir_job_counters(job).attempt < 3 ? weir_retry(job, "early")
                                              : WEIR_DONE;
}

TEST(a_job_that_fails_twice_succeeds_on_its_third_attempt)
{
    open_with_ladder("1s 1s 1s");
    behaviour = done_on_third;
    mem_store_add(store, "a", 0, NULL, true);
    pass(5000);
    EXPECT_INT(3, runs);
    EXPECT_STR("gone", mem_store_job(store, "a")->state);
}

static enum weir_verdict snooze_first(struct weir_job *job)
{
    return weir_job_counters(job).snoozes < 2 ? weir_snooze(job, 700)
                                              : WEIR_DONE;
}

TEST(a_snooze_uses_no_attempt)
{
    open_with_ladder("none");
    behaviour = snooze_first;
    mem_store_add(store, "a", 0, NULL, true);
    pass(1300);
    EXPECT_INT(2, runs);
    EXPECT_INT(0, mem_store_job(store, "a")->counters.attempt);
    pass(200);
    EXPECT_INT(3, runs);
    EXPECT_STR("gone", mem_store_job(store, "a")->state);
}

static enum weir_verdict retry_after(struct weir_job *job)
{
    return weir_retry_after(job, 123, "busy");
}

TEST(retry_after_takes_its_own_delay_and_a_step_of_the_ladder)
{
    open_with_ladder("1h");
    behaviour = retry_after;
    mem_store_add(store, "a", 0, NULL, true);
    (void)settle_down();
    EXPECT_INT(123,
               mem_store_job(store, "a")->due_ms - mem_store_now_ms(store));
    pass(200);
    EXPECT_INT(2, runs);
    EXPECT_STR("exhausted", mem_store_job(store, "a")->reason);
}

static enum weir_verdict fail(struct weir_job *job)
{
    return weir_fail(job, "no such order");
}

TEST(fail_is_final_whatever_the_ladder_says)
{
    open_with_ladder("1s ...");
    behaviour = fail;
    mem_store_add(store, "a", 0, NULL, true);
    pass(10000);
    EXPECT_INT(1, runs);
    EXPECT_STR("failed", mem_store_job(store, "a")->reason);
    EXPECT_STR("no such order", mem_store_job(store, "a")->error);
}

static enum weir_verdict nonsense(struct weir_job *job)
{
    int none = 77;

    (void)job;
    return (enum weir_verdict)none;
}

TEST(what_is_no_verdict_fails_the_job_and_is_logged)
{
    open_with_ladder("1s");
    behaviour = nonsense;
    mem_store_add(store, "a", 0, NULL, true);
    (void)settle_down();
    EXPECT_STR("dead", mem_store_job(store, "a")->state);
    EXPECT_CONTAINS("gave 77", last_log);
}

TEST(what_was_not_durable_is_not_done)
{
    open_with_ladder("1s 1s");
    flush_rc = -1;
    mem_store_add(store, "a", 0, NULL, true);
    (void)settle_down();
    EXPECT_STR("waiting", mem_store_job(store, "a")->state);
    EXPECT_STR("flush failed", mem_store_job(store, "a")->error);
    flush_rc = 0;
    pass(1100);
    EXPECT_STR("gone", mem_store_job(store, "a")->state);
    EXPECT_INT(2, flushes);
}

/* With the ladder none a retry would be the job's death. */
TEST(what_was_not_durable_for_lack_of_memory_loses_no_attempt)
{
    open_with_ladder("none");
    flush_rc = WEIR_SNOOZE;
    mem_store_add(store, "a", 0, NULL, true);
    (void)settle_down();
    EXPECT_STR("waiting", mem_store_job(store, "a")->state);
    EXPECT_INT(0, mem_store_job(store, "a")->counters.attempt);
    EXPECT_INT(1, mem_store_job(store, "a")->counters.snoozes);
    EXPECT_CONTAINS("wait for 1 s and lose no attempt", last_log);
    flush_rc = 0;
    pass(1100);
    EXPECT_STR("gone", mem_store_job(store, "a")->state);
}

static enum weir_verdict fail_for_good(struct weir_job *job)
{
    return weir_fail(job, "no use");
}

TEST(a_flush_that_fails_changes_no_other_verdict)
{
    open_with_ladder("1s 1s");
    behaviour = fail_for_good;
    flush_rc = -1;
    mem_store_add(store, "a", 0, NULL, true);
    (void)settle_down();
    EXPECT_STR("dead", mem_store_job(store, "a")->state);
    EXPECT_STR("no use", mem_store_job(store, "a")->error);
}

static enum weir_verdict add_one_more(struct weir_job *job)
{
    const struct weir_follow follow = {.id = "next"};

    EXPECT_INT(WEIR_OK, weir_job_follow(job, &follow));
    return WEIR_DONE;
}

TEST(what_was_not_durable_adds_no_jobs)
{
    open_with_ladder("1s 1s");
    behaviour = add_one_more;
    flush_rc = -1;
    mem_store_add(store, "a", 0, NULL, true);
    (void)settle_down();
    EXPECT_STR("waiting", mem_store_job(store, "a")->state);
    EXPECT_INT(0, mem_store_job(store, "a")->follows);
    flush_rc = 0;
    pass(1100);
    EXPECT_STR("gone", mem_store_job(store, "a")->state);
    EXPECT_INT(1, mem_store_job(store, "a")->follows);
}

TEST(stopping_gives_back_what_did_not_start)
{
    struct weir__lane_options lane = lane_options("1s");

    lane.options.prefetch = 0;
    open_reactor(&lane);
    cost_ms = 20; /* one run fills a turn */
    add_many(10);
    (void)turn();
    (void)mem_store_answer(store);
    (void)turn();
    EXPECT_INT(1, runs);
    weir__reactor_stop(reactor, on_stopped, NULL);
    (void)settle_down();
    EXPECT_INT(1, stops);
    EXPECT_INT(1, runs);
    EXPECT_STR("gone", mem_store_job(store, "j0")->state);
    EXPECT_STR("waiting", mem_store_job(store, "j9")->state);
    EXPECT_INT(0, mem_store_job(store, "j9")->counters.crashes);
}

TEST(jobs_that_arrive_while_stopping_go_back)
{
    open_with_ladder("1s");
    mem_store_add(store, "a", 0, NULL, true);
    (void)turn();
    weir__reactor_stop(reactor, on_stopped, NULL);
    (void)settle_down();
    EXPECT_INT(0, runs);
    EXPECT_INT(1, stops);
    EXPECT_STR("waiting", mem_store_job(store, "a")->state);
}

TEST(a_job_that_could_not_start_within_its_ttl_is_dropped)
{
    open_with_ladder("1s");
    (void)settle_down();
    mem_store_add(store, "fresh", 0, NULL, false);
    mem_store_ttl(store, 4000);
    mem_store_add(store, "stale", 0, NULL, false);
    mem_store_ttl(store, 3999);
    mem_store_advance(store, 4000);
    weir__reactor_connection(reactor, true);
    (void)settle_down();
    EXPECT_INT(1, runs);
    EXPECT_STR("fresh ", order);
    EXPECT_STR("expired", mem_store_job(store, "stale")->reason);
}

TEST(a_server_error_is_waited_out)
{
    open_with_ladder("1s");
    mem_store_fail_claim(store, WEIR_ESERVER);
    mem_store_add(store, "a", 0, NULL, true);
    (void)settle_down();
    EXPECT_INT(0, runs);
    pass(1001);
    EXPECT_INT(1, runs);
}

static void open_resting(void)
{
    open_with_ladder("1s");
    mem_store_rest(store, 5000);
    mem_store_add(store, "a", 0, NULL, true);
    (void)settle_down();
    EXPECT_INT(1, runs);
    EXPECT_INT(1, mem_store_claims(store));
}

TEST(a_store_that_asks_for_a_rest_gets_no_claim_until_it_is_over)
{
    open_resting();
    mem_store_add(store, "b", 0, NULL, false);
    pass(4);
    EXPECT_INT(1, mem_store_claims(store));
    EXPECT_INT(0, idles); /* more may be due */
    pass(1);
    EXPECT_INT(2, runs);
    pass(6);
    EXPECT_TRUE(idles > 0);
}

TEST(a_wake_up_ends_a_rest)
{
    open_resting();
    mem_store_add(store, "b", 0, NULL, true);
    (void)settle_down();
    EXPECT_INT(2, runs);
}

TEST(a_wake_up_that_overtakes_a_claims_answer_leaves_no_rest)
{
    open_with_ladder("1s");
    mem_store_rest(store, 5000);
    mem_store_add(store, "a", 0, NULL, true);
    (void)turn(); /* the claim is out */
    mem_store_add(store, "b", 0, NULL, true);
    (void)settle_down();
    EXPECT_INT(2, runs);
}

TEST(a_wake_up_that_overtakes_a_claim_that_went_nowhere_is_not_lost)
{
    open_with_ladder("1s");
    mem_store_fail_claim(store, WEIR_ECONN);
    mem_store_add(store, "a", 0, NULL, false);
    (void)turn();                  /* the claim is out */
    mem_store_pause(store, false); /* wakes */
    (void)settle_down();
    EXPECT_INT(1, runs);
}

TEST(behind_a_rest_a_topic_that_was_paused_waits_until_it_is_resumed)
{
    open_resting();
    mem_store_pause(store, true);
    mem_store_add(store, "b", 0, NULL, false);
    pass(900);
    EXPECT_INT(1, runs);
    EXPECT_INT(2, mem_store_claims(store)); /* which said so */
    mem_store_pause(store, false);
    (void)settle_down();
    EXPECT_INT(2, runs);
}

TEST(a_topic_that_was_paused_and_resumed_in_a_rest_goes_on)
{
    open_resting();
    mem_store_pause(store, true);
    mem_store_add(store, "b", 0, NULL, false);
    pass(2);
    EXPECT_INT(1, mem_store_claims(store));
    mem_store_pause(store, false);
    pass(3);
    EXPECT_INT(2, runs);
    EXPECT_INT(2, mem_store_claims(store));
}

TEST(a_rest_outlives_no_connection)
{
    open_resting();
    mem_store_add(store, "b", 0, NULL, false);
    weir__reactor_connection(reactor, false);
    pass(20);
    EXPECT_INT(1, runs);
    weir__reactor_connection(reactor, true);
    (void)settle_down();
    EXPECT_INT(2, runs);
}

TEST(a_reactor_stops_in_a_rest)
{
    open_resting();
    weir__reactor_stop(reactor, on_stopped, NULL);
    (void)settle_down();
    EXPECT_INT(1, stops);
}

TEST(without_a_connection_nothing_is_claimed)
{
    open_with_ladder("1s");
    (void)settle_down();
    weir__reactor_connection(reactor, false);
    mem_store_add(store, "a", 0, NULL, true);
    pass(20000);
    EXPECT_INT(0, runs);
    weir__reactor_connection(reactor, true);
    (void)settle_down();
    EXPECT_INT(1, runs);
}

TEST(a_topic_is_served_once)
{
    struct weir__lane_options lane = lane_options("1s");

    open_reactor(&lane);
    EXPECT_INT(WEIR_EEXISTS, weir__reactor_serve(reactor, &lane));
}

TEST(a_reactor_that_stops_serves_nothing_more)
{
    struct weir__lane_options lane = lane_options("1s");

    open_reactor(&lane);
    weir__reactor_stop(reactor, on_stopped, NULL);
    lane.name = weir__slice_str("later");
    EXPECT_INT(WEIR_ECANCELED, weir__reactor_serve(reactor, &lane));
    (void)settle_down();
    EXPECT_INT(1, stops);
}

TEST(due_jobs_run_in_the_order_in_which_they_became_due)
{
    open_with_ladder("1s");
    mem_store_add(store, "c", 0, NULL, false);
    mem_store_add(store, "d", 0, NULL, true);
    (void)settle_down();
    EXPECT_STR("c d ", order);
}

static enum weir_verdict halt(struct weir_job *job)
{
    (void)job;
    weir__reactor_halt(reactor);
    return WEIR_DONE;
}

TEST(a_handler_that_halts_its_reactor_is_settled_and_the_last)
{
    size_t claims;

    open_with_ladder("none");
    behaviour = halt;
    mem_store_add(store, "1", 0, NULL, false);
    mem_store_add(store, "2", 0, NULL, false);
    (void)turn();
    (void)mem_store_answer(store);
    claims = mem_store_claims(store);
    (void)turn();
    EXPECT_INT(-1, turn());
    EXPECT_INT(1, runs);
    EXPECT_INT(claims, mem_store_claims(store));
    (void)mem_store_answer(store);
    EXPECT_STR("gone", mem_store_job(store, "1")->state);
}

/* --- jobs that come without a claim --------------------------------------- */

TEST(a_lane_with_nothing_in_hand_takes_jobs_one_after_the_other)
{
    size_t claims;

    open_with_ladder("1s");
    (void)settle_down();
    for (int i = 1; i <= 3; i++) {
        EXPECT_TRUE(mem_store_takes_jobs(store));
        claims = mem_store_claims(store);
        mem_store_hand_over(store, i == 1 ? "a" : i == 2 ? "b" : "c", 0);
        (void)turn();
        EXPECT_INT(i, runs);
        EXPECT_INT(claims + 1, mem_store_claims(store));
        (void)settle_down();
    }
    EXPECT_STR("gone", mem_store_job(store, "c")->state);
    weir__reactor_check(reactor);
}

static enum weir_verdict pend(struct weir_job *job)
{
    (void)weir_job_handle(job); /* nobody completes it */
    return WEIR_PENDING;
}

TEST(a_lane_with_a_job_in_hand_claims_and_takes_none)
{
    open_with_ladder("1s");
    (void)settle_down();
    behaviour = pend;
    mem_store_hand_over(store, "a", 0);
    (void)settle_down();
    EXPECT_INT(1, runs);
    EXPECT_TRUE(!mem_store_takes_jobs(store));
    mem_store_add(store, "b", 0, NULL, true);
    (void)settle_down();
    EXPECT_INT(2, runs);
}

TEST(a_job_that_is_handed_over_while_a_claim_is_out_runs)
{
    open_with_ladder("1s");
    (void)turn(); /* the claim is out */
    mem_store_hand_over(store, "a", 0);
    (void)turn();
    EXPECT_INT(1, runs);
    (void)settle_down();
    EXPECT_STR("gone", mem_store_job(store, "a")->state);
    EXPECT_TRUE(mem_store_takes_jobs(store));
}

TEST(the_lease_of_a_job_that_is_handed_over_is_renewed_in_time)
{
    int64_t lease_ms = weir__options_lease_ms(&weir__options_default);

    open_with_ladder("1s");
    (void)settle_down();
    behaviour = pend;
    mem_store_hand_over(store, "a", lease_ms / 2);
    pass(3 * lease_ms);
    EXPECT_INT(1, runs);
    EXPECT_STR("running", mem_store_job(store, "a")->state);
}

TEST(lanes_of_two_topics_take_no_jobs)
{
    struct weir__lane_options lane = lane_options("1s");
    struct mem_store *other = mem_store_new();

    open_with_ladder("1s");
    (void)settle_down();
    EXPECT_TRUE(mem_store_takes_jobs(store));
    mem_store_join(store, other);
    lane.name = weir__slice_str("others");
    EXPECT_INT(WEIR_OK, weir__reactor_serve(reactor, &lane));
    (void)settle_down();
    EXPECT_TRUE(!mem_store_takes_jobs(store));
    close_reactor();
    mem_store_free(other);
}

TEST(a_lane_that_stops_gives_back_what_it_is_handed)
{
    open_with_ladder("1s");
    (void)settle_down();
    weir__reactor_stop(reactor, on_stopped, NULL);
    mem_store_hand_over(store, "a", 0);
    (void)settle_down();
    EXPECT_INT(0, runs);
    EXPECT_INT(1, stops);
    EXPECT_STR("waiting", mem_store_job(store, "a")->state);
}
