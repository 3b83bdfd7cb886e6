/* SPDX-License-Identifier: MIT */
#include "tests/redis/store/line_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

#include "adapters/redis/conn/private.h"
#include "adapters/redis/store/store.h"

long long world_count(const char *topic, const char *name)
{
    return redis_int(proc, "EVAL %s 1 weir:{%s}:meta %s",
                     "return tonumber(redis.call('HGET', KEYS[1], ARGV[1]) "
                     "or 0)",
                     topic, name);
}

void world_hide_server(bool is_hidden)
{
    char away[256];

    (void)snprintf(away, sizeof(away), "%s.away", redis_socket(proc));
    EXPECT_INT(0, is_hidden ? rename(redis_socket(proc), away)
                            : rename(away, redis_socket(proc)));
}

/* The whole call of a script, not a question for a topic's options. */
static bool is_call_sent(const struct weir__conn *conn)
{
    const struct weir__command *sent = conn->sent.first;

    while (sent != NULL && sent->script == NULL)
        sent = sent->next;
    return sent != NULL && conn->waiting.first == NULL &&
           weir__glue_buffered(&conn->glue) == 0;
}

void host_lose_answer(struct host *host, const char *topic, const char *name,
                      long long before)
{
    /* What every store begins with. */
    struct weir__conn *conn =
        ((struct weir__redis *)host->store)->servers->commands;

    AWAIT(is_call_sent(conn));
    EXPECT_INT(0, shutdown(conn->context->c.fd, SHUT_RD));
    world_hide_server(true);
    redis_kill(proc, SIGCONT);
    while (world_count(topic, name) <= before)
        continue;
}
