/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/lane.h"
#include "core/text.h"
#include "tests/core/reactor_fixture.h"

/* A topic that is left, and one that gets another handler or other options,
 * while its jobs wait, run, or are on their way. */

static struct weir_handle handles[16];
static int handle_count, ended, other_runs, other_flushes;
static char ended_of[100];

static enum weir_verdict pend(struct weir_job *job)
{
    handles[handle_count++] = weir_job_handle(job);
    return WEIR_PENDING;
}

static void finish(int handle)
{
    EXPECT_INT(WEIR_OK, weir_complete(handles[handle], WEIR_DONE, 0, NULL));
}

static enum weir_verdict other(void *self, struct weir_job *job)
{
    (void)job;
    EXPECT_STR("other", self);
    other_runs++;
    return WEIR_DONE;
}

static int flush_other(void *self)
{
    EXPECT_STR("other", self);
    other_flushes++;
    return 0;
}

static void on_ended(const char *topic, void *self, void *owner, void *arg)
{
    EXPECT_TRUE(arg == &ended);
    ended++;
    (void)snprintf(ended_of, sizeof(ended_of), "%s %s %s", topic,
                   self == NULL ? "-" : (const char *)self,
                   owner == NULL ? "-" : (const char *)owner);
}

static void open_first(void)
{
    struct weir__lane_options lane = lane_options("1s");

    lane.owner = (void *)(uintptr_t) "first";
    open_reactor(&lane);
    weir__reactor_on_ended(reactor, on_ended, &ended);
}

static struct weir__lane_options other_lane(void)
{
    struct weir__lane_options lane = lane_options("1s");

    lane.run = other;
    lane.flush = flush_other;
    lane.self = (void *)(uintptr_t) "other";
    return lane;
}

static void change(const struct weir__lane_options *lane)
{
    struct weir__plan *plan;

    EXPECT_INT(WEIR_OK, weir__reactor_plan(reactor, lane, &plan));
    weir__plan_commit(plan);
}

static void leave(void)
{
    weir__reactor_unserve(reactor, weir__slice_str("orders"));
}

static bool is_served(void)
{
    return weir__reactor_serves(reactor, weir__slice_str("orders"));
}

/* --- leaving -------------------------------------------------------------- */

TEST(a_topic_that_is_left_at_rest_ends_at_once)
{
    open_first();
    (void)settle_down();
    leave();
    EXPECT_TRUE(!is_served());
    EXPECT_INT(0, ended);
    (void)settle_down();
    EXPECT_INT(1, ended);
    EXPECT_STR("orders - first", ended_of);
}

TEST(a_topic_that_was_left_claims_no_more)
{
    size_t claims;

    open_first();
    (void)settle_down();
    leave();
    (void)settle_down();
    claims = mem_store_claims(store);
    add_many(3);
    pass(60000);
    weir__reactor_connection(reactor, true);
    pass(60000);
    EXPECT_INT(claims, mem_store_claims(store));
    EXPECT_INT(0, runs);
    EXPECT_STR("waiting", mem_store_job(store, "j0")->state);
}

TEST(what_runs_of_a_topic_that_is_left_ends)
{
    size_t claims;

    open_first();
    behaviour = pend;
    add_many(2);
    (void)settle_down();
    leave();
    claims = mem_store_claims(store);
    mem_store_add(store, "late", 0, NULL, true);
    pass(20000); /* for several leases */
    EXPECT_INT(0, ended);
    EXPECT_INT(claims, mem_store_claims(store));
    EXPECT_STR("waiting", mem_store_job(store, "late")->state);
    EXPECT_STR("running", mem_store_job(store, "j0")->state);
    finish(0);
    (void)settle_down();
    EXPECT_INT(0, ended);
    finish(1);
    (void)settle_down();
    EXPECT_INT(1, ended);
    EXPECT_STR("gone", mem_store_job(store, "j0")->state);
    EXPECT_STR("gone", mem_store_job(store, "j1")->state);
}

TEST(what_did_not_begin_goes_back_when_its_topic_is_left)
{
    struct weir__lane_options lane = lane_options("1s");

    lane.options.concurrency = 1;
    lane.options.prefetch = 3;
    open_reactor(&lane);
    weir__reactor_on_ended(reactor, on_ended, &ended);
    behaviour = pend;
    add_many(3);
    (void)settle_down();
    EXPECT_STR("running", mem_store_job(store, "j2")->state);
    leave();
    (void)settle_down();
    EXPECT_STR("running", mem_store_job(store, "j0")->state);
    EXPECT_STR("waiting", mem_store_job(store, "j1")->state);
    EXPECT_STR("waiting", mem_store_job(store, "j2")->state);
    EXPECT_INT(0, mem_store_job(store, "j1")->counters.attempt);
    EXPECT_INT(0, ended);
}

TEST(a_claim_that_is_answered_late_gives_its_jobs_back)
{
    open_first();
    add_many(2);
    (void)turn(); /* the claim */
    leave();
    (void)settle_down();
    EXPECT_INT(0, runs);
    EXPECT_INT(1, ended);
    EXPECT_STR("waiting", mem_store_job(store, "j0")->state);
    EXPECT_STR("waiting", mem_store_job(store, "j1")->state);
}

TEST(a_job_that_is_handed_over_to_a_topic_that_is_left_goes_back)
{
    open_first();
    (void)settle_down();
    leave();
    mem_store_hand_over(store, "late", 0);
    (void)settle_down();
    EXPECT_INT(0, runs);
    EXPECT_STR("waiting", mem_store_job(store, "late")->state);
    EXPECT_INT(1, ended);
}

TEST(a_suspect_of_a_topic_that_is_left_does_not_start)
{
    open_first();
    mem_store_add(store, "bad", 0, NULL, true);
    mem_store_suspect(store, 0);
    (void)turn();
    (void)mem_store_answer(store);
    (void)turn(); /* its start is on the way */
    EXPECT_INT(1, mem_store_starts(store));
    leave();
    (void)settle_down();
    EXPECT_INT(0, runs);
    EXPECT_INT(1, ended);
    EXPECT_STR("waiting", mem_store_job(store, "bad")->state);
}

TEST(a_retry_of_a_topic_that_is_left_stays_on_the_server)
{
    open_first();
    behaviour = pend;
    add_many(1);
    (void)settle_down();
    leave();
    EXPECT_INT(WEIR_OK, weir_complete(handles[0], WEIR_RETRY, 0, "no"));
    (void)settle_down();
    EXPECT_INT(1, ended);
    pass(60000);
    EXPECT_STR("waiting", mem_store_job(store, "j0")->state);
    EXPECT_INT(1, mem_store_job(store, "j0")->counters.attempt);
}

TEST(a_stuck_run_of_a_topic_that_is_left_ends_by_its_timeout)
{
    struct weir__lane_options lane = lane_options("1s");

    lane.options.timeout = 2000;
    open_reactor(&lane);
    weir__reactor_on_ended(reactor, on_ended, &ended);
    behaviour = pend;
    add_many(1);
    (void)settle_down();
    leave();
    pass(1900);
    EXPECT_INT(0, ended);
    pass(200);
    EXPECT_INT(1, ended);
}

TEST(a_reactor_stops_while_a_topic_is_left)
{
    open_first();
    behaviour = pend;
    add_many(1);
    (void)settle_down();
    leave();
    weir__reactor_stop(reactor, on_stopped, NULL);
    (void)settle_down();
    EXPECT_INT(0, stops);
    finish(0);
    (void)settle_down();
    EXPECT_INT(1, ended);
    EXPECT_INT(1, stops);
}

TEST(a_topic_that_was_left_is_served_again)
{
    struct weir__lane_options lane = other_lane();

    open_first();
    (void)settle_down();
    leave();
    (void)settle_down();
    EXPECT_INT(WEIR_OK, weir__reactor_serve(reactor, &lane));
    add_many(2);
    (void)settle_down();
    EXPECT_INT(2, other_runs);
    EXPECT_INT(0, runs);
    EXPECT_INT(1, ended);
}

TEST(a_topic_is_served_again_while_its_last_jobs_run)
{
    struct weir__lane_options lane = other_lane();

    open_first();
    behaviour = pend;
    add_many(1);
    (void)settle_down();
    leave();
    mem_store_add(store, "new", 0, NULL, false); /* nobody is woken */
    EXPECT_INT(WEIR_OK, weir__reactor_serve(reactor, &lane));
    EXPECT_TRUE(is_served());
    (void)settle_down();
    EXPECT_INT(1, other_runs);
    EXPECT_INT(0, ended);
    finish(0);
    (void)settle_down();
    EXPECT_INT(1, ended);
    EXPECT_STR("orders - first", ended_of);
    EXPECT_STR("gone", mem_store_job(store, "j0")->state);
}

static enum weir_verdict leave_inside(struct weir_job *job)
{
    (void)job;
    leave();
    return WEIR_DONE;
}

TEST(a_handler_may_leave_its_own_topic)
{
    open_first();
    behaviour = leave_inside;
    add_many(3);
    (void)settle_down();
    EXPECT_INT(1, runs);
    EXPECT_INT(1, ended);
    EXPECT_STR("gone", mem_store_job(store, "j0")->state);
    EXPECT_STR("waiting", mem_store_job(store, "j1")->state);
}

/* --- changing ------------------------------------------------------------- */

TEST(jobs_end_under_the_handler_that_they_began_with)
{
    struct weir__lane_options lane = other_lane();

    open_first();
    behaviour = pend;
    add_many(1);
    (void)settle_down();
    change(&lane);
    mem_store_add(store, "new", 0, NULL, true);
    (void)settle_down();
    EXPECT_INT(1, runs);
    EXPECT_INT(1, other_runs);
    EXPECT_INT(0, ended);
    flushes = 0;
    finish(0);
    (void)settle_down();
    EXPECT_INT(1, flushes); /* the old one's */
    EXPECT_INT(1, ended);
    EXPECT_STR("gone", mem_store_job(store, "j0")->state);
}

TEST(a_flush_that_fails_concerns_jobs_of_its_handler_only)
{
    struct weir__lane_options lane = other_lane();

    open_first();
    behaviour = pend;
    add_many(1);
    (void)settle_down();
    change(&lane);
    flush_rc = -1;
    mem_store_add(store, "new", 0, NULL, true);
    finish(0);
    (void)settle_down();
    EXPECT_STR("waiting", mem_store_job(store, "j0")->state);
    EXPECT_STR("flush failed", mem_store_job(store, "j0")->error);
    EXPECT_STR("gone", mem_store_job(store, "new")->state);
}

TEST(options_change_under_a_handler_that_stays)
{
    struct weir__lane_options lane = lane_options("1s");

    lane.options.concurrency = 1;
    lane.options.prefetch = 0;
    open_reactor(&lane);
    weir__reactor_on_ended(reactor, on_ended, &ended);
    behaviour = pend;
    add_many(3);
    (void)settle_down();
    EXPECT_INT(1, runs);
    lane.run = NULL;
    lane.options.concurrency = 3;
    change(&lane);
    (void)settle_down();
    EXPECT_INT(3, runs);
    EXPECT_INT(0, ended);
}

TEST(what_is_stored_beats_options_that_change)
{
    struct weir__lane_options lane = lane_options("1s");
    struct weir__setting stored = {weir__slice_str("concurrency"),
                                   weir__slice_str("2")};
    const struct weir__lane *served;

    open_first();
    served = weir__lane_find(reactor, weir__slice_str("orders"));
    weir__lane_events().options((void *)(uintptr_t)served, &stored, 1);
    EXPECT_INT(2, served->options->concurrency);
    lane.run = NULL;
    lane.options.concurrency = 9;
    lane.options.lease = 7000;
    change(&lane);
    EXPECT_INT(2, served->options->concurrency);
    EXPECT_INT(7000, served->options->lease);
    weir__lane_events().options((void *)(uintptr_t)served, NULL, 0);
    EXPECT_INT(9, served->options->concurrency);
}

/* It is asked again once it may be another one. */
TEST(a_topic_of_another_kind_is_claimed_again_when_it_changes)
{
    struct weir__lane_options lane = lane_options("1s");

    open_first();
    mem_store_fail_claim(store, WEIR_EKIND);
    pass(60000);
    add_many(1);
    (void)settle_down();
    EXPECT_INT(0, runs);
    change(&lane);
    (void)settle_down();
    EXPECT_INT(1, runs);
}

TEST(a_shorter_timeout_concerns_what_is_pending)
{
    struct weir__lane_options lane = lane_options("1s");

    open_first();
    behaviour = pend;
    add_many(1);
    (void)settle_down();
    lane.run = NULL;
    lane.options.timeout = 2000;
    change(&lane);
    pass(2100);
    EXPECT_STR("waiting", mem_store_job(store, "j0")->state);
    EXPECT_INT(1, mem_store_job(store, "j0")->counters.attempt);
}

TEST(a_plan_that_is_dropped_changes_nothing)
{
    struct weir__lane_options lane = other_lane();
    struct weir__plan *plan;

    open_first();
    EXPECT_INT(WEIR_OK, weir__reactor_plan(reactor, &lane, &plan));
    weir__plan_drop(plan);
    lane.name = weir__slice_str("second");
    EXPECT_INT(WEIR_OK, weir__reactor_plan(reactor, &lane, &plan));
    weir__plan_drop(plan);
    EXPECT_INT(1, reactor->lane_count);
    add_many(1);
    (void)settle_down();
    EXPECT_INT(1, runs);
    EXPECT_INT(0, other_runs);
    EXPECT_INT(0, ended);
    EXPECT_TRUE(!weir__reactor_serves(reactor, lane.name));
}

TEST(a_topic_that_is_not_served_has_no_handler_to_keep)
{
    struct weir__lane_options lane = lane_options("1s");
    struct weir__plan *plan;

    open_first();
    lane.run = NULL;
    lane.name = weir__slice_str("second");
    EXPECT_INT(WEIR_ENOTFOUND, weir__reactor_plan(reactor, &lane, &plan));
    leave();
    lane.name = weir__slice_str("orders");
    EXPECT_INT(WEIR_ENOTFOUND, weir__reactor_plan(reactor, &lane, &plan));
}

TEST(a_topic_is_changed_and_left_many_times)
{
    struct weir__lane_options first = lane_options("1s"), lane = other_lane();

    open_first();
    behaviour = pend;
    for (int i = 0; i < 300; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "j%d", i);
        mem_store_add(store, id, 0, NULL, true);
        handle_count = 0;
        (void)settle_down();
        EXPECT_INT(1, handle_count);
        change(&lane);
        finish(0);
        (void)settle_down();
        leave();
        (void)settle_down();
        EXPECT_INT(WEIR_OK, weir__reactor_serve(reactor, &first));
        (void)settle_down();
        EXPECT_STR("gone", mem_store_job(store, id)->state);
    }
    EXPECT_INT(600, ended);
    EXPECT_TRUE(reactor->replaced == NULL && reactor->leaving == NULL);
    EXPECT_INT(1, reactor->lane_count);
}

static struct weir__store_ops failing;

static int fail_claim(struct weir__store_topic *topic,
                      const struct weir__claim *claim)
{
    (void)topic;
    (void)claim;
    return WEIR_ENOMEM;
}

TEST(a_claim_that_could_not_be_made_says_so)
{
    struct weir__store *port;

    open_first();
    (void)settle_down();
    EXPECT_INT(WEIR_OK,
               weir__reactor_claiming(reactor, weir__slice_str("orders")));
    port = reactor->store;
    failing = *port->ops;
    failing.claim = fail_claim;
    port->ops = &failing;
    mem_store_add(store, "j0", 0, NULL, true);
    (void)turn();
    (void)turn();
    EXPECT_INT(WEIR_ENOMEM,
               weir__reactor_claiming(reactor, weir__slice_str("orders")));
}
