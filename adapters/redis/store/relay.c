/* SPDX-License-Identifier: MIT */
#include "adapters/redis/store/relay.h"

#include <stdio.h>
#include <string.h>

#include "adapters/msgpack/record.h"
#include "adapters/redis/pack.h"
#include "adapters/redis/store/cluster.h"
#include "adapters/redis/store/kind.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

#define TOLD_NS INT64_C(1000000000)

/* It is not to be in the other topic, or is. */
static bool is_gone(const struct weir__relay *relay, size_t slot)
{
    if (relay->exist_count > 0)
        return !relay->exist[slot];
    for (size_t i = 0; i < relay->gone.len; i++)
        if (relay->gone.ptr[i] == slot)
            return true;
    return false;
}

static void tell_refused(struct weir__relay *relay, const char *why)
{
    struct weir__store_topic *topic = relay->box->topic;
    int64_t now_ns = weir__redis_now_ns(topic->store);

    if (relay->box->told_ns != 0 && now_ns - relay->box->told_ns < TOLD_NS)
        return;
    relay->box->told_ns = now_ns;
    weir__log(topic->store->options.log, WEIR_LEVEL_ERROR, "redis: %s: %.*s %s",
              topic->name, (int)relay->target.len,
              (const char *)relay->target.ptr, why);
}

/* --- removing ----------------------------------------------------------- */

static struct weir__relay *relay_of(struct weir__request *request)
{
    return (struct weir__relay *)request; /* its first */
}

void weir__relay_remove(const struct weir__store_topic *topic,
                        struct weir_slice seq, struct weir__request *request)
{
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, 3);
    weir__resp_str(&bytes, "HDEL");
    weir__prefix_key(&bytes, &topic->prefix, "relay");
    weir__resp_bytes(&bytes, seq);
    weir__place_send(topic->place, &bytes, NULL, WEIR__SEND_AGAIN, request);
}

static void on_removed(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct weir__relay *relay = relay_of(request);

    weir__topic_log_error(relay->box->topic, "relay", code, reply);
    if (code == WEIR_OK)
        weir__relays_sent(relay);
    else
        weir__relays_put_off(relay);
}

static void on_pack_removed(struct weir__request *request, int code,
                            const struct redisReply *reply)
{
    struct weir__relay *relay = relay_of(request);
    const struct weir__store_topic *topic = relay->box->topic;

    if (code != WEIR_OK) {
        on_removed(request, code, reply);
        return;
    }
    relay->request.done = on_removed;
    weir__relay_remove(topic, weir__slice_of(relay->seq, WEIR__SEQ_LEN),
                       &relay->request);
    weir__place_flush(topic->place);
}

/* The pack first: an entry without one has been sent. */
static void remove_entry(struct weir__relay *relay)
{
    const struct weir__store_topic *topic = relay->box->topic;
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, 2);
    weir__resp_str(&bytes, "DEL");
    weir__prefix_outgoing(&bytes, &topic->prefix, relay->seq);
    relay->request.done = on_pack_removed;
    weir__place_send(topic->place, &bytes, NULL, WEIR__SEND_AGAIN,
                     &relay->request);
    weir__place_flush(topic->place);
}

/* --- jobs that the target cannot have ------------------------------------- */

static void write_job(struct weir__buf *bytes, const struct weir__relay *relay,
                      struct weir__undeliverable *job, const char *error)
{
    struct weir__record record;

    if (weir__record_read(job->stored, &record) == WEIR_OK) {
        record.reason = weir__slice_str("undeliverable");
        record.error = weir__slice_str(error);
        record.added_ms = weir__seq_ms(relay->seq);
        job->record = &record;
    }
    relay->box->topic->kind->write_undeliverable(relay->box->topic, bytes, job);
}

static void write_jobs(struct weir__buf *bytes, const struct weir__relay *relay,
                       const struct weir__pack *pack, const char *error)
{
    struct weir_slice ids[WEIR__SLOTS_MAX] = {{0}};

    if (pack->has_ids)
        weir__pack_ids(pack, ids);
    for (size_t slot = 0; slot < pack->count; slot++) {
        char made[WEIR__MADE_ID_LEN + 1];
        struct weir__undeliverable job = {
            .id = ids[slot],
            .made_id = made,
            .stored = weir__pack_record(pack, slot),
        };

        if (is_gone(relay, slot))
            continue;
        weir__made_id(relay->seq, (unsigned)slot, made);
        write_job(bytes, relay, &job, error);
    }
}

static void on_dead(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    const struct weir__relay *relay = relay_of(request);
    int64_t evicted;

    if (code == WEIR_OK && weir__reply_int(reply, 1, &evicted))
        weir__topic_evicted(relay->box->topic, evicted);
    on_removed(request, code, reply);
}

/* A call of the kind's script; `rest` arguments follow. */
static void write_undeliverable(struct weir__buf *bytes,
                                const struct weir__relay *relay, size_t rest)
{
    const struct weir__store_topic *topic = relay->box->topic;

    weir__resp_eval(bytes, topic->kind->undeliverable, 6, 2 + rest);
    weir__prefix_keys(bytes, &topic->prefix, topic->kind->undeliverable_keys);
    weir__prefix_outgoing(bytes, &topic->prefix, relay->seq);
    weir__resp_bytes(bytes, weir__slice_of(relay->seq, WEIR__SEQ_LEN));
    weir__resp_int(bytes, topic->options->max_dead);
}

static void send_undeliverable(struct weir__relay *relay,
                               struct weir__buf *bytes)
{
    const struct weir__store_topic *topic = relay->box->topic;

    weir__place_send(topic->place, bytes, topic->kind->undeliverable,
                     WEIR__SEND_AGAIN, &relay->request);
    weir__place_flush(topic->place);
}

/* They die in the source. A pack that cannot be read has no jobs. */
static void keep_dead(struct weir__relay *relay, const char *why)
{
    struct weir__pack pack = {.count = 0};
    struct weir__buf bytes = {0};
    char error[WEIR_MAX_TOPIC + 64];
    size_t jobs;

    if (weir__pack_read(weir__buf_slice(&relay->pack), &pack) != WEIR_OK ||
        pack.count != relay->jobs) {
        tell_refused(relay, "does not take a pack that is broken");
        remove_entry(relay);
        return;
    }
    (void)snprintf(error, sizeof(error), "%.*s %s", (int)relay->target.len,
                   (const char *)relay->target.ptr, why);
    tell_refused(relay, why);
    WEIR_ASSERT(relay->gone.len < pack.count);
    jobs = relay->exist_count > 0 ? relay->exist_count
                                  : pack.count - relay->gone.len;
    write_undeliverable(&bytes, relay, 3 * jobs);
    write_jobs(&bytes, relay, &pack, error);
    relay->request.done = on_dead;
    send_undeliverable(relay, &bytes);
}

/* --- adding --------------------------------------------------------------- */

/* In a cluster the target's server may lose the jobs after the entry went; a
 * single server that loses them has the entry again. */
static unsigned flags_of(const struct weir__relay *relay)
{
    return weir__cluster_is_one(relay->request.store)
               ? WEIR__SEND_AGAIN | WEIR__SEND_REPLAY
               : WEIR__SEND_AGAIN;
}

/* Under its name in the target. The answer goes to `request.done`. */
static void stage(struct weir__relay *relay, const struct weir__buf *pack)
{
    struct weir__prefix target;
    struct weir__buf bytes = {0};

    weir__prefix_init(&target, relay->request.store, relay->target);
    weir__resp_command(&bytes, 6);
    weir__resp_str(&bytes, "SET");
    weir__prefix_pack(&bytes, &target, relay->name);
    weir__resp_bytes(&bytes, weir__buf_slice(pack));
    weir__resp_str(&bytes, "NX");
    weir__resp_str(&bytes, "PX");
    weir__resp_int(&bytes, WEIR__STAGED_MS);
    bytes.failed = bytes.failed || pack->failed;
    weir__place_send(relay->place, &bytes, NULL, flags_of(relay),
                     &relay->request);
    weir__place_flush(relay->place);
}

/* False: the pack is not staged. Without an error its name is taken, maybe by
 * another producer; the add is recognised by its call slot, so any name will
 * do, and `relay` has a new one. */
static bool is_staged(struct weir__relay *relay, int code,
                      const struct redisReply *reply)
{
    weir__topic_log_error(relay->box->topic, "relay", code, reply);
    if (code != WEIR_OK)
        weir__relays_put_off(relay);
    else if (reply->type == REDIS_REPLY_NIL)
        weir__topic_next_seq(relay->box->topic, relay->name);
    return code == WEIR_OK && reply->type != REDIS_REPLY_NIL;
}

/* What one call of the add script says. */
struct relay_add {
    const char *call_slot_end; /* tells the second pack's call slot */
    uint64_t jobs, header_len;
    struct weir_slice gone;
};

static void send_add(struct weir__relay *relay, const struct relay_add *add)
{
    struct weir__buf bytes = {0};
    struct weir__prefix target;
    char call_slot[WEIR__RELAY_SLOT_MAX + 4];
    bool is_laned = relay->when.len > 0 && relay->when.ptr[0] == 'l';

    weir__prefix_init(&target, relay->request.store, relay->target);
    (void)snprintf(call_slot, sizeof(call_slot), "%.*s%s",
                   (int)relay->call_slot.len,
                   (const char *)relay->call_slot.ptr, add->call_slot_end);
    weir__resp_eval(&bytes, &weir__script_delay_add, 6u + is_laned, 8);
    weir__prefix_keys(&bytes, &target, "wait ids meta idle seen");
    weir__prefix_pack(&bytes, &target, relay->name);
    if (is_laned)
        weir__prefix_key(&bytes, &target, "absent");
    weir__resp_bytes(&bytes, relay->target);
    weir__resp_str(&bytes, "delay");
    weir__resp_str(&bytes, call_slot);
    weir__resp_int(&bytes, (int64_t)relay->number);
    weir__resp_int(&bytes, (int64_t)add->jobs);
    weir__resp_int(&bytes, (int64_t)add->header_len);
    weir__resp_bytes(&bytes, relay->when);
    weir__resp_bytes(&bytes, add->gone);
    weir__place_send(relay->place, &bytes, &weir__script_delay_add,
                     flags_of(relay), &relay->request);
    weir__place_flush(relay->place);
}

/* What the add said. */
enum answer { ADDED, FULL, OTHER_KIND, NOT_STAGED, BROKEN, NO_ANSWER };

static enum answer read_answer(struct weir__relay *relay,
                               const struct redisReply *reply)
{
    int64_t added, slot;

    if (!weir__reply_int(reply, 0, &added))
        return NO_ANSWER;
    if (added < 0)
        return added == -1 ? OTHER_KIND : FULL;
    for (size_t i = 1; i + 1 < (size_t)reply->elements; i += 2) {
        if (!weir__reply_int(reply, i + 1, &slot))
            return NO_ANSWER;
        if (slot == -2)
            return NOT_STAGED;
        if (slot == -3)
            return BROKEN;
        if (slot == WEIR__NOT_STORED)
            return NO_ANSWER;
        if (slot < 0 || (uint64_t)slot >= relay->jobs)
            continue; /* of this name: it was added */
        relay->exist_count += !relay->exist[slot];
        relay->exist[slot] = true;
    }
    return ADDED;
}

/* True: the jobs are there, but for those whose ids exist. */
static bool has_added(struct weir__relay *relay, int code,
                      const struct redisReply *reply)
{
    enum answer answer;

    weir__topic_log_error(relay->box->topic, "relay", code, reply);
    answer = code == WEIR_OK ? read_answer(relay, reply) : NO_ANSWER;
    if (code == WEIR_OK && answer != ADDED)
        weir__conn_replay_nothing(relay->place->server->commands);
    switch (answer) {
    case ADDED:
        return true;
    case FULL:
        tell_refused(relay, "is full (max_pending); jobs for it wait");
        weir__relays_put_off(relay);
        return false;
    case OTHER_KIND:
        keep_dead(relay, "is not of kind delay");
        return false;
    case BROKEN:
        keep_dead(relay, "does not take them");
        return false;
    case NOT_STAGED:
    case NO_ANSWER:
    default:
        weir__relays_put_off(relay);
        return false;
    }
}

static void on_second_added(struct weir__request *request, int code,
                            const struct redisReply *reply)
{
    struct weir__relay *relay = relay_of(request);

    if (has_added(relay, code, reply))
        remove_entry(relay);
}

static void on_second_staged(struct weir__request *request, int code,
                             const struct redisReply *reply);

/* Dead jobs whose ids exist there go once more, without. The add is repeated
 * with the same answer, so this pack is the same each time. */
static void stage_second(struct weir__relay *relay)
{
    struct weir__pack_job jobs[WEIR__SLOTS_MAX];
    struct weir__pack pack;
    struct weir__buf second = {0};
    size_t count = 0;

    if (weir__pack_read(weir__buf_slice(&relay->pack), &pack) == WEIR_OK)
        for (size_t slot = 0; slot < pack.count; slot++)
            if (relay->exist[slot])
                jobs[count++].record = weir__pack_record(&pack, slot);
    if (count == 0) {
        remove_entry(relay);
        return;
    }
    WEIR_ASSERT(count <= relay->jobs && count == relay->exist_count);
    weir__pack_write(&second, jobs, count, false);
    relay->request.done = on_second_staged;
    stage(relay, &second);
    weir__buf_fini(&second);
}

static void on_second_staged(struct weir__request *request, int code,
                             const struct redisReply *reply)
{
    struct weir__relay *relay = relay_of(request);

    if (is_staged(relay, code, reply)) {
        relay->request.done = on_second_added;
        send_add(relay, &(struct relay_add){
                            .call_slot_end = "t",
                            .jobs = relay->exist_count,
                            .header_len = WEIR__PACK_HEAD,
                        });
    } else if (code == WEIR_OK) {
        stage_second(relay);
    }
}

static void on_added(struct weir__request *request, int code,
                     const struct redisReply *reply)
{
    struct weir__relay *relay = relay_of(request);
    const struct weir__store_topic *topic = relay->box->topic;

    if (!has_added(relay, code, reply))
        return;
    if (relay->exist_count > 0 && relay->second.len > 0) {
        WEIR_ASSERT(relay->second.len == WEIR__SEQ_LEN);
        memcpy(relay->name, relay->second.ptr, WEIR__SEQ_LEN);
        stage_second(relay);
        return;
    }
    if (relay->exist_count > 0)
        weir__log(topic->store->options.log, WEIR_LEVEL_WARN,
                  "redis: %s: %zu jobs that handlers added with their verdicts "
                  "exist already",
                  topic->name, relay->exist_count);
    remove_entry(relay);
}

static void on_lost(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    const struct weir__relay *relay = relay_of(request);

    if (code == WEIR_OK && reply->type == REDIS_REPLY_ARRAY)
        weir__topic_log_loss(relay->box->topic, WEIR__LOSS_OUTBOX,
                             relay->jobs - relay->gone.len, relay->target);
    on_removed(request, code, reply);
}

/* The entry has no pack. The target tells by the call slot whether its jobs
 * were added; else they are lost. */
static void on_asked(struct weir__request *request, int code,
                     const struct redisReply *reply)
{
    struct weir__relay *relay = relay_of(request);
    struct weir__buf bytes = {0};
    enum answer answer =
        code == WEIR_OK ? read_answer(relay, reply) : NO_ANSWER;

    weir__topic_log_error(relay->box->topic, "relay", code, reply);
    if (answer == ADDED) {
        remove_entry(relay);
    } else if (answer == NO_ANSWER) {
        weir__relays_put_off(relay);
    } else {
        write_undeliverable(&bytes, relay, 1);
        weir__resp_int(&bytes, (int64_t)(relay->jobs - relay->gone.len));
        relay->request.done = on_lost;
        send_undeliverable(relay, &bytes);
    }
}

static void ask_add(struct weir__relay *relay)
{
    relay->exist_count = 0;
    memset(relay->exist, 0, sizeof(relay->exist));
    send_add(relay, &(struct relay_add){
                        .call_slot_end = "",
                        .jobs = relay->jobs,
                        .header_len = relay->header_len,
                        .gone = relay->gone,
                    });
}

static void on_staged(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct weir__relay *relay = relay_of(request);

    if (is_staged(relay, code, reply)) {
        relay->request.done = on_added;
        ask_add(relay);
    } else if (code == WEIR_OK) {
        stage(relay, &relay->pack); /* comes here again */
    }
}

static void add(struct weir__relay *relay)
{
    WEIR_ASSERT(relay->pack.len > 0 && relay->gone.len < relay->jobs);
    memcpy(relay->name, relay->seq, WEIR__SEQ_LEN);
    relay->request.done = on_staged;
    stage(relay, &relay->pack);
}

/* --- the pack ----------------------------------------------------------- */

static void on_pack(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    struct weir__relay *relay = relay_of(request);

    weir__topic_log_error(relay->box->topic, "relay", code, reply);
    if (code != WEIR_OK) {
        weir__relays_put_off(relay);
        return;
    }
    if (reply->type != REDIS_REPLY_STRING) { /* it is lost, or went before */
        memcpy(relay->name, relay->seq, WEIR__SEQ_LEN);
        relay->request.done = on_asked;
        ask_add(relay);
        return;
    }
    weir__buf_append(&relay->pack, reply->str, (size_t)reply->len);
    if (relay->pack.failed)
        weir__relays_put_off(relay);
    else
        add(relay);
}

static void fetch(struct weir__relay *relay)
{
    const struct weir__store_topic *topic = relay->box->topic;
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, 2);
    weir__resp_str(&bytes, "GET");
    weir__prefix_outgoing(&bytes, &topic->prefix, relay->seq);
    relay->request.done = on_pack;
    weir__place_send(topic->place, &bytes, NULL,
                     WEIR__SEND_AGAIN | weir__send_bodies(1), &relay->request);
}

void weir__relay_send(struct weir__relay *relay)
{
    WEIR_ASSERT(!relay->is_waiting && relay->box->sending > 0);
    if (relay->pack.len > 0)
        add(relay);
    else
        fetch(relay);
}
