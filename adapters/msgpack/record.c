/* SPDX-License-Identifier: MIT */
#include "adapters/msgpack/record.h"

#include <string.h>

#include "adapters/msgpack/scan.h"
#include "core/assert.h"
#include "core/text.h"

enum {
    RECORD_VERSION = 1,
    RECORD_FIELDS = 8,
    SMALL_HEAD = 8, /* bytes before the body when nothing is unusual */
    FIXINT_MAX = 0x7f,
    NIL = 0xc0,
    FIXMAP = 0x80,
    FIXARRAY = 0x90,
    FIXSTR = 0xa0
};

/* --- writing ----------------------------------------------------------- */

/* Append a first byte and `width` bytes of big-endian `number`. */
static void put(struct weir__buf *buf, uint8_t first, uint64_t number,
                size_t width)
{
    uint8_t bytes[9] = {first};

    WEIR_ASSERT(width < sizeof(bytes));
    for (size_t i = width; i > 0; i--, number >>= 8)
        bytes[i] = (uint8_t)(number & 0xff);
    weir__buf_append(buf, bytes, 1 + width);
}

static void put_uint(struct weir__buf *buf, uint64_t number)
{
    if (number <= FIXINT_MAX)
        put(buf, (uint8_t)number, 0, 0);
    else if (number <= UINT8_MAX)
        put(buf, 0xcc, number, 1);
    else if (number <= UINT16_MAX)
        put(buf, 0xcd, number, 2);
    else if (number <= UINT32_MAX)
        put(buf, 0xce, number, 4);
    else
        put(buf, 0xcf, number, 8);
}

static void put_str(struct weir__buf *buf, struct weir_slice text)
{
    WEIR_ASSERT(text.len <= UINT32_MAX);
    if (text.len < 32)
        put(buf, (uint8_t)(FIXSTR | text.len), 0, 0);
    else if (text.len <= UINT8_MAX)
        put(buf, 0xd9, text.len, 1);
    else if (text.len <= UINT16_MAX)
        put(buf, 0xda, text.len, 2);
    else
        put(buf, 0xdb, text.len, 4);
    weir__buf_append(buf, text.ptr, text.len);
}

static void put_key(struct weir__buf *buf, const char *key)
{
    put_str(buf, weir__slice_of(key, strlen(key)));
}

static void put_text(struct weir__buf *buf, const char *key,
                     struct weir_slice text)
{
    if (text.len == 0)
        return;
    put_key(buf, key);
    put_str(buf, text);
}

static uint8_t count_options(const struct weir__record *record)
{
    return (uint8_t)((record->retry.len > 0) + (record->ttl_ms > 0) +
                     (record->url.len > 0) + (record->headers.len > 0) +
                     (record->reason.len > 0) + (record->error.len > 0) +
                     (record->spent > 0));
}

static void put_options(struct weir__buf *buf,
                        const struct weir__record *record)
{
    uint8_t count = count_options(record);

    if (count == 0) {
        put(buf, NIL, 0, 0);
        return;
    }
    WEIR_ASSERT(count < 16);
    put(buf, FIXMAP | count, 0, 0);
    put_text(buf, "retry", record->retry);
    if (record->ttl_ms > 0) {
        put_key(buf, "ttl_ms");
        put_uint(buf, (uint64_t)record->ttl_ms);
    }
    put_text(buf, "url", record->url);
    if (record->headers.len > 0) {
        put_key(buf, "headers");
        weir__buf_append(buf, record->headers.ptr, record->headers.len);
    }
    put_text(buf, "reason", record->reason);
    put_text(buf, "error", record->error);
    if (record->spent > 0) {
        put_key(buf, "spent");
        put_uint(buf, record->spent);
    }
}

static void put_counters(struct weir__buf *buf,
                         const struct weir_counters *counters)
{
    put_uint(buf, counters->attempt);
    put_uint(buf, counters->failures);
    put_uint(buf, counters->timeouts);
    put_uint(buf, counters->crashes);
    put_uint(buf, counters->snoozes);
}

/* All that stands before the body in nearly every record, in one append. */
static void put_small_head(struct weir__buf *buf,
                           const struct weir_counters *counters)
{
    const uint8_t head[SMALL_HEAD] = {
        FIXARRAY | RECORD_FIELDS,    RECORD_VERSION,
        (uint8_t)counters->attempt,  (uint8_t)counters->failures,
        (uint8_t)counters->timeouts, (uint8_t)counters->crashes,
        (uint8_t)counters->snoozes,  NIL,
    };

    weir__buf_append(buf, head, sizeof(head));
}

void weir__record_write(struct weir__buf *buf,
                        const struct weir__record *record)
{
    const struct weir_counters *counters = &record->counters;
    uint32_t bits = counters->attempt | counters->failures |
                    counters->timeouts | counters->crashes | counters->snoozes;

    WEIR_ASSERT(record->ttl_ms >= 0);
    if (bits <= FIXINT_MAX && count_options(record) == 0) {
        put_small_head(buf, counters);
    } else {
        put(buf, FIXARRAY | RECORD_FIELDS, 0, 0);
        put_uint(buf, RECORD_VERSION);
        put_counters(buf, counters);
        put_options(buf, record);
    }
    if (record->body.len == 0)
        put(buf, NIL, 0, 0);
    else
        weir__buf_append(buf, record->body.ptr, record->body.len);
}

/* --- reading ----------------------------------------------------------- */

/* Take the head of the next value off `bytes`; its type is NONE at the end. */
static struct weir_value next_head(struct weir_slice *bytes)
{
    struct weir_value value;
    size_t len = weir__msgpack_head(*bytes, &value);

    WEIR_ASSERT(len <= bytes->len);
    *bytes = weir__slice_of(bytes->ptr + len, bytes->len - len);
    return value;
}

/* Take a whole value off `bytes`; empty when there is none. */
static struct weir_slice next_raw(struct weir_slice *bytes)
{
    size_t len = weir__msgpack_length(*bytes);
    struct weir_slice raw = weir__slice_of(bytes->ptr, len);

    *bytes = weir__slice_of(bytes->ptr + len, bytes->len - len);
    return raw;
}

static bool read_counter(struct weir_slice *bytes, uint32_t *ret_counter)
{
    struct weir_value value = next_head(bytes);

    if (value.type != WEIR_TYPE_INT || value.as.i64 < 0 ||
        value.as.i64 > UINT32_MAX)
        return false;
    *ret_counter = (uint32_t)value.as.i64;
    return true;
}

enum option {
    OPTION_RETRY,
    OPTION_TTL,
    OPTION_URL,
    OPTION_HEADERS,
    OPTION_REASON,
    OPTION_ERROR,
    OPTION_SPENT,
    OPTION_UNKNOWN
};

static enum option option_of(const struct weir_value *key)
{
    static const char *const names[] = {
        [OPTION_RETRY] = "retry",   [OPTION_TTL] = "ttl_ms",
        [OPTION_URL] = "url",       [OPTION_HEADERS] = "headers",
        [OPTION_REASON] = "reason", [OPTION_ERROR] = "error",
        [OPTION_SPENT] = "spent",
    };

    if (key->type != WEIR_TYPE_STR)
        return OPTION_UNKNOWN;
    for (size_t i = 0; i < OPTION_UNKNOWN; i++)
        if (key->as.bytes.len == strlen(names[i]) &&
            memcmp(key->as.bytes.ptr, names[i], key->as.bytes.len) == 0)
            return (enum option)i;
    return OPTION_UNKNOWN;
}

/* Keep the value `raw` of an option; false when it has the wrong type. */
static bool keep_option(struct weir__record *record, enum option option,
                        struct weir_slice raw)
{
    struct weir_value value;

    (void)weir__msgpack_head(raw, &value); /* raw has been checked */
    switch (option) {
    case OPTION_UNKNOWN:
        return true;
    case OPTION_TTL:
        record->ttl_ms = value.type == WEIR_TYPE_INT ? value.as.i64 : -1;
        return record->ttl_ms >= 0;
    case OPTION_HEADERS:
        record->headers = raw;
        return value.type == WEIR_TYPE_MAP;
    case OPTION_SPENT:
        if (value.type != WEIR_TYPE_INT || value.as.i64 < 0 ||
            value.as.i64 > UINT32_MAX)
            return false;
        record->spent = (uint32_t)value.as.i64;
        return true;
    case OPTION_RETRY:
    case OPTION_URL:
    case OPTION_REASON:
    case OPTION_ERROR:
        break;
    }
    if (value.type != WEIR_TYPE_STR)
        return false;
    if (option == OPTION_RETRY)
        record->retry = value.as.bytes;
    else if (option == OPTION_URL)
        record->url = value.as.bytes;
    else if (option == OPTION_REASON)
        record->reason = value.as.bytes;
    else
        record->error = value.as.bytes;
    return true;
}

static bool read_options(struct weir_slice *bytes, struct weir__record *record)
{
    struct weir_value map = next_head(bytes);
    unsigned seen = 0; /* bit per option: of equal keys the first counts */

    if (map.type == WEIR_TYPE_NIL)
        return true;
    if (map.type != WEIR_TYPE_MAP)
        return false;
    for (size_t i = 0; i < map.as.count; i++) {
        struct weir_slice key_raw = next_raw(bytes);
        struct weir_slice raw = next_raw(bytes);
        struct weir_value key;
        enum option option;

        if (key_raw.len == 0 || raw.len == 0)
            return false;
        (void)weir__msgpack_head(key_raw, &key); /* has been checked */
        option = option_of(&key);
        if ((seen >> option & 1) != 0)
            continue;
        if (!keep_option(record, option, raw))
            return false;
        if (option != OPTION_UNKNOWN)
            seen |= 1U << option;
    }
    return true;
}

/* Nearly every record: an array of eight, version 1, five small counters, no
 * options. Returns whether that is what `bytes` begin with. */
static bool read_small_head(struct weir_slice bytes,
                            struct weir_counters *ret_counters)
{
    const uint8_t *at = bytes.ptr;

    if (bytes.len <= SMALL_HEAD || at[0] != (FIXARRAY | RECORD_FIELDS) ||
        at[1] != RECORD_VERSION || at[7] != NIL ||
        (at[2] | at[3] | at[4] | at[5] | at[6]) > FIXINT_MAX)
        return false;
    *ret_counters = (struct weir_counters){
        .attempt = at[2],
        .failures = at[3],
        .timeouts = at[4],
        .crashes = at[5],
        .snoozes = at[6],
    };
    return true;
}

/* Read all that stands before the body and move `bytes` behind it. */
static int read_head(struct weir_slice *bytes, struct weir__record *record)
{
    struct weir_counters *counters = &record->counters;
    struct weir_value array = next_head(bytes);
    struct weir_value version = next_head(bytes);
    bool is_newer =
        version.type == WEIR_TYPE_UINT ||
        (version.type == WEIR_TYPE_INT && version.as.i64 > RECORD_VERSION);

    if (array.type != WEIR_TYPE_ARRAY || array.as.count == 0)
        return WEIR_EMALFORMED;
    if (is_newer)
        return WEIR_ENEWER;
    if (version.type != WEIR_TYPE_INT || version.as.i64 != RECORD_VERSION ||
        array.as.count != RECORD_FIELDS)
        return WEIR_EMALFORMED;
    if (!read_counter(bytes, &counters->attempt) ||
        !read_counter(bytes, &counters->failures) ||
        !read_counter(bytes, &counters->timeouts) ||
        !read_counter(bytes, &counters->crashes) ||
        !read_counter(bytes, &counters->snoozes) ||
        !read_options(bytes, record))
        return WEIR_EMALFORMED;
    return WEIR_OK;
}

int weir__record_read(struct weir_slice bytes, struct weir__record *ret_record)
{
    struct weir__record record = {0};

    if (bytes.len == 0)
        return WEIR_EMALFORMED;
    if (read_small_head(bytes, &record.counters)) {
        bytes = weir__slice_of(bytes.ptr + SMALL_HEAD, bytes.len - SMALL_HEAD);
    } else {
        int rc = read_head(&bytes, &record);

        if (rc < 0)
            return rc;
    }
    if (weir__msgpack_check(bytes) < 0)
        return WEIR_EMALFORMED;
    record.body = bytes;
    *ret_record = record;
    return WEIR_OK;
}
