/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/json/json.h"
#include "adapters/redis/external/private.h"
#include "core/mem.h"
#include "core/text.h"

/* Adding entries as any other program does: the body as JSON at the end of the
 * list, or as the field `body` of an entry of the stream. */

/* Looked up again after that: somebody may serve another key by now. */
#define FOUND_NS INT64_C(1000000000)

struct weir__feed_add {
    struct weir__ask ask;
    struct weir__feed_topic *topic;
    struct weir__feed_add *next;
    weir_added_fn fn;
    void *arg;
    size_t len;
    char json[];
};

static void answer(struct weir__feed_add *add, int code, const char *id)
{
    if (add->fn != NULL)
        add->fn(code, id, add->arg);
    weir__mem_free(add);
}

static void on_added(struct weir__ask *ask, int code,
                     const struct redisReply *reply)
{
    struct weir__feed_add *add = (struct weir__feed_add *)ask; /* first */

    weir__base_log_error(&add->topic->base, "add", code, reply);
    /* Of an entry of a list there is no id before it is taken. */
    if (code != WEIR_OK || reply->type != REDIS_REPLY_STRING)
        answer(add, code, "~");
    else if (weir__id_is_sound(weir__slice_of(reply->str, (size_t)reply->len)))
        answer(add, code, reply->str);
    else
        answer(add, WEIR_ESERVER, "~");
}

static void send_add(struct weir__feed_add *add)
{
    struct weir__feed_topic *topic = add->topic;
    bool is_stream = topic->store->is_stream;
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, is_stream ? 5 : 3);
    weir__resp_str(&bytes, is_stream ? "XADD" : "RPUSH");
    weir__resp_str(&bytes, topic->place.key);
    if (is_stream) {
        weir__resp_str(&bytes, "*");
        weir__resp_str(&bytes, "body");
    }
    weir__resp_bytes(&bytes, weir__slice_of(add->json, add->len));
    add->ask.done = on_added;
    weir__base_send(&topic->store->base, &bytes, NULL, WEIR__SEND_ONCE,
                    &add->ask);
}

void weir__feed_fail_adds(struct weir__feed_topic *topic, int code)
{
    struct weir__feed_add *add = topic->adds;

    topic->adds = NULL;
    topic->adds_end = &topic->adds;
    while (add != NULL) {
        struct weir__feed_add *next = add->next;

        answer(add, code, "~");
        add = next;
    }
}

/* --- finding the key ---------------------------------------------------- */

struct find_ask {
    struct weir__ask ask;
    struct weir__feed_topic *topic;
};

/* The topic comes into being by this. */
static void note_kind(struct weir__feed_topic *topic)
{
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, 4);
    weir__resp_str(&bytes, "HSETNX");
    weir__prefix_keys(&bytes, &topic->base.prefix, "meta");
    weir__resp_str(&bytes, "kind");
    weir__resp_str(&bytes, topic->store->is_stream ? "stream" : "list");
    weir__base_send(&topic->store->base, &bytes, NULL, WEIR__SEND_AGAIN, NULL);
}

static void on_found(struct weir__ask *ask, int code,
                     const struct redisReply *reply)
{
    struct weir__feed_topic *topic = ((struct find_ask *)ask)->topic;

    weir__mem_free(ask);
    topic->is_finding = false;
    weir__base_log_error(&topic->base, "add", code, reply);
    code = weir__feed_found(topic, code, reply, &topic->place);
    if (code == WEIR_ENOTFOUND)
        note_kind(topic);
    else if (code != WEIR_OK) {
        weir__feed_fail_adds(topic, code);
        return;
    }
    topic->found_ns = weir__base_now_ns(&topic->store->base);
    weir__feed_flush_adds(topic);
    weir__conn_flush(topic->store->base.commands);
}

static bool is_found(struct weir__feed_topic *topic)
{
    int64_t now_ns = weir__base_now_ns(&topic->store->base);
    struct find_ask *find;

    if (topic->found_ns != 0 && now_ns - topic->found_ns < FOUND_NS)
        return true;
    if (topic->is_finding)
        return false;
    find = weir__mem_new(sizeof(*find));
    if (find == NULL) {
        weir__base_mark(&topic->base); /* the next flush tries again */
        return false;
    }
    topic->is_finding = true;
    find->ask.done = on_found;
    find->topic = topic;
    weir__feed_find(topic, &find->ask);
    return false;
}

void weir__feed_flush_adds(struct weir__feed_topic *topic)
{
    struct weir__feed_add *add = topic->adds;

    if (add == NULL || topic->store->base.is_closed || !is_found(topic))
        return;
    topic->adds = NULL;
    topic->adds_end = &topic->adds;
    while (add != NULL) {
        struct weir__feed_add *next = add->next;

        send_add(add);
        add = next;
    }
}

/* --- adding ------------------------------------------------------------- */

/* What a plain entry cannot carry. */
static bool is_plain(const struct weir__new_job *job)
{
    const struct weir__record *record = job->record;

    return job->id.len == 0 && job->delay_ms == 0 && job->at_ms == 0 &&
           record->retry.len == 0 && record->url.len == 0 &&
           record->headers.len == 0 && record->ttl_ms == 0;
}

int weir__feed_add(struct weir__store_topic *base,
                   const struct weir__new_job *job, weir_added_fn fn, void *arg)
{
    static const uint8_t nil[] = {0xc0};
    struct weir__feed_topic *topic = weir__feed_topic_of(base);
    struct weir_slice body = job->record->body;
    struct weir__feed_add *add;
    size_t len;

    if (topic->store->base.is_closed)
        return WEIR_ECANCELED;
    if (!is_plain(job))
        return WEIR_EKIND;
    if (body.len == 0)
        body = weir__slice_of(nil, sizeof(nil));
    len = weir__json_print(body, NULL, 0);
    add = len == 0 ? NULL : weir__mem_grow(NULL, sizeof(*add) + len + 1, 1);
    if (add == NULL)
        return WEIR_ENOMEM;
    *add = (struct weir__feed_add){
        .topic = topic, .fn = fn, .arg = arg, .len = len};
    (void)weir__json_print(body, add->json, len + 1); /* it fits */
    *topic->adds_end = add;
    topic->adds_end = &add->next;
    weir__base_mark(&topic->base);
    return WEIR_OK;
}
