/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/store/kind.h"
#include "core/text.h"

/* Of the stored options, those that concern who adds. They are read before the
 * first add of each connection, since what another one said may be old. */

static size_t max_body_of(const struct redisReply *reply)
{
    struct weir_slice text;
    int64_t bytes;

    return weir__reply_str(reply, 0, &text) &&
                   weir__size_parse(text, &bytes, NULL) == WEIR_OK && bytes > 0
               ? (size_t)bytes
               : WEIR_MAX_BODY;
}

static void log_ignored(const struct weir__store_topic *topic,
                        const struct weir_error *err)
{
    const struct weir_log_line about = {
        .level = WEIR_LEVEL_WARN, .topic = topic->name, .event = "ignored"};

    weir__log_about(topic->store->options.log, &about,
                    "the stored option is ignored: %s", err->text);
}

/* What is stored beats what the topic is served with, but for what is pinned.
 */
static uint32_t durability_of(const struct weir__store_topic *topic,
                              const struct redisReply *reply)
{
    const struct weir__option *row =
        &weir__topic_options[WEIR__TOPIC_durability];
    const struct weir__options *options = topic->options;
    struct weir_error err = {0};
    struct weir_slice text;
    int64_t value;

    if ((options->pinned >> WEIR__TOPIC_durability & 1) != 0 ||
        !weir__reply_str(reply, 1, &text))
        return options->durability;
    if (weir__option_read(row, (const char *)text.ptr, &value, &err) == WEIR_OK)
        return (uint32_t)value;
    log_ignored(topic, &err);
    return options->durability;
}

static const char *text_at(const struct redisReply *reply, size_t i)
{
    struct weir_slice text;

    return weir__reply_str(reply, i, &text) ? (const char *)text.ptr : NULL;
}

/* Without "body."; it was checked, and so it fits. */
static void keep_path(char copy[129], const char *path)
{
    path += strlen(path) > strlen("body") ? strlen("body.") : strlen("body");
    memcpy(copy, path, strlen(path) + 1);
}

/* Jobs have no unique keys where the rule is wrong. */
static void read_unique(struct weir__store_topic *topic,
                        const struct redisReply *reply)
{
    const struct weir__key_texts texts = {
        .hold = text_at(reply, 3),
        .otherwise = text_at(reply, 4),
        .max_wait = text_at(reply, 5),
        .names = {"unique_for", "unique_else", "max_wait"},
    };
    struct weir__limits *limits = &topic->limits;
    const char *path = text_at(reply, 2);
    struct weir_error err = {0};
    int rc;

    limits->is_unique = false;
    if (path == NULL)
        return;
    rc = weir__option_check(&weir__topic_options[WEIR__TOPIC_unique], path,
                            &err);
    if (rc == WEIR_OK)
        rc = weir__key_rule_read(&texts, &limits->rule, &err);
    if (rc < 0) {
        log_ignored(topic, &err);
        return;
    }
    limits->is_unique = true;
    keep_path(limits->unique, path);
}

static void read_key(struct weir__store_topic *topic,
                     const struct redisReply *reply)
{
    const char *path = text_at(reply, 6);
    struct weir_error err = {0};

    topic->limits.has_key = false;
    if (path == NULL)
        return;
    if (weir__option_check(&weir__topic_options[WEIR__TOPIC_unique], path,
                           &err) < 0) {
        log_ignored(topic, &err);
        return;
    }
    topic->limits.has_key = true;
    keep_path(topic->limits.key, path);
}

static void on_limits(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct weir__limits *limits = (struct weir__limits *)request; /* first */
    struct weir__store_topic *topic = limits->topic;

    limits->is_asked = false;
    if (code != WEIR_OK) {
        topic->kind->fail_adds(topic, code);
        return;
    }
    limits->max_body = max_body_of(reply);
    limits->durability = durability_of(topic, reply);
    read_unique(topic, reply);
    read_key(topic, reply);
    limits->connection = topic->place->server->connection;
    limits->read_ns = weir__redis_now_ns(topic->store);
    weir__topic_mark(topic);
}

bool weir__limits_known(struct weir__store_topic *topic)
{
    static const char *const names[] = {"max_body",   "durability",  "unique",
                                        "unique_for", "unique_else", "max_wait",
                                        "key"};
    const size_t count = sizeof(names) / sizeof(names[0]);
    struct weir__limits *limits = &topic->limits;
    const struct weir__server *server = topic->place->server;
    struct weir__buf bytes = {0};

    if (limits->is_asked ||
        (server->is_up && limits->connection == server->connection))
        return !limits->is_asked;
    limits->request.done = on_limits;
    limits->topic = topic;
    limits->is_asked = true;
    weir__prefix_command(&bytes, &topic->prefix, 2 + count, "HMGET", "options");
    for (size_t i = 0; i < count; i++)
        weir__resp_str(&bytes, names[i]);
    weir__place_send(topic->place, &bytes, NULL, WEIR__SEND_AGAIN,
                     &limits->request);
    return false;
}
