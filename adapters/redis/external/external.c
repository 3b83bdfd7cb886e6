/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/external/private.h"
#include "adapters/redis/store/cluster.h"
#include "core/assert.h"

/* The rules of list and stream topics as two tables, and the life of one. */

struct weir__external_topic *
weir__external_topic_of(struct weir__store_topic *topic)
{
    WEIR_ASSERT(topic->kind == &weir__list_kind ||
                topic->kind == &weir__stream_kind);
    return (struct weir__external_topic *)topic; /* its first member */
}

/* --- life --------------------------------------------------------------- */

static void topic_fini(struct weir__store_topic *base)
{
    struct weir__external_topic *topic = weir__external_topic_of(base);

    while (base->leases != NULL)
        weir__external_lease_free((struct weir__external_lease *)base->leases);
    while (topic->calls != NULL) {
        struct weir__external_call *call = topic->calls;

        topic->calls = call->next;
        weir__external_call_free(call);
    }
    weir__relays_fini(&topic->outbox);
    WEIR_ASSERT(topic->adds == NULL && topic->waits == NULL);
}

static void shared_fini(struct weir__shared *shared)
{
    struct weir__external *external =
        (struct weir__external *)shared; /* its first member */

    for (size_t i = 0; i < 3; i++)
        weir__buf_fini(&external->scratch[i]);
}

static void closing(struct weir__store_topic *topic)
{
    weir__external_stop_waiting(weir__external_topic_of(topic));
}

static void fail_adds(struct weir__store_topic *topic, int code)
{
    weir__external_fail_adds(weir__external_topic_of(topic), code);
}

/* Workers wait for entries by a connection of their own: external/wait.c. */
static void woken(struct weir__store_topic *topic)
{
    (void)topic;
}

/* A claim that another node owed came to nothing, and nobody else wakes. Of one
 * server the user is told that it is back. */
static void connected(struct weir__store_topic *topic)
{
    if (topic->user != NULL && weir__cluster_is_one(topic->store))
        topic->store->events.wake(topic->user);
}

static void look(struct weir__store_topic *base)
{
    struct weir__external_topic *topic = weir__external_topic_of(base);

    if (topic->waits != NULL)
        weir__place_look_beside(base->place, topic->waits);
}

/* A claim under other options took nothing and waited for them. */
static void followed(struct weir__store_topic *topic, int code)
{
    struct weir__claimed claimed = {.code = code};

    if (topic->user != NULL)
        topic->store->events.claimed(topic->user, &claimed); /* claim again */
}

/* --- topics ------------------------------------------------------------- */

static void topic_init(struct weir__store_topic *base)
{
    struct weir__external_topic *topic = weir__external_topic_of(base);

    topic->shared = (struct weir__external *)weir__redis_shared(
        base->store, base->kind); /* its first member */
    topic->is_stream = base->kind == &weir__stream_kind;
    (void)snprintf(topic->consumer, sizeof(topic->consumer), "%s:%s",
                   base->store->url.prefix, base->name); /* it fits */
    topic->calls_end = &topic->calls;
    topic->adds_end = &topic->adds;
    weir__relays_init(&topic->outbox, base);
}

const char *weir__external_key(const struct weir__external_topic *topic)
{
    return topic->base.options->key[0] != '\0' ? topic->base.options->key
                                               : topic->base.name;
}

const char *weir__external_end(bool is_right)
{
    return is_right ? "right" : "";
}

const char *weir__external_group(const struct weir__external_topic *topic)
{
    if (!topic->is_stream)
        return "";
    return topic->base.options->group[0] != '\0'
               ? topic->base.options->group
               : topic->base.store->url.prefix;
}

/* Another key: what waits for the old one waits in vain. */
static void serve(struct weir__store_topic *base)
{
    struct weir__external_topic *topic = weir__external_topic_of(base);

    if (strcmp(topic->served_key, base->options->key) != 0) {
        topic->found_ns = 0;
        weir__external_stop_waiting(topic);
    }
    if (topic->served_end != base->options->end ||
        topic->served_body != base->options->body)
        topic->found_ns = 0;
    memcpy(topic->served_key, base->options->key, sizeof(topic->served_key));
    topic->served_end = base->options->end;
    topic->served_body = base->options->body;
}

static void listen(struct weir__store_topic *topic)
{
    if (topic->user == NULL)
        closing(topic);
}

/* What is acknowledged was taken for good. */
static bool is_unleased(const struct weir__store_topic *topic)
{
    return topic->options->auto_ack;
}

/* --- flush -------------------------------------------------------------- */

/* Settle before claim: what was settled makes room on the server first. */
static void flush(struct weir__store_topic *base)
{
    struct weir__external_topic *topic = weir__external_topic_of(base);

    if ((topic->adds != NULL || topic->base.wants_claim) &&
        !weir__topic_register(&topic->base))
        return;
    weir__external_flush_adds(topic);
    weir__external_flush_settles(topic);
    weir__external_flush_claim(topic);
}

/* What differs is how an entry is taken, waited for and added. */
#define EXTERNAL_KIND(kind_name)                                              \
    {                                                                         \
        .name = (kind_name),                                                  \
        .topic_size = sizeof(struct weir__external_topic),                    \
        .shared_size = sizeof(struct weir__external),                         \
        .shared_fini = shared_fini, .topic_init = topic_init,                 \
        .topic_fini = topic_fini, .serve = serve, .listen = listen,           \
        .connected = connected, .look = look, .woken = woken, .flush = flush, \
        .followed = followed, .fail_adds = fail_adds, .closing = closing,     \
        .settle = weir__external_settle, .start = weir__external_start,       \
        .renew = weir__external_renew, .is_unleased = is_unleased,            \
        .add = weir__external_add, .requeue = weir__external_requeue,         \
        .purge = weir__external_purge, .forget = weir__external_forget,       \
        .list = weir__external_list, .stats = weir__external_stats,           \
        .undeliverable = &weir__script_external_undeliverable,                \
        .undeliverable_keys = "meta dead held past relay",                    \
        .write_undeliverable = weir__external_write_undeliverable,            \
    }

const struct weir__kind weir__list_kind = EXTERNAL_KIND("list");
const struct weir__kind weir__stream_kind = EXTERNAL_KIND("stream");
