/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/pack.h"
#include "tests/chaos/model/run.h"

/* Verdicts that bring new jobs, for this topic and for two others. Those are
 * empty but for some ids, are compared with what the model says, and emptied
 * again. */

enum { MOST_SOURCES = 100, MOST_EACH = 2 };

/* --- the call ----------------------------------------------------------- */

void run_write_away_keys(struct caller *caller, const struct settle_call *call)
{
    for (size_t i = 0; i < call->aways; i++)
        call_topic_pack_key(caller, away_name(call->away[i].topic),
                            call->away[i].pack->number);
    for (unsigned topic = 0; topic < AWAY_TOPICS && call->aways > 0; topic++)
        call_topic_keys(caller, away_name(topic), "wait ids meta idle");
}

static void write_aways(const struct settle_call *call, size_t first_key,
                        struct weir__buf *list)
{
    struct weir__buf when = {0};

    weir__pack_array(list, 6 * call->aways);
    for (size_t i = 0; i < call->aways; i++) {
        const struct away *away = &call->away[i];

        run_when(away->pack, &when);
        weir__pack_uint(list, first_key + i);
        weir__pack_uint(list, away->pack->count);
        weir__pack_uint(list, away->pack->header_len);
        weir__pack_str(list, when.ptr, when.len);
        weir__pack_uint(list, away->topic + 1);
        weir__pack_array(list, away->pack->count);
        for (unsigned slot = 0; slot < away->pack->count; slot++)
            weir__pack_uint(list, run_source_number(away->sources[slot]));
    }
    weir__buf_fini(&when);
}

void run_write_aways(struct caller *caller, const struct settle_call *call,
                     size_t first_key)
{
    struct weir__buf list = {0};

    write_aways(call, first_key, &list);
    call_bytes(caller, &list);
    weir__buf_reset(&list);
    weir__pack_array(&list, 2 * AWAY_TOPICS);
    for (unsigned topic = 0; topic < AWAY_TOPICS; topic++) {
        char name = away_name(topic);

        weir__pack_str(&list, &name, 1);
        weir__pack_uint(&list, first_key + call->aways + 4 * topic);
    }
    call_bytes(caller, &list);
    call_str(caller, "delay");
    weir__buf_fini(&list);
}

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
    struct list retry, instead;
    struct list here[FORMS];
    struct list away[AWAY_TOPICS][FORMS];
};

static void draft_new(struct run *run, struct list lists[FORMS],
                      struct source source, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        push(&lists[chance(run, 60) ? WITH_IDS : WITHOUT], source);
}

static void draft_end(struct run *run, struct settle_call *call,
                      struct source source)
{
    struct end *end = &call->end[call->ends++];

    end->source = source;
    end->id = run_source_id(run, call, source);
    end->body = chance(run, 20) ? 0 : ++run->bodies;
}

/* Done, and what comes instead where jobs are not taken; retried; or dead. */
static void draft_verdict(struct run *run, struct settle_call *call,
                          struct drafts *drafts, struct source source)
{
    unsigned away = 0;

    draft_new(run, drafts->here, source,
              chance(run, 60) ? 0 : pick(run, MOST_EACH + 1));
    for (unsigned topic = 0; topic < AWAY_TOPICS; topic++) {
        unsigned count = chance(run, 50) ? 0 : pick(run, MOST_EACH + 1);

        draft_new(run, drafts->away[topic], source, count);
        away += count;
    }
    if (chance(run, 20)) {
        push(&drafts->retry, source);
    } else if (chance(run, 15)) {
        draft_end(run, call, source);
    } else if (away > 0) {
        source.is_instead = true;
        if (chance(run, 80))
            push(&drafts->instead, source);
        else
            draft_end(run, call, source);
    }
}

static void set_times(struct run *run, struct pack *pack)
{
    static const char forms[] = {'r', 'r', 'a', 'p', 'q'};
    int64_t ms = 0;

    pack->form = PICK(run, forms);
    for (unsigned slot = 0; slot < pack->count; slot++) {
        bool is_one = pack->form == 'r' || pack->form == 'a';

        if (slot == 0 || !is_one)
            ms = pick(run, 2000);
        if ((slot == 0 || !is_one) && (pack->form == 'a' || pack->form == 'q'))
            ms += model_now_ms(&run->model) - 500;
        pack->jobs[slot].ms = ms;
    }
}

static struct pack *draft_pack(struct run *run, const struct list *list,
                               bool has_ids)
{
    struct pack *pack = model_pack_new(&run->model, list->count, has_ids);

    for (unsigned slot = 0; slot < list->count && has_ids; slot++)
        pack->jobs[slot].id = (struct id){0, pick(run, USERS)};
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
    for (unsigned slot = 0; slot < list->count && !is_new; slot++)
        move->pack->jobs[slot].id =
            run_source_id(run, call, list->sources[slot]);
}

static void take_id(struct run *run, unsigned topic, struct id id)
{
    char text[24];

    id_text(id, text);
    call_command(&run->caller, "HSET", 3);
    call_topic_keys(&run->caller, away_name(topic), "ids");
    call_str(&run->caller, text);
    call_str(&run->caller, "taken");
    call_queue(&run->caller);
}

static void draft_away(struct run *run, struct settle_call *call,
                       const struct list *list, unsigned topic, bool has_ids)
{
    struct away *away = &call->away[call->aways];
    unsigned percent = chance(run, 50) ? 0 : 30;

    if (list->count == 0)
        return;
    call->aways++;
    memset(away, 0, sizeof(*away));
    away->topic = topic;
    memcpy(away->sources, list->sources, sizeof(away->sources));
    away->pack = draft_pack(run, list, has_ids);
    for (unsigned slot = 0; slot < list->count && has_ids; slot++) {
        for (unsigned other = 0; other < slot; other++)
            if (away->is_taken[other] &&
                same_id(away->pack->jobs[other].id, away->pack->jobs[slot].id))
                away->is_taken[slot] = true;
        if (!away->is_taken[slot] && chance(run, percent)) {
            for (unsigned other = 0; other <= slot; other++)
                if (same_id(away->pack->jobs[other].id,
                            away->pack->jobs[slot].id))
                    away->is_taken[other] = true;
            take_id(run, topic, away->pack->jobs[slot].id);
        }
    }
}

static void set_meta(struct run *run, unsigned topic, const char *field,
                     const char *value)
{
    call_command(&run->caller, "HSET", 3);
    call_topic_keys(&run->caller, away_name(topic), "meta");
    call_str(&run->caller, field);
    call_str(&run->caller, value);
    call_queue(&run->caller);
}

static void sleep_there(struct run *run, unsigned topic)
{
    call_command(&run->caller, "ZADD", 3);
    call_topic_keys(&run->caller, away_name(topic), "idle");
    call_str(&run->caller, "+inf");
    call_str(&run->caller, "w0");
    call_queue(&run->caller);
}

/* What the topic is like before the call. */
static void draft_topic(struct run *run, struct settle_call *call,
                        unsigned topic)
{
    struct away_topic *there = &call->topic[topic];
    char bound[24];

    *there = (struct away_topic){
        .is_other_kind = chance(run, 15),
        .has_sleeper = chance(run, 50),
        .max_pending = chance(run, 40) ? 1 + pick(run, 20) : 0,
    };
    if (there->is_other_kind)
        set_meta(run, topic, "kind", "other");
    if (there->max_pending > 0) {
        (void)snprintf(bound, sizeof(bound), "%lld", there->max_pending + 7);
        set_meta(run, topic, "max_pending", bound);
        set_meta(run, topic, "added", "10"); /* of them 7 wait */
        set_meta(run, topic, "claimed", "3");
    }
    if (there->has_sleeper)
        sleep_there(run, topic);
}

static void draft(struct run *run, struct settle_call *call)
{
    struct source sources[CALL_SLOTS];
    struct drafts drafts = {.retry = {.count = 0}};
    size_t count;

    call->entries = call->moves = call->ends = call->closed = call->aways = 0;
    call->most_dead = 40;
    count = run_draft_entries(run, call, MOST_SOURCES, sources);
    for (size_t i = 0; i < count; i++)
        draft_verdict(run, call, &drafts, sources[i]);
    draft_move(run, call, &drafts.retry, false, true);
    draft_move(run, call, &drafts.here[WITH_IDS], true, true);
    draft_move(run, call, &drafts.here[WITHOUT], true, false);
    draft_move(run, call, &drafts.instead, false, true);
    for (unsigned topic = 0; topic < AWAY_TOPICS; topic++) {
        draft_topic(run, call, topic);
        draft_away(run, call, &drafts.away[topic][WITH_IDS], topic, true);
        draft_away(run, call, &drafts.away[topic][WITHOUT], topic, false);
    }
}

static void stage(struct run *run, const struct settle_call *call,
                  bool forgets_one)
{
    for (size_t i = 0; i < call->moves; i++)
        run_stage(run, call->move[i].pack);
    for (size_t i = 0; i < call->aways; i++)
        if (i > 0 || !forgets_one)
            run_stage_in(run, away_name(call->away[i].topic),
                         call->away[i].pack);
}

/* --- the other topics ----------------------------------------------------- */

/* Slots that wait with their times and ids, and what is gone. */
static void say_pack(const struct away *away, struct text *ret_text)
{
    char seq[SEQ_LEN + 1], id[24];
    unsigned gone = 0;

    if (!away->pack->is_in_use)
        return;
    seq_text(away->pack->number, seq);
    for (unsigned slot = 0; slot < away->pack->count; slot++) {
        const struct job *job = &away->pack->jobs[slot];

        gone += !away->is_there[slot];
        if (!away->is_there[slot])
            continue;
        id_text(job_id(job), id);
        text_format(ret_text, "%s %u %lld %s\n", seq, slot,
                    (long long)job->due_ms, away->pack->has_ids ? id : "");
    }
    text_format(ret_text, "gone %u\n", gone);
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

static void check_topic(struct run *run, const struct settle_call *call,
                        unsigned topic)
{
    const char name[] = {away_name(topic), '\0'};
    const struct away_topic *there = &call->topic[topic];
    long long added = there->max_pending > 0 ? 10 : 0, ids = 0;
    const char *kind = there->is_other_kind ? "other" : "none";
    size_t packs = 0;

    for (size_t i = 0; i < call->aways; i++)
        packs += call->away[i].topic == topic;
    call_command(&run->caller, "EVAL", 3 + packs);
    call_str(&run->caller, topic_script);
    call_int(&run->caller, 0);
    call_str(&run->caller, name);
    for (size_t i = 0; i < call->aways; i++) {
        const struct away *away = &call->away[i];
        char seq[SEQ_LEN + 1];

        if (away->topic != topic)
            continue;
        seq_text(away->pack->number, seq);
        call_str(&run->caller, seq);
        say_pack(away, &run->wanted);
        for (unsigned slot = 0; slot < away->pack->count; slot++) {
            if (away->is_there[slot])
                kind = "delay";
            added += away->is_there[slot];
            ids += away->is_there[slot] && away->pack->has_ids;
        }
    }
    text_format(&run->wanted, "added %lld ids %lld kind %s\n", added, ids,
                kind);
    call_queue(&run->caller);
    run_check(run);
}

static void settle(struct run *run, struct settle_call *call)
{
    run_settle(run, call);
    for (unsigned topic = 0; topic < AWAY_TOPICS; topic++)
        check_topic(run, call, topic);
}

void op_follow(struct run *run)
{
    struct settle_call *call = run->follow;

    if (run->held_count == 0)
        return;
    draft(run, call);
    stage(run, call, chance(run, 5));
    settle(run, call);
    if (chance(run, 30)) { /* the reply was lost */
        stage(run, call, false);
        settle(run, call);
    }
    for (unsigned topic = 0; topic < AWAY_TOPICS; topic++)
        run_empty(run, away_name(topic));
}
