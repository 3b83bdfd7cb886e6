/* SPDX-License-Identifier: MIT */
#include "tests/core/reactor_fixture.h"

/* What a reactor counts about itself. */

static struct weir_handle handle;

static struct weir_totals totals_now(void)
{
    struct weir_totals totals;

    weir__reactor_totals(reactor, &totals);
    return totals;
}

static enum weir_verdict by_id(struct weir_job *job)
{
    struct weir_slice id = weir_job_id(job);

    if (id.ptr[1] == '0')
        return WEIR_DONE;
    if (id.ptr[1] == '1')
        return weir_fail(job, "no");
    if (id.ptr[1] == '2')
        return weir_job_counters(job).attempt > 1 ? WEIR_DONE : WEIR_RETRY;
    if (id.ptr[1] == '3')
        return weir_job_counters(job).snoozes > 0 ? WEIR_DONE
                                                  : weir_snooze(job, 1000);
    handle = weir_job_handle(job);
    return WEIR_PENDING;
}

TEST(outcomes_are_counted_each_on_its_own)
{
    struct weir_totals totals;

    open_with_ladder("1s");
    behaviour = by_id;
    add_many(5);
    (void)settle_down();
    totals = totals_now();
    EXPECT_INT(5, totals.claimed);
    EXPECT_INT(5, totals.started);
    EXPECT_INT(1, totals.done);
    EXPECT_INT(1, totals.dead);
    EXPECT_INT(1, totals.retried);
    EXPECT_INT(1, totals.snoozed);
    EXPECT_INT(1, totals.held);
    EXPECT_INT(1, totals.pending);
    EXPECT_INT(0, totals.unanswered);
    EXPECT_TRUE(totals.claims > 0);
    EXPECT_INT(1, totals.connections);
    pass(3000);
    totals = totals_now();
    EXPECT_INT(7, totals.claimed);
    EXPECT_INT(7, totals.started);
    EXPECT_INT(3, totals.done);
    EXPECT_INT(WEIR_OK, weir_complete(handle, WEIR_DONE, 0, NULL));
    (void)settle_down();
    totals = totals_now();
    EXPECT_INT(4, totals.done);
    EXPECT_INT(0, totals.held + totals.pending + totals.late);
}

static enum weir_verdict pend(struct weir_job *job)
{
    handle = weir_job_handle(job);
    return WEIR_PENDING;
}

TEST(runs_that_end_otherwise_are_counted_as_what_they_are)
{
    struct weir_totals totals;

    open_with_ladder("1h");
    behaviour = pend;
    add_many(1);
    (void)settle_down();
    pass(31000); /* beyond its timeout */
    EXPECT_INT(WEIR_OK, weir_complete(handle, WEIR_DONE, 0, NULL));
    totals = totals_now();
    EXPECT_INT(1, totals.timed_out);
    EXPECT_INT(1, totals.retried);
    EXPECT_INT(1, totals.late);
    mem_store_add(store, "lost", 0, NULL, true);
    (void)settle_down();
    mem_store_lose(store, "lost");
    (void)settle_down();
    totals = totals_now();
    EXPECT_TRUE(totals.lost >= 1);
}

TEST(what_was_not_started_counts_as_returned_or_expired)
{
    struct weir_totals totals;

    open_with_ladder("1s");
    mem_store_add(store, "old", 0, NULL, false);
    mem_store_ttl(store, 1000);
    mem_store_advance(store, 5000);
    (void)settle_down();
    totals = totals_now();
    EXPECT_INT(1, totals.expired);
    EXPECT_INT(0, totals.started);
    EXPECT_INT(0, totals.dead);
    behaviour = pend;
    add_many(1);
    (void)settle_down();
    weir__reactor_stop(reactor, NULL, NULL);
    weir__reactor_abort(reactor);
    EXPECT_INT(1, totals_now().returned);
}

/* What a measured topic told last; `topics` counts the topics. */
static struct {
    struct weir__times times;
    size_t topics;
} measured;

static void take_times(const char *topic, const struct weir__times *times,
                       void *arg)
{
    EXPECT_STR("orders", topic);
    EXPECT_TRUE(arg == &measured);
    measured.times = *times;
    measured.topics++;
}

static uint64_t sum(const uint64_t counts[WEIR__BUCKETS])
{
    uint64_t total = 0;

    for (size_t i = 0; i < WEIR__BUCKETS; i++)
        total += counts[i];
    return total;
}

TEST(what_nobody_measures_has_no_times)
{
    open_with_ladder("1s");
    behaviour = by_id;
    add_many(3);
    (void)settle_down();
    weir__reactor_times(reactor, take_times, &measured);
    EXPECT_INT(0, measured.topics);
}

TEST(runs_are_measured_up_to_their_verdict)
{
    open_with_ladder("1s");
    weir__reactor_measure(reactor);
    behaviour = by_id;
    add_many(5);
    (void)settle_down();
    weir__reactor_times(reactor, take_times, &measured);
    EXPECT_INT(1, measured.topics);
    EXPECT_INT(5, sum(measured.times.late));
    EXPECT_INT(4, sum(measured.times.took)); /* one is pending */
    pass(500);
    EXPECT_INT(WEIR_OK, weir_complete(handle, WEIR_DONE, 0, NULL));
    (void)settle_down();
    weir__reactor_times(reactor, take_times, &measured);
    EXPECT_INT(5, sum(measured.times.took));
    EXPECT_INT(1, measured.times.took[weir__bucket_of(500000)]);
    EXPECT_TRUE(measured.times.took_sum_us >= 500000);
}
