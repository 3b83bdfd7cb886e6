/* SPDX-License-Identifier: MIT */
#include "adapters/redis/resp.h"

#include <string.h>

enum {
    DIGITS_MAX = 20,            /* of a 64-bit number, with its sign */
    FRAME_MAX = DIGITS_MAX + 3, /* '$' or '*', digits, CR LF */
    SMALL_INT_MAX = DIGITS_MAX + 8
};

/* Writes the digits to the end of `digits`; returns the first of them. */
static uint8_t *format(uint64_t value, uint8_t digits[DIGITS_MAX])
{
    uint8_t *at = digits + DIGITS_MAX;

    do {
        *--at = (uint8_t)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    return at;
}

/* Writes kind, number, CR LF at `to`; returns the byte behind. */
static uint8_t *put_frame(uint8_t *to, char kind, uint64_t value)
{
    uint8_t digits[DIGITS_MAX];
    const uint8_t *first;
    size_t len;

    *to++ = (uint8_t)kind;
    if (value < 10) { /* most counts and many lengths */
        *to++ = (uint8_t)('0' + value);
    } else {
        first = format(value, digits);
        len = (size_t)(digits + DIGITS_MAX - first);
        memcpy(to, first, len);
        to += len;
    }
    *to++ = '\r';
    *to++ = '\n';
    return to;
}

static void append_frame(struct weir__buf *buf, char kind, uint64_t value)
{
    uint8_t *to = weir__buf_reserve(buf, FRAME_MAX);

    if (to != NULL)
        buf->len += (size_t)(put_frame(to, kind, value) - to);
}

void weir__resp_command(struct weir__buf *buf, size_t argc)
{
    append_frame(buf, '*', argc);
}

void weir__resp_begin(struct weir__buf *buf, size_t len)
{
    append_frame(buf, '$', len);
}

void weir__resp_end(struct weir__buf *buf)
{
    weir__buf_append(buf, "\r\n", 2);
}

void weir__resp_bytes(struct weir__buf *buf, struct weir_slice bytes)
{
    uint8_t *start, *to;

    if (bytes.len > SIZE_MAX - FRAME_MAX - 2) {
        buf->failed = true;
        return;
    }
    start = weir__buf_reserve(buf, FRAME_MAX + bytes.len + 2);
    if (start == NULL)
        return;
    to = put_frame(start, '$', bytes.len);
    if (bytes.len > 0)
        memcpy(to, bytes.ptr, bytes.len);
    to += bytes.len;
    *to++ = '\r';
    *to++ = '\n';
    buf->len += (size_t)(to - start);
}

void weir__resp_str(struct weir__buf *buf, const char *text)
{
    weir__resp_bytes(buf,
                     (struct weir_slice){(const uint8_t *)text, strlen(text)});
}

void weir__resp_int(struct weir__buf *buf, int64_t value)
{
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    uint8_t digits[DIGITS_MAX];
    const uint8_t *first = format(magnitude, digits);
    size_t len = (size_t)(digits + DIGITS_MAX - first);
    uint8_t *start = weir__buf_reserve(buf, SMALL_INT_MAX);
    uint8_t *to;

    if (start == NULL)
        return;
    to = put_frame(start, '$', len + (value < 0 ? 1 : 0));
    if (value < 0)
        *to++ = '-';
    memcpy(to, first, len);
    to += len;
    *to++ = '\r';
    *to++ = '\n';
    buf->len += (size_t)(to - start);
}

void weir__resp_words(struct weir__buf *buf, const char *const *words)
{
    size_t count = 0;

    while (words[count] != NULL)
        count++;
    weir__resp_command(buf, count);
    for (size_t i = 0; i < count; i++)
        weir__resp_str(buf, words[i]);
}

void weir__resp_eval(struct weir__buf *buf, const struct weir__script *script,
                     size_t keys, size_t args)
{
    weir__resp_command(buf, 3 + keys + args);
    weir__resp_str(buf, "EVALSHA");
    weir__resp_str(buf, script->sha1);
    weir__resp_int(buf, (int64_t)keys);
}
