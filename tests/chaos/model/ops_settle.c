/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/pack.h"
#include "tests/chaos/model/run.h"

/* Settling: verdicts on nodes that are held, and on some that are lost. */

enum { FIRST_PACK_KEY = 11, OF_MIXED = 65536 }; /* behind the topic's keys */

/* --- writing ------------------------------------------------------------ */

/* Packs that the call names, old ones once each, then new ones. */
struct pack_keys {
    uint32_t packs[CALL_NODES];
    size_t count;
};

static size_t key_of(struct pack_keys *keys, uint32_t pack)
{
    for (size_t i = 0; i < keys->count; i++)
        if (keys->packs[i] == pack)
            return FIRST_PACK_KEY + i;
    keys->packs[keys->count++] = pack;
    return FIRST_PACK_KEY + keys->count - 1;
}

/* Of a small part of a pack perhaps its ids, else how long the header is. */
static void write_header(struct run *run, struct node node,
                         struct weir__buf *list)
{
    const struct pack *pack = run->model.packs[node.pack - 1];
    unsigned size = node.hi - node.lo + 1;
    char id[24];

    if (!pack->has_ids || size * 2 > pack->count || chance(run, 30)) {
        weir__pack_uint(list, pack->header_len);
        return;
    }
    if (size > 1)
        weir__pack_array(list, size);
    for (unsigned slot = node.lo; slot <= node.hi; slot++) {
        id_text(pack->jobs[slot].id, id);
        weir__pack_str(list, id, strlen(id));
    }
}

static void write_nodes(struct run *run, const struct settle_call *call,
                        struct pack_keys *keys, struct weir__buf *list)
{
    weir__pack_array(list, 5 * call->entries);
    for (size_t i = 0; i < call->entries; i++) {
        const struct entry *entry = &call->entry[i];
        const struct pack *pack = run->model.packs[entry->node.pack - 1];
        uint8_t slots[SLOTS];
        char name[SEQ_LEN + 5];
        size_t count = 0;

        for (unsigned slot = entry->node.lo; slot <= entry->node.hi; slot++)
            if (!entry->is_whole && entry->slots[slot])
                slots[count++] = (uint8_t)slot;
        node_text(entry->node, name);
        weir__pack_uint(list, key_of(keys, entry->node.pack) +
                                  (pack->is_mixed ? OF_MIXED : 0));
        weir__pack_str(list, name, strlen(name));
        weir__pack_uint(list, entry->token);
        write_header(run, entry->node, list);
        weir__pack_str(list, slots, count);
    }
}

static void write_back(const struct run *run, const struct settle_call *call,
                       struct weir__buf *list)
{
    if (call->backs == 0)
        return;
    weir__pack_array(list, 4 * call->backs);
    for (size_t i = 0; i < call->backs; i++) {
        const struct back *back = &call->back[i];
        int64_t mixed_score =
            run->model.packs[back->node.pack - 1]->is_mixed ? MIXED_SCORE : 0;
        uint8_t slots[SLOTS];
        char name[SEQ_LEN + 5];
        size_t count = 0;

        for (unsigned slot = back->node.lo; slot <= back->node.hi; slot++)
            if (!back->is_whole && back->slots[slot])
                slots[count++] = (uint8_t)slot;
        node_text(back->node, name);
        weir__pack_str(list, name, strlen(name));
        weir__pack_uint(list, back->token);
        weir__pack_uint(list, (uint64_t)(mixed_score + back->due_ms));
        weir__pack_str(list, slots, count);
    }
}

static void write_closed(const struct settle_call *call, struct weir__buf *list)
{
    if (call->closed == 0)
        return;
    weir__pack_array(list, call->closed);
    for (size_t i = 0; i < call->closed; i++)
        weir__pack_uint(list, call->close[i]);
}

static uint64_t source_number(struct source source)
{
    return (uint64_t)source.entry * SLOTS + source.slot;
}

static void write_pack(const struct pack *pack, size_t key, uint64_t form,
                       const struct source *sources, struct weir__buf *list)
{
    struct weir__buf when = {0};

    run_when(pack, &when);
    weir__pack_uint(list, key);
    weir__pack_uint(list, pack->count);
    weir__pack_uint(list, pack->header_len);
    weir__pack_str(list, when.ptr, when.len);
    weir__pack_uint(list, form);
    weir__pack_array(list, pack->count);
    for (unsigned slot = 0; slot < pack->count; slot++)
        weir__pack_uint(list, source_number(sources[slot]));
    weir__buf_fini(&when);
}

static void write_target(const struct out *out, struct weir__buf *list)
{
    const char topic = away_name(out->topic);
    char seat[24];

    (void)snprintf(seat, sizeof(seat), "!s%u", out->seat);
    weir__pack_array(list, 5);
    weir__pack_str(list, &topic, 1);
    weir__pack_str(list, "delay", 5);
    weir__pack_str(list, seat, strlen(seat));
    weir__pack_uint(list, out->pack->number);
    weir__pack_str(list, "", 0);
}

static void write_moves(const struct settle_call *call, size_t first_key,
                        struct weir__buf *list)
{
    size_t key = first_key;

    if (call->moves + call->outs == 0)
        return;
    weir__pack_array(list, 7 * (call->moves + call->outs));
    for (size_t i = 0; i < call->moves; i++) {
        const struct move *move = &call->move[i];

        write_pack(move->pack, key++, move->is_new ? 2 : move->is_retry,
                   move->sources, list);
        weir__pack_str(list, "", 0);
    }
    for (size_t i = 0; i < call->outs; i++) {
        const struct out *out = &call->out[i];

        write_pack(out->pack, key++, out->is_dead ? 3 : 2, out->sources, list);
        write_target(out, list);
    }
}

static void write_ends(const struct settle_call *call, struct weir__buf *list)
{
    char text[64];

    if (call->ends == 0)
        return;
    weir__pack_array(list, 3 * call->ends);
    for (size_t i = 0; i < call->ends; i++) {
        weir__pack_uint(list, source_number(call->end[i].source));
        id_text(call->end[i].id, text);
        weir__pack_str(list, text, strlen(text));
        body_text(call->end[i].body, text);
        weir__pack_str(list, text, call->end[i].body == 0 ? 0 : strlen(text));
    }
}

static void write_keys(struct caller *caller, const struct settle_call *call,
                       const struct pack_keys *keys)
{
    call_script(caller, SCRIPT_SETTLE,
                10 + keys->count + call->moves + call->outs + (call->outs > 0),
                7 + call->wakes);
    call_keys(caller, "run lease ids meta wait dead rec idle held due");
    for (size_t i = 0; i < keys->count; i++)
        call_pack_key(caller, keys->packs[i]);
    for (size_t i = 0; i < call->moves; i++)
        call_pack_key(caller, call->move[i].pack->number);
    for (size_t i = 0; i < call->outs; i++)
        call_out_key(caller, call->out[i].pack->number);
    if (call->outs > 0)
        call_keys(caller, "relay");
}

static void count_refused(struct run *run)
{
    const char *text = text_of(&run->wanted);

    for (size_t i = 0; text[i] != '\0'; i++)
        run->refused_seen += text[i] == ' ';
}

/* One run that is done, whose node is that slot. */
static bool is_lone(const struct settle_call *call)
{
    return call->entries == 1 &&
           call->entry[0].node.lo == call->entry[0].node.hi &&
           call->moves + call->outs + call->ends + call->backs == 0 &&
           (call->closed == 0 ||
            (call->closed == 1 && call->close[0] == call->entry[0].token));
}

static void write_lone(struct run *run, const struct settle_call *call)
{
    const struct entry *entry = &call->entry[0];
    const struct pack *pack = run->model.packs[entry->node.pack - 1];
    struct caller *caller = &run->caller;
    char name[SEQ_LEN + 5], id[24] = "";
    bool offers = call->offers.offer != 0;

    node_text(entry->node, name);
    if (pack->has_ids)
        id_text(job_id(&pack->jobs[entry->node.lo]), id);
    call_script(caller, SCRIPT_SETTLE_ONE,
                6 + pack->is_mixed + (offers ? 2u : 0u),
                6 + (offers ? 4u : 0u));
    call_keys(caller, "run lease ids meta held");
    call_pack_key(caller, entry->node.pack);
    if (pack->is_mixed)
        call_keys(caller, "due");
    if (offers)
        call_keys(caller, "wait idle");
    call_str(caller, name);
    call_int(caller, (int64_t)entry->token);
    call_int(caller, entry->node.lo);
    call_str(caller, id);
    call_int(caller, pack->count);
    if (offers)
        run_offer(run, &call->offers);
    call_int(caller, offers ? 2 : (int64_t)call->closed);
}

static void write_full(struct run *run, const struct settle_call *call)
{
    struct caller *caller = &run->caller;
    struct pack_keys keys = {.count = 0};
    struct weir__buf lists[5] = {{0}};
    size_t new_packs;

    write_nodes(run, call, &keys, &lists[0]);
    new_packs = FIRST_PACK_KEY + keys.count;
    write_back(run, call, &lists[1]);
    write_closed(call, &lists[2]);
    write_moves(call, new_packs, &lists[3]);
    write_ends(call, &lists[4]);
    write_keys(caller, call, &keys);
    call_str(caller, "t");
    for (size_t i = 0; i < 5; i++) {
        call_bytes(caller, &lists[i]);
        weir__buf_fini(&lists[i]);
    }
    call_int(caller, call->most_dead);
    if (call->wakes)
        call_int(caller, 2);
}

/* Of a job that was handed over, which is alone in its pack. */
static void draft_offer(struct run *run, struct settle_call *call)
{
    struct claim_call *offers = &call->offers;

    *offers = (struct claim_call){0};
    if (!is_lone(call) || call->closed == 0 ||
        run->model.packs[call->entry[0].node.pack - 1]->is_mixed ||
        !chance(run, 50))
        return;
    offers->worker = (int)pick(run, WORKERS);
    offers->lease_ms = chance(run, 30) ? 200 : 30000;
    offers->server = chance(run, 95) ? run->model.server : 7;
    offers->offer = ++run->offers;
}

void run_settle(struct run *run, struct settle_call *call)
{
    draft_offer(run, call);
    call->wakes = false;
    if (call->offers.offer != 0 || (is_lone(call) && chance(run, 60)))
        write_lone(run, call);
    else {
        call->wakes = chance(run, 50);
        write_full(run, call);
    }
    call_queue(&run->caller);
    model_settle(&run->model, call, &run->wanted);
    count_refused(run);
    run_check(run);
    run_check_woken(run);
}

/* --- drafting ----------------------------------------------------------- */

struct draft {
    struct run *run;
    struct settle_call *call;
    size_t slots;
    size_t moving;
    struct source move[CALL_SLOTS]; /* to be written back */
};

static struct job *job_at(const struct draft *draft, struct source source)
{
    uint32_t pack = draft->call->entry[source.entry].node.pack;

    return &draft->run->model.packs[pack - 1]->jobs[source.slot];
}

static void give_verdict(struct draft *draft, struct source source,
                         unsigned percent_done)
{
    struct run *run = draft->run;
    struct settle_call *call = draft->call;

    if (chance(run, percent_done))
        return;
    if (chance(run, 75)) {
        draft->move[draft->moving++] = source;
        return;
    }
    call->end[call->ends].source = source;
    call->end[call->ends].id = job_id(job_at(draft, source));
    call->end[call->ends].body = chance(run, 20) ? 0 : ++run->bodies;
    call->ends++;
}

/* False when the call is full. */
static bool add_entry(struct draft *draft, const struct held *held,
                      unsigned percent_done)
{
    struct settle_call *call = draft->call;
    struct entry *entry = &call->entry[call->entries];
    unsigned size = held->node.hi - held->node.lo + 1, listed = 0;
    bool is_whole = chance(draft->run, 60);

    if (draft->slots + size > CALL_SLOTS || call->entries == CALL_NODES)
        return false;
    *entry = (struct entry){.node = held->node, .token = held->token};
    if (chance(draft->run, 3)) /* a token of another claim */
        entry->token = draft->run->held[0].token;
    for (unsigned slot = held->node.lo; slot <= held->node.hi; slot++) {
        bool is_last = slot == held->node.hi && listed == 0;

        if (!is_whole && !is_last && chance(draft->run, 50))
            continue;
        listed++;
        entry->slots[slot] = true;
        give_verdict(draft, (struct source){(unsigned)call->entries, slot},
                     percent_done);
    }
    entry->is_whole = listed == size;
    draft->slots += size;
    call->entries++;
    return true;
}

/* All nodes of one lease, or some of this and that one. */
static void draft_entries(struct draft *draft)
{
    static const unsigned done[] = {100, 100, 90, 60, 10, 0};
    static const unsigned counts[] = {1, 1, 2, 4, 8};
    struct run *run = draft->run;
    unsigned recent = (unsigned)run->held_count;
    unsigned percent_done = PICK(run, done), count = PICK(run, counts);
    uint64_t token = run->held[pick(run, recent)].token;

    if (chance(run, 45)) {
        for (size_t i = 0; i < run->held_count; i++)
            if (run->held[i].token == token &&
                !add_entry(draft, &run->held[i], percent_done))
                return;
        return;
    }
    if (recent > 60 && chance(run, 80))
        recent = 60;
    for (unsigned i = 0; i < count; i++) {
        size_t at = run->held_count - 1 - pick(run, recent);

        if (!add_entry(draft, &run->held[at], percent_done))
            return;
        if (chance(run, 4)) /* once more: too late */
            (void)add_entry(draft, &run->held[at], percent_done);
    }
}

static void shuffle(struct draft *draft)
{
    for (size_t i = draft->moving; i > 1; i--) {
        size_t other = pick(draft->run, (unsigned)i);
        struct source source = draft->move[i - 1];

        draft->move[i - 1] = draft->move[other];
        draft->move[other] = source;
    }
}

/* The next jobs go into one new pack; returns how many. */
static size_t draft_move(struct draft *draft, const struct source *sources,
                         size_t most)
{
    static const int64_t delays[] = {0, 50, 500, 2000, 60000};
    static const char forms[] = {'r', 'r', 'p', 's'};
    struct run *run = draft->run;
    struct move *move = &draft->call->move[draft->call->moves++];
    unsigned count = most > SLOTS ? SLOTS : (unsigned)most;
    int64_t delay;

    if (chance(run, 50))
        count = 1 + pick(run, count);
    delay = PICK(run, delays);
    move->is_retry = chance(run, 60);
    move->pack = model_pack_new(&run->model, count, true);
    move->pack->form = PICK(run, forms);
    for (unsigned slot = 0; slot < count; slot++) {
        struct job *job = &move->pack->jobs[slot];

        move->sources[slot] = sources[slot];
        job->id = job_id(job_at(draft, sources[slot]));
        job->ms = move->pack->form == 'r' ? delay : pick(run, 2000);
    }
    if (is_rising(move->pack))
        run_set_rising(run, move->pack, 2000);
    run_fill(run, move->pack);
    return count;
}

static void draft_closed(struct draft *draft)
{
    struct settle_call *call = draft->call;
    unsigned percent = chance(draft->run, 80) ? 100 : 30;

    for (size_t i = 0; i < call->entries; i++)
        if ((i == 0 || call->entry[i].token != call->entry[i - 1].token) &&
            chance(draft->run, percent))
            call->close[call->closed++] = call->entry[i].token;
}

static void forget_whole(struct run *run, const struct settle_call *call)
{
    for (size_t i = 0; i < call->entries; i++)
        for (size_t at = run->held_count; at > 0; at--)
            if (call->entry[i].is_whole &&
                run->held[at - 1].token == call->entry[i].token &&
                memcmp(&run->held[at - 1].node, &call->entry[i].node,
                       sizeof(struct node)) == 0) {
                run_forget(run, at - 1);
                break;
            }
}

static void stage_moves(struct run *run, const struct settle_call *call,
                        bool forgets_one)
{
    for (size_t i = 0; i < call->moves; i++)
        if (i > 0 || !forgets_one)
            run_stage(run, call->move[i].pack);
}

void op_settle(struct run *run)
{
    struct settle_call *call = run->last_settle;
    struct draft draft = {.run = run, .call = call};

    if (run->held_count == 0)
        return;
    run->last_settle = run->settle;
    run->settle = call;
    call->entries = call->moves = call->ends = call->closed = 0;
    call->backs = 0;
    call->most_dead = chance(run, 90) ? 40 : pick(run, 10);
    draft_entries(&draft);
    shuffle(&draft);
    for (size_t at = 0; at < draft.moving && call->moves < CALL_PACKS;)
        at += draft_move(&draft, draft.move + at, draft.moving - at);
    draft_closed(&draft);
    stage_moves(run, call, chance(run, 3));
    run_settle(run, call);
    if (chance(run, 8)) { /* the reply was lost */
        stage_moves(run, call, false);
        run_settle(run, call);
    }
    if (chance(run, 70))
        forget_whole(run, call);
}

/* What was claimed last, or handed over, is done. */
void op_finish(struct run *run)
{
    struct settle_call *call = run->last_settle;

    if (run->held_count == 0)
        return;
    run->last_settle = run->settle;
    run->settle = call;
    call->moves = call->ends = call->backs = 0;
    call->entries = call->closed = 1;
    call->entry[0] =
        (struct entry){.node = run->held[run->held_count - 1].node,
                       .token = run->held[run->held_count - 1].token,
                       .is_whole = true};
    call->close[0] = call->entry[0].token;
    run_settle(run, call);
    forget_whole(run, call);
}

/* A repeat that comes late, other calls were in between. */
void op_settle_again(struct run *run)
{
    struct settle_call *call = chance(run, 50) ? run->settle : run->last_settle;

    if (call->entries == 0)
        return;
    stage_moves(run, call, chance(run, 10));
    run_settle(run, call);
}
