/* SPDX-License-Identifier: MIT */
#include "adapters/redis/external/private.h"

/* Counts of a topic: first where its entries are, then how many. */

static void on_found(struct weir__ask *ask, int code,
                     const struct redisReply *reply)
{
    struct weir__stats_ask *stats = (struct weir__stats_ask *)ask; /* first */
    const struct weir__feed_topic *topic =
        (const struct weir__feed_topic *)stats->topic;
    struct weir__feed_place place;
    struct weir__buf bytes = {0};

    code = weir__feed_found(topic, code, reply, &place);
    if (code != WEIR_OK) {
        weir__stats_finish(stats, code);
        return;
    }
    ask->done = weir__stats_counted;
    weir__resp_eval(&bytes, &weir__script_external_stats, 6, 1);
    weir__prefix_keys(&bytes, &topic->base.prefix, "meta wait run dead auto");
    weir__resp_str(&bytes, place.key);
    weir__resp_str(&bytes, place.group);
    weir__base_send(ask->base, &bytes, &weir__script_external_stats,
                    WEIR__SEND_AGAIN, ask);
    weir__conn_flush(ask->base->commands);
}

int weir__feed_stats(struct weir__store_topic *base, weir_stats_fn fn,
                     void *arg)
{
    struct weir__feed_topic *topic = weir__feed_topic_of(base);
    struct weir__stats_ask *stats;
    int rc = weir__stats_new(&topic->base, weir__stats_read, fn, arg, &stats);

    if (rc != WEIR_OK)
        return rc;
    stats->ask.done = on_found;
    weir__feed_find(topic, &stats->ask);
    return WEIR_OK;
}
