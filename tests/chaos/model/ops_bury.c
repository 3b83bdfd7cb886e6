/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "adapters/redis/node.h"
#include "tests/chaos/model/run.h"

/* Dead jobs that move to another topic, the grave. That is empty but for some
 * of their ids, is compared with what the model says, and emptied again. */

enum { MOST_NODES = 12 };

/* --- the call ----------------------------------------------------------- */

struct id run_source_id(const struct run *run, const struct settle_call *call,
                        struct source source)
{
    uint32_t pack = call->entry[source.entry].node.pack;

    return job_id(&run->model.packs[pack - 1]->jobs[source.slot]);
}

size_t run_draft_entries(struct run *run, struct settle_call *call, size_t most,
                         struct source sources[CALL_SLOTS])
{
    unsigned nodes = 1 + pick(run, MOST_NODES);
    size_t count = 0;

    for (; call->entries < nodes; call->entries++) {
        const struct held *held =
            &run->held[pick(run, (unsigned)run->held_count)];
        unsigned lo = held->node.lo, hi = held->node.hi;
        struct entry *entry = &call->entry[call->entries];

        if (count + hi - lo + 1 > most)
            return count;
        *entry = (struct entry){.node = held->node, .token = held->token};
        entry->is_whole = chance(run, 60);
        for (unsigned slot = lo; slot <= hi; slot++) {
            entry->slots[slot] =
                entry->is_whole || slot == lo || chance(run, 50);
            if (entry->slots[slot])
                sources[count++] =
                    (struct source){(unsigned)call->entries, slot, false};
        }
    }
    return count;
}

static struct pack *pack_of(struct run *run, const struct settle_call *call,
                            const struct source *sources, unsigned count,
                            bool has_ids)
{
    struct pack *pack = model_pack_new(&run->model, count, has_ids);

    for (unsigned slot = 0; slot < count && has_ids; slot++)
        pack->jobs[slot].id = run_source_id(run, call, sources[slot]);
    return pack;
}

static void take_id(struct run *run, struct id id)
{
    char text[24];

    id_text(id, text);
    call_command(&run->caller, "HSET", 3);
    call_grave_keys(&run->caller, "ids");
    call_str(&run->caller, text);
    call_str(&run->caller, "taken");
    call_queue(&run->caller);
}

/* An id comes again where a node does, and is taken for all of these. */
static bool is_taken(const struct settle_call *call, struct id id)
{
    for (size_t i = 0; i < call->burials; i++) {
        const struct burial *burial = &call->burial[i];

        for (unsigned slot = 0; slot < burial->named->count; slot++)
            if (burial->is_taken[slot] &&
                same_id(burial->named->jobs[slot].id, id))
                return true;
    }
    return false;
}

static void draft_burial(struct run *run, struct settle_call *call,
                         const struct source *sources, unsigned count)
{
    struct burial *burial = &call->burial[call->burials++];
    unsigned percent = chance(run, 50) ? 0 : chance(run, 50) ? 40 : 100;

    memset(burial, 0, sizeof(*burial));
    memcpy(burial->sources, sources, count * sizeof(sources[0]));
    burial->named = pack_of(run, call, sources, count, true);
    burial->made = pack_of(run, call, sources, count, false);
    run_fill(run, burial->named);
    for (unsigned slot = 0; slot < count; slot++) {
        burial->made->jobs[slot].body = burial->named->jobs[slot].body;
        if (chance(run, percent)) {
            burial->is_taken[slot] = true;
            take_id(run, burial->named->jobs[slot].id);
        }
    }
}

static void draft(struct run *run, struct settle_call *call)
{
    struct source sources[CALL_SLOTS];
    size_t count, at = 0;

    call->entries = call->burials = 0;
    call->most_dead = 40;
    call->is_other_kind = chance(run, 20);
    count = run_draft_entries(run, call, CALL_SLOTS, sources);
    while (at < count) {
        size_t most = count - at > SLOTS ? SLOTS : count - at;

        draft_burial(run, call, sources + at, (unsigned)most);
        at += most;
    }
    for (size_t i = 0; i < call->burials; i++)
        for (unsigned slot = 0; slot < call->burial[i].named->count; slot++)
            if (is_taken(call, call->burial[i].named->jobs[slot].id))
                call->burial[i].is_taken[slot] = true;
}

static void stage(struct run *run, const struct settle_call *call,
                  bool forgets_one)
{
    for (size_t i = 0; i < call->burials; i++) {
        if (i > 0 || !forgets_one)
            run_stage_grave(run, call->burial[i].named);
        run_stage_grave(run, call->burial[i].made);
    }
}

/* --- the grave ---------------------------------------------------------- */

static void say_slots(const struct pack *pack, const bool kept[SLOTS],
                      struct text *ret_text)
{
    char seq[SEQ_LEN + 1];
    unsigned count = 0;

    seq_text(pack->number, seq);
    for (unsigned slot = 0; slot < pack->count; slot++) {
        count += kept[slot];
        if (kept[slot])
            text_format(ret_text, "%s %u\n", seq, slot);
    }
    if (count > 0)
        text_format(ret_text, "%s gone %u\n", seq, pack->count - count);
}

/* Its packs, the nodes that wait now, the ids that point into it. */
static void say_grave(const struct settle_call *call, struct text *ret_text)
{
    char id[24], seq[SEQ_LEN + 1];
    long long added = 0;

    for (size_t i = 0; i < call->burials; i++) {
        const struct burial *burial = &call->burial[i];

        say_slots(burial->named, burial->in_named, ret_text);
        say_slots(burial->made, burial->in_made, ret_text);
        seq_text(burial->named->number, seq);
        for (unsigned slot = 0; slot < burial->named->count; slot++) {
            added += burial->in_named[slot] || burial->in_made[slot];
            if (!burial->in_named[slot])
                continue;
            id_text(burial->named->jobs[slot].id, id);
            text_format(ret_text, "id %s %s\n", id, seq);
        }
    }
    text_format(ret_text, "added %lld\n", added);
}

/* The same from the server, pack by pack in the same order. */
static const char grave_script[] =
    "local out, g = {}, 'weir:{g}:' "
    "local waits = {} "
    "local nodes = redis.call('ZRANGE', g .. 'wait', 0, -1, 'WITHSCORES') "
    "for i = 1, #nodes, 2 do "
    "  if nodes[i + 1] ~= ARGV[1] then out[#out + 1] = 'not now' end "
    "  local a, b, c, d = string.byte(nodes[i], 13, 16) "
    "  local seq = string.sub(nodes[i], 1, 12) "
    "  for slot = (a - 48) * 16 + b - 48, (c - 48) * 16 + d - 48 do "
    "    local key = seq .. ' ' .. slot "
    "    waits[key] = (waits[key] or 0) + 1 "
    "  end "
    "end "
    "local ids = redis.call('HGETALL', g .. 'ids') "
    "local function pack(seq) "
    "  local bytes = redis.call('GET', g .. 'p:' .. seq) "
    "  if not bytes or redis.call('PTTL', g .. 'p:' .. seq) >= 0 then return "
    "  end "
    "  for slot = 0, string.byte(bytes, 3) do "
    "    for i = 1, waits[seq .. ' ' .. slot] or 0 do "
    "      out[#out + 1] = seq .. ' ' .. slot "
    "    end "
    "  end "
    "  out[#out + 1] = seq .. ' gone ' .. string.byte(bytes, 4) "
    "end "
    "for i = 2, #ARGV, 2 do "
    "  pack(ARGV[i]) pack(ARGV[i + 1]) "
    "  local names = redis.call('GET', g .. 'p:' .. ARGV[i]) "
    "  if names then "
    "    names = {cmsgpack.unpack_one(names, 8)} "
    "    for slot, id in ipairs(names[2]) do "
    "      if redis.call('HGET', g .. 'ids', id) == ARGV[i] and "
    "         waits[ARGV[i] .. ' ' .. slot - 1] then "
    "        out[#out + 1] = 'id ' .. id .. ' ' .. ARGV[i] "
    "      end "
    "    end "
    "  end "
    "end "
    "out[#out + 1] = 'added ' .. "
    "    (redis.call('HGET', g .. 'meta', 'added') or 0) "
    "out[#out + 1] = '' "
    "return table.concat(out, '\\n')";

static void check_grave(struct run *run, const struct settle_call *call)
{
    char seq[SEQ_LEN + 1];

    call_command(&run->caller, "EVAL", 3 + 2 * call->burials);
    call_str(&run->caller, grave_script);
    call_int(&run->caller, 0);
    call_int(&run->caller, model_now_ms(&run->model));
    for (size_t i = 0; i < call->burials; i++) {
        seq_text(call->burial[i].named->number, seq);
        call_str(&run->caller, seq);
        seq_text(call->burial[i].made->number, seq);
        call_str(&run->caller, seq);
    }
    call_queue(&run->caller);
    say_grave(call, &run->wanted);
    run_check(run);
}

void run_empty(struct run *run, char topic)
{
    static const char script[] =
        "for _, key in ipairs(redis.call('KEYS', 'weir:{' .. ARGV[1] .. '}:*'))"
        " do redis.call('DEL', key) end return 1";
    const char name[] = {topic, '\0'};

    call_command(&run->caller, "EVAL", 3);
    call_str(&run->caller, script);
    call_int(&run->caller, 0);
    call_str(&run->caller, name);
    call_queue(&run->caller);
}

static void set_kind(struct run *run)
{
    call_command(&run->caller, "HSET", 3);
    call_grave_keys(&run->caller, "meta");
    call_str(&run->caller, "kind");
    call_str(&run->caller, "other");
    call_queue(&run->caller);
}

void op_bury(struct run *run)
{
    struct settle_call *call = run->burial;

    if (run->held_count == 0)
        return;
    draft(run, call);
    if (call->is_other_kind)
        set_kind(run);
    stage(run, call, chance(run, 5));
    run_settle(run, call);
    check_grave(run, call);
    if (chance(run, 30)) { /* the reply was lost */
        stage(run, call, false);
        run_settle(run, call);
        check_grave(run, call);
    }
    run_empty(run, 'g');
}
