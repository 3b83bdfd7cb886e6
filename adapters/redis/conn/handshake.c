/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "adapters/redis/conn/private.h"
#include "adapters/redis/reply.h"
#include "adapters/redis/resp.h"
#include "core/assert.h"
#include "core/text.h"

/* What a fresh connection says before it is of use. */

/* A step of the handshake was refused. */
void weir__conn_note_refused(struct weir__conn *conn, const char *text)
{
    enum weir__error_class class = weir__error_classify(text);

    if (conn->lost_code == WEIR_OK)
        conn->is_denied =
            class == WEIR__ERROR_DENIED || class == WEIR__ERROR_NOAUTH;
    weir__conn_note_lost(conn, WEIR_ESERVER, "%s", text);
}

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
        weir__conn_note_refused(conn, reply->str);
    else
        book(conn);
}

/* Who was found as the primary has to be one. */
static void on_role(redisAsyncContext *context, void *answer, void *arg)
{
    struct weir__conn *conn = weir__conn_of(arg);
    const redisReply *reply = answer;
    struct weir_slice role;

    (void)context; /* the connection's own */
    if (!weir__conn_take_reply(conn, reply))
        return;
    if (reply->type == REDIS_REPLY_ERROR) {
        weir__conn_note_refused(conn, reply->str);
    } else if (weir__reply_str(reply, 0, &role) &&
               weir__slice_equal(role, weir__slice_str("master"))) {
        book(conn);
    } else {
        conn->is_replica = conn->lost_code == WEIR_OK;
        weir__conn_note_lost(conn, WEIR_ECONN, "it is no primary");
    }
}

/* A step that may be forbidden to us. */
static void on_optional_step(redisAsyncContext *context, void *answer,
                             void *arg)
{
    struct weir__conn *conn = weir__conn_of(arg);

    (void)context; /* the connection's own */
    if (!weir__conn_take_reply(conn, answer))
        return;
    weir__identity_note(conn, answer);
    book(conn);
}

/* The same: then it is a server like others. */
static void on_slots(redisAsyncContext *context, void *answer, void *arg)
{
    struct weir__conn *conn = weir__conn_of(arg);
    const char *what;

    (void)context; /* the connection's own */
    if (!weir__conn_take_reply(conn, answer))
        return;
    what = conn->options.on_slots(answer, conn->options.arg);
    if (what == NULL)
        book(conn);
    else
        weir__conn_note_lost(conn, WEIR_ENOTFOUND, "%s port %u is %s",
                             conn->host, conn->port, what);
}

/* Nodes of a cluster have one. */
static void on_database(redisAsyncContext *context, void *answer, void *arg)
{
    struct weir__conn *conn = weir__conn_of(arg);
    const redisReply *reply = answer;

    if (reply != NULL && reply->type == REDIS_REPLY_ERROR &&
        weir__error_is_no_database(reply->str) &&
        weir__conn_take_reply(conn, reply))
        weir__conn_note_lost(conn, WEIR_ENOTFOUND, WEIR__ERROR_NO_DATABASE,
                             conn->options.url->db);
    else
        on_step(context, answer, arg);
}

/* Confirmation of the subscription, then every message. hiredis gives it no
 * place in its list of replies, so it is not booked as one. */
static void on_push(redisAsyncContext *context, void *answer, void *arg)
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

/* A step; its words end with NULL. */
static void send_words(struct weir__conn *conn, const char *const *words,
                       redisCallbackFn *fn)
{
    struct weir__buf step = {0};

    weir__resp_words(&step, words);
    weir__buf_append(&step, "", 1); /* hiredis looks behind the end */
    if (step.failed) {
        weir__conn_note_lost(conn, WEIR_ENOMEM, "out of memory");
    } else {
        step.len--;
        conn->handshake_left++;
        /* hiredis keeps what is pushed apart from the replies to come. */
        if (weir__conn_hand(conn, weir__buf_slice(&step), fn) && fn == on_push)
            conn->guard.outstanding--;
    }
    weir__buf_fini(&step);
}

static void send_login(struct weir__conn *conn)
{
    bool has_user = conn->options.url->user[0] != '\0';
    char password[WEIR__REDIS_PASSWORD_CAP];
    const char *words[] = {"AUTH", NULL, NULL, NULL};
    struct weir_error err;

    if (weir__redis_url_password(conn->options.url, password, &err) != WEIR_OK)
        weir__conn_note_lost(conn, WEIR_ECONN, "%s", err.text);
    if (conn->lost_code != WEIR_OK || password[0] == '\0')
        return;
    if (has_user)
        words[1] = conn->options.url->user;
    words[has_user ? 2 : 1] = password;
    send_words(conn, words, on_step);
}

static void send_database(struct weir__conn *conn)
{
    char db[16];
    const char *words[] = {"SELECT", db, NULL};

    (void)snprintf(db, sizeof(db), "%u", conn->options.url->db); /* fits */
    send_words(conn, words, on_database);
}

static void send_name(struct weir__conn *conn)
{
    const char *words[] = {"CLIENT", "SETNAME", conn->name, NULL};

    send_words(conn, words, on_optional_step);
}

static void send_identity(struct weir__conn *conn)
{
    const char *const *question;

    for (size_t i = 0; (question = weir__identity_question(i)) != NULL; i++)
        send_words(conn, question, on_optional_step);
}

static void send_channel(struct weir__conn *conn)
{
    const char *words[] = {"SUBSCRIBE", conn->channel, NULL};

    conn->guard.channel = conn->channel;
    send_words(conn, words, on_push);
}

/* All at once: commands run in order, and only their answers decide. PING is
 * there for a server that cannot serve yet, which lets the others pass. */
void weir__conn_introduce(struct weir__conn *conn)
{
    static const char *const slots[] = {"CLUSTER", "SLOTS", NULL};
    static const char *const ping[] = {"PING", NULL};

    WEIR_ASSERT(conn->state == WEIR__CONN_HANDSHAKE);
    conn->asks_role = false;
    conn->loaded_count = 0;
    weir__conn_look_at_clock(conn);
    conn->identity = (struct weir__identity){.asked_ms = conn->now_ms};
    if (conn->options.url->db != 0)
        send_database(conn);
    if (conn->name[0] != '\0')
        send_name(conn);
    if (conn->options.wants_identity)
        send_identity(conn);
    if (conn->options.on_slots != NULL)
        send_words(conn, slots, on_slots);
    send_words(conn, ping, on_step);
    if (conn->channel[0] != '\0')
        send_channel(conn);
    weir__conn_write(conn);
}

/* Who is no primary is told nothing else. */
void weir__conn_greet(struct weir__conn *conn)
{
    static const char *const role[] = {"ROLE", NULL};
    const struct weir__locator *locator = conn->options.locator;

    conn->handshake_left = 0;
    conn->asks_role =
        locator != NULL && !locator->is_plain && conn->channel[0] == '\0';
    send_login(conn);
    if (conn->asks_role) {
        send_words(conn, role, on_role);
        weir__conn_write(conn);
    } else {
        weir__conn_introduce(conn);
    }
}
