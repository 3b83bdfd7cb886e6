/* SPDX-License-Identifier: MIT */
#include "adapters/redis/reply.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

#define TIME_MAX_US (INT64_C(1) << 53) /* the year 2255 */

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

bool weir__reply_time(const struct redisReply *reply, size_t index,
                      int64_t *ret_us)
{
    const struct redisReply *one = element(reply, index, REDIS_REPLY_INTEGER);

    if (one == NULL || one->integer < 0 || one->integer > TIME_MAX_US)
        return false;
    *ret_us = one->integer;
    return true;
}

bool weir__reply_clock(const struct redisReply *reply, int64_t *ret_ms)
{
    struct weir_slice seconds, us;
    long long s, rest;

    if (!weir__reply_str(reply, 0, &seconds) || !weir__reply_str(reply, 1, &us))
        return false;
    s = strtoll((const char *)seconds.ptr, NULL, 10);
    rest = strtoll((const char *)us.ptr, NULL, 10);
    if (s < 0 || s > TIME_MAX_US / 1000000 || rest < 0 || rest > 999999)
        return false;
    *ret_ms = s * 1000 + rest / 1000;
    return true;
}

static int by_name(const void *left, const void *right)
{
    const struct weir__setting *one = left, *other = right;

    /* hiredis adds a NUL */
    return strcmp((const char *)one->name.ptr, (const char *)other->name.ptr);
}

struct weir__setting *weir__settings_read(const struct redisReply *reply,
                                          size_t *ret_count)
{
    size_t most = (size_t)reply->elements / 2, count = 0;
    struct weir__setting *settings =
        weir__mem_grow(NULL, most + 1, sizeof(settings[0]));

    if (settings == NULL)
        return NULL;
    for (size_t i = 0; i < most; i++)
        if (weir__reply_str(reply, 2 * i, &settings[count].name) &&
            weir__reply_str(reply, 2 * i + 1, &settings[count].value))
            count++;
    if (count > 1)
        qsort(settings, count, sizeof(settings[0]), by_name);
    *ret_count = count;
    return settings;
}
