/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/conn/private.h"
#include "core/assert.h"

/* From nothing to a socket: who knows where the server is names a host, the
 * resolver its addresses, and these are tried in turn. And from a name whose
 * address changes to the new one, also while the old one still answers: a
 * server that is not the primary any more may take writes for long. */

enum {
    FOLLOW_SHARE = 3,  /* so much more often others look at who leads */
    ROTATE_MS = 60000, /* a name that comes back so soon has several addresses,
                          and tells some of them each time */
};

/* --- connecting ----------------------------------------------------------- */

static redisAsyncContext *open_context(struct weir__conn *conn)
{
    size_t i = conn->tried;

    if (conn->options.url->is_unix)
        return redisAsyncConnectUnix(conn->host);
    WEIR_ASSERT(i < conn->addresses.count);
    return redisAsyncConnect(conn->addresses.text[i], conn->port);
}

/* What time there is, the addresses that are left share. */
static void arm_attempt(struct weir__conn *conn)
{
    size_t left =
        conn->options.url->is_unix ? 1 : conn->addresses.count - conn->tried;

    weir__conn_look_at_clock(conn);
    conn->attempt_ms = (conn->connect_by_ms - conn->now_ms) / (int64_t)left;
    weir__conn_arm(conn, &conn->deadline, conn->attempt_ms);
}

/* The address after those that were tried. */
static void try_address(struct weir__conn *conn)
{
    redisAsyncContext *context;

    weir__conn_change_state(conn, WEIR__CONN_CONNECTING);
    conn->is_connected = false;
    arm_attempt(conn);
    context = open_context(conn);
    conn->tried++;
    if (context == NULL) {
        weir__conn_note_lost(conn, WEIR_ENOMEM, "out of memory");
        return;
    }
    if (context->c.err != 0) { /* no callback will come, fd may be -1 */
        weir__conn_note_lost(conn, WEIR_ECONN, "%s", context->c.errstr);
        redisAsyncFree(context);
        return;
    }
    weir__conn_adopt(conn, context);
}

static void begin_trying(struct weir__conn *conn)
{
    weir__conn_look_at_clock(conn);
    conn->connect_by_ms = conn->now_ms + conn->options.connect_ms;
}

static void try_first(struct weir__conn *conn)
{
    begin_trying(conn);
    conn->is_resolved = false; /* the next attempt looks again */
    conn->tried = 0;
    conn->reasons[0] = '\0';
    try_address(conn);
}

/* Each address of a name has its own. */
static void add_reason(struct weir__conn *conn)
{
    size_t used = strlen(conn->reasons);

    (void)snprintf(conn->reasons + used, sizeof(conn->reasons) - used,
                   "%s%s: %s", used > 0 ? "; " : "",
                   conn->addresses.text[conn->tried - 1],
                   conn->lost_text); /* cut */
}

static bool is_trying_name(const struct weir__conn *conn)
{
    return !conn->options.url->is_unix && !conn->is_abandoned &&
           conn->lost_code == WEIR_ECONN &&
           (conn->state == WEIR__CONN_CONNECTING ||
            conn->state == WEIR__CONN_HANDSHAKE) &&
           strcmp(conn->host, conn->addresses.text[conn->tried - 1]) != 0;
}

bool weir__conn_try_next(struct weir__conn *conn)
{
    if (!is_trying_name(conn))
        return false;
    add_reason(conn);
    if (conn->tried == conn->addresses.count) {
        memcpy(conn->lost_text, conn->reasons, sizeof(conn->lost_text));
        return false;
    }
    if (conn->state == WEIR__CONN_HANDSHAKE)
        begin_trying(conn);
    weir__conn_drop_context(conn);
    weir__conn_stop_timers(conn);
    conn->lost_code = WEIR_OK;
    conn->is_draining = false;
    weir__conn_arm_patience(conn);
    try_address(conn);
    return true;
}

/* --- finding -------------------------------------------------------------- */

static const char *address_of(const struct weir__conn *conn)
{
    return conn->addresses.text[conn->tried - 1];
}

static bool has(const struct weir__addresses *addresses, const char *text)
{
    for (size_t i = 0; i < addresses->count; i++)
        if (strcmp(addresses->text[i], text) == 0)
            return true;
    return false;
}

static void follow(struct weir__conn *conn, const char *address)
{
    char why[WEIR__CONN_REASON_MAX];

    (void)snprintf(why, sizeof(why), "host %.100s is at %s now", conn->host,
                   address); /* fits */
    weir__conn_abandon(conn, why);
}

/* What the name says while the connection stands. */
static void compare(struct weir__conn *conn,
                    const struct weir__addresses *addresses)
{
    weir__conn_look_at_clock(conn);
    if (conn->lost_code != WEIR_OK || has(addresses, address_of(conn)))
        return;
    if (has(addresses, conn->left) && conn->now_ms - conn->left_ms < ROTATE_MS)
        conn->is_rotating = true;
    if (conn->is_rotating)
        return;
    (void)snprintf(conn->left, sizeof(conn->left), "%s", address_of(conn));
    conn->left_ms = conn->now_ms;
    follow(conn, addresses->text[0]);
}

static void on_lookup(const struct weir__addresses *addresses, const char *why,
                      void *arg)
{
    struct weir__conn *conn = weir__conn_of(arg);

    conn->lookup = NULL;
    if (conn->state == WEIR__CONN_READY) {
        if (why == NULL)
            compare(conn, addresses);
        return;
    }
    conn->addresses = *addresses;
    conn->is_resolved = why == NULL;
    if (conn->state != WEIR__CONN_LOCATING || conn->lost_code != WEIR_OK)
        return; /* too late for this attempt, but not for the next one */
    if (why != NULL)
        weir__conn_note_lost(conn, WEIR_ECONN, "no address for host %s: %s",
                             conn->host, why);
    else
        try_first(conn);
}

/* A lookup that took too long for the attempt before goes on for this one:
 * there is one thread for a connection, however slow the resolver is. */
void weir__conn_located(struct weir__conn *conn, const char *host,
                        uint16_t port)
{
    const struct weir__locator *locator = conn->options.locator;
    bool is_same = strcmp(conn->host, host) == 0;

    WEIR_ASSERT(conn->state == WEIR__CONN_LOCATING);
    WEIR_ASSERT(strlen(host) < sizeof(conn->host));
    conn->is_finding = false;
    conn->is_named = (locator == NULL || locator->is_plain) &&
                     !conn->options.url->is_unix && weir__host_is_name(host);
    weir__conn_arm(conn, &conn->deadline, conn->options.connect_ms);
    conn->port = port;
    if (!is_same) {
        weir__lookup_cancel(conn->lookup);
        conn->lookup = NULL;
        conn->is_resolved = false;
        (void)snprintf(conn->host, sizeof(conn->host), "%s", host);
    }
    if (conn->lost_code != WEIR_OK || conn->lookup != NULL)
        return;
    if (conn->options.url->is_unix || conn->is_resolved ||
        weir__addresses_known(host, &conn->addresses)) {
        try_first(conn);
        return;
    }
    conn->lookup =
        weir__lookup_start(conn->options.loop, host, on_lookup, conn);
    if (conn->lookup == NULL)
        weir__conn_note_lost(conn, WEIR_ENOMEM, "no memory to look up host %s",
                             host);
}

void weir__conn_not_located(struct weir__conn *conn, int code, const char *why)
{
    WEIR_ASSERT(conn->state == WEIR__CONN_LOCATING && conn->is_finding);
    conn->is_finding = false;
    weir__conn_note_lost(conn, code, "%s", why);
}

void weir__conn_connect(struct weir__conn *conn)
{
    const struct weir__locator *locator = conn->options.locator;
    const struct weir__redis_host *host = conn->options.host;

    WEIR_ASSERT(conn->context == NULL && conn->sent.first == NULL);
    weir__conn_change_state(conn, WEIR__CONN_LOCATING);
    if (locator == NULL) {
        weir__conn_located(conn, host->name, host->port);
        return;
    }
    conn->is_finding = true;
    locator->find(locator->arg, conn);
}

void weir__conn_note_not_found(struct weir__conn *conn)
{
    weir__conn_note_lost(conn, WEIR_ECONN,
                         "no address for host %s within %lld ms", conn->host,
                         (long long)conn->options.connect_ms);
}

void weir__conn_abandon(struct weir__conn *conn, const char *why)
{
    conn->attempts = 0;
    if (conn->state == WEIR__CONN_CLOSED || conn->is_finding)
        return; /* what is found is new */
    conn->is_resolved = false;
    if (conn->state == WEIR__CONN_BACKOFF) {
        weir__conn_arm(conn, &conn->deadline, 0);
        return;
    }
    conn->is_abandoned = true;
    weir__conn_note_lost(conn, WEIR_ECONN, "%s", why);
}

/* --- following a name ----------------------------------------------------- */

static void watch(struct weir__conn *conn)
{
    const struct weir__conn *lead = conn->options.lead;

    if (lead == NULL && conn->lookup == NULL)
        conn->lookup = weir__lookup_start(conn->options.loop, conn->host,
                                          on_lookup, conn); /* or next time */
    else if (lead != NULL && weir__conn_is_ready(lead) &&
             strcmp(address_of(lead), address_of(conn)) != 0)
        follow(conn, address_of(lead));
}

static void on_watch(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__conn *conn = weir__conn_of(timer->data);

    (void)loop; /* the connection's own */
    (void)events;
    if (!weir__conn_is_ready(conn))
        return;
    watch(conn);
    weir__conn_watch(conn);
}

void weir__conn_watch(struct weir__conn *conn)
{
    if (!conn->is_named)
        return;
    weir__conn_arm(conn, &conn->watch,
                   conn->options.lead == NULL
                       ? conn->options.watch_ms
                       : conn->options.watch_ms / FOLLOW_SHARE);
}

void weir__conn_locate_init(struct weir__conn *conn)
{
    weir__conn_prepare_timer(conn, &conn->watch, on_watch);
}
