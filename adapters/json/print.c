/* SPDX-License-Identifier: MIT */
/* From msgpack to json-c, and from there to text. */
#include <inttypes.h>
#include <json-c/json.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/json/json.h"
#include "adapters/msgpack/scan.h"
#include "core/assert.h"
#include "core/text.h"
#include "core/utf8.h"
#include "core/visible.h"

/* Takes over `value` also when it fails; a NULL result is a failure. */
static bool add_member(struct json_object *map, const char *key,
                       struct json_object *value)
{
    if (value != NULL && json_object_object_add(map, key, value) == 0)
        return true;
    (void)json_object_put(value); /* it has no other holder */
    return false;
}

/* --- scalars ----------------------------------------------------------- */

/* The shortest of the usual precisions that reads back as the same number,
 * with a point even where the locale has something else, and never looking
 * like an integer. */
static void print_double(double number, char text[40])
{
    char local[32];
    bool is_float = false;
    size_t len = 0;

    WEIR_ASSERT(isfinite(number));
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(local, sizeof(local), "%.*g", digits, number); /* fits */
        if (strtod(local, NULL) == number)
            break;
    }
    for (const char *c = local; *c != '\0'; c++) {
        bool is_point = strchr("0123456789+-e", *c) == NULL;

        if (is_point && is_float)
            continue; /* a point of several bytes */
        is_float = is_float || is_point || *c == 'e';
        text[len++] = *c;
        if (is_point)
            text[len - 1] = '.';
    }
    memcpy(text + len, is_float ? "" : ".0", is_float ? 1 : 3);
}

static struct json_object *double_json(double number)
{
    char text[40];

    print_double(number, text);
    return json_object_new_double_s(number, text);
}

/* Append `text` with U+FFFD for each byte that is not part of a valid
 * character, and for NUL if that cannot be kept either. */
static void append_repaired(struct weir__buf *buf, struct weir_slice text,
                            bool keep_nul)
{
    while (text.len > 0) {
        size_t len = weir__utf8_valid(text);
        const void *nul = keep_nul ? NULL : memchr(text.ptr, 0, len);

        if (nul != NULL)
            len = (size_t)((const uint8_t *)nul - text.ptr);
        if (len > 0)
            weir__buf_append(buf, text.ptr, len);
        if (len < text.len) {
            weir__buf_append(buf, "\xef\xbf\xbd", 3);
            len++;
        }
        text = weir__slice_of(text.ptr + len, text.len - len);
    }
}

static struct json_object *bytes_json(const void *bytes, size_t len)
{
    return len > INT_MAX ? NULL : json_object_new_string_len(bytes, (int)len);
}

static struct json_object *str_json(struct weir_slice text)
{
    struct weir__buf buf = {0};
    struct json_object *json = NULL;

    if (weir__utf8_valid(text) == text.len)
        return bytes_json(text.ptr, text.len);
    append_repaired(&buf, text, true);
    if (!buf.failed)
        json = bytes_json(buf.ptr, buf.len);
    weir__buf_fini(&buf);
    return json;
}

/* Append base64 of up to three bytes. */
static void append_base64(struct weir__buf *buf, const uint8_t *bytes,
                          size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "abcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = (uint32_t)bytes[0] << 16;
    char text[4];

    WEIR_ASSERT(len >= 1);
    if (len > 1)
        bits |= (uint32_t)bytes[1] << 8;
    if (len > 2)
        bits |= bytes[2];
    text[0] = digits[bits >> 18];
    text[1] = digits[bits >> 12 & 63];
    text[2] = '=';
    text[3] = '=';
    if (len > 1)
        text[2] = digits[bits >> 6 & 63];
    if (len > 2)
        text[3] = digits[bits & 63];
    weir__buf_append(buf, text, sizeof(text));
}

static struct json_object *base64_json(struct weir_slice bytes)
{
    struct weir__buf buf = {0};
    struct json_object *json = NULL;

    for (size_t i = 0; i < bytes.len; i += 3)
        append_base64(&buf, bytes.ptr + i, bytes.len - i);
    if (!buf.failed)
        json = bytes_json(buf.len == 0 ? "" : (const void *)buf.ptr, buf.len);
    weir__buf_fini(&buf);
    return json;
}

static struct json_object *bin_json(struct weir_slice bytes)
{
    struct json_object *map = json_object_new_object();

    if (map == NULL || add_member(map, "$bin", base64_json(bytes)))
        return map;
    (void)json_object_put(map); /* it has no other holder */
    return NULL;
}

static struct json_object *ext_json(struct weir_slice bytes)
{
    struct json_object *map = json_object_new_object();
    /* The type stands before the data; it is signed. */
    int type = bytes.ptr[-1] < 128 ? bytes.ptr[-1] : bytes.ptr[-1] - 256;

    if (map == NULL || (add_member(map, "$ext", json_object_new_int(type)) &&
                        add_member(map, "data", base64_json(bytes))))
        return map;
    (void)json_object_put(map); /* it has no other holder */
    return NULL;
}

/* --- containers -------------------------------------------------------- */

/* Take one value off `bytes`; false when out of memory. */
static bool read_value(struct weir_slice *bytes, struct json_object **ret_json);

static bool read_array(struct weir_slice *bytes, size_t count,
                       struct json_object **ret_json)
{
    struct json_object *array = json_object_new_array();

    for (size_t i = 0; array != NULL && i < count; i++) {
        struct json_object *element = NULL;

        if (read_value(bytes, &element) &&
            json_object_array_add(array, element) == 0)
            continue;
        (void)json_object_put(element); /* it has no other holder */
        (void)json_object_put(array);   /* nor has this */
        return false;
    }
    *ret_json = array;
    return array != NULL;
}

static const char *plain_text(struct json_object *json, size_t *ret_len)
{
    return json_object_to_json_string_length(
        json, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, ret_len);
}

/* Take a key off `bytes` and write it as a C string into `key`. */
static bool read_key(struct weir_slice *bytes, struct weir__buf *key)
{
    struct json_object *json = NULL;
    const char *text;
    size_t len = 0;

    weir__buf_reset(key);
    if (!read_value(bytes, &json))
        return false;
    if (json_object_is_type(json, json_type_string)) {
        text = json_object_get_string(json);
        len = (size_t)json_object_get_string_len(json);
    } else {
        text = plain_text(json, &len);
    }
    if (text != NULL)
        append_repaired(key, weir__slice_of(text, len), false);
    weir__buf_append(key, "", 1);
    (void)json_object_put(json); /* it has no other holder */
    return text != NULL && !key->failed;
}

static bool read_pair(struct weir_slice *bytes, struct weir__buf *key,
                      struct json_object *map)
{
    struct json_object *value = NULL;
    const char *name;

    if (!read_key(bytes, key) || !read_value(bytes, &value))
        return false;
    name = (const char *)key->ptr;
    if (json_object_object_get_ex(map, name, NULL)) {
        (void)json_object_put(value); /* of equal keys the first counts */
        return true;
    }
    if (json_object_object_add(map, name, value) == 0)
        return true;
    (void)json_object_put(value); /* it has no other holder */
    return false;
}

static bool read_map(struct weir_slice *bytes, size_t count,
                     struct json_object **ret_json)
{
    struct json_object *map = json_object_new_object();
    struct weir__buf key = {0};
    bool is_ok = map != NULL;

    for (size_t i = 0; is_ok && i < count; i++)
        is_ok = read_pair(bytes, &key, map);
    weir__buf_fini(&key);
    if (is_ok)
        *ret_json = map;
    else
        (void)json_object_put(map); /* it has no other holder */
    return is_ok;
}

static bool read_value(struct weir_slice *bytes, struct json_object **ret_json)
{
    struct weir_value value;
    size_t len = weir__msgpack_head(*bytes, &value);

    WEIR_ASSERT(len > 0 && len <= bytes->len); /* it has been checked */
    *bytes = weir__slice_of(bytes->ptr + len, bytes->len - len);
    switch (value.type) {
    case WEIR_TYPE_NONE:
    case WEIR_TYPE_NIL:
        *ret_json = NULL;
        return true;
    case WEIR_TYPE_BOOL:
        *ret_json = json_object_new_boolean(value.as.boolean);
        break;
    case WEIR_TYPE_INT:
        *ret_json = json_object_new_int64(value.as.i64);
        break;
    case WEIR_TYPE_UINT:
        *ret_json = json_object_new_uint64(value.as.u64);
        break;
    case WEIR_TYPE_FLOAT:
        *ret_json = NULL;
        if (!isfinite(value.as.f64))
            return true;
        *ret_json = double_json(value.as.f64);
        break;
    case WEIR_TYPE_STR:
        *ret_json = str_json(value.as.bytes);
        break;
    case WEIR_TYPE_BIN:
        *ret_json = bin_json(value.as.bytes);
        break;
    case WEIR_TYPE_EXT:
        *ret_json = ext_json(value.as.bytes);
        break;
    case WEIR_TYPE_ARRAY:
        return read_array(bytes, value.as.count, ret_json);
    case WEIR_TYPE_MAP:
        return read_map(bytes, value.as.count, ret_json);
    }
    return *ret_json != NULL;
}

/* --- whole values ------------------------------------------------------ */

int weir__json_from_msgpack(struct weir_slice value,
                            struct json_object **ret_json)
{
    struct json_object *json = NULL;

    if (value.len == 0) {
        *ret_json = NULL;
        return WEIR_OK;
    }
    if (weir__msgpack_check(value) < 0)
        return WEIR_EMALFORMED;
    if (!read_value(&value, &json))
        return WEIR_ENOMEM;
    *ret_json = json;
    return WEIR_OK;
}

/* In JSON text only strings have what is hidden, so \u can stand for it. */
static void append_escaped(struct weir__buf *buf, struct weir_slice text)
{
    while (text.len > 0) {
        size_t len = weir__visible_length(text);
        char escape[8];

        weir__buf_append(buf, text.ptr, len);
        text = weir__slice_of(text.ptr + len, text.len - len);
        if (text.len > 0) {
            int32_t code = weir__hidden_take(&text);

            if (code == WEIR__NO_CHARACTER)
                code = 0xfffd;
            (void)snprintf(escape, sizeof(escape), "\\u%04" PRIx32,
                           (uint32_t)code & 0xffff);
            weir__buf_append(buf, escape, 6);
        }
    }
}

bool weir__json_line(struct json_object *json, struct weir__buf *buf,
                     struct weir_slice *ret_line)
{
    size_t len = 0;
    const char *text = plain_text(json, &len);
    struct weir_slice line = weir__slice_of(text, len);

    if (text == NULL)
        return false;
    weir__buf_reset(buf);
    if (weir__visible_length(line) < len) {
        append_escaped(buf, line);
        line = weir__buf_slice(buf);
    }
    if (buf->failed)
        return false;
    *ret_line = line;
    return true;
}

size_t weir__json_print(struct weir_slice value, char *buf, size_t cap)
{
    struct json_object *json = NULL;
    struct weir__buf escaped = {0};
    struct weir_slice line = {0};

    if (weir__json_from_msgpack(value, &json) < 0)
        return 0;
    if (weir__json_line(json, &escaped, &line) && cap > 0) {
        size_t kept = line.len < cap ? line.len : cap - 1;

        memcpy(buf, line.ptr, kept);
        buf[kept] = '\0';
    }
    weir__buf_fini(&escaped);
    (void)json_object_put(json); /* it has no other holder */
    return line.len;
}
