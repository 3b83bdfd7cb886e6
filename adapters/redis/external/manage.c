/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/external/private.h"
#include "core/mem.h"
#include "core/text.h"

/* Requests about entries: first where these are, then counts, or calls of a
 * script that deletes some until there are no more. */

enum { PLACE = 4 };

/* --- where the entries are ---------------------------------------------- */

/* A program that only adds or looks has no options of its own: it takes those
 * that are stored with the topic, or what a worker that serves it left in
 * `meta`. */

/* Reply { kind, key stored, group stored, end stored, key served, group served,
 * end served }. */
void weir__external_find(struct weir__external_topic *topic,
                         struct weir__request *request)
{
    struct weir__buf bytes = {0};

    weir__resp_eval(&bytes, &weir__script_external_find, 2, 0);
    weir__prefix_keys(&bytes, &topic->base.prefix, "meta options");
    weir__place_send(topic->base.place, &bytes, &weir__script_external_find,
                     WEIR__SEND_AGAIN, request);
}

/* A text of the reply: stored with the topic, else of its last worker. */
static struct weir_slice text_at(const struct redisReply *reply, size_t at)
{
    struct weir_slice text = {0};

    if (!weir__reply_str(reply, at, &text) || text.len == 0)
        (void)weir__reply_str(reply, at + PLACE, &text);
    return text;
}

/* The end as it is said by the topic's options, else by the reply. */
static bool choose_end(const struct weir__external_topic *topic,
                       const struct redisReply *reply)
{
    return topic->base.options->end == WEIR__RIGHT ||
           weir__slice_equal(text_at(reply, 3), weir__slice_str("right"));
}

/* How bodies are read, in the same way. */
static uint32_t choose_body(const struct weir__external_topic *topic,
                            const struct redisReply *reply)
{
    struct weir_slice text = text_at(reply, 4);
    uint32_t body = WEIR__MSGPACK;

    if (topic->base.options->body != WEIR__AUTO)
        return topic->base.options->body;
    while (body != WEIR__AUTO &&
           !weir__slice_equal(text,
                              weir__slice_str(weir__external_body_names[body])))
        body--;
    return body;
}

static void choose(char *to, const char *served, const struct redisReply *reply,
                   size_t at, const char *usual)
{
    struct weir_slice text = weir__slice_str(served);

    if (text.len == 0)
        text = text_at(reply, at);
    if (text.len == 0)
        text = weir__slice_str(usual);
    if (text.len > WEIR__SOURCE_MAX)
        text.len = WEIR__SOURCE_MAX;
    memcpy(to, text.ptr, text.len);
    to[text.len] = '\0';
}

int weir__external_found(const struct weir__external_topic *topic, int code,
                         const struct redisReply *reply,
                         struct weir__external_place *ret_place)
{
    const char *kind = topic->is_stream ? "stream" : "list";
    struct weir_slice stored;

    if (code != WEIR_OK)
        return code;
    if (!weir__reply_str(reply, 0, &stored))
        return WEIR_ESERVER;
    choose(ret_place->key, topic->base.options->key, reply, 1,
           topic->base.name);
    choose(ret_place->group, topic->base.options->group, reply, 2,
           topic->is_stream ? topic->base.store->url.prefix : "");
    if (!topic->is_stream)
        ret_place->group[0] = '\0';
    ret_place->is_right = choose_end(topic, reply);
    ret_place->body = choose_body(topic, reply);
    code = weir__topic_check_key(&topic->base, weir__slice_str(ret_place->key));
    if (code != WEIR_OK)
        return code;
    if (stored.len == 0)
        return WEIR_ENOTFOUND;
    return weir__slice_equal(stored, weir__slice_str(kind)) ? WEIR_OK
                                                            : WEIR_EKIND;
}

/* --- counts ------------------------------------------------------------- */

static void on_stats_found(struct weir__request *request, int code,
                           const struct redisReply *reply)
{
    struct weir__stats_request *stats =
        (struct weir__stats_request *)request; /* first */
    const struct weir__external_topic *topic =
        (const struct weir__external_topic *)stats->topic;
    struct weir__external_place place;
    struct weir__buf bytes = {0};

    code = weir__external_found(topic, code, reply, &place);
    if (code != WEIR_OK) {
        weir__stats_finish(stats, code);
        return;
    }
    request->done = weir__stats_counted;
    weir__resp_eval(&bytes, &weir__script_external_stats, 8, 1);
    weir__prefix_keys(&bytes, &topic->base.prefix,
                      "meta wait run dead auto relay lease");
    weir__resp_str(&bytes, place.key);
    weir__resp_str(&bytes, place.group);
    weir__place_send(topic->base.place, &bytes, &weir__script_external_stats,
                     WEIR__SEND_AGAIN, request);
    weir__place_flush(topic->base.place);
}

int weir__external_stats(struct weir__store_topic *base, weir_stats_fn fn,
                         void *arg)
{
    struct weir__external_topic *topic = weir__external_topic_of(base);
    struct weir__stats_request *stats = weir__stats_new(base, fn, arg);

    if (stats == NULL)
        return WEIR_ENOMEM;
    stats->request.done = on_stats_found;
    weir__external_find(topic, &stats->request);
    return WEIR_OK;
}

/* --- requests ----------------------------------------------------------- */

struct call {
    struct weir__request request; /* first */
    struct weir__external_topic *topic;
    struct weir__external_place place;
    const struct weir__script *script;
    enum weir__purge what; /* of purge */
    bool forgets;          /* of requeue */
    size_t id_len;
    char id[WEIR_MAX_ID];
    uint64_t count;
    weir_count_fn counted;
    void *arg;
};

static void finish(struct call *call, int code)
{
    if (call->counted != NULL)
        call->counted(code, call->count, call->arg);
    weir__mem_free(call);
}

/* --- counting and deleting ---------------------------------------------- */

static void on_step(struct weir__request *request, int code,
                    const struct redisReply *reply);

static void send_step(struct call *call)
{
    bool is_purge = call->script == &weir__script_external_purge;
    struct weir__buf bytes = {0};

    call->request.done = on_step;
    weir__resp_eval(&bytes, call->script, is_purge ? 10 : 6, 2);
    weir__prefix_keys(&bytes, &call->topic->base.prefix,
                      is_purge ? "meta wait run lease held past dead auto"
                               : "meta wait held past dead");
    if (is_purge) {
        weir__resp_str(&bytes, call->place.key);
        weir__prefix_key(&bytes, &call->topic->base.prefix, "absent");
        weir__resp_str(&bytes, call->place.group);
        weir__resp_int(&bytes, call->what == WEIR__PURGE_DEAD);
    } else {
        weir__prefix_key(&bytes, &call->topic->base.prefix, "absent");
        weir__resp_bytes(&bytes, weir__slice_of(call->id, call->id_len));
        weir__resp_int(&bytes, call->forgets);
    }
    weir__place_send(call->topic->base.place, &bytes, call->script,
                     WEIR__SEND_AGAIN, &call->request);
    weir__place_flush(call->topic->base.place);
}

static void on_step(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    struct call *call = (struct call *)request; /* its first member */
    int64_t count = 0, has_more = 0;

    weir__topic_log_error(&call->topic->base, call->script->name, code, reply);
    if (code == WEIR_OK && (!weir__reply_int(reply, 1, &count) ||
                            !weir__reply_int(reply, 2, &has_more)))
        code = WEIR_ESERVER;
    call->count += (uint64_t)count;
    if (code == WEIR_OK && has_more != 0)
        send_step(call);
    else if (code == WEIR_OK && call->id_len > 0 && call->count == 0)
        finish(call, WEIR_ENOTFOUND);
    else
        finish(call, code);
}

static void on_found(struct weir__request *request, int code,
                     const struct redisReply *reply)
{
    struct call *call = (struct call *)request; /* its first member */

    code = weir__external_found(call->topic, code, reply, &call->place);
    if (code == WEIR_OK)
        send_step(call);
    else
        finish(call, code);
}

static int begin(struct weir__store_topic *base, const struct call *what)
{
    struct call *call = weir__mem_new(sizeof(*call));

    if (call == NULL)
        return WEIR_ENOMEM;
    *call = *what;
    call->request.done = on_found;
    call->topic = weir__external_topic_of(base);
    weir__external_find(call->topic, &call->request);
    return WEIR_OK;
}

int weir__external_purge(struct weir__store_topic *topic, enum weir__purge what,
                         weir_count_fn fn, void *arg)
{
    const struct call call = {.script = &weir__script_external_purge,
                              .what = what,
                              .counted = fn,
                              .arg = arg};

    return begin(topic, &call);
}

static int begin_dead(struct weir__store_topic *topic, struct weir_slice id,
                      bool forgets, weir_count_fn fn, void *arg)
{
    struct call call = {.script = &weir__script_external_requeue,
                        .forgets = forgets,
                        .id_len = id.len,
                        .counted = fn,
                        .arg = arg};

    if (id.len > sizeof(call.id))
        return WEIR_EINVAL;
    if (id.len > 0)
        memcpy(call.id, id.ptr, id.len);
    return begin(topic, &call);
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
