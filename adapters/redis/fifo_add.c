/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/msgpack/record.h"
#include "adapters/redis/fifo_private.h"
#include "core/mem.h"
#include "core/text.h"

/* Appending messages: what is added to a topic in one turn travels together. */

enum { PUSH_JOBS = 500, PUSH_BYTES = 1 << 20 };

struct pushed {
    weir_added_fn fn;
    void *arg;
    char id[WEIR_MAX_ID + 1]; /* "": none was given */
};

/* One call of fifo_push, on its way or being collected. */
struct weir__fifo_push {
    struct weir__store_topic *topic;
    struct weir__fifo_push *next; /* could not be sent */
    int code;
    struct weir__buf args; /* id, record, size of the body, of each */
    struct weir__buf record;
    size_t count;
    struct pushed jobs[PUSH_JOBS];
};

static void push_free(struct weir__fifo_push *push)
{
    weir__buf_fini(&push->args);
    weir__buf_fini(&push->record);
    weir__mem_free(push);
}

/* --- answers -------------------------------------------------------------- */

static void answer(const struct pushed *job, int code, const char *id)
{
    if (job->fn != NULL)
        job->fn(code, code == WEIR_OK || job->id[0] != '\0' ? id : "",
                job->arg);
}

static void fail(struct weir__fifo_push *push, int code)
{
    for (size_t i = 0; i < push->count; i++)
        answer(&push->jobs[i], code, push->jobs[i].id);
    push_free(push);
}

static int refusal(const struct redisReply *reply, size_t index)
{
    int64_t why;

    if (!weir__reply_int(reply, index, &why))
        return WEIR_ESERVER;
    return why == 1 ? WEIR_ETOOBIG : WEIR_EFULL;
}

static void on_pushed(int code, const struct redisReply *reply, void *arg)
{
    struct weir__fifo_push *push = arg;
    int64_t rc;

    weir__fifo_log(push->topic, "add", code, reply);
    if (code == WEIR_OK && !weir__reply_int(reply, 0, &rc))
        code = WEIR_ESERVER;
    if (code == WEIR_OK && rc < 0)
        code = WEIR_EKIND;
    if (code != WEIR_OK) {
        fail(push, code);
        return;
    }
    for (size_t i = 0; i < push->count; i++) {
        struct weir_slice id;

        if (weir__reply_str(reply, i + 1, &id))
            answer(&push->jobs[i], WEIR_OK, (const char *)id.ptr);
        else
            answer(&push->jobs[i], refusal(reply, i + 1), push->jobs[i].id);
    }
    push_free(push);
}

void weir__fifo_fail_adds(struct weir__fifo *store, int code)
{
    while (store->failed != NULL) {
        struct weir__fifo_push *push = store->failed;

        store->failed = push->next;
        fail(push, code == WEIR_OK ? push->code : code);
    }
    for (struct weir__store_topic *topic = store->topics;
         topic != NULL && code != WEIR_OK; topic = topic->next) {
        struct weir__fifo_push *push = topic->push;

        topic->push = NULL;
        if (push != NULL)
            fail(push, code);
    }
}

void weir__fifo_on_failing(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__fifo *store = timer->data;

    (void)loop; /* the store's own */
    (void)events;
    weir__fifo_depth(store, 1);
    weir__fifo_fail_adds(store, WEIR_OK);
    weir__fifo_depth(store, -1);
}

/* --- sending -------------------------------------------------------------- */

void weir__fifo_flush_adds(struct weir__store_topic *topic)
{
    struct weir__fifo *store = topic->store;
    struct weir__fifo_push *push = topic->push;
    struct weir__buf bytes = {0};

    if (push == NULL)
        return;
    topic->push = NULL;
    weir__fifo_announce(topic);
    weir__resp_eval(&bytes, &weir__script_fifo_push, 5, 3 + 3 * push->count);
    weir__fifo_keys(&bytes, topic, "fifo ids meta options idle");
    weir__resp_str(&bytes, topic->name);
    weir__resp_str(&bytes, store->policy->kind);
    weir__resp_int(&bytes, topic->own.delay_ms);
    weir__buf_append(&bytes, push->args.ptr, push->args.len);
    push->code =
        weir__conn_send(store->commands, &bytes, &weir__script_fifo_push,
                        WEIR__SEND_ONCE, on_pushed, push);
    if (push->code == WEIR_OK)
        return;
    push->next = store->failed;
    store->failed = push;
    if (!ev_is_active(&store->failing))
        ev_timer_start(store->options.loop, &store->failing);
}

static struct weir__fifo_push *collecting(struct weir__store_topic *topic)
{
    if (topic->push != NULL && (topic->push->count == PUSH_JOBS ||
                                topic->push->args.len >= PUSH_BYTES))
        weir__fifo_flush_adds(topic);
    if (topic->push == NULL)
        topic->push = weir__mem_new(sizeof(*topic->push));
    if (topic->push != NULL)
        topic->push->topic = topic;
    return topic->push;
}

int weir__fifo_add(struct weir__store_topic *topic,
                   const struct weir__new_job *job, weir_added_fn fn, void *arg)
{
    struct weir__fifo_push *push;
    size_t before;

    if (topic->store->is_closed)
        return WEIR_ECANCELED;
    push = collecting(topic);
    if (push == NULL)
        return WEIR_ENOMEM;
    before = push->args.len;
    weir__buf_reset(&push->record);
    weir__record_write(&push->record, job->record);
    weir__resp_bytes(&push->args, job->id);
    weir__resp_bytes(&push->args, weir__buf_slice(&push->record));
    weir__resp_int(&push->args, (int64_t)job->record->body.len);
    if (push->record.failed || push->args.failed) {
        push->args.failed = false;
        push->args.len = before;
        return WEIR_ENOMEM;
    }
    push->jobs[push->count].fn = fn;
    push->jobs[push->count].arg = arg;
    memcpy(push->jobs[push->count].id,
           job->id.ptr == NULL ? (const uint8_t *)"" : job->id.ptr,
           job->id.len);
    push->count++;
    return WEIR_OK;
}
