/* SPDX-License-Identifier: MIT */
#include "tests/model/heard.h"

#include <stdlib.h>
#include <string.h>

/* Many verdicts in one call. scripts/delay/settle.lua says how it is
 * written. */

enum { NODES = 1, BACK, CLOSED, MOVES, ENDS, MOST_DEAD, UNSTARTED };
enum { FIRST_PACK_KEY = 10, OF_MIXED = 65536, LEFT_OUT = 256 };
enum { SNOOZE, RETRY, NEW, DEAD_AWAY };
enum { A_NODE = 5, A_BACK = 4, A_MOVE = 7, AN_END = 3 };
enum {
    SAID_DUPLICATES = -1,
    SAID_ENTRY = -2,
    SAID_LENGTH = -3,
    SAID_EVICTED = -4
};
static const int64_t MIXED = INT64_C(1) << 45;

enum fate { LOST, REFUSED, SETTLED, STAYS };

struct settling {
    struct call_heard *call;
    struct topic *model;
    msgpack_unpacked nodes, back, closed, moves, ends;
    enum fate *fates; /* of each source */
    struct job **jobs;
    bool leaves_out, wakes; /* who waits for others to end */
    size_t returned;
    long long settled, duplicates, evicted;
    bool has_died;  /* a job did */
    size_t refused; /* and left out */
};

static const msgpack_object *item(const msgpack_unpacked *list, size_t i)
{
    return &list->data.via.array.ptr[i];
}

static size_t size_of(const msgpack_unpacked *list)
{
    return list->data.via.array.size;
}

static struct slice text_of(const msgpack_object *object)
{
    return (struct slice){object->via.str.ptr, object->via.str.size};
}

static bool has_slot(struct slice slots, unsigned slot)
{
    return slots.len == 0 || memchr(slots.ptr, (int)slot, slots.len) != NULL;
}

/* --- before the call ----------------------------------------------------- */

void drafts_of_settle(struct call_heard *call)
{
    msgpack_unpacked moves;

    if (call->arg_count <= MOST_DEAD)
        return;
    heard_list(call->args[MOVES], &moves);
    for (size_t m = 0; m < size_of(&moves); m += A_MOVE) {
        const msgpack_object *key = item(&moves, m);
        static const struct slice none = {"............", SEQ_LEN};

        if (key->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
            heard_draft(call, call->keys[key->via.u64 - 1], NULL);
        else
            heard_draft(call, none, NULL); /* the script makes it */
    }
    msgpack_unpacked_destroy(&moves);
}

static bool makes_pack(const struct settling *settling, size_t m)
{
    return item(&settling->moves, m * A_MOVE)->type == MSGPACK_OBJECT_STR;
}

static bool is_missing(const struct settling *settling, size_t m)
{
    return !makes_pack(settling, m) &&
           settling->call->drafts[m].place == MISSING;
}

static bool is_in_use(const struct settling *settling, size_t m)
{
    return !makes_pack(settling, m) &&
           settling->call->drafts[m].place == IN_USE;
}

static size_t move_count(const struct settling *settling)
{
    return size_of(&settling->moves) / A_MOVE;
}

static const msgpack_object_array *sources_of(const struct settling *settling,
                                              size_t m)
{
    return &item(&settling->moves, m * A_MOVE + 5)->via.array;
}

static uint64_t form_of(const struct settling *settling, size_t m)
{
    enum { HAS_MARK = 4 }; /* added if the pack ends with a token */

    return item(&settling->moves, m * A_MOVE + 4)->via.u64 % HAS_MARK;
}

static bool lacks_some(const struct settling *settling)
{
    for (size_t m = 0; m < move_count(settling); m++)
        if (is_missing(settling, m))
            return true;
    return false;
}

/* --- what counts --------------------------------------------------------- */

/* Jobs whose pack is not there stay, and with them those that share a pack with
 * one; those whose pack was there before are a repeat's. */
static void mark_sources(struct settling *settling)
{
    bool is_over = false;

    for (size_t m = 0; m < move_count(settling); m++) {
        const msgpack_object_array *sources = sources_of(settling, m);

        for (size_t i = 0; i < sources->size; i++) {
            if (is_missing(settling, m))
                settling->fates[sources->ptr[i].via.u64] = STAYS;
            else if (is_in_use(settling, m))
                settling->fates[sources->ptr[i].via.u64] = REFUSED;
        }
    }
    while (!is_over) {
        is_over = true;
        for (size_t m = 0; m < move_count(settling); m++) {
            const msgpack_object_array *sources = sources_of(settling, m);
            size_t stay = 0;

            for (size_t i = 0; i < sources->size; i++)
                stay += settling->fates[sources->ptr[i].via.u64] == STAYS;
            if (stay == 0 || stay == sources->size)
                continue;
            is_over = false;
            for (size_t i = 0; i < sources->size; i++)
                settling->fates[sources->ptr[i].via.u64] = STAYS;
        }
    }
}

/* Is the verdict on this job among the refused ones of the answer? */
static bool is_told(const struct settling *settling, size_t index,
                    long long slot)
{
    const struct call_heard *call = settling->call;

    for (size_t i = 1; i + 1 < call->reply->elements; i += 2)
        if (heard_reply(call, i) == (long long)index &&
            heard_reply(call, i + 1) == slot)
            return true;
    return false;
}

static void judge_slot(struct settling *settling, size_t index, unsigned slot,
                       const char *node, uint64_t token)
{
    enum fate *fate = &settling->fates[index * SLOTS + slot];
    struct job **job = &settling->jobs[index * SLOTS + slot];
    bool is_refused;

    *job = heard_job(settling->call, node, slot);
    if (*fate == LOST)
        *fate = job_runs(*job, token) ? SETTLED : REFUSED;
    is_refused =
        is_told(settling, index, slot + (*fate == STAYS ? LEFT_OUT : 0));
    if (is_refused != (*fate != SETTLED))
        topic_problem(settling->model,
                      "the verdict on %s (slot %u of %.16s) %s, and the "
                      "answer says that it %s",
                      *job == NULL ? "an unknown job" : (*job)->id, slot, node,
                      *fate == SETTLED ? "counts" : "does not count",
                      is_refused ? "does not" : "does");
    settling->refused += *fate != SETTLED;
    settling->settled += *fate == SETTLED;
    if (*fate == SETTLED)
        (*job)->token = 0; /* another verdict in this call does not count */
}

static void judge_nodes(struct settling *settling)
{
    for (size_t i = 0; i < size_of(&settling->nodes); i += A_NODE) {
        struct slice node = text_of(item(&settling->nodes, i + 1));
        uint64_t token = item(&settling->nodes, i + 2)->via.u64;
        struct slice slots = text_of(item(&settling->nodes, i + 4));
        unsigned lo, hi;

        if (!heard_node(node.ptr, node.len, &lo, &hi))
            server_fail("a verdict names %.*s", (int)node.len, node.ptr);
        for (unsigned slot = lo; slot <= hi; slot++)
            if (has_slot(slots, slot))
                judge_slot(settling, i / A_NODE, slot, node.ptr, token);
    }
}

/* --- what becomes of them ------------------------------------------------ */

/* A job that another one adds with its verdict. */
static struct job *add_new(struct settling *settling, const char *id,
                           const char *lane, int64_t due_ms)
{
    if (topic_find(settling->model, id) != NULL) {
        settling->duplicates++;
        return NULL;
    }
    return topic_enter(settling->model, id, lane, due_ms);
}

/* One job of a new pack. Returns it where it waits here. */
static struct job *move_slot(struct settling *settling, size_t m, unsigned slot,
                             const char *lane, int64_t due_ms)
{
    size_t source = sources_of(settling, m)->ptr[slot].via.u64;
    uint64_t form = form_of(settling, m);
    bool is_away = item(&settling->moves, m * A_MOVE + 6)->via.str.size > 0;
    struct topic *model = settling->model;

    if (settling->fates[source] != SETTLED)
        return NULL;
    model->count.failed += form == DEAD_AWAY;
    model->count.retried += form == RETRY;
    model->count.snoozed += form == SNOOZE;
    if (is_away)
        return NULL;
    if (form == NEW)
        return add_new(settling, settling->call->drafts[m].ids[slot], lane,
                       due_ms);
    topic_again(model, settling->jobs[source], due_ms);
    return settling->jobs[source];
}

static void move(struct settling *settling, size_t m)
{
    const struct draft *draft = &settling->call->drafts[m];
    const msgpack_object_array *sources = sources_of(settling, m);
    struct slice when = text_of(item(&settling->moves, m * A_MOVE + 3));
    struct pack *pack = NULL;
    int64_t due[SLOTS] = {0};
    char *lane;

    if (is_missing(settling, m) || is_in_use(settling, m))
        return;
    heard_when(settling->call, when, sources->size, due, &lane);
    if (!makes_pack(settling, m))
        pack = heard_pack_new(settling->call, draft->seq, sources->size);
    for (unsigned slot = 0; slot < sources->size; slot++) {
        struct job *job = move_slot(settling, m, slot, lane, due[slot]);

        if (pack != NULL)
            pack->jobs[slot] = job;
    }
    free(lane);
}

static void end(struct settling *settling, size_t e)
{
    size_t source = item(&settling->ends, e)->via.u64;
    struct slice record = text_of(item(&settling->ends, e + 2));
    struct job *job = settling->jobs[source];

    if (settling->fates[source] != SETTLED)
        return;
    if (record.len == 0) {
        settling->model->count.expired++;
        topic_end(settling->model, job);
    } else {
        topic_die(settling->model, job);
        settling->has_died = true;
    }
}

static void give_back(struct settling *settling, size_t b)
{
    struct slice node = text_of(item(&settling->back, b));
    uint64_t token = item(&settling->back, b + 1)->via.u64;
    int64_t due_ms = (int64_t)item(&settling->back, b + 2)->via.u64;
    struct slice slots = text_of(item(&settling->back, b + 3));
    bool is_mixed = due_ms >= MIXED;
    size_t before = settling->returned;
    int64_t entered_ms = settling->model->entered_ms;
    unsigned lo, hi;

    due_ms -= is_mixed ? MIXED : 0;
    if (!heard_node(node.ptr, node.len, &lo, &hi))
        server_fail("what goes back is %.*s", (int)node.len, node.ptr);
    for (unsigned slot = lo; slot <= hi; slot++) {
        struct job *job = heard_job(settling->call, node.ptr, slot);

        if (!has_slot(slots, slot) || !job_runs(job, token))
            continue;
        settling->returned++;
        topic_return(settling->model, job,
                     is_mixed && lo < hi ? job->due_ms : due_ms);
    }
    if (settling->returned == before)
        return;
    settling->model->entered_ms = /* the worker that is woken comes by then */
        due_ms < entered_ms ? due_ms : entered_ms;
}

/* Jobs that are done, or whose way leads to another topic, leave first: a new
 * job may have the id. */
static void end_done(struct settling *settling)
{
    size_t sources = size_of(&settling->nodes) / A_NODE * SLOTS;
    bool *stays = calloc(sources + 1, sizeof(*stays));

    if (stays == NULL)
        server_fail("the listener has no memory for verdicts");
    for (size_t m = 0; m < move_count(settling); m++)
        for (uint32_t i = 0;
             form_of(settling, m) < NEW && i < sources_of(settling, m)->size;
             i++)
            stays[sources_of(settling, m)->ptr[i].via.u64] = true;
    for (size_t e = 0; e < size_of(&settling->ends); e += AN_END)
        stays[item(&settling->ends, e)->via.u64] = true;
    for (size_t i = 0; i < sources; i++)
        if (settling->fates[i] == SETTLED && !stays[i])
            topic_end(settling->model, settling->jobs[i]);
    free(stays);
}

static void apply(struct settling *settling)
{
    const struct call_heard *call = settling->call;

    end_done(settling);
    for (size_t b = 0; b < size_of(&settling->back); b += A_BACK)
        give_back(settling, b);
    for (size_t m = 0; m < move_count(settling); m++)
        move(settling, m);
    for (size_t e = 0; e < size_of(&settling->ends); e += AN_END)
        end(settling, e);
    if (settling->has_died)
        settling->evicted = (long long)topic_drop_oldest(
            settling->model, (size_t)heard_int(call->args[MOST_DEAD]));
    for (size_t i = 0; i < size_of(&settling->closed); i++)
        topic_close(settling->model, item(&settling->closed, i)->via.u64);
    settling->model->count.settled += settling->settled;
}

/* What stands behind the refused ones. */
static void judge_rest(const struct settling *settling)
{
    const struct call_heard *call = settling->call;
    long long duplicates = 0, evicted = 0;
    size_t refused = 0;

    for (size_t i = 1; i + 1 < call->reply->elements; i += 2) {
        long long what = heard_reply(call, i);

        refused += what >= 0;
        if (what == SAID_DUPLICATES)
            duplicates = heard_reply(call, i + 1);
        else if (what == SAID_EVICTED)
            evicted = heard_reply(call, i + 1);
    }
    if (heard_reply(call, 0) != settling->settled ||
        refused != settling->refused || duplicates != settling->duplicates ||
        evicted != settling->evicted)
        topic_problem(settling->model,
                      "%lld verdicts count, %zu do not, %lld new jobs exist, "
                      "%lld dead ones went; the answer says %lld, %zu, %lld "
                      "and %lld",
                      settling->settled, settling->refused,
                      settling->duplicates, settling->evicted,
                      heard_reply(call, 0), refused, duplicates, evicted);
}

static void judge(struct settling *settling)
{
    mark_sources(settling);
    judge_nodes(settling);
    apply(settling);
    judge_rest(settling);
    if (settling->wakes &&
        settling->settled + (long long)settling->returned > 0 &&
        topic_first_due_ms(settling->model) <= settling->model->now_ms &&
        settling->model->entered_ms > settling->model->now_ms)
        settling->model->entered_ms = settling->model->now_ms;
}

void heard_settle(struct call_heard *call)
{
    struct settling settling = {.call = call, .model = call->topic->model};
    size_t sources;

    if (call->arg_count <= MOST_DEAD)
        return;
    heard_list(call->args[NODES], &settling.nodes);
    heard_list(call->args[BACK], &settling.back);
    heard_list(call->args[CLOSED], &settling.closed);
    heard_list(call->args[MOVES], &settling.moves);
    heard_list(call->args[ENDS], &settling.ends);
    settling.leaves_out = call->arg_count > UNSTARTED &&
                          heard_int(call->args[call->arg_count - 1]) % 2 == 1;
    settling.wakes = call->arg_count > UNSTARTED &&
                     heard_int(call->args[call->arg_count - 1]) % 4 >= 2;
    sources = size_of(&settling.nodes) / A_NODE * SLOTS;
    settling.fates = calloc(sources + 1, sizeof(settling.fates[0]));
    settling.jobs = calloc(sources + 1, sizeof(settling.jobs[0]));
    if (settling.fates == NULL || settling.jobs == NULL)
        server_fail("the listener has no memory for verdicts");
    if (!lacks_some(&settling) || settling.leaves_out)
        judge(&settling);
    else if (heard_reply(call, 0) != -1)
        topic_problem(call->topic->model,
                      "a new pack is not there, and verdicts count");
    free(settling.fates);
    free(settling.jobs);
    msgpack_unpacked_destroy(&settling.nodes);
    msgpack_unpacked_destroy(&settling.back);
    msgpack_unpacked_destroy(&settling.closed);
    msgpack_unpacked_destroy(&settling.moves);
    msgpack_unpacked_destroy(&settling.ends);
}
