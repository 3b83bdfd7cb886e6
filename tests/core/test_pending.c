/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/lane.h"
#include "tests/core/reactor_fixture.h"

/* Runs that finish later. */

static struct weir_handle handles[16];
static int handle_count, cancels;
static enum weir_cancel cancel_why;

static void on_cancel(struct weir_job *job, enum weir_cancel why, void *arg)
{
    EXPECT_TRUE(weir_job_id(job).len > 0); /* still readable */
    EXPECT_TRUE(arg == handles);
    cancels++;
    cancel_why = why;
}

static enum weir_verdict pend(struct weir_job *job)
{
    handles[handle_count++] = weir_job_handle(job);
    weir_job_on_cancel(job, on_cancel, handles);
    return WEIR_PENDING;
}

static void open_pending(const char *ladder, uint32_t concurrency)
{
    struct weir__lane_options lane = lane_options(ladder);

    lane.options.concurrency = concurrency;
    open_reactor(&lane);
    behaviour = pend;
}

static void finish(int handle, enum weir_verdict verdict)
{
    EXPECT_INT(WEIR_OK, weir_complete(handles[handle], verdict, 2500, "why"));
}

TEST(a_pending_job_is_done_when_it_is_completed)
{
    open_pending("1s", 256);
    add_many(1);
    (void)settle_down();
    EXPECT_STR("running", mem_store_job(store, "j0")->state);
    finish(0, WEIR_DONE);
    (void)settle_down();
    EXPECT_STR("gone", mem_store_job(store, "j0")->state);
    EXPECT_INT(0, cancels);
}

TEST(a_completion_brings_delay_and_reason)
{
    open_pending("1s", 256);
    add_many(2);
    (void)settle_down();
    finish(0, WEIR_RETRY_AFTER);
    finish(1, WEIR_FAIL);
    (void)settle_down();
    EXPECT_STR("waiting", mem_store_job(store, "j0")->state);
    EXPECT_INT(mem_store_now_ms(store) + 2500,
               mem_store_job(store, "j0")->due_ms);
    EXPECT_STR("dead", mem_store_job(store, "j1")->state);
    EXPECT_STR("why", mem_store_job(store, "j1")->error);
}

static enum weir_verdict complete_inside(struct weir_job *job)
{
    (void)pend(job);
    finish(0, WEIR_FAIL);
    return WEIR_PENDING;
}

TEST(a_run_may_be_completed_before_its_handler_returned)
{
    open_pending("1s", 256);
    behaviour = complete_inside;
    add_many(1);
    (void)settle_down();
    EXPECT_STR("dead", mem_store_job(store, "j0")->state);
}

TEST(a_second_completion_changes_nothing_and_is_logged)
{
    open_pending("1s", 256);
    add_many(2);
    (void)settle_down();
    finish(0, WEIR_DONE);
    finish(0, WEIR_FAIL);
    EXPECT_CONTAINS("1 such completions", last_log);
    (void)settle_down();
    EXPECT_STR("gone", mem_store_job(store, "j0")->state);
    EXPECT_STR("running", mem_store_job(store, "j1")->state);
}

static enum weir_verdict complete_twice(struct weir_job *job)
{
    (void)pend(job);
    finish(0, WEIR_DONE);
    finish(0, WEIR_FAIL);
    return WEIR_PENDING;
}

TEST(of_two_completions_inside_the_handler_the_first_counts)
{
    open_pending("1s", 256);
    behaviour = complete_twice;
    add_many(1);
    (void)settle_down();
    EXPECT_STR("gone", mem_store_job(store, "j0")->state);
}

static enum weir_verdict done_with_a_handle(struct weir_job *job)
{
    (void)pend(job);
    return WEIR_DONE;
}

TEST(the_handle_of_a_run_that_was_not_pending_finds_nothing)
{
    open_pending("1s", 256);
    behaviour = done_with_a_handle;
    add_many(1);
    (void)settle_down();
    finish(0, WEIR_FAIL);
    (void)settle_down();
    EXPECT_STR("gone", mem_store_job(store, "j0")->state);
    EXPECT_CONTAINS("completed that is over", last_log);
}

static enum weir_verdict pend_without_handle(struct weir_job *job)
{
    (void)job;
    return WEIR_PENDING;
}

TEST(pending_without_a_handle_is_a_retry)
{
    open_pending("1s", 256);
    behaviour = pend_without_handle;
    add_many(1);
    (void)settle_down();
    EXPECT_STR("waiting", mem_store_job(store, "j0")->state);
    EXPECT_STR("pending without a handle", mem_store_job(store, "j0")->error);
}

TEST(what_is_no_verdict_cannot_be_completed_with)
{
    open_pending("1s", 256);
    add_many(1);
    (void)settle_down();
    EXPECT_INT(WEIR_EINVAL, weir_complete(handles[0], WEIR_PENDING, 0, NULL));
    EXPECT_INT(WEIR_EINVAL,
               weir_complete(handles[0], (enum weir_verdict)77, 0, NULL));
}

TEST(a_pending_run_times_out_as_a_retry)
{
    open_pending("1s", 256);
    add_many(1);
    pass(29000);
    EXPECT_STR("running", mem_store_job(store, "j0")->state);
    behaviour = NULL;
    pass(1500);
    EXPECT_INT(1, cancels);
    EXPECT_INT(WEIR_CANCEL_TIMEOUT, cancel_why);
    EXPECT_STR("waiting", mem_store_job(store, "j0")->state);
    EXPECT_STR("timeout", mem_store_job(store, "j0")->error);
    EXPECT_INT(1, mem_store_job(store, "j0")->counters.timeouts);
    EXPECT_INT(1, mem_store_job(store, "j0")->counters.failures);
    finish(0, WEIR_DONE);
    EXPECT_CONTAINS("orders j0: a run was completed that is over", last_log);
    pass(1000);
    EXPECT_STR("gone", mem_store_job(store, "j0")->state);
    EXPECT_INT(2, runs);
}

static enum weir_verdict add_and_pend(struct weir_job *job)
{
    const struct weir_follow follow = {.id = "next"};

    EXPECT_INT(WEIR_OK, weir_job_follow(job, &follow));
    return pend(job);
}

TEST(a_run_that_times_out_adds_no_jobs)
{
    open_pending("1h", 256);
    behaviour = add_and_pend;
    add_many(1);
    pass(31000); /* its timeout is 30 s */
    EXPECT_STR("waiting", mem_store_job(store, "j0")->state);
    EXPECT_INT(0, mem_store_job(store, "j0")->follows);
}

TEST(each_pending_run_has_a_timeout_of_its_own)
{
    open_pending("none", 256);
    add_many(1);
    pass(10000);
    mem_store_add(store, "later", 0, NULL, true);
    pass(20500);
    EXPECT_STR("dead", mem_store_job(store, "j0")->state);
    EXPECT_STR("exhausted", mem_store_job(store, "j0")->reason);
    EXPECT_STR("running", mem_store_job(store, "later")->state);
    pass(10000);
    EXPECT_STR("dead", mem_store_job(store, "later")->state);
}

TEST(no_more_runs_are_pending_than_concurrency_says)
{
    open_pending("1s", 3);
    add_many(10);
    (void)settle_down();
    EXPECT_INT(3, runs);
    finish(1, WEIR_DONE);
    (void)settle_down();
    EXPECT_INT(4, runs);
    EXPECT_STR("gone", mem_store_job(store, "j1")->state);
}

TEST(no_more_runs_are_pending_than_their_handler_allows)
{
    struct weir__lane_options lane = lane_options("1s");

    lane.limit = 3;
    open_reactor(&lane);
    behaviour = pend;
    add_many(10);
    (void)settle_down();
    EXPECT_INT(3, runs);
    finish(1, WEIR_DONE);
    (void)settle_down();
    EXPECT_INT(4, runs);
}

TEST(a_handler_does_not_allow_more_runs_than_concurrency_says)
{
    struct weir__lane_options lane = lane_options("1s");

    lane.limit = 9;
    lane.options.concurrency = 3;
    open_reactor(&lane);
    behaviour = pend;
    add_many(10);
    (void)settle_down();
    EXPECT_INT(3, runs);
}

TEST(a_slow_pending_handler_does_not_hoard)
{
    int held = 0;

    open_pending("1s", 1);
    add_many(10);
    for (int i = 0; i < 5; i++) { /* each takes 100 ms */
        pass(100);
        finish(i, WEIR_DONE);
    }
    pass(10);
    EXPECT_INT(6, runs);
    for (int i = 6; i < 10; i++) {
        char id[] = {'j', (char)('0' + i), '\0'};

        held += strcmp(mem_store_job(store, id)->state, "running") == 0;
    }
    EXPECT_INT(0, held);
}

TEST(pending_runs_keep_their_leases)
{
    open_pending("1s", 256);
    add_many(1);
    pass(20000);
    EXPECT_TRUE(mem_store_renewals(store) >= 4);
    finish(0, WEIR_DONE);
    (void)settle_down();
    EXPECT_STR("gone", mem_store_job(store, "j0")->state);
}

/* Claims come to nothing, either. */
static bool hear_nothing(struct weir__store_topic *topic, int64_t lease_ms)
{
    (void)topic;
    (void)lease_ms;
    mem_store_fail_claim(store, WEIR_ECONN);
    return false;
}

/* It would run although somebody else may have it by now. */
TEST(what_waits_behind_a_pending_run_goes_back_where_renewals_are_not_heard)
{
    static struct weir__store_ops deaf; /* closed with the reactor */

    open_pending("1s", 1);
    add_many(2);
    pass(10);
    EXPECT_STR("running", mem_store_job(store, "j1")->state);
    deaf = *mem_store_port(store)->ops;
    deaf.renew = hear_nothing;
    mem_store_port(store)->ops = &deaf;
    pass(4000);
    EXPECT_STR("running", mem_store_job(store, "j1")->state);
    pass(4000);
    EXPECT_STR("waiting", mem_store_job(store, "j1")->state);
    EXPECT_INT(1, runs);
}

TEST(a_stop_waits_for_what_is_pending)
{
    open_pending("1s", 256);
    add_many(1);
    (void)settle_down();
    weir__reactor_stop(reactor, on_stopped, NULL);
    (void)settle_down();
    EXPECT_INT(0, stops);
    finish(0, WEIR_DONE);
    (void)settle_down();
    EXPECT_INT(1, stops);
    EXPECT_STR("gone", mem_store_job(store, "j0")->state);
    EXPECT_INT(0, cancels);
}

TEST(an_aborted_stop_gives_pending_jobs_back)
{
    open_pending("1s", 256);
    add_many(2);
    (void)settle_down();
    weir__reactor_stop(reactor, on_stopped, NULL);
    weir__reactor_abort(reactor);
    (void)settle_down();
    EXPECT_INT(1, stops);
    EXPECT_INT(2, cancels);
    EXPECT_INT(WEIR_CANCEL_STOP, cancel_why);
    EXPECT_STR("waiting", mem_store_job(store, "j0")->state);
    EXPECT_INT(0, mem_store_job(store, "j0")->counters.attempt);
    finish(0, WEIR_DONE);
    EXPECT_STR("waiting", mem_store_job(store, "j0")->state);
}

TEST(a_lost_lease_cancels_its_runs)
{
    open_pending("1s", 256);
    add_many(1);
    (void)settle_down();
    mem_store_lose(store, "j0");
    (void)turn();
    EXPECT_INT(1, cancels);
    EXPECT_INT(WEIR_CANCEL_LOST, cancel_why);
    finish(0, WEIR_DONE);
    (void)settle_down();
    EXPECT_STR("waiting", mem_store_job(store, "j0")->state);
}

TEST(handles_of_runs_that_were_given_up_count_as_held)
{
    open_pending("1s", 256);
    add_many(2);
    (void)settle_down();
    finish(0, WEIR_DONE);
    (void)settle_down();
    EXPECT_TRUE(weir__reactor_drop_pending(reactor));
    EXPECT_INT(1, cancels);
    finish(1, WEIR_DONE); /* its holder gave it back after all */
    EXPECT_TRUE(!weir__reactor_drop_pending(reactor));
}

static void let_go(struct weir_job *job, enum weir_cancel why, void *arg)
{
    (void)arg;
    on_cancel(job, why, handles);
    finish(cancels - 1, WEIR_DONE);
}

static enum weir_verdict pend_and_let_go(struct weir_job *job)
{
    (void)pend(job);
    weir_job_on_cancel(job, let_go, NULL);
    return WEIR_PENDING;
}

static enum weir_verdict pend_for_ever(struct weir_job *job)
{
    EXPECT_TRUE(weir_job_handle(job).ticket != 0);
    return WEIR_PENDING;
}

TEST(of_handles_of_runs_that_are_over_so_many_are_kept)
{
    struct weir__lane_options lane = lane_options("1h");

    lane.options.concurrency = 2 * WEIR__ORPHANS_MAX;
    open_reactor(&lane);
    behaviour = pend_for_ever;
    add_many(WEIR__ORPHANS_MAX + 100);
    pass(31000);
    EXPECT_INT(WEIR__ORPHANS_MAX, reactor->tickets.orphans);
    EXPECT_TRUE(reactor->has_lost_track);
    EXPECT_INT(WEIR__ORPHANS_MAX + 1, weir__reactor_drop_pending(reactor));
}

TEST(a_cancel_callback_that_completes_lets_go_of_the_handle)
{
    open_pending("1s", 256);
    behaviour = pend_and_let_go;
    add_many(2);
    (void)settle_down();
    mem_store_advance(store, 31000);
    (void)turn();
    EXPECT_INT(2, cancels);
    EXPECT_STR("", last_log);
    EXPECT_TRUE(!weir__reactor_drop_pending(reactor));
    finish(0, WEIR_DONE); /* that was too much */
    EXPECT_CONTAINS("a run was completed that is over", last_log);
}

TEST(a_handler_that_holds_the_loop_is_named_once_a_second)
{
    open_with_ladder("1s");
    cost_ms = 150;
    add_many(1);
    (void)settle_down();
    EXPECT_CONTAINS("orders j0: the handler held the loop for 150 ms",
                    last_log);
    last_log[0] = '\0';
    mem_store_add(store, "b", 0, NULL, true);
    (void)settle_down();
    EXPECT_INT(2, runs);
    EXPECT_STR("", last_log);
    pass(1000);
    mem_store_add(store, "c", 0, NULL, true);
    (void)settle_down();
    EXPECT_CONTAINS("orders c: the handler held", last_log);
}
