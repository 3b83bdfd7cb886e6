/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/node.h"
#include "adapters/redis/pack.h"
#include "core/assert.h"

static void write_le(uint8_t *to, size_t len, size_t value)
{
    for (size_t i = 0; i < len; i++) {
        to[i] = (uint8_t)(value & 255);
        value >>= 8;
    }
}

static uint8_t *write_be(uint8_t *to, size_t len, uint64_t value)
{
    for (size_t i = len; i > 0; i--) {
        to[i - 1] = (uint8_t)(value & 255);
        value >>= 8;
    }
    return to + len;
}

static size_t str_head_len(size_t len)
{
    return len < 32 ? 1 : len < 256 ? 2 : 5;
}

static uint8_t *write_str(uint8_t *to, const void *bytes, size_t len)
{
    if (len < 32) {
        *to++ = (uint8_t)(0xa0 | len);
    } else if (len < 256) {
        *to++ = 0xd9;
        *to++ = (uint8_t)len;
    } else {
        *to++ = 0xdb;
        to = write_be(to, 4, len);
    }
    if (len > 0)
        memcpy(to, bytes, len);
    return to + len;
}

static uint8_t *write_array(uint8_t *to, size_t count)
{
    if (count < 16) {
        *to++ = (uint8_t)(0x90 | count);
        return to;
    }
    if (count < 65536) {
        *to++ = 0xdc;
        return write_be(to, 2, count);
    }
    *to++ = 0xdd;
    return write_be(to, 4, count);
}

/* Longest head of an array, and of a number. */
enum { HEAD_MAX = 9 };

static void written(struct weir__buf *buf, const uint8_t *end)
{
    buf->len = (size_t)(end - buf->ptr);
    WEIR_ASSERT(buf->len <= buf->cap);
}

void weir__pack_array(struct weir__buf *buf, size_t count)
{
    uint8_t *to = weir__buf_reserve(buf, HEAD_MAX);

    if (to != NULL)
        written(buf, write_array(to, count));
}

void weir__pack_uint(struct weir__buf *buf, uint64_t value)
{
    uint8_t *to = weir__buf_reserve(buf, HEAD_MAX);

    if (to == NULL)
        return;
    if (value < 128) {
        *to++ = (uint8_t)value;
    } else if (value < 65536) {
        *to++ = 0xcd;
        to = write_be(to, 2, value);
    } else {
        *to++ = 0xcf;
        to = write_be(to, 8, value);
    }
    written(buf, to);
}

void weir__pack_str(struct weir__buf *buf, const void *bytes, size_t len)
{
    uint8_t *to = weir__buf_reserve(buf, HEAD_MAX + len);

    if (to != NULL)
        written(buf, write_str(to, bytes, len));
}

struct weir__pack_size weir__pack_measure(const struct weir__pack_job *jobs,
                                          size_t count, bool has_ids)
{
    size_t header_len = WEIR__PACK_HEAD, records_len = 0;

    WEIR_ASSERT(count > 0 && count <= WEIR__SLOTS_MAX);
    if (has_ids)
        header_len += count < 16 ? 1 : 3;
    for (size_t i = 0; i < count; i++) {
        if (has_ids)
            header_len += str_head_len(jobs[i].id.len) + jobs[i].id.len;
        records_len += jobs[i].record.len;
    }
    return (struct weir__pack_size){header_len,
                                    header_len + 4 * (count + 1) + records_len};
}

void weir__pack_write(struct weir__buf *buf, const struct weir__pack_job *jobs,
                      size_t count, bool has_ids)
{
    struct weir__pack_size size = weir__pack_measure(jobs, count, has_ids);
    uint8_t *to = weir__buf_reserve(buf, size.len);
    uint8_t *offsets, *records;
    size_t offset = 0;

    if (to == NULL)
        return;
    offsets = to + size.header_len;
    records = offsets + 4 * (count + 1);
    memcpy(to, "W1", 2);
    to[2] = (uint8_t)(count - 1);
    to[3] = 0;
    to[4] = has_ids;
    write_le(to + 5, 3, size.header_len);
    to = has_ids ? write_array(to + WEIR__PACK_HEAD, count) : offsets;
    for (size_t i = 0; i < count; i++) {
        if (has_ids)
            to = write_str(to, jobs[i].id.ptr, jobs[i].id.len);
        write_le(offsets + 4 * i, 4, offset);
        if (jobs[i].record.len > 0)
            memcpy(records + offset, jobs[i].record.ptr, jobs[i].record.len);
        offset += jobs[i].record.len;
    }
    WEIR_ASSERT(to == offsets);
    write_le(offsets + 4 * count, 4, offset);
    written(buf, records + offset);
}
