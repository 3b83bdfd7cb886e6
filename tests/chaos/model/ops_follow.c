/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/pack.h"
#include "tests/chaos/model/run.h"

/* Verdicts that bring new jobs, for this topic and for two others, and the way
 * of these through the outbox. Some stay there until the next such call. The
 * other topics are empty but for some ids when jobs come, are compared with
 * what is to be there, and emptied again. */

enum { MOST_SOURCES = 100, MOST_EACH = 2, MOST_NODES = 12 };

/* --- drafting ----------------------------------------------------------- */

/* Sources of what goes into one pack. */
struct list {
    struct source sources[SLOTS];
    unsigned count;
};

static void push(struct list *list, struct source source)
{
    if (list->count < SLOTS)
        list->sources[list->count++] = source;
}

enum { WITH_IDS, WITHOUT, FORMS };

struct drafts {
    struct list retry, dead;
    struct list here[FORMS];
    struct list away[AWAY_TOPICS][FORMS];
};

static struct id source_id(const struct run *run,
                           const struct settle_call *call, struct source source)
{
    uint32_t pack = call->entry[source.entry].node.pack;

    return job_id(&run->model.packs[pack - 1]->jobs[source.slot]);
}

/* Some held nodes, all or some of their slots. Returns how many sources there
 * are. */
static size_t draft_entries(struct run *run, struct settle_call *call,
                            struct source sources[CALL_SLOTS])
{
    unsigned nodes = 1 + pick(run, MOST_NODES);
    size_t count = 0;

    for (; call->entries < nodes; call->entries++) {
        const struct held *held =
            &run->held[pick(run, (unsigned)run->held_count)];
        unsigned lo = held->node.lo, hi = held->node.hi;
        struct entry *entry = &call->entry[call->entries];

        if (count + hi - lo + 1 > MOST_SOURCES)
            return count;
        *entry = (struct entry){.node = held->node, .token = held->token};
        entry->is_whole = chance(run, 60);
        for (unsigned slot = lo; slot <= hi; slot++) {
            entry->slots[slot] =
                entry->is_whole || slot == lo || chance(run, 50);
            if (entry->slots[slot])
                sources[count++] =
                    (struct source){(unsigned)call->entries, slot};
        }
    }
    return count;
}

static void draft_new(struct run *run, struct list lists[FORMS],
                      struct source source, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        push(&lists[chance(run, 60) ? WITH_IDS : WITHOUT], source);
}

/* Done, retried, dead here or dead elsewhere. */
static void draft_verdict(struct run *run, struct settle_call *call,
                          struct drafts *drafts, struct source source)
{
    draft_new(run, drafts->here, source,
              chance(run, 60) ? 0 : pick(run, MOST_EACH + 1));
    for (unsigned topic = 0; topic < AWAY_TOPICS; topic++)
        draft_new(run, drafts->away[topic], source,
                  chance(run, 50) ? 0 : pick(run, MOST_EACH + 1));
    if (chance(run, 20)) {
        push(&drafts->retry, source);
    } else if (chance(run, 20)) {
        push(&drafts->dead, source);
    } else if (chance(run, 15)) {
        struct end *end = &call->end[call->ends++];

        end->source = source;
        end->id = source_id(run, call, source);
        end->body = chance(run, 20) ? 0 : ++run->bodies;
    }
}

static void set_times(struct run *run, struct pack *pack)
{
    static const char forms[] = {'r', 'r', 'a', 'p', 'q'};
    int64_t ms = 0;

    pack->form = PICK(run, forms);
    for (unsigned slot = 0; slot < pack->count; slot++) {
        bool is_new = slot == 0 || !is_one_time(pack);

        if (is_new)
            ms = pick(run, 2000);
        if (is_new && !has_delays(pack))
            ms += model_now_ms(&run->model) - 500;
        pack->jobs[slot].ms = ms;
    }
}

static struct pack *draft_pack(struct run *run, const struct list *list,
                               bool has_ids)
{
    struct pack *pack = model_pack_new(&run->model, list->count, has_ids);

    for (unsigned slot = 0; slot < list->count && has_ids; slot++)
        pack->jobs[slot].id = slot > 0 && chance(run, 10)
                                  ? pack->jobs[slot - 1].id
                                  : (struct id){0, pick(run, USERS)};
    set_times(run, pack);
    run_fill(run, pack);
    return pack;
}

static void draft_move(struct run *run, struct settle_call *call,
                       const struct list *list, bool is_new, bool has_ids)
{
    struct move *move = &call->move[call->moves];

    if (list->count == 0)
        return;
    call->moves++;
    move->is_new = is_new;
    move->is_retry = !is_new;
    memcpy(move->sources, list->sources, sizeof(move->sources));
    move->pack = draft_pack(run, list, has_ids);
    if (chance(run, 30))
        run_set_rising(run, move->pack, 2000);
    for (unsigned slot = 0; slot < list->count && !is_new; slot++)
        move->pack->jobs[slot].id = source_id(run, call, list->sources[slot]);
}

static void draft_out(struct run *run, struct settle_call *call,
                      const struct list *list, unsigned topic, bool has_ids)
{
    struct out *out = &call->out[call->outs];

    if (list->count == 0)
        return;
    call->outs++;
    text_clear(&out->when);
    text_clear(&out->entry);
    out->topic = topic;
    out->is_dead = false;
    out->is_recorded = false;
    out->seat = pick(run, 1000);
    memcpy(out->sources, list->sources, sizeof(out->sources));
    out->pack = draft_pack(run, list, has_ids);
}

static void draft_dead(struct run *run, struct settle_call *call,
                       const struct list *list)
{
    struct out *out = &call->out[call->outs];

    draft_out(run, call, list, 0, true);
    for (unsigned slot = 0; slot < list->count; slot++) {
        out->is_dead = true;
        out->pack->jobs[slot].id = source_id(run, call, list->sources[slot]);
    }
}

static void draft(struct run *run, struct settle_call *call)
{
    struct source sources[CALL_SLOTS];
    struct drafts drafts = {.retry = {.count = 0}};
    size_t count;

    call->entries = call->moves = call->ends = call->closed = call->outs = 0;
    call->backs = 0;
    call->most_dead = 40;
    count = draft_entries(run, call, sources);
    for (size_t i = 0; i < count; i++)
        draft_verdict(run, call, &drafts, sources[i]);
    draft_move(run, call, &drafts.retry, false, true);
    draft_move(run, call, &drafts.here[WITH_IDS], true, true);
    draft_move(run, call, &drafts.here[WITHOUT], true, false);
    draft_dead(run, call, &drafts.dead);
    for (unsigned topic = 0; topic < AWAY_TOPICS; topic++) {
        draft_out(run, call, &drafts.away[topic][WITH_IDS], topic, true);
        draft_out(run, call, &drafts.away[topic][WITHOUT], topic, false);
    }
}

static void stage(struct run *run, const struct settle_call *call,
                  bool forgets_one)
{
    for (size_t i = 0; i < call->moves; i++)
        run_stage(run, call->move[i].pack);
    for (size_t i = 0; i < call->outs; i++)
        if (i > 0 || !forgets_one) {
            run_stage_out(run, call->out[i].pack);
            if (call->out[i].is_recorded) /* it was there */
                call->out[i].pack->is_staged = false;
        }
}

/* --- the other topic ------------------------------------------------------ */

static void set(struct run *run, unsigned topic, const char *key,
                const char *field, const char *value)
{
    call_command(&run->caller, "HSET", 3);
    call_topic_keys(&run->caller, away_name(topic), key);
    call_str(&run->caller, field);
    call_str(&run->caller, value);
    call_queue(&run->caller);
}

static void empty(struct run *run, unsigned topic)
{
    static const char script[] =
        "for _, key in ipairs(redis.call('KEYS', 'weir:{' .. ARGV[1] .. '}:*'))"
        " do redis.call('DEL', key) end return 1";
    const char name[] = {away_name(topic), '\0'};

    call_command(&run->caller, "EVAL", 3);
    call_str(&run->caller, script);
    call_int(&run->caller, 0);
    call_str(&run->caller, name);
    call_queue(&run->caller);
}

/* What the add is to say of each slot, and what is to be there then. */
static void take_ids(struct run *run, const struct out *out, bool there[SLOTS],
                     struct text *ret_pairs)
{
    unsigned percent = chance(run, 50) ? 0 : 30;
    char taken[SLOTS][24], id[24];
    size_t count = 0;

    for (unsigned slot = 0; slot < out->pack->count; slot++) {
        bool exists = false;

        there[slot] = !out->gone[slot];
        if (!there[slot] || !out->pack->has_ids)
            continue;
        id_text(out->pack->jobs[slot].id, id);
        for (size_t i = 0; i < count; i++)
            exists = exists || strcmp(taken[i], id) == 0;
        if (!exists && chance(run, percent)) {
            set(run, out->topic, "ids", id, "taken");
            exists = true;
        }
        memcpy(taken[count++], id, sizeof(id));
        there[slot] = !exists;
        if (exists)
            text_format(ret_pairs, " 0 %u", slot);
    }
}

static void add_staged(struct run *run, const struct out *out,
                       const char *wanted)
{
    struct caller *caller = &run->caller;
    const char name[] = {away_name(out->topic), '\0'};
    struct weir__buf list = {0};
    char seat[24];

    (void)snprintf(seat, sizeof(seat), "!s%u", out->seat);
    call_script(caller, SCRIPT_ADD, 6, 8);
    call_topic_keys(caller, name[0], "wait ids meta idle seen");
    call_topic_pack_key(caller, name[0], out->pack->number);
    call_str(caller, name);
    call_str(caller, "delay");
    call_str(caller, seat);
    call_int(caller, out->pack->number);
    call_int(caller, out->pack->count);
    call_int(caller, out->pack->header_len);
    weir__buf_append(&list, text_of(&out->when), out->when.len);
    call_bytes(caller, &list);
    weir__buf_reset(&list);
    for (unsigned slot = 0; slot < out->pack->count; slot++) {
        const uint8_t byte = (uint8_t)slot;

        if (out->gone[slot])
            weir__buf_append(&list, &byte, 1);
    }
    call_bytes(caller, &list);
    weir__buf_fini(&list);
    call_queue(caller);
    text_str(&run->wanted, wanted);
    run_check(run);
}

static void add(struct run *run, const struct out *out, const char *wanted)
{
    run_stage_in(run, away_name(out->topic), out->pack);
    out->pack->is_staged = false; /* not here */
    add_staged(run, out, wanted);
}

/* Slots that wait with their times and ids, and what is gone. */
static void say_pack(struct run *run, const struct out *out,
                     const bool there[SLOTS])
{
    char seq[SEQ_LEN + 1], id[24];
    unsigned added = 0;

    seq_text(out->pack->number, seq);
    for (unsigned slot = 0; slot < out->pack->count; slot++) {
        const struct job *job = &out->pack->jobs[slot];
        int64_t now_ms = model_now_ms(&run->model);

        added += there[slot];
        if (!there[slot])
            continue;
        id_text(job_id(job), id);
        text_format(&run->wanted, "%s %u %lld %s\n", seq, slot,
                    (long long)(job->due_ms < now_ms ? now_ms : job->due_ms),
                    out->pack->has_ids ? id : "");
    }
    if (added > 0)
        text_format(&run->wanted, "gone %u\n", out->pack->count - added);
    text_format(&run->wanted, "added %u ids %u kind delay\n", added,
                out->pack->has_ids ? added : 0);
}

/* The same from the server. */
static const char topic_script[] =
    "local out, g, waits = {}, 'weir:{' .. ARGV[1] .. '}:', {} "
    "local nodes = redis.call('ZRANGE', g .. 'wait', 0, -1, 'WITHSCORES') "
    "for i = 1, #nodes, 2 do "
    "  local a, b, c, d = string.byte(nodes[i], 13, 16) "
    "  for slot = (a - 48) * 16 + b - 48, (c - 48) * 16 + d - 48 do "
    "    local key = string.sub(nodes[i], 1, 12) .. ' ' .. slot "
    "    waits[key] = (waits[key] or '') .. ' ' .. nodes[i + 1] "
    "  end "
    "end "
    "for i = 2, #ARGV do "
    "  local key = g .. 'p:' .. ARGV[i] "
    "  local bytes = redis.call('GET', key) "
    "  if bytes and redis.call('PTTL', key) < 0 then "
    "    local names = {} "
    "    if string.byte(bytes, 5) == 1 then "
    "      names = ({cmsgpack.unpack_one(bytes, 8)})[2] "
    "    end "
    "    for slot = 0, string.byte(bytes, 3) do "
    "      local at = ARGV[i] .. ' ' .. slot "
    "      local name = names[slot + 1] or '' "
    "      if waits[at] and name ~= '' and "
    "         redis.call('HGET', g .. 'ids', name) ~= ARGV[i] then "
    "        name = 'not in the index' "
    "      end "
    "      if waits[at] then out[#out + 1] = at .. waits[at] .. ' ' .. name "
    "end "
    "    end "
    "    out[#out + 1] = 'gone ' .. string.byte(bytes, 4) "
    "  end "
    "end "
    "local ids = redis.call('HVALS', g .. 'ids') "
    "local own = 0 "
    "for _, value in ipairs(ids) do "
    "  if #value == 12 then own = own + 1 end "
    "end "
    "local added = redis.call('HGET', g .. 'meta', 'added') or '0' "
    "local kind = redis.call('HGET', g .. 'meta', 'kind') or 'none' "
    "out[#out + 1] = 'added ' .. added .. ' ids ' .. own .. ' kind ' .. kind "
    "out[#out + 1] = '' "
    "return table.concat(out, '\\n')";

static void check_topic(struct run *run, const struct out *out,
                        const bool there[SLOTS])
{
    const char name[] = {away_name(out->topic), '\0'};
    char seq[SEQ_LEN + 1];

    seq_text(out->pack->number, seq);
    call_command(&run->caller, "EVAL", 4);
    call_str(&run->caller, topic_script);
    call_int(&run->caller, 0);
    call_str(&run->caller, name);
    call_str(&run->caller, seq);
    call_queue(&run->caller);
    say_pack(run, out, there);
    run_check(run);
}

/* --- sending on ----------------------------------------------------------- */

static void remove_entry(struct run *run, struct out *out)
{
    char seq[SEQ_LEN + 1];

    seq_text(out->pack->number, seq);
    call_command(&run->caller, "DEL", 1);
    call_out_key(&run->caller, out->pack->number);
    call_queue(&run->caller);
    call_command(&run->caller, "HDEL", 2);
    call_keys(&run->caller, "relay");
    call_str(&run->caller, seq);
    call_queue(&run->caller);
    text_str(&run->wanted, "1");
    run_check(run);
    model_sent(&run->model, out);
}

static void write_undeliverable(struct run *run, const struct out *out)
{
    struct caller *caller = &run->caller;
    char seq[SEQ_LEN + 1], id[24], body[64];

    seq_text(out->pack->number, seq);
    call_script(caller, SCRIPT_UNDELIVERABLE, 6, 2 + 3 * out->count);
    call_keys(caller, "ids meta dead rec relay");
    call_out_key(caller, out->pack->number);
    call_str(caller, seq);
    call_int(caller, run->follow->most_dead);
    for (unsigned slot = 0; slot < out->pack->count; slot++) {
        const struct job *job = &out->pack->jobs[slot];

        if (out->gone[slot])
            continue;
        id_text(job->id, id);
        call_str(caller, out->pack->has_ids ? id : "");
        id_text((struct id){out->pack->number, slot}, id);
        call_str(caller, id);
        body_text(job->body, body);
        call_str(caller, body);
    }
    call_queue(caller);
}

static void keep_dead(struct run *run, struct out *out)
{
    set(run, out->topic, "meta", "kind", "stream");
    add(run, out, "(-1 stream)");
    write_undeliverable(run, out);
    model_undeliverable(&run->model, out, run->follow->most_dead, &run->wanted);
    run_check(run);
    if (chance(run, 50))
        return;
    write_undeliverable(run, out); /* the reply was lost */
    text_str(&run->wanted, "0");
    run_check(run);
}

static void send_on(struct run *run, struct out *out)
{
    struct text pairs = {0}, wanted = {0};
    bool there[SLOTS];
    unsigned added = 0;

    take_ids(run, out, there, &pairs);
    if (chance(run, 20)) {
        set(run, out->topic, "meta", "max_pending", "7");
        set(run, out->topic, "meta", "returned", "7"); /* they wait */
        add(run, out, "(-2)");
        set(run, out->topic, "meta", "returned", "6");
    }
    if (chance(run, 20)) /* another worker's refused add took it away */
        add_staged(run, out, "(0 0 -2)");
    for (unsigned slot = 0; slot < out->pack->count; slot++)
        added += there[slot];
    text_format(&wanted, "(%u%s)", added, text_of(&pairs));
    add(run, out, text_of(&wanted));
    text_clear(&wanted);
    text_format(&wanted, "(0%s)", text_of(&pairs));
    while (chance(run, 40)) /* by another worker, too */
        add(run, out, text_of(&wanted));
    check_topic(run, out, there);
    remove_entry(run, out);
    text_free(&pairs);
    text_free(&wanted);
}

void run_send_all(struct run *run)
{
    struct settle_call *call = run->follow;

    for (size_t i = 0; i < call->outs; i++) {
        struct out *out = &call->out[i];

        if (!out->is_recorded)
            continue;
        if (chance(run, 20))
            keep_dead(run, out);
        else
            send_on(run, out);
        empty(run, out->topic);
    }
    call->outs = 0;
}

void op_follow(struct run *run)
{
    struct settle_call *call = run->follow;

    if (run->held_count == 0)
        return;
    run_send_all(run);
    draft(run, call);
    stage(run, call, chance(run, 5));
    run_settle(run, call);
    if (chance(run, 30)) { /* the reply was lost */
        stage(run, call, false);
        run_settle(run, call);
    }
    if (chance(run, 50))
        run_send_all(run);
}
