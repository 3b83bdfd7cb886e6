/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>

#include "adapters/msgpack/record.h"
#include "adapters/redis/delay/private.h"
#include "core/mem.h"
#include "core/text.h"

/* Dead jobs become ready again: one, or all of them a page at a time. The
 * records of a page are written anew as packs and staged; the requeue script
 * puts them in the place of those that are still dead. */

struct requeue {
    struct weir__pages pages; /* first; what dies from now on stays */
    weir_count_fn fn;
    void *arg;
    bool is_one;
    uint64_t count; /* requeued so far */
    size_t out;     /* calls not answered yet */
    int code;
    struct weir__items items; /* those to requeue; `slot`: of the page */
};

/* One call of the script. */
struct requeue_call {
    struct weir__request request;
    struct requeue *requeue;
    struct weir__planned_pack planned;
    bool is_second; /* under another name */
};

static void finish(struct weir__pages *pages, int code)
{
    struct requeue *requeue = (struct requeue *)pages; /* its first member */

    if (requeue->is_one && code == WEIR_OK && requeue->count == 0)
        code = WEIR_ENOTFOUND;
    requeue->fn(code, requeue->count, requeue->arg);
    weir__items_fini(&requeue->items);
    weir__pages_fini(pages);
    weir__mem_free(requeue);
}

/* --- the script --------------------------------------------------------- */

static void page_done(struct requeue *requeue)
{
    if (requeue->code != WEIR_OK)
        finish(&requeue->pages, requeue->code);
    else
        weir__pages_next(&requeue->pages);
}

static void send_planned(struct requeue_call *call);

static void on_requeued(struct weir__request *request, int code,
                        const struct redisReply *reply)
{
    struct requeue_call *call =
        (struct requeue_call *)request; /* first member */
    struct requeue *requeue = call->requeue;
    int64_t count = -1;

    if (code == WEIR_OK && weir__reply_int(reply, 0, &count) && count < 0 &&
        !call->is_second) { /* another producer has the name */
        weir__redis_number_by_chance(requeue->pages.topic->base.store);
        call->is_second = true;
        send_planned(call);
        weir__place_flush(requeue->pages.topic->base.place);
        return;
    }
    weir__mem_free(call);
    weir__topic_log_error(&requeue->pages.topic->base, "requeue", code, reply);
    if (code == WEIR_OK && (!weir__reply_int(reply, 0, &count) || count < 0))
        code = WEIR_ESERVER; /* the server had no memory for the pack */
    if (code == WEIR_OK)
        requeue->count += (uint64_t)count;
    else
        requeue->code = code;
    requeue->out--;
    if (requeue->out == 0)
        page_done(requeue);
}

static void send_planned(struct requeue_call *call)
{
    struct requeue *requeue = call->requeue;
    struct weir__delay_topic *topic = requeue->pages.topic;
    struct weir__planned_pack *planned = &call->planned;
    struct weir__item *items = &requeue->items.list[planned->first];
    struct weir__buf bytes = {0}, *died = &topic->shared->scratch[0];
    char mark[24];

    weir__topic_next_seq(&topic->base, planned->seq);
    items->mark = 1 + (uint64_t)weir__call_nonce(topic->base.store);
    (void)snprintf(mark, sizeof(mark), "%0*" PRIu64, WEIR__PACK_MARK,
                   items->mark); /* fits */
    (void)weir__planned_pack_stage(&bytes, &topic->base.prefix, &requeue->items,
                                   planned);
    weir__place_send(topic->base.place, &bytes, NULL, WEIR__SEND_AGAIN, NULL);
    weir__buf_reset(died);
    weir__pack_array(died, planned->count);
    for (size_t i = 0; i < planned->count; i++)
        weir__pack_uint(died,
                        (uint64_t)requeue->pages.members[items[i].slot].ms);
    weir__resp_eval(&bytes, &weir__script_delay_requeue, 8, 6);
    weir__prefix_keys(&bytes, &topic->base.prefix,
                      "wait ids meta dead rec idle");
    weir__prefix_pack(&bytes, &topic->base.prefix, planned->seq);
    weir__prefix_key(&bytes, &topic->base.prefix, "absent");
    weir__resp_str(&bytes, topic->base.name);
    weir__resp_int(&bytes, (int64_t)planned->count);
    weir__resp_int(&bytes, (int64_t)planned->size.header_len);
    weir__resp_bytes(&bytes, weir__buf_slice(died));
    bytes.failed = bytes.failed || died->failed;
    weir__buf_reset(died);
    weir__planned_pack_when(died, &requeue->items, planned);
    weir__resp_bytes(&bytes, weir__buf_slice(died));
    bytes.failed = bytes.failed || died->failed;
    weir__resp_str(&bytes, mark);
    weir__place_send(topic->base.place, &bytes, &weir__script_delay_requeue,
                     WEIR__SEND_AGAIN, &call->request);
}

static void send_items(struct requeue *requeue)
{
    size_t at = 0;

    while (at < requeue->items.count && requeue->code == WEIR_OK) {
        struct requeue_call *call = weir__mem_new(sizeof(*call));

        if (call == NULL) {
            requeue->code = WEIR_ENOMEM;
            break;
        }
        weir__planned_pack_plan(&requeue->items, at, requeue->items.count,
                                &call->planned);
        call->request.done = on_requeued;
        call->requeue = requeue;
        requeue->out++;
        at += call->planned.count;
        send_planned(call);
    }
    if (requeue->out == 0)
        page_done(requeue);
}

/* --- records ------------------------------------------------------------ */

/* Write the record anew; WEIR_ENOMEM, or why it cannot be read. */
static int renew_record(struct requeue *requeue, struct weir_slice bytes,
                        size_t index)
{
    struct weir_slice name = weir__page_name(&requeue->pages, index);
    struct weir__record record;
    struct weir__item *item;
    int rc = weir__record_read(bytes, &record);

    if (rc < 0)
        return rc;
    if (!weir__id_is_sound(name))
        return WEIR_EMALFORMED;
    record.counters.attempt = 0;
    record.counters.failures = 0;
    record.spent = 0;
    record.reason = (struct weir_slice){0};
    record.error = (struct weir_slice){0};
    item = weir__items_append(&requeue->items, name, &record);
    if (item == NULL)
        return WEIR_ENOMEM;
    item->slot = (uint32_t)index;
    return WEIR_OK;
}

/* What cannot be read stays dead. */
static int read_records(struct requeue *requeue, const struct redisReply *reply)
{
    struct weir_slice bytes;
    int rc = WEIR_OK;

    weir__items_reset(&requeue->items);
    for (size_t i = 0; i < requeue->pages.count; i++) {
        rc = WEIR_EMALFORMED;
        if (weir__reply_str(reply, i, &bytes))
            rc = renew_record(requeue, bytes, i);
        if (rc == WEIR_ENOMEM)
            return rc;
    }
    return requeue->is_one ? rc : WEIR_OK;
}

static void read_page(struct weir__pages *pages,
                      const struct redisReply *records)
{
    struct requeue *requeue = (struct requeue *)pages; /* its first member */

    requeue->code = read_records(requeue, records);
    if (requeue->code != WEIR_OK)
        finish(pages, requeue->code);
    else
        send_items(requeue);
}

/* --- the port ----------------------------------------------------------- */

static void on_died(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    struct requeue *requeue = (struct requeue *)request; /* its first member */
    struct weir__pages *pages = &requeue->pages;

    if (code == WEIR_OK && reply->type != REDIS_REPLY_STRING)
        code = WEIR_ENOTFOUND;
    if (code != WEIR_OK) {
        finish(pages, code);
        return;
    }
    pages->members[0].ms = (int64_t)weir__score_read(reply->str);
    weir__pages_fetch(pages);
}

/* A page of one; false when out of memory. */
static bool begin_one(struct requeue *requeue, struct weir_slice id)
{
    struct weir__pages *pages = &requeue->pages;
    struct weir__buf bytes = {0};

    weir__buf_append(&pages->names, id.ptr, id.len);
    if (pages->names.failed)
        return false;
    requeue->is_one = true;
    pages->is_last = true;
    pages->count = 1;
    pages->members[0].len = id.len;
    pages->request.done = on_died;
    weir__prefix_command(&bytes, &pages->topic->base.prefix, 3, "ZSCORE",
                         "dead");
    weir__resp_bytes(&bytes, id);
    weir__place_send(pages->topic->base.place, &bytes, NULL, WEIR__SEND_AGAIN,
                     &pages->request);
    return true;
}

int weir__delay_requeue(struct weir__store_topic *topic, struct weir_slice id,
                        weir_count_fn fn, void *arg)
{
    struct requeue *requeue = weir__mem_new(sizeof(*requeue));

    if (requeue == NULL)
        return WEIR_ENOMEM;
    requeue->fn = fn;
    requeue->arg = arg;
    requeue->pages.topic = weir__delay_topic_of(topic);
    requeue->pages.state = WEIR_JOB_DEAD;
    requeue->pages.left = SIZE_MAX;
    requeue->pages.read = read_page;
    requeue->pages.end = finish;
    if (id.len == 0) {
        weir__pages_begin(&requeue->pages);
    } else if (!begin_one(requeue, id)) {
        weir__mem_free(requeue);
        return WEIR_ENOMEM;
    }
    return WEIR_OK;
}
