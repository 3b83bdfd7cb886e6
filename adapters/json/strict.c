/* SPDX-License-Identifier: MIT */
#include "adapters/json/strict.h"

#include <string.h>

#include "adapters/json/utf8.h"
#include "core/assert.h"
#include "core/error.h"
#include "core/text.h"

enum { SURROGATE = 0xd800, LOW_SURROGATE = 0xdc00, SURROGATE_END = 0xe000 };

struct text {
    struct weir_slice json;
    size_t pos;   /* of the next byte */
    size_t start; /* of the token */
    size_t comma; /* behind the last token if that was a comma, else 0 */
    size_t nul;   /* behind a \u0000 in the last string; 0: there is none */
    struct weir_error *err;
};

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static int refuse(const struct text *t, size_t pos, const char *what)
{
    return weir__error_set(t->err, WEIR_EINVAL, "json: %s at byte %zu", what,
                           pos + 1);
}

/* The next byte; NUL, which no token contains, at the end. */
static uint8_t peek(const struct text *t)
{
    return t->pos < t->json.len ? t->json.ptr[t->pos] : 0;
}

static bool skip_digits(struct text *t)
{
    size_t from = t->pos;

    while (peek(t) >= '0' && peek(t) <= '9')
        t->pos++;
    return t->pos > from;
}

/* Whether an integer token fits into 64 bits, with or without a sign. */
static bool is_in_64_bits(struct weir_slice token)
{
    bool is_negative = token.ptr[0] == '-';
    const char *limit =
        is_negative ? "-9223372036854775808" : "18446744073709551615";
    size_t limit_len = strlen(limit);

    return token.len < limit_len ||
           (token.len == limit_len && memcmp(token.ptr, limit, limit_len) <= 0);
}

static int skip_number(struct text *t)
{
    bool is_integer = true;

    if (peek(t) == '-')
        t->pos++;
    if (peek(t) == '0')
        t->pos++;
    else if (!skip_digits(t))
        return refuse(t, t->pos, "digit expected");
    if (peek(t) >= '0' && peek(t) <= '9')
        return refuse(t, t->start, "number with a leading zero");
    if (peek(t) == '.') {
        is_integer = false;
        t->pos++;
        if (!skip_digits(t))
            return refuse(t, t->pos, "digit expected");
    }
    if (peek(t) == 'e' || peek(t) == 'E') {
        is_integer = false;
        t->pos++;
        if (peek(t) == '+' || peek(t) == '-')
            t->pos++;
        if (!skip_digits(t))
            return refuse(t, t->pos, "digit expected");
    }
    if (is_integer && !is_in_64_bits(weir__slice_of(t->json.ptr + t->start,
                                                    t->pos - t->start)))
        return refuse(t, t->start, "integer beyond 64 bits");
    return WEIR_OK;
}

/* Take "\uXXXX"; false when the text at `pos` is something else. */
static bool skip_unicode(struct text *t, unsigned *ret_code)
{
    unsigned code = 0;

    if (t->json.len - t->pos < 6 || t->json.ptr[t->pos] != '\\' ||
        t->json.ptr[t->pos + 1] != 'u')
        return false;
    for (size_t i = 2; i < 6; i++) {
        uint8_t c = t->json.ptr[t->pos + i];

        if (c >= '0' && c <= '9')
            code = code * 16 + c - '0';
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            code = code * 16 + (c | 0x20U) - 'a' + 10;
        else
            return false;
    }
    t->pos += 6;
    *ret_code = code;
    return true;
}

static int skip_escape(struct text *t)
{
    size_t from = t->pos;
    unsigned code = 0, low = 0;

    if (t->json.len - t->pos >= 2 && t->json.ptr[t->pos + 1] != '\0' &&
        strchr("\"\\/bfnrt", t->json.ptr[t->pos + 1]) != NULL) {
        t->pos += 2;
        return WEIR_OK;
    }
    if (!skip_unicode(t, &code))
        return refuse(t, from, "unknown escape");
    if (code == 0)
        t->nul = from + 1;
    if (code < SURROGATE || code >= SURROGATE_END)
        return WEIR_OK;
    if (code >= LOW_SURROGATE || !skip_unicode(t, &low) ||
        low < LOW_SURROGATE || low >= SURROGATE_END)
        return refuse(t, from, "half of a surrogate pair");
    return WEIR_OK;
}

static int skip_string(struct text *t)
{
    int rc = WEIR_OK;

    t->nul = 0;
    t->pos++;
    while (rc == WEIR_OK && t->pos < t->json.len && peek(t) != '"') {
        size_t len;

        if (peek(t) < 0x20)
            return refuse(t, t->pos, "control character in a string");
        if (peek(t) == '\\') {
            rc = skip_escape(t);
            continue;
        }
        len = weir__utf8_length(
            weir__slice_of(t->json.ptr + t->pos, t->json.len - t->pos));
        if (len == 0)
            return refuse(t, t->pos, "invalid UTF-8");
        t->pos += len;
    }
    if (rc == WEIR_OK && t->pos == t->json.len)
        return refuse(t, t->start, "string without an end");
    if (rc == WEIR_OK)
        t->pos++;
    return rc;
}

static int skip_word(struct text *t)
{
    static const char *const words[] = {"null", "true", "false"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t len = strlen(words[i]);

        if (t->json.len - t->pos < len ||
            memcmp(t->json.ptr + t->pos, words[i], len) != 0)
            continue;
        t->pos += len;
        return WEIR_OK;
    }
    return refuse(t, t->start, "unexpected character");
}

static int skip_token(struct text *t)
{
    uint8_t first = peek(t);

    WEIR_ASSERT(t->pos < t->json.len);
    t->start = t->pos;
    if (first == '"')
        return skip_string(t);
    if (first == '-' || (first >= '0' && first <= '9'))
        return skip_number(t);
    if (first == '\0' || strchr(" \t\r\n{}[],:", first) == NULL)
        return skip_word(t);
    if (first == ':' && t->nul > 0)
        return refuse(t, t->nul - 1, "NUL in a key");
    if ((first == '}' || first == ']') && t->comma > 0)
        return refuse(t, t->comma - 1, "comma before an end");
    t->pos++;
    return WEIR_OK;
}

int weir__json_strict(struct weir_slice json, struct weir_error *err)
{
    struct text t = {.json = json, .err = err};
    int rc = WEIR_OK;

    WEIR_ASSERT(json.ptr != NULL || json.len == 0);
    while (rc == WEIR_OK && t.pos < json.len) {
        rc = skip_token(&t);
        if (!is_blank(json.ptr[t.start]))
            t.comma = json.ptr[t.start] == ',' ? t.start + 1 : 0;
    }
    WEIR_ASSERT(t.pos <= json.len);
    return rc;
}
