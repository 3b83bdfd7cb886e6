/* SPDX-License-Identifier: MIT */
#include "adapters/redis/external/private.h"
#include "core/assert.h"
#include "core/mem.h"

/* Prolonging leases, and noting that a suspect is about to run. */

struct renew_ask {
    struct weir__ask ask;
    struct weir__feed_topic *topic;
};

static void on_renewed(struct weir__ask *ask, int code,
                       const struct redisReply *reply)
{
    struct weir__feed_topic *topic = ((struct renew_ask *)ask)->topic;
    const struct weir__store_events *events = &topic->store->base.events;
    size_t count = 0;

    weir__mem_free(ask);
    weir__base_log_error(&topic->base, "renew", code, reply);
    if (code == WEIR_OK && reply->type == REDIS_REPLY_ARRAY)
        count = (size_t)reply->elements;
    if (count > 0)
        weir__log(topic->store->base.options.log, WEIR_LEVEL_WARN,
                  "redis: %s: %zu leases are gone; their entries run again",
                  topic->base.name, count);
    for (size_t i = 0; i < count; i++) {
        struct weir_slice digits;
        uint64_t token = 0;

        if (!weir__reply_str(reply, i, &digits) || topic->base.user == NULL ||
            events->lost == NULL)
            continue;
        for (size_t at = 0; at < digits.len; at++)
            token = token * 10 + (uint64_t)(digits.ptr[at] - '0');
        events->lost(topic->base.user, token);
    }
}

/* All but the tokens. */
static void write_renewal(struct weir__buf *buf,
                          const struct weir__feed_topic *topic, size_t count,
                          int64_t lease_ms)
{
    weir__resp_eval(buf, &weir__script_external_renew, 3, 3 + count);
    weir__prefix_keys(buf, &topic->base.prefix, "lease run");
    weir__resp_str(buf, weir__feed_key(topic));
    weir__resp_int(buf, lease_ms);
    weir__resp_str(buf, weir__feed_group(topic));
    weir__resp_str(buf, topic->consumer);
}

/* Renew up to 1,000 claims from `claim` on; returns the rest. */
static const struct weir__feed_claim *
renew_some(struct weir__feed_topic *topic, const struct weir__feed_claim *claim,
           int64_t lease_ms)
{
    const struct weir__feed_claim *end = claim;
    struct renew_ask *renew = weir__mem_new(sizeof(*renew));
    struct weir__buf bytes = {0};
    size_t count = 0;

    for (; end != NULL && count < WEIR__FEED_CALL; end = end->next)
        count++;
    if (renew == NULL)
        return end;
    renew->ask.done = on_renewed;
    renew->topic = topic;
    write_renewal(&bytes, topic, count, lease_ms);
    for (; claim != end; claim = claim->next)
        weir__resp_int(&bytes, (int64_t)claim->token);
    weir__base_send(&topic->store->base, &bytes, &weir__script_external_renew,
                    WEIR__SEND_AGAIN, &renew->ask);
    return end;
}

void weir__feed_renew(struct weir__store_topic *base, int64_t lease_ms)
{
    struct weir__feed_topic *topic = weir__feed_topic_of(base);
    const struct weir__feed_claim *claim = topic->claims;

    while (claim != NULL && !topic->store->base.is_closed)
        claim = renew_some(topic, claim, lease_ms);
}

/* One call; further than WEIR__FEED_CALL they are not kept. */
void weir__feed_write_renewals(struct weir__buf *buf,
                               const struct weir__base_topic *base)
{
    const struct weir__feed_topic *topic =
        (const struct weir__feed_topic *)base; /* its first member */
    const struct weir__feed_claim *claim = topic->claims;
    size_t count = 0;

    for (; claim != NULL && count < WEIR__FEED_CALL; claim = claim->next)
        count++;
    if (count == 0)
        return;
    write_renewal(buf, topic, count, base->claim.lease_ms);
    for (claim = topic->claims; count > 0; claim = claim->next, count--)
        weir__resp_int(buf, (int64_t)claim->token);
    weir__buf_append(buf, "", 1); /* ends the call */
}

/* --- suspects ----------------------------------------------------------- */

static void on_started(struct weir__ask *ask, int code,
                       const struct redisReply *reply)
{
    struct weir__feed_entry *entry = (struct weir__feed_entry *)ask; /* first */
    struct weir__run *run = entry->starting;
    const struct weir__feed_claim *claim = run->batch;
    struct weir__feed_topic *topic = claim->topic;
    int64_t is_ours = 0;

    entry->starting = NULL;
    weir__base_log_error(&topic->base, "start", code, reply);
    if (code == WEIR_OK && !weir__reply_int(reply, 0, &is_ours))
        code = WEIR_ESERVER;
    if (code == WEIR_OK && is_ours != 1)
        code = WEIR_ENOTFOUND;
    if (topic->base.user != NULL)
        topic->store->base.events.started(topic->base.user, run, code);
}

void weir__feed_start(struct weir__store_topic *base, struct weir__run *run)
{
    struct weir__feed_topic *topic = weir__feed_topic_of(base);
    struct weir__feed_claim *claim = run->batch;
    struct weir__feed_entry *entry = &claim->entries[run->node];
    struct weir__buf bytes = {0};

    WEIR_ASSERT(run->magic == WEIR__RUN_MAGIC && claim->topic == topic);
    WEIR_ASSERT(run->is_suspect && entry->starting == NULL);
    entry->start.done = on_started;
    entry->starting = run;
    weir__resp_eval(&bytes, &weir__script_external_start, 2, 2);
    weir__prefix_keys(&bytes, &topic->base.prefix, "run past");
    weir__resp_int(&bytes, (int64_t)run->token);
    weir__resp_bytes(&bytes, run->id);
    weir__base_send(&topic->store->base, &bytes, &weir__script_external_start,
                    WEIR__SEND_AGAIN, &entry->start);
}
