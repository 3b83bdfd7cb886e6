/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/store/cluster.h"
#include "adapters/redis/store/store.h"
#include "core/mem.h"

/* A server whose maxmemory-policy is not noeviction drops keys once it is full,
 * and jobs with them. Somebody may set that while workers run. */

struct question {
    struct weir__request request; /* first */
    uint64_t connection;          /* of the server that is asked */
};

/* The servers may have changed meanwhile. */
static struct weir__server *server_of(const struct question *question)
{
    struct weir__server *server = question->request.store->servers;

    while (server != NULL && server->connection != question->connection)
        server = server->next;
    return server;
}

static void note_policy(struct weir__server *server, const char *policy)
{
    static const char safe[] = "noeviction";
    int len = (int)strcspn(policy, "\r\n");
    bool evicts =
        (size_t)len != strlen(safe) || strncmp(policy, safe, (size_t)len) != 0;
    char where[sizeof(server->host.name) + 10] = "";

    if (evicts == server->evicts)
        return;
    server->evicts = evicts;
    if (weir__cluster_is_one(server->store))
        (void)snprintf(where, sizeof(where), "%s:%u: ", server->host.name,
                       (unsigned)server->host.port); /* fits */
    weir__log(server->store->options.log,
              evicts ? WEIR_LEVEL_WARN : WEIR_LEVEL_INFO,
              "redis: %smaxmemory-policy is %.*s%s", where, len, policy,
              evicts ? ": a server that is full drops jobs; set it to "
                       "noeviction, then run weir doctor"
                     : " again; weir doctor finds what was lost");
}

/* A user who may not ask hears so when the worker starts (weir doctor). */
static void on_told(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    static const char name[] = "maxmemory_policy:";
    struct question *question = (struct question *)request; /* first member */
    struct weir__server *server = server_of(question);
    const char *line = NULL;

    if (code == WEIR_OK && reply->type == REDIS_REPLY_STRING)
        line = strstr(reply->str, name);
    if (line != NULL && server != NULL)
        note_policy(server, line + sizeof(name) - 1);
    weir__mem_free(question);
}

void weir__policy_ask(struct weir__redis *store)
{
    static const char *const words[] = {"INFO", "memory", NULL};

    for (struct weir__server *server = store->servers; server != NULL;
         server = server->next) {
        struct weir__buf bytes = {0};
        struct question *question;

        if (!server->is_up)
            continue;
        question = weir__mem_new(sizeof(*question));
        if (question == NULL)
            return; /* the next beat asks again */
        question->request.done = on_told;
        question->connection = server->connection;
        weir__resp_words(&bytes, words);
        weir__redis_send_by(store, server->commands, &bytes, NULL,
                            WEIR__SEND_ONCE, &question->request);
        weir__conn_flush(server->commands);
    }
}
