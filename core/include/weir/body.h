/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BODY_H
#define WEIR_BODY_H

/* Writing the body of a job, one msgpack value, into a buffer of the caller's.
 * Nothing here allocates, and nothing has to be linked: for hosts and plugins.
 *
 *     uint8_t buf[256];
 *     struct weir_body body;
 *     struct weir_slice bytes;
 *
 *     weir_body_init(&body, buf, sizeof(buf));
 *     weir_body_map(&body, 2);
 *     weir_body_str(&body, "order");
 *     weir_body_int(&body, 42);
 *     weir_body_str(&body, "items");
 *     weir_body_array(&body, 1);
 *     weir_body_str(&body, "lamp");
 *     if (weir_body_end(&body, &bytes, &err) == WEIR_OK)
 *         job.body = bytes;
 *
 * A map or an array is over when it has as many values as were announced. What
 * is wrong is kept and told once, by weir_body_end. */

#include <weir/base.h>

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_BODY_DEPTH 32 /* levels at most; a number alone is the first */

/* Zeroed by weir_body_init; only `len` is for others to read. */
struct weir_body {
    uint8_t *buf; /* the caller's */
    size_t cap;
    size_t len; /* bytes that the body takes, also beyond `cap` */
    uint64_t missing[WEIR_BODY_DEPTH + 1]; /* values, of each that is open */
    unsigned depth;                        /* how many are open */
    const char *mistake;                   /* the first one, or NULL */
};

/* Begin in `buf`, which outlives what weir_body_end returns; with a `cap` of 0
 * it may be NULL, and `len` then tells what it takes. */
static inline void weir_body_init(struct weir_body *body, void *buf, size_t cap)
{
    memset(body, 0, sizeof(*body));
    body->buf = (uint8_t *)buf;
    body->cap = cap;
    body->missing[0] = 1;
}

/* --- not for callers ------------------------------------------------------ */

static inline void weir__body_bytes(struct weir_body *body, const void *bytes,
                                    size_t len)
{
    if (len > 0 && body->len <= body->cap && len <= body->cap - body->len)
        memcpy(body->buf + body->len, bytes, len);
    body->len += len;
}

/* `first` and the `size` lowest bytes of `value`, the highest one first. */
static inline void weir__body_head(struct weir_body *body, unsigned first,
                                   uint64_t value, unsigned size)
{
    uint8_t bytes[9];

    bytes[0] = (uint8_t)first;
    for (unsigned i = 0; i < size; i++)
        bytes[1 + i] = (uint8_t)(value >> (8 * (size - 1 - i)));
    weir__body_bytes(body, bytes, 1 + (size_t)size);
}

/* A value begins: whether there is a place for it. */
static inline bool weir__body_value(struct weir_body *body)
{
    if (body->mistake != NULL)
        return false;
    if (body->missing[body->depth] == 0) {
        body->mistake = "a value follows that no map or array announced";
        return false;
    }
    if (body->depth == WEIR_BODY_DEPTH) {
        body->mistake = "it is more than 32 levels deep";
        return false;
    }
    body->missing[body->depth]--;
    return true;
}

/* It is over, and with it what it was the last value of. */
static inline void weir__body_close(struct weir_body *body)
{
    while (body->depth > 0 && body->missing[body->depth] == 0)
        body->depth--;
}

static inline void weir__body_scalar(struct weir_body *body, unsigned first,
                                     uint64_t value, unsigned size)
{
    if (!weir__body_value(body))
        return;
    weir__body_head(body, first, value, size);
    weir__body_close(body);
}

/* A map or an array, of `count` values. */
static inline void weir__body_open(struct weir_body *body, uint64_t count)
{
    body->depth++;
    body->missing[body->depth] = count;
    weir__body_close(body);
}

/* --- values --------------------------------------------------------------- */

/* `pairs` times a key and its value follow; keys are mostly text. */
static inline void weir_body_map(struct weir_body *body, uint32_t pairs)
{
    if (!weir__body_value(body))
        return;
    if (pairs < 16)
        weir__body_head(body, 0x80 | pairs, 0, 0);
    else if (pairs <= UINT16_MAX)
        weir__body_head(body, 0xde, pairs, 2);
    else
        weir__body_head(body, 0xdf, pairs, 4);
    weir__body_open(body, (uint64_t)pairs * 2);
}

/* `count` values follow. */
static inline void weir_body_array(struct weir_body *body, uint32_t count)
{
    if (!weir__body_value(body))
        return;
    if (count < 16)
        weir__body_head(body, 0x90 | count, 0, 0);
    else if (count <= UINT16_MAX)
        weir__body_head(body, 0xdc, count, 2);
    else
        weir__body_head(body, 0xdd, count, 4);
    weir__body_open(body, count);
}

/* Text, which is UTF-8, of `len` bytes. */
static inline void weir_body_text(struct weir_body *body, const char *text,
                                  size_t len)
{
    if (!weir__body_value(body))
        return;
    if (len < 32)
        weir__body_head(body, 0xa0 | (unsigned)len, 0, 0);
    else if (len <= UINT8_MAX)
        weir__body_head(body, 0xd9, len, 1);
    else if (len <= UINT16_MAX)
        weir__body_head(body, 0xda, len, 2);
    else if (len <= UINT32_MAX)
        weir__body_head(body, 0xdb, len, 4);
    else
        body->mistake = "a text has more than 4 GiB";
    weir__body_bytes(body, text, len);
    weir__body_close(body);
}

/* Text that ends with a NUL. */
static inline void weir_body_str(struct weir_body *body, const char *text)
{
    weir_body_text(body, text, strlen(text));
}

/* Bytes that are no text. */
static inline void weir_body_bin(struct weir_body *body, const void *bytes,
                                 size_t len)
{
    if (!weir__body_value(body))
        return;
    if (len <= UINT8_MAX)
        weir__body_head(body, 0xc4, len, 1);
    else if (len <= UINT16_MAX)
        weir__body_head(body, 0xc5, len, 2);
    else if (len <= UINT32_MAX)
        weir__body_head(body, 0xc6, len, 4);
    else
        body->mistake = "a value has more than 4 GiB";
    weir__body_bytes(body, bytes, len);
    weir__body_close(body);
}

static inline void weir_body_uint(struct weir_body *body, uint64_t value)
{
    if (value < 0x80)
        weir__body_scalar(body, (unsigned)value, 0, 0);
    else if (value <= UINT8_MAX)
        weir__body_scalar(body, 0xcc, value, 1);
    else if (value <= UINT16_MAX)
        weir__body_scalar(body, 0xcd, value, 2);
    else if (value <= UINT32_MAX)
        weir__body_scalar(body, 0xce, value, 4);
    else
        weir__body_scalar(body, 0xcf, value, 8);
}

static inline void weir_body_int(struct weir_body *body, int64_t value)
{
    if (value >= 0)
        weir_body_uint(body, (uint64_t)value);
    else if (value >= -32)
        weir__body_scalar(body, (unsigned)(uint8_t)value, 0, 0);
    else if (value >= INT8_MIN)
        weir__body_scalar(body, 0xd0, (uint64_t)value, 1);
    else if (value >= INT16_MIN)
        weir__body_scalar(body, 0xd1, (uint64_t)value, 2);
    else if (value >= INT32_MIN)
        weir__body_scalar(body, 0xd2, (uint64_t)value, 4);
    else
        weir__body_scalar(body, 0xd3, (uint64_t)value, 8);
}

static inline void weir_body_double(struct weir_body *body, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    weir__body_scalar(body, 0xcb, bits, 8);
}

static inline void weir_body_bool(struct weir_body *body, bool value)
{
    weir__body_scalar(body, value ? 0xc3 : 0xc2, 0, 0);
}

static inline void weir_body_nil(struct weir_body *body)
{
    weir__body_scalar(body, 0xc0, 0, 0);
}

/* A value that is msgpack already, such as the body of another job; it is
 * looked at when the job is added. */
static inline void weir_body_value(struct weir_body *body,
                                   struct weir_slice value)
{
    if (!weir__body_value(body))
        return;
    weir__body_bytes(body, value.ptr, value.len);
    weir__body_close(body);
}

/* --- the end -------------------------------------------------------------- */

static inline int weir__body_refuse(struct weir_error *err, int code,
                                    const char *text)
{
    if (err == NULL)
        return code;
    err->code = code;
    memcpy(err->text, "body: ", 6);
    memcpy(err->text + 6, text, strlen(text) + 1); /* fits: they are ours */
    return code;
}

/* The whole body, borrowed from the buffer. WEIR_EINVAL: values are missing or
 * one is too many; WEIR_ETOOBIG: it takes `body->len` bytes, more than there
 * are. `err` may be NULL. */
static inline WEIR_MUST_CHECK int weir_body_end(const struct weir_body *body,
                                                struct weir_slice *ret_body,
                                                struct weir_error *err)
{
    if (body->mistake != NULL)
        return weir__body_refuse(err, WEIR_EINVAL, body->mistake);
    if (body->missing[0] > 0)
        return weir__body_refuse(err, WEIR_EINVAL, "nothing was written");
    if (body->depth > 0)
        return weir__body_refuse(err, WEIR_EINVAL,
                                 "a map or an array has less values than were "
                                 "announced (of a map each pair has two)");
    if (body->len > body->cap)
        return weir__body_refuse(err, WEIR_ETOOBIG,
                                 "it takes more bytes than the buffer has");
    ret_body->ptr = body->buf;
    ret_body->len = body->len;
    return WEIR_OK;
}

#ifdef __cplusplus
}
#endif
#endif
