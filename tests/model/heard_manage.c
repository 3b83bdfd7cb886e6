/* SPDX-License-Identifier: MIT */
#include "tests/model/heard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls that look at jobs and manage them. */

/* --- one job ------------------------------------------------------------- */

enum { VERB, ID, PLACE, SLOT, RESCHEDULE_TOPIC, RESCHEDULE_WHEN };

static const char *state_of(const struct topic *topic, const struct job *job)
{
    return job->state == DEAD            ? "dead"
           : job->state == RUNS          ? "running"
           : job->due_ms > topic->now_ms ? "scheduled"
                                         : "ready";
}

static void judge_look(struct call_heard *call, const struct job *job)
{
    struct topic *model = call->topic->model;
    const char *said = call->reply->element[0]->str;

    if (strcmp(said, state_of(model, job)) != 0)
        topic_problem(model, "%s is %s, and an answer says %s", job->id,
                      state_of(model, job), said);
    if (job->state == WAITS && !heard_is(call->args[VERB], "reschedule") &&
        !job->is_due_loose && heard_reply(call, 1) != job->due_ms)
        topic_problem(model, "%s is due at %lld, and an answer says %lld",
                      job->id, (long long)job->due_ms, heard_reply(call, 1));
    if (job->state != DEAD && heard_reply(call, 2) != job->crashes)
        topic_problem(model, "%s crashed %u times, and an answer says %lld",
                      job->id, job->crashes, heard_reply(call, 2));
}

static void change(struct call_heard *call, struct job *job)
{
    struct topic *model = call->topic->model;
    int64_t due_ms = 0;
    char *lane;

    if (heard_is(call->args[VERB], "delete")) {
        topic_delete(model, job);
    } else if (heard_is(call->args[VERB], "reschedule") &&
               job->state == WAITS) {
        heard_when(call, call->args[RESCHEDULE_WHEN], 1, &due_ms, &lane);
        free(lane); /* there is none */
        topic_reschedule(model, job, due_ms);
    }
}

void heard_slot(struct call_heard *call)
{
    char *id = heard_text(call->args[ID]);
    const char *said = call->reply->element[0]->str;
    struct job *job = topic_find(call->topic->model, id);

    if (strcmp(said, "moved") == 0 || strcmp(said, "tick") == 0) {
        free(id);
        return; /* nothing was done */
    }
    if (strcmp(said, "none") != 0 && job != NULL) {
        judge_look(call, job);
        change(call, job);
    } else if (strcmp(said, "none") != 0) {
        topic_problem(call->topic->model,
                      "%s is not there, and an answer says "
                      "%s",
                      id, said);
    }
    free(id);
}

/* --- the dead ------------------------------------------------------------ */

enum { JOBS = 1, HEADER_LEN, DIED, REQUEUE_WHEN };
enum { REQUEUE_PACK = 6 };

void drafts_of_requeue(struct call_heard *call)
{
    if (call->key_count > REQUEUE_PACK)
        heard_draft(call, call->keys[REQUEUE_PACK], NULL);
}

void heard_requeue(struct call_heard *call)
{
    static const struct slice at_once = {"r0", 2};
    const struct draft *draft = call->drafts;
    struct pack *pack;
    msgpack_unpacked died;
    int64_t due[SLOTS] = {0};
    long long requeued = 0;
    char *lane;

    if (call->draft_count == 0 || draft->place != STAGED)
        return; /* a repeat */
    heard_list(call->args[DIED], &died);
    heard_when(call,
               call->arg_count > REQUEUE_WHEN ? call->args[REQUEUE_WHEN]
                                              : at_once,
               draft->count, due, &lane);
    free(lane);
    pack = heard_pack_new(call, draft->seq, draft->count);
    for (unsigned slot = 0; slot < draft->count; slot++) {
        struct job *job = topic_find(call->topic->model, draft->ids[slot]);

        if (job == NULL || job->state != DEAD ||
            job->died_ms != (int64_t)died.data.via.array.ptr[slot].via.u64)
            continue;
        topic_requeue(call->topic->model, job, due[slot]);
        pack->jobs[slot] = job;
        requeued++;
    }
    msgpack_unpacked_destroy(&died);
    if (heard_reply(call, 0) != requeued)
        topic_problem(call->topic->model,
                      "%lld dead jobs wait again, and an answer says %lld",
                      requeued, heard_reply(call, 0));
}

void heard_forget(struct call_heard *call)
{
    struct topic *model = call->topic->model;
    long long deleted = heard_reply(call, 0);
    int64_t latest_ms = heard_reply(call, 2);
    size_t most = (size_t)heard_int(call->args[1]), matching = 0;

    if (deleted < 0)
        return;
    for (size_t i = 0; i < model->dead_count; i++)
        matching += model->dead[i]->died_ms <= latest_ms;
    if (matching > most)
        matching = most;
    if ((long long)matching != deleted)
        topic_problem(model, "%zu dead jobs can go, and an answer says %lld",
                      matching, deleted);
    (void)topic_drop_oldest(model, model->dead_count - matching);
}

/* --- jobs that no other topic takes -------------------------------------- */

enum { ENTRY, MOST_DEAD, FIRST_DEAD };

/* In use: the outbox has the entry. */
void drafts_of_undeliverable(struct call_heard *call)
{
    const struct object *relay = heard_object(call, "relay");

    heard_note(call, relay != NULL && call->arg_count > FIRST_DEAD &&
                         table_find(&relay->table, call->args[ENTRY]) != NULL);
}

void heard_undeliverable(struct call_heard *call)
{
    struct topic *model = call->topic->model;
    size_t evicted;
    long long died = 0;

    if (call->drafts[0].place == MISSING)
        return; /* it was done before */
    for (size_t i = FIRST_DEAD; i + 2 < call->arg_count; i += 3) {
        char *id = heard_text(call->args[i]);

        if (id[0] == '\0' || topic_find(model, id) != NULL) {
            free(id);
            id = heard_text(call->args[i + 1]);
        }
        topic_enter_dead(model, id);
        free(id);
        died++;
    }
    evicted =
        topic_drop_oldest(model, (size_t)heard_int(call->args[MOST_DEAD]));
    if (heard_reply(call, 0) != died ||
        heard_reply(call, 1) != (long long)evicted)
        topic_problem(model,
                      "%lld jobs die and %zu go for them, and an answer says "
                      "%lld and %lld",
                      died, evicted, heard_reply(call, 0),
                      heard_reply(call, 1));
}

/* --- all of them --------------------------------------------------------- */

/* In use: the node waits or runs. */
void drafts_of_purge(struct call_heard *call)
{
    for (size_t i = 0; i < call->arg_count; i++) {
        char *node = heard_text(call->args[i]);
        double score;

        heard_note(call, heard_score(call, "wait", node, &score) ||
                             heard_score(call, "run", node, &score));
        free(node);
    }
}

static long long purge_node(struct call_heard *call, struct slice node)
{
    struct topic *model = call->topic->model;
    unsigned lo = 1, hi = 0;
    long long deleted = 0;

    if (!heard_node(node.ptr, node.len, &lo, &hi))
        return 0;
    for (unsigned slot = lo; slot <= hi; slot++) {
        struct job *job = heard_job(call, node.ptr, slot);
        char lease[24];
        uint64_t token;
        double deadline;

        if (job == NULL || (job->state != WAITS && job->state != RUNS))
            continue;
        token = job->state == RUNS ? job->token : 0;
        topic_delete(model, job);
        (void)snprintf(lease, sizeof(lease), "%llu", (unsigned long long)token);
        /* Where there are limits its worker ends the claim. */
        if (!heard_score(call, "lease", lease, &deadline))
            topic_close(model, token);
        deleted++;
    }
    return deleted;
}

void heard_purge(struct call_heard *call)
{
    long long deleted = 0;

    if (heard_reply(call, 0) < 0)
        return;
    for (size_t i = 0; i < call->arg_count; i++)
        if (call->drafts[i].place == IN_USE)
            deleted += purge_node(call, call->args[i]);
    if (heard_reply(call, 0) != deleted)
        topic_problem(call->topic->model,
                      "%lld jobs are purged, and an answer says %lld", deleted,
                      heard_reply(call, 0));
}

/* --- counts -------------------------------------------------------------- */

enum { WITH_MIXED = 5 }; /* so many keys, or what is due of some is not known */

static long long said_of(const struct call_heard *call, const char *name)
{
    for (size_t i = 0; i + 1 < call->reply->elements; i += 2)
        if (strcmp(call->reply->element[i]->str, name) == 0)
            return heard_reply(call, i + 1);
    return INT64_MIN;
}

static void judge_count(const struct call_heard *call, const char *name,
                        long long wanted)
{
    long long said = said_of(call, name);

    if (said != wanted)
        topic_problem(call->topic->model,
                      "%s is %lld, and the counts of the topic say %lld", name,
                      wanted, said);
}

/* The current ms does not count: it is still being written to. */
static void judge_ready(const struct call_heard *call)
{
    const struct topic *model = call->topic->model;
    long long ready = 0;
    int64_t oldest_ms = -1;

    for (size_t i = 0; i < model->live_count; i++) {
        const struct job *job = model->live[i];

        if (job->state != WAITS || job->due_ms >= model->now_ms)
            continue;
        ready++;
        if (model->now_ms - job->due_ms > oldest_ms)
            oldest_ms = model->now_ms - job->due_ms;
    }
    if (said_of(call, "exact") == 1)
        judge_count(call, "ready", ready);
    judge_count(call, "oldest", oldest_ms);
}

void heard_stats(struct call_heard *call)
{
    const struct topic *model = call->topic->model;
    const struct counters *count = &model->count;

    judge_count(call, "waiting", (long long)model->waiting);
    judge_count(call, "running",
                (long long)(model->live_count - model->waiting));
    judge_count(call, "dead", (long long)model->dead_count);
    judge_count(call, "added", count->added);
    judge_count(call, "done",
                count->settled - count->retried - count->snoozed -
                    count->failed - count->expired);
    judge_count(call, "retried", count->retried);
    judge_count(call, "failed", count->failed);
    judge_count(call, "expired", count->expired);
    judge_count(call, "crashed", count->crashed);
    if (call->key_count >= WITH_MIXED && !model->was_set_back)
        judge_ready(call);
}

void heard_pause(struct call_heard *call)
{
    if (heard_reply(call, 0) == 1)
        call->topic->model->is_paused = heard_is(call->args[2], "1");
}
