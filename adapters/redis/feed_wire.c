/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/feed_private.h"
#include "adapters/redis/resp.h"
#include "core/assert.h"

/* Names on the server, and what is logged of errors. */

void weir__feed_name(struct weir__feed_topic *topic, struct weir_slice name)
{
    WEIR_ASSERT(name.len < sizeof(topic->name));
    memcpy(topic->name, name.ptr, name.len);
    topic->name[name.len] = '\0';
    (void)snprintf(topic->consumer, sizeof(topic->consumer), "weir:%s",
                   topic->name); /* it fits */
}

void weir__feed_keys(struct weir__buf *buf, const char *topic,
                     const char *names)
{
    while (*names != '\0') {
        char key[WEIR__FEED_KEY_MAX];
        size_t len = strcspn(names, " ");

        (void)snprintf(key, sizeof(key), "weir:{%s}:%.*s", topic, (int)len,
                       names); /* it fits */
        weir__resp_str(buf, key);
        names += len + (names[len] == ' ');
    }
}

const char *weir__feed_key(const struct weir__feed_topic *topic)
{
    return topic->options.key[0] != '\0' ? topic->options.key : topic->name;
}

const char *weir__feed_group(const struct weir__feed_topic *topic)
{
    if (!topic->store->is_stream)
        return "";
    return topic->options.group[0] != '\0' ? topic->options.group : "weir";
}

void weir__feed_log_error(const struct weir__feed_topic *topic,
                          const char *what, int code,
                          const struct redisReply *reply)
{
    const char *text = code == WEIR_ESERVER && reply != NULL &&
                               reply->type == REDIS_REPLY_ERROR
                           ? reply->str
                           : weir_error_text(code);

    if (code != WEIR_OK && code != WEIR_ECANCELED)
        weir__log(topic->store->options.log, WEIR_LEVEL_WARN,
                  "redis: %s %s: %s", topic->name, what, text);
}
