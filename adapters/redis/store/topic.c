/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/cluster/slot.h"
#include "adapters/redis/conn/error.h"
#include "adapters/redis/store/cluster.h"
#include "adapters/redis/store/kind.h"
#include "core/mem.h"
#include "core/text.h"

enum { NAME_SHOWN = 40 }; /* bytes of a worker's name */

/* What is stored with a topic as a whole, of whatever kind it is: whether it is
 * paused, and its options, each a field of the hash `options`. Their revision
 * in `meta` grows with every change; claims and adds tell it, and who meets a
 * new one reads what concerns him anew. And the names of all topics. */

/* What a host wants of a topic. */
struct call {
    struct weir__request request; /* first */
    struct weir__store_topic *topic;
    union {
        weir_code_fn code;
        weir_setting_fn setting;
        weir_kind_fn kind;
    } fn;
    void *arg;
};

/* WEIR_ECANCELED, WEIR_ENOMEM. */
static int call_new(struct weir__store_topic *topic,
                    void (*done)(struct weir__request *, int,
                                 const struct redisReply *),
                    void *arg, struct call **ret_call)
{
    struct call *call;

    if (topic->store->is_closed)
        return WEIR_ECANCELED;
    call = weir__mem_new(sizeof(*call));
    if (call == NULL)
        return WEIR_ENOMEM;
    call->request.done = done;
    call->topic = topic;
    call->arg = arg;
    *ret_call = call;
    return WEIR_OK;
}

/* --- pause and set ------------------------------------------------------ */

static void end_change(struct call *call, int code, const char *text)
{
    if (call->fn.code != NULL)
        call->fn.code(code, text, call->arg);
    weir__mem_free(call);
}

static void on_change_listed(struct weir__request *request, int code,
                             const struct redisReply *reply)
{
    (void)reply; /* it was read */
    end_change((struct call *)request /* its first member */, code,
               weir_error_text(code));
}

/* It is to become of another kind. */
static void say_kept(const struct redisReply *reply, struct weir_slice kind,
                     char buf[120])
{
    int64_t has_schedules;
    bool is_cron =
        weir__reply_int(reply, 2, &has_schedules) && has_schedules == 1;

    (void)snprintf(buf, 120, "the topic %s and stays of kind %.*s: %s",
                   is_cron ? "has schedules" : "holds jobs",
                   kind.len < 16 ? (int)kind.len : 16, (const char *)kind.ptr,
                   is_cron ? "weir cron delete"
                           : "let it run empty, or purge it"); /* fits */
}

/* A topic that came into being by this is listed before it is told. */
static void on_changed(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct call *call = (struct call *)request; /* its first member */
    const char *text = NULL;
    char kept[120];
    struct weir_slice kind;
    int64_t result;

    if (code == WEIR_ESERVER && reply != NULL &&
        reply->type == REDIS_REPLY_ERROR)
        text = weir__error_words(reply->str);
    if (code == WEIR_OK && !weir__reply_int(reply, 0, &result))
        code = WEIR_ESERVER;
    else if (code == WEIR_OK && result < 0)
        code = WEIR_EKIND;
    if (code == WEIR_EKIND && weir__reply_str(reply, 1, &kind)) {
        say_kept(reply, kind, kept);
        text = kept;
    }
    if (code == WEIR_OK) {
        request->done = on_change_listed;
        weir__topic_await_listed(call->topic, request);
    } else {
        end_change(call, code, text != NULL ? text : weir_error_text(code));
    }
}

int weir__topic_pause(struct weir__store_topic *topic, bool is_paused,
                      weir_code_fn fn, void *arg)
{
    struct weir__buf bytes = {0};
    struct call *call;
    int rc = call_new(topic, on_changed, arg, &call);

    if (rc < 0)
        return rc;
    call->fn.code = fn;
    (void)weir__topic_register(topic); /* it may come into being by this */
    weir__resp_eval(&bytes, &weir__script_store_pause, 3, 3);
    weir__prefix_keys(&bytes, &topic->prefix, "ids meta idle");
    weir__resp_str(&bytes, topic->name);
    weir__resp_str(&bytes, ""); /* of whatever kind it is */
    weir__resp_int(&bytes, is_paused);
    weir__place_send(topic->place, &bytes, &weir__script_store_pause,
                     WEIR__SEND_AGAIN, &call->request);
    return WEIR_OK;
}

/* All keys of a topic are in one slot of a cluster. */
int weir__topic_check_key(const struct weir__store_topic *topic,
                          struct weir_slice key)
{
    const struct weir__redis *store = topic->store;
    char quote[WEIR__TEXT_QUOTE_CAP];

    if (key.len == 0 || !weir__cluster_is_one(store) ||
        weir__cluster_slot(key) == topic->place->slot)
        return WEIR_OK;
    weir__log(store->options.log, WEIR_LEVEL_ERROR,
              "redis: key \"%s\" is in another slot of the cluster than topic "
              "%s: give the topic one with {%s} in it",
              weir__text_quote(key, quote), topic->name, topic->name);
    return WEIR_EINVAL;
}

/* What holds jobs, of whatever kind they are, and what else a topic has. */
#define HOLDING_KEYS "wait run dead relay fifo parked rot hot out cron"
#define OTHER_KEYS                                                          \
    "options meta lease held due rec seen started late past auto alive ttl" \
    " lock lockers probe unique idle"
enum { HOLDING_COUNT = 10, OTHER_COUNT = 18 };

static int check_settings(const struct weir__store_topic *topic,
                          const struct weir__setting *settings, size_t count)
{
    int rc = WEIR_OK;

    for (size_t i = 0; rc == WEIR_OK && i < count; i++)
        if (weir__slice_equal(settings[i].name, weir__slice_str("key")))
            rc = weir__topic_check_key(topic, settings[i].value);
    return rc;
}

int weir__topic_set(struct weir__store_topic *topic,
                    const struct weir__setting *settings, size_t count,
                    weir_code_fn fn, void *arg)
{
    struct weir__buf bytes = {0};
    struct call *call;
    int rc = check_settings(topic, settings, count);

    if (rc == WEIR_OK)
        rc = call_new(topic, on_changed, arg, &call);
    if (rc < 0)
        return rc;
    call->fn.code = fn;
    (void)weir__topic_register(topic); /* it may come into being by this */
    weir__resp_eval(&bytes, &weir__script_store_set, 3 + HOLDING_COUNT,
                    1 + 2 * count);
    weir__prefix_keys(&bytes, &topic->prefix, "options ids meta " HOLDING_KEYS);
    weir__resp_str(&bytes, weir__kinds[0]->name);
    for (size_t i = 0; i < count; i++) {
        weir__resp_bytes(&bytes, settings[i].name);
        weir__resp_bytes(&bytes, settings[i].value);
    }
    weir__place_send(topic->place, &bytes, &weir__script_store_set,
                     WEIR__SEND_AGAIN, &call->request);
    return WEIR_OK;
}

/* --- deleting a topic ---------------------------------------------------- */

struct drop {
    struct weir__request request;
    struct weir__store_topic *topic;
    weir_code_fn fn;
    void *arg;
    bool was_there;
};

static void end_drop(struct drop *drop, int code, const char *text)
{
    drop->fn(code, text != NULL ? text : weir_error_text(code), drop->arg);
    weir__mem_free(drop);
}

/* What the server says of an error; NULL: nothing. */
static const char *error_of(int code, const struct redisReply *reply)
{
    return code == WEIR_ESERVER && reply != NULL &&
                   reply->type == REDIS_REPLY_ERROR
               ? weir__error_words(reply->str)
               : NULL;
}

static void on_unlisted(struct weir__request *request, int code,
                        const struct redisReply *reply)
{
    struct drop *drop = (struct drop *)request; /* its first member */

    if (code == WEIR_OK && reply->type != REDIS_REPLY_INTEGER)
        code = WEIR_ESERVER;
    if (code == WEIR_OK && !drop->was_there && reply->integer == 0)
        code = WEIR_ENOTFOUND;
    end_drop(drop, code, error_of(code, reply));
}

/* Why it stays; NULL: it is gone. */
static const char *why_kept(const struct redisReply *reply, int64_t result,
                            char buf[80])
{
    struct weir_slice worker;
    size_t len;

    if (result == -1)
        return "it holds jobs, or some on their way to other topics, or has "
               "schedules: weir cron delete";
    if (result >= 0 || !weir__reply_str(reply, 1, &worker))
        return NULL;
    len = strcspn((const char *)worker.ptr, "@ ");
    (void)snprintf(buf, 80, "worker %.*s serves it, stop that one first",
                   len < NAME_SHOWN ? (int)len : NAME_SHOWN,
                   (const char *)worker.ptr); /* fits */
    return buf;
}

/* The name goes last: where that fails the topic is still listed, and can be
 * deleted again. */
static void on_dropped(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct drop *drop = (struct drop *)request; /* its first member */
    struct weir__store_topic *topic = drop->topic;
    const char *why = error_of(code, reply);
    char buf[80];
    int64_t result;

    if (code == WEIR_OK && !weir__reply_int(reply, 0, &result))
        code = WEIR_ESERVER;
    if (code == WEIR_OK && (why = why_kept(reply, result, buf)) != NULL)
        code = WEIR_EEXISTS;
    if (code != WEIR_OK) {
        end_drop(drop, code, why);
        return;
    }
    drop->was_there = result == 1;
    drop->request.done = on_unlisted;
    weir__topic_unregister(topic, &drop->request);
}

int weir__topic_drop(struct weir__store_topic *topic, weir_code_fn fn,
                     void *arg)
{
    struct weir__buf bytes = {0};
    struct drop *drop;

    if (topic->store->is_closed)
        return WEIR_ECANCELED;
    drop = weir__mem_new(sizeof(*drop));
    if (drop == NULL)
        return WEIR_ENOMEM;
    *drop = (struct drop){
        .request.done = on_dropped, .topic = topic, .fn = fn, .arg = arg};
    weir__resp_eval(&bytes, &weir__script_store_drop,
                    1 + HOLDING_COUNT + OTHER_COUNT, 2);
    weir__prefix_keys(&bytes, &topic->prefix,
                      "ids " HOLDING_KEYS " " OTHER_KEYS);
    weir__resp_str(&bytes, topic->name);
    weir__resp_int(&bytes, HOLDING_COUNT);
    weir__place_send(topic->place, &bytes, &weir__script_store_drop,
                     WEIR__SEND_AGAIN, &drop->request);
    return WEIR_OK;
}

/* --- reading options ---------------------------------------------------- */

static void request_options(struct weir__store_topic *topic,
                            struct weir__request *request)
{
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, 2);
    weir__resp_str(&bytes, "HGETALL");
    weir__prefix_key(&bytes, &topic->prefix, "options");
    weir__place_send(topic->place, &bytes, NULL, WEIR__SEND_AGAIN, request);
}

static void on_settings(struct weir__request *request, int code,
                        const struct redisReply *reply)
{
    struct call *call = (struct call *)request; /* its first member */
    struct weir__setting *settings = NULL;
    size_t count = 0;

    if (code == WEIR_OK && reply->type != REDIS_REPLY_ARRAY)
        code = WEIR_ESERVER;
    if (code == WEIR_OK) {
        settings = weir__settings_read(reply, &count);
        code = settings == NULL ? WEIR_ENOMEM : WEIR_OK;
    }
    for (size_t i = 0; i < count; i++)
        call->fn.setting(WEIR_OK, (const char *)settings[i].name.ptr,
                         (const char *)settings[i].value.ptr, call->arg);
    call->fn.setting(code, NULL, NULL, call->arg);
    weir__mem_free(settings);
    weir__mem_free(call);
}

static void on_exists(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct call *call = (struct call *)request; /* its first member */

    if (code == WEIR_OK && reply->type == REDIS_REPLY_INTEGER &&
        reply->integer == 0)
        code = WEIR_ENOTFOUND;
    if (code != WEIR_OK) {
        call->fn.setting(code, NULL, NULL, call->arg);
        weir__mem_free(call);
        return;
    }
    call->request.done = on_settings;
    request_options(call->topic, &call->request);
}

int weir__topic_settings(struct weir__store_topic *topic, weir_setting_fn fn,
                         void *arg)
{
    struct weir__buf bytes = {0};
    struct call *call;
    int rc = call_new(topic, on_exists, arg, &call);

    if (rc < 0)
        return rc;
    call->fn.setting = fn;
    weir__resp_command(&bytes, 2);
    weir__resp_str(&bytes, "EXISTS");
    weir__prefix_key(&bytes, &topic->prefix, "meta");
    weir__place_send(topic->place, &bytes, NULL, WEIR__SEND_AGAIN,
                     &call->request);
    return WEIR_OK;
}

/* --- following them ----------------------------------------------------- */

/* WEIR_ENOMEM. */
static int tell(struct weir__store_topic *topic, const struct redisReply *reply)
{
    size_t count = 0;
    struct weir__setting *settings = weir__settings_read(reply, &count);

    if (settings == NULL)
        return WEIR_ENOMEM;
    topic->store->events.options(topic->user, settings, count);
    weir__mem_free(settings);
    return WEIR_OK;
}

static void on_options(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct weir__options_request *follow =
        (struct weir__options_request *)request; /* first */
    struct weir__store_topic *topic = follow->topic;

    topic->is_following = false;
    weir__topic_log_error(topic, "options", code, reply);
    if (code == WEIR_OK && reply->type != REDIS_REPLY_ARRAY)
        code = WEIR_ESERVER;
    if (code == WEIR_OK && topic->user == NULL)
        code = WEIR_ECANCELED; /* nobody there to tell */
    if (code == WEIR_OK)
        code = tell(topic, reply);
    if (code == WEIR_OK)
        topic->revision = follow->revision; /* else it is told again */
    if (topic->wants_claim)
        weir__topic_mark(topic);
    if (topic->kind->followed != NULL)
        topic->kind->followed(topic, code);
}

void weir__topic_follow(struct weir__store_topic *topic, int64_t revision)
{
    struct weir__options_request *follow = &topic->follow;

    if (topic->is_following || topic->revision == revision)
        return;
    topic->is_following = true;
    follow->request.done = on_options;
    follow->topic = topic;
    follow->revision = revision;
    request_options(topic, &follow->request);
    weir__place_flush(topic->place);
}

/* --- the kind ----------------------------------------------------------- */

static void on_kind(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    struct call *call = (struct call *)request; /* its first member */
    struct weir_slice kind = {0};

    weir__topic_log_error(call->topic, "kind", code, reply);
    if (code == WEIR_OK && (!weir__reply_str(reply, 0, &kind) || kind.len == 0))
        code = WEIR_ENOTFOUND;
    /* hiredis adds a NUL */
    call->fn.kind(code, code == WEIR_OK ? (const char *)kind.ptr : NULL,
                  call->arg);
    weir__mem_free(call);
}

int weir__topic_kind(struct weir__store_topic *topic, weir_kind_fn fn,
                     void *arg)
{
    struct weir__buf bytes = {0};
    struct call *call;
    int rc = call_new(topic, on_kind, arg, &call);

    if (rc < 0)
        return rc;
    call->fn.kind = fn;
    weir__resp_eval(&bytes, &weir__script_external_find, 2, 0);
    weir__prefix_keys(&bytes, &topic->prefix, "meta options");
    weir__place_send(topic->place, &bytes, &weir__script_external_find,
                     WEIR__SEND_AGAIN, &call->request);
    return WEIR_OK;
}

/* --- all topics --------------------------------------------------------- */

enum {
    TOPICS_PAGE = 1000,              /* names, about */
    TOPICS_BYTES = 64 * 1024 * 1024, /* of all names: more than a million */
    TOPICS_PAGES = 20 * 1000,
    CURSOR_MAX = 20
};

/* Names come in pages, some of them twice, and are told sorted. */
struct topic_list {
    struct weir__request request;
    struct weir__redis *store;
    weir_topics_fn fn;
    void *arg;
    struct weir__buf names; /* a NUL behind each */
    size_t count, pages;
};

static void request_topics(struct topic_list *list, struct weir_slice cursor)
{
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, 5);
    weir__resp_str(&bytes, "SSCAN");
    weir__topics_key(&bytes, list->store);
    weir__resp_bytes(&bytes, cursor);
    weir__resp_str(&bytes, "COUNT");
    weir__resp_int(&bytes, TOPICS_PAGE);
    weir__place_send(list->store->topics_place, &bytes, NULL, WEIR__SEND_AGAIN,
                     &list->request);
    weir__place_flush(list->store->topics_place);
}

static int by_bytes(const void *left, const void *right)
{
    const char *const *one = left;
    const char *const *other = right;

    return strcmp(*one, *other);
}

/* All names in order, each once; WEIR_ENOMEM. */
static int tell_topics(const struct topic_list *list)
{
    const char **names =
        weir__mem_grow(NULL, list->count + 1, sizeof(names[0]));
    const char *at = (const char *)list->names.ptr;

    if (names == NULL)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < list->count; i++, at += strlen(at) + 1)
        names[i] = at;
    if (list->count > 1)
        qsort(names, list->count, sizeof(names[0]), by_bytes);
    for (size_t i = 0; i < list->count; i++)
        if (i == 0 || strcmp(names[i - 1], names[i]) != 0)
            list->fn(WEIR_OK, names[i], list->arg);
    weir__mem_free(names);
    return WEIR_OK;
}

/* WEIR_ESERVER: not an answer to SSCAN. */
static int read_topics(struct topic_list *list, const struct redisReply *reply,
                       struct weir_slice *ret_cursor)
{
    struct weir_slice name;

    if (!weir__reply_str(reply, 0, ret_cursor) || ret_cursor->len == 0 ||
        ret_cursor->len > CURSOR_MAX || reply->elements != 2 ||
        reply->element[1]->type != REDIS_REPLY_ARRAY)
        return WEIR_ESERVER;
    for (size_t i = 0; i < (size_t)reply->element[1]->elements; i++) {
        if (!weir__reply_str(reply->element[1], i, &name) ||
            weir__topic_check(name, NULL) < 0)
            continue; /* no topic has such a name */
        weir__buf_append(&list->names, name.ptr, name.len);
        weir__buf_append(&list->names, "", 1);
        list->count++;
    }
    if (list->names.failed)
        return WEIR_ENOMEM;
    return list->names.len > TOPICS_BYTES ? WEIR_ETOOBIG : WEIR_OK;
}

static void on_topics(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct topic_list *list =
        (struct topic_list *)request; /* its first member */
    struct weir_slice cursor;

    if (code == WEIR_OK)
        code = read_topics(list, reply, &cursor);
    if (code == WEIR_OK && !weir__slice_equal(cursor, weir__slice_str("0"))) {
        if (++list->pages < TOPICS_PAGES) {
            request_topics(list, cursor);
            return;
        }
        code = WEIR_ESERVER; /* it has no end */
    }
    if (code == WEIR_OK)
        code = tell_topics(list);
    list->fn(code, NULL, list->arg);
    weir__buf_fini(&list->names);
    weir__mem_free(list);
}

int weir__redis_topics(struct weir__store *port, weir_topics_fn fn, void *arg)
{
    struct weir__redis *store = (struct weir__redis *)port; /* first member */
    struct topic_list *list;

    if (store->is_closed)
        return WEIR_ECANCELED;
    list = weir__mem_new(sizeof(*list));
    if (list == NULL)
        return WEIR_ENOMEM;
    list->request.done = on_topics;
    list->store = store;
    list->fn = fn;
    list->arg = arg;
    request_topics(list, weir__slice_str("0"));
    return WEIR_OK;
}
