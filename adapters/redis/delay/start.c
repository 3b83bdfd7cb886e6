/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/msgpack/attempts.h"
#include "adapters/redis/delay/backlog.h"
#include "adapters/redis/pack.h"
#include "core/assert.h"
#include "core/lane.h"
#include "core/mem.h"
#include "core/text.h"

/* Suspects: noting on the server that one is about to run, and saying which one
 * ran when this worker died. */

/* --- starting ----------------------------------------------------------- */

static struct weir_attempt crash_at(int64_t ms)
{
    return (struct weir_attempt){.outcome = WEIR_ATTEMPT_CRASH,
                                 .ended_ms = ms < 0 ? 0 : ms};
}

void weir__add_crashes(const struct redisReply *reply, size_t from,
                       uint32_t crashes, int64_t otherwise_ms,
                       struct weir_slice *attempts, struct weir__buf *buf)
{
    struct weir_attempt all[2 * WEIR_MAX_ATTEMPTS];
    size_t count = weir__attempts_read(*attempts, all), end = from;
    struct weir_slice worker, how;
    int64_t ms;

    if (crashes > WEIR_MAX_ATTEMPTS)
        crashes = WEIR_MAX_ATTEMPTS;
    while (weir__reply_int(reply, end, &ms) &&
           weir__reply_str(reply, end + 1, &worker) &&
           weir__reply_str(reply, end + 2, &how))
        end += 3;
    if ((end - from) / 3 > crashes)
        from = end - 3 * (size_t)crashes;
    for (size_t i = (end - from) / 3; i < crashes && otherwise_ms > 0; i++)
        all[count++] = crash_at(otherwise_ms);
    for (; from < end; from += 3) {
        (void)weir__reply_int(reply, from, &ms);
        (void)weir__reply_str(reply, from + 1, &worker);
        (void)weir__reply_str(reply, from + 2, &how);
        all[count] = crash_at(ms);
        all[count].error = how;
        all[count++].worker = weir__worker_name(worker);
    }
    weir__buf_reset(buf);
    weir__attempts_write(buf, all, count);
    if (!buf->failed)
        *attempts = weir__buf_slice(buf);
}

/* By the server's clock, about. */
static int64_t claimed_ms(const struct weir__run *run)
{
    return run->due_ms + weir__run_late_us(run, run->claimed_ns) / 1000;
}

static void on_started(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct weir__claimed_node *node =
        (struct weir__claimed_node *)request; /* its first member */
    struct weir__delay_topic *topic = node->lease->topic;
    struct weir__run *run = node->starting;
    int64_t is_noted;

    WEIR_ASSERT(run != NULL);
    node->starting = NULL;
    weir__backlog_note_error(topic, "start", code, reply);
    if (code == WEIR_OK && !weir__reply_int(reply, 0, &is_noted))
        code = WEIR_ESERVER;
    if (code == WEIR_OK && is_noted == 0)
        code = WEIR_ENOTFOUND;
    if (code == WEIR_OK && node->ended > 0)
        weir__add_crashes(reply, 1, node->ended, claimed_ms(run),
                          &run->record.attempts, &node->crashes);
    if (topic->base.user != NULL)
        topic->base.store->events.started(topic->base.user, run, code);
}

void weir__delay_start(struct weir__store_topic *base, struct weir__run *run)
{
    struct weir__delay_topic *topic = weir__delay_topic_of(base);
    struct weir__delay_lease *lease = run->batch;
    struct weir__claimed_node *node = &lease->nodes[run->node];
    struct weir__buf bytes = {0};

    WEIR_ASSERT(run->magic == WEIR__RUN_MAGIC && lease->topic == topic);
    WEIR_ASSERT(run->is_suspect && node->size == 1);
    WEIR_ASSERT(node->starting == NULL);
    node->start.done = on_started;
    node->starting = run;
    weir__resp_eval(&bytes, &weir__script_delay_start, 2, 3);
    weir__prefix_keys(&bytes, &topic->base.prefix, "run started");
    weir__resp_bytes(&bytes, weir__slice_of(node->name, sizeof(node->name)));
    weir__resp_int(&bytes, (int64_t)lease->base.token);
    weir__resp_str(&bytes, topic->base.store->worker);
    weir__place_send(topic->base.place, &bytes, &weir__script_delay_start,
                     WEIR__SEND_AGAIN, &node->start);
}

/* --- recalling ---------------------------------------------------------- */

struct recall_request {
    struct weir__request request;
    struct weir__delay_topic *topic;
    char node[WEIR__NODE_LEN];
    unsigned slot;
};

static void say_id(const struct recall_request *recall, struct weir_slice bytes)
{
    struct weir_slice ids[WEIR__SLOTS_MAX], id;
    char made[WEIR__MADE_ID_LEN + 1];
    struct weir__pack pack;

    if (weir__pack_read(bytes, &pack) != WEIR_OK || recall->slot >= pack.count)
        return;
    weir__made_id(recall->node, recall->slot, made);
    id = weir__slice_str(made);
    if (pack.has_ids) {
        weir__pack_ids(&pack, ids);
        if (ids[recall->slot].len > 0)
            id = ids[recall->slot];
    }
    weir__log(recall->topic->base.store->options.log, WEIR_LEVEL_WARN,
              "redis: %s: when this worker died last time it was running job "
              "%.*s",
              recall->topic->base.name, (int)id.len, (const char *)id.ptr);
}

static void on_pack(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    struct recall_request *recall =
        (struct recall_request *)request; /* first member */

    if (code == WEIR_OK && reply->type == REDIS_REPLY_STRING)
        say_id(recall, weir__slice_of(reply->str, (size_t)reply->len));
    weir__mem_free(recall);
}

static void on_recalled(struct weir__request *request, int code,
                        const struct redisReply *reply)
{
    struct recall_request *recall =
        (struct recall_request *)request; /* first member */
    struct weir__buf bytes = {0};
    struct weir_slice node;
    int64_t schedules;
    unsigned hi;

    weir__topic_log_error(&recall->topic->base, "recall", code, reply);
    if (code == WEIR_OK && weir__reply_int(reply, 1, &schedules) &&
        schedules > 0) {
        recall->topic->has_ticks = true;
        (void)weir__delay_mend_ticks(recall->topic, "all", NULL, NULL);
    }
    if (code != WEIR_OK || !weir__reply_str(reply, 0, &node) ||
        weir__node_read(node, &recall->slot, &hi) != WEIR_OK ||
        !weir__seq_is_sound((const char *)node.ptr)) {
        weir__mem_free(recall);
        return;
    }
    memcpy(recall->node, node.ptr, sizeof(recall->node));
    recall->request.done = on_pack;
    weir__resp_command(&bytes, 2);
    weir__resp_str(&bytes, "GET");
    weir__prefix_pack(&bytes, &recall->topic->base.prefix, recall->node);
    weir__place_send(recall->topic->base.place, &bytes, NULL, WEIR__SEND_AGAIN,
                     &recall->request);
}

void weir__delay_recall(struct weir__delay_topic *topic)
{
    struct recall_request *recall = weir__mem_new(sizeof(*recall));
    struct weir__buf bytes = {0};

    if (recall == NULL)
        return; /* the next claim tries again */
    topic->has_recalled = true;
    recall->request.done = on_recalled;
    recall->topic = topic;
    weir__resp_eval(&bytes, &weir__script_delay_recall, 4, 1);
    weir__prefix_keys(&bytes, &topic->base.prefix, "wait run started cron");
    weir__resp_str(&bytes, topic->base.store->worker);
    weir__place_send(topic->base.place, &bytes, &weir__script_delay_recall,
                     WEIR__SEND_ONCE, &recall->request);
}
