/* SPDX-License-Identifier: MIT */

/* Clients that wait in BLMOVE or XREAD. Their command runs again after each one
 * that writes, until it has an answer or its time is over. */

#include <stdlib.h>
#include <string.h>

#include "tests/sim/server/private.h"

void block(struct call *call, int64_t us)
{
    struct server_client *client = call->client;

    if (client->blocked != NULL)
        return;
    client->blocked = malloc(call->argc * sizeof(*client->blocked));
    if (client->blocked == NULL)
        server_fail("the server has no memory for a blocked client");
    for (size_t i = 0; i < call->argc; i++)
        client->blocked[i] = text_new(call->argv[i]);
    client->blocked_count = call->argc;
    client->blocked_until_us = us == 0 ? INT64_MAX : call->server->now_us + us;
    client->blocked_number = ++call->server->blocked_last;
}

void unblock(struct server_client *client)
{
    for (size_t i = 0; client->blocked != NULL && i < client->blocked_count;
         i++)
        free(client->blocked[i].ptr);
    free(client->blocked);
    client->blocked = NULL;
}

/* Runs the command again; true: it has an answer. */
static bool try_again(struct server_client *client)
{
    struct slice words[16];
    struct out out = {0};
    struct call call = {.server = client->server,
                        .client = client,
                        .argv = words,
                        .argc = client->blocked_count,
                        .out = &out,
                        .is_again = true};
    bool is_over = client->blocked_until_us <= client->server->now_us;

    if (call.argc > sizeof(words) / sizeof(words[0]))
        server_fail("a blocked command has %zu words", call.argc);
    for (size_t i = 0; i < call.argc; i++)
        words[i] =
            (struct slice){client->blocked[i].ptr, client->blocked[i].len};
    run_command(&call);
    if (out.len == 0 && !is_over)
        return false;
    if (out.len == 0)
        answer_no_array(&call);
    unblock(client);
    client->send(client->arg, out.ptr, out.len);
    out_free(&out);
    return true;
}

/* The first to wait behind `number`. */
static struct server_client *next_blocked(const struct server *server,
                                          uint64_t number)
{
    struct server_client *next = NULL;

    for (struct server_client *client = server->clients; client != NULL;
         client = client->next)
        if (client->blocked != NULL && client->blocked_number > number &&
            (next == NULL || client->blocked_number < next->blocked_number))
            next = client;
    return next;
}

void serve_blocked(struct server *server)
{
    struct server_client *client = next_blocked(server, 0);

    while (client != NULL) {
        uint64_t number = client->blocked_number;

        if (try_again(client)) /* what it asked since then */
            (void)server_feed(client, "", 0);
        client = next_blocked(server, number);
    }
}

int64_t server_next_us(const struct server *server)
{
    int64_t next = INT64_MAX;

    for (const struct server_client *client = server->clients; client != NULL;
         client = client->next)
        if (client->blocked != NULL && client->blocked_until_us < next)
            next = client->blocked_until_us;
    return next;
}
