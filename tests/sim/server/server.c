/* SPDX-License-Identifier: MIT */

/* Connections of the server in the test's process, and what it says of itself.
 */

#include "tests/sim/server/server.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/server/private.h"

enum { ARGS_MAX = 1024 * 1024 };

/* --- commands of the server ---------------------------------------------- */

static void run_ping(struct call *call)
{
    if (call->client == NULL || call->client->channels.count == 0) {
        answer_status(call, "PONG");
        return;
    }
    answer_array(call, 2);
    answer_text(call, "pong");
    answer_text(call, "");
}

static void run_ok(struct call *call)
{
    answer_status(call, "OK");
}

static void run_time(struct call *call)
{
    char text[24];

    answer_array(call, 2);
    (void)snprintf(text, sizeof(text), "%" PRId64,
                   call->server->now_us / 1000000);
    answer_text(call, text);
    (void)snprintf(text, sizeof(text), "%" PRId64,
                   call->server->now_us % 1000000);
    answer_text(call, text);
}

static void run_client(struct call *call)
{
    if (is_word(call->argv[1], "SETNAME"))
        answer_status(call, "OK");
    else if (is_word(call->argv[1], "ID"))
        answer_int(call, call->client->id);
    else
        unknown_option(call, 1);
}

static void run_info(struct call *call)
{
    int is_loading = (call->server->faults & SERVER_LOADING) != 0;
    bool is_replica = (call->server->faults & SERVER_REPLICA) != 0;
    char text[256];

    (void)snprintf(text, sizeof(text),
                   "# Server\r\nredis_version:7.0.15\r\nrun_id:%s\r\n"
                   "# Persistence\r\nloading:%d\r\n"
                   "# Replication\r\nrole:%s\r\n",
                   call->server->run_id, is_loading,
                   is_replica ? "slave" : "master"); /* fits */
    answer_text(call, text);
}

static void run_role(struct call *call)
{
    if ((call->server->faults & SERVER_REPLICA) != 0) {
        answer_array(call, 5);
        answer_text(call, "slave");
        answer_text(call, "127.0.0.1");
        answer_int(call, 1);
        answer_text(call, "connect");
        answer_int(call, -1);
        return;
    }
    answer_array(call, 3);
    answer_text(call, "master");
    answer_int(call, 0);
    answer_array(call, 0);
}

static void run_cluster(struct call *call)
{
    answer_error(call, "ERR This instance has cluster support disabled");
}

/* The server has no password. */
static void run_auth(struct call *call)
{
    if (call->argc > 2)
        unknown_option(call, 2);
    answer_error(call, "ERR AUTH <password> called without any password "
                       "configured for the default user. Are you sure your "
                       "configuration is correct?");
}

/* No replica: none has confirmed. */
static void run_wait(struct call *call)
{
    if ((call->server->faults & SERVER_REPLICA) == 0)
        answer_int(call, 0);
    else
        answer_error(call, "ERR WAIT cannot be used with replica instances. "
                           "Please also note that since Redis 4.0 if a replica "
                           "is configured to be writable (which is not the "
                           "default) writes to replicas are just local and are "
                           "not propagated.");
}

/* --- messages ------------------------------------------------------------ */

static void run_subscribe(struct call *call)
{
    struct server_client *client = call->client;

    for (size_t i = 1; i < call->argc; i++) {
        if (table_find(&client->channels, call->argv[i]) == NULL)
            (void)table_add(&client->channels, call->argv[i]); /* no value */
        answer_array(call, 3);
        answer_text(call, "subscribe");
        answer_bulk(call, call->argv[i]);
        answer_int(call, (int64_t)client->channels.count);
    }
}

static void run_unsubscribe(struct call *call)
{
    struct table *channels = &call->client->channels;

    for (size_t i = 1; i < call->argc; i++) {
        struct entry *entry = table_find(channels, call->argv[i]);

        if (entry != NULL)
            table_remove(channels, entry);
        answer_array(call, 3);
        answer_text(call, "unsubscribe");
        answer_bulk(call, call->argv[i]);
        answer_int(call, (int64_t)channels->count);
    }
}

static void run_publish(struct call *call)
{
    struct out message = {0};
    struct call to = {.out = &message};
    int64_t count = 0;

    answer_array(&to, 3);
    answer_text(&to, "message");
    answer_bulk(&to, call->argv[1]);
    answer_bulk(&to, call->argv[2]);
    for (struct server_client *client = call->server->clients; client != NULL;
         client = client->next) {
        if (table_find(&client->channels, call->argv[1]) == NULL)
            continue;
        client->send(client->arg, message.ptr, message.len);
        count++;
    }
    out_free(&message);
    if (call->server->watch != NULL)
        call->server->watch->published(call->server->watch->arg, call->argv[1],
                                       call->argv[2], count);
    answer_int(call, count);
}

const struct command server_commands[] = {
    {"AUTH", -2, run_auth, LOADS},
    {"PING", -1, run_ping, 0},
    {"SELECT", 2, run_ok, LOADS},
    {"TIME", 1, run_time, LOADS},
    {"CLIENT", -2, run_client, LOADS | HAS_PARTS},
    {"INFO", -1, run_info, LOADS},
    {"ROLE", 1, run_role, LOADS},
    {"CLUSTER", -2, run_cluster, HAS_PARTS},
    {"WAIT", 3, run_wait, 0},
    {"SUBSCRIBE", -2, run_subscribe, LOADS},
    {"UNSUBSCRIBE", -2, run_unsubscribe, LOADS},
    {"PUBLISH", 3, run_publish, LOADS},
    {0},
};

/* --- running a command --------------------------------------------------- */

static const struct command *find_command(struct slice name)
{
    static const struct command *const lists[] = {
        key_commands,    hash_commands,   list_commands,
        sorted_commands, server_commands, script_commands,
        stream_commands, group_commands,  test_commands};
    int first = name.len == 0 ? '\0' : toupper((unsigned char)name.ptr[0]);

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        for (const struct command *one = lists[i]; one->name != NULL; one++)
            if (first == one->name[0] && is_word(name, one->name))
                return one;
    return NULL;
}

static void answer_arity(struct call *call, const struct command *command)
{
    char text[128], name[32] = "";

    if (call->client == NULL) {
        answer_error(
            call, "ERR Wrong number of args calling Redis command from script");
        return;
    }
    for (size_t i = 0; command->name[i] != '\0'; i++)
        name[i] = (char)tolower((unsigned char)command->name[i]);
    (void)snprintf(text, sizeof(text),
                   "ERR wrong number of arguments for '%s' command", name);
    answer_error(call, text);
}

void run_command(struct call *call)
{
    const struct command *command = find_command(call->argv[0]);
    size_t least;

    if (command == NULL)
        server_fail("the server does not know the command %.*s",
                    (int)call->argv[0].len, call->argv[0].ptr);
    least = (size_t)abs(command->arity);
    if (command->arity > 0 ? call->argc != least : call->argc < least)
        answer_arity(call, command);
    else if (!refuse(call, command))
        command->run(call);
    if ((command->flags & (WRITES | SCRIPT)) != 0 && call->client != NULL &&
        call->client->blocked == NULL)
        serve_blocked(call->server);
}

/* --- what clients send --------------------------------------------------- */

/* The number behind the type at `at`. Returns what is behind the line; NULL:
 * it is not whole yet. */
static const char *read_line(const char *at, const char *end, char type,
                             long *ret_value, bool *is_broken)
{
    const char *stop;

    if (at >= end)
        return NULL;
    stop = memchr(at, '\n', (size_t)(end - at));
    if (stop == NULL)
        return NULL;
    *ret_value = strtol(at + 1, NULL, 10);
    *is_broken = *at != type || *ret_value < 0 || *ret_value > ARGS_MAX * 512L;
    return stop + 1;
}

static void run_watched(struct call *call)
{
    const struct server_watch *watch = call->server->watch;

    if (watch != NULL)
        watch->before(watch->arg, call->argv, call->argc);
    run_command(call);
    if (watch != NULL)
        watch->after(watch->arg, call->argv, call->argc,
                     (struct slice){call->out->ptr, call->out->len});
}

/* Runs the first command of what came. False: it is not whole, or broken. */
static bool run_first(struct server_client *client, struct slice **words,
                      size_t *words_cap)
{
    const char *at = client->in, *end = client->in + client->len;
    struct out out = {0};
    struct call call = {
        .server = client->server, .client = client, .out = &out};
    long count, len;

    at = read_line(at, end, '*', &count, &client->is_closing);
    if (at == NULL || client->is_closing)
        return false;
    if ((size_t)count > *words_cap) {
        *words_cap = (size_t)count;
        *words = realloc(*words, *words_cap * sizeof(**words));
        if (*words == NULL)
            server_fail("the server has no memory for %ld words", count);
    }
    for (long i = 0; i < count; i++) {
        at = read_line(at, end, '$', &len, &client->is_closing);
        if (at == NULL || client->is_closing || end - at < len + 2)
            return false;
        (*words)[i] = (struct slice){at, (size_t)len};
        at += len + 2;
    }
    call.argv = *words;
    call.argc = (size_t)count;
    if (count > 0)
        run_watched(&call);
    client->len -= (size_t)(at - client->in);
    memmove(client->in, at, client->len);
    if (out.len > 0)
        client->send(client->arg, out.ptr, out.len);
    out_free(&out);
    return true;
}

bool server_feed(struct server_client *client, const char *bytes, size_t len)
{
    struct slice *words = NULL;
    size_t words_cap = 0;

    if (client->len + len > client->cap) {
        client->cap = 2 * (client->len + len);
        client->in = realloc(client->in, client->cap);
        if (client->in == NULL)
            server_fail("the server has no memory for %zu bytes", client->cap);
    }
    memcpy(client->in + client->len, bytes, len);
    client->len += len;
    while (client->blocked == NULL && run_first(client, &words, &words_cap))
        continue;
    free(words);
    return !client->is_closing;
}

struct server_client *server_connect(struct server *server,
                                     void (*send)(void *arg, const char *bytes,
                                                  size_t len),
                                     void *arg)
{
    struct server_client *client = calloc(1, sizeof(*client));

    if (client == NULL)
        server_fail("the server has no memory for a client");
    client->server = server;
    client->send = send;
    client->arg = arg;
    client->id = ++server->last_client;
    client->next = server->clients;
    server->clients = client;
    return client;
}

void server_disconnect(struct server_client *client)
{
    struct server_client **link = &client->server->clients;

    while (*link != client)
        link = &(*link)->next;
    *link = client->next;
    unblock(client);
    table_clear(&client->channels);
    free(client->in);
    free(client);
}

/* --- life ---------------------------------------------------------------- */

void new_run_id(struct server *server)
{
    for (size_t i = 0; i < sizeof(server->run_id) - 1; i++)
        server->run_id[i] = "0123456789abcdef"[server_below(server, 16)];
}

struct server *server_new(int64_t now_us, uint64_t seed)
{
    struct server *server = calloc(1, sizeof(*server));

    if (server == NULL)
        return NULL;
    server->now_us = now_us;
    server->random = seed;
    server->lua = lua_open_server(server);
    new_run_id(server);
    return server;
}

void server_clear(struct server *server)
{
    keys_clear(&server->keys);
}

void server_free(struct server *server)
{
    while (server->clients != NULL)
        server_disconnect(server->clients);
    server_clear(server);
    keys_clear(&server->saved);
    table_clear(&server->scripts);
    lua_close_server(server->lua);
    out_free(&server->scratch);
    free(server);
}

void server_set_time(struct server *server, int64_t now_us)
{
    server->now_us = now_us;
    if (server_next_us(server) <= now_us)
        serve_blocked(server);
}

int64_t server_time(const struct server *server)
{
    return server->now_us;
}

void server_watch(struct server *server, const struct server_watch *watch)
{
    server->watch = watch;
}

void server_plant(struct server *server, const char *sha1, const char *find,
                  const char *replace)
{
    server->plant_sha1 = sha1;
    server->plant_find = find;
    server->plant_replace = replace;
}

uint64_t server_scripts(const struct server *server)
{
    return server->script_count;
}
