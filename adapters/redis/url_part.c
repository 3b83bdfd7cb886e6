/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/url_private.h"
#include "core/error.h"
#include "core/text.h"

enum { MAX_DB = 1000000, MAX_DIGITS = 7 };

size_t weir__url_part_len(struct weir__url_part part)
{
    return (size_t)(part.end - part.ptr);
}

const char *weir__url_find(struct weir__url_part part, char c)
{
    return part.ptr == part.end ? NULL
                                : memchr(part.ptr, c, weir__url_part_len(part));
}

const char *weir__url_find_last(struct weir__url_part part, char c)
{
    const char *found = NULL;

    for (const char *at = part.ptr; at < part.end; at++)
        if (*at == c)
            found = at;
    return found;
}

struct weir__url_part weir__url_take(struct weir__url_part *part, char c)
{
    struct weir__url_part front = *part;
    const char *found = weir__url_find(*part, c);

    if (found != NULL)
        front.end = found;
    part->ptr = found == NULL ? part->end : found + 1;
    return front;
}

bool weir__url_equal(struct weir__url_part part, const char *text)
{
    return weir__url_part_len(part) == strlen(text) &&
           memcmp(part.ptr, text, strlen(text)) == 0;
}

static int refuse_long(const char *name, size_t cap, struct weir_error *err)
{
    return weir__error_set(err, WEIR_EINVAL,
                           WEIR__REDIS_URL "%s is longer than %zu bytes", name,
                           cap - 1);
}

int weir__url_copy(struct weir__url_part part, char *to, size_t cap,
                   const char *name, struct weir_error *err)
{
    size_t len = weir__url_part_len(part);

    if (len >= cap)
        return refuse_long(name, cap, err);
    memcpy(to, part.ptr, len);
    to[len] = '\0';
    return WEIR_OK;
}

int weir__url_decode(struct weir__url_part part, char *to, size_t cap,
                     const char *name, struct weir_error *err)
{
    size_t used = 0;

    for (const char *at = part.ptr; at < part.end; at++) {
        int c = (unsigned char)*at;

        if (c == '%') {
            int high = part.end - at > 2 ? weir__hex_digit(at[1]) : -1;
            int low = part.end - at > 2 ? weir__hex_digit(at[2]) : -1;

            c = high < 0 || low < 0 ? 0 : high * 16 + low;
            at += 2;
        }
        if (c == 0)
            return weir__error_set(err, WEIR_EINVAL,
                                   WEIR__REDIS_URL "bad %%-sequence in %s",
                                   name);
        if (used + 1 >= cap)
            return refuse_long(name, cap, err);
        to[used++] = (char)c;
    }
    to[used] = '\0';
    return WEIR_OK;
}

int weir__url_number(struct weir__url_part part, uint32_t max, const char *name,
                     uint32_t *ret_value, struct weir_error *err)
{
    size_t len = weir__url_part_len(part);
    uint32_t value = 0;
    bool is_good = len > 0 && len <= MAX_DIGITS;

    for (const char *at = part.ptr; is_good && at < part.end; at++) {
        is_good = *at >= '0' && *at <= '9';
        value = value * 10 + (uint32_t)(*at - '0');
    }
    if (!is_good || value > max)
        return weir__error_set(err, WEIR_EINVAL,
                               WEIR__REDIS_URL "%s must be a number up to %u",
                               name, max);
    *ret_value = value;
    return WEIR_OK;
}

int weir__url_db(struct weir__url_part part, uint32_t *ret_db,
                 struct weir_error *err)
{
    return weir__url_number(part, MAX_DB, "the database", ret_db, err);
}
