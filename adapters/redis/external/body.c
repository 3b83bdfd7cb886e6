/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/json/json.h"
#include "adapters/msgpack/origin.h"
#include "adapters/msgpack/scan.h"
#include "adapters/redis/external/private.h"
#include "adapters/redis/pack.h"
#include "core/text.h"
#include "core/utf8.h"

/* What others write into a list or a stream, as bodies of jobs. */

enum { PAST_FIELDS = 9 };

const char *const weir__external_body_names[] = {[WEIR__AUTO] = "",
                                                 [WEIR__JSON] = "json",
                                                 [WEIR__TEXT] = "text",
                                                 [WEIR__MSGPACK] = "msgpack"};

/* One value of msgpack. */
static bool is_whole(struct weir_slice raw)
{
    return weir__msgpack_check(raw) == WEIR_OK;
}

/* As pack_fields() writes them. A stream has an entry as fields, and weir keeps
 * them so: whatever `body` says of other values, they are msgpack. */
static bool is_fields(struct weir_slice raw)
{
    return raw.len > 0 && (raw.ptr[0] >> 4 == 0x8 || raw.ptr[0] == 0xdf) &&
           is_whole(raw);
}

/* With auto: is an entry msgpack? JSON and ASCII begin with a byte below 0x80.
 * Letters of other alphabets begin with 0xc2 to 0xf4, as numbers and extensions
 * of msgpack do: five letters of Hebrew are an extension of 8 bytes. UTF-8 is
 * more likely a text, but for 0xcc and 0xcd, which begin accents only. */
static bool is_msgpack(struct weir_slice raw)
{
    uint8_t first = raw.len > 0 ? raw.ptr[0] : 0;
    bool is_letter =
        first >= 0xc7 && first <= 0xd8 && first != 0xcc && first != 0xcd;

    return first >= 0x80 && is_whole(raw) &&
           !(is_letter && weir__utf8_valid(raw) == raw.len);
}

static bool read_bytes(struct weir__buf *buf, struct weir_slice raw,
                       uint32_t form)
{
    bool is_auto = form == WEIR__AUTO;

    if (is_auto ? is_msgpack(raw) : form == WEIR__MSGPACK && is_whole(raw)) {
        weir__buf_append(buf, raw.ptr, raw.len);
        return true;
    }
    if ((form == WEIR__JSON || is_auto) && raw.len > 0 &&
        weir__json_to_msgpack(raw, buf, NULL) == WEIR_OK)
        return true;
    weir__pack_str(buf, raw.ptr, raw.len);
    return (form == WEIR__TEXT || is_auto) && weir__utf8_valid(raw) == raw.len;
}

/* The bytes of a msgpack string; false: another value. */
static bool read_text(struct weir_slice *body)
{
    struct weir_value value = {.type = WEIR_TYPE_NONE};

    (void)weir__msgpack_head(*body, &value);
    if (value.type == WEIR_TYPE_STR)
        *body = value.as.bytes;
    return value.type == WEIR_TYPE_STR;
}

bool weir__external_write_body(struct weir__buf *buf, struct weir_slice body,
                               uint32_t form)
{
    size_t from = buf->len, len;

    if (form == WEIR__MSGPACK) {
        weir__buf_append(buf, body.ptr, body.len);
    } else if (form != WEIR__TEXT || !read_text(&body)) {
        len = weir__json_print(body, NULL, 0);
        if (len == 0 || weir__buf_reserve(buf, len + 1) == NULL)
            return false;
        (void)weir__json_print(body, (char *)buf->ptr + from, len + 1);
        buf->len = from + len;
    } else {
        weir__buf_append(buf, body.ptr, body.len);
    }
    return !buf->failed;
}

static void pack_map(struct weir__buf *buf, size_t pairs)
{
    uint8_t head[5] = {0xdf, (uint8_t)(pairs >> 24), (uint8_t)(pairs >> 16),
                       (uint8_t)(pairs >> 8), (uint8_t)pairs};
    uint8_t small = (uint8_t)(0x80 | pairs);

    if (pairs < 16)
        weir__buf_append(buf, &small, 1);
    else
        weir__buf_append(buf, head, sizeof(head));
}

static void pack_fields(struct weir__buf *buf, const struct redisReply *fields)
{
    size_t count = (size_t)fields->elements / 2;
    struct weir_slice text;

    pack_map(buf, count);
    for (size_t i = 0; i < 2 * count; i++) {
        if (!weir__reply_str(fields, i, &text))
            text = (struct weir_slice){0};
        weir__pack_str(buf, text.ptr, text.len);
    }
}

bool weir__external_read_body(const struct weir__external_topic *topic,
                              struct weir__buf *buf,
                              const struct redisReply *raw, uint32_t form,
                              struct weir__external_entry *entry)
{
    struct weir_slice bytes = weir__slice_str(""), field;
    bool is_map = raw != NULL && raw->type == REDIS_REPLY_ARRAY;
    bool is_sound = true;

    if (raw != NULL && raw->type == REDIS_REPLY_STRING)
        bytes = weir__slice_of(raw->str, (size_t)raw->len);
    if (topic->is_stream && is_fields(bytes))
        form = WEIR__MSGPACK;
    if (is_map && raw->elements == 2 && weir__reply_str(raw, 0, &field) &&
        weir__slice_equal(field, weir__slice_str("body")))
        is_map = !weir__reply_str(raw, 1, &bytes);
    entry->raw_at = buf->len;
    if (is_map)
        pack_fields(buf, raw);
    else
        weir__buf_append(buf, bytes.ptr, bytes.len);
    entry->raw_len = buf->len - entry->raw_at;
    entry->body_at = is_map ? entry->raw_at : buf->len;
    if (!is_map)
        is_sound = read_bytes(buf, bytes, form);
    entry->body_len = buf->len - entry->body_at;
    return is_sound;
}

/* --- counters ----------------------------------------------------------- */

void weir__external_read_past(struct weir_slice bytes,
                              struct weir__record *record, uint32_t *ret_blamed)
{
    struct weir_value value[PAST_FIELDS] = {{.type = WEIR_TYPE_NONE}};
    uint32_t number[PAST_FIELDS] = {0};

    if (weir__msgpack_check(bytes) < 0)
        return;
    for (size_t i = 0, at = weir__msgpack_head(bytes, &value[0]);
         i < PAST_FIELDS && at < bytes.len; i++) {
        struct weir_slice rest = {bytes.ptr + at, bytes.len - at};

        at += weir__msgpack_head(rest, &value[i]);
        if (value[i].type == WEIR_TYPE_INT && value[i].as.i64 >= 0 &&
            value[i].as.i64 <= UINT32_MAX)
            number[i] = (uint32_t)value[i].as.i64;
    }
    record->counters = (struct weir_counters){
        .attempt = number[0],
        .failures = number[1],
        .timeouts = number[2],
        .crashes = number[3],
        .snoozes = number[4],
    };
    if (ret_blamed != NULL)
        *ret_blamed = number[5];
    if (value[7].type == WEIR_TYPE_STR)
        record->reason = value[7].as.bytes;
    if (value[8].type == WEIR_TYPE_STR)
        record->error = value[8].as.bytes;
}

void weir__external_write_past(struct weir__buf *buf,
                               const struct weir__record *record,
                               uint32_t blamed)
{
    const struct weir_counters *counters = &record->counters;

    weir__pack_array(buf, PAST_FIELDS);
    weir__pack_uint(buf, counters->attempt);
    weir__pack_uint(buf, counters->failures);
    weir__pack_uint(buf, counters->timeouts);
    weir__pack_uint(buf, counters->crashes);
    weir__pack_uint(buf, counters->snoozes);
    weir__pack_uint(buf, blamed);
    weir__pack_uint(buf, 0); /* not started */
    weir__pack_str(buf, record->reason.ptr, record->reason.len);
    weir__pack_str(buf, record->error.ptr, record->error.len);
}

/* --- time --------------------------------------------------------------- */

int64_t weir__external_added_ms(const struct weir__external_topic *topic,
                                struct weir_slice id)
{
    int64_t ms = topic->is_stream ? weir__digits_read(id) : 0;

    return ms < WEIR__DUE_MAX_MS ? ms : WEIR__DUE_MAX_MS;
}

/* --- back from the outbox ----------------------------------------------- */

/* As an entry's bytes. With auto they stay msgpack where they are read as
 * such: a number may have to become JSON. */
static void write_body(struct weir__buf *buf, struct weir_slice body,
                       uint32_t form, bool is_stream)
{
    struct weir__buf entry = {0};

    if (!(is_stream && is_fields(body)) &&
        (form != WEIR__AUTO || !is_msgpack(body)) &&
        weir__external_write_body(&entry, body, form))
        body = weir__buf_slice(&entry);
    weir__resp_bytes(buf, body);
    weir__buf_fini(&entry);
}

void weir__external_write_undeliverable(const struct weir__store_topic *topic,
                                        struct weir__buf *buf,
                                        const struct weir__undeliverable *job)
{
    const struct weir__record broken = {.body = job->stored};
    const struct weir__record *record =
        job->record == NULL ? &broken : job->record;
    struct weir_origin origin = {.id = weir__slice_str(job->made_id)};
    struct weir__buf past = {0};

    (void)weir__origin_read(record->headers, &origin); /* else made */
    weir__external_write_past(&past, record, 0);
    weir__resp_bytes(buf, origin.id);
    write_body(buf, record->body, topic->options->body,
               topic->kind == &weir__stream_kind);
    weir__resp_bytes(buf, weir__buf_slice(&past));
    buf->failed = buf->failed || past.failed;
    weir__buf_fini(&past);
}
