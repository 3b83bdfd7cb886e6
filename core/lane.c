/* SPDX-License-Identifier: MIT */
#include "core/lane.h"

#include <string.h>

#include "core/assert.h"
#include "core/mem.h"
#include "core/outcome_log.h"
#include "core/probe.h"

void weir__run_push(struct weir__run_list *list, struct weir__run *run)
{
    run->next = NULL;
    if (list->last == NULL)
        list->first = run;
    else
        list->last->next = run;
    list->last = run;
    list->count++;
}

struct weir__run *weir__run_pop(struct weir__run_list *list)
{
    struct weir__run *run = list->first;

    if (run == NULL)
        return NULL;
    list->first = run->next;
    if (list->first == NULL)
        list->last = NULL;
    list->count--;
    return run;
}

int64_t weir__run_late_us(const struct weir__run *run, int64_t now_ns)
{
    int64_t late_us = run->late_us + (now_ns - run->claimed_ns) / 1000;

    return late_us < 0 ? 0 : late_us;
}

void weir__lane_list_push(struct weir__lane *lane, enum weir__lane_list list)
{
    struct weir__lane_queue *queue = &lane->reactor->lists[list];

    if (lane->is_listed[list])
        return;
    lane->is_listed[list] = true;
    lane->list_next[list] = NULL;
    if (queue->last == NULL)
        queue->first = lane;
    else
        queue->last->list_next[list] = lane;
    queue->last = lane;
}

struct weir__lane *weir__lane_list_pop(struct weir__reactor *reactor,
                                       enum weir__lane_list list)
{
    struct weir__lane_queue *queue = &reactor->lists[list];
    struct weir__lane *lane = queue->first;

    if (lane == NULL)
        return NULL;
    queue->first = lane->list_next[list];
    if (queue->first == NULL)
        queue->last = NULL;
    lane->is_listed[list] = false;
    return lane;
}

size_t weir__lane_held(const struct weir__lane *lane)
{
    return lane->coming + lane->ready.count + lane->suspects.count +
           (lane->has_suspect ? 1 : 0) + lane->pending.count + lane->ran.count +
           lane->looking;
}

/* How many jobs the lane may hold that no handler has. With automatic prefetch
 * it is what the handler does in WEIR__HOLD_NS, so that a slow topic does not
 * keep jobs from other workers and a fast one always has the next batch at
 * hand; and more where claims take long. What is held under `parallel` or
 * `key_parallel` takes the place of others. */
static size_t buffer_of(const struct weir__lane *lane)
{
    bool is_parallel = lane->options->parallel != WEIR__OPTION_NONE;
    size_t first = is_parallel ? 1 : weir__lane_limit(lane);
    bool is_bound =
        is_parallel || lane->options->key_parallel != WEIR__OPTION_NONE;
    int64_t jobs;

    if (lane->handler->wanted != NULL)
        return 0;
    if (lane->options->prefetch != WEIR__OPTION_AUTO)
        return (size_t)lane->options->prefetch;
    if (lane->per_run_ns == 0 && lane->handler->run_batch == NULL)
        return first < WEIR__HOLD_FIRST ? first : WEIR__HOLD_FIRST;
    if (lane->per_run_ns == 0)
        return 2 * (size_t)lane->options->batch;
    jobs = (WEIR__HOLD_NS + (is_bound ? 0 : lane->hold_ns)) / lane->per_run_ns;
    if (jobs < 1 && !lane->is_async)
        jobs = 1;
    if (lane->handler->run_batch != NULL && jobs < 2 * lane->options->batch)
        jobs = 2 * (int64_t)lane->options->batch; /* one runs, one waits */
    return jobs > WEIR__HOLD_MAX ? WEIR__HOLD_MAX : (size_t)jobs;
}

size_t weir__lane_concurrency(const struct weir__lane *lane)
{
    size_t concurrency = weir__lane_limit(lane), threads;

    if (lane->handler == NULL || !lane->handler->blocks)
        return concurrency;
    threads = lane->reactor->options.pool->threads;
    return concurrency < threads ? concurrency : threads;
}

/* How many jobs could start at once. Handlers that hold the loop run one at a
 * time, and their jobs wait in the buffer. */
static size_t starts_of(const struct weir__lane *lane)
{
    size_t concurrency = weir__lane_concurrency(lane);

    if (lane->handler->wanted != NULL)
        return *lane->handler->wanted;
    if (!lane->is_async)
        return lane->options->prefetch != WEIR__OPTION_AUTO ? concurrency : 0;
    return concurrency > lane->pending.count ? concurrency - lane->pending.count
                                             : 0;
}

/* Claims go in portions of half of what is held: the next batch is on its way
 * while this one runs. */
static size_t room_of(const struct weir__lane *lane)
{
    size_t starts = starts_of(lane), want = starts + buffer_of(lane), room;
    size_t waiting = weir__lane_held(lane) - lane->pending.count;

    if (waiting >= want)
        return 0;
    room = want - waiting;
    if (waiting > 0 && waiting >= starts && room < want / 2)
        return 0;
    return room > WEIR__CLAIM_MAX ? WEIR__CLAIM_MAX : room;
}

/* Cannot fail: serving a lane reserved its places in the heap. */
void weir__lane_arm(struct weir__lane_deadline *deadline, int64_t at_ns)
{
    struct weir__heap *heap = &deadline->lane->reactor->deadlines;
    int rc = WEIR_OK;

    if (weir__heap_has(&deadline->node))
        weir__heap_update(heap, &deadline->node, at_ns);
    else
        rc = weir__heap_push(heap, &deadline->node, at_ns);
    WEIR_ASSERT(rc == WEIR_OK);
}

static void disarm(struct weir__lane_deadline *deadline)
{
    if (weir__heap_has(&deadline->node))
        weir__heap_remove(&deadline->lane->reactor->deadlines, &deadline->node);
}

void weir__lane_rest(struct weir__lane *lane)
{
    lane->is_sleeping = false;
    lane->is_resting = false;
    disarm(&lane->claim_at);
    disarm(&lane->renew_at);
}

/* Three chances before the lease ends. Handlers hold the loop: where a turn
 * takes long each one begins with a renewal, so that a lease outlives it. */
static void arm_renewal(struct weir__lane *lane)
{
    int64_t ns = weir__options_lease_ms(lane->options) * WEIR__MS_NS / 3;

    if (lane->reactor->busy_ns > ns / 2)
        ns /= 4;
    weir__lane_arm(&lane->renew_at, lane->reactor->now_ns + ns);
}

/* What is held was claimed under another lease: the next turn, before it runs
 * anything, says which one holds. */
void weir__lane_renew_soon(struct weir__lane *lane)
{
    if (weir__heap_has(&lane->renew_at.node))
        weir__lane_arm(&lane->renew_at, lane->reactor->now_ns);
}

/* `ns`, unless there are so many lanes that this would be too often. */
static int64_t safety_ns(const struct weir__reactor *reactor, int64_t ns)
{
    int64_t all = (int64_t)reactor->served_count * WEIR__SAFETY_GAP_NS;

    return all > ns ? all : ns;
}

/* Checks of all lanes keep their distance, so that those of many lanes do not
 * come at once. Once apart they stay so: each comes again as much later. */
static void check(struct weir__lane *lane)
{
    struct weir__reactor *reactor = lane->reactor;
    bool is_early = reactor->now_ns < reactor->check_ns;
    int64_t at_ns = is_early ? reactor->check_ns : reactor->now_ns;

    reactor->check_ns = at_ns + WEIR__SAFETY_GAP_NS;
    if (!is_early) {
        weir__lane_wake(lane);
        return;
    }
    lane->is_checking = false; /* this one has its place */
    weir__lane_arm(&lane->claim_at, at_ns);
}

/* Claim no more until `ns` passed (-1: until the safety check) or a wake-up. */
void weir__lane_sleep(struct weir__lane *lane, int64_t ns)
{
    int64_t safety = safety_ns(lane->reactor, WEIR__SAFETY_NS);

    lane->is_checking = ns < 0 || ns > safety;
    if (lane->is_checking)
        ns = safety;
    lane->is_sleeping = true;
    weir__lane_arm(&lane->claim_at, lane->reactor->now_ns + ns);
}

void weir__lane_wake(struct weir__lane *lane)
{
    lane->is_sleeping = false;
    lane->is_resting = false;
    disarm(&lane->claim_at);
    weir__lane_list_push(lane, WEIR__LANES_HUNGRY);
}

/* The process was stopped, or a handler held the loop, or the connection is
 * away for longer than the lease: what did not start may run elsewhere by now.
 * It goes back, which changes nothing for jobs that are no longer ours. */
void weir__lane_give_back_stale(struct weir__lane *lane)
{
    const struct weir__store_ops *ops = lane->store->ops;
    int64_t lease_ns = weir__options_lease_ms(lane->options) * WEIR__MS_NS;

    if (ops->kept_ns != NULL && ops->kept_ns(lane->topic) > lane->renewed_ns)
        lane->renewed_ns = ops->kept_ns(lane->topic);
    if (lane->reactor->now_ns - lane->renewed_ns <= lease_ns)
        return;
    weir__lane_give_back(lane);
    weir__lane_wake(lane); /* the server took this worker for gone */
}

/* A deadline passed; it has left the heap. */
void weir__lane_expired(struct weir__lane_deadline *deadline)
{
    struct weir__lane *lane = deadline->lane;
    const struct weir__store_ops *ops = lane->store->ops;
    bool is_heard;

    if (deadline == &lane->claim_at) {
        if (lane->is_checking)
            check(lane);
        else
            weir__lane_wake(lane);
        return;
    }
    if (deadline == &lane->timeout_at) {
        weir__lane_time_out(lane);
        return;
    }
    if (deadline != &lane->renew_at) {
        weir__lane_log_rest(lane);
        return;
    }
    if (weir__lane_held(lane) == 0 && ops->unsettled(lane->topic) == 0)
        return;
    weir__lane_give_back_stale(lane);
    is_heard = ops->renew(lane->topic, weir__options_lease_ms(lane->options));
    if (is_heard && lane->store->is_up)
        lane->renewed_ns = lane->reactor->now_ns;
    arm_renewal(lane);
}

static bool may_claim(const struct weir__lane *lane)
{
    return lane->store->is_up && !lane->reactor->is_stopping &&
           lane->handler != NULL && !lane->is_leaving && !lane->is_claiming &&
           !lane->is_sleeping && !lane->is_resting && !lane->is_refused;
}

/* A lane with more than enough work looks each second whether it still may. */
static bool wants_look(const struct weir__lane *lane)
{
    return lane->ready.count > 0 && lane->reactor->now_ns - lane->claimed_ns >=
                                        safety_ns(lane->reactor, WEIR__LOOK_NS);
}

/* Could a job start that is on its way? */
static void note_dry(struct weir__lane *lane)
{
    const struct weir__reactor *reactor = lane->reactor;
    bool is_busy = lane->ready.count > 0 || weir__lane_is_full(lane) ||
                   (lane->handler->blocks &&
                    lane->thread_runs >= reactor->options.pool->threads);

    if (lane->is_dry || is_busy || (!lane->is_claiming && lane->coming == 0))
        return;
    lane->is_dry = true;
    lane->dry_ns = reactor->now_ns - reactor->busy_all_ns;
}

/* Jobs arrived. Where the handler had to wait for more than a moment the server
 * is far or busy: as much more work is held from now on, at most twice of what
 * was, and a little less each time that it had not. */
static void follow_claims(struct weir__lane *lane)
{
    struct weir__reactor *reactor = lane->reactor;
    int64_t dry_ns = 0, held_ns = WEIR__HOLD_NS + lane->hold_ns;

    if (lane->is_dry && lane->is_filled &&
        lane->options->prefetch == WEIR__OPTION_AUTO &&
        lane->hold_ns / WEIR__HOLD_MAX <= lane->per_run_ns) {
        reactor->now_ns = reactor->options.clock(reactor->options.clock_arg);
        dry_ns = reactor->now_ns - reactor->busy_all_ns - lane->dry_ns;
    }
    lane->is_dry = false;
    if (dry_ns > lane->per_run_ns / 8)
        lane->hold_ns += dry_ns < held_ns ? dry_ns : held_ns;
    else
        lane->hold_ns -= lane->hold_ns / 16;
    if (lane->hold_ns > WEIR__HOLD_MORE_NS)
        lane->hold_ns = WEIR__HOLD_MORE_NS;
}

static void ask(struct weir__lane *lane)
{
    struct weir__reactor *reactor = lane->reactor;
    struct weir__claim claim;
    int rc;

    if (!may_claim(lane))
        return;
    claim = (struct weir__claim){
        .room = room_of(lane),
        .lease_ms = weir__options_lease_ms(lane->options),
        .timeout_ms = lane->options->timeout,
        .now_ns = reactor->now_ns,
        .is_by_hand = lane->handler->wanted != NULL,
        .has_jobs = weir__lane_held(lane) > lane->ran.count,
        .is_slow = lane->per_run_ns > WEIR__SLOW_NS,
        .takes_jobs = reactor->served_count == 1 && weir__lane_held(lane) == 0,
    };
    if (claim.room == 0 && !wants_look(lane))
        return;
    rc = lane->store->ops->claim(lane->topic, &claim);
    if (rc < 0) {
        lane->claim_code = rc;
        weir__lane_sleep(lane, WEIR__REFUSED_NS);
        return;
    }
    lane->is_claiming = true;
    reactor->claims_out++;
    lane->is_looking = claim.room == 0;
    lane->asked = claim.room;
    lane->claimed_ns = reactor->now_ns;
    lane->is_woken = false;
}

/* Claim if there is room; called for hungry lanes at the end of a turn. */
void weir__lane_feed(struct weir__lane *lane)
{
    ask(lane);
    if (lane->handler != NULL)
        note_dry(lane);
}

static void refused(struct weir__lane *lane, int code)
{
    const struct weir__log *log = lane->reactor->options.log;

    if (code == WEIR_EKIND) {
        lane->is_refused = true;
        weir__log(log, WEIR_LEVEL_ERROR,
                  "%s: the topic is of another kind, not serving it",
                  lane->name);
        return;
    }
    /* Without a connection the lane is woken when it is back, which may be by
     * now. */
    if (code != WEIR_ESERVER && lane->is_woken)
        weir__lane_wake(lane);
    else
        weir__lane_sleep(lane, code == WEIR_ESERVER ? WEIR__REFUSED_NS : -1);
}

/* What was not started goes back, and a second later it is asked again. */
static void paused(struct weir__lane *lane)
{
    weir__lane_give_back(lane);
    if (lane->is_woken)
        weir__lane_wake(lane);
    else
        weir__lane_sleep(lane, safety_ns(lane->reactor, WEIR__LOOK_NS));
    weir__lane_list_push(lane, WEIR__LANES_IDLE);
}

/* More may be due. No claim until a rest is over, or a wake-up. */
static void go_on(struct weir__lane *lane, int64_t rest_us)
{
    if (rest_us == 0 || lane->is_woken) {
        weir__lane_list_push(lane, WEIR__LANES_HUNGRY);
        return;
    }
    lane->is_checking = false;
    lane->is_resting = true;
    weir__lane_arm(&lane->claim_at, lane->reactor->now_ns + rest_us * 1000);
}

/* Until something is due; who holds jobs that did not start looks each second
 * whether they still may. */
static int64_t nap_ns(const struct weir__lane *lane, int64_t next_due_us)
{
    const int64_t far_us = INT64_MAX / 1000; /* beyond what ns can tell */
    int64_t look = safety_ns(lane->reactor, WEIR__LOOK_NS);
    int64_t ns =
        next_due_us < 0 || next_due_us > far_us ? -1 : next_due_us * 1000;

    if (lane->coming + lane->ready.count > 0 && (ns < 0 || ns > look))
        return look;
    return ns;
}

static void on_claimed(void *user, const struct weir__claimed *claimed)
{
    struct weir__lane *lane = user;

    WEIR_ASSERT(lane->is_claiming);
    lane->is_claiming = false;
    lane->claim_code = claimed->code;
    WEIR_ASSERT(lane->reactor->claims_out > 0);
    lane->reactor->claims_out--;
    lane->reactor->now_ns =
        lane->reactor->options.clock(lane->reactor->options.clock_arg);
    if (claimed->count == 0 && lane->coming == 0)
        lane->is_dry = false; /* there is nothing, or it cannot be had */
    if (claimed->code < 0) {
        refused(lane, claimed->code);
        return;
    }
    if (claimed->is_paused) {
        WEIR_ASSERT(claimed->count == 0);
        paused(lane);
        return;
    }
    if (lane->is_looking) {
        weir__lane_list_push(lane, WEIR__LANES_HUNGRY);
        return;
    }
    lane->reactor->totals.claims++;
    if (weir__lane_held(lane) == 0)
        lane->renewed_ns = lane->claimed_ns;
    if (lane->coming == 0)
        lane->is_filled =
            claimed->count >= lane->asked ||
            (claimed->count >= lane->asked / 2 && claimed->next_due_us == 0);
    lane->coming += claimed->count;
    if (claimed->count > 0 && !weir__heap_has(&lane->renew_at.node))
        arm_renewal(lane);
    if (claimed->count > 0 && !claimed->will_wake) {
        go_on(lane, claimed->rest_us);
        return;
    }
    if (lane->is_woken)
        weir__lane_wake(lane);
    else
        weir__lane_sleep(lane, nap_ns(lane, claimed->next_due_us));
    weir__lane_list_push(lane, WEIR__LANES_IDLE);
}

static void on_arrived(void *user, struct weir__run *first, size_t count,
                       size_t lost)
{
    struct weir__lane *lane = user;

    WEIR_ASSERT(lane->coming >= count + lost);
    lane->coming -= count + lost;
    lane->reactor->totals.claimed += count;
    WEIR__PROBE2(claim, lane->name, count);
    if (count > 0)
        follow_claims(lane);
    else if (lane->coming == 0)
        lane->is_dry = false;
    for (size_t i = 0; i < count; i++) {
        struct weir__run *run = first;

        WEIR_ASSERT(run != NULL && run->magic == WEIR__RUN_MAGIC);
        first = run->next;
        run->job.host = &weir__host;
        run->lane = lane;
        if (run->record.cron.len > 0 && weir__tick_take(run))
            continue;
        run->is_crashed =
            run->is_suspect && run->blamed >= lane->options->max_crashes;
        if (run->is_suspect && !run->is_malformed) {
            if (run->blamed > 0 && !run->is_crashed)
                weir__lane_log_crash(lane, run);
            weir__suspect_put_aside(run);
        } else
            weir__run_push(&lane->ready, run);
    }
    if (lane->reactor->is_stopping || lane->is_leaving)
        weir__lane_give_back(lane);
    else if (lane->ready.count > 0)
        weir__lane_list_push(lane, WEIR__LANES_READY);
    weir__lane_list_push(lane, WEIR__LANES_HUNGRY);
}

static void on_settled(void *user, size_t count, size_t too_late)
{
    struct weir__lane *lane = user;

    WEIR_ASSERT(too_late <= count);
    lane->reactor->totals.refused += too_late;
    lane->answered += count;
    if (lane->is_sleeping)
        weir__lane_list_push(lane, WEIR__LANES_IDLE);
}

static void on_evicted(void *user, size_t count)
{
    weir__lane_log_evicted(user, count);
}

/* Wake-ups travel on a connection of their own and may overtake the answer to
 * the claim that registered this worker as idle: that answer is then stale. */
void weir__lane_come(struct weir__lane *lane)
{
    WEIR__PROBE2(wake, lane->name, lane->is_claiming);
    if (lane->is_claiming)
        lane->is_woken = true;
    else
        weir__lane_wake(lane);
}

static void on_wake(void *user)
{
    weir__lane_come(user);
}

/* The lane claims in the turn in which it runs this one: more may be due, or it
 * offers itself again. */
static void on_handed(void *user, int64_t since_ns)
{
    struct weir__lane *lane = user;

    lane->reactor->now_ns =
        lane->reactor->options.clock(lane->reactor->options.clock_arg);
    if (weir__lane_held(lane) == 0 || since_ns < lane->renewed_ns)
        lane->renewed_ns = since_ns;
    lane->coming++;
    if (!weir__heap_has(&lane->renew_at.node))
        arm_renewal(lane);
    weir__lane_come(lane);
}

/* Runs that did not start go back as if they had never been claimed. */
void weir__lane_give_back(struct weir__lane *lane)
{
    struct weir__run *run;

    weir__suspect_give_back(lane);
    weir__ticks_give_back(lane);
    for (;;) {
        run = weir__run_pop(&lane->ready);
        if (run == NULL)
            return;
        run->outcome = WEIR__OUTCOME_RETURN;
        weir__lane_settle(lane, run);
    }
}

struct weir__store_events weir__lane_events(void)
{
    return (struct weir__store_events){
        .claimed = on_claimed,
        .arrived = on_arrived,
        .settled = on_settled,
        .wake = on_wake,
        .handed = on_handed,
        .started = weir__suspect_started,
        .lost = weir__lane_lost,
        .options = weir__lane_settings,
        .evicted = on_evicted,
    };
}
