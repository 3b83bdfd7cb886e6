/* SPDX-License-Identifier: MIT */
#include "core/reactor.h"

#include <string.h>

#include "core/assert.h"
#include "core/chain.h"
#include "core/lane.h"
#include "core/mem.h"
#include "core/outcome_log.h"
#include "core/probe.h"
#include "core/text.h"

struct weir__reactor *
weir__reactor_new(const struct weir__reactor_options *options)
{
    struct weir__reactor *reactor = weir__mem_new(sizeof(*reactor));

    if (reactor == NULL)
        return NULL;
    reactor->options = *options;
    reactor->random = options->seed;
    reactor->calling_count = 1;
    reactor->now_ns = options->clock(options->clock_arg);
    return reactor;
}

void weir__reactor_free(struct weir__reactor *reactor)
{
    if (reactor == NULL)
        return;
    weir__heap_fini(&reactor->deadlines); /* its nodes are in the lanes */
    weir__handlers_free(reactor);
    while (reactor->lanes != NULL) {
        struct weir__lane *lane = reactor->lanes;

        reactor->lanes = lane->next;
        weir__lane_log_rest(lane);
        weir__mem_free(lane->outcomes);
        weir__mem_free(lane->late_counts);
        weir__mem_free(lane->times);
        weir__mem_free(lane->counters);
        weir__batch_free(lane);
        weir__lane_drop_options(lane);
        weir__mem_free(lane);
    }
    weir__tickets_fini(&reactor->tickets);
    weir__mem_free(reactor->told);
    weir__mem_free(reactor);
}

static const char *on_dead_of(const struct weir__reactor *reactor,
                              const char *topic)
{
    const struct weir__lane *lane =
        weir__lane_find(reactor, weir__slice_str(topic));

    return lane == NULL || lane->handler == NULL || lane->is_leaving
               ? ""
               : lane->options->on_dead;
}

int weir__reactor_check_on_dead(const struct weir__reactor *reactor,
                                const char *topic, const char *on_dead,
                                weir__planned_fn planned, void *arg,
                                struct weir_error *err)
{
    struct weir__chain chain = {0};
    int rc = weir__chain_add(&chain, topic, err);

    while (rc == WEIR_OK && on_dead[0] != '\0') {
        const char *next = planned == NULL ? NULL : planned(on_dead, arg);

        rc = weir__chain_add(&chain, on_dead, err);
        on_dead = next != NULL ? next : on_dead_of(reactor, on_dead);
    }
    return rc == WEIR_EINVAL ? rc : WEIR_OK;
}

void weir__reactor_on_idle(struct weir__reactor *reactor, weir_idle_fn fn,
                           void *arg)
{
    reactor->idle_fn = fn;
    reactor->idle_arg = arg;
}

void weir__reactor_stop(struct weir__reactor *reactor, weir_stopped_fn fn,
                        void *arg)
{
    reactor->is_stopping = true;
    reactor->stopped_fn = fn;
    reactor->stopped_arg = arg;
    for (struct weir__lane *lane = reactor->lanes; lane != NULL;
         lane = lane->next) {
        if (lane->handler == NULL)
            continue;
        weir__lane_give_back(lane);
        if (lane->store->ops->stop != NULL)
            lane->store->ops->stop(lane->topic);
    }
}

void weir__reactor_attach(struct weir__reactor *reactor,
                          struct weir__store *store)
{
    WEIR_ASSERT(reactor->store == NULL);
    reactor->store = store;
}

void weir__reactor_connection(struct weir__reactor *reactor, bool is_up)
{
    WEIR_ASSERT(reactor->store != NULL);
    reactor->store->is_up = is_up;
    if (!is_up)
        return;
    reactor->totals.connections++;
    WEIR__PROBE(reconnect);
    for (struct weir__lane *lane = reactor->lanes; lane != NULL;
         lane = lane->next)
        weir__lane_wake(lane);
}

void weir__reactor_dropped(struct weir__reactor *reactor,
                           const struct weir__dropped *dropped)
{
    struct weir__lane *lane = weir__lane_find(reactor, dropped->topic);

    WEIR__PROBE4(drop, dropped->topic.ptr, dropped->topic.len, dropped->reason,
                 dropped->count);
    if (lane != NULL)
        weir__lane_log_drop(lane, dropped);
}

static void flush_store(struct weir__reactor *reactor)
{
    if (reactor->store != NULL)
        reactor->store->ops->flush(reactor->store);
}

void weir__reactor_halt(struct weir__reactor *reactor)
{
    reactor->is_halted = true;
}

/* Every node in the heap is the first member of a lane's deadline. */
static struct weir__lane_deadline *deadline_of(struct weir__heap_node *node)
{
    return (struct weir__lane_deadline *)node;
}

static void note_lag(struct weir__reactor *reactor, int64_t ns)
{
    WEIR_ASSERT(ns >= 0);
    if (ns > reactor->lag_ns)
        reactor->lag_ns = ns;
}

static void renew_lag(struct weir__reactor *reactor)
{
    if (reactor->now_ns < reactor->lag_end_ns)
        return;
    reactor->lag_end_ns = reactor->now_ns + WEIR__LAG_NS;
    reactor->lag_before_ns = reactor->lag_ns;
    reactor->lag_ns = 0;
}

/* Renewals leave at once: the handlers of this turn may hold the loop. */
static void run_deadlines(struct weir__reactor *reactor)
{
    struct weir__heap_node *node;
    bool is_due = false;

    for (;;) {
        node = weir__heap_first(&reactor->deadlines);
        if (node == NULL || node->at_ns > reactor->now_ns)
            break;
        note_lag(reactor, reactor->now_ns - node->at_ns);
        (void)weir__heap_pop(&reactor->deadlines); /* that node */
        weir__lane_expired(deadline_of(node));
        is_due = true;
    }
    if (is_due && reactor->lists[WEIR__LANES_READY].first != NULL)
        flush_store(reactor);
}

/* Feeding can make a lane hungry again only through a later event, so this
 * ends. Where thousands of lanes want to claim at once they do it one after the
 * other, as answers come. */
static void feed_lanes(struct weir__reactor *reactor)
{
    struct weir__lane *lane;

    while (reactor->claims_out < WEIR__CLAIMS_OUT) {
        lane = weir__lane_list_pop(reactor, WEIR__LANES_HUNGRY);
        if (lane == NULL)
            return;
        weir__lane_feed(lane);
    }
}

bool weir__lane_is_quiet(const struct weir__lane *lane)
{
    return weir__lane_held(lane) == 0 && !lane->is_claiming &&
           lane->store->ops->unsettled(lane->topic) == 0;
}

static void call_idle(const struct weir__lane *lane)
{
    struct weir__reactor *reactor = lane->reactor;
    const struct weir__store *store = lane->store;
    struct weir__call call = {.what = "the idle callback", .topic = lane->name};

    weir__call_begin(store, &call);
    reactor->idle_fn(lane->name, reactor->idle_arg);
    (void)weir__call_end(store, &call); /* has no run */
}

/* A lane that is not quiet yet comes back when its verdicts are answered. */
static void report_idle(struct weir__reactor *reactor)
{
    struct weir__lane *lane;

    while (!reactor->is_halted) {
        lane = weir__lane_list_pop(reactor, WEIR__LANES_IDLE);
        if (lane == NULL)
            return;
        if (lane->is_sleeping && weir__lane_is_quiet(lane) &&
            reactor->idle_fn != NULL && lane->handler != NULL &&
            lane->handler->wanted == NULL)
            call_idle(lane);
    }
}

static void report_stopped(struct weir__reactor *reactor)
{
    weir_stopped_fn fn = reactor->stopped_fn;

    if (!reactor->is_stopping || fn == NULL || reactor->is_halted)
        return;
    for (const struct weir__lane *lane = reactor->lanes; lane != NULL;
         lane = lane->next)
        if (!weir__lane_is_quiet(lane))
            return;
    reactor->stopped_fn = NULL;
    fn(reactor->stopped_arg);
}

static int64_t next_deadline(const struct weir__reactor *reactor, bool is_more)
{
    const struct weir__heap_node *node = weir__heap_first(&reactor->deadlines);

    if (is_more)
        return 0;
    if (node == NULL)
        return -1;
    return node->at_ns > reactor->now_ns ? node->at_ns - reactor->now_ns : 0;
}

int64_t weir__reactor_tick(struct weir__reactor *reactor)
{
    int64_t start_ns;
    bool is_more;

    if (reactor->is_halted)
        return -1;
    start_ns = reactor->options.clock(reactor->options.clock_arg);
    reactor->now_ns = start_ns;
    renew_lag(reactor);
    run_deadlines(reactor);
    is_more = weir__dispatch(reactor);
    reactor->busy_ns = reactor->now_ns - start_ns;
    note_lag(reactor, reactor->busy_ns);
    weir__dispatch_finish(reactor);
    reactor->now_ns = reactor->options.clock(reactor->options.clock_arg);
    reactor->busy_all_ns += reactor->now_ns - start_ns; /* flushes as well */
    if (!reactor->is_halted) {
        /* Now that the one before is settled: both leave together. */
        weir__suspect_next(reactor);
        feed_lanes(reactor);
    }
    report_idle(reactor);
    weir__reactor_end_handlers(reactor);
    report_stopped(reactor);
    /* Last, so that what the callbacks asked for leaves in this turn, too. */
    flush_store(reactor);
    return next_deadline(reactor, is_more);
}

/* Verdicts are answered in their order, but for those that the store holds
 * back. Not each that the store counts is told of: where nothing is left all
 * are answered. */
void weir__reactor_mark(struct weir__reactor *reactor)
{
    for (struct weir__lane *lane = reactor->lanes; lane != NULL;
         lane = lane->next)
        lane->marked =
            lane->answered + lane->store->ops->unsettled(lane->topic);
}

bool weir__reactor_mark_is_settled(const struct weir__reactor *reactor)
{
    for (const struct weir__lane *lane = reactor->lanes; lane != NULL;
         lane = lane->next) {
        const struct weir__store_ops *ops = lane->store->ops;

        if (ops->unsettled(lane->topic) > 0 &&
            (lane->answered < lane->marked || ops->holds_back(lane->topic)))
            return false;
    }
    return true;
}

void weir__reactor_totals(const struct weir__reactor *reactor,
                          struct weir_totals *ret_totals)
{
    *ret_totals = reactor->totals;
    for (const struct weir__lane *lane = reactor->lanes; lane != NULL;
         lane = lane->next) {
        ret_totals->held += weir__lane_held(lane);
        ret_totals->pending += lane->pending.count;
        ret_totals->unanswered += lane->store->ops->unsettled(lane->topic);
    }
}

void weir__reactor_measure(struct weir__reactor *reactor)
{
    reactor->is_measuring = true;
}

void weir__reactor_times(const struct weir__reactor *reactor, weir__times_fn fn,
                         void *arg)
{
    WEIR_ASSERT(fn != NULL);
    for (const struct weir__lane *lane = reactor->lanes; lane != NULL;
         lane = lane->next) {
        if (lane->handler != NULL && lane->times != NULL)
            fn(lane->name, lane->times, arg);
    }
}

struct weir_worker_topic *weir__reactor_topics(struct weir__reactor *reactor,
                                               size_t *ret_count)
{
    size_t count = 0;

    *ret_count = 0;
    if (reactor->told_cap < reactor->served_count) {
        struct weir_worker_topic *told =
            weir__mem_grow(reactor->told, reactor->served_count, sizeof(*told));

        if (told == NULL)
            return NULL;
        reactor->told = told;
        reactor->told_cap = reactor->served_count;
    }
    for (const struct weir__lane *lane = reactor->lanes; lane != NULL;
         lane = lane->next) {
        if (lane->handler == NULL)
            continue;
        WEIR_ASSERT(count < reactor->told_cap);
        reactor->told[count++] = (struct weir_worker_topic){
            .name = lane->name,
            .concurrency = weir__lane_concurrency(lane),
            .held = weir__lane_held(lane),
            .running = lane->pending.count,
            .groups = lane->options->groups,
        };
    }
    *ret_count = count;
    return reactor->told;
}

bool weir__reactor_describe(struct weir__reactor *reactor,
                            struct weir_worker *worker)
{
    struct weir_totals totals;
    int64_t lag_ns = reactor->lag_ns > reactor->lag_before_ns
                         ? reactor->lag_ns
                         : reactor->lag_before_ns;

    weir__reactor_totals(reactor, &totals);
    WEIR_ASSERT(totals.pending <= totals.held);
    worker->topics_total = reactor->served_count;
    worker->held = totals.held;
    worker->running = totals.pending;
    worker->connections = totals.connections;
    worker->lag_us = lag_ns / 1000;
    worker->is_stopping = reactor->is_stopping;
    return !reactor->is_stopping || reactor->stopped_fn != NULL ||
           totals.held + totals.unanswered > 0;
}

int weir__reactor_counters(const struct weir__reactor *reactor,
                           struct weir_slice topic, weir_counter_fn fn,
                           void *arg)
{
    const struct weir__lane *lane = weir__lane_find(reactor, topic);
    const struct weir__handler_counters *counters;

    if (lane == NULL)
        return WEIR_ENOTFOUND;
    counters = lane->counters;
    for (size_t i = 0; counters != NULL && i < counters->count; i++)
        fn(counters->entries[i].name, counters->entries[i].value, arg);
    fn(NULL, 0, arg);
    return WEIR_OK;
}

static void check_pending(const struct weir__lane *lane)
{
    const struct weir__run *previous = NULL;
    size_t count = 0;

    for (const struct weir__run *run = lane->pending.first; run != NULL;
         run = run->next) {
        WEIR_ASSERT(run->phase == WEIR__PHASE_PENDING);
        WEIR_ASSERT(run->previous == previous);
        WEIR_ASSERT(run->ticket != 0);
        previous = run;
        count++;
    }
    WEIR_ASSERT(count == lane->pending.count);
    WEIR_ASSERT(count == 0 || weir__heap_has(&lane->timeout_at.node));
}

static void check_lane(const struct weir__lane *lane)
{
    size_t ready = 0, ran = 0;

    for (const struct weir__run *run = lane->ready.first; run != NULL;
         run = run->next)
        ready++;
    for (const struct weir__run *run = lane->ran.first; run != NULL;
         run = run->next)
        ran++;
    WEIR_ASSERT(ready == lane->ready.count);
    WEIR_ASSERT(ran == lane->ran.count);
    WEIR_ASSERT(ready == 0 || lane->is_listed[WEIR__LANES_READY] ||
                weir__lane_is_full(lane));
    WEIR_ASSERT(lane->suspects.count == 0 ||
                lane->is_listed[WEIR__LANES_SUSPECT]);
    check_pending(lane);
    WEIR_ASSERT(ran == 0 || lane->is_listed[WEIR__LANES_RAN]);
    WEIR_ASSERT(lane->is_claiming + lane->is_sleeping + lane->is_resting <= 1);
    WEIR_ASSERT(lane->handler != NULL || weir__lane_held(lane) == 0);
    WEIR_ASSERT(lane->handler != NULL || !lane->is_leaving);
    WEIR_ASSERT(!(lane->is_sleeping || lane->is_resting) ||
                weir__heap_has(&lane->claim_at.node));
}

void weir__reactor_check(const struct weir__reactor *reactor)
{
    size_t lanes = 0, served = 0;

    weir__heap_check(&reactor->deadlines);
    weir__tickets_check(&reactor->tickets);
    for (const struct weir__lane *lane = reactor->lanes; lane != NULL;
         lane = lane->next) {
        check_lane(lane);
        lanes++;
        served += lane->handler != NULL;
    }
    WEIR_ASSERT(lanes == reactor->lane_count);
    WEIR_ASSERT(served == reactor->served_count);
}
