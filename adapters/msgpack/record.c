/* SPDX-License-Identifier: MIT */
#include "adapters/msgpack/record.h"

#include <string.h>

#include "adapters/msgpack/scan.h"
#include "core/assert.h"
#include "core/text.h"

enum {
    RECORD_VERSION = 1,
    TICK_VERSION = 2, /* of what only weir runs: others leave it alone */
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

static void put_text(struct weir__buf *buf, struct weir_slice text)
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

/* Options by their form. */

static bool has_text(struct weir_slice text)
{
    return text.len > 0;
}

static bool has_raw(struct weir_slice map)
{
    return map.len > 0;
}

static bool has_list(struct weir_slice array)
{
    return array.len > 0;
}

static bool has_duration(int64_t ms)
{
    return ms > 0;
}

static bool has_count(uint32_t number)
{
    return number > 0;
}

static void put_raw(struct weir__buf *buf, struct weir_slice map)
{
    weir__buf_append(buf, map.ptr, map.len);
}

static void put_list(struct weir__buf *buf, struct weir_slice array)
{
    weir__buf_append(buf, array.ptr, array.len);
}

static void put_count(struct weir__buf *buf, uint32_t number)
{
    put_uint(buf, number);
}

static void put_duration(struct weir__buf *buf, int64_t ms)
{
    put_uint(buf, (uint64_t)ms);
}

static uint8_t count_options(const struct weir__record *record)
{
#define COUNT(type, name, form) +has_##form(record->name)
    return (uint8_t)(WEIR__RECORD_MAP(COUNT));
#undef COUNT
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
#define PUT(type, name, form)                  \
    if (has_##form(record->name)) {            \
        put_text(buf, weir__slice_str(#name)); \
        put_##form(buf, record->name);         \
    }
    WEIR__RECORD_MAP(PUT)
#undef PUT
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
        put_uint(buf, record->cron.len > 0 ? TICK_VERSION : RECORD_VERSION);
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

static bool keep_count(const struct weir_value *value, struct weir_slice raw,
                       uint32_t *ret_number)
{
    (void)raw;
    if (value->type != WEIR_TYPE_INT || value->as.i64 < 0 ||
        value->as.i64 > UINT32_MAX)
        return false;
    *ret_number = (uint32_t)value->as.i64;
    return true;
}

static bool keep_duration(const struct weir_value *value, struct weir_slice raw,
                          int64_t *ret_ms)
{
    (void)raw;
    *ret_ms = value->type == WEIR_TYPE_INT ? value->as.i64 : -1;
    return *ret_ms >= 0;
}

static bool keep_raw(const struct weir_value *value, struct weir_slice raw,
                     struct weir_slice *ret_map)
{
    *ret_map = raw;
    return value->type == WEIR_TYPE_MAP;
}

/* What is none is as if it were not there: no job dies of it. */
static bool keep_list(const struct weir_value *value, struct weir_slice raw,
                      struct weir_slice *ret_array)
{
    if (value->type == WEIR_TYPE_ARRAY)
        *ret_array = raw;
    return true;
}

static bool keep_text(const struct weir_value *value, struct weir_slice raw,
                      struct weir_slice *ret_text)
{
    (void)raw;
    if (value->type == WEIR_TYPE_STR)
        *ret_text = value->as.bytes;
    return value->type == WEIR_TYPE_STR;
}

static bool read_counter(struct weir_slice *bytes, uint32_t *ret_counter)
{
    struct weir_value value = next_head(bytes);

    return keep_count(&value, *bytes, ret_counter);
}

enum option {
#define PLACE(type, name, form) OPTION_##name,
    WEIR__RECORD_MAP(PLACE) OPTION_UNKNOWN
#undef PLACE
};

static enum option option_of(const struct weir_value *key)
{
#define NAME(type, name, form) #name,
    static const char *const names[] = {WEIR__RECORD_MAP(NAME)};
#undef NAME

    if (key->type != WEIR_TYPE_STR)
        return OPTION_UNKNOWN;
    for (size_t i = 0; i < OPTION_UNKNOWN; i++)
        if (weir__slice_equal(key->as.bytes, weir__slice_str(names[i])))
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
#define KEEP(type, name, form) \
    case OPTION_##name:        \
        return keep_##form(&value, raw, &record->name);
        WEIR__RECORD_MAP(KEEP)
#undef KEEP
    case OPTION_UNKNOWN:
        break;
    }
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

static bool read_fields(struct weir_slice *bytes, struct weir__record *record)
{
    struct weir_counters *counters = &record->counters;

    return read_counter(bytes, &counters->attempt) &&
           read_counter(bytes, &counters->failures) &&
           read_counter(bytes, &counters->timeouts) &&
           read_counter(bytes, &counters->crashes) &&
           read_counter(bytes, &counters->snoozes) &&
           read_options(bytes, record);
}

/* Read all that stands before the body and move `bytes` behind it. What is of
 * the version of ticks and is none may be of a weir to come. */
static int read_head(struct weir_slice *bytes, struct weir__record *record)
{
    struct weir_value array = next_head(bytes);
    struct weir_value version = next_head(bytes);
    bool is_newer =
        version.type == WEIR_TYPE_UINT ||
        (version.type == WEIR_TYPE_INT && version.as.i64 > RECORD_VERSION);
    bool is_tick = is_newer && version.type == WEIR_TYPE_INT &&
                   version.as.i64 == TICK_VERSION;
    bool is_read;

    if (array.type != WEIR_TYPE_ARRAY || array.as.count == 0)
        return WEIR_EMALFORMED;
    if (is_newer && !is_tick)
        return WEIR_ENEWER;
    if (!is_tick &&
        (version.type != WEIR_TYPE_INT || version.as.i64 != RECORD_VERSION))
        return WEIR_EMALFORMED;
    is_read = array.as.count == RECORD_FIELDS && read_fields(bytes, record);
    if (is_tick)
        return is_read && record->cron.len > 0 ? WEIR_OK : WEIR_ENEWER;
    record->cron.len = 0; /* only a tick has one */
    return is_read ? WEIR_OK : WEIR_EMALFORMED;
}

static int read_any(struct weir_slice bytes, struct weir__record *ret_record)
{
    struct weir__record record = {0};
    int rc = read_head(&bytes, &record);

    if (rc < 0)
        return rc;
    if (weir__msgpack_check(bytes) < 0)
        return WEIR_EMALFORMED;
    record.body = bytes;
    *ret_record = record;
    return WEIR_OK;
}

int weir__record_read(struct weir_slice bytes, struct weir__record *ret_record)
{
    struct weir_counters counters;

    if (bytes.len == 0)
        return WEIR_EMALFORMED;
    if (!read_small_head(bytes, &counters))
        return read_any(bytes, ret_record);
    bytes = weir__slice_of(bytes.ptr + SMALL_HEAD, bytes.len - SMALL_HEAD);
    if (weir__msgpack_check(bytes) < 0)
        return WEIR_EMALFORMED;
    *ret_record = (struct weir__record){.counters = counters, .body = bytes};
    return WEIR_OK;
}
