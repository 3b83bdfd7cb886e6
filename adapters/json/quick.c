/* SPDX-License-Identifier: MIT */
#include "adapters/json/quick.h"

#include <float.h>
#include <msgpack.h>
#include <string.h>

#include "adapters/json/utf8.h"
#include "adapters/msgpack/scan.h"
#include "core/assert.h"
#include "core/text.h"

enum {
    KEYS_MAX = 32,    /* of an object, compared with one another */
    DIGITS_MAX = 18,  /* of an integer: fits into 63 bits */
    DECIMALS_MAX = 15 /* of a fraction: an exact double before it is scaled */
};

/* One value on its way. */
struct trip {
    struct weir__json_quick *quick;
    struct weir__buf *buf;
    msgpack_packer packer;
};

static int append_bytes(void *arg, const char *bytes, size_t len)
{
    weir__buf_append(arg, bytes, len);
    return 0; /* the buffer keeps the failure */
}

/* --- tokens ------------------------------------------------------------- */

static bool is_left(const struct weir__json_quick *quick)
{
    return quick->at < quick->end;
}

static void skip_blanks(struct weir__json_quick *quick)
{
    while (is_left(quick) && (*quick->at == ' ' || *quick->at == '\t' ||
                              *quick->at == '\r' || *quick->at == '\n'))
        quick->at++;
}

/* The next byte; NUL, which no token contains, at the end. */
static uint8_t peek(const struct weir__json_quick *quick)
{
    return is_left(quick) ? *quick->at : 0;
}

bool weir__json_quick_sign(struct weir__json_quick *quick, char sign)
{
    skip_blanks(quick);
    if (!is_left(quick) || *quick->at != (uint8_t)sign)
        return false;
    quick->at++;
    return true;
}

bool weir__json_quick_is_done(struct weir__json_quick *quick)
{
    skip_blanks(quick);
    return !is_left(quick);
}

static bool is_plain(uint8_t byte)
{
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

static bool is_escape(uint8_t byte)
{
    return byte != '\0' && strchr("\"\\/bfnrt", byte) != NULL;
}

/* Take a string; the slice is what stands between the quotes. */
static bool take_string(struct weir__json_quick *quick,
                        struct weir_slice *ret_raw, size_t *ret_escapes)
{
    const uint8_t *start;
    size_t escapes = 0;

    if (!weir__json_quick_sign(quick, '"'))
        return false;
    start = quick->at;
    for (;;) {
        size_t len;

        while (is_left(quick) && is_plain(*quick->at))
            quick->at++;
        if (peek(quick) == '"')
            break;
        len = weir__utf8_length(
            weir__slice_of(quick->at, (size_t)(quick->end - quick->at)));
        if (peek(quick) == '\\') {
            if (quick->end - quick->at < 2 || !is_escape(quick->at[1]))
                return false;
            escapes++;
            len = 2;
        } else if (peek(quick) < 0x20) {
            return false; /* also the end */
        }
        if (len == 0)
            return false;
        quick->at += len;
    }
    *ret_raw = weir__slice_of(start, (size_t)(quick->at - start));
    *ret_escapes = escapes;
    quick->at++;
    return true;
}

bool weir__json_quick_text(struct weir__json_quick *quick,
                           struct weir_slice *ret_text)
{
    size_t escapes;

    return take_string(quick, ret_text, &escapes) && escapes == 0;
}

/* --- scalars ------------------------------------------------------------ */

static char unescape(uint8_t byte)
{
    switch (byte) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return (char)byte;
    }
}

static void append_unescaped(struct weir__buf *buf, struct weir_slice raw)
{
    const uint8_t *at = raw.ptr, *end = raw.ptr + raw.len;

    while (at < end) {
        const uint8_t *escape = memchr(at, '\\', (size_t)(end - at));
        char byte;

        if (escape == NULL)
            escape = end;
        weir__buf_append(buf, at, (size_t)(escape - at));
        if (escape == end)
            return;
        byte = unescape(escape[1]);
        weir__buf_append(buf, &byte, 1);
        at = escape + 2;
    }
}

static bool move_string(struct trip *trip)
{
    struct weir_slice raw;
    size_t escapes;

    if (!take_string(trip->quick, &raw, &escapes))
        return false;
    (void)msgpack_pack_str(&trip->packer, raw.len - escapes);
    if (escapes == 0)
        weir__buf_append(trip->buf, raw.ptr, raw.len);
    else
        append_unescaped(trip->buf, raw);
    return true;
}

/* Take digits onto `number`; false when there is none, or more than `max` with
 * those before. */
static bool take_digits(struct weir__json_quick *quick, size_t max,
                        int64_t *number, size_t *count)
{
    size_t before = *count;

    while (peek(quick) >= '0' && peek(quick) <= '9') {
        if (++*count > max)
            return false;
        *number = *number * 10 + (*quick->at - '0');
        quick->at++;
    }
    return *count > before;
}

/* Behind the point. Both numbers are exact, so that the division rounds once,
 * as reading the decimal text does. */
static bool move_fraction(struct trip *trip, bool is_negative, int64_t number,
                          size_t count)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3, 1e4,  1e5,
                                    1e6,  1e7,  1e8,  1e9, 1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15};
    size_t before = count;
    double value;

    trip->quick->at++;
    if (FLT_EVAL_METHOD != 0 ||
        !take_digits(trip->quick, DECIMALS_MAX, &number, &count))
        return false;
    if (peek(trip->quick) == 'e' || peek(trip->quick) == 'E')
        return false;
    WEIR_ASSERT(count - before < sizeof(powers) / sizeof(powers[0]));
    value = (double)number / powers[count - before];
    (void)msgpack_pack_double(&trip->packer, is_negative ? -value : value);
    return true;
}

static bool move_number(struct trip *trip)
{
    struct weir__json_quick *quick = trip->quick;
    bool is_negative = peek(quick) == '-';
    int64_t number = 0;
    size_t count = 0;
    uint8_t first;

    if (is_negative)
        quick->at++;
    first = peek(quick);
    if (!take_digits(quick, DIGITS_MAX, &number, &count) ||
        (first == '0' && count > 1))
        return false;
    if (peek(quick) == '.')
        return move_fraction(trip, is_negative, number, count);
    if (peek(quick) == 'e' || peek(quick) == 'E' ||
        (is_negative && number == 0))
        return false;
    (void)msgpack_pack_int64(&trip->packer, is_negative ? -number : number);
    return true;
}

static bool take_word(struct weir__json_quick *quick, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(quick->end - quick->at) < len ||
        memcmp(quick->at, word, len) != 0)
        return false;
    quick->at += len;
    return true;
}

static bool move_word(struct trip *trip)
{
    if (take_word(trip->quick, "null"))
        (void)msgpack_pack_nil(&trip->packer);
    else if (take_word(trip->quick, "true"))
        (void)msgpack_pack_true(&trip->packer);
    else if (take_word(trip->quick, "false"))
        (void)msgpack_pack_false(&trip->packer);
    else
        return false;
    return true;
}

/* --- arrays and objects ------------------------------------------------- */

/* The head of a container is one byte until its elements were counted; now
 * make it as long as it has to be. `tiny` and `wide` are its first bytes for up
 * to 15 elements and for more. */
static void write_head(struct weir__buf *buf, size_t at, size_t count,
                       const uint8_t heads[2])
{
    uint8_t wide[] = {heads[1], (uint8_t)(count >> 8), (uint8_t)count};
    size_t extra = sizeof(wide) - 1;

    if (count > 15 && weir__buf_reserve(buf, extra) != NULL) {
        memmove(buf->ptr + at + sizeof(wide), buf->ptr + at + 1,
                buf->len - at - 1);
        memcpy(buf->ptr + at, wide, sizeof(wide));
        buf->len += extra;
    } else if (!buf->failed) {
        buf->ptr[at] = (uint8_t)(heads[0] | count);
    }
}

static bool move_value(struct trip *trip, int depth);

static bool move_array(struct trip *trip, int depth)
{
    static const uint8_t heads[] = {0x90, 0xdc};
    size_t at = trip->buf->len;
    size_t count = 0;

    trip->quick->at++;
    weir__buf_append(trip->buf, heads, 1);
    if (weir__json_quick_sign(trip->quick, ']'))
        return true;
    do {
        if (count == UINT16_MAX || !move_value(trip, depth + 1))
            return false;
        count++;
    } while (weir__json_quick_sign(trip->quick, ','));
    write_head(trip->buf, at, count, heads);
    return weir__json_quick_sign(trip->quick, ']');
}

static bool is_new(const struct weir_slice *keys, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (weir__slice_equal(keys[i], keys[count]))
            return false;
    return true;
}

static bool move_object(struct trip *trip, int depth)
{
    static const uint8_t heads[] = {0x80, 0xde};
    struct weir_slice keys[KEYS_MAX];
    size_t at = trip->buf->len;
    size_t count = 0;

    trip->quick->at++;
    weir__buf_append(trip->buf, heads, 1);
    if (weir__json_quick_sign(trip->quick, '}'))
        return true;
    do {
        if (count == KEYS_MAX ||
            !weir__json_quick_text(trip->quick, &keys[count]) ||
            !is_new(keys, count))
            return false;
        (void)msgpack_pack_str(&trip->packer, keys[count].len);
        weir__buf_append(trip->buf, keys[count].ptr, keys[count].len);
        count++;
        if (!weir__json_quick_sign(trip->quick, ':') ||
            !move_value(trip, depth + 1))
            return false;
    } while (weir__json_quick_sign(trip->quick, ','));
    write_head(trip->buf, at, count, heads);
    return weir__json_quick_sign(trip->quick, '}');
}

static bool move_value(struct trip *trip, int depth)
{
    uint8_t first;

    skip_blanks(trip->quick);
    first = peek(trip->quick);
    if (depth > WEIR__DEPTH_MAX)
        return false;
    if (first == '"')
        return move_string(trip);
    if (first == '{')
        return move_object(trip, depth);
    if (first == '[')
        return move_array(trip, depth);
    if (first == '-' || (first >= '0' && first <= '9'))
        return move_number(trip);
    return move_word(trip);
}

int weir__json_quick_value(struct weir__json_quick *quick,
                           struct weir__buf *buf)
{
    struct trip trip = {.quick = quick, .buf = buf};
    size_t len = buf->len;
    bool was_failed = buf->failed;
    int rc;

    msgpack_packer_init(&trip.packer, buf, append_bytes);
    rc = move_value(&trip, 1) ? WEIR_OK : WEIR_EINVAL;
    if (buf->failed)
        rc = WEIR_ENOMEM;
    if (rc < 0) {
        buf->len = len;
        buf->failed = was_failed;
    }
    return rc;
}
