/* SPDX-License-Identifier: MIT */
#ifndef WEIR_REDIS_PROBE_H
#define WEIR_REDIS_PROBE_H

/* Questions to a server while the caller waits: for a program before it enters
 * its loop, for weir doctor, and for the keeper on a thread of its own.
 * Everything here BLOCKS, for at most `limit_ms` each however the answer comes,
 * see await.h. The caller ignores or blocks SIGPIPE. */

#include "adapters/redis/url.h"

enum { WEIR__PROBE_MS = 3000 }; /* the limit for programs */

struct redisReply;
struct weir__cluster_map;
struct weir__probe;
struct weir__script;

/* Connect, log in, choose the database. WEIR_ECONN; WEIR_ESERVER when the
 * server turned us away; WEIR_ENOTFOUND: a cluster has no such database;
 * WEIR_ENOMEM. `err` holds the reason alone. Of several hosts it is the first
 * one that answers, each has `limit_ms`. Where the address has sentinels, these
 * are asked first, 300 ms each, and the server is the primary that they name;
 * WEIR_ENOTFOUND: they know none of that name. `ret_probe` is left alone where
 * it fails. */
int weir__probe_open(const struct weir__redis_url *url, int limit_ms,
                     struct weir__probe **ret_probe, struct weir_error *err);

/* The address of the server itself: `url`, or where that has sentinels, the
 * address of the primary that they name. Does not connect to it. Errors as
 * above. */
int weir__probe_locate(const struct weir__redis_url *url,
                       struct weir__redis_url *ret_url, struct weir_error *err);

/* NULL is fine. */
void weir__probe_close(struct weir__probe *probe);

/* Ask one command, words ended by NULL. `*ret_text` is the answer, valid until
 * the next one: integers in decimal, nil as "", elements of arrays one in each
 * line. WEIR_ESERVER: an error reply, and its text; WEIR_ECONN: no answer, and
 * why; every later question fails then, too. */
int weir__probe_ask(struct weir__probe *probe, const char *const *words,
                    const char **ret_text);

/* The same in two steps, so that many questions leave together: the answers are
 * taken in the order of what was put, all before anything else is asked. */
void weir__probe_put(struct weir__probe *probe, const char *const *words);
void weir__probe_put_load(struct weir__probe *probe,
                          const struct weir__script *script); /* SCRIPT LOAD */
int weir__probe_take(struct weir__probe *probe, const char **ret_text);

/* Ask one RESP command. NULL: no answer; every later question fails then, too.
 * The reply, maybe an error, is released with freeReplyObject. */
struct redisReply *weir__probe_command(struct weir__probe *probe,
                                       struct weir_slice command);

/* Ask for the map of the server's cluster; the caller gets a reference.
 * WEIR_ENOTFOUND: it is no node of one; WEIR_ESERVER: the answer is another
 * error, or wrong; WEIR_ECONN; WEIR_ENOMEM. `err` holds the reason alone. */
int weir__probe_map(struct weir__probe *probe,
                    struct weir__cluster_map **ret_map, struct weir_error *err);

/* Why there was no answer to a question; NULL: all were answered. */
const char *weir__probe_lost(const struct weir__probe *probe);

/* The server: one of the address, or that which its sentinels named. */
const struct weir__redis_host *
weir__probe_host(const struct weir__probe *probe);

/* The socket, for shutdown() from another thread. */
int weir__probe_fd(const struct weir__probe *probe);

#endif
