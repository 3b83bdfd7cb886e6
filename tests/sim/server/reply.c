/* SPDX-License-Identifier: MIT */

/* Replies and arguments of commands. */

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/random.h"
#include "tests/sim/server/private.h"

void server_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    (void)fprintf(stderr, "\n");
    va_end(args);
    abort();
}

size_t server_below(struct server *server, size_t limit)
{
    return (size_t)(weir__random_next(&server->random) % limit);
}

void out_bytes(struct out *out, const void *bytes, size_t len)
{
    if (out->len + len > out->cap) {
        out->cap = 2 * (out->len + len) + 256;
        out->ptr = realloc(out->ptr, out->cap);
        if (out->ptr == NULL)
            server_fail("the server has no memory for a reply of %zu bytes",
                        len);
    }
    if (len > 0)
        memcpy(out->ptr + out->len, bytes, len);
    out->len += len;
}

void out_free(struct out *out)
{
    free(out->ptr);
    *out = (struct out){0};
}

static void put_line(struct call *call, char type, const char *text)
{
    out_bytes(call->out, &type, 1);
    out_bytes(call->out, text, strlen(text));
    out_bytes(call->out, "\r\n", 2);
}

/* As "%" PRId64, which takes three times as long. */
static char *write_int(char text[24], int64_t value)
{
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    char *at = text + 23;

    *at = '\0';
    do
        *--at = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (value < 0)
        *--at = '-';
    return at;
}

static void put_number(struct call *call, char type, int64_t value)
{
    char text[24];

    put_line(call, type, write_int(text, value));
}

void answer_status(struct call *call, const char *text)
{
    put_line(call, '+', text);
}

void answer_error(struct call *call, const char *text)
{
    put_line(call, '-', text);
}

void answer_syntax(struct call *call)
{
    answer_error(call, "ERR syntax error");
}

void answer_int(struct call *call, int64_t value)
{
    put_number(call, ':', value);
}

void answer_bulk(struct call *call, struct slice text)
{
    put_number(call, '$', (int64_t)text.len);
    out_bytes(call->out, text.ptr, text.len);
    out_bytes(call->out, "\r\n", 2);
}

void answer_text(struct call *call, const char *text)
{
    answer_bulk(call, (struct slice){text, strlen(text)});
}

void write_number(char text[NUMBER_CAP], double number)
{
    char digits[24];

    if (number > -1e15 && number < 1e15 && number == (double)(int64_t)number &&
        !(number == 0 && signbit(number)))
        (void)snprintf(text, NUMBER_CAP, "%s",
                       write_int(digits, (int64_t)number)); /* fits */
    else
        (void)snprintf(text, NUMBER_CAP, "%.17g", number); /* fits */
}

void answer_score(struct call *call, double score)
{
    char text[NUMBER_CAP];

    if (isinf(score))
        (void)snprintf(text, sizeof(text), score > 0 ? "inf" : "-inf");
    else
        write_number(text, score);
    answer_text(call, text);
}

void answer_nil(struct call *call)
{
    out_bytes(call->out, "$-1\r\n", 5);
}

void answer_no_array(struct call *call)
{
    out_bytes(call->out, "*-1\r\n", 5);
}

void answer_array(struct call *call, size_t count)
{
    put_number(call, '*', (int64_t)count);
}

/* --- arguments ----------------------------------------------------------- */

bool is_word(struct slice text, const char *word)
{
    return text.len == strlen(word) &&
           strncasecmp(text.ptr, word, text.len) == 0;
}

void unknown_option(const struct call *call, size_t i)
{
    server_fail("the server does not know %.*s of %.*s", (int)call->argv[i].len,
                call->argv[i].ptr, (int)call->argv[0].len, call->argv[0].ptr);
}

bool parse_int(struct slice text, int64_t *ret_value)
{
    char copied[24], digits[24];

    if (text.len == 0 || text.len >= sizeof(copied))
        return false;
    memcpy(copied, text.ptr, text.len);
    copied[text.len] = '\0';
    *ret_value = strtoll(copied, NULL, 10);
    return strcmp(copied, write_int(digits, *ret_value)) == 0;
}

bool read_int(struct call *call, size_t i, int64_t *ret_value)
{
    if (parse_int(call->argv[i], ret_value))
        return true;
    answer_error(call, "ERR value is not an integer or out of range");
    return false;
}

/* True: all of the text is a number. An empty text is 0. */
static bool read_double(struct slice text, double *ret_value)
{
    char copied[128], *end;

    if (text.len >= sizeof(copied))
        return false;
    memcpy(copied, text.ptr, text.len);
    copied[text.len] = '\0';
    *ret_value = strtod(copied, &end);
    return end == copied + text.len && !isnan(*ret_value);
}

bool read_score(struct call *call, size_t i, double *ret_score)
{
    struct slice text = call->argv[i];

    if (text.len > 0 && !isspace((unsigned char)text.ptr[0]) &&
        read_double(text, ret_score))
        return true;
    answer_error(call, "ERR value is not a valid float");
    return false;
}

bool read_bound(struct call *call, size_t i, struct bound *ret_bound)
{
    struct slice text = call->argv[i];

    ret_bound->is_exclusive = text.len > 0 && text.ptr[0] == '(';
    if (ret_bound->is_exclusive)
        text = (struct slice){text.ptr + 1, text.len - 1};
    if (read_double(text, &ret_bound->score))
        return true;
    answer_error(call, "ERR min or max is not a float");
    return false;
}

size_t range_of(int64_t from, int64_t to, size_t count, size_t *ret_first)
{
    int64_t len = (int64_t)count;

    if (from < 0)
        from = from + len < 0 ? 0 : from + len;
    if (to < 0)
        to += len;
    if (to >= len)
        to = len - 1;
    *ret_first = (size_t)from;
    return from > to || from >= len ? 0 : (size_t)(to - from + 1);
}
