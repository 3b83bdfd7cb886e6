/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/external/private.h"
#include "core/mem.h"
#include "core/text.h"

/* Deleting entries, and what becomes of the dead: calls of a script until it
 * says that there is no more. */

struct count_request {
    struct weir__request request;
    struct weir__external_topic *topic;
    struct weir__external_place place;
    const struct weir__script *script;
    enum weir__purge what; /* of purge */
    bool forgets;          /* of requeue */
    size_t id_len;
    char id[WEIR_MAX_ID];
    uint64_t count;
    weir_count_fn fn;
    void *arg;
};

static void send_step(struct count_request *asked)
{
    bool is_purge = asked->script == &weir__script_external_purge;
    struct weir__buf bytes = {0};

    weir__resp_eval(&bytes, asked->script, is_purge ? 9 : 5, 2);
    weir__prefix_keys(&bytes, &asked->topic->base.prefix,
                      is_purge ? "meta wait run lease held past dead auto"
                               : "meta wait held past dead");
    if (is_purge) {
        weir__resp_str(&bytes, asked->place.key);
        weir__resp_str(&bytes, asked->place.group);
        weir__resp_int(&bytes, asked->what == WEIR__PURGE_DEAD);
    } else {
        weir__resp_bytes(&bytes, weir__slice_of(asked->id, asked->id_len));
        weir__resp_int(&bytes, asked->forgets);
    }
    weir__redis_send(asked->topic->base.store, &bytes, asked->script,
                     WEIR__SEND_AGAIN, &asked->request);
    weir__conn_flush(asked->topic->base.store->commands);
}

static void finish(struct count_request *asked, int code)
{
    if (asked->fn != NULL)
        asked->fn(code, asked->count, asked->arg);
    weir__mem_free(asked);
}

static void on_step(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    struct count_request *asked =
        (struct count_request *)request; /* its first member */
    int64_t count = 0, has_more = 0;

    weir__topic_log_error(&asked->topic->base, asked->script->name, code,
                          reply);
    if (code == WEIR_OK && (!weir__reply_int(reply, 1, &count) ||
                            !weir__reply_int(reply, 2, &has_more)))
        code = WEIR_ESERVER;
    asked->count += (uint64_t)count;
    if (code == WEIR_OK && has_more != 0)
        send_step(asked);
    else if (code == WEIR_OK && asked->id_len > 0 && asked->count == 0)
        finish(asked, WEIR_ENOTFOUND);
    else
        finish(asked, code);
}

static void on_found(struct weir__request *request, int code,
                     const struct redisReply *reply)
{
    struct count_request *asked =
        (struct count_request *)request; /* its first member */

    code = weir__external_found(asked->topic, code, reply, &asked->place);
    if (code != WEIR_OK) {
        finish(asked, code);
        return;
    }
    asked->request.done = on_step;
    send_step(asked);
}

static int begin(struct weir__store_topic *base,
                 const struct count_request *what)
{
    struct weir__external_topic *topic = weir__external_topic_of(base);
    struct count_request *asked;

    if (topic->base.store->is_closed)
        return WEIR_ECANCELED;
    asked = weir__mem_new(sizeof(*asked));
    if (asked == NULL)
        return WEIR_ENOMEM;
    *asked = *what;
    asked->request.done = on_found;
    asked->topic = topic;
    weir__external_find(topic, &asked->request);
    return WEIR_OK;
}

int weir__external_purge(struct weir__store_topic *topic, enum weir__purge what,
                         weir_count_fn fn, void *arg)
{
    struct count_request asked = {.script = &weir__script_external_purge,
                                  .what = what,
                                  .fn = fn,
                                  .arg = arg};

    return begin(topic, &asked);
}

static int begin_dead(struct weir__store_topic *topic, struct weir_slice id,
                      bool forgets, weir_count_fn fn, void *arg)
{
    struct count_request asked = {.script = &weir__script_external_requeue,
                                  .forgets = forgets,
                                  .id_len = id.len,
                                  .fn = fn,
                                  .arg = arg};

    if (id.len > sizeof(asked.id))
        return WEIR_EINVAL;
    if (id.len > 0)
        memcpy(asked.id, id.ptr, id.len);
    return begin(topic, &asked);
}

int weir__external_requeue(struct weir__store_topic *topic,
                           struct weir_slice id, weir_count_fn fn, void *arg)
{
    return begin_dead(topic, id, false, fn, arg);
}

int weir__external_forget(struct weir__store_topic *topic, struct weir_slice id,
                          weir_count_fn fn, void *arg)
{
    return begin_dead(topic, id, true, fn, arg);
}
