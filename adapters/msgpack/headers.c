/* SPDX-License-Identifier: MIT */
#include "adapters/msgpack/headers.h"

#include "adapters/msgpack/scan.h"
#include "core/assert.h"

enum { STR8 = 0xd9, MAP16 = 0xde };

/* --- writing -------------------------------------------------------------- */

static void put_str(struct weir__buf *buf, struct weir_slice text)
{
    const uint8_t head[] = {STR8, (uint8_t)text.len};

    WEIR_ASSERT(text.len <= UINT8_MAX);
    weir__buf_append(buf, head, sizeof(head));
    weir__buf_append(buf, text.ptr, text.len);
}

void weir__headers_write(struct weir__buf *buf,
                         const struct weir_header *headers, size_t count)
{
    const uint8_t head[] = {MAP16, (uint8_t)(count >> 8), (uint8_t)count};

    WEIR_ASSERT(count <= UINT16_MAX);
    weir__buf_append(buf, head, sizeof(head));
    for (size_t i = 0; i < count; i++) {
        put_str(buf, headers[i].name);
        put_str(buf, headers[i].value);
    }
}

/* --- reading -------------------------------------------------------------- */

/* Take a value off `bytes`; false: there is none. */
static bool take(struct weir_slice *bytes, struct weir_value *ret_value)
{
    size_t len = weir__msgpack_length(*bytes);

    (void)weir__msgpack_head(*bytes, ret_value);
    bytes->ptr += len;
    bytes->len -= len;
    return len > 0;
}

/* What a map has, for as long as it can be read. */
struct pairs {
    struct weir_slice bytes;
    size_t left;
};

static struct pairs pairs_of(struct weir_slice map)
{
    struct weir_value value;
    size_t len = weir__msgpack_head(map, &value);
    struct pairs pairs = {{map.ptr, 0}, 0};

    if (value.type == WEIR_TYPE_MAP) {
        pairs.bytes = (struct weir_slice){map.ptr + len, map.len - len};
        pairs.left = value.as.count;
    }
    return pairs;
}

/* False: there are no more. The texts have no `ptr` where they are none. */
static bool next(struct pairs *pairs, struct weir_header *ret_header)
{
    struct weir_value name, value;

    *ret_header = (struct weir_header){{NULL, 0}, {NULL, 0}};
    if (pairs->left == 0 || !take(&pairs->bytes, &name) ||
        !take(&pairs->bytes, &value))
        return false;
    pairs->left--;
    if (name.type == WEIR_TYPE_STR)
        ret_header->name = name.as.bytes;
    if (value.type == WEIR_TYPE_STR)
        ret_header->value = value.as.bytes;
    return true;
}

size_t weir__headers_read(struct weir_slice map,
                          struct weir_header ret_headers[WEIR_MAX_HEADERS])
{
    struct pairs pairs = pairs_of(map);
    struct weir_header header;
    size_t count = 0;

    while (count < WEIR_MAX_HEADERS && next(&pairs, &header))
        if (weir__header_is_sound(&header) &&
            weir__header_find(ret_headers, count, header.name) == NULL)
            ret_headers[count++] = header;
    return count;
}

int weir__headers_list(struct weir_slice map, struct weir_header *ret_headers,
                       size_t cap, size_t *ret_count)
{
    struct pairs pairs = pairs_of(map);
    size_t count = 0;

    if (map.len > 0 && pairs.bytes.ptr == map.ptr)
        return WEIR_EINVAL;
    while (pairs.left > 0) {
        if (count == cap || !next(&pairs, &ret_headers[count]) ||
            ret_headers[count].name.ptr == NULL ||
            ret_headers[count].value.ptr == NULL)
            return WEIR_EINVAL;
        count++;
    }
    *ret_count = count;
    return WEIR_OK;
}
