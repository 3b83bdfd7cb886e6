/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "adapters/redis/node.h"
#include "adapters/redis/pack.h"
#include "tests/chaos/model/run.h"

/* Reads all keys and compares them with each other and with the model. */

static redisReply *read_scores(struct run *run, const char *key)
{
    call_command(&run->caller, "ZRANGE", 4);
    call_keys(&run->caller, key);
    call_str(&run->caller, "0");
    call_str(&run->caller, "-1");
    call_str(&run->caller, "WITHSCORES");
    call_queue(&run->caller);
    return call_reply(&run->caller);
}

static void check_count(struct run *run, const char *what, size_t wanted,
                        size_t got)
{
    char one[24], two[24];

    (void)snprintf(one, sizeof(one), "%zu", wanted);
    (void)snprintf(two, sizeof(two), "%zu", got);
    if (wanted != got)
        run_differs(run, what, one, two);
}

/* --- nodes -------------------------------------------------------------- */

static bool is_tree_node(unsigned slots, unsigned lo, unsigned hi)
{
    unsigned from = 0, to = slots - 1;

    while (from != lo || to != hi) {
        unsigned part = left_part(from, to);

        if (from == to || lo < from || hi > to)
            return false;
        if (lo < from + part)
            to = from + part - 1;
        else
            from += part;
    }
    return true;
}

/* The pack whose name `name` begins with. */
static struct pack *pack_named(const struct run *run, const char *name)
{
    char seq[SEQ_LEN + 1] = "";
    size_t number;

    (void)snprintf(seq, sizeof(seq), "%s", name);
    number = strtoul(seq, NULL, 16);
    if (number == 0 || number > run->model.pack_count)
        run_differs(run, "a name", "a pack of the model", name);
    return run->model.packs[number - 1];
}

/* What waits is due before the mark as a whole, or behind it. */
static void check_mark(struct run *run, const struct job *first,
                       const struct job *last, const char *name)
{
    int64_t mark = model_mark(&run->model, first->pack);

    if (first->state == WAITS && first->due_ms <= mark && last->due_ms > mark &&
        !run->options->clock_goes_back)
        run_differs(run, "a node", "one side of the mark", name);
}

/* A node is of its pack's tree, and its jobs are there and have its score. */
static size_t check_node(struct run *run, const redisReply *name,
                         const redisReply *score, enum state state)
{
    struct weir_slice slice = {(const uint8_t *)name->str, (size_t)name->len};
    struct pack *pack;
    double number = strtod(score->str, NULL), wanted;
    unsigned lo, hi;
    int64_t last_ms = 0;

    if (weir__node_read(slice, &lo, &hi) != WEIR_OK)
        run_differs(run, "a node's name", "a name", name->str);
    pack = pack_named(run, name->str);
    if (!is_tree_node(pack->count, lo, hi))
        run_differs(run, "a node", "one of its pack's tree", name->str);
    for (unsigned slot = lo; slot <= hi; slot++) {
        const struct job *job = &pack->jobs[slot];

        if (job->state != state || job->lo != lo || job->hi != hi)
            run_differs(run, "a node", "the jobs of the model", name->str);
        wanted = (double)(state == WAITS ? pack->jobs[lo].due_ms
                                         : (int64_t)job->token);
        if (state == WAITS && pack->is_mixed)
            wanted += MIXED_SCORE;
        wanted += job->ended / 128.0 + job->is_started / 256.0;
        if (fabs(wanted - number) > 0.0001)
            run_differs(run, "a node's score", name->str, score->str);
        if (job->due_ms < last_ms)
            run_differs(run, "a node", "rising due times", name->str);
        last_ms = job->due_ms;
    }
    check_mark(run, &pack->jobs[lo], &pack->jobs[hi], name->str);
    return hi - lo + 1;
}

/* Nodes have different names, and equal ones have equal jobs: if there are as
 * many slots as live jobs, each is in exactly one node. */
static void check_nodes(struct run *run)
{
    redisReply *waiting = read_scores(run, "wait");
    redisReply *running = read_scores(run, "run");
    size_t slots = 0;

    for (size_t i = 0; i < waiting->elements; i += 2)
        slots += check_node(run, waiting->element[i], waiting->element[i + 1],
                            WAITS);
    for (size_t i = 0; i < running->elements; i += 2)
        slots +=
            check_node(run, running->element[i], running->element[i + 1], RUNS);
    check_count(run, "slots in nodes", run->model.live_count, slots);
    freeReplyObject(waiting);
    freeReplyObject(running);
}

/* --- packs -------------------------------------------------------------- */

static void check_slot(struct run *run, const struct weir__pack *read,
                       const struct weir_slice *ids, const struct job *job)
{
    struct weir_slice record = weir__pack_record(read, job->slot);
    char text[64];

    body_text(job->body, text);
    if (record.len != strlen(text) || memcmp(record.ptr, text, record.len) != 0)
        run_differs(run, "a record", text, (const char *)record.ptr);
    id_text(job->id, text);
    if (read->has_ids && (ids[job->slot].len != strlen(text) ||
                          memcmp(ids[job->slot].ptr, text, strlen(text)) != 0))
        run_differs(run, "an id in a pack", text, "another one");
}

static void check_pack(struct run *run, const struct pack *pack,
                       const redisReply *bytes)
{
    struct weir_slice slice = {(const uint8_t *)bytes->str, (size_t)bytes->len};
    struct weir_slice ids[SLOTS];
    struct weir__pack read;

    if (bytes->type != REDIS_REPLY_STRING ||
        weir__pack_read(slice, &read) != WEIR_OK)
        run_differs(run, "a pack", "a pack", "nothing readable");
    check_count(run, "slots of a pack", pack->count, read.count);
    check_count(run, "gone slots of a pack", pack->count - pack->live,
                slice.ptr[3]);
    if (read.has_ids)
        weir__pack_ids(&read, ids);
    for (unsigned slot = 0; slot < pack->count; slot++)
        if (pack->jobs[slot].state != GONE)
            check_slot(run, &read, ids, &pack->jobs[slot]);
}

static void remove_staged(struct run *run, struct pack *pack)
{
    pack->is_staged = false;
    call_command(&run->caller, "DEL", 1);
    call_pack_key(&run->caller, pack->number);
    call_queue(&run->caller);
    freeReplyObject(call_reply(&run->caller));
}

/* In use, or staged and about to vanish. */
static void check_pack_key(struct run *run, struct pack *pack, long long ttl,
                           const redisReply *bytes)
{
    char seq[SEQ_LEN + 1];

    seq_text(pack->number, seq);
    if (!pack->is_staged && !pack->is_in_use)
        run_differs(run, "packs", "none that leaked", seq);
    if ((ttl >= 0) != pack->is_staged)
        run_differs(run, "a pack's time to live",
                    pack->is_staged ? "some" : "none", seq);
    if (pack->is_in_use)
        check_pack(run, pack, bytes);
    else
        remove_staged(run, pack);
}

static redisReply *read_packs(struct run *run, const redisReply *keys,
                              bool are_ttls)
{
    static const char script[] =
        "local ttls = {} for i, key in ipairs(KEYS) do "
        "ttls[i] = redis.call('PTTL', key) end return ttls";

    call_command(&run->caller, are_ttls ? "EVAL" : "MGET",
                 keys->elements + (are_ttls ? 2 : 0));
    if (are_ttls) {
        call_str(&run->caller, script);
        call_int(&run->caller, (int64_t)keys->elements);
    }
    for (size_t i = 0; i < keys->elements; i++)
        call_str(&run->caller, keys->element[i]->str);
    call_queue(&run->caller);
    return call_reply(&run->caller);
}

static redisReply *read_keys(struct run *run, const char *pattern)
{
    call_command(&run->caller, "KEYS", 1);
    call_str(&run->caller, pattern);
    call_queue(&run->caller);
    return call_reply(&run->caller);
}

static size_t packs_in_use(const struct model *model)
{
    size_t count = 0;

    for (size_t i = 0; i < model->live_count; i++) {
        const struct job *job = model->live[i];
        unsigned first = 0;

        while (job->pack->jobs[first].state == GONE)
            first++;
        count += first == job->slot; /* one job counts for its pack */
    }
    return count;
}

static void check_packs(struct run *run)
{
    static const char prefix[] = "weir:{t}:p:";
    size_t in_use = 0, wanted = packs_in_use(&run->model);
    redisReply *keys = read_keys(run, "weir:{t}:p:*"), *bytes, *ttls;

    if (keys->elements == 0) {
        check_count(run, "packs in use", wanted, 0);
        freeReplyObject(keys);
        return;
    }
    bytes = read_packs(run, keys, false);
    ttls = read_packs(run, keys, true);
    for (size_t i = 0; i < keys->elements; i++) {
        const char *name = keys->element[i]->str + sizeof(prefix) - 1;
        struct pack *pack = pack_named(run, name);

        check_pack_key(run, pack, ttls->element[i]->integer, bytes->element[i]);
        in_use += pack->is_in_use;
    }
    check_count(run, "packs in use", wanted, in_use);
    freeReplyObject(keys);
    freeReplyObject(bytes);
    freeReplyObject(ttls);
}

/* There is no key that nobody would remove. */
static void check_keys(struct run *run)
{
    static const char known[] =
        " weir:{t}:wait weir:{t}:run weir:{t}:lease weir:{t}:ids weir:{t}:meta "
        "weir:{t}:dead weir:{t}:rec weir:{t}:idle weir:{t}:late "
        "weir:{t}:started weir:{t}:seen weir:{t}:options weir:{t}:relay "
        "weir:{t}:held weir:{t}:due clock ";
    redisReply *keys = read_keys(run, "*");

    for (size_t i = 0; i < keys->elements; i++) {
        const char *name = keys->element[i]->str;

        if (strncmp(name, "weir:{t}:p:", 11) != 0 &&
            strncmp(name, "weir:{t}:o:", 11) != 0 &&
            strstr(known, name) == NULL)
            run_differs(run, "a key", known, name);
    }
    freeReplyObject(keys);
}

void walk(struct run *run)
{
    const char *operation = run->operation;

    run->operation = "walk";
    check_nodes(run);
    check_packs(run);
    check_keys(run);
    walk_tables(run);
    run->walks++;
    run->operation = operation;
}
