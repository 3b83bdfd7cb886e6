/* SPDX-License-Identifier: MIT */
#include "adapters/cli/topics.h"

#include "core/mem.h"
#include "core/nearest.h"

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
    *ret_topics = (struct weir__topics){.client = client};
    return weir_reactor_topics(client->reactor, on_topic, ret_topics);
}

void weir__topics_fini(struct weir__topics *topics)
{
    weir__mem_free(topics->names);
    topics->names = NULL;
    topics->count = 0;
}

static const char *name_at(const void *names, size_t i)
{
    return ((const struct weir__topics *)names)->names[i];
}

void weir__topics_near(struct weir__client *client, const char *topic,
                       char ret_near[WEIR_MAX_TOPIC + 1])
{
    struct weir__topics topics;
    const char *near = NULL;
    int rc = weir__topics_ask(client, &topics);

    if (rc == WEIR_OK)
        rc = weir__client_wait(client);
    if (rc == WEIR_OK)
        near = weir__nearest(topic, &topics, topics.count, name_at);
    (void)snprintf(ret_near, WEIR_MAX_TOPIC + 1, "%s",
                   near != NULL ? near : ""); /* fits */
    weir__topics_fini(&topics);
}
