/* SPDX-License-Identifier: MIT */
#include "adapters/redis/store/store.h"
#include "core/assert.h"
#include "core/call.h"
#include "core/chaos.h"

/* Commands and their answers. What cannot be sent is answered by a timer, since
 * no callback runs inside an op. */

void weir__redis_enter(struct weir__redis *store)
{
    if (store->options.depth != NULL)
        (*store->options.depth)++;
}

void weir__redis_leave(struct weir__redis *store)
{
    if (store->options.depth != NULL)
        (*store->options.depth)--;
}

/* What is asked for by the program ends with a callback of its own. */
static void finish(struct weir__request *request, int code,
                   const struct redisReply *reply)
{
    const struct weir__store *store = &request->store->port;
    struct weir__call call = {.what = "a request's callback"};

    weir__call_begin(store, &call);
    request->done(request, code, reply); /* frees it */
    (void)weir__call_end(store, &call);  /* has no run */
}

static void answered(int code, const struct redisReply *reply, void *arg)
{
    WEIR__STEP("answer");
    finish(arg, code, reply);
}

void weir__topic_added(const struct weir__store_topic *topic, weir_added_fn fn,
                       int code, const char *id, void *arg)
{
    const struct weir__store *store = &topic->store->port;
    struct weir__call call = {.what = "the callback of an add",
                              .topic = topic->name};

    weir__call_begin(store, &call);
    fn(code, id, arg);
    (void)weir__call_end(store, &call); /* has no run */
}

static void fail_all(struct weir__redis *store)
{
    while (store->failed != NULL) {
        struct weir__request *request = store->failed;

        store->failed = request->next;
        if (store->failed == NULL)
            store->failed_end = &store->failed;
        finish(request, request->code, NULL);
    }
}

static void on_failing(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__redis *store = timer->data;

    (void)loop; /* the store's own */
    (void)events;
    weir__redis_enter(store);
    fail_all(store);
    weir__redis_leave(store);
}

/* The turn ends with a flush. */
static void on_again(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)timer;
    (void)events;
}

void weir__redis_flush_again(struct weir__redis *store)
{
    if (!store->is_closed && !ev_is_active(&store->again)) {
        ev_timer_set(&store->again, .1, 0.);
        ev_timer_start(store->options.loop, &store->again);
    }
}

void weir__redis_fail(struct weir__request *request, int code)
{
    struct weir__redis *store = request->store;

    request->code = code;
    request->next = NULL;
    *store->failed_end = request;
    store->failed_end = &request->next;
    if (!store->is_closed && !ev_is_active(&store->failing))
        ev_timer_start(store->options.loop, &store->failing);
}

void weir__redis_send_by(struct weir__redis *store, struct weir__conn *conn,
                         struct weir__buf *bytes,
                         const struct weir__script *script, unsigned flags,
                         struct weir__request *request)
{
    int rc = WEIR_ECANCELED;

    if (request != NULL)
        request->store = store;
    if (store->is_closed)
        weir__buf_fini(bytes);
    else
        rc = weir__conn_send(conn, bytes, script, flags,
                             request == NULL ? NULL : answered, request);
    if (rc != WEIR_OK && request != NULL)
        weir__redis_fail(request, rc);
}

void weir__place_send(struct weir__place *place, struct weir__buf *bytes,
                      const struct weir__script *script, unsigned flags,
                      struct weir__request *request)
{
    struct weir__redis *store = place->store;
    int rc = WEIR_ECANCELED;

    if (request != NULL)
        request->store = store;
    if (store->is_closed)
        weir__buf_fini(bytes);
    else
        rc = weir__place_command(place, bytes, script, flags,
                                 request == NULL ? NULL : answered, request);
    if (rc != WEIR_OK && request != NULL)
        weir__redis_fail(request, rc);
}

/* Whether the server had not heard of it. */
static bool was_lost(const struct weir__script *script,
                     const struct redisReply *reply)
{
    struct weir_slice word;
    int64_t number;

    if (script ==
        &weir__script_bounded_settle) /* begins with who was refused */
        return !weir__reply_int(reply, 0, &number);
    if (script == &weir__script_bounded_add) /* a repeat ends with a word */
        return !weir__reply_str(reply, reply->elements - 1, &word);
    if (script == &weir__script_delay_slot) /* what it found, or a lone word */
        return weir__reply_int(reply, 1, &number);
    return weir__reply_int(reply, 0, &number) && number > 0;
}

/* A later call of its call slot was acknowledged, too, and is there. */
static bool is_late(const struct redisReply *reply)
{
    int64_t number;

    return (weir__reply_int(reply, 0, &number) && number == WEIR__NOT_STORED) ||
           (weir__reply_int(reply, 2, &number) && number == WEIR__NOT_STORED);
}

/* Pairs, or three elements each, tell of jobs that were not added: to a repeat
 * the same ones. */
static bool is_refused(const struct weir__script *script,
                       const struct redisReply *reply, size_t elements)
{
    bool is_add = script == &weir__script_delay_add ||
                  script == &weir__script_delay_add_one;
    bool has_keys = script == &weir__script_delay_add_keyed;
    int64_t number;

    if (!is_add && !has_keys && script != &weir__script_bounded_add)
        return false;
    return (weir__reply_int(reply, 0, &number) && number < 0) ||
           (is_add && (reply->elements + 1) / 2 > (elements + 1) / 2) ||
           (has_keys && (reply->elements + 2) / 3 > (elements + 2) / 3);
}

enum weir__replayed weir__redis_judge(const struct weir__script *script,
                                      const struct redisReply *reply,
                                      size_t elements)
{
    if (is_late(reply))
        return WEIR__REPLAYED_HEARD;
    if (is_refused(script, reply, elements))
        return WEIR__REPLAYED_REFUSED;
    return was_lost(script, reply) ? WEIR__REPLAYED_LOST : WEIR__REPLAYED_HEARD;
}

void weir__redis_requests_init(struct weir__redis *store)
{
    store->failed_end = &store->failed;
    ev_timer_init(&store->failing, on_failing, 0., 0.);
    store->failing.data = store;
    ev_timer_init(&store->again, on_again, 0., 0.);
}

void weir__redis_requests_fini(struct weir__redis *store)
{
    ev_timer_stop(store->options.loop, &store->failing);
    ev_timer_stop(store->options.loop, &store->again);
    fail_all(store);
}
