/* SPDX-License-Identifier: MIT */
#include "adapters/redis/external/feed.h"

#include <stdio.h>
#include <string.h>

#include "adapters/redis/external/private.h"
#include "adapters/redis/refuse.h"
#include "adapters/redis/store/keeper.h"
#include "core/assert.h"

/* Life of the store and of its topics. */

static const struct weir__base_kind feed_kind;

static struct weir__feed *feed_of(struct weir__base *base)
{
    return (struct weir__feed *)base; /* its first member */
}

static struct weir__feed_topic *topic_of(struct weir__base_topic *base)
{
    return (struct weir__feed_topic *)base; /* its first member */
}

struct weir__feed_topic *weir__feed_topic_of(struct weir__store_topic *port)
{
    return topic_of(weir__base_topic_of(port, &feed_kind));
}

/* --- life --------------------------------------------------------------- */

static void topic_fini(struct weir__base_topic *base)
{
    struct weir__feed_topic *topic = topic_of(base);

    while (topic->claims != NULL)
        weir__feed_claim_free(topic->claims);
    while (topic->calls != NULL) {
        struct weir__feed_call *call = topic->calls;

        topic->calls = call->next;
        weir__feed_call_free(call);
    }
    WEIR_ASSERT(topic->adds == NULL && topic->waits == NULL);
}

static void fini(struct weir__base *base)
{
    for (size_t i = 0; i < 2; i++)
        weir__buf_fini(&feed_of(base)->scratch[i]);
}

static void closing(struct weir__base *base)
{
    for (struct weir__base_topic *topic = base->topics; topic != NULL;
         topic = topic->next)
        weir__feed_stop_waiting(topic_of(topic));
}

static void fail_adds(struct weir__base_topic *topic, int code)
{
    weir__feed_fail_adds(topic_of(topic), code);
}

static void connected(struct weir__base *base)
{
    for (struct weir__base_topic *topic = base->topics; topic != NULL;
         topic = topic->next)
        if (topic_of(topic)->calls != NULL)
            weir__base_mark(topic); /* they wait for a number */
}

/* Adds wait for no number; settles are asked for again after a reconnect. */
static void numbered(struct weir__base_topic *topic, int code)
{
    if (code == WEIR_OK)
        weir__feed_flush_settles(topic_of(topic));
}

/* A claim under other options took nothing and waited for them. */
static void followed(struct weir__base_topic *topic, int code)
{
    struct weir__claimed claimed = {.code = code};

    if (topic->user != NULL)
        topic->base->events.claimed(topic->user, &claimed); /* claim again */
}

/* --- topics ------------------------------------------------------------- */

static void topic_init(struct weir__base_topic *base)
{
    struct weir__feed_topic *topic = topic_of(base);

    topic->store = feed_of(base->base);
    (void)snprintf(topic->consumer, sizeof(topic->consumer), "weir:%s",
                   base->name); /* it fits */
    topic->calls_end = &topic->calls;
    topic->adds_end = &topic->adds;
}

const char *weir__feed_key(const struct weir__feed_topic *topic)
{
    return topic->options.key[0] != '\0' ? topic->options.key
                                         : topic->base.name;
}

const char *weir__feed_group(const struct weir__feed_topic *topic)
{
    if (!topic->store->is_stream)
        return "";
    return topic->options.group[0] != '\0' ? topic->options.group : "weir";
}

/* Another key: what waits for the old one waits in vain. */
static void serve(struct weir__feed_topic *topic,
                  const struct weir__store_topic_options *options)
{
    char before[WEIR__SOURCE_MAX + 1];

    WEIR_ASSERT(options->on_dead.len <= WEIR_MAX_TOPIC);
    memcpy(before, weir__feed_key(topic), strlen(weir__feed_key(topic)) + 1);
    topic->options = options->feed;
    topic->is_served = true;
    topic->max_dead = options->max_dead;
    memset(topic->on_dead, 0, sizeof(topic->on_dead));
    if (options->on_dead.len > 0)
        memcpy(topic->on_dead, options->on_dead.ptr, options->on_dead.len);
    if (strcmp(before, weir__feed_key(topic)) != 0) {
        topic->found_ns = 0;
        weir__feed_stop_waiting(topic);
    }
}

static int topic_open(struct weir__store *port,
                      const struct weir__store_topic_options *options,
                      struct weir__store_topic **ret_topic)
{
    struct weir__base *base = weir__base_of(port, &feed_kind);
    bool was_in = weir__keeper_shut(base->keeper);
    struct weir__feed_topic *topic =
        topic_of(weir__base_topic_open(base, options->name));

    if (topic != NULL && options->max_dead > 0) /* requests name none */
        serve(topic, options);
    weir__keeper_reopen(base->keeper, was_in);
    if (topic == NULL)
        return WEIR_ENOMEM;
    *ret_topic = (void *)topic;
    return WEIR_OK;
}

static void topic_listen(struct weir__store_topic *base, void *user)
{
    struct weir__feed_topic *topic = weir__feed_topic_of(base);

    topic->base.user = user;
    if (user == NULL)
        weir__feed_stop_waiting(topic);
    else
        weir__keep_begin(topic->base.base);
}

/* What is acknowledged was taken for good. */
static int64_t topic_kept_ns(const struct weir__store_topic *port)
{
    const struct weir__feed_topic *topic = (const void *)port;

    return topic->options.is_auto_ack ? weir__base_now_ns(&topic->store->base)
                                      : weir__keep_kept_ns(port);
}

static void topic_settle(struct weir__store_topic *port, struct weir__run *run)
{
    struct weir__keeper *keeper = weir__feed_topic_of(port)->store->base.keeper;
    bool was_in = weir__keeper_shut(keeper);

    weir__feed_settle(port, run);
    weir__keeper_reopen(keeper, was_in);
}

static int topic_claim(struct weir__store_topic *port,
                       const struct weir__claim *claim)
{
    WEIR_ASSERT(claim->room <= WEIR__FEED_CALL);
    return weir__base_claim(weir__base_topic_of(port, &feed_kind), claim);
}

/* --- flush -------------------------------------------------------------- */

/* Settle before claim: what was settled makes room on the server first. */
static void flush_topic(struct weir__base_topic *base)
{
    struct weir__feed_topic *topic = topic_of(base);

    if (topic->adds != NULL || topic->base.wants_claim)
        weir__base_announce(&topic->base);
    weir__feed_flush_adds(topic);
    if (!weir__feed_lacks_number(topic)) /* its answer flushes them */
        weir__feed_flush_settles(topic);
    weir__feed_flush_claim(topic);
}

/* --- opening ------------------------------------------------------------ */

static const struct weir__store_ops feed_ops = {
    .topic_open = topic_open,
    .topic_listen = topic_listen,
    .claim = topic_claim,
    .settle = topic_settle,
    .start = weir__feed_start,
    .enter = weir__keep_enter,
    .leave = weir__keep_leave,
    .kept_ns = topic_kept_ns,
    .renew = weir__feed_renew,
    .unsettled = weir__base_unsettled,
    .lateness = weir__base_lateness,
    .add = weir__feed_add,
    .show = weir__refuse_show,
    .remove = weir__refuse_remove,
    .reschedule = weir__refuse_reschedule,
    .requeue = weir__feed_requeue,
    .purge = weir__feed_purge,
    .forget = weir__feed_forget,
    .dead = weir__feed_dead,
    .list = weir__feed_list,
    .pause = weir__refuse_pause,
    .set = weir__refuse_set,
    .settings = weir__refuse_settings,
    .kind = weir__refuse_kind,
    .stats = weir__feed_stats,
    .topics = weir__refuse_topics,
    .flush = weir__base_flush,
    .close = weir__base_close,
};

static const struct weir__kept feed_kept = {
    .renew = &weir__script_external_renew,
    .write_renewals = weir__feed_write_renewals,
};

static const struct weir__base_kind feed_kind = {
    .size = sizeof(struct weir__feed),
    .topic_size = sizeof(struct weir__feed_topic),
    .ops = &feed_ops,
    .scripts = weir__scripts,
    .kept = &feed_kept,
    .connected = connected,
    .flush_topic = flush_topic,
    .numbered = numbered,
    .followed = followed,
    .fail_adds = fail_adds,
    .closing = closing,
    .topic_init = topic_init,
    .topic_fini = topic_fini,
    .fini = fini,
};

static int open_store(const struct weir__redis_options *options, bool is_stream,
                      struct weir__store **ret_store)
{
    struct weir__base *base;
    int rc = weir__base_open(&feed_kind, options, &base);

    if (rc != WEIR_OK)
        return rc;
    feed_of(base)->is_stream = is_stream;
    *ret_store = &base->port;
    return WEIR_OK;
}

int weir__list_open(const struct weir__redis_options *options,
                    struct weir__store **ret_store)
{
    return open_store(options, false, ret_store);
}

int weir__stream_open(const struct weir__redis_options *options,
                      struct weir__store **ret_store)
{
    return open_store(options, true, ret_store);
}
