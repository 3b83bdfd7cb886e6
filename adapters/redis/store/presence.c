/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/msgpack/worker.h"
#include "adapters/redis/conn/error.h"
#include "adapters/redis/store/store.h"
#include "core/mem.h"
#include "core/text.h"

/* Seconds. Those that start together, or come back together from an outage, do
 * not beat together. */
#define BEAT_S  5.
#define FIRST_S 1.

/* In the slot of the list of topics, so that no other node need be there. */
static void put_key(struct weir__buf *buf, const struct weir__redis *store)
{
    const char *prefix = store->url.prefix;
    char key[2 * WEIR__KEY_MAX];

    (void)snprintf(key, sizeof(key), "%s:{%s:topics}:workers", prefix,
                   prefix); /* fits */
    weir__resp_str(buf, key);
}

/* --- telling -------------------------------------------------------------- */

/* Once, until it is taken again. What ends by itself is not worth a line: a
 * server that is full, or takes no writes now. */
static void note_refusal(struct weir__presence *presence,
                         const struct redisReply *reply)
{
    const struct weir__redis *store = presence->request.store;
    enum weir__error_class what = weir__error_classify(reply->str);

    if (presence->is_refused || what == WEIR__ERROR_FULL ||
        what == WEIR__ERROR_REFUSED)
        return;
    presence->is_refused = true;
    weir__log(store->options.log, WEIR_LEVEL_WARN,
              "redis: weir workers will not show this worker: %s",
              weir__error_core(reply->str));
}

static void on_beaten(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct weir__presence *presence =
        (struct weir__presence *)request; /* its first member */

    presence->is_asked = false;
    if (code == WEIR_OK)
        presence->is_refused = false;
    else if (reply != NULL && reply->type == REDIS_REPLY_ERROR)
        note_refusal(presence, reply);
}

static void forget(struct weir__redis *store)
{
    struct weir__buf bytes = {0};

    if (!store->presence.has_beaten)
        return;
    store->presence.has_beaten = false;
    weir__resp_command(&bytes, 3);
    weir__resp_str(&bytes, "HDEL");
    put_key(&bytes, store);
    weir__resp_str(&bytes, store->presence.worker);
    weir__place_send(store->topics_place, &bytes, NULL, WEIR__SEND_ONCE, NULL);
    weir__place_flush(store->topics_place);
}

static void send_beat(struct weir__redis *store, struct weir_worker *worker)
{
    struct weir__presence *presence = &store->presence;
    struct weir__buf bytes = {0}, told = {0};

    if (presence->since_ms == 0)
        presence->since_ms = store->topics_place->server->ahead_ms +
                             presence->opened_ns / 1000000;
    worker->since_ms = presence->since_ms;
    weir__worker_write(&told, worker);
    weir__resp_eval(&bytes, &weir__script_store_beat, 1, 2);
    put_key(&bytes, store);
    weir__resp_str(&bytes, presence->worker);
    weir__resp_bytes(&bytes, weir__buf_slice(&told));
    bytes.failed = bytes.failed || told.failed;
    weir__buf_fini(&told);
    presence->is_asked = presence->has_beaten = true;
    presence->request.done = on_beaten;
    weir__place_send(store->topics_place, &bytes, &weir__script_store_beat,
                     WEIR__SEND_ONCE, &presence->request);
    weir__place_flush(store->topics_place);
}

static void on_beat(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__redis *store = timer->data;
    const struct weir__store_events *owner = &store->events;
    struct weir_worker worker = {0};

    (void)events;
    if (owner->describe == NULL ||
        !owner->describe(&worker, store->options.arg)) {
        ev_timer_stop(loop, timer);
        forget(store);
        return;
    }
    if (store->presence.is_asked || !weir__place_is_up(store->topics_place))
        return;
    send_beat(store, &worker);
    weir__policy_ask(store);
}

/* --- life ----------------------------------------------------------------- */

void weir__presence_init(struct weir__redis *store)
{
    struct weir__presence *presence = &store->presence;
    double share = (double)(store->options.seed >> 40) / (1 << 24);

    presence->opened_ns = weir__redis_now_ns(store);
    (void)snprintf(presence->worker, sizeof(presence->worker), "%s %016" PRIx64,
                   store->worker, store->options.seed); /* fits */
    ev_timer_init(&presence->beat, on_beat, FIRST_S * (1. + share), BEAT_S);
    presence->beat.data = store;
}

void weir__presence_begin(struct weir__redis *store)
{
    ev_timer_start(store->options.loop, &store->presence.beat);
}

void weir__presence_leave(struct weir__redis *store)
{
    ev_timer_stop(store->options.loop, &store->presence.beat);
    forget(store);
}

/* --- who is there --------------------------------------------------------- */

struct question {
    struct weir__request request; /* first */
    weir_workers_fn fn;
    void *arg;
};

enum { FIELDS = 3 }; /* worker, when, what it told */

struct answer {
    struct weir_slice field, told;
    int64_t seen_ms;
};

static int by_name(const void *left, const void *right)
{
    const struct answer *one = left, *other = right;
    size_t len =
        one->field.len < other->field.len ? one->field.len : other->field.len;
    int order = memcmp(one->field.ptr, other->field.ptr, len);

    return order != 0 ? order
                      : (one->field.len > other->field.len) -
                            (one->field.len < other->field.len);
}

/* `worker` is the memory of one after the other. */
static int tell(const struct answer *answer, const struct question *question,
                struct weir__worker *worker)
{
    int rc = weir__worker_read(answer->told, worker);

    if (rc != WEIR_OK) /* malformed: no worker told that */
        return rc == WEIR_EMALFORMED ? WEIR_OK : rc;
    worker->told.seen_ms = answer->seen_ms;
    question->fn(WEIR_OK, &worker->told, question->arg);
    return WEIR_OK;
}

static int tell_all(const struct redisReply *reply,
                    const struct question *question)
{
    size_t count = (size_t)reply->elements / FIELDS, known = 0;
    struct weir__worker worker = {0};
    struct answer *answers;
    int rc = WEIR_OK;

    if (reply->type != REDIS_REPLY_ARRAY)
        return WEIR_ESERVER;
    answers = weir__mem_grow(NULL, count + 1, sizeof(answers[0]));
    if (answers == NULL)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < count; i++)
        if (weir__reply_str(reply, FIELDS * i, &answers[known].field) &&
            weir__reply_int(reply, FIELDS * i + 1, &answers[known].seen_ms) &&
            weir__reply_str(reply, FIELDS * i + 2, &answers[known].told))
            known++;
    if (known > 1)
        qsort(answers, known, sizeof(answers[0]), by_name);
    for (size_t i = 0; i < known && rc == WEIR_OK; i++)
        rc = tell(&answers[i], question, &worker);
    weir__worker_fini(&worker);
    weir__mem_free(answers);
    return rc;
}

static void on_workers(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct question *question = (struct question *)request; /* first */

    if (code == WEIR_OK)
        code = tell_all(reply, question);
    else if (reply != NULL && reply->type == REDIS_REPLY_ERROR)
        weir__log(request->store->options.log, WEIR_LEVEL_WARN,
                  "redis: workers: %s", weir__error_core(reply->str));
    question->fn(code, NULL, question->arg);
    weir__mem_free(question);
}

int weir__redis_workers(struct weir__store *port, weir_workers_fn fn, void *arg)
{
    struct weir__redis *store = (struct weir__redis *)port; /* first member */
    struct question *question;
    struct weir__buf bytes = {0};

    if (store->is_closed)
        return WEIR_ECANCELED;
    question = weir__mem_new(sizeof(*question));
    if (question == NULL)
        return WEIR_ENOMEM;
    question->request.done = on_workers;
    question->fn = fn;
    question->arg = arg;
    weir__resp_eval(&bytes, &weir__script_store_workers, 1, 0);
    put_key(&bytes, store);
    weir__place_send(store->topics_place, &bytes, &weir__script_store_workers,
                     WEIR__SEND_AGAIN, &question->request);
    weir__place_flush(store->topics_place);
    return WEIR_OK;
}
