/* SPDX-License-Identifier: MIT */
/* From JSON text to json-c, and from there to msgpack. */
#include "adapters/json/json.h"

#include <json-c/json.h>
#include <json-c/json_visit.h>
#include <limits.h>
#include <math.h>
#include <msgpack.h>
#include <string.h>

#include "adapters/json/quick.h"
#include "adapters/json/strict.h"
#include "adapters/json/utf8.h"
#include "adapters/msgpack/scan.h"
#include "core/assert.h"
#include "core/error.h"
#include "core/text.h"

/* --- parsing ----------------------------------------------------------- */

static int refuse_number(struct json_object *number, struct weir_error *err)
{
    const char *text = json_object_get_string(number);

    return weir__error_set(err, WEIR_EINVAL, "json: %.60s is not finite",
                           text == NULL ? "a number" : text);
}

static int out_of_memory(struct weir_error *err)
{
    return weir__error_set(err, WEIR_ENOMEM, "json: out of memory");
}

/* For json-c's visitor, which dictates the parameters: keep the first number
 * that is not finite. */
static int find_infinite(struct json_object *json, int flags,
                         struct json_object *parent, const char *key,
                         size_t *position, void *arg)
{
    struct json_object **ret_number = arg;

    (void)flags;
    (void)parent;
    (void)key;
    (void)position;
    if (!json_object_is_type(json, json_type_double) ||
        isfinite(json_object_get_double(json)))
        return JSON_C_VISIT_RETURN_CONTINUE;
    *ret_number = json;
    return JSON_C_VISIT_RETURN_STOP;
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct weir_slice skip_blanks(struct weir_slice text)
{
    while (text.len > 0 && is_blank(text.ptr[0]))
        text = weir__slice_of(text.ptr + 1, text.len - 1);
    return text;
}

/* What the tokener said. It has no code for lack of memory: it then reports
 * success before the end, or a null that is not in the text. */
static int tokener_result(struct json_tokener *tokener, struct weir_slice json,
                          size_t end, const struct json_object *parsed,
                          struct weir_error *err)
{
    enum json_tokener_error error = json_tokener_get_error(tokener);
    struct weir_slice token, rest;

    if (error != json_tokener_success)
        return weir__error_set(err, WEIR_EINVAL, "json: %s at byte %zu",
                               error == json_tokener_error_depth
                                   ? "nested deeper than 32 levels"
                                   : json_tokener_error_desc(error),
                               end + 1);
    token = skip_blanks(json);
    WEIR_ASSERT(token.len > 0); /* or it would not be a success */
    if (parsed == NULL && token.ptr[0] != 'n')
        return out_of_memory(err);
    rest = skip_blanks(weir__slice_of(json.ptr + end, json.len - end));
    if (rest.len > 0)
        return weir__error_set(err, WEIR_EINVAL,
                               "json: unexpected character at byte %zu",
                               json.len - rest.len + 1);
    return WEIR_OK;
}

static int parse_checked(struct json_tokener *tokener, struct weir_slice json,
                         struct json_object **ret_json, struct weir_error *err)
{
    struct json_object *parsed =
        json_tokener_parse_ex(tokener, (const char *)json.ptr, (int)json.len);
    size_t end = json_tokener_get_parse_end(tokener);
    struct json_object *infinite = NULL;
    int rc;

    WEIR_ASSERT(end <= json.len);
    /* A number or a word is complete only when something follows it. */
    if (json_tokener_get_error(tokener) == json_tokener_continue)
        parsed = json_tokener_parse_ex(tokener, "", 1);
    rc = tokener_result(tokener, json, end, parsed, err);
    if (rc == WEIR_OK && parsed != NULL)
        (void)json_c_visit(parsed, 0, find_infinite, &infinite); /* told by
                                                                    its arg */
    if (infinite != NULL)
        rc = refuse_number(infinite, err);
    if (rc < 0) {
        (void)json_object_put(parsed); /* whether it was the last reference */
        return rc;
    }
    *ret_json = parsed;
    return WEIR_OK;
}

int weir__json_parse(struct weir_slice json, struct json_object **ret_json,
                     struct weir_error *err)
{
    struct json_tokener *tokener;
    int rc;

    if (json.len == 0 || json.len > INT_MAX)
        return weir__error_set(err, WEIR_EINVAL, "json: %s",
                               json.len == 0 ? "empty text"
                                             : "longer than 2 GiB");
    rc = weir__json_strict(json, err);
    if (rc < 0)
        return rc;
    tokener = json_tokener_new_ex(WEIR__DEPTH_MAX);
    if (tokener == NULL)
        return out_of_memory(err);
    /* Not told to be strict: weir__json_strict was, and json-c 0.18 then takes
     * every byte above 0x7f for a control character. */
    rc = parse_checked(tokener, json, ret_json, err);
    json_tokener_free(tokener);
    return rc;
}

/* --- packing ----------------------------------------------------------- */

struct pack {
    msgpack_packer packer;
    struct weir_error *err;
};

static int append_bytes(void *arg, const char *bytes, size_t len)
{
    struct weir__buf *buf = arg;

    weir__buf_append(buf, bytes, len);
    return buf->failed ? -1 : 0;
}

/* The result of a call of msgpack-c: it fails only when append_bytes does. */
static int packed(const struct pack *p, int result)
{
    return result < 0 ? out_of_memory(p->err) : WEIR_OK;
}

static int pack_text(struct pack *p, const char *text, size_t len)
{
    int rc;

    if (weir__utf8_valid(weir__slice_of(text, len)) < len)
        return weir__error_set(p->err, WEIR_EINVAL,
                               "json: a string is not UTF-8");
    rc = packed(p, msgpack_pack_str(&p->packer, len));
    return rc < 0 ? rc
                  : packed(p, msgpack_pack_str_body(&p->packer, text, len));
}

static int pack_int(struct pack *p, struct json_object *json)
{
    int64_t number = json_object_get_int64(json);

    if (number == INT64_MAX) /* or above it, where json-c moved it there */
        return packed(
            p, msgpack_pack_uint64(&p->packer, json_object_get_uint64(json)));
    return packed(p, msgpack_pack_int64(&p->packer, number));
}

static int pack_double(struct pack *p, struct json_object *json)
{
    double number = json_object_get_double(json);

    if (!isfinite(number))
        return refuse_number(json, p->err);
    return packed(p, msgpack_pack_double(&p->packer, number));
}

static int pack_value(struct pack *p, struct json_object *json, int depth);

static int pack_array(struct pack *p, struct json_object *json, int depth)
{
    size_t count = json_object_array_length(json);
    int rc = packed(p, msgpack_pack_array(&p->packer, count));

    for (size_t i = 0; rc == WEIR_OK && i < count; i++)
        rc = pack_value(p, json_object_array_get_idx(json, i), depth + 1);
    return rc;
}

static int pack_object(struct pack *p, struct json_object *json, int depth)
{
    struct json_object_iterator it = json_object_iter_begin(json);
    struct json_object_iterator end = json_object_iter_end(json);
    size_t count = (size_t)json_object_object_length(json);
    int rc = packed(p, msgpack_pack_map(&p->packer, count));

    while (rc == WEIR_OK && !json_object_iter_equal(&it, &end)) {
        const char *key = json_object_iter_peek_name(&it);

        rc = pack_text(p, key, strlen(key));
        if (rc == WEIR_OK)
            rc = pack_value(p, json_object_iter_peek_value(&it), depth + 1);
        json_object_iter_next(&it);
    }
    return rc;
}

static int pack_value(struct pack *p, struct json_object *json, int depth)
{
    if (depth > WEIR__DEPTH_MAX)
        return weir__error_set(p->err, WEIR_EINVAL,
                               "json: nested deeper than 32 levels");
    switch (json_object_get_type(json)) {
    case json_type_null:
        return packed(p, msgpack_pack_nil(&p->packer));
    case json_type_boolean:
        return packed(p, json_object_get_boolean(json)
                             ? msgpack_pack_true(&p->packer)
                             : msgpack_pack_false(&p->packer));
    case json_type_double:
        return pack_double(p, json);
    case json_type_int:
        return pack_int(p, json);
    case json_type_object:
        return pack_object(p, json, depth);
    case json_type_array:
        return pack_array(p, json, depth);
    case json_type_string:
        return pack_text(p, json_object_get_string(json),
                         (size_t)json_object_get_string_len(json));
    }
    return WEIR_EINVAL;
}

int weir__json_object_to_msgpack(struct json_object *json,
                                 struct weir__buf *buf, struct weir_error *err)
{
    struct pack p = {.err = err};
    size_t len = buf->len;
    int rc;

    WEIR_ASSERT(buf->len <= buf->cap);
    msgpack_packer_init(&p.packer, buf, append_bytes);
    rc = pack_value(&p, json, 1);
    if (rc < 0)
        buf->len = len; /* no half of a value stays */
    return rc;
}

int weir__json_to_msgpack(struct weir_slice json, struct weir__buf *buf,
                          struct weir_error *err)
{
    struct weir__json_quick quick;
    struct json_object *parsed = NULL;
    size_t len = buf->len;
    int rc = WEIR_EINVAL;

    if (json.len > 0) { /* else there may be no pointer to add to */
        quick = (struct weir__json_quick){json.ptr, json.ptr + json.len};
        rc = weir__json_quick_value(&quick, buf);
    }
    if (rc == WEIR_ENOMEM)
        return out_of_memory(err);
    if (rc == WEIR_OK && weir__json_quick_is_done(&quick))
        return WEIR_OK;
    buf->len = len;
    rc = weir__json_parse(json, &parsed, err);
    if (rc < 0)
        return rc;
    rc = weir__json_object_to_msgpack(parsed, buf, err);
    (void)json_object_put(parsed); /* whether it was the last reference */
    return rc;
}
