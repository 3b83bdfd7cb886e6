/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec.h"

/* Room for `len` more bytes and a NUL. */
static bool reserve(struct text *text, size_t len)
{
    size_t cap = text->cap == 0 ? 1024 : text->cap;
    char *bytes;

    if (text->has_failed || text->cap - text->len > len)
        return !text->has_failed;
    while (cap - text->len <= len)
        cap *= 2;
    bytes = realloc(text->bytes, cap);
    text->has_failed = bytes == NULL;
    if (bytes == NULL)
        return false;
    text->bytes = bytes;
    text->cap = cap;
    return true;
}

static void put_plain(struct text *text, const char *bytes)
{
    size_t len = strlen(bytes);

    if (!reserve(text, len))
        return;
    memcpy(text->bytes + text->len, bytes, len);
    text->len += len;
}

static void put_string(struct text *text, const char *name,
                       struct weir_slice value)
{
    put_plain(text, name);
    if (!reserve(text, 6 * value.len + 2))
        return;
    text->bytes[text->len++] = '"';
    for (size_t i = 0; i < value.len; i++) {
        char c = (char)value.ptr[i];

        if (value.ptr[i] < ' ') {
            text->len += (size_t)snprintf(text->bytes + text->len, 7, "\\u%04x",
                                          (unsigned)value.ptr[i]);
            continue;
        }
        if (c == '"' || c == '\\')
            text->bytes[text->len++] = '\\';
        text->bytes[text->len++] = c;
    }
    text->bytes[text->len++] = '"';
}

static void put_number(struct text *text, const char *name, int64_t value)
{
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    char digits[24], *at = digits + sizeof(digits) - 1;

    *at = '\0';
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0)
        *--at = '-';
    put_plain(text, name);
    put_plain(text, at);
}

/* Of jobs of bounded topics alone. */
static void put_group(struct text *text, struct weir_slice group)
{
    if (group.len > 0)
        put_string(text, ",\"group\":", group);
}

static void put_headers(struct text *text, const struct weir_job *job)
{
    struct weir_header headers[WEIR_MAX_HEADERS];
    size_t count = weir_job_headers(job, headers, WEIR_MAX_HEADERS);

    put_plain(text, count > 0 ? ",\"headers\":{" : ",\"headers\":null");
    for (size_t i = 0; i < count; i++) {
        put_string(text, i > 0 ? "," : "", headers[i].name);
        put_string(text, ":", headers[i].value);
    }
    if (count > 0)
        put_plain(text, "}");
}

static void put_body(struct text *text, const struct weir_job *job)
{
    size_t len;

    put_plain(text, ",\"body\":");
    if (!reserve(text, 512))
        return;
    len =
        weir_job_body_json(job, text->bytes + text->len, text->cap - text->len);
    if (len >= text->cap - text->len) {
        if (!reserve(text, len))
            return;
        len = weir_job_body_json(job, text->bytes + text->len,
                                 text->cap - text->len);
    }
    text->len += len;
    text->has_failed = len == 0;
    put_plain(text, "}\n");
}

static void put_counters(struct text *text, const struct weir_job *job)
{
    struct weir_counters counters = weir_job_counters(job);

    put_number(text, ",\"attempt\":", counters.attempt);
    put_number(text, ",\"failures\":", counters.failures);
    put_number(text, ",\"timeouts\":", counters.timeouts);
    put_number(text, ",\"crashes\":", counters.crashes);
    put_number(text, ",\"snoozes\":", counters.snoozes);
}

bool exec_put_job(struct text *text, const struct weir_job *job, uint64_t run)
{
    struct weir_slice url = weir_job_url(job);
    int64_t added_ms = weir_job_added_ms(job);
    size_t before = text->len;
    bool is_whole;

    if (run > 0)
        put_number(text, "{\"run\":", (int64_t)run);
    put_string(text,
               run > 0 ? ",\"topic\":" : "{\"topic\":", weir_job_topic(job));
    put_string(text, ",\"id\":", weir_job_id(job));
    put_counters(text, job);
    put_number(text, ",\"token\":", (int64_t)weir_job_token(job));
    put_number(text, ",\"due_ms\":", weir_job_due_ms(job));
    if (added_ms > 0)
        put_number(text, ",\"added_ms\":", added_ms);
    else
        put_plain(text, ",\"added_ms\":null");
    if (url.len > 0)
        put_string(text, ",\"url\":", url);
    else
        put_plain(text, ",\"url\":null");
    put_group(text, weir_job_group(job));
    put_headers(text, job);
    put_body(text, job);
    is_whole = !text->has_failed;
    if (!is_whole)
        text->len = before;
    text->has_failed = false;
    return is_whole;
}

bool exec_put_cancel(struct text *text, uint64_t run)
{
    if (!reserve(text, sizeof("{\"cancel\":18446744073709551615}\n"))) {
        text->has_failed = false;
        return false;
    }
    put_number(text, "{\"cancel\":", (int64_t)run);
    put_plain(text, "}\n");
    return true;
}
