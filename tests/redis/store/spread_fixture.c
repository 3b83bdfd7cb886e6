/* SPDX-License-Identifier: MIT */
#include "tests/redis/store/spread_fixture.h"

#include <stdio.h>

#include "core/text.h"

TEST_TOGETHER(3)

struct cluster_proc *spread;

void spread_start(const struct cluster_options *options)
{
    static char url[32];

    spread = cluster_start(options);
    for (int i = 0; i < cluster_count(spread); i++)
        EXPECT_STR("OK", spread_text(i, "CONFIG SET %s no",
                                     "cluster-require-full-coverage"));
    (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%d",
                   cluster_host(spread, 0).port); /* fits */
    world_open_at(url);
}

struct weir__store_topic *spread_open(struct host *host, int node, int nth)
{
    return spread_open_kind(host, "delay", node, nth);
}

struct weir__store_topic *spread_open_kind(struct host *host, const char *kind,
                                           int node, int nth)
{
    char name[WEIR_MAX_TOPIC + 1];
    struct weir__store_topic_options options = {.kind = kind,
                                                .served = &host->served};

    cluster_topic(spread, node, nth, name);
    options.name = weir__slice_str(name);
    EXPECT_INT(WEIR_OK, host->store->ops->topic_open(host->store, &options,
                                                     &host->topic));
    host->store->ops->topic_listen(host->topic, host);
    return host->topic;
}
