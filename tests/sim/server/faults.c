/* SPDX-License-Identifier: MIT */

/* What a server refuses while something is wrong with it, in the order and the
 * words of Redis 7.0 (processCommand and scriptCall), and how it loses keys. */

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/server/private.h"

#define FULL "OOM command not allowed when used memory > 'maxmemory'."
#define DISK                                                                  \
    "MISCONF Redis is configured to save RDB snapshots, but it's currently "  \
    "unable to persist to disk. Commands that may modify the data set are "   \
    "disabled, because this instance is configured to report errors during "  \
    "writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). " \
    "Please check the Redis logs for details about the RDB error."
#define REPLICA          "READONLY You can't write against a read only replica."
#define LOADING          "LOADING Redis is loading the dataset in memory"
#define DENIED           "NOPERM this user has no permissions to "
#define DENIED_IN_SCRIPT "ERR The user executing the script can't "

/* --- rights -------------------------------------------------------------- */

/* Where a command has its keys: `step` words apart, before `end`. */
struct places {
    size_t first, end, step;
};

static struct places behind_streams(const struct call *call)
{
    size_t first = 1;

    while (first < call->argc && !is_word(call->argv[first], "STREAMS"))
        first++;
    first = first < call->argc ? first + 1 : first;
    return (struct places){first, first + (call->argc - first) / 2, 1};
}

static struct places keys_of(const struct call *call, unsigned flags)
{
    size_t first = (flags & HAS_PARTS) != 0 ? 2 : 1;
    int64_t count = 0;

    if ((flags & ALL_KEYS) != 0)
        return (struct places){1, call->argc, 1};
    if ((flags & STREAMS) != 0)
        return behind_streams(call);
    if ((flags & SCRIPT) != 0) {
        if (!parse_int(call->argv[2], &count) || count < 0 ||
            (size_t)count > call->argc - 3)
            count = 0;
        return (struct places){3, 3 + (size_t)count, 1};
    }
    count = (flags & TWO_KEYS) != 0 ? 2 : (flags & ONE_KEY) != 0;
    return (struct places){first, first + (size_t)count, 1};
}

/* "hset", or "script|load". */
static void full_name(const struct call *call, const struct command *command,
                      char *name, size_t cap)
{
    struct slice part = {"", 0};

    if ((command->flags & HAS_PARTS) != 0)
        part = call->argv[1];
    (void)snprintf(name, cap, "%s%s%.*s", command->name,
                   part.len > 0 ? "|" : "", (int)part.len, part.ptr); /* cut */
    for (; *name != '\0'; name++)
        *name = (char)tolower((unsigned char)*name);
}

static bool is_forbidden(const struct call *call, const char *name)
{
    const char *forbidden = call->server->forbidden;
    size_t len = forbidden == NULL ? 0 : strlen(forbidden);

    return len > 0 && strncmp(name, forbidden, len) == 0 &&
           (name[len] == '\0' || name[len] == '|');
}

static bool has_foreign_key(const struct call *call, unsigned flags)
{
    const char *allowed = call->server->allowed;
    struct places keys = keys_of(call, flags);

    for (size_t i = keys.first; allowed != NULL && i < keys.end; i += keys.step)
        if (call->argv[i].len < strlen(allowed) ||
            memcmp(call->argv[i].ptr, allowed, strlen(allowed)) != 0)
            return true;
    return false;
}

static bool refuse_right(struct call *call, const struct command *command)
{
    char name[64], text[160];

    if (is_word(call->argv[0], "AUTH"))
        return false;
    full_name(call, command, name, sizeof(name));
    if (is_forbidden(call, name)) {
        (void)snprintf(text, sizeof(text), DENIED "run the '%s' command",
                       name); /* fits */
        answer_error(call, call->client == NULL ? DENIED_IN_SCRIPT
                               "run this command or subcommand"
                                                : text);
        return true;
    }
    if (!has_foreign_key(call, command->flags))
        return false;
    answer_error(call, call->client == NULL ? DENIED_IN_SCRIPT
                           "access at least one of the keys mentioned "
                           "in the command arguments"
                                            : DENIED
                           "access one of the keys used as arguments");
    return true;
}

/* --- the state of the server --------------------------------------------- */

/* A replica leaves maxmemory to its primary. */
static bool is_too_big(const struct call *call, const struct command *command)
{
    return (command->flags & GROWS) != 0 &&
           (call->server->faults & SERVER_FULL) != 0 &&
           (call->server->faults & SERVER_REPLICA) == 0 &&
           !((command->flags & HAS_PARTS) != 0 &&
             is_word(call->argv[1], "SETID"));
}

/* The first write of a script decides: behind it nothing is refused. */
static const char *fault_in_script(const struct call *call,
                                   const struct command *command)
{
    struct server *server = call->server;
    bool writes = (command->flags & WRITES) != 0;

    if (server->has_written)
        return NULL;
    if (writes && (server->faults & SERVER_REPLICA) != 0)
        return REPLICA;
    if (writes && (server->faults & SERVER_DISK) != 0)
        return DISK;
    if (is_too_big(call, command))
        return FULL;
    server->has_written = writes;
    return NULL;
}

static const char *fault_of(const struct call *call,
                            const struct command *command)
{
    unsigned faults = call->server->faults;
    bool writes = (command->flags & WRITES) != 0;

    if (is_too_big(call, command))
        return FULL;
    if ((writes || is_word(call->argv[0], "PING")) &&
        (faults & SERVER_DISK) != 0)
        return DISK;
    if (writes && (faults & SERVER_REPLICA) != 0)
        return REPLICA;
    if ((command->flags & LOADS) == 0 && (faults & SERVER_LOADING) != 0)
        return LOADING;
    return NULL;
}

bool refuse(struct call *call, const struct command *command)
{
    const char *fault;

    if (call->is_again)
        return false;
    if ((call->server->forbidden != NULL || call->server->allowed != NULL) &&
        refuse_right(call, command))
        return true;
    fault = call->client == NULL ? fault_in_script(call, command)
                                 : fault_of(call, command);
    if (fault != NULL)
        answer_error(call, fault);
    return fault != NULL;
}

void server_faults(struct server *server, unsigned faults)
{
    server->faults = faults;
}

void server_forbid(struct server *server, const char *command,
                   const char *prefix)
{
    server->forbidden = command;
    server->allowed = prefix;
}

/* --- lost keys ----------------------------------------------------------- */

bool server_any_key(struct server *server, char *ret_key, size_t cap)
{
    const struct entry *entry;

    if (server->keys.count == 0)
        return false;
    entry = server->keys.list[server_below(server, server->keys.count)];
    (void)snprintf(ret_key, cap, "%s", entry->name); /* cut */
    return true;
}

bool server_lose(struct server *server, const char *key)
{
    struct slice name = {key, strlen(key)};
    bool is_there = key_object(server, name) != NULL;

    key_delete(server, name);
    return is_there;
}

static void copy_keys(struct table *to, const struct table *from)
{
    for (size_t i = 0; i < from->count; i++)
        table_add(to, entry_name(from->list[i]))->object =
            object_copy(from->list[i]->object);
}

void server_save(struct server *server)
{
    keys_clear(&server->saved);
    copy_keys(&server->saved, &server->keys);
}

void server_restart(struct server *server)
{
    server_clear(server);
    copy_keys(&server->keys, &server->saved);
    table_clear(&server->scripts);
    lua_close_server(server->lua);
    server->lua = lua_open_server(server);
    new_run_id(server);
}
