/* SPDX-License-Identifier: MIT */
#include "adapters/json/read.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/json/json.h"
#include "adapters/msgpack/scan.h"
#include "core/error.h"
#include "core/mem.h"

/* From JSON to msgpack: strings, arrays and objects, whose lengths come before
 * them and are known behind them. */

enum { FIRST_KEYS = 32 }; /* so many want no memory of their own */

/* --- lengths -------------------------------------------------------------- */

/* How long a string, array or map is comes before it and is known behind it.
 * One byte was left at `at`; what more is wanted is made. The heads are those
 * for very few (with the count in it), 8, 16 and 32 bits; 0: there is none. */
static void write_head(struct weir__buf *buf, size_t at, size_t count,
                       const uint8_t heads[4])
{
    size_t few = heads[1] != 0 ? 31 : 15;
    uint8_t head[5] = {heads[3]};
    size_t len;

    if (count <= few) {
        head[0] = (uint8_t)(heads[0] | count);
        len = 0;
    } else {
        size_t which = count <= UINT8_MAX && heads[1] != 0 ? 1
                       : count <= UINT16_MAX               ? 2
                                                           : 3;

        head[0] = heads[which];
        len = (size_t)1 << (which - 1);
        for (size_t i = 0; i < len; i++)
            head[1 + i] = (uint8_t)(count >> 8 * (len - 1 - i));
    }
    if (weir__buf_reserve(buf, len) == NULL)
        return; /* the buffer says so */
    if (len > 0)
        memmove(buf->ptr + at + 1 + len, buf->ptr + at + 1, buf->len - at - 1);
    memcpy(buf->ptr + at, head, 1 + len);
    buf->len += len;
}

/* --- strings -------------------------------------------------------------- */

struct key {
    size_t at;           /* of the pair in the buffer */
    size_t text_at, len; /* of the key's bytes */
    const uint8_t *text; /* when the object has ended */
    bool is_dropped;
};

/* One value on its way. */
struct trip {
    struct weir__json_read *read;
    struct weir__buf *buf;
    struct key *keys; /* of all objects that are open */
    size_t key_count, key_cap;
    struct key first_keys[FIRST_KEYS];
};

static int out_of_memory(const struct trip *trip)
{
    return weir__error_set(trip->read->err, WEIR_ENOMEM, "json: out of memory");
}

/* Where its bytes begin in the buffer: those up to the end. */
static int pack_text(struct trip *trip, bool is_key, size_t *ret_text_at)
{
    static const uint8_t heads[] = {0xa0, 0xd9, 0xda, 0xdb};
    struct weir__buf *buf = trip->buf;
    size_t at = buf->len, len;
    int rc;

    weir__buf_append(buf, "", 1);
    rc = is_key ? weir__json_read_key(trip->read, buf)
                : weir__json_read_text(trip->read, buf);
    if (rc < 0)
        return rc;
    len = buf->len - at - 1;
    write_head(buf, at, len, heads);
    *ret_text_at = buf->len - len;
    return WEIR_OK;
}

/* --- equal keys ----------------------------------------------------------- */

static struct key *add_key(struct trip *trip)
{
    bool is_first = trip->keys == trip->first_keys;
    struct key *more;

    if (trip->key_count == trip->key_cap) {
        more = weir__mem_grow(is_first ? NULL : trip->keys, 2 * trip->key_cap,
                              sizeof(*more));
        if (more == NULL)
            return NULL;
        if (is_first)
            memcpy(more, trip->first_keys, sizeof(trip->first_keys));
        trip->keys = more;
        trip->key_cap *= 2;
    }
    return &trip->keys[trip->key_count++];
}

static int compare_texts(const struct key *one, const struct key *other)
{
    if (one->len != other->len)
        return one->len < other->len ? -1 : 1;
    return memcmp(one->text, other->text, one->len);
}

static int by_place(const void *one, const void *other)
{
    const struct key *a = one, *b = other;

    return a->at < b->at ? -1 : 1;
}

/* Equal keys beside each other, the last one last. */
static int by_text(const void *one, const void *other)
{
    int order = compare_texts(one, other);

    return order != 0 ? order : by_place(one, other);
}

/* Mark all but the last of equal keys. Many are sorted for it, so that nobody
 * makes this slow. */
static bool mark_equal(struct key *keys, size_t count)
{
    bool is_one = false, is_sorted = count > FIRST_KEYS;

    if (is_sorted)
        qsort(keys, count, sizeof(*keys), by_text);
    for (size_t i = 0; i < count; i++) {
        size_t end = is_sorted && i + 2 < count ? i + 2 : count;

        for (size_t k = i + 1; k < end && !keys[i].is_dropped; k++)
            keys[i].is_dropped = compare_texts(&keys[i], &keys[k]) == 0;
        is_one = is_one || keys[i].is_dropped;
    }
    if (is_sorted)
        qsort(keys, count, sizeof(*keys), by_place);
    return is_one;
}

/* Take the pairs of marked keys out of the buffer. Returns how many stay. */
static size_t drop_marked(const struct key *keys, size_t count,
                          struct weir__buf *buf)
{
    size_t to = keys[0].at, kept = 0;

    for (size_t i = 0; i < count; i++) {
        size_t end = i + 1 < count ? keys[i + 1].at : buf->len;

        if (keys[i].is_dropped)
            continue;
        memmove(buf->ptr + to, buf->ptr + keys[i].at, end - keys[i].at);
        to += end - keys[i].at;
        kept++;
    }
    buf->len = to;
    return kept;
}

/* The keys from `first` on are those of an object that ended. Returns how many
 * pairs it has. */
static size_t end_keys(struct trip *trip, size_t first)
{
    struct key *keys = &trip->keys[first];
    size_t count = trip->key_count - first;

    trip->key_count = first;
    if (trip->buf->failed)
        return count;
    for (size_t i = 0; i < count; i++)
        keys[i].text = trip->buf->ptr + keys[i].text_at;
    return mark_equal(keys, count) ? drop_marked(keys, count, trip->buf)
                                   : count;
}

/* --- values --------------------------------------------------------------- */

static int pack_value(struct trip *trip, int depth);

static int pack_pair(struct trip *trip, int depth)
{
    struct key key = {.at = trip->buf->len}, *kept;
    int rc = pack_text(trip, true, &key.text_at);

    if (rc < 0)
        return rc;
    key.len = trip->buf->len - key.text_at;
    kept = add_key(trip);
    if (kept == NULL)
        return out_of_memory(trip);
    *kept = key;
    return pack_value(trip, depth + 1);
}

static int pack_object(struct trip *trip, int depth)
{
    static const uint8_t heads[] = {0x80, 0, 0xde, 0xdf};
    size_t at = trip->buf->len, first = trip->key_count;
    bool is_last = weir__json_read_sign(trip->read, '}');
    int rc = WEIR_OK;

    weir__buf_append(trip->buf, "", 1);
    while (rc == WEIR_OK && !is_last) {
        rc = pack_pair(trip, depth);
        if (rc == WEIR_OK)
            rc = weir__json_read_next(trip->read, '}', &is_last);
    }
    if (rc == WEIR_OK)
        write_head(trip->buf, at, end_keys(trip, first), heads);
    return rc;
}

static int pack_array(struct trip *trip, int depth)
{
    static const uint8_t heads[] = {0x90, 0, 0xdc, 0xdd};
    size_t at = trip->buf->len, count = 0;
    bool is_last = weir__json_read_sign(trip->read, ']');
    int rc = WEIR_OK;

    weir__buf_append(trip->buf, "", 1);
    for (; rc == WEIR_OK && !is_last; count++) {
        rc = pack_value(trip, depth + 1);
        if (rc == WEIR_OK)
            rc = weir__json_read_next(trip->read, ']', &is_last);
    }
    if (rc == WEIR_OK)
        write_head(trip->buf, at, count, heads);
    return rc;
}

static int pack_value(struct trip *trip, int depth)
{
    uint8_t first = weir__json_read_peek(trip->read);
    size_t unused;

    if (depth > WEIR__DEPTH_MAX)
        return weir__json_read_refuse(trip->read,
                                      "nested deeper than 32 levels");
    if (first == '"')
        return pack_text(trip, false, &unused);
    if (weir__json_read_sign(trip->read, '{'))
        return pack_object(trip, depth);
    if (weir__json_read_sign(trip->read, '['))
        return pack_array(trip, depth);
    return weir__json_read_scalar(trip->read, trip->buf);
}

int weir__json_read_value(struct weir__json_read *read, struct weir__buf *buf)
{
    struct trip trip; /* not zeroed, for it is large */
    size_t len = buf->len;
    int rc;

    trip.read = read;
    trip.buf = buf;
    trip.keys = trip.first_keys;
    trip.key_count = 0;
    trip.key_cap = FIRST_KEYS;
    rc = pack_value(&trip, 1);
    if (trip.keys != trip.first_keys)
        weir__mem_free(trip.keys);
    if (rc == WEIR_OK && buf->failed)
        rc = out_of_memory(&trip);
    if (rc < 0)
        buf->len = len;
    return rc;
}

int weir__json_to_msgpack(struct weir_slice json, struct weir__buf *buf,
                          struct weir_error *err)
{
    struct weir__json_read read;
    size_t len = buf->len;
    int rc = weir__json_read_init(&read, json, err);

    if (rc == WEIR_OK)
        rc = weir__json_read_value(&read, buf);
    if (rc == WEIR_OK)
        rc = weir__json_read_end(&read);
    if (rc < 0)
        buf->len = len;
    return rc;
}
