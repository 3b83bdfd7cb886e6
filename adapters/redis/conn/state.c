/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/conn/private.h"
#include "core/assert.h"
#include "core/random.h"

enum {
    BACKOFF_MIN_MS = 50,
    BACKOFF_FIRST_MS = 100, /* upper bound of the first one */
    BACKOFF_MAX_MS = 5000,
    BACKOFF_NAMED_MS = 2000, /* and 3 s to connect: a name is looked up in 5 */
    REPLICA_MIN_MS = 100,    /* until one is asked for again that is about to */
    REPLICA_FIRST_MS = 500,  /* become a primary */
    AT_ONCE_MS = 50,  /* upper bound of the one after a stable connection */
    DENIED_MS = 5000, /* somebody has to change something; up to twice */
    LATE_MS = 250,    /* between looks at an overdue reply */
    GRACE_MS = 1000,  /* for one whose bytes are there */
    URL_TEXT_MAX = 480,
    LARGE = 32 * 1024, /* string: more than that has come of it */
    PARTS_MOST = 8     /* of one, read in a turn of the loop */
};

/* Bit n of an entry: the state may become n. */
#define TO(state) (1u << WEIR__CONN_##state)
static const unsigned transitions[WEIR__CONN_STATES] = {
    [WEIR__CONN_IDLE] = TO(LOCATING) | TO(CLOSED),
    [WEIR__CONN_LOCATING] = TO(CONNECTING) | TO(BACKOFF) | TO(CLOSED),
    [WEIR__CONN_CONNECTING] =
        TO(CONNECTING) | TO(HANDSHAKE) | TO(BACKOFF) | TO(CLOSED),
    [WEIR__CONN_HANDSHAKE] =
        TO(CONNECTING) | TO(READY) | TO(BACKOFF) | TO(CLOSED),
    [WEIR__CONN_READY] = TO(BACKOFF) | TO(CLOSED),
    [WEIR__CONN_BACKOFF] = TO(LOCATING) | TO(CLOSED),
    [WEIR__CONN_CLOSED] = 0,
};
#undef TO

void weir__conn_change_state(struct weir__conn *conn,
                             enum weir__conn_state state)
{
    WEIR_ASSERT(state < WEIR__CONN_STATES);
    WEIR_ASSERT((transitions[conn->state] >> state & 1u) != 0);
    conn->state = state;
}

void weir__conn_stop_timers(struct weir__conn *conn)
{
    ev_timer_stop(conn->options.loop, &conn->soon);
    ev_timer_stop(conn->options.loop, &conn->deadline);
    ev_timer_stop(conn->options.loop, &conn->overdue);
    ev_timer_stop(conn->options.loop, &conn->patience);
    ev_timer_stop(conn->options.loop, &conn->stale);
    ev_timer_stop(conn->options.loop, &conn->watch);
}

/* Of a node of a cluster its own, as far as it was found. */
static void print_url(const struct weir__conn *conn, char text[URL_TEXT_MAX])
{
    const struct weir__locator *locator = conn->options.locator;
    struct weir__redis_host host = {.port = conn->port};
    struct weir__redis_url own;

    if (locator == NULL || !locator->is_plain || conn->host[0] == '\0') {
        weir__redis_url_print(conn->options.url, text, URL_TEXT_MAX);
        return;
    }
    memcpy(host.name, conn->host, sizeof(host.name));
    weir__redis_url_of_server(conn->options.url, &host, &own);
    weir__redis_url_print(&own, text, URL_TEXT_MAX);
}

/* --- what hiredis calls: these only note, its context is not to be touched  */

/* After a failure the context frees itself, and nobody else tells us so. */
static void on_connect(const redisAsyncContext *context, int status)
{
    struct weir__conn *conn = weir__conn_of(context->data);

    if (status == REDIS_OK) {
        conn->is_connected = true;
        weir__conn_arm(conn, &conn->soon, 0);
        return;
    }
    conn->context = NULL;
    if (!conn->is_dropping) /* err is not set yet in 0.14, c.err is */
        weir__conn_note_lost(conn, WEIR_ECONN, "%s", context->c.errstr);
}

static void note_refusal(struct weir__conn *conn)
{
    char words[WEIR__CONN_REASON_MAX];

    weir__reply_guard_explain(&conn->guard, words, sizeof(words));
    weir__conn_note_lost(conn, WEIR_ECONN, "%s", words);
}

static void on_disconnect(const redisAsyncContext *context, int status)
{
    struct weir__conn *conn = weir__conn_of(context->data);
    char words[WEIR__CONN_REASON_MAX];

    (void)status; /* the text says more */
    conn->context = NULL;
    if (conn->is_dropping)
        return;
    conn->is_hung_up =
        context->c.err == REDIS_ERR_IO || context->c.err == REDIS_ERR_EOF;
    if (conn->guard.refusal != WEIR__REFUSAL_NONE)
        note_refusal(conn);
    else if (conn->glue.ssl != NULL &&
             weir__tls_reason(conn->glue.ssl, words, sizeof(words)))
        weir__conn_note_lost(conn, WEIR_ECONN, "%s", words);
    else if (context->c.err == REDIS_ERR_IO &&
             conn->state == WEIR__CONN_HANDSHAKE &&
             weir__socket_last_words(context->c.fd, words, sizeof(words)))
        weir__conn_note_refused(conn, words);
    else if (context->c.err == REDIS_ERR_OTHER &&
             conn->state == WEIR__CONN_HANDSHAKE)
        weir__conn_note_refused(conn, context->c.errstr);
    else if (context->c.err == REDIS_ERR_OTHER)
        weir__conn_note_lost(conn, WEIR_ESERVER, "%s", context->c.errstr);
    else
        weir__conn_note_lost(conn, WEIR_ECONN, "%s",
                             context->c.err != 0 ? context->c.errstr
                                                 : "closed");
}

/* --- connecting ----------------------------------------------------------- */

void weir__conn_adopt(struct weir__conn *conn, redisAsyncContext *context)
{
    weir__socket_prepare(context->c.fd, conn->options.url->is_unix);
    weir__reply_guard_install(&conn->guard, context->c.reader);
    conn->pushed = 0;
    conn->late_ms = 0;
    conn->context = context;
    context->data = conn;
    weir__glue_attach(&conn->glue, context);
    (void)redisAsyncSetDisconnectCallback(context, on_disconnect); /* first */
    (void)redisAsyncSetConnectCallback(context, on_connect); /* and only one */
}

/* --- the handshake -------------------------------------------------------- */

static bool secure(struct weir__conn *conn)
{
    char why[WEIR__CONN_REASON_MAX];

    if (!conn->options.url->is_tls)
        return true;
    WEIR_ASSERT(conn->options.url->tls != NULL);
    if (weir__glue_secure(&conn->glue, conn->options.url->tls, conn->host, why,
                          sizeof(why)))
        return true;
    weir__conn_note_lost(conn, WEIR_ECONN, "%s", why);
    return false;
}

static void begin_handshake(struct weir__conn *conn)
{
    if (weir__socket_is_own_peer(conn->context->c.fd)) {
        weir__conn_note_lost(conn, WEIR_ECONN,
                             "connected to itself, no server there");
        return;
    }
    weir__conn_change_state(conn, WEIR__CONN_HANDSHAKE);
    weir__conn_arm(conn, &conn->deadline, conn->options.handshake_ms);
    if (secure(conn))
        weir__conn_greet(conn);
}

static void report(struct weir__conn *conn, int code, const char *text)
{
    if (conn->options.on_state != NULL)
        conn->options.on_state(code, text, conn->options.arg);
}

/* The handshake is through. */
static void become_ready(struct weir__conn *conn)
{
    char url[URL_TEXT_MAX], text[URL_TEXT_MAX + 32];

    weir__conn_change_state(conn, WEIR__CONN_READY);
    ev_timer_stop(conn->options.loop, &conn->deadline);
    ev_timer_stop(conn->options.loop, &conn->patience);
    weir__conn_watch(conn);
    conn->ready_ms = conn->now_ms;
    conn->is_short = false;
    conn->wants_flush = true; /* what waited goes out by itself */
    print_url(conn, url);
    (void)snprintf(text, sizeof(text), "connected to %s", url); /* fits */
    weir__log(conn->options.log,
              conn->options.is_beside ? WEIR_LEVEL_DEBUG : WEIR_LEVEL_INFO,
              "redis: %s", text);
    weir__identity_compare_clocks(conn);
    weir__conn_replay_begin(conn);
    weir__conn_queue_give_up(conn);
    report(conn, WEIR_OK, text);
    weir__conn_queue_report(conn);
    weir__conn_pump(conn);
}

/* --- losing --------------------------------------------------------------- */

/* At random from `least` to `most`. */
static int64_t jitter_ms(struct weir__conn *conn, int64_t least, int64_t most)
{
    return least + (int64_t)(weir__random_next(&conn->random) %
                             (uint64_t)(most - least + 1));
}

/* Full jitter below a bound that doubles with each attempt. */
static int64_t next_backoff_ms(struct weir__conn *conn, bool was_stable)
{
    int64_t bound = conn->is_replica ? REPLICA_FIRST_MS : BACKOFF_FIRST_MS;
    int64_t most = conn->is_named ? BACKOFF_NAMED_MS : BACKOFF_MAX_MS;

    if (conn->is_abandoned)
        return 0;
    if (conn->is_denied)
        return jitter_ms(conn, DENIED_MS, 2 * DENIED_MS);
    if (was_stable)
        return jitter_ms(conn, 0, AT_ONCE_MS);
    for (unsigned i = 0; i < conn->attempts && bound < most; i++)
        bound *= 2;
    if (bound > most)
        bound = most;
    conn->attempts++;
    return jitter_ms(conn, conn->is_replica ? REPLICA_MIN_MS : BACKOFF_MIN_MS,
                     bound);
}

/* What every connection to the server is told of its login; of rights each has
 * its own. */
static bool is_login_refused(const struct weir__conn *conn)
{
    return conn->is_denied &&
           weir__error_classify(conn->lost_text) == WEIR__ERROR_NOAUTH;
}

/* Failed attempts after the first one are not worth a warning each, nor what
 * the connection beside has said as well. That the process lacks descriptors is
 * one more. */
static void log_loss(struct weir__conn *conn, bool was_ready,
                     int64_t backoff_ms)
{
    char url[URL_TEXT_MAX];
    bool is_new = !conn->is_short && weir__conn_was_short(conn);
    bool is_quiet = (conn->options.is_beside &&
                     conn->guard.refusal == WEIR__REFUSAL_NONE) ||
                    (!was_ready && conn->attempts > 1 && !is_new);
    enum weir_level level = is_quiet ? WEIR_LEVEL_DEBUG : WEIR_LEVEL_WARN;

    conn->is_short = conn->is_short || is_new;
    print_url(conn, url);
    if (conn->is_denied)
        weir__log(conn->options.log,
                  conn->options.is_beside && is_login_refused(conn)
                      ? WEIR_LEVEL_DEBUG
                      : WEIR_LEVEL_ERROR,
                  "redis: %s denies us access (%s), retry in %lld ms", url,
                  conn->lost_text, (long long)backoff_ms);
    else if (was_ready)
        weir__log(conn->options.log, level,
                  "redis: connection lost (%s), retry in %lld ms",
                  conn->lost_text, (long long)backoff_ms);
    else
        weir__log(conn->options.log, level,
                  "redis: no connection to %s (%s), retry in %lld ms", url,
                  conn->lost_text, (long long)backoff_ms);
}

/* The connection is gone, however it went. Pending callbacks run before the
 * loss is reported. */
static void lose(struct weir__conn *conn)
{
    bool was_ready = conn->state == WEIR__CONN_READY, was_stable;
    char text[WEIR__CONN_REASON_MAX];
    int code = conn->lost_code;
    int64_t backoff_ms;

    WEIR_ASSERT(code != WEIR_OK);
    if (weir__conn_try_next(conn))
        return;
    weir__conn_drop_context(conn);
    weir__conn_stop_timers(conn);
    was_stable =
        was_ready && conn->now_ms - conn->ready_ms >= conn->options.stable_ms;
    if (was_stable) {
        conn->attempts = 0;
        conn->down_ms = conn->now_ms;
    }
    backoff_ms = next_backoff_ms(conn, was_stable);
    weir__conn_change_state(conn, WEIR__CONN_BACKOFF);
    weir__conn_arm(conn, &conn->deadline, backoff_ms);
    log_loss(conn, was_ready, backoff_ms);
    (void)snprintf(text, sizeof(text), "%s", conn->lost_text); /* fits */
    conn->lost_code = WEIR_OK;
    if (was_ready && conn->is_hung_up && code == WEIR_ECONN)
        weir__conn_blame(conn);
    conn->is_hung_up = false;
    conn->is_draining = false;
    conn->is_denied = false;
    conn->is_abandoned = false;
    conn->is_replica = false;
    if (was_ready)
        weir__conn_replay_prune(conn);
    weir__conn_queue_lost(conn);
    weir__conn_arm_patience(conn);
    weir__conn_queue_report(conn);
    if (conn->state != WEIR__CONN_CLOSED)
        report(conn, code, text);
}

/* --- timers --------------------------------------------------------------- */

static void on_soon(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__conn *conn = weir__conn_of(timer->data);

    (void)loop; /* the connection's own */
    (void)events;
    weir__conn_enter(conn);
    weir__conn_look_at_clock(conn);
    if (conn->lost_code != WEIR_OK) {
        if (!conn->is_draining || conn->guard.outstanding == 0)
            lose(conn);
    } else if (conn->state == WEIR__CONN_CONNECTING && conn->is_connected) {
        begin_handshake(conn);
    } else if (conn->state == WEIR__CONN_HANDSHAKE &&
               conn->handshake_left == 0) {
        if (conn->asks_role)
            weir__conn_introduce(conn);
        else
            become_ready(conn);
    }
    weir__conn_leave(conn);
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__conn *conn = weir__conn_of(timer->data);

    (void)loop; /* the connection's own */
    (void)events;
    weir__conn_look_at_clock(conn);
    if (conn->state == WEIR__CONN_BACKOFF)
        weir__conn_connect(conn);
    else if (conn->state == WEIR__CONN_LOCATING)
        weir__conn_note_not_found(conn);
    else if (conn->state == WEIR__CONN_CONNECTING)
        weir__conn_note_lost(conn, WEIR_ECONN, "no connection within %lld ms",
                             (long long)conn->attempt_ms);
    else if (conn->state == WEIR__CONN_HANDSHAKE)
        weir__conn_note_lost(conn, WEIR_ECONN,
                             "no answer to the handshake within %lld ms",
                             (long long)conn->options.handshake_ms);
}

/* When that was begun which has to end next; -1: nothing has to. */
static int64_t begun_ms(const struct weir__conn *conn)
{
    if (conn->sent.first != NULL)
        return conn->sent.first->sent_ms;
    return conn->pushed > 0 ? conn->pushed_ms : -1;
}

/* It waits in the socket, as after a stop of this process: each read takes only
 * a portion. A peer that drips without end has no more than the grace. */
static bool is_coming(struct weir__conn *conn)
{
    bool has_come = weir__socket_is_readable(conn->context->c.fd) ||
                    (conn->late_ms != 0 && conn->reads != conn->late_reads);

    if (conn->late_ms == 0 || conn->late != conn->guard.replies)
        conn->late_ms = conn->now_ms;
    conn->late = conn->guard.replies;
    conn->late_reads = conn->reads;
    return has_come && conn->now_ms - conn->late_ms < GRACE_MS;
}

/* Runs below I/O, so what had arrived when the loop polled was read before. */
static void on_overdue(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__conn *conn = weir__conn_of(timer->data);
    int64_t left_ms, begun;

    (void)loop; /* the connection's own */
    (void)events;
    begun = begun_ms(conn);
    if (begun < 0 || conn->context == NULL)
        return;
    weir__conn_look_at_clock(conn);
    left_ms = begun + conn->options.reply_ms - conn->now_ms;
    if (left_ms > 0)
        conn->late_ms = 0;
    else if (is_coming(conn))
        left_ms = LATE_MS;
    if (left_ms > 0)
        weir__conn_arm(conn, &conn->overdue, left_ms);
    else
        weir__conn_note_lost(conn, WEIR_ECONN, "no %s within %lld ms",
                             conn->sent.first != NULL ? "reply"
                                                      : "end of a message",
                             (long long)conn->options.reply_ms);
}

/* Replies have the deadlines of their commands. What comes without one gets its
 * own with its first byte. */
static void watch_pushed(struct weir__conn *conn)
{
    uint64_t number =
        weir__reply_guard_under_way(&conn->guard, conn->context->c.reader);

    if (conn->guard.outstanding > 0)
        number = 0;
    if (number > 0 && number != conn->pushed) {
        weir__conn_look_at_clock(conn);
        conn->pushed_ms = conn->now_ms;
        if (!ev_is_active(&conn->overdue))
            weir__conn_arm(conn, &conn->overdue, conn->options.reply_ms);
    }
    conn->pushed = number;
}

static size_t unparsed(const struct weir__conn *conn)
{
    const redisReader *reader = conn->context->c.reader;

    return reader->len - reader->pos;
}

/* What hiredis reads at a time, 16 KiB. True: a large string has begun, and
 * more of it may be there. */
static bool read_part(struct weir__conn *conn)
{
    size_t before = unparsed(conn);

    conn->is_in_hiredis = true;
    weir__glue_read(&conn->glue);
    conn->is_in_hiredis = false;
    if (conn->context == NULL)
        return false;
    if (!weir__reply_guard_admits_rest(&conn->guard, conn->context->c.reader))
        note_refusal(conn);
    return conn->lost_code == WEIR_OK && conn->state != WEIR__CONN_CLOSED &&
           unparsed(conn) > before && unparsed(conn) >= LARGE;
}

static void read_replies(struct weir__conn *conn)
{
    int64_t before_ns = conn->now_ns;

    conn->reads++;
    weir__conn_look_at_clock(conn);
    conn->waited_ns = conn->now_ns - before_ns;
    for (int i = 0; i < PARTS_MOST && read_part(conn); i++)
        ;
    if (conn->context != NULL)
        watch_pushed(conn);
}

static void on_ready(bool is_writable, void *arg)
{
    struct weir__conn *conn = weir__conn_of(arg);

    if (conn->lost_code != WEIR_OK && !conn->is_draining)
        return; /* `soon` drops it; a flood must not put that off */
    weir__conn_enter(conn);
    if (is_writable)
        weir__conn_write(conn);
    else
        read_replies(conn);
    if (conn->wants_flush)
        weir__conn_pump(conn);
    weir__conn_leave(conn);
}

void weir__conn_state_init(struct weir__conn *conn)
{
    weir__conn_prepare_timer(conn, &conn->soon, on_soon);
    weir__conn_prepare_timer(conn, &conn->deadline, on_deadline);
    weir__conn_prepare_timer(conn, &conn->overdue, on_overdue);
    conn->glue.loop = conn->options.loop;
    conn->glue.on_ready = on_ready;
    conn->glue.arg = conn;
    conn->down_ms = conn->now_ms;
}
