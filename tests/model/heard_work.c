/* SPDX-License-Identifier: MIT */
#include "tests/model/heard.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Claims and what keeps them. */

static const int64_t REGION = INT64_C(1) << 44; /* of mixed packs: 2, of lanes:
                                                   3 */

/* --- claim --------------------------------------------------------------- */

enum { ROOM, LEASE_MS, MOST_NODES, WORKER, FLAGS, OFFER = 7, OWN_LIMITS = 9 };
enum { IS_SLOW = 4 }; /* jobs keep the worker for a while */
enum { SAID_TOKEN = 1, SAID_NEXT, SAID_JOBS, SAID_STATE, FIRST_NODE };

/* Gives back jobs of a lease that has ended. One call gives back some of them;
 * the others are on the server under the token. */
static void give_back(struct call_heard *call, uint64_t token, bool is_gone)
{
    struct topic *model = call->topic->model;
    const struct object *run = is_gone ? NULL : heard_object(call, "run");

    for (size_t i = 0; i < model->live_count; i++)
        model->live[i]->is_seen = false;
    for (size_t i = 0; run != NULL && i < run->table.count; i++) {
        const struct entry *entry = run->table.list[i];
        unsigned lo = 1, hi = 0;

        if ((uint64_t)entry->score == token &&
            heard_node(entry->name, entry->len, &lo, &hi))
            for (unsigned slot = lo; slot <= hi; slot++) {
                struct job *job = heard_job(call, entry->name, slot);

                if (job != NULL)
                    job->is_seen = true;
            }
    }
    for (size_t i = 0; i < model->live_count; i++)
        if (job_runs(model->live[i], token) && !model->live[i]->is_seen)
            topic_expire(model, model->live[i]);
}

/* What the claim did with leases before it took anything. */
static void look_at_leases(struct call_heard *call)
{
    struct topic *model = call->topic->model;

    for (size_t i = 0; i < model->lease_count;) {
        struct lease *lease = &model->leases[i];
        uint64_t id = lease->token;
        char token[24];
        double deadline;
        bool is_there;

        (void)snprintf(token, sizeof(token), "%llu", (unsigned long long)id);
        is_there = heard_score(call, "lease", token, &deadline);
        /* It was taken while the clock was ahead. */
        if (is_there && lease->deadline_ms > call->now_ms + lease->length_ms)
            lease->deadline_ms = (int64_t)deadline;
        if (!is_there || lease->deadline_ms < call->now_ms)
            give_back(call, id, !is_there);
        if (is_there)
            i++;
        else
            topic_close(model, id); /* another one is here now */
    }
}

static void take(struct call_heard *call, struct claim *claim, const char *node,
                 unsigned slot, int64_t due_ms, unsigned crashes)
{
    struct job *job = heard_job(call, node, slot);

    if (job == NULL)
        topic_problem(call->topic->model,
                      "slot %u of %s was claimed, and its job is not known",
                      slot, node);
    else
        topic_take(call->topic->model, claim, job, due_ms, crashes);
}

/* Of a mixed pack: state, the time of the add and a base, and what each slot
 * has more (scripts/lib/mixed.lua). */
static void take_mixed(struct call_heard *call, struct claim *claim,
                       const char *node, unsigned lo, unsigned hi,
                       const redisReply *told)
{
    int64_t from_ms, base_ms;

    if (told->len < 13 + 4 * (size_t)(hi - lo + 1)) {
        topic_problem(call->topic->model, "a claim has no times of %s", node);
        return;
    }
    from_ms = (int64_t)heard_little(told->str + 1, 6);
    base_ms = (int64_t)heard_little(told->str + 7, 6);
    for (unsigned slot = lo; slot <= hi; slot++) {
        int64_t due_ms = base_ms + (int64_t)heard_little(
                                       told->str + 13 + 4 * (slot - lo), 4);

        take(call, claim, node, slot, due_ms < from_ms ? from_ms : due_ms,
             (uint8_t)told->str[0] / 2);
    }
}

static void take_node(struct call_heard *call, struct claim *claim,
                      const redisReply *name, const redisReply *told)
{
    unsigned lo, hi;

    if (!heard_node(name->str, name->len, &lo, &hi)) {
        topic_problem(call->topic->model, "a claim gives %s", name->str);
        return;
    }
    claim->nodes++;
    if (told->type == REDIS_REPLY_STRING) {
        take_mixed(call, claim, name->str, lo, hi, told);
        return;
    }
    for (unsigned slot = lo; slot <= hi; slot++)
        take(call, claim, name->str, slot, told->integer / 256 % (2 * REGION),
             (unsigned)(told->integer % 256) / 2);
}

/* When a worker comes that is to ask again in so many us. */
static int64_t wake_ms(const struct call_heard *call, int64_t next_us)
{
    if (call->topic->model->is_paused)
        return INT64_MIN;
    if (next_us < 0)
        return INT64_MAX;
    return (server_time(call->server) + next_us + 999) / 1000;
}

/* The same where there are limits, or it comes at once: only the server knows
 * when there are tokens, and what it comes for. */
static int64_t told_wake_ms(const struct call_heard *call, const char *worker,
                            bool is_busy)
{
    static const double BUSY = 35184372088832.0; /* stand so much earlier */
    double score = 0;

    if (!heard_score(call, "idle", worker, &score))
        return INT64_MAX;
    if (isinf(score))
        return score < 0 ? INT64_MIN : INT64_MAX;
    return (int64_t)(score + (is_busy ? BUSY : 0));
}

/* A worker that got nothing and sleeps may be handed the next job; what else it
 * gets withdraws its offer. */
static void note_offer(struct call_heard *call, const struct claim *claim,
                       const char *worker, bool sleeps)
{
    struct topic *model = call->topic->model;
    long long number = call->arg_count > OFFER && call->args[OFFER].len > 0
                           ? heard_int(call->args[OFFER])
                           : 0;

    if (worker[0] != '\0' && number != 0 && sleeps && claim->jobs == 0 &&
        !claim->is_bounded && !model->is_paused)
        topic_offer(model, worker, number, heard_reply(call, 0));
    else if (worker[0] != '\0')
        topic_withdraw(model, worker);
    if (claim->is_bounded)
        topic_withdraw(model, NULL);
}

/* The worker sleeps unless it got all that it has room for, or there is more.
 * What it leaves then is for the next one. */
static void go_to_sleep(struct call_heard *call, const struct claim *claim)
{
    struct topic *model = call->topic->model;
    char *worker = heard_text(call->args[WORKER]);
    long long flags = heard_int(call->args[FLAGS]);
    int64_t due_ms = topic_first_due_ms(model);
    bool is_busy = claim->jobs > 0 || flags % 4 > 1;
    bool sleeps =
        claim->jobs == 0 || (claim->jobs < claim->room && claim->next_us != 0);

    if (sleeps || flags % 2 == 1)
        topic_untell(model, worker); /* tokens came back */
    if (!sleeps && flags % 2 == 1)
        topic_awake(model, worker);
    if (worker[0] != '\0' && sleeps)
        topic_sleep(model, worker,
                    claim->is_bounded || claim->next_us == 0
                        ? told_wake_ms(call, worker, is_busy)
                        : wake_ms(call, claim->next_us),
                    is_busy);
    note_offer(call, claim, worker, sleeps);
    free(worker);
    if (claim->is_bounded || model->is_paused || (sleeps && flags >= IS_SLOW))
        return;
    if (sleeps || due_ms == INT64_MAX)
        due_ms = INT64_MAX;
    else if (due_ms < model->now_ms)
        due_ms = model->now_ms;
    topic_judge_wakes(model, due_ms);
}

void heard_claim(struct call_heard *call)
{
    struct topic *model = call->topic->model;
    struct claim claim = {.room = (unsigned)heard_int(call->args[ROOM]),
                          .lease_ms = heard_int(call->args[LEASE_MS]),
                          .most_nodes =
                              (unsigned)heard_int(call->args[MOST_NODES]),
                          .next_us = heard_reply(call, SAID_NEXT)};
    long long jobs = heard_reply(call, SAID_JOBS);

    if (heard_reply(call, 0) == -1)
        return;
    claim.token = (uint64_t)heard_reply(call, SAID_TOKEN);
    claim.is_bounded =
        (call->arg_count > OWN_LIMITS && call->args[OWN_LIMITS].len > 0) ||
        heard_has_limits(call);
    if (heard_reply(call, SAID_STATE) % 2 != model->is_paused)
        topic_problem(model, "the topic is %s, and a claim says otherwise",
                      model->is_paused ? "paused" : "not paused");
    look_at_leases(call);
    for (size_t i = FIRST_NODE; i + 1 < call->reply->elements; i += 2)
        take_node(call, &claim, call->reply->element[i],
                  call->reply->element[i + 1]);
    if (claim.jobs != (unsigned long long)jobs)
        topic_problem(model, "a claim says that it has %lld jobs, and has %u",
                      jobs, claim.jobs);
    topic_end_claim(model, &claim);
    go_to_sleep(call, &claim);
}

/* --- renewals, starts ---------------------------------------------------- */

void heard_renew(struct call_heard *call)
{
    struct topic *model = call->topic->model;
    size_t first = 1, lost = 0;

    if (call->arg_count > 1 && call->args[1].len > 0 &&
        call->args[1].ptr[0] == '!')
        first = 2;
    for (size_t i = first; i < call->arg_count; i++) {
        struct lease *lease =
            topic_lease(model, (uint64_t)heard_int(call->args[i]));

        if (lease == NULL) {
            lost++;
        } else if (first == 1) {
            lease->length_ms = heard_int(call->args[0]);
            lease->deadline_ms = call->now_ms + lease->length_ms;
        }
    }
    if (call->reply->elements != lost)
        topic_problem(model, "%zu claims are lost, and a renewal says %zu",
                      lost, call->reply->elements);
}

void heard_start(struct call_heard *call)
{
    unsigned lo = 0, hi = 0;
    struct job *job;
    bool runs;

    if (!heard_node(call->args[0].ptr, call->args[0].len, &lo, &hi))
        return;
    job = heard_job(call, call->args[0].ptr, lo);
    runs = job_runs(job, (uint64_t)heard_int(call->args[1]));
    if (runs)
        job->is_started = true;
    if (heard_reply(call, 0) != runs)
        topic_problem(call->topic->model, "%s %s, and a start says %lld",
                      job == NULL ? "an unknown job" : job->id,
                      runs ? "runs" : "does not run", heard_reply(call, 0));
}

/* --- one verdict --------------------------------------------------------- */

enum { OFFERS = 7 }; /* the worker that offers itself */

/* The worker sleeps, and may be handed a job, unless there is more to do. */
static void offer(struct call_heard *call)
{
    struct topic *model = call->topic->model;
    char *worker = heard_text(call->args[OFFERS]);
    int64_t now_us = server_time(call->server), at_ms = topic_next_ms(model);
    long long left_us = heard_reply(call, 1), wanted_us = 0;

    if (model->is_paused || heard_has_limits(call) ||
        !heard_is_server(call, call->args[OFFERS + 1]))
        wanted_us = 0;
    else if (at_ms == INT64_MAX)
        wanted_us = -1;
    else if (at_ms * 1000 > now_us)
        wanted_us = at_ms * 1000 - now_us;
    if (left_us != wanted_us)
        topic_problem(model,
                      "%s may wait for a job for %lld us, and the answer says "
                      "%lld",
                      worker, wanted_us, left_us);
    if (left_us != 0) {
        topic_sleep(model, worker, wake_ms(call, left_us), false);
        topic_offer(model, worker, heard_int(call->args[OFFERS - 1]), now_us);
    }
    free(worker);
}

void heard_settle_one(struct call_heard *call)
{
    struct topic *model = call->topic->model;
    uint64_t token = (uint64_t)heard_int(call->args[1]);
    unsigned slot = (unsigned)heard_int(call->args[2]);
    struct job *job = heard_job(call, call->args[0].ptr, slot);
    bool counts = job_runs(job, token);

    if (heard_reply(call, 0) != counts)
        topic_problem(model,
                      "the verdict on slot %u of %.16s %s, and the "
                      "answer is %lld",
                      slot, call->args[0].ptr,
                      counts ? "counts" : "does not count",
                      heard_reply(call, 0));
    if (counts) {
        topic_end(model, job);
        model->count.settled++;
    }
    if (!heard_is(call->args[call->arg_count - 1], "0"))
        topic_close(model, token);
    if (counts && heard_is(call->args[call->arg_count - 1], "2"))
        offer(call);
}
