/* SPDX-License-Identifier: MIT */
#include "tests/model/listen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/script.h"
#include "tests/model/heard.h"
#include "tests/model/tree.h"

enum { ALIASES = 64 };

struct listener {
    struct server *server;
    struct server_watch watch;
    const char *only; /* NULL: all topics */
    struct {
        char sha1[41];
        const struct weir__script *script;
    } aliases[ALIASES];
    size_t alias_count;
    redisReader *reader;
    struct heard_topic *topics;
    struct call_heard call; /* that runs; topic NULL: none that is judged */
    const struct script *script;
    uint64_t calls;
};

static const struct script {
    const struct weir__script *script;
    void (*before)(struct call_heard *call); /* NULL: nothing to look at */
    void (*after)(struct call_heard *call);
    bool wakes; /* a worker, for jobs that begin to wait */
} scripts[] = {
    {&weir__script_delay_add, drafts_of_add, heard_add, true},
    {&weir__script_delay_add_one, drafts_of_add_one, heard_add_one, true},
    {&weir__script_delay_add_keyed, drafts_of_add_keyed, heard_add_keyed, true},
    {&weir__script_delay_claim, NULL, heard_claim, false},
    {&weir__script_delay_settle, drafts_of_settle, heard_settle, true},
    {&weir__script_delay_settle_one, NULL, heard_settle_one, false},
    {&weir__script_delay_renew, NULL, heard_renew, false},
    {&weir__script_delay_start, NULL, heard_start, false},
    {&weir__script_delay_slot, NULL, heard_slot, false},
    {&weir__script_delay_requeue, drafts_of_requeue, heard_requeue, true},
    {&weir__script_delay_forget, NULL, heard_forget, false},
    {&weir__script_delay_purge, drafts_of_purge, heard_purge, false},
    {&weir__script_delay_undeliverable, drafts_of_undeliverable,
     heard_undeliverable, false},
    {&weir__script_delay_stats, NULL, heard_stats, false},
    {&weir__script_store_pause, NULL, heard_pause, false},
};
enum { SCRIPTS = sizeof(scripts) / sizeof(scripts[0]) };

static const struct script *script_of(const struct listener *listener,
                                      struct slice sha1)
{
    for (size_t i = 0; i < listener->alias_count; i++)
        if (heard_is(sha1, listener->aliases[i].sha1)) {
            const char *original = listener->aliases[i].script->sha1;

            sha1 = (struct slice){original, strlen(original)};
        }
    for (size_t i = 0; i < SCRIPTS; i++)
        if (heard_is(sha1, scripts[i].script->sha1))
            return &scripts[i];
    return NULL;
}

void listen_alias(struct listener *listener, const char *sha1,
                  const struct weir__script *script)
{
    if (listener->alias_count == ALIASES)
        server_fail("the listener knows %d names of scripts", ALIASES);
    listener->aliases[listener->alias_count].script = script;
    memcpy(listener->aliases[listener->alias_count++].sha1, sha1, 41);
}

/* By a key: "weir:{NAME}:...". */
static struct heard_topic *topic_of(struct listener *listener, struct slice key)
{
    const char *end = memchr(key.ptr, '}', key.len);
    struct heard_topic *topic = listener->topics;
    char prefix[64], name[64];
    size_t len = end == NULL ? 0 : (size_t)(end - key.ptr) + 2;

    if (end == NULL || len >= sizeof(prefix))
        server_fail("a key is none of a topic: %.*s", (int)key.len, key.ptr);
    memcpy(prefix, key.ptr, len);
    prefix[len] = '\0';
    while (topic != NULL && strcmp(topic->prefix, prefix) != 0)
        topic = topic->next;
    if (topic != NULL)
        return topic;
    topic = calloc(1, sizeof(*topic));
    if (topic == NULL)
        server_fail("the listener has no memory for a topic");
    memcpy(topic->prefix, prefix, len + 1);
    (void)snprintf(name, sizeof(name), "%.*s", (int)(end - key.ptr) - 6,
                   key.ptr + 6);
    topic->model = topic_new(name);
    topic->next = listener->topics;
    listener->topics = topic;
    return topic;
}

static bool ends_with(struct slice key, const char *end)
{
    size_t len = strlen(end);

    return key.len > len && memcmp(key.ptr + key.len - len, end, len) == 0;
}

/* A test writes when a lease ends: ZADD KEY XX DEADLINE TOKEN. A worker that
 * stops does not sleep any more: ZREM KEY WORKER. */
static void hear_write(struct listener *listener, const struct slice *words,
                       size_t count)
{
    struct lease *lease = NULL;
    char *worker;

    if (count == 5 && heard_is(words[0], "ZADD") &&
        ends_with(words[1], ":lease")) {
        lease = topic_lease(topic_of(listener, words[1])->model,
                            (uint64_t)heard_int(words[4]));
    } else if (count == 3 && heard_is(words[0], "ZREM") &&
               ends_with(words[1], ":idle")) {
        worker = heard_text(words[2]);
        topic_awake(topic_of(listener, words[1])->model, worker);
        free(worker);
    }
    if (lease != NULL)
        lease->deadline_ms = heard_int(words[3]);
}

static void before(void *arg, const struct slice *words, size_t count)
{
    struct listener *listener = arg;
    struct call_heard *call = &listener->call;

    *call = (struct call_heard){.server = listener->server};
    hear_write(listener, words, count);
    listener->script = count > 3 && heard_is(words[0], "EVALSHA")
                           ? script_of(listener, words[1])
                           : NULL;
    if (listener->script == NULL)
        return;
    call->key_count = (size_t)heard_int(words[2]);
    call->keys = words + 3;
    call->args = words + 3 + call->key_count;
    call->arg_count = count - 3 - call->key_count;
    call->topic = topic_of(listener, call->keys[0]);
    if (listener->only != NULL &&
        strcmp(call->topic->model->name, listener->only) != 0) {
        listener->script = NULL;
        return;
    }
    call->now_ms = server_time(listener->server) / 1000;
    if (call->now_ms < call->topic->model->now_ms)
        call->topic->model->was_set_back = true;
    call->topic->model->now_ms = call->now_ms;
    if (listener->script->before != NULL)
        listener->script->before(call);
}

/* The server says it, so the listener need not read options. */
static void read_max_pending(const struct call_heard *call)
{
    const struct entry *entry = heard_meta(call, "max_pending");

    call->topic->model->max_pending =
        entry == NULL ? 0 : heard_int(entry_value(entry));
}

/* Which worker has to be woken follows from due times alone. */
static bool are_wakes_known(const struct call_heard *call)
{
    return !heard_has_limits(call) && heard_meta(call, "lanes") == NULL;
}

/* A wake-up names a pack if the worker finds nothing else. */
static void judge_name(const struct call_heard *call)
{
    const struct topic *model = call->topic->model;
    const struct pack *pack =
        call->named[0] == '\0' ? NULL : heard_pack(call, call->named);
    size_t jobs = 0;

    for (unsigned slot = 0; pack != NULL && slot < pack->count; slot++)
        jobs += pack->jobs[slot] != NULL;
    if (call->named[0] != '\0' &&
        (jobs != model->entered || model->entered_ms > model->now_ms))
        topic_problem(call->topic->model,
                      "a wake-up names pack %s, with %zu of %zu jobs, due at "
                      "%lld",
                      call->named, jobs, model->entered,
                      (long long)model->entered_ms);
}

static void free_drafts(struct call_heard *call)
{
    for (size_t i = 0; i < call->draft_count; i++)
        for (unsigned slot = 0; slot < call->drafts[i].count; slot++)
            free(call->drafts[i].ids[slot]);
    free(call->drafts);
    call->drafts = NULL;
    call->draft_count = 0;
}

static void after(void *arg, const struct slice *words, size_t count,
                  struct slice reply)
{
    struct listener *listener = arg;
    struct call_heard *call = &listener->call;
    void *read = NULL;

    (void)words;
    (void)count;
    if (listener->script == NULL)
        return;
    if (redisReaderFeed(listener->reader, reply.ptr, reply.len) != REDIS_OK ||
        redisReaderGetReply(listener->reader, &read) != REDIS_OK ||
        read == NULL)
        server_fail("the listener cannot read an answer");
    call->reply = read;
    read_max_pending(call);
    /* An error says that nothing was done, which the walk proves. */
    if (call->reply->type != REDIS_REPLY_ERROR)
        listener->script->after(call);
    if (listener->script->wakes && are_wakes_known(call))
        topic_judge_wakes(call->topic->model, call->topic->model->entered_ms);
    judge_name(call);
    topic_end_call(call->topic->model);
    listener->calls++;
    freeReplyObject(read);
    free_drafts(call);
}

/* The topic of a message: "TOPIC", "TOPIC PACK", or what hands a job over. */
static struct topic *topic_named(const struct listener *listener,
                                 struct slice message)
{
    const char *blank = memchr(message.ptr, ' ', message.len);
    size_t len = blank == NULL ? message.len : (size_t)(blank - message.ptr);

    for (struct heard_topic *topic = listener->topics; topic != NULL;
         topic = topic->next)
        if (strlen(topic->model->name) == len &&
            memcmp(topic->model->name, message.ptr, len) == 0)
            return topic->model;
    return NULL;
}

static void published(void *arg, struct slice channel, struct slice message,
                      int64_t count)
{
    static const char wake[] = "weir:wake:";
    struct listener *listener = arg;
    struct topic *model = topic_named(listener, message);
    size_t len = sizeof(wake) - 1, named_len;
    char *name;

    if (model == NULL || channel.len <= len ||
        memcmp(channel.ptr, wake, len) != 0)
        return;
    named_len = strlen(model->name) + 1 + SEQ_LEN;
    name = topic_text(channel.ptr + len, channel.len - len);
    if (listener->script != NULL && message.len <= named_len)
        topic_tell(model, name, count > 0);
    else if (count > 0)
        topic_awake(model, name); /* it is handed a job, or managed */
    if (listener->script != NULL && message.len > named_len) {
        (void)snprintf(listener->call.handed, sizeof(listener->call.handed),
                       "%.*s", (int)message.len, message.ptr); /* cut */
        (void)snprintf(listener->call.handed_to,
                       sizeof(listener->call.handed_to), "%s", name); /* fits */
    }
    if (message.len == named_len)
        memcpy(listener->call.named, message.ptr + message.len - SEQ_LEN,
               SEQ_LEN);
    free(name);
}

struct listener *listen_open(struct server *server, const char *only)
{
    struct listener *listener = calloc(1, sizeof(*listener));

    if (listener == NULL)
        server_fail("there is no memory for a listener");
    listener->server = server;
    listener->only = only;
    listener->reader = redisReaderCreate();
    if (listener->reader == NULL)
        server_fail("there is no memory for a listener");
    listener->watch = (struct server_watch){before, after, published, listener};
    server_watch(server, &listener->watch);
    return listener;
}

void listen_close(struct listener *listener)
{
    server_watch(listener->server, NULL);
    while (listener->topics != NULL) {
        struct heard_topic *topic = listener->topics;

        listener->topics = topic->next;
        tree_free(&topic->packs, free);
        topic_free(topic->model);
        free(topic);
    }
    redisReaderFree(listener->reader);
    free(listener);
}

void listen_walk(struct listener *listener)
{
    for (struct heard_topic *topic = listener->topics; topic != NULL;
         topic = topic->next) {
        struct call_heard call = {.server = listener->server, .topic = topic};

        if (listener->only != NULL &&
            strcmp(topic->model->name, listener->only) != 0)
            continue;
        call.now_ms = server_time(listener->server) / 1000;
        topic->model->now_ms = call.now_ms;
        heard_walk(&call);
    }
}

const char *listen_problem(const struct listener *listener)
{
    for (const struct heard_topic *topic = listener->topics; topic != NULL;
         topic = topic->next)
        if (topic->model->problem[0] != '\0')
            return topic->model->problem;
    return "";
}

uint64_t listen_calls(const struct listener *listener)
{
    return listener->calls;
}
