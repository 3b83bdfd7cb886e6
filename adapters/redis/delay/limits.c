/* SPDX-License-Identifier: MIT */
#include "adapters/redis/delay/private.h"
#include "core/mem.h"
#include "core/text.h"

/* What the stored options say about adds. */

struct limits_request {
    struct weir__request request;
    struct weir__delay_topic *topic;
};

static void on_limits(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct weir__delay_topic *topic = ((struct limits_request *)request)->topic;
    struct weir_slice text;
    int64_t bytes;

    weir__mem_free(request);
    topic->asks_limits = false;
    topic->max_body = WEIR_MAX_BODY;
    if (code == WEIR_OK && weir__reply_str(reply, 0, &text) &&
        weir__size_parse(text, &bytes, NULL) == WEIR_OK && bytes > 0)
        topic->max_body = (size_t)bytes;
    if (code != WEIR_OK) {
        weir__delay_fail_adds(topic, code);
        return;
    }
    topic->limits_of = topic->base.store->connections;
    weir__delay_flush_adds(topic);
}

bool weir__delay_knows_limits(struct weir__delay_topic *topic)
{
    struct weir__buf bytes = {0};
    struct limits_request *limits;

    if (topic->asks_limits ||
        topic->limits_of == topic->base.store->connections)
        return !topic->asks_limits;
    limits = weir__mem_new(sizeof(*limits));
    if (limits == NULL) {
        weir__topic_mark(&topic->base); /* the next flush tries again */
        return false;
    }
    limits->request.done = on_limits;
    limits->topic = topic;
    topic->asks_limits = true;
    weir__resp_command(&bytes, 3);
    weir__resp_str(&bytes, "HMGET");
    weir__prefix_key(&bytes, &topic->base.prefix, "options");
    weir__resp_str(&bytes, "max_body");
    weir__redis_send(topic->base.store, &bytes, NULL, WEIR__SEND_AGAIN,
                     &limits->request);
    return false;
}
