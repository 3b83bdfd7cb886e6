/* SPDX-License-Identifier: MIT */
#include "adapters/redis/feed_private.h"
#include "adapters/redis/resp.h"
#include "core/mem.h"

/* Following the options that are stored with the topic: they name the key, so
 * a claim under other ones took nothing and waits for them here. */

struct follow {
    struct weir__feed_ask ask;
    struct weir__feed_topic *topic;
    int64_t revision;
};

/* False when out of memory. */
static bool tell(struct weir__feed_topic *topic, const struct redisReply *reply)
{
    size_t count = 0;
    struct weir__setting *settings = weir__settings_read(reply, &count);

    if (settings == NULL)
        return false;
    topic->store->events.options(topic->user, settings, count);
    weir__mem_free(settings);
    return true;
}

static void on_options(struct weir__feed_ask *ask, int code,
                       const struct redisReply *reply)
{
    struct follow *follow = (struct follow *)ask; /* its first member */
    struct weir__feed_topic *topic = follow->topic;
    struct weir__claimed claimed = {.code = code};
    int64_t revision = follow->revision;

    weir__mem_free(follow);
    weir__feed_log_error(topic, "options", code, reply);
    if (topic->user == NULL)
        return;
    if (code == WEIR_OK && reply->type != REDIS_REPLY_ARRAY)
        claimed.code = WEIR_ESERVER;
    else if (code == WEIR_OK && !tell(topic, reply))
        claimed.code = WEIR_ENOMEM;
    if (claimed.code == WEIR_OK)
        topic->revision = revision;
    topic->store->events.claimed(topic->user, &claimed); /* claim again */
}

void weir__feed_follow(struct weir__feed_topic *topic, int64_t revision)
{
    struct weir__claimed claimed = {.code = WEIR_ENOMEM};
    struct weir__buf bytes = {0};
    struct follow *follow = weir__mem_new(sizeof(*follow));

    if (follow == NULL) {
        topic->store->events.claimed(topic->user, &claimed);
        return;
    }
    follow->ask.done = on_options;
    follow->topic = topic;
    follow->revision = revision;
    weir__resp_command(&bytes, 2);
    weir__resp_str(&bytes, "HGETALL");
    weir__feed_keys(&bytes, topic->name, "options");
    weir__feed_send(topic->store, &bytes, NULL, WEIR__SEND_AGAIN, &follow->ask);
    weir__conn_flush(topic->store->commands);
}
