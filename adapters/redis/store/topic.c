/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/store/kind.h"
#include "core/mem.h"
#include "core/text.h"

/* What is stored with a topic as a whole: whether it is paused, and its
 * options, each a field of the hash `options`. Their revision in `meta` grows
 * with every change; claims and adds tell it, and who meets a new one reads
 * what concerns him anew. */

/* --- pause and set ------------------------------------------------------ */

struct change {
    struct weir__request request;
    weir_code_fn fn;
    void *arg;
};

static void on_changed(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct change *change = (struct change *)request; /* its first member */
    const char *text = NULL;
    char kept[100];
    struct weir_slice kind;
    int64_t result;

    if (code == WEIR_ESERVER && reply != NULL &&
        reply->type == REDIS_REPLY_ERROR)
        text = reply->str;
    if (code == WEIR_OK && !weir__reply_int(reply, 0, &result))
        code = WEIR_ESERVER;
    else if (code == WEIR_OK && result < 0)
        code = WEIR_EKIND;
    if (code == WEIR_EKIND && weir__reply_str(reply, 1, &kind)) {
        (void)snprintf(kept, sizeof(kept),
                       "the topic holds jobs and stays of kind %.*s: let it "
                       "run empty, or purge it",
                       kind.len < 16 ? (int)kind.len : 16,
                       (const char *)kind.ptr);
        text = kept;
    }
    if (text == NULL)
        text = weir_error_text(code);
    if (change->fn != NULL)
        change->fn(code, text, change->arg);
    weir__mem_free(change);
}

/* NULL when out of memory. Topics come into being by this, too. */
static struct change *change_new(struct weir__store_topic *topic,
                                 weir_code_fn fn, void *arg)
{
    struct change *change = weir__mem_new(sizeof(*change));

    if (change == NULL)
        return NULL;
    change->request.done = on_changed;
    change->fn = fn;
    change->arg = arg;
    weir__topic_register(topic);
    return change;
}

int weir__topic_pause(struct weir__store_topic *topic, bool is_paused,
                      weir_code_fn fn, void *arg)
{
    struct weir__buf bytes = {0};
    struct change *change;

    if (topic->store->is_closed)
        return WEIR_ECANCELED;
    change = change_new(topic, fn, arg);
    if (change == NULL)
        return WEIR_ENOMEM;
    weir__resp_eval(&bytes, &weir__script_store_pause, 3, 3);
    weir__prefix_keys(&bytes, &topic->prefix, "ids meta idle");
    weir__resp_str(&bytes, topic->name);
    weir__resp_str(&bytes, ""); /* of whatever kind it is */
    weir__resp_int(&bytes, is_paused);
    weir__redis_send(topic->store, &bytes, &weir__script_store_pause,
                     WEIR__SEND_AGAIN, &change->request);
    return WEIR_OK;
}

int weir__topic_set(struct weir__store_topic *topic,
                    const struct weir__setting *settings, size_t count,
                    weir_code_fn fn, void *arg)
{
    struct weir__buf bytes = {0};
    struct change *change;

    if (topic->store->is_closed)
        return WEIR_ECANCELED;
    change = change_new(topic, fn, arg);
    if (change == NULL)
        return WEIR_ENOMEM;
    weir__resp_eval(&bytes, &weir__script_store_set, 11, 1 + 2 * count);
    weir__prefix_keys(&bytes, &topic->prefix,
                      "options ids meta wait run dead fifo parked "
                      "rot hot out");
    weir__resp_str(&bytes, weir__kinds[0]->name);
    for (size_t i = 0; i < count; i++) {
        weir__resp_bytes(&bytes, settings[i].name);
        weir__resp_bytes(&bytes, settings[i].value);
    }
    weir__redis_send(topic->store, &bytes, &weir__script_store_set,
                     WEIR__SEND_AGAIN, &change->request);
    return WEIR_OK;
}

/* --- reading options ---------------------------------------------------- */

struct settings_request {
    struct weir__request request;
    struct weir__store_topic *topic;
    weir_setting_fn fn;
    void *arg;
};

static void on_settings(struct weir__request *request, int code,
                        const struct redisReply *reply)
{
    struct settings_request *wanted =
        (struct settings_request *)request; /* its first */
    struct weir__setting *settings = NULL;
    size_t count = 0;

    if (code == WEIR_OK && reply->type != REDIS_REPLY_ARRAY)
        code = WEIR_ESERVER;
    if (code == WEIR_OK) {
        settings = weir__settings_read(reply, &count);
        code = settings == NULL ? WEIR_ENOMEM : WEIR_OK;
    }
    for (size_t i = 0; i < count; i++)
        wanted->fn(WEIR_OK, (const char *)settings[i].name.ptr,
                   (const char *)settings[i].value.ptr, wanted->arg);
    wanted->fn(code, NULL, NULL, wanted->arg);
    weir__mem_free(settings);
    weir__mem_free(wanted);
}

static void on_exists(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct settings_request *wanted =
        (struct settings_request *)request; /* its first */

    if (code == WEIR_OK && reply->type == REDIS_REPLY_INTEGER &&
        reply->integer == 0)
        code = WEIR_ENOTFOUND;
    if (code != WEIR_OK) {
        wanted->fn(code, NULL, NULL, wanted->arg);
        weir__mem_free(wanted);
        return;
    }
    wanted->request.done = on_settings;
    weir__topic_request_options(wanted->topic, &wanted->request);
}

int weir__topic_settings(struct weir__store_topic *topic, weir_setting_fn fn,
                         void *arg)
{
    struct weir__buf bytes = {0};
    struct settings_request *wanted;

    if (topic->store->is_closed)
        return WEIR_ECANCELED;
    wanted = weir__mem_new(sizeof(*wanted));
    if (wanted == NULL)
        return WEIR_ENOMEM;
    wanted->request.done = on_exists;
    wanted->topic = topic;
    wanted->fn = fn;
    wanted->arg = arg;
    weir__resp_command(&bytes, 2);
    weir__resp_str(&bytes, "EXISTS");
    weir__prefix_key(&bytes, &topic->prefix, "meta");
    weir__redis_send(topic->store, &bytes, NULL, WEIR__SEND_AGAIN,
                     &wanted->request);
    return WEIR_OK;
}

/* --- the kind ----------------------------------------------------------- */

struct kind_request {
    struct weir__request request;
    weir_kind_fn fn;
    void *arg;
};

static void on_kind(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    struct kind_request *wanted =
        (struct kind_request *)request; /* its first member */
    struct weir_slice kind = {0};

    if (code == WEIR_OK && !weir__reply_str(reply, 0, &kind))
        code = WEIR_ENOTFOUND;
    /* hiredis adds a NUL */
    wanted->fn(code, code == WEIR_OK ? (const char *)kind.ptr : NULL,
               wanted->arg);
    weir__mem_free(wanted);
}

int weir__topic_kind(struct weir__store_topic *topic, weir_kind_fn fn,
                     void *arg)
{
    struct weir__buf bytes = {0};
    struct kind_request *wanted;

    if (topic->store->is_closed)
        return WEIR_ECANCELED;
    wanted = weir__mem_new(sizeof(*wanted));
    if (wanted == NULL)
        return WEIR_ENOMEM;
    wanted->request.done = on_kind;
    wanted->fn = fn;
    wanted->arg = arg;
    weir__resp_command(&bytes, 3);
    weir__resp_str(&bytes, "HMGET");
    weir__prefix_key(&bytes, &topic->prefix, "meta");
    weir__resp_str(&bytes, "kind");
    weir__redis_send(topic->store, &bytes, NULL, WEIR__SEND_AGAIN,
                     &wanted->request);
    return WEIR_OK;
}
