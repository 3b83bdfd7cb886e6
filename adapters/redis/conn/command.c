/* SPDX-License-Identifier: MIT */
#include "adapters/redis/conn/command.h"

#include "adapters/redis/conn/private.h"
#include "core/assert.h"
#include "core/mem.h"

/* Commands: how one is made, ends, and leaves a connection for another one. */

enum {
    MAX_SPARES = 1024,
    CALL_NS = 64 * 1000, /* that a small call of a script takes */
    CALLS_AHEAD = 3      /* beside those that an answer's way takes */
};

/* --- making and ending ---------------------------------------------------- */

struct weir__command *weir__conn_request_new(struct weir__conn *conn)
{
    struct weir__command *request = conn->spare;

    if (request == NULL)
        return weir__mem_new(sizeof(*request));
    conn->spare = request->next;
    conn->spares--;
    *request = (struct weir__command){0};
    return request;
}

size_t weir__request_cost(const struct weir__command *request)
{
    return request->bytes.len + sizeof(*request);
}

void weir__conn_request_free(struct weir__conn *conn,
                             struct weir__command *request)
{
    weir__buf_fini(&request->bytes);
    if (conn->spares == MAX_SPARES) {
        weir__mem_free(request);
        return;
    }
    request->next = conn->spare;
    conn->spare = request;
    conn->spares++;
}

void weir__conn_book(struct weir__conn *conn,
                     const struct weir__command *request)
{
    conn->queued_bytes += weir__request_cost(request);
    conn->queued_calls += request->script != NULL;
}

static void unbook(struct weir__conn *conn, const struct weir__command *request)
{
    WEIR_ASSERT(conn->queued_bytes >= weir__request_cost(request));
    conn->queued_bytes -= weir__request_cost(request);
    WEIR_ASSERT(conn->queued_calls >= (request->script != NULL));
    conn->queued_calls -= request->script != NULL;
}

void weir__conn_finish(struct weir__conn *conn, struct weir__command *request,
                       int code, const redisReply *reply)
{
    struct weir__command *outer = conn->answered;

    if (request->is_replay) {
        weir__conn_replay_answered(conn, request, reply);
    } else {
        unbook(conn, request);
    }
    conn->answered = request;
    if (request->fn != NULL)
        request->fn(code, reply, request->arg);
    conn->answered = outer;
    if (code == WEIR_OK && (request->flags & WEIR__SEND_REPLAY) != 0 &&
        request->bytes.len > 0 && conn->state != WEIR__CONN_CLOSED)
        weir__conn_replay_keep(conn, request, reply);
    else
        weir__conn_request_free(conn, request);
}

void weir__conn_take_back(struct weir__conn *conn, struct weir__buf *ret_bytes)
{
    WEIR_ASSERT(conn->answered != NULL);
    *ret_bytes = conn->answered->bytes;
    conn->answered->bytes = (struct weir__buf){0};
}

void weir__conn_replay_instead(struct weir__conn *conn, struct weir__buf *bytes)
{
    weir__buf_append(bytes, "", 1); /* as admit() does */
    if (conn->answered == NULL || bytes->failed) {
        weir__buf_fini(bytes);
        return;
    }
    bytes->len--;
    weir__buf_fini(&conn->answered->bytes);
    conn->answered->bytes = *bytes;
    *bytes = (struct weir__buf){0};
}

void weir__conn_replay_nothing(struct weir__conn *conn)
{
    if (conn->answered != NULL && !conn->answered->may_have_run)
        weir__buf_fini(&conn->answered->bytes);
}

/* Whether the request may be queued. The bytes get the NUL behind their end
 * that hiredis looks for. */
static int admit(struct weir__conn *conn, struct weir__buf *bytes,
                 unsigned flags)
{
    size_t cost = bytes->len + sizeof(struct weir__command);

    if (conn->state == WEIR__CONN_CLOSED)
        return WEIR_ECANCELED;
    if ((flags & WEIR__SEND_HERE) != 0 && !weir__conn_is_ready(conn))
        return WEIR_ECONN;
    if (!bytes->failed &&
        (cost > conn->options.max_queued ||
         conn->queued_bytes > conn->options.max_queued - cost))
        return WEIR_EFULL;
    weir__buf_append(bytes, "", 1);
    if (bytes->failed)
        return WEIR_ENOMEM;
    bytes->len--;
    return WEIR_OK;
}

int weir__conn_make(struct weir__conn *conn, struct weir__sequence *sequence,
                    const struct weir__sending *sending,
                    struct weir__command **ret_command)
{
    struct weir__buf *bytes = sending->bytes;
    struct weir__command *request = NULL;
    int rc;

    WEIR_ASSERT(conn->channel[0] == '\0');
    WEIR_ASSERT(bytes->failed || bytes->len > 0);
    rc = admit(conn, bytes, sending->flags);
    if (rc == WEIR_OK) {
        request = weir__conn_request_new(conn);
        rc = request == NULL ? WEIR_ENOMEM : WEIR_OK;
    }
    if (rc != WEIR_OK) {
        weir__buf_fini(bytes);
        return rc;
    }
    request->bytes = *bytes;
    *bytes = (struct weir__buf){0};
    request->script = sending->script;
    request->flags = sending->flags;
    request->fn = sending->fn;
    request->arg = sending->arg;
    request->sequence = sequence;
    if (sequence != NULL)
        request->number = sequence->numbers++;
    if (conn->state != WEIR__CONN_READY)
        weir__conn_look_at_clock(conn);
    request->queued_ms = conn->now_ms;
    *ret_command = request;
    return WEIR_OK;
}

/* --- how busy the server is ----------------------------------------------- */

void weir__conn_note_answer(struct weir__conn *conn)
{
    int64_t ns = conn->now_ns - conn->alone_ns;

    if (conn->alone_ns != 0 && (conn->answer_ns == 0 || ns < conn->answer_ns))
        conn->answer_ns = ns;
    conn->alone_ns = 0;
}

bool weir__conn_is_busy(const struct weir__conn *conn)
{
    size_t ahead = CALLS_AHEAD + (size_t)(conn->answer_ns / CALL_NS);

    return weir__conn_is_ready(conn) && conn->answer_ns != 0 &&
           conn->queued_calls >= ahead;
}

int64_t weir__conn_take_work_ns(struct weir__conn *conn)
{
    int64_t ns = conn->waited_ns;

    conn->waited_ns = -1;
    if (ns < 0 || conn->answer_ns == 0)
        return -1;
    return ns < conn->answer_ns ? 0 : ns - conn->answer_ns;
}

/* --- moving --------------------------------------------------------------- */

/* Each list of a connection has the commands of a sequence by their numbers. */

void weir__conn_let_go(struct weir__conn *conn,
                       const struct weir__command *request)
{
    if (request->is_replay) {
        weir__conn_replay_leave(conn, request);
        return;
    }
    unbook(conn, request);
}

/* What is bound to the connection is no news for the sequence any more. */
static bool is_of(struct weir__command *request,
                  const struct weir__sequence *sequence)
{
    if (request->sequence != sequence)
        return false;
    if ((request->flags & WEIR__SEND_HERE) == 0)
        return true;
    request->sequence = NULL;
    return false;
}

static void take_out(struct weir__command_list *list,
                     const struct weir__sequence *sequence,
                     struct weir__command_list *ret_taken)
{
    struct weir__command_list rest = {0};
    struct weir__command *request;

    ret_taken->first = NULL;
    while ((request = weir__request_take(list)) != NULL)
        weir__request_append(is_of(request, sequence) ? ret_taken : &rest,
                             request);
    *list = rest;
}

void weir__commands_merge(struct weir__command_list *list,
                          struct weir__command_list *other)
{
    struct weir__command_list merged = {0};

    while (list->first != NULL && other->first != NULL)
        weir__request_append(
            &merged,
            weir__request_take(
                list->first->number < other->first->number ? list : other));
    weir__request_join(&merged, list);
    weir__request_join(&merged, other);
    *list = merged;
    other->first = NULL;
}

void weir__conn_withdraw(struct weir__conn *conn,
                         struct weir__sequence *sequence,
                         struct weir__command_list *ret_list)
{
    struct weir__command_list *const lists[] = {
        &conn->returned, &conn->replaying, &conn->again, &conn->waiting};

    ret_list->first = NULL;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        struct weir__command_list taken;

        take_out(lists[i], sequence, &taken);
        for (const struct weir__command *request = taken.first; request != NULL;
             request = request->next)
            weir__conn_let_go(conn, request);
        weir__commands_merge(ret_list, &taken);
    }
}

/* The time that they are kept ends with the last sign of the server: of one
 * that was lost nothing gets older. */
void weir__conn_withdraw_acked(struct weir__conn *conn,
                               struct weir__sequence *sequence,
                               struct weir__command_list *ret_list)
{
    if (conn->state == WEIR__CONN_READY)
        weir__conn_replay_prune(conn);
    take_out(&conn->acked, sequence, ret_list);
    for (const struct weir__command *request = ret_list->first; request != NULL;
         request = request->next) {
        WEIR_ASSERT(conn->replay_bytes >= weir__request_cost(request));
        conn->replay_bytes -= weir__request_cost(request);
    }
}

/* As one of this connection. */
static void count(struct weir__conn *conn, const struct weir__command *request)
{
    if (request->is_replay) {
        conn->replay_bytes += weir__request_cost(request);
        conn->replay_left++;
    } else {
        weir__conn_book(conn, request);
    }
}

static void join(struct weir__conn *conn, struct weir__command *request)
{
    count(conn, request);
    if (request->is_replay)
        request->may_have_run = true;
    weir__request_append(request->is_replay ? &conn->replaying : &conn->again,
                         request);
}

void weir__conn_give(struct weir__conn *conn, struct weir__command_list *list)
{
    struct weir__command *request;

    WEIR_ASSERT(conn->state != WEIR__CONN_CLOSED);
    while ((request = weir__request_take(list)) != NULL)
        join(conn, request);
    conn->wants_flush = true;
    weir__conn_arm_patience(conn);
}

void weir__conn_fail(struct weir__conn *conn, struct weir__command_list *list)
{
    struct weir__command_list failed = *list;
    struct weir__command *request;

    list->first = NULL;
    for (request = failed.first; request != NULL; request = request->next)
        count(conn, request);
    weir__conn_enter(conn);
    while ((request = weir__request_take(&failed)) != NULL)
        weir__conn_finish(conn, request,
                          request->may_have_run ? WEIR_EUNKNOWN : WEIR_ECONN,
                          NULL);
    weir__conn_leave(conn);
}
