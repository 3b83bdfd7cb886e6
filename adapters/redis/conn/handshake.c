/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/conn/private.h"
#include "adapters/redis/resp.h"
#include "core/assert.h"

static void book(struct weir__conn *conn)
{
    WEIR_ASSERT(conn->handshake_left > 0);
    conn->handshake_left--;
    if (conn->handshake_left == 0)
        weir__conn_arm(conn, &conn->soon, 0);
}

/* A step that must succeed. */
static void on_step(redisAsyncContext *context, void *answer, void *arg)
{
    struct weir__conn *conn = weir__conn_of(arg);
    const redisReply *reply = answer;

    (void)context; /* the connection's own */
    if (!weir__conn_take_reply(conn, reply))
        return;
    if (reply->type == REDIS_REPLY_ERROR)
        weir__conn_note_handshake_refused(conn, reply->str);
    else
        book(conn);
}

/* A step that may be forbidden to us. */
static void on_optional_step(redisAsyncContext *context, void *answer,
                             void *arg)
{
    struct weir__conn *conn = weir__conn_of(arg);

    (void)context; /* the connection's own */
    if (weir__conn_take_reply(conn, answer))
        book(conn);
}

/* Confirmation of the subscription, then every message. hiredis gives it no
 * place in its list of replies, so it is not booked as one. */
void weir__handshake_on_push(redisAsyncContext *context, void *answer,
                             void *arg)
{
    struct weir__conn *conn = weir__conn_of(arg);
    const redisReply *reply = answer;
    const redisReply *payload;

    (void)context; /* the connection's own */
    if (reply == NULL || conn->state == WEIR__CONN_CLOSED)
        return;
    payload = reply->element[2];                /* the guard saw to it */
    if (payload->type == REDIS_REPLY_INTEGER) { /* number of subscriptions */
        if (conn->state == WEIR__CONN_HANDSHAKE && conn->handshake_left > 0)
            book(conn);
    } else if (conn->options.on_message != NULL) {
        conn->options.on_message(
            (struct weir_slice){(const uint8_t *)payload->str, payload->len},
            conn->options.arg);
    }
}

/* Sends what was written to `step` and empties it for the next one. */
static void send_step(struct weir__conn *conn, struct weir__buf *step,
                      redisCallbackFn *fn)
{
    weir__buf_append(step, "", 1); /* hiredis looks behind the end */
    if (step->failed) {
        weir__conn_note_lost(conn, WEIR_ENOMEM, "out of memory");
    } else {
        step->len--;
        conn->handshake_left++;
        (void)weir__conn_hand(conn, weir__buf_slice(step),
                              fn); /* notes the loss */
    }
    weir__buf_reset(step);
}

static void send_login(struct weir__conn *conn, struct weir__buf *step)
{
    bool has_user = conn->url.user[0] != '\0';

    if (conn->url.password[0] == '\0')
        return;
    weir__resp_command(step, has_user ? 3 : 2);
    weir__resp_str(step, "AUTH");
    if (has_user)
        weir__resp_str(step, conn->url.user);
    weir__resp_str(step, conn->url.password);
    send_step(conn, step, on_step);
}

/* All at once: commands run in order, and only their answers decide. PING is
 * there for a server that cannot serve yet, which lets the others pass. */
void weir__handshake_begin(struct weir__conn *conn)
{
    struct weir__buf step = {0};

    WEIR_ASSERT(conn->state == WEIR__CONN_HANDSHAKE);
    conn->handshake_left = 0;
    conn->loaded_count = 0;
    send_login(conn, &step);
    if (conn->url.db != 0) {
        weir__resp_command(&step, 2);
        weir__resp_str(&step, "SELECT");
        weir__resp_int(&step, conn->url.db);
        send_step(conn, &step, on_step);
    }
    if (conn->name != NULL) {
        weir__resp_command(&step, 3);
        weir__resp_str(&step, "CLIENT");
        weir__resp_str(&step, "SETNAME");
        weir__resp_str(&step, conn->name);
        send_step(conn, &step, on_optional_step);
    }
    weir__resp_command(&step, 1);
    weir__resp_str(&step, "PING");
    send_step(conn, &step, on_step);
    if (conn->channel != NULL) {
        weir__resp_command(&step, 2);
        weir__resp_str(&step, "SUBSCRIBE");
        weir__resp_str(&step, conn->channel);
        conn->guard.channel = conn->channel;
        send_step(conn, &step, weir__handshake_on_push);
    }
    weir__buf_fini(&step);
    weir__conn_write(conn);
}
