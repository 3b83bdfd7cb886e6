/* SPDX-License-Identifier: MIT */
#include "adapters/trial/store.h"

#include <stdio.h>
#include <string.h>

#include "core/assert.h"
#include "core/mem.h"
#include "core/reactor.h"
#include "core/text.h"

struct weir__store_topic {
    struct weir__trial_store *store;
    void *user; /* the lane; NULL: nobody listens */
};

struct weir__trial_store {
    struct weir__store port; /* first: what core holds */
    struct weir__store_topic topic;
    struct weir__trial_store_options options;
    struct weir__trial_job *jobs; /* all, the newest first */
    struct weir__heap waiting;    /* by due time */
    size_t job_count;
    size_t out_count; /* of jobs: those that run */
    uint64_t token;
    bool is_claimed; /* a claim waits for its answer */
    struct weir__claim claim;
    struct weir__run *settled; /* verdicts that wait for theirs, in order */
    struct weir__run **settled_end;
    size_t settled_count;
};

/* Both are the first member of what is meant. */
static struct weir__trial_store *store_of(struct weir__store *port)
{
    return (struct weir__trial_store *)port;
}

static struct weir__trial_job *job_of(struct weir__heap_node *node)
{
    return (struct weir__trial_job *)node;
}

static int64_t now_ms(const struct weir__trial_store *store)
{
    return store->options.now_ms(store->options.arg);
}

/* --- jobs -------------------------------------------------------------- */

/* Copy `from` behind `*bytes` with a NUL, and move on. */
static struct weir_slice copy(char **bytes, struct weir_slice from)
{
    char *to = *bytes;

    if (from.len > 0)
        memcpy(to, from.ptr, from.len);
    to[from.len] = '\0';
    *bytes += from.len + 1;
    return weir__slice_of(to, from.len);
}

static int copy_job(struct weir__trial_job *job,
                    const struct weir__new_job *from)
{
    const struct weir__record *record = from->record;
    char *bytes = weir__mem_new(from->id.len + record->retry.len +
                                record->url.len + record->headers.len +
                                record->reason.len + record->body.len + 6);

    if (bytes == NULL)
        return WEIR_ENOMEM;
    job->bytes = bytes;
    job->id = copy(&bytes, from->id);
    job->record = (struct weir__record){
        .counters = record->counters,
        .ttl_ms = record->ttl_ms,
        .retry = copy(&bytes, record->retry),
        .url = copy(&bytes, record->url),
        .headers = copy(&bytes, record->headers),
        .reason = copy(&bytes, record->reason),
        .spent = record->spent,
        .body = copy(&bytes, record->body),
    };
    return WEIR_OK;
}

static void free_job(struct weir__trial_job *job)
{
    weir__mem_free(job->bytes);
    weir__mem_free(job);
}

/* Cannot fail: adding the job made room in the heap. */
static void wait_until(struct weir__trial_store *store,
                       struct weir__trial_job *job, int64_t due_ms)
{
    int rc = weir__heap_push(&store->waiting, &job->node, due_ms);

    WEIR_ASSERT(rc == WEIR_OK);
    job->due_ms = due_ms;
    job->state = WEIR_TRIAL_WAITING;
}

int weir__trial_store_add(struct weir__trial_store *store,
                          const struct weir__new_job *new_job)
{
    struct weir__trial_job *job;

    if (weir__trial_store_find(store, new_job->id) != NULL)
        return WEIR_EEXISTS;
    if (weir__heap_reserve(&store->waiting, store->job_count + 1) < 0)
        return WEIR_ENOMEM;
    job = weir__mem_new(sizeof(*job));
    if (job == NULL)
        return WEIR_ENOMEM;
    if (copy_job(job, new_job) < 0) {
        weir__mem_free(job);
        return WEIR_ENOMEM;
    }
    job->next = store->jobs;
    store->jobs = job;
    store->job_count++;
    wait_until(store, job, now_ms(store) + new_job->delay_ms);
    if (store->topic.user != NULL)
        weir__lane_events().wake(store->topic.user);
    return WEIR_OK;
}

size_t weir__trial_store_out(const struct weir__trial_store *store)
{
    return store->out_count;
}

const struct weir__trial_job *
weir__trial_store_find(const struct weir__trial_store *store,
                       struct weir_slice id)
{
    const struct weir__trial_job *job = store->jobs;

    while (job != NULL && !weir__slice_equal(job->id, id))
        job = job->next;
    return job;
}

/* --- the port ---------------------------------------------------------- */

static int topic_open(struct weir__store *port,
                      const struct weir__store_topic_options *options,
                      struct weir__store_topic **ret_topic)
{
    struct weir__trial_store *store = store_of(port);

    (void)options;
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
    WEIR_ASSERT(!topic->store->is_claimed);
    topic->store->is_claimed = true;
    topic->store->claim = *asked;
    return WEIR_OK;
}

static void settle(struct weir__store_topic *topic, struct weir__run *run)
{
    struct weir__trial_store *store = topic->store;

    run->next = NULL;
    *store->settled_end = run;
    store->settled_end = &run->next;
    store->settled_count++;
}

static void renew(struct weir__store_topic *topic, int64_t lease_ms)
{
    (void)topic;
    (void)lease_ms;
}

static size_t unsettled(const struct weir__store_topic *topic)
{
    return topic->store->settled_count;
}

static void lateness(struct weir__store_topic *topic, const uint32_t *counts,
                     int64_t max_us)
{
    (void)topic;
    (void)counts;
    (void)max_us;
}

static void flush(struct weir__store *port)
{
    (void)port; /* weir__trial_store_answer */
}

static void free_run(struct weir__run *run)
{
    weir__run_fini(run);
    weir__mem_free(run);
}

static void close_store(struct weir__store *port)
{
    struct weir__trial_store *store = store_of(port);

    weir__heap_fini(&store->waiting);
    while (store->jobs != NULL) {
        struct weir__trial_job *job = store->jobs;

        store->jobs = job->next;
        if (job->run != NULL)
            free_run(job->run);
        free_job(job);
    }
    weir__mem_free(store);
}

static const struct weir__store_ops ops = {
    .topic_open = topic_open,
    .topic_listen = topic_listen,
    .claim = claim,
    .settle = settle,
    .renew = renew,
    .unsettled = unsettled,
    .lateness = lateness,
    .flush = flush,
    .close = close_store,
};

int weir__trial_store_open(const struct weir__trial_store_options *options,
                           struct weir__trial_store **ret_store)
{
    struct weir__trial_store *store = weir__mem_new(sizeof(*store));

    if (store == NULL)
        return WEIR_ENOMEM;
    store->port.ops = &ops;
    store->port.takes_follows = true;
    store->options = *options;
    store->settled_end = &store->settled;
    *ret_store = store;
    return WEIR_OK;
}

struct weir__store *weir__trial_store_port(struct weir__trial_store *store)
{
    return &store->port;
}

/* --- answers ----------------------------------------------------------- */

/* NULL when out of memory: the job stays where it is. */
static struct weir__run *make_run(struct weir__trial_store *store,
                                  struct weir__trial_job *job)
{
    struct weir__run *run = weir__mem_new(sizeof(*run));

    if (run == NULL)
        return NULL;
    run->magic = WEIR__RUN_MAGIC;
    run->batch = job;
    run->id = job->id;
    run->record = job->record;
    run->token = store->token;
    run->due_ms = job->due_ms;
    run->late_us = (now_ms(store) - job->due_ms) * 1000;
    run->claimed_ns = store->options.now_ns(store->options.arg);
    return run;
}

static struct weir__run *take_due(struct weir__trial_store *store,
                                  size_t *ret_count)
{
    struct weir__run *first = NULL, **end = &first;
    size_t count = 0;

    store->token++;
    while (count < store->claim.room) {
        struct weir__heap_node *node = weir__heap_first(&store->waiting);
        struct weir__trial_job *job;

        if (node == NULL || node->at_ns > now_ms(store))
            break;
        job = job_of(node);
        job->run = make_run(store, job);
        if (job->run == NULL)
            break;
        weir__heap_remove(&store->waiting, node);
        job->state = WEIR_TRIAL_RUNNING;
        store->out_count++;
        *end = job->run;
        end = &job->run->next;
        count++;
    }
    *ret_count = count;
    return first;
}

static void answer_claim(struct weir__trial_store *store)
{
    struct weir__store_events events = weir__lane_events();
    struct weir__claimed claimed = {.code = WEIR_OK, .next_due_us = -1};
    struct weir__run *first = take_due(store, &claimed.count);
    const struct weir__heap_node *next = weir__heap_first(&store->waiting);

    store->is_claimed = false;
    if (claimed.count == 0 && next != NULL && next->at_ns <= now_ms(store))
        claimed.code = WEIR_ENOMEM;
    else if (next != NULL)
        claimed.next_due_us = next->at_ns > now_ms(store)
                                  ? (next->at_ns - now_ms(store)) * 1000
                                  : 0;
    events.claimed(store->topic.user, &claimed);
    if (claimed.count > 0)
        events.arrived(store->topic.user, first, claimed.count, 0);
}

/* The texts of the run go with it. */
static void apply(struct weir__trial_store *store, struct weir__trial_job *job,
                  const struct weir__run *run)
{
    job->record.counters = run->record.counters;
    job->run = NULL;
    store->out_count--;
    switch (run->outcome) {
    case WEIR__OUTCOME_DONE:
        job->state = WEIR_TRIAL_DONE;
        job->record.counters.attempt++;
        break;
    case WEIR__OUTCOME_DEAD:
        job->state = run->is_expired ? WEIR_TRIAL_EXPIRED : WEIR_TRIAL_DEAD;
        break;
    case WEIR__OUTCOME_RETRY:
    case WEIR__OUTCOME_SNOOZE:
        /* Never in the same instant again: time would not move on. */
        wait_until(store, job,
                   now_ms(store) + (run->delay_ms > 0 ? run->delay_ms : 1));
        break;
    case WEIR__OUTCOME_RETURN:
        wait_until(store, job, job->due_ms);
        break;
    case WEIR__OUTCOME_TAKEN: /* the trial is being freed */
        break;
    case WEIR__OUTCOME_NONE:
    default:
        WEIR_UNREACHABLE("a run was settled without an outcome");
    }
}

/* Jobs that the handler added to this topic: those whose id was there before
 * are left out. As retries, they never run in the same instant. */
static void add_follows(struct weir__trial_store *store,
                        const struct weir__run *run)
{
    const struct weir__follow *follow = run->follows.first;

    for (; follow != NULL; follow = follow->next) {
        char made[24];
        struct weir__new_job job = {
            .id = follow->id,
            .record = &follow->record,
            .delay_ms = follow->delay_ms,
        };

        if (follow->topic.len > 0)
            continue;
        if (follow->at_ms != 0)
            job.delay_ms = follow->at_ms - now_ms(store);
        if (job.delay_ms < 1)
            job.delay_ms = 1;
        if (job.id.len == 0) {
            (void)snprintf(made, sizeof(made), "~f%zu",
                           store->job_count + 1); /* fits */
            job.id = weir__slice_str(made);
        }
        (void)weir__trial_store_add(store, &job); /* without memory neither */
    }
}

static void answer_settles(struct weir__trial_store *store)
{
    struct weir__store_events events = weir__lane_events();
    size_t count = store->settled_count;

    while (store->settled != NULL) {
        struct weir__run *run = store->settled;
        struct weir__trial_job *job = run->batch;

        store->settled = run->next;
        apply(store, job, run);
        if (run->outcome != WEIR__OUTCOME_RETURN &&
            run->outcome != WEIR__OUTCOME_TAKEN && !run->is_expired) {
            store->options.verdict(job, run, store->options.arg);
            add_follows(store, run);
        }
        free_run(run);
    }
    store->settled_end = &store->settled;
    store->settled_count = 0;
    events.settled(store->topic.user, count, 0);
    events.wake(store->topic.user); /* some may be due before it looks again */
}

bool weir__trial_store_answer(struct weir__trial_store *store)
{
    bool is_asked = store->is_claimed || store->settled_count > 0;

    if (store->settled_count > 0)
        answer_settles(store);
    if (store->is_claimed)
        answer_claim(store);
    return is_asked;
}
