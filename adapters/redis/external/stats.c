/* SPDX-License-Identifier: MIT */
#include "adapters/redis/external/private.h"

/* Counts of a topic: first where its entries are, then how many. */

static void on_found(struct weir__request *request, int code,
                     const struct redisReply *reply)
{
    struct weir__stats_request *stats =
        (struct weir__stats_request *)request; /* first */
    const struct weir__external_topic *topic =
        (const struct weir__external_topic *)stats->topic;
    struct weir__external_place place;
    struct weir__buf bytes = {0};

    code = weir__external_found(topic, code, reply, &place);
    if (code != WEIR_OK) {
        weir__stats_finish(stats, code);
        return;
    }
    request->done = weir__stats_counted;
    weir__resp_eval(&bytes, &weir__script_external_stats, 7, 1);
    weir__prefix_keys(&bytes, &topic->base.prefix,
                      "meta wait run dead auto relay");
    weir__resp_str(&bytes, place.key);
    weir__resp_str(&bytes, place.group);
    weir__redis_send(request->store, &bytes, &weir__script_external_stats,
                     WEIR__SEND_AGAIN, request);
    weir__conn_flush(request->store->commands);
}

int weir__external_stats(struct weir__store_topic *base, weir_stats_fn fn,
                         void *arg)
{
    struct weir__external_topic *topic = weir__external_topic_of(base);
    struct weir__stats_request *stats = weir__stats_new(base, fn, arg);

    if (stats == NULL)
        return WEIR_ENOMEM;
    stats->request.done = on_found;
    weir__external_find(topic, &stats->request);
    return WEIR_OK;
}
