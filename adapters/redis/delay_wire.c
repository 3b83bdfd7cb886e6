/* SPDX-License-Identifier: MIT */
#include "adapters/redis/delay_wire.h"

#include <stdio.h>
#include <string.h>

#include "core/assert.h"

void weir__topic_name(struct weir__store_topic *topic, struct weir_slice name)
{
    int len;

    WEIR_ASSERT(name.len < sizeof(topic->name));
    memcpy(topic->name, name.ptr, name.len);
    topic->name[name.len] = '\0';
    len = snprintf(topic->prefix, sizeof(topic->prefix),
                   "weir:{%s}:", topic->name);
    WEIR_ASSERT(len > 0 && (size_t)len < sizeof(topic->prefix));
    topic->prefix_len = (size_t)len;
}

int64_t weir__digits_read(struct weir_slice digits)
{
    int64_t number = 0;

    for (size_t i = 0; i < digits.len && i < 18; i++)
        number = number * 10 + (digits.ptr[i] - '0');
    return number;
}

size_t weir__topic_bucket(struct weir_slice name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ name.ptr[i]) * UINT64_C(0x100000001b3);
    return (size_t)(hash ^ hash >> 32);
}

void weir__wake_channel(char *buf, size_t cap, const char *worker)
{
    int len = snprintf(buf, cap, "weir:wake:%s", worker);

    WEIR_ASSERT(len > 0 && (size_t)len < cap);
}

void weir__delay_eval(struct weir__buf *buf, const struct weir__script *script,
                      size_t keys, size_t args)
{
    weir__resp_command(buf, 3 + keys + args);
    weir__resp_str(buf, "EVALSHA");
    weir__resp_str(buf, script->sha1);
    weir__resp_int(buf, (int64_t)keys);
}

static void append_key(struct weir__buf *buf,
                       const struct weir__store_topic *topic, const char *name,
                       size_t len)
{
    char key[WEIR__KEY_MAX];

    WEIR_ASSERT(topic->prefix_len + len <= sizeof(key));
    memcpy(key, topic->prefix, topic->prefix_len);
    memcpy(key + topic->prefix_len, name, len);
    weir__resp_bytes(buf, (struct weir_slice){(const uint8_t *)key,
                                              topic->prefix_len + len});
}

void weir__topic_key(struct weir__buf *buf,
                     const struct weir__store_topic *topic, const char *name)
{
    append_key(buf, topic, name, strlen(name));
}

void weir__topic_keys(struct weir__buf *buf,
                      const struct weir__store_topic *topic, const char *names)
{
    while (*names != '\0') {
        size_t len = strcspn(names, " ");

        append_key(buf, topic, names, len);
        names += len + (names[len] == ' ');
    }
}

void weir__topic_pack_key(struct weir__buf *buf,
                          const struct weir__store_topic *topic,
                          const char *seq)
{
    char name[2 + WEIR__SEQ_LEN] = "p:";

    memcpy(name + 2, seq, WEIR__SEQ_LEN);
    append_key(buf, topic, name, sizeof(name));
}

static const struct redisReply *element(const struct redisReply *reply,
                                        size_t index, int type)
{
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY ||
        index >= (size_t)reply->elements || reply->element[index] == NULL ||
        reply->element[index]->type != type)
        return NULL;
    return reply->element[index];
}

bool weir__reply_int(const struct redisReply *reply, size_t index,
                     int64_t *ret_value)
{
    const struct redisReply *one = element(reply, index, REDIS_REPLY_INTEGER);

    if (one == NULL)
        return false;
    *ret_value = one->integer;
    return true;
}

bool weir__reply_str(const struct redisReply *reply, size_t index,
                     struct weir_slice *ret_value)
{
    const struct redisReply *one = element(reply, index, REDIS_REPLY_STRING);

    if (one == NULL)
        return false;
    *ret_value =
        (struct weir_slice){(const uint8_t *)one->str, (size_t)one->len};
    return true;
}

void weir__topic_log_error(const struct weir__store_topic *topic,
                           const char *what, int code,
                           const struct redisReply *reply)
{
    const char *text = code == WEIR_ESERVER && reply != NULL &&
                               reply->type == REDIS_REPLY_ERROR
                           ? reply->str
                           : weir_error_text(code);

    if (code != WEIR_OK && code != WEIR_ECANCELED)
        weir__log(topic->store->options.log, WEIR_LEVEL_WARN,
                  "redis: %s %s: %s", topic->name, what, text);
}
