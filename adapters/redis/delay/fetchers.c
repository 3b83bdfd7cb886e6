/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "adapters/redis/delay/private.h"

/* By which connection packs are fetched. The server writes at most 64 KiB to a
 * connection in a turn of its loop (NET_MAX_WRITES_PER_EVENT), whatever else it
 * does in that turn: beside a fast producer, a worker with one connection gets
 * half of what is added, and its claims wait behind its own packs. So large
 * fetches go by connections of their own, which are opened when first there is
 * much to fetch. */

enum { MUCH = 512 }; /* jobs */

static void open_fetchers(struct weir__delay *shared)
{
    const struct weir__redis_options *options = &shared->store->options;
    char name[sizeof(shared->store->worker) + 8];
    struct weir__conn_options conn = {
        .loop = options->loop,
        .url = &shared->store->url,
        .name = name,
        .wait_ms = options->wait_ms,
        .log = options->log,
        .is_beside = true,
        .depth = options->depth,
    };

    (void)snprintf(name, sizeof(name), "%s:fetch", shared->store->worker);
    for (size_t i = 0; i < WEIR__FETCHERS; i++) {
        conn.seed = options->seed + 2 + i;
        if (shared->fetchers[i] == NULL)
            (void)weir__conn_open(&conn, &shared->fetchers[i]);
    }
}

/* The next one that is ready; NULL: none. */
static struct weir__conn *next_fetcher(struct weir__delay *shared)
{
    for (size_t i = 0; i < WEIR__FETCHERS; i++) {
        struct weir__conn *conn;

        shared->fetcher = (shared->fetcher + 1) % WEIR__FETCHERS;
        conn = shared->fetchers[shared->fetcher];
        if (conn != NULL && weir__conn_is_ready(conn))
            return conn;
    }
    return NULL;
}

static void write_fetch(struct weir__buf *bytes,
                        const struct weir__delay_lease *lease)
{
    weir__resp_command(bytes, 1 + lease->pack_count);
    weir__resp_str(bytes, "MGET");
    for (size_t i = 0; i < lease->pack_count; i++)
        weir__prefix_pack(bytes, &lease->topic->base.prefix,
                          lease->packs[i].first->name);
}

void weir__lease_fetch(struct weir__delay_lease *lease)
{
    struct weir__delay *shared = lease->topic->shared;
    unsigned bodies = weir__send_bodies(lease->pack_count);
    struct weir__conn *conn = NULL;
    struct weir__buf bytes = {0};

    lease->is_fetching = true;
    lease->request.done = weir__lease_fetched;
    write_fetch(&bytes, lease);
    if (lease->jobs >= MUCH) {
        open_fetchers(shared);
        conn = next_fetcher(shared);
    }
    lease->by_fetcher = conn != NULL;
    if (conn == NULL) {
        weir__redis_send(shared->store, &bytes, NULL, WEIR__SEND_AGAIN | bodies,
                         &lease->request);
        return;
    }
    weir__redis_send_by(shared->store, conn, &bytes, NULL,
                        WEIR__SEND_ONCE | bodies, &lease->request);
    weir__conn_flush(conn);
}

static bool has_all(const struct redisReply *reply)
{
    struct weir_slice pack;

    for (size_t i = 0; i < (size_t)reply->elements; i++)
        if (!weir__reply_str(reply, i, &pack))
            return false;
    return true;
}

/* A fetcher may be with a server that commands have left, or not reached: that
 * a pack is gone only the connection that claimed it can say. */
bool weir__lease_fetch_again(struct weir__delay_lease *lease, int code,
                             const struct redisReply *reply)
{
    struct weir__buf bytes = {0};

    if (!lease->by_fetcher || code == WEIR_ESERVER || code == WEIR_ETOOBIG ||
        (code == WEIR_OK && has_all(reply)) ||
        lease->topic->base.store->is_closed)
        return false;
    lease->by_fetcher = false;
    write_fetch(&bytes, lease);
    weir__redis_send(lease->topic->base.store, &bytes, NULL,
                     WEIR__SEND_AGAIN | weir__send_bodies(lease->pack_count),
                     &lease->request);
    return true;
}

void weir__fetchers_close(struct weir__delay *shared)
{
    for (size_t i = 0; i < WEIR__FETCHERS; i++) {
        struct weir__conn *conn = shared->fetchers[i];

        shared->fetchers[i] = NULL;
        weir__conn_close(conn);
    }
}
