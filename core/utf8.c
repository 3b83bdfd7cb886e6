/* SPDX-License-Identifier: MIT */
#include "core/utf8.h"

#include "core/text.h"

/* What the second byte may be is narrower behind some first bytes. */
static bool is_second(uint8_t first, uint8_t second)
{
    if ((second & 0xc0) != 0x80)
        return false;
    if (first == 0xe0)
        return second >= 0xa0; /* else overlong */
    if (first == 0xed)
        return second < 0xa0; /* else a surrogate */
    if (first == 0xf0)
        return second >= 0x90; /* else overlong */
    if (first == 0xf4)
        return second < 0x90; /* else above U+10FFFF */
    return true;
}

size_t weir__utf8_length(struct weir_slice text)
{
    uint8_t first;
    size_t len;

    if (text.len == 0)
        return 0;
    first = text.ptr[0];
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    len = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (text.len < len || !is_second(first, text.ptr[1]))
        return 0;
    for (size_t i = 2; i < len; i++)
        if ((text.ptr[i] & 0xc0) != 0x80)
            return 0;
    return len;
}

size_t weir__utf8_valid(struct weir_slice text)
{
    size_t pos = 0;

    while (pos < text.len) {
        size_t len =
            weir__utf8_length(weir__slice_of(text.ptr + pos, text.len - pos));

        if (len == 0)
            break;
        pos += len;
    }
    return pos;
}
