/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/msgpack/record.h"
#include "adapters/redis/classic/private.h"
#include "core/mem.h"
#include "core/text.h"

/* Appending messages: what is added to a topic in one turn travels together. */

enum { PUSH_JOBS = 500, PUSH_BYTES = 1 << 20, MADE_ROOM = 64 };

struct pushed {
    weir_added_fn fn;
    void *arg;
    char id[WEIR_MAX_ID + 1]; /* "": none was given */
};

/* One call of fifo_push, on its way or being collected. */
struct weir__classic_push {
    struct weir__request request; /* first */
    struct weir__classic_topic *topic;
    struct weir__buf args; /* id, record, size of the body, of each */
    struct weir__buf record;
    size_t count;
    struct pushed jobs[PUSH_JOBS];
};

static void push_free(struct weir__classic_push *push)
{
    weir__buf_fini(&push->args);
    weir__buf_fini(&push->record);
    weir__mem_free(push);
}

/* --- answers -------------------------------------------------------------- */

static void answer(const struct weir__classic_push *push,
                   const struct pushed *job, int code, const char *id)
{
    if (job->fn != NULL)
        weir__topic_added(&push->topic->base, job->fn, code,
                          code == WEIR_OK || job->id[0] != '\0' ? id : "",
                          job->arg);
}

/* An id that the script made is a short one. */
static void answer_id(const struct weir__classic_push *push, struct pushed *job,
                      struct weir_slice id)
{
    if (job->id[0] == '\0' && id.len < MADE_ROOM &&
        weir__id_check_any(id, NULL) == WEIR_OK)
        memcpy(job->id, id.ptr, id.len); /* zeroed behind it */
    answer(push, job, job->id[0] != '\0' ? WEIR_OK : WEIR_ESERVER, job->id);
}

static void fail(struct weir__classic_push *push, int code)
{
    for (size_t i = 0; i < push->count; i++)
        answer(push, &push->jobs[i], code, push->jobs[i].id);
    push_free(push);
}

static int refusal(const struct redisReply *reply, size_t index)
{
    int64_t why;

    if (!weir__reply_int(reply, index, &why))
        return WEIR_ESERVER;
    return why == 1 ? WEIR_ETOOBIG : WEIR_EFULL;
}

static void on_pushed(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct weir__classic_push *push =
        (struct weir__classic_push *)request; /* first */
    int64_t rc;

    weir__topic_log_error(&push->topic->base, "add", code, reply);
    if (code == WEIR_OK && !weir__reply_int(reply, 0, &rc))
        code = WEIR_ESERVER;
    if (code == WEIR_OK && rc < 0)
        code = WEIR_EKIND;
    if (code != WEIR_OK) {
        fail(push, code);
        return;
    }
    for (size_t i = 0; i < push->count; i++) {
        struct pushed *job = &push->jobs[i];
        struct weir_slice id;

        if (weir__reply_str(reply, i + 1, &id))
            answer_id(push, job, id);
        else
            answer(push, job, refusal(reply, i + 1), job->id);
    }
    push_free(push);
}

void weir__classic_fail_adds(struct weir__store_topic *base, int code)
{
    struct weir__classic_topic *topic = weir__classic_topic_of(base);
    struct weir__classic_push *push = topic->push;

    topic->push = NULL;
    if (push != NULL)
        fail(push, code);
}

/* --- sending -------------------------------------------------------------- */

void weir__classic_flush_adds(struct weir__classic_topic *topic)
{
    struct weir__classic_push *push = topic->push;
    struct weir__buf bytes = {0};

    if (push == NULL || !weir__topic_register(&topic->base))
        return;
    topic->push = NULL;
    weir__resp_eval(&bytes, &weir__script_classic_push, 5, 3 + 3 * push->count);
    weir__prefix_keys(&bytes, &topic->base.prefix,
                      "fifo ids meta options idle");
    weir__resp_str(&bytes, topic->base.name);
    weir__resp_str(&bytes, topic->base.kind->name);
    weir__resp_int(&bytes, weir__classic_delay_ms(topic));
    weir__buf_append(&bytes, push->args.ptr, push->args.len);
    push->request.done = on_pushed;
    weir__place_send(topic->base.place, &bytes, &weir__script_classic_push,
                     WEIR__SEND_ONCE, &push->request);
}

static struct weir__classic_push *collecting(struct weir__classic_topic *topic)
{
    if (topic->push != NULL && (topic->push->count == PUSH_JOBS ||
                                topic->push->args.len >= PUSH_BYTES))
        weir__classic_flush_adds(topic);
    if (topic->push == NULL)
        topic->push = weir__mem_new(sizeof(*topic->push));
    if (topic->push != NULL)
        topic->push->topic = topic;
    return topic->push;
}

int weir__classic_add(struct weir__store_topic *base,
                      const struct weir__new_job *job, weir_added_fn fn,
                      void *arg)
{
    struct weir__classic_topic *topic = weir__classic_topic_of(base);
    struct weir__classic_push *push;
    size_t before;

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
    weir__topic_mark(&topic->base);
    return WEIR_OK;
}
