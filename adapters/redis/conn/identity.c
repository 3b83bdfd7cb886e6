/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/conn/private.h"
#include "adapters/redis/reply.h"

/* Who answers: the number of the connection, the server's clock and what it
 * calls this run of it. Each may be forbidden to us. */

const struct weir_slice *weir__identity_question(size_t index)
{
#define QUESTION(text)                            \
    {                                             \
        (const uint8_t *)(text), sizeof(text) - 1 \
    }
    static const struct weir_slice questions[] = {
        QUESTION("*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n"),
        QUESTION("*1\r\n$4\r\nTIME\r\n"),
        QUESTION("*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n"),
    };
#undef QUESTION

    return index < sizeof(questions) / sizeof(questions[0]) ? &questions[index]
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

void weir__identity_note(struct weir__identity *identity,
                         const struct redisReply *reply)
{
    int64_t ms;

    if (reply->type == REDIS_REPLY_INTEGER && reply->integer > 0)
        identity->client_id = reply->integer;
    else if (reply->type == REDIS_REPLY_STRING)
        note_run_id(identity, reply->str);
    else if (reply->type == REDIS_REPLY_ARRAY && weir__reply_clock(reply, &ms))
        identity->server_ms = ms;
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
