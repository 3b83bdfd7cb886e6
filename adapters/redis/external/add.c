/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/json/json.h"
#include "adapters/redis/external/private.h"
#include "core/mem.h"
#include "core/text.h"

/* Adding entries as any other program does: the body, as JSON if the option
 * `body` says nothing else, at the end of the list that nothing is taken from,
 * or as the field `body` of an entry of the stream. */

/* Looked up again after that: somebody may serve another key by now. */
#define FOUND_NS INT64_C(1000000000)

struct weir__external_add {
    struct weir__request request;
    struct weir__external_topic *topic;
    struct weir__external_add *next;
    weir_added_fn fn;
    void *arg;
    size_t len;
    uint8_t body[]; /* msgpack */
};

static void answer(struct weir__external_add *add, int code, const char *id)
{
    if (add->fn != NULL)
        weir__topic_added(&add->topic->base, add->fn, code, id, add->arg);
    weir__mem_free(add);
}

static void on_added(struct weir__request *request, int code,
                     const struct redisReply *reply)
{
    struct weir__external_add *add =
        (struct weir__external_add *)request; /* first */

    weir__topic_log_error(&add->topic->base, "add", code, reply);
    /* Of an entry of a list there is no id before it is taken. */
    if (code != WEIR_OK || reply->type != REDIS_REPLY_STRING)
        answer(add, code, "@");
    else if (weir__id_is_sound(weir__slice_of(reply->str, (size_t)reply->len)))
        answer(add, code, reply->str);
    else
        answer(add, WEIR_ESERVER, "@");
}

static void send_add(struct weir__external_add *add)
{
    struct weir__external_topic *topic = add->topic;
    bool is_right = topic->place.is_right;
    struct weir__buf bytes = {0}, body = {0};

    if (!weir__external_write_body(&body, weir__slice_of(add->body, add->len),
                                   topic->place.body)) {
        weir__buf_fini(&body);
        answer(add, WEIR_ENOMEM, "@");
        return;
    }

    if (topic->is_stream) {
        weir__resp_command(&bytes, 5);
        weir__resp_str(&bytes, "XADD");
        weir__resp_str(&bytes, topic->place.key);
        weir__resp_str(&bytes, "*");
        weir__resp_str(&bytes, "body");
    } else {
        weir__resp_command(&bytes, 3);
        weir__resp_str(&bytes, is_right ? "LPUSH" : "RPUSH");
        weir__resp_str(&bytes, topic->place.key);
    }
    weir__resp_bytes(&bytes, weir__buf_slice(&body));
    weir__buf_fini(&body);
    add->request.done = on_added;
    weir__place_send(topic->base.place, &bytes, NULL, WEIR__SEND_ONCE,
                     &add->request);
}

void weir__external_fail_adds(struct weir__external_topic *topic, int code)
{
    struct weir__external_add *add = topic->adds;

    topic->adds = NULL;
    topic->adds_end = &topic->adds;
    while (add != NULL) {
        struct weir__external_add *next = add->next;

        answer(add, code, "@");
        add = next;
    }
}

/* --- finding the key ---------------------------------------------------- */

struct find_request {
    struct weir__request request;
    struct weir__external_topic *topic;
};

/* The topic comes into being by this. */
static void note_kind(struct weir__external_topic *topic)
{
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, 4);
    weir__resp_str(&bytes, "HSETNX");
    weir__prefix_keys(&bytes, &topic->base.prefix, "meta");
    weir__resp_str(&bytes, "kind");
    weir__resp_str(&bytes, topic->is_stream ? "stream" : "list");
    weir__place_send(topic->base.place, &bytes, NULL, WEIR__SEND_AGAIN, NULL);
}

static void on_found(struct weir__request *request, int code,
                     const struct redisReply *reply)
{
    struct weir__external_topic *topic =
        ((struct find_request *)request)->topic;

    weir__mem_free(request);
    topic->is_finding = false;
    weir__topic_log_error(&topic->base, "add", code, reply);
    code = weir__external_found(topic, code, reply, &topic->place);
    if (code == WEIR_ENOTFOUND)
        note_kind(topic);
    else if (code != WEIR_OK) {
        weir__external_fail_adds(topic, code);
        return;
    }
    topic->found_ns = weir__redis_now_ns(topic->base.store);
    weir__external_flush_adds(topic);
    weir__place_flush(topic->base.place);
}

static bool is_found(struct weir__external_topic *topic)
{
    int64_t now_ns = weir__redis_now_ns(topic->base.store);
    struct find_request *find;

    if (topic->found_ns != 0 && now_ns - topic->found_ns < FOUND_NS)
        return true;
    if (topic->is_finding)
        return false;
    find = weir__mem_new(sizeof(*find));
    if (find == NULL) {
        weir__topic_mark(&topic->base); /* the next flush tries again */
        return false;
    }
    topic->is_finding = true;
    find->request.done = on_found;
    find->topic = topic;
    weir__external_find(topic, &find->request);
    return false;
}

void weir__external_flush_adds(struct weir__external_topic *topic)
{
    struct weir__external_add *add = topic->adds;

    if (add == NULL || topic->base.store->is_closed || !is_found(topic))
        return;
    topic->adds = NULL;
    topic->adds_end = &topic->adds;
    while (add != NULL) {
        struct weir__external_add *next = add->next;

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

int weir__external_add(struct weir__store_topic *base,
                       const struct weir__new_job *job, weir_added_fn fn,
                       void *arg)
{
    static const uint8_t nil[] = {0xc0};
    struct weir__external_topic *topic = weir__external_topic_of(base);
    struct weir_slice body = job->record->body;
    struct weir__external_add *add;

    if (!is_plain(job))
        return WEIR_EKIND;
    if (body.len == 0)
        body = weir__slice_of(nil, sizeof(nil));
    add = weir__mem_grow(NULL, sizeof(*add) + body.len, 1);
    if (add == NULL)
        return WEIR_ENOMEM;
    *add = (struct weir__external_add){
        .topic = topic, .fn = fn, .arg = arg, .len = body.len};
    memcpy(add->body, body.ptr, body.len);
    *topic->adds_end = add;
    topic->adds_end = &add->next;
    weir__topic_mark(&topic->base);
    return WEIR_OK;
}
