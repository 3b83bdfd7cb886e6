/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

#include "adapters/redis/conn/private.h"
#include "adapters/redis/monotonic.h"
#include "adapters/redis/resp.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

enum {
    MAX_BUFFERED = 256 * 1024, /* hiredis moves the rest on a partial write */
    MAX_OUTSTANDING = 8192,    /* bounds what the server holds for us */
    MAX_NOSCRIPTS = 3          /* then something else is wrong */
};

/* --- clock and timers ----------------------------------------------------- */

struct weir__conn *weir__conn_of(void *arg)
{
    struct weir__conn *conn = arg;

    WEIR_ASSERT(conn != NULL && conn->magic == WEIR__CONN_MAGIC);
    return conn;
}

void weir__conn_look_at_clock(struct weir__conn *conn)
{
    conn->now_ns = weir__monotonic_ns();
    conn->now_ms = conn->now_ns / 1000000;
}

void weir__conn_arm(struct weir__conn *conn, ev_timer *timer, int64_t ms)
{
    struct ev_loop *loop = conn->options.loop;

    ev_now_update(loop); /* it may be as old as the turn */
    ev_timer_stop(loop, timer);
    ev_timer_set(timer, ms <= 0 ? 0. : (double)ms / 1000., 0.);
    ev_timer_start(loop, timer);
}

void weir__conn_prepare_timer(struct weir__conn *conn, ev_timer *timer,
                              void (*fn)(struct ev_loop *, ev_timer *, int))
{
    ev_init(timer, fn);
    ev_set_priority(timer, -1); /* below I/O of the same turn */
    timer->data = conn;
}

/* --- noting a loss -------------------------------------------------------- */

/* Text from a server, on one line. */
static void clean(char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ')
            *text = ' ';
}

void weir__conn_note_lost(struct weir__conn *conn, int code, const char *format,
                          ...)
{
    va_list args;

    WEIR_ASSERT(code != WEIR_OK);
    if (conn->state == WEIR__CONN_CLOSED)
        return;
    conn->is_draining = false;
    weir__conn_arm(conn, &conn->soon, 0);
    if (conn->lost_code != WEIR_OK)
        return;
    conn->lost_code = code;
    va_start(args, format);
    (void)vsnprintf(conn->lost_text, sizeof(conn->lost_text), format,
                    args); /* cut */
    va_end(args);
    clean(conn->lost_text);
}

/* A server turned us away: first take the replies under way. */
static void note_turned_away(struct weir__conn *conn, const char *text)
{
    bool is_first = conn->lost_code == WEIR_OK;
    bool goes_on = is_first || conn->is_draining;

    weir__conn_note_lost(conn, WEIR_ESERVER, "%s", text);
    conn->is_draining = goes_on;
}

/* It would not load a script. */
static void note_script_refused(struct weir__conn *conn, const char *text)
{
    if (conn->lost_code == WEIR_OK)
        conn->is_denied = weir__error_classify(text) == WEIR__ERROR_DENIED;
    note_turned_away(conn, text);
}

/* --- replies ------------------------------------------------------------- */

/* The next reply may have what its request asked for. */
static void expect_next(struct weir__conn *conn)
{
    const struct weir__command *next = conn->sent.first;

    conn->guard.most = conn->options.max_reply;
    if (next != NULL)
        conn->guard.most +=
            (size_t)(next->flags / WEIR__SEND_BODY) * WEIR_BODY_LIMIT;
}

bool weir__conn_take_reply(struct weir__conn *conn, const void *reply)
{
    if (reply == NULL)
        return false;
    if (conn->guard.outstanding == 0) { /* a message for no channel of ours */
        weir__conn_note_lost(conn, WEIR_ECONN, "unexpected message");
        return false;
    }
    conn->guard.outstanding--;
    weir__conn_note_answer(conn);
    if (conn->is_draining && conn->guard.outstanding == 0)
        weir__conn_arm(conn, &conn->soon, 0);
    return conn->state != WEIR__CONN_CLOSED;
}

/* The request did not run: it goes out again, whatever its flags. */
static void keep(struct weir__conn *conn, struct weir__command *request)
{
    weir__request_append(&conn->returned, request);
    conn->wants_flush = true;
}

/* Somebody else finds out which server it is for. What was to go by this
 * connection only goes nowhere. */
static void redirect(struct weir__conn *conn, struct weir__command *request,
                     const char *text)
{
    struct weir__sequence *sequence = request->sequence;
    bool is_bound = sequence == NULL || (request->flags & WEIR__SEND_HERE) != 0;

    if (!is_bound)
        weir__conn_let_go(conn, request);
    if (sequence != NULL)
        conn->options.on_redirect(sequence, is_bound ? NULL : request, text,
                                  conn->options.arg);
    if (is_bound)
        weir__conn_finish(conn, request, WEIR_ECONN, NULL);
}

static void take_error(struct weir__conn *conn, struct weir__command *request,
                       const redisReply *reply)
{
    if (weir__conn_take_refusal(conn, request, reply->str))
        return;
    switch (weir__error_classify(reply->str)) {
    case WEIR__ERROR_NOSCRIPT:
        if (request->script == NULL || request->noscripts == MAX_NOSCRIPTS)
            break;
        request->noscripts++;
        request->wants_script = true;
        keep(conn, request);
        return;
    case WEIR__ERROR_REFUSED:
        if (!request->is_replay)
            break;
        note_turned_away(conn, reply->str);
        keep(conn, request);
        return;
    case WEIR__ERROR_CLUSTER:
        if (conn->options.on_redirect != NULL) {
            redirect(conn, request, reply->str);
            return;
        }
        note_turned_away(conn, reply->str);
        keep(conn, request);
        return;
    case WEIR__ERROR_TURNED_AWAY:
    case WEIR__ERROR_NOAUTH:
        note_turned_away(conn, reply->str);
        keep(conn, request);
        return;
    case WEIR__ERROR_OTHER:
    case WEIR__ERROR_FULL:
    case WEIR__ERROR_DENIED:
    case WEIR__ERROR_MISTAKE:
        break;
    }
    weir__conn_finish(conn, request, WEIR_ESERVER, reply);
}

static void off_way(const struct weir__command *request)
{
    if (request->sequence == NULL)
        return;
    WEIR_ASSERT(request->sequence->on_way > 0);
    request->sequence->on_way--;
}

static void on_reply(redisAsyncContext *context, void *answer, void *arg)
{
    struct weir__conn *conn = weir__conn_of(arg);
    const redisReply *reply = answer;
    struct weir__sequence *sequence;
    struct weir__command *request;

    (void)context; /* the connection's own */
    if (!weir__conn_take_reply(conn, reply))
        return;
    request = weir__request_take(&conn->sent); /* replies are positional */
    WEIR_ASSERT(request != NULL);
    sequence = request->sequence;
    off_way(request);
    expect_next(conn);
    if (conn->sent.first == NULL && conn->replaying.first != NULL)
        conn->wants_flush = true; /* the first replay waited to go alone */
    if (reply->type == REDIS_REPLY_ERROR)
        take_error(conn, request, reply);
    else
        weir__conn_finish(conn, request, WEIR_OK, reply);
    if (sequence != NULL && sequence->is_watched && sequence->on_way == 0 &&
        conn->state != WEIR__CONN_CLOSED)
        conn->options.on_drained(sequence, conn->options.arg);
}

/* Without it the command behind it does not run, nor does any other of its. */
static void on_script(redisAsyncContext *context, void *answer, void *arg)
{
    struct weir__conn *conn = weir__conn_of(arg);
    const redisReply *reply = answer;

    (void)context; /* the connection's own */
    if (weir__conn_take_reply(conn, reply) && reply->type == REDIS_REPLY_ERROR)
        note_script_refused(conn, reply->str);
}

/* --- sending -------------------------------------------------------------- */

bool weir__conn_hand(struct weir__conn *conn, struct weir_slice bytes,
                     redisCallbackFn *fn)
{
    WEIR_ASSERT(!conn->is_in_hiredis && bytes.ptr[bytes.len] == '\0');
    if (conn->context == NULL ||
        redisAsyncFormattedCommand(conn->context, fn, conn,
                                   (const char *)bytes.ptr,
                                   bytes.len) != REDIS_OK) {
        weir__conn_note_lost(conn, WEIR_ECONN, "hiredis takes no command");
        return false;
    }
    if (conn->guard.outstanding == 0) {
        weir__conn_look_at_clock(conn);
        conn->alone_ns = conn->now_ns;
    }
    conn->guard.outstanding++;
    conn->sent_total++;
    return true;
}

static bool is_loaded(const struct weir__conn *conn,
                      const struct weir__script *script)
{
    for (size_t i = 0; i < conn->loaded_count; i++)
        if (conn->loaded[i] == script)
            return true;
    return false;
}

/* Ahead of the first command that runs it on this connection, and of one that
 * the server did not know it for. */
static bool load_script(struct weir__conn *conn,
                        const struct weir__command *request,
                        const struct weir__script **just_loaded)
{
    const struct weir__script *script = request->script;
    bool is_known = script == NULL || is_loaded(conn, script);

    if ((is_known && !request->wants_script) || script == *just_loaded)
        return true;
    if (!weir__conn_hand(conn, weir__slice_of(script->load, script->load_len),
                         on_script))
        return false;
    *just_loaded = script;
    if (!is_known && conn->loaded_count < WEIR__SCRIPTS_MAX)
        conn->loaded[conn->loaded_count++] = script;
    return true;
}

static bool has_room(const struct weir__conn *conn,
                     const struct weir__command_list *list)
{
    return list != NULL && !weir__conn_must_wait(conn, list->first) &&
           conn->context != NULL && conn->lost_code == WEIR_OK &&
           conn->guard.outstanding < MAX_OUTSTANDING &&
           weir__glue_buffered(&conn->glue) < MAX_BUFFERED;
}

/* Of those that somebody waits for, while there is no connection: the list
 * whose first request goes out next, or NULL. */
static struct weir__command_list *next_awaited(struct weir__conn *conn)
{
    if (conn->again.first != NULL)
        return &conn->again;
    return conn->waiting.first != NULL ? &conn->waiting : NULL;
}

/* A server that just took over may take no writes yet, and then some: so the
 * first replay goes alone, and what is younger than all of them waits for their
 * answers. */
static struct weir__command_list *next_list(struct weir__conn *conn)
{
    if (conn->returned.first != NULL)
        return &conn->returned;
    if (conn->replay_left == 0)
        return next_awaited(conn);
    return conn->replaying.first != NULL &&
                   (conn->takes_replays || conn->sent.first == NULL)
               ? &conn->replaying
               : NULL;
}

/* Hand over as much as bounds allow; a script that several requests miss is
 * loaded once. */
static void feed(struct weir__conn *conn)
{
    const struct weir__script *loaded = NULL;
    struct weir__command_list *list;

    for (list = next_list(conn); has_room(conn, list); list = next_list(conn)) {
        struct weir__command *request = list->first;

        if (!load_script(conn, request, &loaded))
            return;
        if (!weir__conn_hand(conn, weir__buf_slice(&request->bytes), on_reply))
            return;
        request->wants_script = false;
        request->sent_ms = conn->now_ms;
        if (!request->may_have_run)
            request->first_ms = conn->now_ms;
        (void)weir__request_take(list); /* the request, which now is sent */
        weir__request_append(&conn->sent, request);
        if (request->sequence != NULL)
            request->sequence->on_way++;
        if (conn->sent.first == request)
            expect_next(conn);
    }
}

void weir__conn_write(struct weir__conn *conn)
{
    WEIR_ASSERT(!conn->is_in_hiredis);
    if (conn->context == NULL || conn->glue.context == NULL)
        return;
    conn->is_in_hiredis = true;
    weir__glue_write(&conn->glue);
    conn->is_in_hiredis = false;
}

/* One look at the clock for all that goes out together. */
void weir__conn_pump(struct weir__conn *conn)
{
    bool may_go_on = true;

    if (conn->state != WEIR__CONN_READY)
        return;
    weir__conn_look_at_clock(conn);
    while (may_go_on) {
        feed(conn);
        if (conn->context == NULL || weir__glue_is_stuck(&conn->glue))
            break;
        if (weir__glue_buffered(&conn->glue) > 0)
            weir__conn_write(conn);
        may_go_on = has_room(conn, next_list(conn)) &&
                    !weir__glue_is_stuck(&conn->glue);
    }
    conn->wants_flush = next_list(conn) != NULL;
    if (conn->sent.first != NULL && !ev_is_active(&conn->overdue))
        weir__conn_arm(conn, &conn->overdue, conn->options.reply_ms);
}

/* --- giving up ------------------------------------------------------------ */

/* Where a request goes whose connection is lost. */
static struct weir__command_list *list_of_lost(struct weir__conn *conn,
                                               struct weir__command *request)
{
    if (request->is_too_large || weir__conn_is_hopeless(request))
        return &conn->failed;
    if (request->is_replay)
        return &conn->replaying;
    return !request->may_have_run || (request->flags & WEIR__SEND_AGAIN) != 0
               ? &conn->again
               : &conn->failed;
}

/* What was to go by this connection only. */
static void fail_bound(struct weir__conn *conn, struct weir__command_list *list)
{
    struct weir__command_list all = *list;
    struct weir__command *request;

    list->first = NULL;
    while ((request = weir__request_take(&all)) != NULL)
        weir__request_append(
            (request->flags & WEIR__SEND_HERE) != 0 ? &conn->failed : list,
            request);
}

void weir__conn_queue_lost(struct weir__conn *conn)
{
    struct weir__command_list returned = conn->returned; /* did not run */
    struct weir__command_list again = conn->again, replaying = conn->replaying;
    struct weir__command *request;

    conn->answer_ns = 0;
    if (conn->guard.refusal == WEIR__REFUSAL_TOO_LARGE &&
        conn->sent.first != NULL)
        conn->sent.first->is_too_large = true;
    conn->returned.first = NULL;
    conn->again.first = NULL;
    conn->replaying.first = NULL;
    while ((request = weir__request_take(&returned)) != NULL)
        weir__request_append(list_of_lost(conn, request), request);
    while ((request = weir__request_take(&conn->sent)) != NULL) {
        off_way(request);
        request->may_have_run = true;
        weir__request_append(list_of_lost(conn, request), request);
    }
    weir__request_join(&conn->again, &again);
    weir__request_join(&conn->replaying, &replaying);
    fail_bound(conn, &conn->again);
    fail_bound(conn, &conn->waiting);
}

static void give_up(struct weir__conn *conn, struct weir__command_list *list)
{
    struct weir__command_list kept = {0};
    struct weir__command *request;

    while ((request = weir__request_take(list)) != NULL)
        weir__request_append(request->may_have_run &&
                                     conn->now_ms - request->first_ms >
                                         conn->options.again_ms
                                 ? &conn->failed
                                 : &kept,
                             request);
    *list = kept;
}

/* Whoever recognises a repeat does so for a while only:
 * scripts/delay/add.lua. */
void weir__conn_queue_give_up(struct weir__conn *conn)
{
    give_up(conn, &conn->replaying);
    give_up(conn, &conn->again);
}

void weir__conn_queue_report(struct weir__conn *conn)
{
    while (conn->failed.first != NULL) {
        struct weir__command *request = weir__request_take(&conn->failed);
        bool is_large =
            request->is_too_large && request->flags / WEIR__SEND_BODY > 0;

        weir__conn_finish(conn, request,
                          is_large || weir__conn_is_hopeless(request)
                              ? WEIR_ETOOBIG
                              : WEIR_EUNKNOWN,
                          NULL);
    }
}

static int64_t patience_left_ms(const struct weir__conn *conn,
                                const struct weir__command *request)
{
    int64_t since_ms =
        request->queued_ms > conn->down_ms ? request->queued_ms : conn->down_ms;

    return since_ms + conn->options.wait_ms - conn->now_ms;
}

void weir__conn_arm_patience(struct weir__conn *conn)
{
    const struct weir__command_list *list = next_awaited(conn);

    if (list != NULL && conn->state != WEIR__CONN_READY &&
        !ev_is_active(&conn->patience))
        weir__conn_arm(conn, &conn->patience,
                       patience_left_ms(conn, list->first));
}

static void on_patience(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__conn *conn = weir__conn_of(timer->data);
    struct weir__command_list *list;
    struct weir__command *request;

    (void)loop; /* the connection's own */
    (void)events;
    weir__conn_enter(conn);
    weir__conn_look_at_clock(conn);
    for (list = next_awaited(conn);
         list != NULL && patience_left_ms(conn, list->first) <= 0;
         list = next_awaited(conn)) {
        request = weir__request_take(list);
        weir__conn_finish(conn, request,
                          request->may_have_run ? WEIR_EUNKNOWN : WEIR_ECONN,
                          NULL);
    }
    if (conn->state != WEIR__CONN_CLOSED)
        weir__conn_arm_patience(conn);
    weir__conn_leave(conn);
}

/* --- life ----------------------------------------------------------------- */

void weir__conn_queue_init(struct weir__conn *conn)
{
    weir__conn_prepare_timer(conn, &conn->patience, on_patience);
    weir__conn_replay_init(conn);
}

/* The lists by the age of their requests. */
void weir__conn_queue_cancel(struct weir__conn *conn)
{
    struct weir__command_list *const lists[] = {
        &conn->failed,  &conn->returned, &conn->sent,     &conn->again,
        &conn->waiting, &conn->acked,    &conn->replaying};
    const struct weir__command *request;

    WEIR_ASSERT(conn->state == WEIR__CONN_CLOSED);
    for (request = conn->sent.first; request != NULL; request = request->next)
        off_way(request);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        while (lists[i]->first != NULL)
            weir__conn_finish(conn, weir__request_take(lists[i]),
                              WEIR_ECANCELED, NULL);
}

static void queue_fini(struct weir__conn *conn)
{
    struct weir__command *request = conn->spare;

    WEIR_ASSERT(conn->waiting.first == NULL && conn->sent.first == NULL);
    while (request != NULL) {
        struct weir__command *next = request->next;

        weir__mem_free(request);
        request = next;
    }
    conn->spare = NULL;
}

void weir__conn_drop_context(struct weir__conn *conn)
{
    redisAsyncContext *context = conn->context;

    WEIR_ASSERT(!conn->is_in_hiredis);
    if (context == NULL)
        return;
    conn->is_dropping = true;
    redisAsyncFree(context); /* callbacks with NULL are ignored */
    conn->is_dropping = false;
    conn->context = NULL; /* without on_disconnect while still connecting */
}

static void destroy(struct weir__conn *conn)
{
    WEIR_ASSERT(conn->depth == 0);
    WEIR_ASSERT(conn->queued_bytes == 0 && conn->queued_calls == 0);
    WEIR_ASSERT(conn->replay_bytes == 0);
    weir__conn_drop_context(conn);
    queue_fini(conn);
    conn->magic = 0;
    weir__mem_free(conn);
}

void weir__conn_enter(struct weir__conn *conn)
{
    conn->depth++;
    if (conn->options.depth != NULL)
        (*conn->options.depth)++;
}

void weir__conn_leave(struct weir__conn *conn)
{
    WEIR_ASSERT(conn->depth > 0);
    conn->depth--;
    if (conn->options.depth != NULL)
        (*conn->options.depth)--;
    if (conn->depth == 0 && conn->state == WEIR__CONN_CLOSED)
        destroy(conn);
}
