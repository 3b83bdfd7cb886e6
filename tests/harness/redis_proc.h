/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_REDIS_PROC_H
#define WEIR_TEST_REDIS_PROC_H

/* A private redis-server for one test: fresh directory under $TMPDIR or /tmp,
 * unix socket, no port, no snapshots. It stays in the test's process group and
 * is killed by its pid when the test ends, however that happens; its directory
 * goes with it. The binary is $WEIR_REDIS_SERVER or redis-server.
 *
 * Everything here BLOCKS and ends the test with a sentence when it fails. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <hiredis/hiredis.h>

#include <weir/base.h>

struct redis_proc;
struct weir__redis_url;

/* Zeroed or NULL: a plain server without persistence. */
struct redis_options {
    const char *const *args; /* more arguments, ended by NULL; kept */
    const char *password;    /* requirepass; kept */
    bool appendonly;         /* what was answered survives a kill */
    bool tcp;                /* also on a free port of 127.0.0.1 */
    bool tls;                /* and on another with TLS; redis_dir has ca.pem */
};

/* Start and wait until it answers. */
struct redis_proc *redis_start(const struct redis_options *options);

/* The same, but only makes the directory; redis_restart starts it. */
struct redis_proc *redis_prepare(const struct redis_options *options);

/* unix:///...; with WEIR_TEST_TLS in the environment redis_tls_url. */
const char *redis_url(const struct redis_proc *proc);

/* redis_url, ready to connect; what it needs lasts as long as `proc`. */
void redis_address(struct redis_proc *proc, struct weir__redis_url *ret_url);

const char *redis_socket(const struct redis_proc *proc); /* path */
const char *redis_dir(const struct redis_proc *proc);
int redis_port(const struct redis_proc *proc); /* 0 without `tcp` */

/* With `tls`: rediss://127.0.0.1:PORT?ca=..., or its port alone. */
const char *redis_tls_url(const struct redis_proc *proc);
int redis_tls_port(const struct redis_proc *proc);

pid_t redis_pid(const struct redis_proc *proc);

/* Send a signal; after SIGKILL and SIGTERM waits until the server is gone. */
void redis_kill(struct redis_proc *proc, int signal_number);

/* Kill it if it runs, start it on the same directory, wait for an answer. */
void redis_restart(struct redis_proc *proc);

/* Kill it, remove its directory, free `proc`. Done at exit by itself. */
void redis_stop(struct redis_proc *proc);

/* One command through a connection of the harness (format as in hiredis:
 * "SET %s %b"). An integer reply; anything else fails the test. */
long long redis_int(struct redis_proc *proc, const char *format, ...);

/* Any reply as text, valid until the next call for `proc`: integers in
 * decimal, arrays joined by blanks, errors as they came, nil as NULL. */
const char *redis_text(struct redis_proc *proc, const char *format, ...);

/* The words of one command. The caller frees the reply. */
redisReply *redis_words(struct redis_proc *proc, size_t count,
                        const char **words, const size_t *lens);

/* Stands in for a server: redis_int, redis_text and redis_words give the bytes
 * of a command to `answer`, whose reply they free. Nothing else may be called
 * for it. Lives as long as the process. */
struct redis_proc *redis_stand_in(redisReply *(*answer)(const char *bytes,
                                                        size_t len));

/* How often it ran a command, named as INFO does ("zadd"), in scripts, too. */
long long redis_calls(struct redis_proc *proc, const char *command);

#endif
