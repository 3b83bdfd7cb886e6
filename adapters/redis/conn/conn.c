/* SPDX-License-Identifier: MIT */
#include "adapters/redis/conn/conn.h"

#include <errno.h>
#include <string.h>

#include "adapters/redis/conn/private.h"
#include "adapters/redis/monotonic.h"
#include "core/assert.h"
#include "core/mem.h"

enum {
    DEFAULT_QUEUED = 64 * 1024 * 1024,
    DEFAULT_WAIT_MS = 10000,
    DEFAULT_CONNECT_MS = 3000,
    DEFAULT_HANDSHAKE_MS = 3000,
    DEFAULT_REPLY_MS = 10000,
    DEFAULT_WATCH_MS = 3000,
    DEFAULT_STABLE_MS = 5000,
    DEFAULT_AGAIN_MS = 60000,
    DEFAULT_REPLAY_MS = 3000 /* a replica that is well is not so far behind */
};

/* --- opening and closing -------------------------------------------------- */

/* NULL becomes "". */
static void copy(char to[WEIR__CONN_NAME_MAX], const char *text)
{
    size_t len = text == NULL ? 0 : strlen(text);

    WEIR_ASSERT(len < WEIR__CONN_NAME_MAX);
    if (len > 0)
        memcpy(to, text, len);
}

static void default_ms(int64_t *value, int64_t fallback)
{
    if (*value == 0)
        *value = fallback;
}

static void take_options(struct weir__conn *conn,
                         const struct weir__conn_options *options)
{
    conn->options = *options;
    if (conn->options.max_queued == 0)
        conn->options.max_queued = DEFAULT_QUEUED;
    if (conn->options.max_reply == 0)
        conn->options.max_reply = WEIR__REPLY_BYTES;
    default_ms(&conn->options.wait_ms, DEFAULT_WAIT_MS);
    default_ms(&conn->options.connect_ms, DEFAULT_CONNECT_MS);
    default_ms(&conn->options.handshake_ms, DEFAULT_HANDSHAKE_MS);
    default_ms(&conn->options.reply_ms, DEFAULT_REPLY_MS);
    default_ms(&conn->options.watch_ms, DEFAULT_WATCH_MS);
    default_ms(&conn->options.stable_ms, DEFAULT_STABLE_MS);
    default_ms(&conn->options.again_ms, DEFAULT_AGAIN_MS);
    default_ms(&conn->options.replay_ms, DEFAULT_REPLAY_MS);
    if (conn->options.host == NULL)
        conn->options.host = &options->url->hosts[0];
    conn->random = options->seed;
}

int weir__conn_open(const struct weir__conn_options *options,
                    struct weir__conn **ret_conn)
{
    struct weir__conn *conn = weir__mem_new(sizeof(*conn));

    WEIR_ASSERT(options->loop != NULL && options->url != NULL);
    if (conn == NULL)
        return WEIR_ENOMEM;
    conn->magic = WEIR__CONN_MAGIC;
    take_options(conn, options);
    copy(conn->name, options->name);
    copy(conn->channel, options->channel);
    weir__conn_look_at_clock(conn);
    weir__conn_state_init(conn);
    weir__conn_locate_init(conn);
    weir__conn_queue_init(conn);
    weir__conn_connect(conn);
    *ret_conn = conn;
    return WEIR_OK;
}

void weir__conn_close(struct weir__conn *conn)
{
    if (conn == NULL || conn->state == WEIR__CONN_CLOSED)
        return;
    weir__conn_of(conn);
    weir__conn_enter(conn);
    weir__conn_change_state(conn, WEIR__CONN_CLOSED);
    weir__conn_stop_timers(conn);
    if (conn->options.locator != NULL)
        conn->options.locator->forget(conn->options.locator->arg, conn);
    weir__lookup_cancel(conn->lookup);
    weir__conn_queue_cancel(conn);
    weir__conn_leave(conn);
}

/* --- using ---------------------------------------------------------------- */

bool weir__conn_is_at(const struct weir__conn *conn, const char *host,
                      uint16_t port)
{
    return conn->port == port && strcmp(conn->host, host) == 0;
}

int64_t weir__conn_owed_ms(const struct weir__conn *conn)
{
    return conn->sent.first == NULL
               ? 0
               : weir__monotonic_ms() - conn->sent.first->sent_ms;
}

bool weir__conn_is_ready(const struct weir__conn *conn)
{
    return conn->state == WEIR__CONN_READY && conn->lost_code == WEIR_OK;
}

/* hiredis has no code for it, but the system's words. */
bool weir__conn_was_short(const struct weir__conn *conn)
{
    static const int codes[] = {EMFILE, ENFILE, ENOMEM, ENOBUFS};

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (strstr(conn->lost_text, strerror(codes[i])) != NULL)
            return true;
    return false;
}

int weir__conn_send_in(struct weir__conn *conn, struct weir__sequence *sequence,
                       const struct weir__sending *sending)
{
    struct weir__command *request;
    int rc = weir__conn_make(conn, sequence, sending, &request);

    if (rc != WEIR_OK)
        return rc;
    weir__conn_book(conn, request);
    weir__request_append(&conn->waiting, request);
    weir__conn_arm_patience(conn);
    return WEIR_OK;
}

int weir__conn_send(struct weir__conn *conn, struct weir__buf *bytes,
                    const struct weir__script *script, unsigned flags,
                    weir__reply_fn fn, void *arg)
{
    const struct weir__sending sending = {bytes, script, flags, fn, arg};

    return weir__conn_send_in(conn, NULL, &sending);
}

void weir__conn_flush(struct weir__conn *conn)
{
    if (conn->state == WEIR__CONN_CLOSED)
        return;
    conn->wants_flush = true;
    if (conn->is_in_hiredis) /* whoever called it pumps afterwards */
        return;
    weir__conn_enter(conn);
    weir__conn_pump(conn);
    weir__conn_leave(conn);
}

void weir__conn_set_wait(struct weir__conn *conn, int64_t wait_ms)
{
    WEIR_ASSERT(wait_ms > 0);
    conn->options.wait_ms = wait_ms;
}

size_t weir__conn_queued(const struct weir__conn *conn)
{
    return conn->queued_bytes;
}

uint64_t weir__conn_sent(const struct weir__conn *conn)
{
    return conn->sent_total;
}
