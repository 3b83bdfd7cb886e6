/* SPDX-License-Identifier: MIT */
#include "adapters/redis/store/keeper.h"

/* A keeper is the store's; topics of every kind begin with the base's. */

static struct weir__keeper *keeper_of(const struct weir__store_topic *topic)
{
    const struct weir__base_topic *base = (const void *)topic;

    return base->base->keeper;
}

void weir__keep_begin(struct weir__base *base)
{
    if (base->keeper != NULL)
        return;
    if (weir__keeper_open(base, base->kind->kept, &base->keeper) < 0)
        weir__log(base->options.log, WEIR_LEVEL_WARN,
                  "redis: no thread to keep leases: those of jobs whose "
                  "handler holds the loop run out");
}

void weir__keep_enter(struct weir__store_topic *topic, struct weir__run *run,
                      int64_t deadline_ns)
{
    if (keeper_of(topic) != NULL)
        weir__keeper_enter(keeper_of(topic), topic, run, deadline_ns);
}

bool weir__keep_leave(struct weir__store_topic *topic, struct weir__run *run)
{
    (void)run; /* the one that entered */
    return keeper_of(topic) != NULL && weir__keeper_leave(keeper_of(topic));
}

int64_t weir__keep_kept_ns(const struct weir__store_topic *topic)
{
    return keeper_of(topic) == NULL ? 0
                                    : weir__keeper_kept_ns(keeper_of(topic));
}
