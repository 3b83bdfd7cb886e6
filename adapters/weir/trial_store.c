/* SPDX-License-Identifier: MIT */

/* The jobs of a trial: a store in memory, as core wants one. */

#include "adapters/weir/trial_private.h"

#include <stdio.h>
#include <string.h>

#include "core/assert.h"
#include "core/call.h"
#include "core/mem.h"
#include "core/reactor.h"
#include "core/text.h"

/* The store's port is the first member of the first member of a trial. */
static struct weir_trial *trial_of(struct weir__store *port)
{
    return (struct weir_trial *)(void *)port;
}

/* What the heap holds is the first member of a job. */
static struct weir__trial_job *job_of(struct weir__heap_node *node)
{
    return (struct weir__trial_job *)node;
}

/* --- jobs -------------------------------------------------------------- */

static int copy_job(const struct weir_trial *trial,
                    const struct weir__new_job *from,
                    struct weir__trial_job *job)
{
    const struct weir__record *record = from->record;
    char *bytes =
        weir__mem_new(from->id.len + record->retry.len + record->url.len +
                      record->headers.len + record->reason.len +
                      record->body.len + from->group.len + 7);

    if (bytes == NULL)
        return WEIR_ENOMEM;
    job->bytes = bytes;
    job->id = weir__trial_copy(&bytes, from->id);
    job->group = weir__trial_copy(&bytes, from->group);
    job->record = (struct weir__record){
        .counters = record->counters,
        .ttl_ms = record->ttl_ms,
        .retry = weir__trial_copy(&bytes, record->retry),
        .url = weir__trial_copy(&bytes, record->url),
        .headers = weir__trial_copy(&bytes, record->headers),
        .reason = weir__trial_copy(&bytes, record->reason),
        .spent = record->spent,
        .added_ms = weir__trial_now_ms(trial),
        .body = weir__trial_copy(&bytes, record->body),
    };
    return WEIR_OK;
}

static void free_job(struct weir__trial_job *job)
{
    weir__mem_free(job->bytes);
    weir__mem_free(job);
}

/* Cannot fail: adding the job made room in the heap. */
static void wait_until(struct weir_trial *trial, struct weir__trial_job *job,
                       int64_t due_ms)
{
    int rc = weir__heap_push(&trial->store.waiting, &job->node, due_ms);

    WEIR_ASSERT(rc == WEIR_OK);
    job->due_ms = due_ms;
    job->state = WEIR_TRIAL_WAITING;
}

int weir__trial_store_add(struct weir_trial *trial,
                          const struct weir__new_job *new_job)
{
    struct weir__trial_job *job;

    if (weir__trial_store_find(trial, new_job->id) != NULL)
        return WEIR_EEXISTS;
    if (weir__heap_reserve(&trial->store.waiting, trial->store.job_count + 1) <
        0)
        return WEIR_ENOMEM;
    job = weir__mem_new(sizeof(*job));
    if (job == NULL)
        return WEIR_ENOMEM;
    if (copy_job(trial, new_job, job) < 0) {
        weir__mem_free(job);
        return WEIR_ENOMEM;
    }
    job->next = trial->store.jobs;
    trial->store.jobs = job;
    trial->store.job_count++;
    wait_until(trial, job, weir__trial_now_ms(trial) + new_job->delay_ms);
    if (trial->store.topic.user != NULL)
        weir__lane_events().wake(trial->store.topic.user);
    return WEIR_OK;
}

const struct weir__trial_job *
weir__trial_store_find(const struct weir_trial *trial, struct weir_slice id)
{
    const struct weir__trial_job *job = trial->store.jobs;

    while (job != NULL && !weir__slice_equal(job->id, id))
        job = job->next;
    return job;
}

/* --- the port ---------------------------------------------------------- */

static int topic_open(struct weir__store *port,
                      const struct weir__store_topic_options *options,
                      struct weir__store_topic **ret_topic)
{
    struct weir_trial *trial = trial_of(port);

    (void)options;
    trial->store.topic.trial = trial;
    *ret_topic = &trial->store.topic;
    return WEIR_OK;
}

static void topic_listen(struct weir__store_topic *topic, void *user)
{
    topic->user = user;
}

static int claim(struct weir__store_topic *topic,
                 const struct weir__claim *asked)
{
    WEIR_ASSERT(!topic->trial->store.is_claimed);
    topic->trial->store.is_claimed = true;
    topic->trial->store.claim = *asked;
    return WEIR_OK;
}

static void settle(struct weir__store_topic *topic, struct weir__run *run)
{
    struct weir_trial *trial = topic->trial;

    run->next = NULL;
    *trial->store.settled_end = run;
    trial->store.settled_end = &run->next;
    trial->store.settled_count++;
}

static bool renew(struct weir__store_topic *topic, int64_t lease_ms)
{
    (void)topic;
    (void)lease_ms;
    return true;
}

static size_t unsettled(const struct weir__store_topic *topic)
{
    return topic->trial->store.settled_count;
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

/* The deadline is of the trial's clock, which stands still. */
static void enter(struct weir__store *port, struct weir__call *call)
{
    struct weir__trial_job *job = call->run == NULL ? NULL : call->run->batch;

    (void)port;
    if (job != NULL)
        job->entered_ns = weir__driver_clock(NULL);
}

static bool leave(struct weir__store *port, struct weir__call *call)
{
    struct weir__trial_job *job = call->run == NULL ? NULL : call->run->batch;

    (void)port;
    if (job != NULL)
        job->held_ms = (weir__driver_clock(NULL) - job->entered_ns) / 1000000;
    return false;
}

static void free_run(struct weir__run *run)
{
    weir__run_fini(run);
    weir__mem_free(run);
}

static const struct weir__store_ops ops = {
    .topic_open = topic_open,
    .topic_listen = topic_listen,
    .claim = claim,
    .settle = settle,
    .enter = enter,
    .leave = leave,
    .renew = renew,
    .unsettled = unsettled,
    .lateness = lateness,
    .flush = flush,
};

void weir__trial_store_init(struct weir_trial *trial)
{
    trial->store.port.ops = &ops;
    trial->store.settled_end = &trial->store.settled;
}

void weir__trial_store_fini(struct weir_trial *trial)
{
    weir__heap_fini(&trial->store.waiting);
    while (trial->store.jobs != NULL) {
        struct weir__trial_job *job = trial->store.jobs;

        trial->store.jobs = job->next;
        if (job->run != NULL)
            free_run(job->run);
        free_job(job);
    }
}

/* --- answers ----------------------------------------------------------- */

/* NULL when out of memory: the job stays where it is. */
static struct weir__run *make_run(struct weir_trial *trial,
                                  struct weir__trial_job *job)
{
    struct weir__run *run = weir__mem_new(sizeof(*run));

    if (run == NULL)
        return NULL;
    run->magic = WEIR__RUN_MAGIC;
    run->batch = job;
    run->id = job->id;
    run->group = job->group;
    run->record = job->record;
    run->token = trial->store.token;
    run->due_ms = job->due_ms;
    run->late_us = (weir__trial_now_ms(trial) - job->due_ms) * 1000;
    run->claimed_ns = trial->now_ns;
    return run;
}

static struct weir__run *take_due(struct weir_trial *trial, size_t *ret_count)
{
    struct weir__run *first = NULL, **end = &first;
    size_t count = 0;

    trial->store.token++;
    while (count < trial->store.claim.room) {
        struct weir__heap_node *node = weir__heap_first(&trial->store.waiting);
        struct weir__trial_job *job;

        if (node == NULL || node->at_ns > weir__trial_now_ms(trial))
            break;
        job = job_of(node);
        job->run = make_run(trial, job);
        if (job->run == NULL)
            break;
        weir__heap_remove(&trial->store.waiting, node);
        job->state = WEIR_TRIAL_RUNNING;
        trial->store.out_count++;
        *end = job->run;
        end = &job->run->next;
        count++;
    }
    *ret_count = count;
    return first;
}

static void answer_claim(struct weir_trial *trial)
{
    struct weir__store_events events = weir__lane_events();
    struct weir__claimed claimed = {.code = WEIR_OK, .next_due_us = -1};
    struct weir__run *first = take_due(trial, &claimed.count);
    const struct weir__heap_node *next =
        weir__heap_first(&trial->store.waiting);

    trial->store.is_claimed = false;
    if (claimed.count == 0 && next != NULL &&
        next->at_ns <= weir__trial_now_ms(trial))
        claimed.code = WEIR_ENOMEM;
    else if (next != NULL)
        claimed.next_due_us =
            next->at_ns > weir__trial_now_ms(trial)
                ? (next->at_ns - weir__trial_now_ms(trial)) * 1000
                : 0;
    events.claimed(trial->store.topic.user, &claimed);
    if (claimed.count > 0)
        events.arrived(trial->store.topic.user, first, claimed.count, 0);
}

/* The texts of the run go with it. */
static void apply(struct weir_trial *trial, struct weir__trial_job *job,
                  const struct weir__run *run)
{
    job->record.counters = run->record.counters;
    job->run = NULL;
    trial->store.out_count--;
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
        wait_until(trial, job,
                   weir__trial_now_ms(trial) +
                       (run->delay_ms > 0 ? run->delay_ms : 1));
        break;
    case WEIR__OUTCOME_RETURN:
        wait_until(trial, job, job->due_ms);
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
static void add_follows(struct weir_trial *trial, const struct weir__run *run)
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
            job.delay_ms = follow->at_ms - weir__trial_now_ms(trial);
        if (job.delay_ms < 1)
            job.delay_ms = 1;
        if (job.id.len == 0) {
            (void)snprintf(made, sizeof(made), "@f%zu",
                           trial->store.job_count + 1); /* fits */
            job.id = weir__slice_str(made);
        }
        (void)weir__trial_store_add(trial, &job); /* without memory neither */
    }
}

static void answer_settles(struct weir_trial *trial)
{
    struct weir__store_events events = weir__lane_events();
    size_t count = trial->store.settled_count;

    while (trial->store.settled != NULL) {
        struct weir__run *run = trial->store.settled;
        struct weir__trial_job *job = run->batch;

        trial->store.settled = run->next;
        apply(trial, job, run);
        if (run->outcome != WEIR__OUTCOME_RETURN &&
            run->outcome != WEIR__OUTCOME_TAKEN && !run->is_expired) {
            weir__trial_verdict(trial, job, run);
            add_follows(trial, run);
        }
        free_run(run);
    }
    trial->store.settled_end = &trial->store.settled;
    trial->store.settled_count = 0;
    events.settled(trial->store.topic.user, count, 0);
    events.wake(
        trial->store.topic.user); /* some may be due before it looks again */
}

bool weir__trial_store_answer(struct weir_trial *trial)
{
    bool is_asked = trial->store.is_claimed || trial->store.settled_count > 0;

    if (trial->store.settled_count > 0)
        answer_settles(trial);
    if (trial->store.is_claimed)
        answer_claim(trial);
    return is_asked;
}
