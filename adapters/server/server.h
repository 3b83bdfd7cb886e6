/* SPDX-License-Identifier: MIT */
#ifndef WEIR_SERVER_SERVER_H
#define WEIR_SERVER_SERVER_H

/* A private redis-server in a data directory: start it when it is not there,
 * look at it, stop it. It listens on a unix socket only, keeps an append-only
 * file, evicts nothing, and lives on in a session of its own when the process
 * that started it is gone.
 *
 * Any number of processes may call weir__server_start at once: a lock file in
 * the directory lets one of them start the server, the others find it. Knows
 * nothing of jobs. Everything here BLOCKS and forks; it is for programs before
 * they enter a loop and start threads, and for commands. The caller ignores
 * SIGPIPE. */

#include <weir/base.h>

#include <sys/types.h>

struct weir__server {
    char dir[512];    /* absolute, without links */
    char socket[108]; /* dir/redis.sock */
};

/* Prepare `dir` as a data directory: make it (with what leads to it, mode
 * 0700) when `make` is set, and fill `ret_server`. WEIR_ENOTFOUND (it is not
 * there and `make` is not set), WEIR_ETOOBIG (the socket's path would have
 * more than 107 bytes), WEIR_EINVAL (others own it or something in it, or may
 * write to it), WEIR_ESYSTEM; `err` holds the sentence. */
int weir__server_locate(const char *dir, bool make,
                        struct weir__server *ret_server,
                        struct weir_error *err);

struct weir__server_info {
    pid_t pid;
    uint64_t memory_bytes; /* used_memory */
    char version[32];
};

/* Ask a running server. WEIR_ENOTFOUND: none is running; WEIR_ETIMEDOUT: it
 * does not answer; WEIR_EINVAL: it is another user's, and was not asked. BLOCKS
 * for at most 2 s. */
int weir__server_status(const struct weir__server *server,
                        struct weir__server_info *ret_info,
                        struct weir_error *err);

/* Have a server that answers, started now when there was none. Waits up to
 * 10 s, also while it loads its data. WEIR_ENOTFOUND (no redis-server in
 * PATH), WEIR_ETIMEDOUT, WEIR_ESYSTEM, WEIR_ESERVER (it ended at once: what its
 * log says), WEIR_EINVAL as above. BLOCKS. */
int weir__server_start(const struct weir__server *server, bool *ret_started,
                       struct weir__server_info *ret_info,
                       struct weir_error *err);

/* Shut it down, data saved, and wait up to 30 s until its process is gone.
 * WEIR_ENOTFOUND: none was running; WEIR_EINVAL as above. BLOCKS. */
int weir__server_stop(const struct weir__server *server,
                      struct weir_error *err);

#endif
