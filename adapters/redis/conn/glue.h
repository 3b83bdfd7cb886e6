/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CONN_GLUE_H
#define WEIR_CONN_GLUE_H

/* hiredis on libev: the hooks that hiredis calls, and two watchers embedded in
 * the owner. Unlike the adapter that comes with hiredis it lets the owner write
 * at a moment of its choice; the write watcher runs only until the connection
 * stands and while the socket is full. Knows nothing of commands. */

#include <ev.h>
#include <stdbool.h>
#include <sys/types.h>

#include "adapters/redis/conn/compat.h"
#include "adapters/redis/conn/tls.h"

struct weir__glue {
    struct ev_loop *loop;
    struct redisAsyncContext *context; /* NULL: nothing attached */
    ev_io read;
    ev_io write;
    struct ssl_st *ssl; /* the context's; NULL: no TLS */
    bool is_handling;   /* inside weir__glue_read or weir__glue_write */
    pid_t pid;          /* of the process that attached it */
    /* The socket is ready; call weir__glue_read or weir__glue_write. */
    void (*on_ready)(bool is_writable, void *arg);
    void *arg;
};

/* Attach a fresh context without error; before its callbacks are set. The
 * context detaches itself when hiredis frees it. */
void weir__glue_attach(struct weir__glue *glue,
                       struct redisAsyncContext *context);

/* Begin TLS on the context, which is connected. False: it failed, and `why`
 * says how. */
bool weir__glue_secure(struct weir__glue *glue, const struct weir__tls *tls,
                       const char *host, char *why, size_t cap);

/* Read and run reply callbacks; with TLS this may write. The context may be
 * gone afterwards. In a child of a fork nothing happens, here and below, since
 * the socket is its parent's. */
void weir__glue_read(struct weir__glue *glue);

/* Write what hiredis buffered, without ever raising SIGPIPE; on a partial write
 * the write watcher is left running. The context may be gone afterwards. */
void weir__glue_write(struct weir__glue *glue);

/* Bytes that hiredis holds back for the socket. */
size_t weir__glue_buffered(const struct weir__glue *glue);

/* The socket is full: the write watcher will say when it drained. */
bool weir__glue_is_stuck(struct weir__glue *glue);

#endif
