/* SPDX-License-Identifier: MIT */
#include "adapters/redis/delay/private.h"

/* Counts of a topic. */

enum { MOST_NODES = 2000 }; /* that one stats call looks at */

void weir__delay_counted(struct weir__stats_request *request)
{
    const struct weir__delay_topic *topic =
        (const struct weir__delay_topic *)request->topic; /* its first member */
    struct weir_stats *stats = &request->stats;

    if (topic->warned_newer && topic->base.leases == NULL &&
        topic->base.unsettled == 0 && stats->scheduled + stats->ready == 0)
        stats->newer = stats->running; /* until their lease runs out */
}

int weir__delay_stats(struct weir__store_topic *base, weir_stats_fn fn,
                      void *arg)
{
    struct weir__stats_request *stats = weir__stats_new(base, fn, arg);
    struct weir__buf bytes = {0};

    if (stats == NULL)
        return WEIR_ENOMEM;
    weir__resp_eval(&bytes, &weir__script_delay_stats, 4, 1);
    weir__prefix_keys(&bytes, &base->prefix, "wait meta dead relay");
    weir__resp_int(&bytes, MOST_NODES);
    weir__redis_send(base->store, &bytes, &weir__script_delay_stats,
                     WEIR__SEND_AGAIN, &stats->request);
    return WEIR_OK;
}
