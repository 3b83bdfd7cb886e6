/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "adapters/msgpack/record.h"
#include "adapters/redis/delay/private.h"
#include "core/mem.h"
#include "core/text.h"

/* Dead jobs become ready again: one, or all of them a page at a time. The
 * records of a page are fetched, written anew as packs and staged; the requeue
 * script puts them in the place of those that are still dead. */

enum {
    PAGE = 256,
    FIRST_PAGE = 16, /* before it is known how large records are */
    PAGE_BYTES = 4 * 1024 * 1024
};

struct requeue {
    struct weir__request request;
    struct weir__delay_topic *topic;
    weir_count_fn fn;
    void *arg;
    bool is_one;
    int64_t latest_ms; /* who died later stays */
    uint64_t count;    /* requeued so far */
    size_t skipped;    /* unreadable, at the front of the dead */
    size_t page;       /* how many to fetch */
    size_t fetched;    /* how many came */
    bool is_last;      /* no more come after these */
    size_t out;        /* calls not answered yet */
    int code;
    struct weir__buf names;
    size_t name_at[PAGE + 1];
    int64_t died_ms[PAGE];
    struct weir__items items; /* those to requeue */
    int64_t item_died_ms[PAGE];
};

/* One call of the script. */
struct requeue_call {
    struct weir__request request;
    struct requeue *requeue;
};

static void request_page(struct requeue *requeue);

static void finish(struct requeue *requeue, int code)
{
    if (requeue->is_one && code == WEIR_OK && requeue->count == 0)
        code = WEIR_ENOTFOUND;
    requeue->fn(code, requeue->count, requeue->arg);
    weir__items_fini(&requeue->items);
    weir__buf_fini(&requeue->names);
    weir__mem_free(requeue);
}

static struct weir_slice name_of(const struct requeue *requeue, size_t index)
{
    size_t at = requeue->name_at[index];

    return (struct weir_slice){requeue->names.ptr + at,
                               requeue->name_at[index + 1] - at};
}

/* --- the script --------------------------------------------------------- */

static void page_done(struct requeue *requeue)
{
    if (requeue->code != WEIR_OK || requeue->is_one || requeue->is_last)
        finish(requeue, requeue->code);
    else
        request_page(requeue);
}

static void on_requeued(struct weir__request *request, int code,
                        const struct redisReply *reply)
{
    struct requeue_call *call =
        (struct requeue_call *)request; /* first member */
    struct requeue *requeue = call->requeue;
    int64_t count = -1;

    weir__mem_free(call);
    weir__topic_log_error(&requeue->topic->base, "requeue", code, reply);
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

static void send_planned(struct requeue *requeue, struct requeue_call *call,
                         const struct weir__planned_pack *planned)
{
    struct weir__delay_topic *topic = requeue->topic;
    struct weir__buf bytes = {0}, *died = &topic->shared->scratch[0];

    weir__delay_write_stage(&bytes, topic, &requeue->items, planned);
    weir__redis_send(topic->base.store, &bytes, NULL, WEIR__SEND_AGAIN, NULL);
    weir__buf_reset(died);
    weir__pack_array(died, planned->count);
    for (size_t i = 0; i < planned->count; i++)
        weir__pack_uint(died,
                        (uint64_t)requeue->item_died_ms[planned->first + i]);
    weir__resp_eval(&bytes, &weir__script_delay_requeue, 7, 4);
    weir__prefix_keys(&bytes, &topic->base.prefix,
                      "wait ids meta dead rec idle");
    weir__prefix_pack(&bytes, &topic->base.prefix, planned->seq);
    weir__resp_str(&bytes, topic->base.name);
    weir__resp_int(&bytes, (int64_t)planned->count);
    weir__resp_int(&bytes, (int64_t)planned->size.header_len);
    weir__resp_bytes(&bytes, weir__buf_slice(died));
    bytes.failed = bytes.failed || died->failed;
    call->request.done = on_requeued;
    call->requeue = requeue;
    requeue->out++;
    weir__redis_send(topic->base.store, &bytes, &weir__script_delay_requeue,
                     WEIR__SEND_AGAIN, &call->request);
}

static void send_items(struct requeue *requeue)
{
    struct weir__delay *shared = requeue->topic->shared;
    size_t at = 0;

    while (at < requeue->items.count && requeue->code == WEIR_OK) {
        struct requeue_call *call = weir__mem_new(sizeof(*call));
        struct weir__planned_pack planned;

        if (call == NULL) {
            requeue->code = WEIR_ENOMEM;
            break;
        }
        weir__planned_pack_plan(&requeue->items, at, requeue->items.count,
                                &planned);
        weir__redis_next_seq(shared->store, planned.seq);
        send_planned(requeue, call, &planned);
        at += planned.count;
    }
    if (requeue->out == 0)
        page_done(requeue);
}

/* --- records ------------------------------------------------------------ */

/* Write the record anew; WEIR_ENOMEM, or why it cannot be read. */
static int renew_record(struct requeue *requeue, struct weir_slice bytes,
                        size_t index)
{
    struct weir__items *items = &requeue->items;
    struct weir_slice name = name_of(requeue, index);
    size_t start = items->bytes.len;
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
    weir__buf_append(&items->bytes, name.ptr, name.len);
    weir__buf_append(&items->bytes, "", 1);
    weir__record_write(&items->bytes, &record);
    item = items->bytes.failed ? NULL : weir__items_push(items);
    if (item == NULL)
        return WEIR_ENOMEM;
    item->id_at = start;
    item->id_len = (uint32_t)name.len;
    item->record_at = start + name.len + 1;
    item->record_len = (uint32_t)(items->bytes.len - item->record_at);
    requeue->item_died_ms[items->count - 1] = requeue->died_ms[index];
    return WEIR_OK;
}

/* What cannot be read stays dead. */
static int read_records(struct requeue *requeue, const struct redisReply *reply)
{
    struct weir_slice bytes;
    size_t total = 0;
    int rc = WEIR_OK;

    weir__items_reset(&requeue->items);
    for (size_t i = 0; i < requeue->fetched; i++) {
        rc = WEIR_EMALFORMED;
        if (weir__reply_str(reply, i, &bytes)) {
            total += bytes.len;
            rc = renew_record(requeue, bytes, i);
        }
        if (rc == WEIR_ENOMEM)
            return rc;
        requeue->skipped += rc < 0;
    }
    total = PAGE_BYTES / (total / requeue->fetched + 1);
    requeue->page = total < 1 ? 1 : total > PAGE ? PAGE : total;
    return requeue->is_one ? rc : WEIR_OK;
}

static void on_records(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct requeue *requeue = (struct requeue *)request; /* its first member */

    if (code == WEIR_OK && reply->type != REDIS_REPLY_ARRAY)
        code = WEIR_ESERVER;
    if (code == WEIR_OK && !requeue->topic->base.store->has_number) {
        request_page(requeue); /* the connection is a new one: once more */
        return;
    }
    if (code == WEIR_OK)
        code = read_records(requeue, reply);
    if (code != WEIR_OK)
        finish(requeue, code);
    else
        send_items(requeue);
}

static void request_records(struct requeue *requeue)
{
    struct weir__buf bytes = {0};

    requeue->request.done = on_records;
    weir__resp_command(&bytes, 2 + requeue->fetched);
    weir__resp_str(&bytes, "HMGET");
    weir__prefix_key(&bytes, &requeue->topic->base.prefix, "rec");
    for (size_t i = 0; i < requeue->fetched; i++)
        weir__resp_bytes(&bytes, name_of(requeue, i));
    weir__redis_send(requeue->topic->base.store, &bytes, NULL,
                     WEIR__SEND_AGAIN | weir__send_bodies(requeue->fetched),
                     &requeue->request);
}

/* --- pages -------------------------------------------------------------- */

static int64_t read_ms(const char *text)
{
    int64_t ms = strtoll(text, NULL, 10);

    return ms < 0 ? 0 : ms;
}

static void on_page(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    struct requeue *requeue = (struct requeue *)request; /* its first member */
    struct weir_slice id, score;

    requeue->fetched = 0;
    weir__buf_reset(&requeue->names);
    if (code == WEIR_OK && reply->type != REDIS_REPLY_ARRAY)
        code = WEIR_ESERVER;
    for (size_t i = 0; code == WEIR_OK && requeue->fetched < PAGE &&
                       weir__reply_str(reply, i, &id) &&
                       weir__reply_str(reply, i + 1, &score);
         i += 2) {
        weir__buf_append(&requeue->names, id.ptr, id.len);
        requeue->died_ms[requeue->fetched] = read_ms((const char *)score.ptr);
        requeue->fetched++;
        requeue->name_at[requeue->fetched] = requeue->names.len;
    }
    requeue->is_last = requeue->fetched < requeue->page;
    if (requeue->names.failed)
        code = WEIR_ENOMEM;
    if (code != WEIR_OK || requeue->fetched == 0)
        finish(requeue, code);
    else
        request_records(requeue);
}

static void on_died(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    struct requeue *requeue = (struct requeue *)request; /* its first member */

    if (code == WEIR_OK && reply->type != REDIS_REPLY_STRING)
        code = WEIR_ENOTFOUND;
    if (code != WEIR_OK) {
        finish(requeue, code);
        return;
    }
    requeue->died_ms[0] = read_ms(reply->str);
    requeue->fetched = 1;
    request_records(requeue);
}

/* The next page; for one job it is when that died. */
static void request_page(struct requeue *requeue)
{
    struct weir__buf bytes = {0};

    requeue->request.done = requeue->is_one ? on_died : on_page;
    if (requeue->is_one) {
        weir__resp_command(&bytes, 3);
        weir__resp_str(&bytes, "ZSCORE");
        weir__prefix_key(&bytes, &requeue->topic->base.prefix, "dead");
        weir__resp_bytes(&bytes, name_of(requeue, 0));
    } else {
        weir__resp_command(&bytes, 8);
        weir__resp_str(&bytes, "ZRANGEBYSCORE");
        weir__prefix_key(&bytes, &requeue->topic->base.prefix, "dead");
        weir__resp_str(&bytes, "-inf");
        weir__resp_int(&bytes, requeue->latest_ms);
        weir__resp_str(&bytes, "WITHSCORES");
        weir__resp_str(&bytes, "LIMIT");
        weir__resp_int(&bytes, (int64_t)requeue->skipped);
        weir__resp_int(&bytes, (int64_t)requeue->page);
    }
    weir__redis_send(requeue->topic->base.store, &bytes, NULL, WEIR__SEND_AGAIN,
                     &requeue->request);
}

static void on_latest(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct requeue *requeue = (struct requeue *)request; /* its first member */
    struct weir_slice score;

    if (code == WEIR_OK && weir__reply_str(reply, 1, &score)) {
        requeue->latest_ms = read_ms((const char *)score.ptr);
        request_page(requeue);
    } else {
        finish(requeue, code); /* nobody is dead */
    }
}

static void on_exists(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct requeue *requeue = (struct requeue *)request; /* its first member */
    struct weir__buf bytes = {0};

    if (code == WEIR_OK && reply->type == REDIS_REPLY_INTEGER &&
        reply->integer == 0)
        code = WEIR_ENOTFOUND;
    if (code != WEIR_OK) {
        finish(requeue, code);
        return;
    }
    requeue->request.done = on_latest;
    weir__resp_command(&bytes, 5);
    weir__resp_str(&bytes, "ZRANGE");
    weir__prefix_key(&bytes, &requeue->topic->base.prefix, "dead");
    weir__resp_int(&bytes, -1);
    weir__resp_int(&bytes, -1);
    weir__resp_str(&bytes, "WITHSCORES");
    weir__redis_send(requeue->topic->base.store, &bytes, NULL, WEIR__SEND_AGAIN,
                     &requeue->request);
}

int weir__delay_requeue(struct weir__store_topic *base, struct weir_slice id,
                        weir_count_fn fn, void *arg)
{
    struct weir__delay_topic *topic = weir__delay_topic_of(base);
    struct weir__buf bytes = {0};
    struct requeue *requeue;

    if (topic->base.store->is_closed)
        return WEIR_ECANCELED;
    requeue = weir__mem_new(sizeof(*requeue));
    if (requeue == NULL)
        return WEIR_ENOMEM;
    weir__buf_append(&requeue->names, id.ptr, id.len);
    if (requeue->names.failed) {
        weir__mem_free(requeue);
        return WEIR_ENOMEM;
    }
    requeue->request.store = topic->base.store;
    requeue->topic = topic;
    requeue->fn = fn;
    requeue->arg = arg;
    requeue->is_one = id.len > 0;
    requeue->name_at[1] = id.len;
    requeue->page = FIRST_PAGE;
    if (requeue->is_one) {
        request_page(requeue);
        return WEIR_OK;
    }
    requeue->request.done = on_exists;
    weir__resp_command(&bytes, 2);
    weir__resp_str(&bytes, "EXISTS");
    weir__prefix_key(&bytes, &topic->base.prefix, "meta");
    weir__redis_send(topic->base.store, &bytes, NULL, WEIR__SEND_AGAIN,
                     &requeue->request);
    return WEIR_OK;
}
