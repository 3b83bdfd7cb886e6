/* SPDX-License-Identifier: MIT */
#include "tests/chaos/model/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_clear(struct text *text)
{
    text->len = 0;
    if (text->ptr != NULL)
        text->ptr[0] = '\0';
}

void text_free(struct text *text)
{
    free(text->ptr);
    *text = (struct text){0};
}

const char *text_of(const struct text *text)
{
    return text->ptr == NULL ? "" : text->ptr;
}

/* Room for `len` more bytes and a NUL. */
static void reserve(struct text *text, size_t len)
{
    size_t cap = text->cap == 0 ? 256 : text->cap;
    char *ptr;

    while (cap < text->len + len + 1)
        cap *= 2;
    if (cap == text->cap)
        return;
    ptr = realloc(text->ptr, cap);
    if (ptr == NULL) {
        printf("  out of memory\n");
        exit(1);
    }
    text->ptr = ptr;
    text->cap = cap;
}

void text_add(struct text *text, const void *bytes, size_t len)
{
    reserve(text, len);
    if (len > 0)
        memcpy(text->ptr + text->len, bytes, len);
    text->len += len;
    text->ptr[text->len] = '\0';
}

void text_str(struct text *text, const char *str)
{
    text_add(text, str, strlen(str));
}

void text_bytes(struct text *text, const void *bytes, size_t len)
{
    const unsigned char *from = bytes;

    for (size_t i = 0; i < len; i++)
        if ((from[i] >= ' ' && from[i] <= '~') || from[i] == '\n')
            text_add(text, from + i, 1);
        else
            text_format(text, "\\%02x", from[i]);
}

void text_int(struct text *text, long long value)
{
    char digits[24];
    size_t at = sizeof(digits);
    bool is_negative = value < 0;
    unsigned long long left = is_negative ? 0ULL - (unsigned long long)value
                                          : (unsigned long long)value;

    do {
        digits[--at] = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (is_negative)
        digits[--at] = '-';
    text_add(text, digits + at, sizeof(digits) - at);
}

void text_format(struct text *text, const char *format, ...)
{
    va_list ap;
    int len;

    reserve(text, 512);
    va_start(ap, format);
    len = vsnprintf(text->ptr + text->len, 512, format, ap);
    va_end(ap);
    if (len < 0 || len >= 512) {
        printf("  a text is too long for its format: %s\n", format);
        exit(1);
    }
    text->len += (size_t)len;
}
