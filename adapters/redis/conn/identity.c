/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>

#include "adapters/redis/conn/private.h"
#include "adapters/redis/reply.h"

enum { CLOCKS_APART_MS = 50 };

/* Who answers: the number of the connection, the server's clock and what it
 * calls this run of it. Each may be forbidden to us. */

const char *const *weir__identity_question(size_t index)
{
    static const char *const number[] = {"CLIENT", "ID", NULL};
    static const char *const clock[] = {"TIME", NULL};
    static const char *const run[] = {"INFO", "server", NULL};
    static const char *const *const questions[] = {number, clock, run};

    return index < sizeof(questions) / sizeof(questions[0]) ? questions[index]
                                                            : NULL;
}

static void note_run_id(struct weir__identity *identity, const char *info)
{
    static const char name[] = "run_id:";
    const char *id = strstr(info, name);

    if (id == NULL)
        return;
    id += sizeof(name) - 1;
    if (strspn(id, "0123456789abcdef") < WEIR__IDENTITY_LEN)
        return;
    memcpy(identity->text, id, WEIR__IDENTITY_LEN);
}

void weir__identity_note(struct weir__conn *conn,
                         const struct redisReply *reply)
{
    struct weir__identity *identity = &conn->identity;
    int64_t ms;

    if (reply->type == REDIS_REPLY_INTEGER && reply->integer > 0) {
        identity->client_id = reply->integer;
    } else if (reply->type == REDIS_REPLY_STRING) {
        note_run_id(identity, reply->str);
    } else if (reply->type == REDIS_REPLY_ARRAY &&
               weir__reply_clock(reply, &ms)) {
        weir__conn_look_at_clock(conn);
        identity->server_ms = ms;
        identity->told_ms = conn->now_ms;
    }
}

/* So far is the clock of `one` ahead of that of `other`, at least: how long
 * their answers were on their way is not known. */
static int64_t ahead_ms(const struct weir__identity *one,
                        const struct weir__identity *other)
{
    return (one->server_ms - one->told_ms) -
           (other->server_ms - other->asked_ms);
}

void weir__identity_compare_clocks(struct weir__conn *conn)
{
    const struct weir__identity *own = &conn->identity,
                                *before = &conn->clocked;
    bool is_other =
        before->text[0] != '\0' && strcmp(own->text, before->text) != 0;
    int64_t ahead = ahead_ms(own, before), behind = ahead_ms(before, own);

    if (own->server_ms == 0 || own->text[0] == '\0')
        return;
    if (is_other && (ahead > CLOCKS_APART_MS || behind > CLOCKS_APART_MS))
        weir__log(
            conn->options.log, WEIR_LEVEL_WARN,
            "redis: the clock of this server is %" PRId64
            " ms %s that of the server before; due times are the server's: "
            "set both by NTP",
            ahead > 0 ? ahead : behind, ahead > 0 ? "ahead of" : "behind");
    conn->clocked = *own;
}

int64_t weir__conn_client_id(const struct weir__conn *conn)
{
    return conn->identity.client_id;
}

const char *weir__conn_identity(const struct weir__conn *conn)
{
    return conn->identity.text;
}

int64_t weir__conn_server_ms(const struct weir__conn *conn)
{
    return conn->identity.server_ms;
}
