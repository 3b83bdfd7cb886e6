/* SPDX-License-Identifier: MIT */
#include "adapters/cli/topics.h"

#include "core/mem.h"

#include <stdio.h>

static int keep(struct weir__topics *topics, const char *topic)
{
    void *names;

    if ((topics->count & (topics->count - 1)) == 0) { /* full: a power of two */
        names = weir__mem_grow(topics->names, 2 * topics->count + 1,
                               sizeof(topics->names[0]));
        if (names == NULL)
            return WEIR_ENOMEM;
        topics->names = names;
    }
    (void)snprintf(topics->names[topics->count++], sizeof(topics->names[0]),
                   "%s", topic); /* fits */
    return WEIR_OK;
}

static void on_topic(int code, const char *topic, void *arg)
{
    struct weir__topics *topics = arg;

    if (topic == NULL)
        weir__client_finish(topics->client,
                            code == WEIR_OK ? topics->rc : code);
    else if (topics->rc == WEIR_OK)
        topics->rc = keep(topics, topic);
}

int weir__topics_ask(struct weir__client *client,
                     struct weir__topics *ret_topics)
{
    int rc;

    *ret_topics = (struct weir__topics){.client = client};
    rc = weir_reactor_topics(client->reactor, on_topic, ret_topics);
    return rc == WEIR_OK ? weir__client_wait(client) : rc;
}

void weir__topics_fini(struct weir__topics *topics)
{
    weir__mem_free(topics->names);
    topics->names = NULL;
    topics->count = 0;
}
