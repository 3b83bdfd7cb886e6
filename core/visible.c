/* SPDX-License-Identifier: MIT */
#include "core/visible.h"

#include <string.h>

#include "core/assert.h"
#include "core/text.h"
#include "core/utf8.h"

static struct weir_slice behind(struct weir_slice text, size_t len)
{
    return weir__slice_of(text.ptr + len, text.len - len);
}

/* Of the character of `len` bytes, at most three where that matters. */
static int32_t code_of(const uint8_t *bytes, size_t len)
{
    switch (len) {
    case 1:
        return bytes[0];
    case 2:
        return (bytes[0] & 0x1f) << 6 | (bytes[1] & 0x3f);
    case 3:
        return (bytes[0] & 0x0f) << 12 | (bytes[1] & 0x3f) << 6 |
               (bytes[2] & 0x3f);
    default:
        return 0x10000; /* nothing up there is hidden */
    }
}

static bool is_hidden(int32_t code)
{
    return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x061c ||
           code == 0x200e || code == 0x200f ||
           (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

/* The bytes of the first character; 0 when that is hidden. */
static size_t shown(struct weir_slice text)
{
    size_t len = weir__utf8_length(text);

    return len > 0 && !is_hidden(code_of(text.ptr, len)) ? len : 0;
}

size_t weir__visible_length(struct weir_slice text)
{
    size_t at = 0;

    while (at < text.len) {
        uint8_t byte = text.ptr[at];
        size_t len = byte >= 0x20 && byte < 0x7f ? 1 : shown(behind(text, at));

        if (len == 0)
            break;
        at += len;
    }
    return at;
}

int32_t weir__hidden_take(struct weir_slice *text)
{
    size_t len = weir__utf8_length(*text);
    int32_t code = WEIR__NO_CHARACTER;

    WEIR_ASSERT(text->len > 0 && shown(*text) == 0);
    if (len > 0)
        code = code_of(text->ptr, len);
    *text = behind(*text, len > 0 ? len : 1);
    return code;
}

/* "\x1b", "\u202e". */
static void put_hex(char *buf, char letter, uint32_t number, int digits)
{
    *buf++ = '\\';
    *buf++ = letter;
    while (digits-- > 0)
        *buf++ = "0123456789abcdef"[number >> 4 * digits & 15];
    *buf = '\0';
}

const char *weir__escape_take(struct weir_slice *text,
                              char buf[WEIR__ESCAPE_CAP])
{
    uint8_t byte = text->len > 0 ? text->ptr[0] : 0;
    int32_t code = weir__hidden_take(text);

    switch (code) {
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        break;
    }
    if (code > 0x7f)
        put_hex(buf, 'u', (uint32_t)code, 4);
    else
        put_hex(buf, 'x', byte, 2);
    return buf;
}

size_t weir__visible_take(struct weir_slice *text, char *buf, size_t cap)
{
    size_t used = 0;

    WEIR_ASSERT(cap > 0);
    while (text->len > 0) {
        char escape[WEIR__ESCAPE_CAP];
        struct weir_slice rest = *text;
        const void *piece = rest.ptr;
        size_t len = shown(rest);

        if (len == 0) {
            piece = weir__escape_take(&rest, escape);
            len = strlen(piece);
        } else {
            rest = behind(rest, len);
        }
        if (len >= cap - used)
            break;
        memcpy(buf + used, piece, len);
        used += len;
        *text = rest;
    }
    buf[used] = '\0';
    return used;
}

struct weir_slice weir__visible_formatted(const char *text, size_t cap,
                                          int wanted)
{
    size_t len = wanted > 0 ? (size_t)wanted : 0;
    size_t valid;

    if (len < cap)
        return weir__slice_of(text, len);
    len = cap - 1;
    valid = weir__utf8_valid(weir__slice_of(text, len));
    return weir__slice_of(text, len - valid < 4 ? valid : len);
}
