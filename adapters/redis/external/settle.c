/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/delay/private.h"
#include "adapters/redis/external/private.h"
#include "adapters/redis/pack.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Taking runs back. Verdicts are written down for the script at once, since
 * slices end with the run, and leave at flush. */

enum {
    CALL_BYTES = 512 * 1024, /* of one call, about */
    LARGE = CALL_BYTES / 2,  /* entries with calls of their own */
    AUTOS = 16,              /* tokens of auto-ack in one call */
    WHY_CAP = 160
};

/* --- calls -------------------------------------------------------------- */

void weir__external_call_free(struct weir__external_call *call)
{
    call->is_over = true;
    if (call->staging > 0)
        return;
    weir__buf_fini(&call->done);
    weir__buf_fini(&call->other);
    weir__buf_fini(&call->death);
    weir__items_fini(&call->moves);
    weir__mem_free(call->packs.list);
    weir__mem_free(call);
}

static struct weir__external_call *call_new(struct weir__external_topic *topic)
{
    struct weir__external_call *call = weir__mem_new(sizeof(*call));

    if (call == NULL)
        return NULL;
    call->topic = topic;
    *topic->calls_end = call;
    topic->calls_end = &call->next;
    weir__topic_mark(&topic->base);
    return call;
}

static struct weir__external_call *last_call(struct weir__external_topic *topic)
{
    struct weir__external_call *call = topic->calls;

    while (call != NULL && call->next != NULL)
        call = call->next;
    return call;
}

static bool fits(const struct weir__external_call *call)
{
    return call->verdicts < WEIR__EXTERNAL_CALL && call->autos < AUTOS &&
           !call->is_broken && call->asker == NULL && call->death.len == 0 &&
           call->done.len + call->other.len + call->moves.bytes.len <
               CALL_BYTES;
}

/* --- verdicts ----------------------------------------------------------- */

static bool note_auto(struct weir__external_call *call, uint64_t token)
{
    struct weir__external_auto *last = &call->auto_done[call->autos];

    if (call->autos == 0 || last[-1].token != token) {
        *last = (struct weir__external_auto){token, 0};
        call->autos++;
        last++;
    }
    last[-1].count++;
    return true;
}

/* By which the script knows the entry; what is shown may be another one. */
static void write_id(struct weir__buf *buf, const struct weir__run *run)
{
    const struct weir__external_lease *lease = run->batch;
    const struct weir__external_entry *entry = &lease->entries[run->node];

    weir__pack_str(buf, lease->bytes.ptr + entry->id_at, entry->id_len);
}

static bool note_done(struct weir__external_call *call,
                      const struct weir__run *run)
{
    weir__pack_uint(&call->done, run->token);
    write_id(&call->done, run);
    call->dones++;
    return !call->done.failed;
}

static const char *word_of(const struct weir__run *run)
{
    struct weir_slice expired = weir__slice_str("expired");

    if (run->outcome == WEIR__OUTCOME_RETRY)
        return "r";
    if (run->outcome == WEIR__OUTCOME_SNOOZE)
        return "s";
    if (run->outcome == WEIR__OUTCOME_RETURN)
        return "b";
    WEIR_ASSERT(run->outcome == WEIR__OUTCOME_DEAD);
    return weir__slice_equal(run->record.reason, expired) ? "e" : "d";
}

/* What the server does not have must come with the verdict: of a stream what is
 * acknowledged may be gone tomorrow. */
static struct weir_slice bytes_of(const struct weir__external_topic *topic,
                                  const struct weir__run *run)
{
    const struct weir__external_lease *lease = run->batch;
    const struct weir__external_entry *entry = &lease->entries[run->node];
    bool is_needed = !entry->is_kept ||
                     (topic->is_stream && run->outcome == WEIR__OUTCOME_DEAD);

    return is_needed ? weir__slice_of(lease->bytes.ptr + entry->raw_at,
                                      entry->raw_len)
                     : (struct weir_slice){0};
}

/* Where a job comes from; entries have no headers of their own. */
static struct weir_slice headers_of(const struct weir__external_topic *topic,
                                    const struct weir__run *run)
{
    static const uint8_t map_of_two = 0x82;
    struct weir__buf *headers = &topic->shared->scratch[1];

    weir__buf_reset(headers);
    weir__buf_append(headers, &map_of_two, 1);
    weir__pack_str(headers, "weir.topic", strlen("weir.topic"));
    weir__pack_str(headers, topic->base.name, strlen(topic->base.name));
    weir__pack_str(headers, "weir.id", strlen("weir.id"));
    weir__pack_str(headers, run->id.ptr, run->id.len);
    return headers->failed ? (struct weir_slice){0} : weir__buf_slice(headers);
}

/* The last of the others becomes a job of another topic. */
static bool note_move(struct weir__external_call *call,
                      const struct weir__run *run, const char *target)
{
    struct weir__external_topic *topic = call->topic;
    struct weir__record record = run->record;
    struct weir__store_topic *away = weir__topic_open(
        topic->base.store, &weir__delay_kind, weir__slice_str(target));
    struct weir__item *item;

    weir__attempts_note(topic->base.store, run, 0, &record,
                        &topic->shared->scratch[2]);
    record.spent = record.counters.attempt; /* the ladder starts over there */
    record.headers = headers_of(topic, run);
    if (run->outcome == WEIR__OUTCOME_DEAD)
        record.added_ms = 0; /* it is a new one there */
    item = weir__items_append(&call->moves, weir__slice_str(""), &record);
    if (item == NULL || away == NULL)
        return false;
    item->away = (struct weir__delay_topic *)away; /* its first member */
    item->group = 2 * item->away->number + (run->outcome == WEIR__OUTCOME_DEAD);
    item->outcome = run->outcome;
    item->ms = run->outcome == WEIR__OUTCOME_DEAD ? 0 : run->delay_ms;
    item->slot = (uint32_t)call->others;
    item->mark = run->token;
    return true;
}

static void write_other(struct weir__buf *buf, const struct weir__run *run,
                        const char *word, const struct weir__buf *past,
                        struct weir_slice bytes)
{
    const struct weir__external_lease *lease = run->batch;

    weir__pack_uint(buf, run->token);
    write_id(buf, run);
    weir__pack_str(buf, word, 1);
    weir__pack_uint(buf, (uint64_t)run->delay_ms);
    weir__pack_str(buf, past->ptr, past->len);
    weir__pack_str(buf, bytes.ptr, bytes.len);
    weir__pack_uint(buf, lease->entries[run->node].is_kept ? 0 : 1);
    buf->failed = buf->failed || past->failed;
}

static size_t size_of(const struct weir__run *run)
{
    const struct weir__external_lease *lease = run->batch;
    const struct weir__external_entry *entry = &lease->entries[run->node];

    return entry->raw_len > entry->body_len ? entry->raw_len : entry->body_len;
}

static void print_why(char why[WHY_CAP], size_t bytes)
{
    (void)snprintf(why, WHY_CAP,
                   "its verdict has %zu bytes, the server takes less: raise "
                   "proto-max-bulk-len and client-query-buffer-limit",
                   bytes); /* fits */
}

/* Writes a small verdict for a server that refuses the entry's bytes. */
static void note_death(struct weir__external_call *call,
                       const struct weir__run *run)
{
    struct weir__buf *past = &call->topic->shared->scratch[0];
    struct weir__record record = run->record;
    char why[WHY_CAP];

    print_why(why, size_of(run));
    record.reason = weir__slice_str("failed");
    record.error = weir__slice_str(why);
    weir__buf_reset(past);
    weir__external_write_past(past, &record, run->blamed);
    write_other(&call->death, run, "d", past, (struct weir_slice){0});
}

static bool note_other(struct weir__external_call *call,
                       const struct weir__run *run, const char *target)
{
    const struct weir__external_lease *lease = run->batch;
    struct weir__buf *past = &call->topic->shared->scratch[0];
    struct weir_slice bytes = {0};

    weir__buf_reset(past);
    if (target[0] == '\0') {
        bytes = bytes_of(call->topic, run);
        weir__external_write_past(past, &run->record, run->blamed);
    }
    write_other(&call->other, run, word_of(run), past, bytes);
    call->others++;
    if (lease->entries[run->node].is_kept && size_of(run) >= LARGE &&
        (target[0] != '\0' || bytes.len > 0))
        note_death(call, run);
    if (call->other.failed || call->death.failed)
        return false;
    return target[0] == '\0' || note_move(call, run, target);
}

/* The topic that takes it instead; "": none does. */
static const char *target_of(const struct weir__external_topic *topic,
                             const struct weir__run *run)
{
    if (run->outcome == WEIR__OUTCOME_RETRY)
        return topic->base.options->on_retry;
    if (run->outcome == WEIR__OUTCOME_DEAD && word_of(run)[0] == 'd')
        return topic->base.options->on_dead;
    return "";
}

static void take_verdict(struct weir__external_topic *topic,
                         const struct weir__run *run)
{
    const struct weir__external_lease *lease = run->batch;
    const char *target = target_of(topic, run);
    bool is_large = run->outcome != WEIR__OUTCOME_DONE && size_of(run) >= LARGE;
    struct weir__external_call *call = last_call(topic);
    bool is_noted;

    if (call == NULL || !fits(call) || run->asker != NULL || is_large)
        call = call_new(topic);
    if (call == NULL) {
        weir__asker_tell(run->asker, WEIR_ENOMEM);
        return; /* its lease runs out */
    }
    call->asker = run->asker;
    if (run->outcome != WEIR__OUTCOME_DONE)
        is_noted = note_other(call, run, target);
    else if (lease->entries[run->node].is_kept)
        is_noted = note_done(call, run);
    else
        is_noted = note_auto(call, run->token);
    call->is_broken = call->is_broken || !is_noted;
    call->verdicts++;
    topic->base.unsettled++;
}

void weir__external_settle(struct weir__store_topic *base,
                           struct weir__run *run)
{
    struct weir__external_topic *topic = weir__external_topic_of(base);
    struct weir__external_lease *lease = run->batch;

    WEIR_ASSERT(run->magic == WEIR__RUN_MAGIC);
    WEIR_ASSERT(lease->topic == topic && lease->out > 0);
    WEIR_ASSERT(lease->entries[run->node].starting == NULL);
    WEIR_ASSERT(run->outcome != WEIR__OUTCOME_NONE);
    if (run->outcome != WEIR__OUTCOME_TAKEN)
        take_verdict(topic, run);
    weir__run_fini(run);
    run->magic = 0;
    lease->out--;
    if (lease->out == 0)
        weir__external_lease_free(lease);
}

/* --- replies ------------------------------------------------------------ */

/* A pack is on its way to its topic, from here on by the outbox. */
static void send_out(struct weir__external_call *call, struct weir_slice entry)
{
    struct weir__planned_packs *packs = &call->packs;

    for (size_t i = 0; i < packs->count && entry.len >= WEIR__SEQ_LEN; i++) {
        struct weir__planned_pack *planned = &packs->list[i];
        struct weir__buf pack = {0};

        if (planned->target == NULL ||
            memcmp(planned->seq, entry.ptr, WEIR__SEQ_LEN) != 0)
            continue;
        planned->target = NULL;
        weir__planned_pack_write(&pack, &call->moves, planned);
        if (pack.failed)
            pack.len = 0; /* it is fetched */
        weir__relays_send(&call->topic->outbox, entry, weir__buf_slice(&pack),
                          planned->call_slot);
        weir__buf_fini(&pack);
    }
}

/* Of the packs that came to nothing. */
static void leave_call_slots(const struct weir__external_call *call)
{
    for (size_t i = 0; i < call->packs.count; i++)
        if (call->packs.list[i].target != NULL)
            weir__call_slot_leave(call->request.store,
                                  call->packs.list[i].call_slot);
}

static void note_outbox(struct weir__external_call *call,
                        const struct redisReply *reply)
{
    struct weir_slice entry;
    int64_t length;

    if (call->packs.count == 0)
        return;
    for (size_t i = 3; i < (size_t)reply->elements; i++)
        if (weir__reply_str(reply, i, &entry))
            send_out(call, entry);
    leave_call_slots(call);
    if (weir__reply_int(reply, 2, &length))
        weir__relays_note_length(&call->topic->outbox, length);
    weir__place_flush(call->topic->base.place);
}

static void note_evicted(const struct weir__external_topic *topic,
                         const struct redisReply *reply)
{
    int64_t count;

    if (reply->elements > 3 &&
        weir__reply_int(reply, (size_t)reply->elements - 1, &count))
        weir__topic_evicted(&topic->base, count);
}

static void send_call(struct weir__external_call *call);

/* The verdict is larger than the server takes (conn/refusal.c). */
static void let_die(struct weir__external_call *call)
{
    struct weir__external_topic *topic = call->topic;

    weir__log(topic->base.store->options.log, WEIR_LEVEL_ERROR,
              "redis: %s: a job dies: the server takes no verdict with its "
              "entry: raise proto-max-bulk-len and client-query-buffer-limit",
              topic->base.name);
    weir__asker_tell(call->asker, WEIR_ETOOBIG);
    call->asker = NULL;
    weir__items_fini(&call->moves);
    weir__mem_free(call->packs.list);
    call->packs = (struct weir__planned_packs){0};
    weir__buf_fini(&call->other);
    call->other = call->death;
    call->death = (struct weir__buf){0};
    send_call(call);
    weir__place_flush(topic->base.place);
}

static void on_settled(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct weir__external_call *call =
        (struct weir__external_call *)request; /* first */
    struct weir__external_topic *topic = call->topic;
    size_t verdicts = call->verdicts;
    int64_t settled = -1, refused = (int64_t)verdicts;

    if (code == WEIR_OK && weir__reply_int(reply, 0, &settled) && settled <= 0)
        weir__conn_replay_nothing(topic->base.place->server->commands);
    if (call->death.len > 0 && settled == -1 &&
        (call->is_refused || code == WEIR_ETOOBIG)) {
        leave_call_slots(call);
        let_die(call);
        return;
    }
    weir__topic_log_error(&topic->base, "settle", code, reply);
    if (code == WEIR_OK && settled == -1)
        weir__log(topic->base.store->options.log, WEIR_LEVEL_WARN,
                  "redis: %s: the server did not keep what %zu verdicts write "
                  "(is it full?)",
                  topic->base.name, verdicts);
    if (code == WEIR_OK && weir__reply_int(reply, 1, &refused) &&
        (refused < 0 || (size_t)refused > verdicts))
        refused = (int64_t)verdicts; /* the script says no such thing */
    if (code == WEIR_OK)
        note_outbox(call, reply);
    else if (code != WEIR_EUNKNOWN)
        leave_call_slots(call);
    if (code == WEIR_OK && settled == -1)
        weir__asker_tell(call->asker, WEIR_ESERVER);
    else if (code == WEIR_OK && refused > 0)
        weir__asker_tell(call->asker, WEIR_ENOTFOUND);
    else
        weir__asker_tell(call->asker, code);
    weir__external_call_free(call);
    if (code == WEIR_OK && settled >= 0)
        note_evicted(topic, reply);
    weir__topic_settled(&topic->base, verdicts, (size_t)refused);
}

/* --- sending ------------------------------------------------------------ */

/* A list as the script reads it: its head, then what was collected. */
static void write_list(struct weir__buf *bytes, struct weir__buf *scratch,
                       size_t elements, const struct weir__buf *list)
{
    weir__buf_reset(scratch);
    if (elements > 0) {
        weir__pack_array(scratch, elements);
        weir__buf_append(scratch, list->ptr, list->len);
    }
    weir__resp_bytes(bytes, weir__buf_slice(scratch));
    bytes->failed = bytes->failed || scratch->failed || list->failed;
}

static void write_autos(struct weir__buf *bytes, struct weir__buf *scratch,
                        const struct weir__external_call *call)
{
    struct weir__buf list = {0};

    for (size_t i = 0; i < call->autos; i++) {
        weir__pack_uint(&list, call->auto_done[i].token);
        weir__pack_uint(&list, call->auto_done[i].count);
    }
    write_list(bytes, scratch, 2 * call->autos, &list);
    weir__buf_fini(&list);
}

static void on_staged(int code, const struct redisReply *reply, void *arg)
{
    struct weir__external_call *call = arg;

    (void)reply; /* the call tells whether its packs are there */
    WEIR_ASSERT(call->staging > 0);
    call->staging--;
    call->is_refused = call->is_refused || code == WEIR_ETOOBIG;
    if (call->is_over)
        weir__external_call_free(call);
}

static void stage(struct weir__external_call *call, struct weir__buf *bytes)
{
    const unsigned flags = WEIR__SEND_AGAIN | WEIR__SEND_REPLAY;
    struct weir__place *place = call->topic->base.place;

    if (call->death.len == 0)
        weir__place_send(place, bytes, NULL, flags, NULL);
    else if (weir__place_command(place, bytes, NULL, flags, on_staged, call) ==
             WEIR_OK)
        call->staging++;
}

/* Name and stage the packs of what goes to other topics. False: no memory. */
static bool stage_moves(struct weir__external_call *call)
{
    struct weir__items *moves = &call->moves;
    struct weir__planned_packs *packs = &call->packs;
    struct weir__planned_pack planned;

    weir__items_sort(moves);
    for (size_t at = 0; at < moves->count; at += planned.count) {
        struct weir__buf bytes = {0};

        weir__planned_pack_plan(moves, at, moves->count, &planned);
        if (!weir__planned_packs_push(packs, &planned))
            return false;
        if (!weir__planned_pack_name(&call->topic->base, moves,
                                     &packs->list[packs->count - 1])) {
            packs->count--; /* it has no call slot */
            return false;
        }
        planned = packs->list[packs->count - 1];
        (void)weir__topic_register(&planned.target->base);
        (void)weir__planned_pack_stage(&bytes, &call->topic->base.prefix, moves,
                                       &planned);
        stage(call, &bytes);
    }
    return true;
}

static void write_move(struct weir__buf *list,
                       const struct weir__external_call *call, size_t index,
                       size_t key)
{
    const struct weir__planned_pack *planned = &call->packs.list[index];
    const struct weir__item *items = &call->moves.list[planned->first];

    weir__planned_pack_tell(list, &call->moves, planned, key);
    weir__pack_uint(list, (items->outcome == WEIR__OUTCOME_DEAD ? 3u : 1u) +
                              (items->mark != 0 ? 4u : 0u));
    weir__pack_array(list, planned->count);
    for (size_t i = 0; i < planned->count; i++)
        weir__pack_uint(list, items[i].slot);
    weir__relays_write(list, call->request.store, planned->target->base.name,
                       planned->call_slot, planned->second);
}

static void write_call(struct weir__buf *bytes,
                       const struct weir__external_call *call)
{
    enum { KEYS = 9 };
    const struct weir__external_topic *topic = call->topic;
    const struct weir__prefix *prefix = &topic->base.prefix;
    struct weir__buf *scratch = &topic->shared->scratch[0], moves = {0};
    size_t packs = call->packs.count;

    weir__resp_eval(bytes, &weir__script_external_settle,
                    KEYS + packs + 1 + (packs > 0), 7);
    weir__prefix_keys(bytes, prefix, "meta wait run lease held past dead auto");
    weir__resp_str(bytes, weir__external_key(topic));
    for (size_t i = 0; i < packs; i++)
        weir__planned_pack_key(bytes, prefix, &call->packs.list[i]);
    weir__prefix_keys(bytes, prefix, packs > 0 ? "absent relay" : "absent");
    weir__resp_str(bytes, weir__external_group(topic));
    weir__resp_int(bytes, topic->base.options->after != 0);
    weir__resp_int(bytes, topic->base.options->max_dead);
    write_list(bytes, scratch, 2 * call->dones, &call->done);
    write_autos(bytes, scratch, call);
    write_list(bytes, scratch, 7 * call->others, &call->other);
    for (size_t i = 0; i < packs; i++)
        write_move(&moves, call, i, KEYS + 1 + i);
    write_list(bytes, scratch, 7 * packs, &moves);
    weir__buf_fini(&moves);
}

/* Counts of auto-ack must not be taken twice: those calls go once. */
static void send_call(struct weir__external_call *call)
{
    struct weir__buf bytes = {0};

    call->request.store = call->topic->base.store;
    call->request.done = on_settled;
    if (call->is_broken || !stage_moves(call)) {
        weir__redis_fail(&call->request, WEIR_ENOMEM);
        return;
    }
    write_call(&bytes, call);
    weir__place_send(call->topic->base.place, &bytes,
                     &weir__script_external_settle,
                     call->autos > 0 ? WEIR__SEND_ONCE
                                     : WEIR__SEND_AGAIN | WEIR__SEND_REPLAY,
                     &call->request);
}

void weir__external_flush_settles(struct weir__external_topic *topic)
{
    struct weir__external_call *call = topic->calls;

    topic->calls = NULL;
    topic->calls_end = &topic->calls;
    while (call != NULL) {
        struct weir__external_call *next = call->next;

        send_call(call);
        call = next;
    }
}
