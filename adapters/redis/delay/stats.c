/* SPDX-License-Identifier: MIT */
#include "adapters/redis/delay/private.h"

/* Counts of a topic. */

enum { MOST_NODES = 2000 }; /* that one stats call looks at */

static int read_counts(struct weir__stats_request *request,
                       const struct redisReply *reply)
{
    const struct weir__delay_topic *topic =
        (const struct weir__delay_topic *)request->topic; /* its first member */
    struct weir_stats *stats = &request->stats;
    int rc = weir__stats_read(request, reply);

    if (rc != WEIR_OK)
        return rc;
    if (topic->warned_newer && topic->base.leases == NULL &&
        topic->base.unsettled == 0 && stats->scheduled + stats->ready == 0)
        stats->newer = stats->running; /* until their lease runs out */
    return WEIR_OK;
}

int weir__delay_stats(struct weir__store_topic *base, weir_stats_fn fn,
                      void *arg)
{
    struct weir__delay_topic *topic = weir__delay_topic_of(base);
    struct weir__buf bytes = {0};
    struct weir__stats_request *stats;
    int rc = weir__stats_new(&topic->base, read_counts, fn, arg, &stats);

    if (rc != WEIR_OK)
        return rc;
    weir__resp_eval(&bytes, &weir__script_delay_stats, 4, 1);
    weir__prefix_keys(&bytes, &topic->base.prefix, "wait meta dead relay");
    weir__resp_int(&bytes, MOST_NODES);
    weir__redis_send(topic->base.store, &bytes, &weir__script_delay_stats,
                     WEIR__SEND_AGAIN, &stats->request);
    return WEIR_OK;
}
