/* SPDX-License-Identifier: MIT */
#include "adapters/redis/pack.h"

#include <string.h>

#include "adapters/redis/node.h"
#include "core/assert.h"
#include "core/text.h"

enum { FLAG_HAS_IDS = 1 };

static size_t read_le(const uint8_t *ptr, size_t len)
{
    size_t value = 0;

    for (size_t i = len; i > 0; i--)
        value = value << 8 | ptr[i - 1];
    return value;
}

/* Cut `len` bytes off the front; NULL when there are fewer. */
static const uint8_t *cut(struct weir_slice *from, size_t len)
{
    const uint8_t *ptr = from->ptr;

    if (from->len < len)
        return NULL;
    from->ptr += len;
    from->len -= len;
    return ptr;
}

/* The next str of an id block: lengths up to 255, more than an id can have. */
static bool next_id(struct weir_slice *from, struct weir_slice *ret_id)
{
    const uint8_t *head = cut(from, 1);
    size_t len;

    if (head == NULL)
        return false;
    if (*head >> 5 == 5) {
        len = *head & 31;
    } else {
        const uint8_t *len8 = *head == 0xd9 ? cut(from, 1) : NULL;

        if (len8 == NULL)
            return false;
        len = *len8;
    }
    ret_id->ptr = cut(from, len);
    ret_id->len = len;
    return ret_id->ptr != NULL;
}

/* The array's head; leaves the strings in `from`. */
static bool id_count(struct weir_slice *from, size_t *ret_count)
{
    const uint8_t *head = cut(from, 1);

    if (head == NULL)
        return false;
    if (*head >> 4 == 9) {
        *ret_count = *head & 15;
        return true;
    }
    head = *head == 0xdc ? cut(from, 2) : NULL;
    if (head == NULL)
        return false;
    *ret_count = (size_t)head[0] << 8 | head[1];
    return true;
}

static struct weir_slice id_block(const struct weir__pack *pack)
{
    return (struct weir_slice){pack->bytes.ptr + WEIR__PACK_HEAD,
                               pack->header_len - WEIR__PACK_HEAD};
}

/* False: it is no list of strings, one for each slot. */
static bool look_at_ids(struct weir__pack *pack)
{
    struct weir_slice left = id_block(pack), id;
    size_t count;

    if (!pack->has_ids)
        return left.len == 0;
    if (!id_count(&left, &count) || count != pack->count)
        return false;
    for (size_t slot = 0; slot < count; slot++) {
        if (!next_id(&left, &id))
            return false;
        pack->lacks_some |= !weir__id_is_sound(id);
    }
    return left.len == 0;
}

static size_t offset_of(const struct weir__pack *pack, size_t slot)
{
    return read_le(pack->bytes.ptr + pack->header_len + 4 * slot, 4);
}

static size_t records_at(const struct weir__pack *pack)
{
    return pack->header_len + 4 * (pack->count + 1);
}

static bool offsets_are_sound(const struct weir__pack *pack)
{
    size_t last = 0;

    if (pack->bytes.len < records_at(pack) || offset_of(pack, 0) != 0)
        return false;
    for (size_t slot = 1; slot <= pack->count; slot++) {
        size_t offset = offset_of(pack, slot);

        if (offset < last)
            return false;
        last = offset;
    }
    last += records_at(pack);
    return pack->bytes.len == last || pack->bytes.len == last + WEIR__PACK_MARK;
}

int weir__pack_read(struct weir_slice bytes, struct weir__pack *ret_pack)
{
    struct weir__pack pack = {.bytes = bytes};

    if (bytes.len < WEIR__PACK_HEAD || bytes.ptr[0] != 'W')
        return WEIR_EMALFORMED;
    if (bytes.ptr[1] != '1')
        return WEIR_ENEWER;
    pack.count = (size_t)bytes.ptr[2] + 1;
    pack.has_ids = bytes.ptr[4] == FLAG_HAS_IDS;
    pack.header_len = read_le(bytes.ptr + 5, 3);
    if (bytes.ptr[4] > FLAG_HAS_IDS || pack.header_len < WEIR__PACK_HEAD ||
        pack.header_len > bytes.len)
        return WEIR_EMALFORMED;
    if (!look_at_ids(&pack) || !offsets_are_sound(&pack))
        return WEIR_EMALFORMED;
    *ret_pack = pack;
    return WEIR_OK;
}

void weir__pack_ids(const struct weir__pack *pack, struct weir_slice *ret_ids)
{
    struct weir_slice left = id_block(pack);
    size_t count = 0;
    bool is_sound = id_count(&left, &count);

    WEIR_ASSERT(pack->has_ids);
    for (size_t slot = 0; slot < count && is_sound; slot++)
        is_sound = next_id(&left, &ret_ids[slot]);
    WEIR_ASSERT(is_sound && count == pack->count); /* checked when read */
    for (size_t slot = 0; slot < count && pack->lacks_some; slot++)
        if (!weir__id_is_sound(ret_ids[slot]))
            ret_ids[slot] = (struct weir_slice){0};
}

struct weir_slice weir__pack_record(const struct weir__pack *pack, size_t slot)
{
    size_t from, to;

    WEIR_ASSERT(slot < pack->count);
    from = offset_of(pack, slot);
    to = offset_of(pack, slot + 1);
    return (struct weir_slice){pack->bytes.ptr + records_at(pack) + from,
                               to - from};
}

/* --- writing -------------------------------------------------------------- */

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
