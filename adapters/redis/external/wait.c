/* SPDX-License-Identifier: MIT */
#include "adapters/redis/external/private.h"

/* Waiting for the next entry without polling: a connection of its own that
 * blocks in a command which changes nothing (a list's first element is moved to
 * where it was), so nothing can be lost between its answer and the claim. An
 * answer that is too large tells of an entry as well. A connection that was cut
 * is made again and the command sent again. */

enum { BLOCK_S = 20, SLACK_S = 10 };

static void on_answer(int code, const struct redisReply *reply, void *arg)
{
    struct weir__external_topic *topic = arg;

    topic->is_waiting = false;
    if (topic->base.store->is_closed || code == WEIR_ECANCELED)
        return;
    if (code != WEIR_OK && code != WEIR_ETOOBIG)
        weir__log(topic->base.store->options.log, WEIR_LEVEL_DEBUG,
                  "redis: %s: waiting for entries: %s", topic->base.name,
                  reply != NULL ? reply->str : weir_error_text(code));
    else if (code == WEIR_OK && reply->type == REDIS_REPLY_NIL)
        weir__external_wait(topic);
    else if (topic->base.user != NULL)
        topic->base.store->events.wake(topic->base.user);
}

static bool connect(struct weir__external_topic *topic)
{
    struct weir__conn_options conn = {
        .seed = 1,
        .reply_ms = (BLOCK_S + SLACK_S) * 1000,
    };

    return topic->waits != NULL ||
           weir__link_beside_place(topic->base.place, &conn, &topic->waits) ==
               WEIR_OK;
}

static void write_list(struct weir__buf *bytes,
                       const struct weir__external_topic *topic)
{
    weir__resp_command(bytes, 6);
    weir__resp_str(bytes, "BLMOVE");
    weir__resp_str(bytes, weir__external_key(topic));
    weir__resp_str(bytes, weir__external_key(topic));
    weir__resp_str(bytes, "LEFT");
    weir__resp_str(bytes, "LEFT");
    weir__resp_int(bytes, BLOCK_S);
}

static void write_stream(struct weir__buf *bytes,
                         const struct weir__external_topic *topic)
{
    weir__resp_command(bytes, 8);
    weir__resp_str(bytes, "XREAD");
    weir__resp_str(bytes, "COUNT");
    weir__resp_int(bytes, 1);
    weir__resp_str(bytes, "BLOCK");
    weir__resp_int(bytes, BLOCK_S * 1000);
    weir__resp_str(bytes, "STREAMS");
    weir__resp_str(bytes, weir__external_key(topic));
    weir__resp_str(bytes, topic->waits_after);
}

/* Where this fails the reactor's safety check is left. */
void weir__external_wait(struct weir__external_topic *topic)
{
    struct weir__buf bytes = {0};
    bool is_stream = topic->is_stream;

    if (topic->is_waiting || topic->base.user == NULL ||
        topic->base.store->is_closed ||
        (is_stream && topic->waits_after[0] == '\0') || !connect(topic))
        return;
    if (is_stream)
        write_stream(&bytes, topic);
    else
        write_list(&bytes, topic);
    topic->is_waiting = weir__conn_send(topic->waits, &bytes, NULL,
                                        WEIR__SEND_AGAIN | weir__send_bodies(1),
                                        on_answer, topic) == WEIR_OK;
    weir__conn_flush(topic->waits);
}

void weir__external_stop_waiting(struct weir__external_topic *topic)
{
    struct weir__conn *conn = topic->waits;

    topic->waits = NULL;
    weir__conn_close(conn);
}
