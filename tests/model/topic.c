/* SPDX-License-Identifier: MIT */
#include "tests/model/topic.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/tree.h"
#include "tests/sim/server/store.h"

void *topic_grow(void *list, size_t count, size_t *cap, size_t size)
{
    if (count < *cap)
        return list;
    *cap = *cap == 0 ? 64 : *cap * 2;
    list = realloc(list, *cap * size);
    if (list == NULL)
        server_fail("the model has no memory for %zu elements", *cap);
    return list;
}

char *topic_text(const char *ptr, size_t len)
{
    char *text = malloc(len + 1);

    if (text == NULL)
        server_fail("the model has no memory for %zu bytes", len);
    memcpy(text, ptr, len);
    text[len] = '\0';
    return text;
}

void topic_problem(struct topic *topic, const char *format, ...)
{
    va_list args;
    int len;

    if (topic->problem[0] != '\0')
        return;
    len = snprintf(topic->problem, PROBLEM_CAP,
                   "topic %s at %lld ms: ", topic->name,
                   (long long)topic->now_ms);
    va_start(args, format);
    (void)vsnprintf(topic->problem + len, PROBLEM_CAP - (size_t)len, format,
                    args); /* cut */
    va_end(args);
}

/* --- the table of jobs --------------------------------------------------- */

static int by_id(const void *one, const void *other)
{
    return strcmp(((const struct job *)one)->id,
                  ((const struct job *)other)->id);
}

struct job *topic_find(const struct topic *topic, const char *id)
{
    struct job wanted = {.id = (char *)(uintptr_t)id};

    return tree_find(&topic->by_id, &wanted, by_id);
}

static struct job *job_new(struct topic *topic, const char *id,
                           const char *lane)
{
    struct job *job = calloc(1, sizeof(*job));

    if (job == NULL)
        server_fail("the model has no memory for a job");
    job->id = topic_text(id, strlen(id));
    if (lane != NULL)
        job->lane = topic_text(lane, strlen(lane));
    job->next = topic->first;
    topic->first = job;
    tree_add(&topic->by_id, job, by_id);
    return job;
}

static bool is_live(const struct job *job)
{
    return job->state == WAITS || job->state == RUNS;
}

/* Takes the job out of the list in which it is. */
static void unlist(struct topic *topic, struct job *job)
{
    struct job **list = job->state == DEAD ? topic->dead : topic->live;
    size_t *count =
        job->state == DEAD ? &topic->dead_count : &topic->live_count;

    if (job->state == GONE)
        return;
    list[job->at] = list[--*count];
    list[job->at]->at = job->at;
}

void topic_wait(struct topic *topic, struct job *job, int64_t due_ms)
{
    if (!is_live(job)) {
        unlist(topic, job);
        topic->live = topic_grow(topic->live, topic->live_count,
                                 &topic->live_cap, sizeof(topic->live[0]));
        job->at = topic->live_count;
        topic->live[topic->live_count++] = job;
    }
    topic->waiting += job->state != WAITS;
    job->state = WAITS;
    job->due_ms = due_ms > topic->now_ms ? due_ms : topic->now_ms;
    job->is_due_loose = job->is_started = false;
    if (job->due_ms < topic->entered_ms)
        topic->entered_ms = job->due_ms;
    topic->entered++;
}

void topic_leave(struct topic *topic, struct job *job, enum job_state state)
{
    topic->waiting -= job->state == WAITS;
    unlist(topic, job);
    job->state = state;
    if (state == GONE) {
        tree_remove(&topic->by_id, job, by_id);
        return;
    }
    topic->dead = topic_grow(topic->dead, topic->dead_count, &topic->dead_cap,
                             sizeof(topic->dead[0]));
    job->at = topic->dead_count;
    topic->dead[topic->dead_count++] = job;
    job->died_ms = topic->now_ms;
}

/* --- adding -------------------------------------------------------------- */

bool topic_is_full(const struct topic *topic)
{
    return topic->max_pending > 0 &&
           topic->waiting >= (size_t)topic->max_pending;
}

struct job *topic_enter(struct topic *topic, const char *id, const char *lane,
                        int64_t due_ms)
{
    struct job *job = job_new(topic, id, lane);

    topic_wait(topic, job, due_ms);
    topic->count.added++;
    return job;
}

enum add_outcome topic_add(struct topic *topic, const char *id,
                           const char *lane, int64_t due_ms,
                           struct job **ret_job)
{
    if (topic_find(topic, id) != NULL)
        return EXISTS;
    if (topic_is_full(topic))
        return FULL;
    *ret_job = topic_enter(topic, id, lane, due_ms);
    return ADDED;
}

struct said {
    char *call_slot, *number, *answer;
};

static int by_call_slot(const void *one, const void *other)
{
    return strcmp(((const struct said *)one)->call_slot,
                  ((const struct said *)other)->call_slot);
}

static void free_said(void *node)
{
    struct said *said = node;

    free(said->call_slot);
    free(said->number);
    free(said->answer);
    free(said);
}

static struct said *find_said(const struct topic *topic, const char *call_slot)
{
    struct said wanted = {.call_slot = (char *)(uintptr_t)call_slot};

    return tree_find(&topic->said, &wanted, by_call_slot);
}

const char *topic_said(struct topic *topic, const char *call_slot,
                       const char *number)
{
    const struct said *said = find_said(topic, call_slot);

    if (said == NULL || strtod(said->number, NULL) < strtod(number, NULL))
        return NULL;
    return strcmp(said->number, number) == 0 ? said->answer : "late";
}

void topic_say(struct topic *topic, const char *call_slot, const char *number,
               const char *answer)
{
    struct said *said = find_said(topic, call_slot);

    if (said == NULL) {
        said = calloc(1, sizeof(*said));
        if (said == NULL)
            server_fail("the model has no memory for an answer");
        said->call_slot = topic_text(call_slot, strlen(call_slot));
        tree_add(&topic->said, said, by_call_slot);
    }
    free(said->number);
    free(said->answer);
    said->number = topic_text(number, strlen(number));
    said->answer = topic_text(answer, strlen(answer));
}

void topic_enter_dead(struct topic *topic, const char *id)
{
    topic_leave(topic, job_new(topic, id, NULL), DEAD);
}

/* --- managing ------------------------------------------------------------ */

void topic_delete(struct topic *topic, struct job *job)
{
    topic->count.delwait += job->state == WAITS;
    topic->count.delrun += job->state == RUNS;
    topic_leave(topic, job, GONE);
}

void topic_reschedule(struct topic *topic, struct job *job, int64_t due_ms)
{
    unsigned crashes = job->crashes;

    if (job->state != WAITS) {
        topic_problem(topic, "%s was rescheduled and did not wait", job->id);
        return;
    }
    topic_wait(topic, job, due_ms);
    job->crashes = crashes;
}

void topic_requeue(struct topic *topic, struct job *job, int64_t due_ms)
{
    topic_wait(topic, job, due_ms);
    job->crashes = 0;
    job->has_moved = true;
    topic->count.requeued++;
}

static bool died_before(const struct job *one, const struct job *other)
{
    return one->died_ms != other->died_ms ? one->died_ms < other->died_ms
                                          : strcmp(one->id, other->id) < 0;
}

size_t topic_drop_oldest(struct topic *topic, size_t most)
{
    enum { A_CALL = 1000 };
    size_t dropped = 0;

    while (topic->dead_count > most && dropped < A_CALL) {
        struct job *oldest = topic->dead[0];

        for (size_t i = 1; i < topic->dead_count; i++)
            if (died_before(topic->dead[i], oldest))
                oldest = topic->dead[i];
        topic_leave(topic, oldest, GONE);
        dropped++;
    }
    return dropped;
}

/* --- life ---------------------------------------------------------------- */

struct topic *topic_new(const char *name)
{
    struct topic *topic = calloc(1, sizeof(*topic));

    if (topic == NULL)
        server_fail("the model has no memory for a topic");
    (void)snprintf(topic->name, sizeof(topic->name), "%s", name); /* cut */
    topic->entered_ms = INT64_MAX;
    return topic;
}

void topic_free(struct topic *topic)
{
    tree_free(&topic->by_id, NULL); /* jobs are freed by their list */
    tree_free(&topic->said, free_said);
    unique_free(topic);
    wake_free(topic);
    while (topic->first != NULL) {
        struct job *job = topic->first;

        topic->first = job->next;
        free(job->id);
        free(job->lane);
        free(job);
    }
    free(topic->live);
    free(topic->dead);
    free(topic->leases);
    free(topic);
}
