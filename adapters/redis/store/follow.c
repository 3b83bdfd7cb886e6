/* SPDX-License-Identifier: MIT */
#include "adapters/redis/store/kind.h"
#include "core/mem.h"

/* The options stored with a topic: a hash. Their revision in `meta` grows with
 * every change; who meets a new one reads them anew. */

void weir__topic_request_options(struct weir__store_topic *topic,
                                 struct weir__request *request)
{
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, 2);
    weir__resp_str(&bytes, "HGETALL");
    weir__prefix_key(&bytes, &topic->prefix, "options");
    weir__redis_send(topic->store, &bytes, NULL, WEIR__SEND_AGAIN, request);
}

/* WEIR_ENOMEM. */
static int tell(struct weir__store_topic *topic, const struct redisReply *reply)
{
    size_t count = 0;
    struct weir__setting *settings = weir__settings_read(reply, &count);

    if (settings == NULL)
        return WEIR_ENOMEM;
    topic->store->events.options(topic->user, settings, count);
    weir__mem_free(settings);
    return WEIR_OK;
}

static void on_options(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct weir__options_request *follow =
        (struct weir__options_request *)request; /* first */
    struct weir__store_topic *topic = follow->topic;

    topic->is_following = false;
    weir__topic_log_error(topic, "options", code, reply);
    if (code == WEIR_OK && reply->type != REDIS_REPLY_ARRAY)
        code = WEIR_ESERVER;
    if (code == WEIR_OK && topic->user == NULL)
        code = WEIR_ECANCELED; /* nobody there to tell */
    if (code == WEIR_OK)
        code = tell(topic, reply);
    if (code == WEIR_OK)
        topic->revision = follow->revision; /* else it is told again */
    if (topic->kind->followed != NULL)
        topic->kind->followed(topic, code);
}

void weir__topic_follow(struct weir__store_topic *topic, int64_t revision)
{
    struct weir__options_request *follow = &topic->follow;

    if (topic->is_following || topic->revision == revision)
        return;
    topic->is_following = true;
    follow->request.done = on_options;
    follow->topic = topic;
    follow->revision = revision;
    weir__topic_request_options(topic, &follow->request);
    weir__conn_flush(topic->store->commands);
}
