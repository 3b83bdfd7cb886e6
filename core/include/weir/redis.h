/* SPDX-License-Identifier: MIT */
#ifndef WEIR_REDIS_H
#define WEIR_REDIS_H

/* Commands of a handler's own to a server of Redis: part of <weir/plugin.h>. It
 * is the one that the jobs are on, or another one by its address, reached as
 * weir reaches its own: TLS, sentinels, a cluster, lost connections. An
 * instance opens it in `open`, by weir_open_redis(), and closes it in `close`,
 * or where `open` fails. On the loop's thread only. */

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What became of a command. `code`: WEIR_OK; WEIR_ESERVER (an error, nothing
 * was done); WEIR_ECONN (it was not sent: there is no connection);
 * WEIR_ENOMEM (nor sent: this process lacks descriptors or memory for one);
 * WEIR_EUNKNOWN (it was sent, and may have been done); WEIR_ECANCELED (it may
 * have been, and was not waited for). `text`, borrowed: the answer or error, of
 * an integer its digits, of arrays nothing. Runs once, after the call that sent
 * it, on the loop's thread. */
typedef void (*weir_redis_fn)(int code, struct weir_slice text, void *arg);

/* The first member is part of the ABI, what follows it belongs to the host. */
struct weir_redis {
    const struct weir_redis_ops *ops;
};

/* The host's functions. Call them through the inline functions below. */
struct weir_redis_ops {
    uint32_t size; /* sizeof(struct weir_redis_ops) in the host's build */

    int (*send)(struct weir_redis *redis, const struct weir_slice *words,
                size_t count, weir_redis_fn fn, void *arg);
    void (*close)(struct weir_redis *redis);
};

/* Who opens them, by an address as that of the worker; NULL: the server that
 * the jobs are on. A failure writes a sentence. */
struct weir_redis_source {
    int (*open)(struct weir_redis_source *source, const char *url,
                struct weir_redis **ret_redis, char *error, size_t error_cap);
};

/* Send a command: its words, of which the second is its only key; all are
 * copied. What is sent in one turn of the loop leaves together, in its order.
 * Without a connection it waits for one, 10 s unless the host says otherwise.
 * WEIR_EINVAL (fewer than two words), WEIR_EFULL (64 MiB wait), WEIR_ENOMEM,
 * WEIR_ECANCELED; `fn` does not run then. */
static inline int weir_redis_send(struct weir_redis *redis,
                                  const struct weir_slice *words, size_t count,
                                  weir_redis_fn fn, void *arg)
{
    return redis->ops->send(redis, words, count, fn, arg);
}

/* What has no answer yet is told WEIR_ECANCELED in here. Not inside a callback
 * of what went to another server than the jobs'. NULL is fine. */
static inline void weir_redis_close(struct weir_redis *redis)
{
    if (redis != NULL)
        redis->ops->close(redis);
}

#ifdef __cplusplus
}
#endif
#endif
