/* SPDX-License-Identifier: MIT */
#include "adapters/cli/topics.h"

#include "core/mem.h"
#include "core/nearest.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

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
    if (near != NULL && strcmp(near, topic) == 0)
        near = NULL; /* a name without a topic, as of one that went */
    (void)snprintf(ret_near, WEIR_MAX_TOPIC + 1, "%s",
                   near != NULL ? near : ""); /* fits */
    weir__topics_fini(&topics);
}

/* --- choosing ------------------------------------------------------------- */

static bool is_any(const char *name, const char *const *patterns, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fnmatch(patterns[i], name, 0) == 0)
            return true;
    return false;
}

const char *weir__topics_keep(struct weir__topics *topics,
                              const char *const *patterns, size_t count)
{
    const char *missing = NULL;
    size_t kept = 0;

    for (size_t i = 0, at = 0; i < count && missing == NULL; i++, at = 0) {
        while (at < topics->count &&
               fnmatch(patterns[i], topics->names[at], 0) != 0)
            at++;
        if (at == topics->count)
            missing = patterns[i];
    }
    for (size_t i = 0; i < topics->count; i++)
        if (count == 0 || is_any(topics->names[i], patterns, count))
            memmove(topics->names[kept++], topics->names[i],
                    sizeof(topics->names[0]));
    topics->count = kept;
    return missing;
}
