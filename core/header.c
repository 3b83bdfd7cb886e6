/* SPDX-License-Identifier: MIT */
#include "core/header.h"

#include <string.h>

#include "core/error.h"
#include "core/text.h"

#define OWN "weir."

static uint8_t lower(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte | 0x20) : byte;
}

/* In whatever case, which only ASCII has here. */
static bool is_same(const uint8_t *one, const uint8_t *other, size_t len)
{
    size_t i = 0;

    while (i < len && lower(one[i]) == lower(other[i]))
        i++;
    return i == len;
}

/* Letters, digits and what else a token of HTTP (RFC 9110) may have. */
static bool is_token(uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') ||
           (byte != '\0' && strchr("!#$%&'*+-.^_`|~", byte) != NULL);
}

static bool is_name(struct weir_slice name)
{
    size_t i = 0;

    while (i < name.len && is_token(name.ptr[i]))
        i++;
    return i > 0 && i == name.len;
}

/* Visible ASCII, with blanks within: the same for all that read it. */
static bool is_value(struct weir_slice value)
{
    size_t i = 0;

    while (i < value.len && value.ptr[i] >= ' ' && value.ptr[i] <= '~')
        i++;
    return i > 0 && i == value.len && value.ptr[0] != ' ' &&
           value.ptr[i - 1] != ' ';
}

static bool is_own(struct weir_slice name)
{
    size_t len = strlen(OWN);

    return name.len >= len && is_same(name.ptr, (const uint8_t *)OWN, len);
}

bool weir__header_is_sound(const struct weir_header *header)
{
    return header->name.len + header->value.len <= WEIR_MAX_HEADER &&
           is_name(header->name) && is_value(header->value) &&
           !is_own(header->name);
}

bool weir__header_has_name(const struct weir_header *header,
                           struct weir_slice name)
{
    return header->name.len == name.len &&
           is_same(header->name.ptr, name.ptr, name.len);
}

const struct weir_header *weir__header_find(const struct weir_header *headers,
                                            size_t count,
                                            struct weir_slice name)
{
    for (size_t i = 0; i < count; i++)
        if (weir__header_has_name(&headers[i], name))
            return &headers[i];
    return NULL;
}

static int check(const struct weir_header *header, struct weir_error *err)
{
    size_t len = header->name.len + header->value.len;
    char quote[WEIR__TEXT_QUOTE_CAP];

    (void)weir__text_quote(header->name, quote);
    if (!is_name(header->name))
        return weir__error_set(err, WEIR_EINVAL,
                               "header \"%s\": a name is letters, digits and "
                               "!#$%%&'*+-.^_`|~",
                               quote);
    if (is_own(header->name))
        return weir__error_set(err, WEIR_EINVAL,
                               "header \"%s\": names that begin with " OWN
                               " are weir's own",
                               quote);
    if (!is_value(header->value))
        return weir__error_set(err, WEIR_EINVAL,
                               "header \"%s\": a value is visible ASCII, with "
                               "blanks only within",
                               quote);
    if (len > WEIR_MAX_HEADER)
        return weir__error_set(err, WEIR_EINVAL,
                               "header \"%s\": name and value have %zu bytes, "
                               "%d at most",
                               quote, len, WEIR_MAX_HEADER);
    return WEIR_OK;
}

int weir__headers_check(const struct weir_header *headers, size_t count,
                        struct weir_error *err)
{
    char quote[WEIR__TEXT_QUOTE_CAP];

    if (count > WEIR_MAX_HEADERS)
        return weir__error_set(err, WEIR_EINVAL,
                               "header: %zu of them, %d at most", count,
                               WEIR_MAX_HEADERS);
    for (size_t i = 0; i < count; i++) {
        int rc = check(&headers[i], err);

        if (rc < 0)
            return rc;
        if (weir__header_find(headers, i, headers[i].name) != NULL)
            return weir__error_set(err, WEIR_EINVAL,
                                   "header \"%s\" is given twice",
                                   weir__text_quote(headers[i].name, quote));
    }
    return WEIR_OK;
}
