/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/conn/private.h"
#include "core/assert.h"

/* What was acknowledged lately, so that it can be said again to a server that
 * never heard of it: a replica that took over, or one that started anew from a
 * file that lacks the last second. */

enum { KEPT_BYTES = 16 * 1024 * 1024, LOOK_MS = 1000 };

static void forget(struct weir__conn *conn, struct weir__command *request)
{
    WEIR_ASSERT(conn->replay_bytes >= weir__request_cost(request));
    conn->replay_bytes -= weir__request_cost(request);
    weir__conn_request_free(conn, request);
}

/* A larger one than all of the room pushes out all, itself at last. */
void weir__conn_replay_keep(struct weir__conn *conn,
                            struct weir__command *request,
                            const struct redisReply *reply)
{
    if (!request->is_replay)
        request->elements = reply->elements;
    if (request->is_replay &&
        conn->now_ms - request->first_ms > conn->options.again_ms / 2) {
        weir__conn_request_free(conn,
                                request); /* it was said for long enough */
        return;
    }
    request->is_replay = true;
    request->flags &= ~(unsigned)WEIR__SEND_HERE; /* it is known by now */
    request->fn = NULL;
    request->acked_ms = conn->now_ms;
    conn->replay_bytes += weir__request_cost(request);
    weir__request_append(&conn->acked, request);
    while (conn->replay_bytes > KEPT_BYTES && conn->acked.first != NULL)
        forget(conn, weir__request_take(&conn->acked));
    if (!ev_is_active(&conn->stale))
        weir__conn_arm(conn, &conn->stale, LOOK_MS);
}

static void log_replay(struct weir__conn *conn)
{
    if (conn->replayed.calls > 0)
        weir__log(conn->options.log, WEIR_LEVEL_INFO,
                  "redis: replayed %zu calls, %zu had been lost",
                  conn->replayed.calls, conn->replayed.lost);
    if (conn->replayed.refused > 0)
        weir__log(conn->options.log, WEIR_LEVEL_WARN,
                  "redis: %zu calls that had been acknowledged were not "
                  "replayed and may be lost: %s",
                  conn->replayed.refused, conn->replayed.why);
    memset(&conn->replayed, 0, sizeof(conn->replayed));
}

static void note_refused(struct weir__conn *conn, const char *why)
{
    conn->replayed.refused++;
    (void)snprintf(conn->replayed.why, sizeof(conn->replayed.why), "%s",
                   why); /* cut */
}

static void note_replayed(struct weir__conn *conn,
                          const struct weir__command *request,
                          const struct redisReply *reply)
{
    const struct weir__conn_options *options = &conn->options;
    enum weir__replayed what = WEIR__REPLAYED_HEARD;

    if (reply == NULL) {
        note_refused(conn, "the outage took too long");
        return;
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        note_refused(conn, reply->str);
        return;
    }
    if (options->judge != NULL)
        what = options->judge(request->script, reply, request->elements);
    if (what == WEIR__REPLAYED_REFUSED) {
        note_refused(conn, "the topic is full or of another kind by now, or "
                           "somebody took the ids of their jobs");
        return;
    }
    conn->replayed.calls++;
    conn->replayed.lost += what == WEIR__REPLAYED_LOST;
}

void weir__conn_replay_answered(struct weir__conn *conn,
                                const struct weir__command *request,
                                const struct redisReply *reply)
{
    WEIR_ASSERT(conn->replay_bytes >= weir__request_cost(request));
    conn->replay_bytes -= weir__request_cost(request);
    if (conn->replay_left == 0)
        return; /* it was not sent again */
    conn->replay_left--;
    conn->takes_replays = true;
    conn->wants_flush = true; /* what waited for it */
    if (request->script != NULL)
        note_replayed(conn, request, reply);
    if (conn->replay_left == 0)
        log_replay(conn);
}

void weir__conn_replay_leave(struct weir__conn *conn,
                             const struct weir__command *request)
{
    WEIR_ASSERT(conn->replay_bytes >= weir__request_cost(request));
    WEIR_ASSERT(conn->replay_left > 0);
    conn->replay_bytes -= weir__request_cost(request);
    conn->replay_left--;
    conn->wants_flush = true; /* what waited for it */
    if (conn->replay_left == 0)
        log_replay(conn);
}

void weir__conn_replay_prune(struct weir__conn *conn)
{
    const struct weir__command *oldest = conn->sent.first;
    int64_t heard_ms = oldest == NULL ? conn->now_ms : oldest->sent_ms;

    while (conn->acked.first != NULL &&
           conn->acked.first->acked_ms < heard_ms - conn->options.replay_ms)
        forget(conn, weir__request_take(&conn->acked));
}

static void on_stale(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__conn *conn = weir__conn_of(timer->data);

    (void)loop; /* the connection's own */
    (void)events;
    weir__conn_look_at_clock(conn);
    weir__conn_replay_prune(conn);
    if (conn->acked.first != NULL)
        weir__conn_arm(conn, &conn->stale, LOOK_MS);
}

/* What was on its way again when that connection was lost is younger than what
 * was answered there. */
void weir__conn_replay_begin(struct weir__conn *conn)
{
    const char *identity = conn->identity.text;
    struct weir__command_list younger = conn->replaying;
    struct weir__command *request;
    bool is_same = identity[0] != '\0' && strcmp(identity, conn->acked_by) == 0;

    memcpy(conn->acked_by, identity, sizeof(conn->acked_by));
    conn->takes_replays = false;
    if (is_same) {
        if (conn->acked.first != NULL)
            weir__conn_arm(conn, &conn->stale, LOOK_MS);
        return;
    }
    conn->replaying.first = NULL;
    while ((request = weir__request_take(&conn->acked)) != NULL) {
        request->may_have_run = true;
        conn->replay_left++;
        weir__request_append(&conn->replaying, request);
    }
    weir__request_join(&conn->replaying, &younger);
}

void weir__conn_replay_init(struct weir__conn *conn)
{
    weir__conn_prepare_timer(conn, &conn->stale, on_stale);
}
