/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_SERVER_H
#define WEIR_TEST_SERVER_H

/* A Redis in the test's process. It has the commands of adapters/cli/rights.c
 * but a few (tests/lint/server_commands.py lists them), the options that weir
 * uses, the texts of errors of Redis 7.0, and Lua 5.1 for the scripts as they
 * are embedded. A command or an option that it does not know ends the program,
 * since a test that goes on would prove something else. Not thread-safe. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct server;
struct server_client;
struct slice;

/* Empty; its clock begins at `now_us`, in us since 1970. What Redis chooses by
 * chance comes from the seed. NULL: no memory. */
struct server *server_new(int64_t now_us, uint64_t seed);
void server_free(struct server *server);

/* As FLUSHALL: scripts and connections stay. */
void server_clear(struct server *server);

/* Time passes only by this; it may go back. Clients that wait in BLMOVE or
 * XREAD get their answer here when their time is over: server_next_us() is the
 * first such time, INT64_MAX if nobody waits. */
void server_set_time(struct server *server, int64_t now_us);
int64_t server_time(const struct server *server);
int64_t server_next_us(const struct server *server);

/* --- faults: they last until they are taken back ------------------------- */

enum {
    SERVER_FULL = 1,    /* OOM: its memory is above maxmemory */
    SERVER_DISK = 2,    /* MISCONF: the last snapshot failed */
    SERVER_REPLICA = 4, /* READONLY; INFO and ROLE say so, too */
    SERVER_LOADING = 8
};

/* These alone from now on. */
void server_faults(struct server *server, unsigned faults);

/* NOPERM for the command, a name in lower case as "hset" or "script|load", and
 * for keys that do not begin with `prefix`. NULL: everything is allowed. Both
 * are kept. */
void server_forbid(struct server *server, const char *command,
                   const char *prefix);

/* A random key in `ret_key`, cut at `cap`; false: there is none. */
bool server_any_key(struct server *server, char *ret_key, size_t cap);

/* Loses the key, as an eviction does; false: there is no such key. */
bool server_lose(struct server *server, const char *key);

/* Starts again as a server does that crashed, with the keys of the last
 * server_save, or none: scripts are gone. Connections have to be cut first. */
void server_save(struct server *server);
void server_restart(struct server *server);

/* --- clients ------------------------------------------------------------- */

/* A connection. `send` gets what the server says, whole replies and messages,
 * inside server_feed of this client or of another one, or server_set_time. */
struct server_client *server_connect(struct server *server,
                                     void (*send)(void *arg, const char *bytes,
                                                  size_t len),
                                     void *arg);

/* Bytes of the client, in any pieces. False: what came is no command, and the
 * server wants to close the connection. */
bool server_feed(struct server_client *client, const char *bytes, size_t len);

void server_disconnect(struct server_client *client);

/* Is told of each command of a client: before it runs, and when it has been
 * answered, with what the client gets; and of each message, in between, with
 * how many hear it. */
struct server_watch {
    void (*before)(void *arg, const struct slice *words, size_t count);
    void (*after)(void *arg, const struct slice *words, size_t count,
                  struct slice reply);
    void (*published)(void *arg, struct slice channel, struct slice message,
                      int64_t count);
    void *arg;
};

/* The struct is kept; NULL ends the watch. */
void server_watch(struct server *server, const struct server_watch *watch);

/* A fault for tests: in the script with this SHA-1, once it is loaded, `find`
 * (it is there exactly once) is replaced. All is kept. */
void server_plant(struct server *server, const char *sha1, const char *find,
                  const char *replace);

/* Scripts and commands of scripts that have run. */
uint64_t server_scripts(const struct server *server);

#endif
