/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/external/private.h"
#include "adapters/redis/pack.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Taking runs back. Verdicts are written down for the script at once, since
 * slices end with the run, and leave at flush. */

enum {
    CALL_BYTES = 1024 * 1024, /* of one call, about */
    AUTOS = 16                /* tokens of auto-ack in one call */
};

/* --- calls -------------------------------------------------------------- */

void weir__external_call_free(struct weir__external_call *call)
{
    weir__buf_fini(&call->done);
    weir__buf_fini(&call->other);
    weir__items_fini(&call->moves);
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

/* Jobs of one call go to one topic. */
static bool fits(const struct weir__external_call *call, const char *target)
{
    return call->verdicts < WEIR__EXTERNAL_CALL && call->autos < AUTOS &&
           !call->is_broken && call->done.len + call->other.len < CALL_BYTES &&
           (target[0] == '\0' || call->target[0] == '\0' ||
            strcmp(call->target, target) == 0);
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

static bool note_other(struct weir__external_call *call,
                       const struct weir__run *run, const char *target)
{
    const struct weir__external_lease *lease = run->batch;
    struct weir_slice bytes = bytes_of(call->topic, run);
    struct weir__buf *past = &call->topic->shared->scratch[0];
    const char *word = word_of(run);

    weir__buf_reset(past);
    weir__external_write_past(past, run);
    weir__pack_uint(&call->other, run->token);
    write_id(&call->other, run);
    weir__pack_str(&call->other, word, 1);
    weir__pack_uint(&call->other, (uint64_t)run->delay_ms);
    weir__pack_str(&call->other, past->ptr, past->len);
    weir__pack_str(&call->other, bytes.ptr, bytes.len);
    weir__pack_uint(&call->other, lease->entries[run->node].is_kept ? 0 : 1);
    call->others++;
    if (past->failed || call->other.failed)
        return false;
    if (target[0] == '\0')
        return true;
    memcpy(call->target, target, strlen(target) + 1);
    return weir__external_move(call, run, call->others);
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
    struct weir__external_call *call = last_call(topic);
    bool is_noted;

    if (call == NULL || !fits(call, target))
        call = call_new(topic);
    if (call == NULL)
        return; /* its lease runs out */
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

static void on_settled(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct weir__external_call *call =
        (struct weir__external_call *)request; /* first */
    struct weir__external_topic *topic = call->topic;
    size_t verdicts = call->verdicts;
    int64_t settled = -1, refused = (int64_t)verdicts;

    weir__external_call_free(call);
    weir__topic_log_error(&topic->base, "settle", code, reply);
    if (code == WEIR_OK && weir__reply_int(reply, 0, &settled) && settled == -1)
        weir__log(topic->base.store->options.log, WEIR_LEVEL_WARN,
                  "redis: %s: the server did not keep what %zu verdicts write "
                  "(is it full?); their entries run again",
                  topic->base.name, verdicts);
    if (code == WEIR_OK && weir__reply_int(reply, 1, &refused) &&
        (refused < 0 || (size_t)refused > verdicts))
        refused = (int64_t)verdicts; /* the script says no such thing */
    if (code == WEIR_OK && settled >= 0)
        weir__topic_log_refused(&topic->base, (size_t)refused);
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

static void write_call(struct weir__buf *bytes,
                       const struct weir__external_call *call, size_t packs,
                       const struct weir__buf *moves,
                       const struct weir__buf *pack_keys)
{
    const struct weir__external_topic *topic = call->topic;
    struct weir__prefix target;
    struct weir__buf *scratch = &topic->shared->scratch[0];

    weir__resp_eval(bytes, &weir__script_external_settle,
                    9 + (packs > 0 ? 4 + packs : 0), 9);
    weir__prefix_keys(bytes, &topic->base.prefix,
                      "meta wait run lease held past dead auto");
    weir__resp_str(bytes, weir__external_key(topic));
    if (packs > 0) {
        weir__prefix_init(&target, weir__slice_str(call->target));
        weir__prefix_keys(bytes, &target, "wait ids meta idle");
        weir__buf_append(bytes, pack_keys->ptr, pack_keys->len);
    }
    weir__resp_str(bytes, weir__external_group(topic));
    weir__resp_int(bytes, topic->base.options->after != 0);
    weir__resp_int(bytes, topic->base.options->max_dead);
    write_list(bytes, scratch, 2 * call->dones, &call->done);
    write_autos(bytes, scratch, call);
    write_list(bytes, scratch, 7 * call->others, &call->other);
    write_list(bytes, scratch, 4 * packs, moves);
    weir__resp_str(bytes, call->target);
    weir__resp_str(bytes, "delay");
    bytes->failed = bytes->failed || pack_keys->failed;
}

/* Counts of auto-ack must not be taken twice: those calls go once. */
static void send_call(struct weir__external_call *call)
{
    struct weir__external *shared = call->topic->shared;
    struct weir__buf bytes = {0}, moves = {0}, pack_keys = {0};
    size_t packs = 0;

    call->request.store = shared->store;
    call->request.done = on_settled;
    if (call->is_broken) {
        weir__redis_fail(&call->request, WEIR_ENOMEM);
        return;
    }
    if (call->moves.count > 0)
        packs = weir__external_send_moves(call, &moves, &pack_keys);
    write_call(&bytes, call, packs, &moves, &pack_keys);
    weir__buf_fini(&moves);
    weir__buf_fini(&pack_keys);
    weir__redis_send(shared->store, &bytes, &weir__script_external_settle,
                     call->autos > 0 ? WEIR__SEND_ONCE : WEIR__SEND_AGAIN,
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
