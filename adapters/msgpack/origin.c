/* SPDX-License-Identifier: MIT */
#include "adapters/msgpack/origin.h"

#include <string.h>

#include "adapters/msgpack/scan.h"
#include "core/text.h"

enum { STR8 = 0xd9, UINT64 = 0xcf, MAP16 = 0xde, ENTRIES = 5 };

static const char *const names[ENTRIES] = {
    "weir.topic", "weir.id", "weir.token", "weir.died_ms", "weir.error",
};

static void put_str(struct weir__buf *buf, struct weir_slice text)
{
    uint8_t len = text.len > UINT8_MAX ? UINT8_MAX : (uint8_t)text.len;
    uint8_t head[2] = {STR8, len};

    weir__buf_append(buf, head, sizeof(head));
    weir__buf_append(buf, text.ptr, len);
}

static void put_uint(struct weir__buf *buf, uint64_t number)
{
    uint8_t bytes[9] = {UINT64};

    for (size_t i = sizeof(bytes) - 1; i > 0; i--, number >>= 8)
        bytes[i] = (uint8_t)(number & 0xff);
    weir__buf_append(buf, bytes, sizeof(bytes));
}

bool weir__origin_write(struct weir__buf *buf, const struct weir_origin *origin,
                        struct weir_slice headers)
{
    struct weir_value old = {.type = WEIR_TYPE_MAP};
    size_t head = headers.len > 0 ? weir__msgpack_head(headers, &old) : 0;
    size_t count = old.type == WEIR_TYPE_MAP ? old.as.count : 0;
    uint8_t map[3] = {MAP16};

    if (count + ENTRIES > UINT16_MAX)
        return false;
    map[1] = (uint8_t)((count + ENTRIES) >> 8);
    map[2] = (uint8_t)(count + ENTRIES);
    weir__buf_append(buf, map, sizeof(map));
    put_str(buf, weir__slice_str(names[0]));
    put_str(buf, origin->topic);
    put_str(buf, weir__slice_str(names[1]));
    put_str(buf, origin->id);
    put_str(buf, weir__slice_str(names[2]));
    put_uint(buf, origin->token);
    put_str(buf, weir__slice_str(names[3]));
    put_uint(buf, (uint64_t)origin->died_ms);
    put_str(buf, weir__slice_str(names[4]));
    put_str(buf, origin->error);
    if (old.type == WEIR_TYPE_MAP && headers.len > head)
        weir__buf_append(buf, headers.ptr + head, headers.len - head);
    return true;
}

static void take(struct weir_origin *origin, struct weir_slice name,
                 const struct weir_value *value)
{
    size_t i = 0;

    while (i < ENTRIES && !weir__slice_equal(name, weir__slice_str(names[i])))
        i++;
    if (value->type == WEIR_TYPE_STR && i == 0)
        origin->topic = value->as.bytes;
    else if (value->type == WEIR_TYPE_STR && i == 1)
        origin->id = value->as.bytes;
    else if (value->type == WEIR_TYPE_INT && value->as.i64 >= 0 && i == 2)
        origin->token = (uint64_t)value->as.i64;
    else if (value->type == WEIR_TYPE_INT && value->as.i64 >= 0 && i == 3)
        origin->died_ms = value->as.i64;
    else if (value->type == WEIR_TYPE_STR && i == 4)
        origin->error = value->as.bytes;
}

/* The value at the start of `bytes` and its length; 0: broken. */
static size_t next(struct weir_slice bytes, struct weir_value *ret_value)
{
    size_t len = weir__msgpack_length(bytes);

    if (len > 0)
        (void)weir__msgpack_head(bytes, ret_value);
    return len;
}

bool weir__origin_read(struct weir_slice headers,
                       struct weir_origin *ret_origin)
{
    struct weir_origin origin = {0};
    struct weir_value map, name, value;
    size_t pos = weir__msgpack_head(headers, &map);

    if (map.type != WEIR_TYPE_MAP)
        return false;
    for (size_t i = 0; i < map.as.count; i++) {
        size_t len =
            next(weir__slice_of(headers.ptr + pos, headers.len - pos), &name);

        pos += len;
        if (len > 0)
            len = next(weir__slice_of(headers.ptr + pos, headers.len - pos),
                       &value);
        pos += len;
        if (len == 0)
            return false;
        if (name.type == WEIR_TYPE_STR)
            take(&origin, name.as.bytes, &value);
    }
    if (weir__topic_check(origin.topic, NULL) != WEIR_OK ||
        !weir__id_is_sound(origin.id))
        return false;
    *ret_origin = origin;
    return true;
}
