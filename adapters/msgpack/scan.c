/* SPDX-License-Identifier: MIT */
#include "adapters/msgpack/scan.h"

#include <string.h>

#include "core/assert.h"
#include "core/text.h"

/* The whole length of a value by its first byte, as far as that byte alone
 * tells; 0 for containers, for what carries a length and for 0xc1. */
static const uint8_t fixed_len[256] = {
    1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  /* 00 */
    1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  /* 10 */
    1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  /* 20 */
    1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  /* 30 */
    1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  /* 40 */
    1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  /* 50 */
    1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  /* 60 */
    1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  /* 70 */
    0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  /* 80 */
    0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  /* 90 */
    1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, /* a0 */
    17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, /* b0 */
    1,  0,  1,  1,  0,  0,  0,  0,  0,  0,  5,  9,  2,  3,  5,  9,  /* c0 */
    2,  3,  5,  9,  3,  4,  6,  10, 18, 0,  0,  0,  0,  0,  0,  0,  /* d0 */
    1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  /* e0 */
    1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  /* f0 */
};

/* What follows the first bytes 0xc0 to 0xdf. */
struct form {
    uint8_t type;  /* enum weir_type; INT: signed, UINT: unsigned */
    uint8_t width; /* bytes of the number or length that follows */
    uint8_t len;   /* of an extension without a length: its bytes */
};

static const struct form forms[32] = {
    {WEIR_TYPE_NIL, 0, 0},   {WEIR_TYPE_NONE, 0, 0},  /* c0 */
    {WEIR_TYPE_BOOL, 0, 0},  {WEIR_TYPE_BOOL, 0, 0},  /* c2 */
    {WEIR_TYPE_BIN, 1, 0},   {WEIR_TYPE_BIN, 2, 0},   /* c4 */
    {WEIR_TYPE_BIN, 4, 0},   {WEIR_TYPE_EXT, 1, 0},   /* c6 */
    {WEIR_TYPE_EXT, 2, 0},   {WEIR_TYPE_EXT, 4, 0},   /* c8 */
    {WEIR_TYPE_FLOAT, 4, 0}, {WEIR_TYPE_FLOAT, 8, 0}, /* ca */
    {WEIR_TYPE_UINT, 1, 0},  {WEIR_TYPE_UINT, 2, 0},  /* cc */
    {WEIR_TYPE_UINT, 4, 0},  {WEIR_TYPE_UINT, 8, 0},  /* ce */
    {WEIR_TYPE_INT, 1, 0},   {WEIR_TYPE_INT, 2, 0},   /* d0 */
    {WEIR_TYPE_INT, 4, 0},   {WEIR_TYPE_INT, 8, 0},   /* d2 */
    {WEIR_TYPE_EXT, 0, 1},   {WEIR_TYPE_EXT, 0, 2},   /* d4 */
    {WEIR_TYPE_EXT, 0, 4},   {WEIR_TYPE_EXT, 0, 8},   /* d6 */
    {WEIR_TYPE_EXT, 0, 16},  {WEIR_TYPE_STR, 1, 0},   /* d8 */
    {WEIR_TYPE_STR, 2, 0},   {WEIR_TYPE_STR, 4, 0},   /* da */
    {WEIR_TYPE_ARRAY, 2, 0}, {WEIR_TYPE_ARRAY, 4, 0}, /* dc */
    {WEIR_TYPE_MAP, 2, 0},   {WEIR_TYPE_MAP, 4, 0},   /* de */
};

static uint64_t number_at(const uint8_t *at, size_t width)
{
    uint64_t number = 0;

    WEIR_ASSERT(width <= 8);
    for (size_t i = 0; i < width; i++)
        number = number << 8 | at[i];
    return number;
}

static int64_t signed_number(uint64_t number, size_t width)
{
    uint64_t sign;

    WEIR_ASSERT(width >= 1 && width <= 8);
    sign = (uint64_t)1 << (8 * width - 1);
    return (int64_t)((number ^ sign) - sign);
}

static double float_number(uint64_t number, size_t width)
{
    uint32_t single_bits = (uint32_t)number;
    float single;
    double value;

    if (width == 4) {
        memcpy(&single, &single_bits, sizeof(single));
        return (double)single;
    }
    memcpy(&value, &number, sizeof(value));
    return value;
}

/* Hand out `len` bytes at `pos`; returns where they end, 0 beyond the end. */
static size_t take_bytes(struct weir_slice bytes, size_t pos, uint64_t len,
                         struct weir_slice *ret_bytes)
{
    if (pos > bytes.len || len > bytes.len - pos)
        return 0;
    *ret_bytes = weir__slice_of(bytes.ptr + pos, (size_t)len);
    return pos + (size_t)len;
}

/* A head that begins with 0xc0 to 0xdf. */
static size_t long_head(struct weir_slice bytes, struct weir_value *ret_value)
{
    const struct form *form = &forms[bytes.ptr[0] & 0x1f];
    size_t len = (size_t)1 + form->width;
    uint64_t number;

    if (len > bytes.len)
        return 0;
    number = number_at(bytes.ptr + 1, form->width);
    ret_value->type = (enum weir_type)form->type;
    switch (ret_value->type) {
    case WEIR_TYPE_NONE:
        return 0;
    case WEIR_TYPE_NIL:
        return len;
    case WEIR_TYPE_BOOL:
        ret_value->as.boolean = (bytes.ptr[0] & 1) != 0;
        return len;
    case WEIR_TYPE_INT:
        ret_value->as.i64 = signed_number(number, form->width);
        return len;
    case WEIR_TYPE_UINT:
        ret_value->as.u64 = number;
        if (number <= INT64_MAX) {
            ret_value->type = WEIR_TYPE_INT;
            ret_value->as.i64 = (int64_t)number;
        }
        return len;
    case WEIR_TYPE_FLOAT:
        ret_value->as.f64 = float_number(number, form->width);
        return len;
    case WEIR_TYPE_STR:
    case WEIR_TYPE_BIN:
        return take_bytes(bytes, len, number, &ret_value->as.bytes);
    case WEIR_TYPE_EXT:
        return take_bytes(bytes, len + 1, form->width == 0 ? form->len : number,
                          &ret_value->as.bytes);
    case WEIR_TYPE_ARRAY:
    case WEIR_TYPE_MAP:
        ret_value->as.count = (size_t)number;
        return len;
    }
    return 0;
}

static size_t any_head(struct weir_slice bytes, struct weir_value *ret_value)
{
    uint8_t first = bytes.ptr[0];

    if (first < 0x80 || first >= 0xe0) {
        ret_value->type = WEIR_TYPE_INT;
        ret_value->as.i64 = first < 0x80 ? first : first - 256;
        return 1;
    }
    if (first < 0xa0) {
        ret_value->type = first < 0x90 ? WEIR_TYPE_MAP : WEIR_TYPE_ARRAY;
        ret_value->as.count = first & 0x0f;
        return 1;
    }
    if (first < 0xc0) {
        ret_value->type = WEIR_TYPE_STR;
        return take_bytes(bytes, 1, first & 0x1f, &ret_value->as.bytes);
    }
    return long_head(bytes, ret_value);
}

size_t weir__msgpack_head(struct weir_slice bytes, struct weir_value *ret_value)
{
    size_t len = bytes.len == 0 ? 0 : any_head(bytes, ret_value);

    if (len == 0)
        *ret_value = (struct weir_value){.type = WEIR_TYPE_NONE};
    return len;
}

/* The length of a value whose first byte does not tell it, without its
 * children; 0 when it is broken or ends beyond `bytes`. */
static size_t open_value(struct weir_slice bytes, uint64_t *ret_children)
{
    const struct form *form = &forms[bytes.ptr[0] & 0x1f];
    size_t len = (size_t)1 + form->width;
    uint64_t number;

    if (bytes.ptr[0] < 0xa0) {
        *ret_children = (uint64_t)(bytes.ptr[0] & 0x0f)
                        << (bytes.ptr[0] < 0x90 ? 1 : 0);
        return 1;
    }
    if (form->type == WEIR_TYPE_NONE || len > bytes.len)
        return 0;
    number = number_at(bytes.ptr + 1, form->width);
    if (form->type == WEIR_TYPE_ARRAY || form->type == WEIR_TYPE_MAP) {
        *ret_children = form->type == WEIR_TYPE_MAP ? number * 2 : number;
        return len;
    }
    if (form->type == WEIR_TYPE_EXT)
        len++;
    return len > bytes.len || number > bytes.len - len ? 0
                                                       : len + (size_t)number;
}

/* Step over values, `left` at most, as long as their first bytes tell their
 * lengths: where nearly all of the time goes. May end beyond the end. */
static size_t skip_plain(struct weir_slice bytes, size_t pos, size_t *left)
{
    for (; *left > 0 && pos < bytes.len; (*left)--) {
        size_t len = fixed_len[bytes.ptr[pos]];

        if (len == 0)
            break;
        pos += len;
    }
    return pos;
}

size_t weir__msgpack_length(struct weir_slice bytes)
{
    size_t outer[WEIR__DEPTH_MAX]; /* values left to read around this level */
    size_t level = 0;              /* containers open */
    size_t left = 1;               /* values left to read at this level */
    size_t pos = 0;

    WEIR_ASSERT(bytes.ptr != NULL || bytes.len == 0);
    for (;;) {
        uint64_t children = 0;
        size_t len;

        pos = skip_plain(bytes, pos, &left);
        if (pos > bytes.len || (left > 0 && pos == bytes.len))
            return 0;
        if (left == 0) {
            if (level == 0)
                return pos;
            left = outer[--level];
            continue;
        }
        len = open_value(weir__slice_of(bytes.ptr + pos, bytes.len - pos),
                         &children);
        pos += len;
        left--;
        /* Each child takes at least a byte. */
        if (len == 0 || children > bytes.len - pos)
            return 0;
        if (children == 0)
            continue;
        if (level + 2 > WEIR__DEPTH_MAX) /* the depth of the children */
            return 0;
        WEIR_ASSERT(level < WEIR__DEPTH_MAX);
        outer[level++] = left;
        left = (size_t)children;
    }
}

int weir__msgpack_check(struct weir_slice bytes)
{
    size_t len = weir__msgpack_length(bytes);

    return len == 0 || len != bytes.len ? WEIR_EMALFORMED : WEIR_OK;
}

static struct weir_slice behind(struct weir_slice bytes, size_t len)
{
    WEIR_ASSERT(len <= bytes.len);
    return weir__slice_of(bytes.ptr + len, bytes.len - len);
}

/* Move `bytes` behind its first value; false when there is none. */
static bool skip_value(struct weir_slice *bytes)
{
    size_t len = weir__msgpack_length(*bytes);

    *bytes = behind(*bytes, len);
    return len > 0;
}

/* Move `bytes`, the pairs of a map, to the value of `key`. */
static bool enter_map(struct weir_slice *bytes, size_t count,
                      struct weir_slice key)
{
    for (size_t i = 0; i < count; i++) {
        struct weir_value name;
        bool is_found;

        (void)weir__msgpack_head(*bytes, &name); /* skip_value finds faults */
        is_found = name.type == WEIR_TYPE_STR && name.as.bytes.len == key.len &&
                   memcmp(name.as.bytes.ptr, key.ptr, key.len) == 0;
        if (!skip_value(bytes))
            return false;
        if (is_found)
            return true;
        if (!skip_value(bytes))
            return false;
    }
    return false;
}

/* Move `bytes`, the elements of an array, to the one at decimal `position`. */
static bool enter_array(struct weir_slice *bytes, size_t count,
                        struct weir_slice position)
{
    size_t wanted = 0;

    if (position.len == 0 || (position.len > 1 && position.ptr[0] == '0'))
        return false;
    for (size_t i = 0; i < position.len; i++) {
        if (position.ptr[i] < '0' || position.ptr[i] > '9')
            return false;
        wanted = wanted * 10 + (size_t)(position.ptr[i] - '0');
        if (wanted >= count) /* also keeps it from overflowing */
            return false;
    }
    for (size_t i = 0; i < wanted; i++)
        if (!skip_value(bytes))
            return false;
    return true;
}

/* One step of a path: move `bytes` from a container to its child. */
static bool enter(struct weir_slice *bytes, struct weir_slice step)
{
    struct weir_value value;
    size_t len = weir__msgpack_head(*bytes, &value);

    *bytes = behind(*bytes, len);
    if (value.type == WEIR_TYPE_MAP)
        return enter_map(bytes, value.as.count, step);
    if (value.type == WEIR_TYPE_ARRAY)
        return enter_array(bytes, value.as.count, step);
    return false;
}

void weir__msgpack_find(struct weir_slice body, const char *path,
                        struct weir_value *ret_value)
{
    const char *step = path;

    *ret_value = (struct weir_value){.type = WEIR_TYPE_NONE};
    if (path == NULL || body.len == 0)
        return;
    while (*path != '\0' && step != NULL) {
        size_t len = strcspn(step, ".");

        if (!enter(&body, weir__slice_of(step, len)))
            return;
        step = step[len] == '.' ? step + len + 1 : NULL;
    }
    (void)weir__msgpack_head(body, ret_value); /* the type says it all */
}
