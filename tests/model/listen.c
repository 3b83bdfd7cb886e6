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
} scripts[] = {
    {&weir__script_delay_add, drafts_of_add, heard_add},
    {&weir__script_delay_add_one, drafts_of_add_one, heard_add_one},
    {&weir__script_delay_add_keyed, drafts_of_add_keyed, heard_add_keyed},
    {&weir__script_delay_claim, NULL, heard_claim},
    {&weir__script_delay_settle, drafts_of_settle, heard_settle},
    {&weir__script_delay_settle_one, NULL, heard_settle_one},
    {&weir__script_delay_renew, NULL, heard_renew},
    {&weir__script_delay_start, NULL, heard_start},
    {&weir__script_delay_slot, NULL, heard_slot},
    {&weir__script_delay_requeue, drafts_of_requeue, heard_requeue},
    {&weir__script_delay_forget, NULL, heard_forget},
    {&weir__script_delay_purge, drafts_of_purge, heard_purge},
    {&weir__script_delay_undeliverable, drafts_of_undeliverable,
     heard_undeliverable},
    {&weir__script_store_pause, NULL, heard_pause},
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

/* A test writes when a lease ends: ZADD KEY XX DEADLINE TOKEN. */
static void hear_write(struct listener *listener, const struct slice *words,
                       size_t count)
{
    const struct heard_topic *topic = topic_of(listener, words[1]);
    struct lease *lease;

    if (count != 5 || words[1].len < 6 ||
        memcmp(words[1].ptr + words[1].len - 6, ":lease", 6) != 0)
        return;
    lease = topic_lease(topic->model, (uint64_t)heard_int(words[4]));
    if (lease != NULL)
        lease->deadline_ms = heard_int(words[3]);
}

static void before(void *arg, const struct slice *words, size_t count)
{
    struct listener *listener = arg;
    struct call_heard *call = &listener->call;

    *call = (struct call_heard){.server = listener->server};
    if (heard_is(words[0], "ZADD"))
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
    call->topic->model->now_ms = call->now_ms;
    if (listener->script->before != NULL)
        listener->script->before(call);
}

/* The server says it, so the listener need not read options. */
static void look_at_max_pending(const struct call_heard *call)
{
    const struct object *meta = heard_object(call, "meta");
    const struct entry *entry =
        meta == NULL
            ? NULL
            : table_find(&meta->table, (struct slice){"max_pending", 11});

    call->topic->model->max_pending =
        entry == NULL ? 0 : heard_int(entry_value(entry));
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
    look_at_max_pending(call);
    /* An error says that nothing was done, which the walk proves. */
    if (call->reply->type != REDIS_REPLY_ERROR)
        listener->script->after(call);
    listener->calls++;
    freeReplyObject(read);
    free_drafts(call);
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
    server_watch(server, before, after, listener);
    return listener;
}

void listen_close(struct listener *listener)
{
    server_watch(listener->server, NULL, NULL, NULL);
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
        topic->model->now_ms = server_time(listener->server) / 1000;
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
