/* SPDX-License-Identifier: MIT */
#include "tests/harness/mem_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/assert.h"
#include "core/text.h"

enum { JOBS_MAX = 5000 };

struct weir__store_topic {
    struct mem_store *store;
    void *user;
};

struct mem_store {
    struct weir__store port; /* first: what core holds */
    struct weir__store_topic topic;
    struct mem_store *next; /* behind the same port */
    int64_t now_ns;
    struct mem_job jobs[JOBS_MAX];
    size_t job_count;
    uint64_t token;
    struct weir__run *out[JOBS_MAX]; /* runs core holds, by job; or NULL */

    /* Collected until the flush. */
    bool is_asked; /* for a claim */
    struct weir__claim claim;
    struct weir__run *verdicts;
    size_t verdict_count;
    size_t starting[JOBS_MAX]; /* jobs, until they are answered */
    size_t starting_count;

    /* Done with the flush, to be answered. */
    bool is_claimed;
    struct weir__claimed claimed;
    int64_t rest_us;
    struct weir__run *taken;
    size_t settled_count, refused_count;
    struct {
        struct weir__run *run;
        int code;
    } started[JOBS_MAX];
    size_t started_count;

    bool is_paused;
    int claim_code; /* of the next one */
    size_t most;    /* jobs of one */
    int start_code;
    bool is_idle, is_waking; /* registered so; a message is on its way */
    int64_t idle_ms;         /* it would come by itself then */
    size_t claims, starts, renewals, flushed_renewals, largest_claim;
};

int64_t mem_store_now_ms(const struct mem_store *store)
{
    return store->now_ns / 1000000;
}

static struct mem_job *find(struct mem_store *store, struct weir_slice id)
{
    for (size_t i = 0; i < store->job_count; i++)
        if (weir__slice_equal(weir__slice_str(store->jobs[i].id), id))
            return &store->jobs[i];
    return NULL;
}

static int topic_open(struct weir__store *port,
                      const struct weir__store_topic_options *options,
                      struct weir__store_topic **ret_topic)
{
    struct mem_store *store = (struct mem_store *)port;

    (void)options;
    if (store->next != NULL) /* each keeps one topic, this the last one */
        store = store->next;
    store->topic.store = store;
    *ret_topic = &store->topic;
    return WEIR_OK;
}

static void topic_listen(struct weir__store_topic *topic, void *user)
{
    topic->user = user;
}

static int claim(struct weir__store_topic *topic,
                 const struct weir__claim *asked)
{
    struct mem_store *store = topic->store;

    WEIR_ASSERT(!store->is_asked && !store->is_claimed);
    store->is_asked = true;
    store->claim = *asked;
    store->claims++;
    if (asked->room > store->largest_claim)
        store->largest_claim = asked->room;
    return WEIR_OK;
}

/* The registered worker, if it would come too late for something due then. */
static bool take_idle(struct mem_store *store, int64_t due_ms)
{
    if (!store->is_idle || store->idle_ms <= due_ms)
        return false;
    store->is_idle = false;
    return true;
}

static void copy(char *to, size_t cap, struct weir_slice from)
{
    (void)snprintf(to, cap, "%.*s", (int)from.len, (const char *)from.ptr);
}

static void apply(struct mem_store *store, struct mem_job *job,
                  const struct weir__run *run)
{
    if (run->outcome != WEIR__OUTCOME_RETURN) { /* written anew */
        job->counters = run->record.counters;
        job->suspicion = 0;
    }
    job->is_started = false;
    job->follows += run->follows.count;
    mem_job_note_made(job, run);
    if (run->outcome == WEIR__OUTCOME_SNOOZE)
        memcpy(job->cron, job->next_cron, sizeof(job->cron));
    copy(job->error, sizeof(job->error), run->record.error);
    copy(job->reason, sizeof(job->reason), run->record.reason);
    job->state = "waiting";
    job->due_ms = mem_store_now_ms(store);
    switch (run->outcome) {
    case WEIR__OUTCOME_DONE:
        job->state = "gone";
        break;
    case WEIR__OUTCOME_DEAD:
        job->state = "dead";
        break;
    case WEIR__OUTCOME_RETRY:
    case WEIR__OUTCOME_SNOOZE:
        job->due_ms =
            run->at_ms != 0 ? run->at_ms : job->due_ms + run->delay_ms;
        break;
    case WEIR__OUTCOME_RETURN:
        break;
    case WEIR__OUTCOME_NONE:
    case WEIR__OUTCOME_TAKEN:
    default:
        WEIR_UNREACHABLE("a run was settled without an outcome");
    }
}

static bool is_starting(const struct mem_store *store, size_t slot)
{
    size_t i = 0;

    while (i < store->starting_count && store->starting[i] != slot)
        i++;
    return i < store->starting_count;
}

static void start(struct weir__store_topic *topic, struct weir__run *run)
{
    struct mem_store *store = topic->store;

    WEIR_ASSERT(store->out[run->slot] == run && run->is_suspect);
    WEIR_ASSERT(!is_starting(store, run->slot));
    store->starting[store->starting_count] = run->slot;
    store->starting_count++;
    store->starts++;
}

static void free_run(struct weir__run *run)
{
    weir__run_fini(run);
    free(run);
}

static void settle(struct weir__store_topic *topic, struct weir__run *run)
{
    struct mem_store *store = topic->store;

    WEIR_ASSERT(!is_starting(store, run->slot));
    store->out[run->slot] = NULL;
    if (run->outcome == WEIR__OUTCOME_TAKEN) { /* there is nothing to say */
        free_run(run);
        return;
    }
    copy(store->jobs[run->slot].next_cron, sizeof(store->jobs[0].next_cron),
         run->record.cron); /* its slices end with the call */
    run->next = store->verdicts;
    store->verdicts = run;
    store->verdict_count++;
}

static bool renew(struct weir__store_topic *topic, int64_t lease_ms)
{
    struct mem_store *store = topic->store;

    store->renewals++;
    for (size_t i = 0; i < store->job_count; i++)
        if (strcmp(store->jobs[i].state, "running") == 0)
            store->jobs[i].lease_ms = mem_store_now_ms(store) + lease_ms;
    return true;
}

static size_t unsettled(const struct weir__store_topic *topic)
{
    return topic->store->verdict_count + topic->store->settled_count;
}

static void lateness(struct weir__store_topic *topic, const uint32_t *counts,
                     int64_t max_us)
{
    (void)topic;
    (void)counts;
    WEIR_ASSERT(max_us >= 0);
}

static struct weir__run *make_run(struct mem_store *store,
                                  const struct mem_job *job)
{
    struct weir__run *run = calloc(1, sizeof(*run));

    WEIR_ASSERT(run != NULL);
    run->magic = WEIR__RUN_MAGIC;
    run->id = weir__slice_str(job->id);
    run->group = weir__slice_str(job->group);
    run->record.counters = job->counters;
    run->record.counters.crashes += job->suspicion;
    run->is_suspect = job->suspicion > 0;
    run->blamed = job->suspicion > 0 ? job->suspicion - 1 : 0;
    run->record.retry = weir__slice_str(job->retry);
    run->record.ttl_ms = job->ttl_ms;
    run->record.cron = weir__slice_str(job->cron);
    run->token = job->token;
    run->due_ms = job->due_ms;
    run->late_us = (mem_store_now_ms(store) - job->due_ms) * 1000;
    run->claimed_ns = store->now_ns;
    return run;
}

static void expire(struct mem_store *store)
{
    for (size_t i = 0; i < store->job_count; i++) {
        struct mem_job *job = &store->jobs[i];

        if (strcmp(job->state, "running") != 0 ||
            store->jobs[i].lease_ms >= mem_store_now_ms(store))
            continue;
        job->state = "waiting";
        job->due_ms = mem_store_now_ms(store);
        if (job->suspicion == 0 || job->is_started)
            job->suspicion++;
        job->is_started = false;
    }
}

static struct weir__run *take_due(struct mem_store *store, size_t *ret_count)
{
    struct weir__run *first = NULL, **end = &first;
    size_t count = 0, room = store->claim.room;

    store->token++;
    for (size_t i = 0;
         i < store->job_count && count < room && count < store->most; i++) {
        struct mem_job *job = &store->jobs[i];

        if (strcmp(job->state, "waiting") != 0 ||
            job->due_ms > mem_store_now_ms(store))
            continue;
        job->state = "running";
        job->token = store->token;
        store->jobs[i].lease_ms =
            mem_store_now_ms(store) + store->claim.lease_ms;
        *end = make_run(store, job);
        (*end)->slot = (uint32_t)i;
        store->out[i] = *end;
        end = &(*end)->next;
        count++;
    }
    *ret_count = count;
    return first;
}

/* Until something is due, or a lease may have ended. */
static int64_t next_due_us(const struct mem_store *store)
{
    int64_t next = -1, us;

    for (size_t i = 0; i < store->job_count; i++) {
        int64_t at_ms = -1;

        if (strcmp(store->jobs[i].state, "waiting") == 0)
            at_ms = store->jobs[i].due_ms;
        else if (strcmp(store->jobs[i].state, "running") == 0)
            at_ms = store->jobs[i].lease_ms + 1;
        if (at_ms >= 0 && (next < 0 || at_ms < next))
            next = at_ms;
    }
    us = (next - mem_store_now_ms(store)) * 1000;
    return next < 0 ? -1 : us > 0 ? us : 0;
}

static void do_claim(struct mem_store *store)
{
    struct weir__claimed claimed = {.code = store->claim_code};
    size_t room = store->claim.room;

    store->is_asked = false;
    store->is_claimed = true;
    store->claim_code = WEIR_OK;
    store->taken = NULL;
    if (claimed.code == WEIR_OK && store->is_paused) {
        claimed.is_paused = true;
        claimed.next_due_us = -1;
        store->is_idle = room > 0;
        store->idle_ms = INT64_MIN; /* only resuming wakes it */
    } else if (claimed.code == WEIR_OK) {
        expire(store);
        store->taken = take_due(store, &claimed.count);
        claimed.next_due_us = next_due_us(store);
        claimed.rest_us = store->rest_us;
        claimed.will_wake = claimed.count < room && claimed.next_due_us != 0;
        if (room > 0)
            store->is_idle = claimed.count == 0 || claimed.will_wake;
        claimed.will_wake = claimed.will_wake && store->rest_us == 0;
        store->idle_ms =
            claimed.next_due_us < 0
                ? INT64_MAX
                : mem_store_now_ms(store) + claimed.next_due_us / 1000;
    }
    store->claimed = claimed;
}

static void do_starts(struct mem_store *store)
{
    for (; store->started_count < store->starting_count;
         store->started_count++) {
        size_t slot = store->starting[store->started_count];
        struct mem_job *job = &store->jobs[slot];
        struct weir__run *run = store->out[slot];
        int code = store->start_code;

        if (code == WEIR_OK &&
            (strcmp(job->state, "running") != 0 || job->token != run->token))
            code = WEIR_ENOTFOUND;
        job->is_started = code == WEIR_OK || job->is_started;
        store->started[store->started_count].run = run;
        store->started[store->started_count].code = code;
    }
}

static void do_settles(struct mem_store *store)
{
    store->settled_count += store->verdict_count;
    store->verdict_count = 0;
    while (store->verdicts != NULL) {
        struct weir__run *run = store->verdicts;
        struct mem_job *job = find(store, run->id);

        store->verdicts = run->next;
        WEIR_ASSERT(job != NULL);
        if (strcmp(job->state, "running") == 0 && job->token == run->token) {
            apply(store, job, run);
            if (strcmp(job->state, "waiting") == 0 &&
                take_idle(store, job->due_ms))
                store->is_waking = true;
        } else {
            store->refused_count++;
        }
        free_run(run);
    }
}

/* What the server does with what was collected, at once; only its answers take
 * their time. */
static void flush(struct weir__store *port)
{
    struct mem_store *store = (struct mem_store *)port;

    if (store->next != NULL)
        flush(&store->next->port);
    store->flushed_renewals = store->renewals;
    do_settles(store);
    do_starts(store);
    if (store->is_asked)
        do_claim(store);
}

static int64_t kept_ns(const struct weir__store_topic *topic)
{
    (void)topic;
    return 0;
}

static const struct weir__store_ops ops = {
    .topic_open = topic_open,
    .topic_listen = topic_listen,
    .claim = claim,
    .start = start,
    .settle = settle,
    .kept_ns = kept_ns,
    .renew = renew,
    .unsettled = unsettled,
    .lateness = lateness,
    .flush = flush,
};

struct mem_store *mem_store_new(void)
{
    struct mem_store *store = calloc(1, sizeof(*store));

    WEIR_ASSERT(store != NULL);
    store->port.ops = &ops;
    store->now_ns = INT64_C(1000000000000);
    store->most = SIZE_MAX;
    return store;
}

void mem_store_join(struct mem_store *store, struct mem_store *other)
{
    other->next = store->next;
    store->next = other;
}

struct weir__store *mem_store_port(struct mem_store *store)
{
    return &store->port;
}

void mem_store_free(struct mem_store *store)
{
    while (store->verdicts != NULL) {
        struct weir__run *run = store->verdicts;

        store->verdicts = run->next;
        free_run(run);
    }
    for (size_t i = 0; i < store->job_count; i++)
        if (store->out[i] != NULL)
            free_run(store->out[i]);
    free(store);
}

int64_t mem_store_clock(void *store)
{
    return ((struct mem_store *)store)->now_ns;
}

void mem_store_advance(struct mem_store *store, int64_t ms)
{
    store->now_ns += ms * 1000000;
}

void mem_store_add(struct mem_store *store, const char *id, int64_t delay_ms,
                   const char *retry, bool wakes)
{
    struct mem_job *job = &store->jobs[store->job_count++];

    WEIR_ASSERT(store->job_count <= JOBS_MAX);
    (void)snprintf(job->id, sizeof(job->id), "%s", id);
    (void)snprintf(job->retry, sizeof(job->retry), "%s",
                   retry == NULL ? "" : retry);
    job->state = "waiting";
    job->due_ms = mem_store_now_ms(store) + delay_ms;
    if (take_idle(store, job->due_ms) && wakes)
        weir__lane_events().wake(store->topic.user);
}

void mem_store_hand_over(struct mem_store *store, const char *id,
                         int64_t age_ms)
{
    struct weir__run *first;
    size_t count;

    mem_store_add(store, id, 0, NULL, false);
    first = take_due(store, &count);
    weir__lane_events().handed(store->topic.user,
                               mem_store_clock(store) - age_ms * 1000000);
    weir__lane_events().arrived(store->topic.user, first, count, 0);
}

struct mem_job *mem_store_last(struct mem_store *store)
{
    return &store->jobs[store->job_count - 1];
}

void mem_store_lose(struct mem_store *store, const char *id)
{
    struct mem_job *job = find(store, weir__slice_str(id));

    WEIR_ASSERT(job != NULL && strcmp(job->state, "running") == 0);
    job->state = "waiting";
    job->due_ms = mem_store_now_ms(store) + 1000;
    weir__lane_events().lost(store->topic.user, job->token);
}

void mem_store_pause(struct mem_store *store, bool is_paused)
{
    store->is_paused = is_paused;
    if (is_paused)
        return;
    store->is_idle = false;
    weir__lane_events().wake(store->topic.user);
}

void mem_store_delete(struct mem_store *store, const char *id)
{
    struct mem_job *job = find(store, weir__slice_str(id));

    WEIR_ASSERT(job != NULL);
    job->state = "gone";
}

static void answer_claim(struct mem_store *store)
{
    struct weir__store_events events = weir__lane_events();
    struct weir__run *first = store->taken;
    size_t count = store->claimed.count;

    store->is_claimed = false;
    store->taken = NULL;
    events.claimed(store->topic.user, &store->claimed);
    if (count > 0)
        events.arrived(store->topic.user, first, count, 0);
}

static void answer_starts(struct mem_store *store)
{
    struct weir__store_events events = weir__lane_events();
    size_t count = store->started_count;

    WEIR_ASSERT(store->starting_count == count);
    store->starting_count = store->started_count = 0;
    for (size_t i = 0; i < count; i++)
        events.started(store->topic.user, store->started[i].run,
                       store->started[i].code);
}

size_t mem_store_answer(struct mem_store *store)
{
    size_t answered = 0;

    if (store->is_waking) {
        store->is_waking = false;
        weir__lane_events().wake(store->topic.user);
        answered++;
    }
    if (store->settled_count > 0) {
        size_t count = store->settled_count, refused = store->refused_count;

        store->settled_count = store->refused_count = 0;
        weir__lane_events().settled(store->topic.user, count, refused);
        answered++;
    }
    if (store->started_count > 0) {
        answer_starts(store);
        answered++;
    }
    if (!store->is_claimed)
        return answered;
    answer_claim(store);
    return answered + 1;
}

const struct mem_job *mem_store_job(struct mem_store *store, const char *id)
{
    return find(store, weir__slice_str(id));
}

#define SET(type, name, member)                                 \
    void mem_store_##name(struct mem_store *store, type member) \
    {                                                           \
        store->member = member;                                 \
    }
SET(size_t, give, most)
SET(int64_t, rest, rest_us)
SET(int, fail_claim, claim_code)
SET(int, fail_start, start_code)
#undef SET

#define GET(type, name, member)                          \
    type mem_store_##name(const struct mem_store *store) \
    {                                                    \
        return store->member;                            \
    }
GET(size_t, claims, claims)
GET(size_t, starts, starts)
GET(size_t, flushed_renewals, flushed_renewals)
GET(size_t, renewals, renewals)
GET(size_t, largest_claim, largest_claim)
GET(bool, takes_jobs, claim.takes_jobs)
GET(bool, is_slow, claim.is_slow)
#undef GET
