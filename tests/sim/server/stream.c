/* SPDX-License-Identifier: MIT */

/* Streams without their groups. */

#include "tests/sim/server/stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- ids ----------------------------------------------------------------- */

int id_compare(struct stream_id a, struct stream_id b)
{
    if (a.ms != b.ms)
        return a.ms < b.ms ? -1 : 1;
    return a.seq == b.seq ? 0 : a.seq < b.seq ? -1 : 1;
}

bool is_zero(struct stream_id id)
{
    return id.ms == 0 && id.seq == 0;
}

struct stream_id id_behind(struct stream_id id)
{
    return id.seq == UINT64_MAX ? (struct stream_id){id.ms + 1, 0}
                                : (struct stream_id){id.ms, id.seq + 1};
}

size_t id_rank(const void *list, size_t count, size_t size, struct stream_id id)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct stream_id *at =
            (const void *)((const char *)list + middle * size);

        if (id_compare(*at, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Digits alone; false: it is no number. */
static bool parse_number(const char *text, size_t len, uint64_t *ret_value)
{
    char copied[24], *end;

    if (len == 0 || len >= sizeof(copied) || text[0] < '0' || text[0] > '9')
        return false;
    memcpy(copied, text, len);
    copied[len] = '\0';
    *ret_value = strtoull(copied, &end, 10);
    return *end == '\0';
}

bool read_id(struct call *call, size_t i, uint64_t seq,
             struct stream_id *ret_id)
{
    struct slice text = call->argv[i];
    const char *dash = memchr(text.ptr, '-', text.len);
    size_t len = dash == NULL ? text.len : (size_t)(dash - text.ptr);

    ret_id->seq = seq;
    if (parse_number(text.ptr, len, &ret_id->ms) &&
        (dash == NULL ||
         parse_number(dash + 1, text.len - len - 1, &ret_id->seq)))
        return true;
    answer_error(call, "ERR Invalid stream ID specified as stream command "
                       "argument");
    return false;
}

void answer_id(struct call *call, struct stream_id id)
{
    char text[48];

    (void)snprintf(text, sizeof(text), "%" PRIu64 "-%" PRIu64, id.ms,
                   id.seq); /* fits */
    answer_text(call, text);
}

/* --- entries ------------------------------------------------------------- */

struct stream *stream_new(void)
{
    struct stream *stream = calloc(1, sizeof(*stream));

    if (stream == NULL)
        server_fail("the server has no memory for a stream");
    return stream;
}

static void free_words(struct stream_entry *entry)
{
    for (size_t i = 0; i < entry->count; i++)
        free(entry->words[i].ptr);
    free(entry->words);
}

void stream_free(struct stream *stream)
{
    if (stream == NULL)
        return;
    for (size_t i = 0; i < stream->count; i++)
        free_words(&stream->entries[i]);
    for (size_t i = 0; i < stream->groups.count; i++)
        group_free(stream->groups.list[i]->group);
    table_clear(&stream->groups);
    free(stream->entries);
    free(stream);
}

const struct stream_entry *stream_find(const struct stream *stream,
                                       struct stream_id id)
{
    size_t at =
        id_rank(stream->entries, stream->count, sizeof(*stream->entries), id);

    return at < stream->count && id_compare(stream->entries[at].id, id) == 0
               ? &stream->entries[at]
               : NULL;
}

bool find_stream(struct call *call, size_t i, struct stream **ret_stream)
{
    struct object *object;

    if (!find_object(call, i, STREAM, &object))
        return false;
    *ret_stream = object == NULL ? NULL : object->stream;
    return true;
}

void answer_entry(struct call *call, const struct stream_entry *entry)
{
    answer_array(call, 2);
    answer_id(call, entry->id);
    answer_array(call, entry->count);
    for (size_t i = 0; i < entry->count; i++)
        answer_bulk(call,
                    (struct slice){entry->words[i].ptr, entry->words[i].len});
}

static void append(struct stream *stream, struct stream_id id,
                   const struct slice *words, size_t count)
{
    struct stream_entry *entry;

    if (stream->count == stream->cap) {
        stream->cap = stream->cap == 0 ? 8 : 2 * stream->cap;
        stream->entries =
            realloc(stream->entries, stream->cap * sizeof(*stream->entries));
    }
    if (stream->entries == NULL)
        server_fail("the server has no memory for a stream");
    entry = &stream->entries[stream->count++];
    *entry =
        (struct stream_entry){id, malloc(count * sizeof(*entry->words)), count};
    for (size_t i = 0; i < count; i++)
        entry->words[i] = text_new(words[i]);
    if (stream->count == 1)
        stream->first = id;
    stream->last = id;
    stream->added++;
}

static void run_xadd(struct call *call)
{
    struct object *object;
    struct stream *stream;
    struct stream_id id = {.ms = (uint64_t)now_ms(call->server)};
    bool makes_id = is_word(call->argv[2], "*");

    if (!makes_id && !read_id(call, 2, 0, &id))
        return;
    if (call->argc % 2 == 0) {
        answer_error(call, "ERR wrong number of arguments for 'xadd' command");
        return;
    }
    if (is_zero(id)) {
        answer_error(call, "ERR The ID specified in XADD must be greater than "
                           "0-0");
        return;
    }
    if (!make_object(call, 1, STREAM, &object))
        return;
    stream = object->stream;
    if (makes_id && id.ms <= stream->last.ms)
        id = id_behind(stream->last);
    if (id_compare(id, stream->last) <= 0) {
        answer_error(call, "ERR The ID specified in XADD is equal or smaller "
                           "than the target stream top item");
        return;
    }
    append(stream, id, call->argv + 3, call->argc - 3);
    answer_id(call, id);
}

static bool delete_entry(struct stream *stream, struct stream_id id)
{
    size_t at =
        id_rank(stream->entries, stream->count, sizeof(*stream->entries), id);

    if (at == stream->count || id_compare(stream->entries[at].id, id) != 0)
        return false;
    free_words(&stream->entries[at]);
    stream->count--;
    memmove(&stream->entries[at], &stream->entries[at + 1],
            (stream->count - at) * sizeof(*stream->entries));
    if (id_compare(id, stream->last_deleted) > 0)
        stream->last_deleted = id;
    stream->first =
        stream->count == 0 ? (struct stream_id){0, 0} : stream->entries[0].id;
    return true;
}

static void run_xdel(struct call *call)
{
    struct stream *stream;
    struct stream_id id;
    int64_t count = 0;

    if (!find_stream(call, 1, &stream))
        return;
    for (size_t i = 2; stream != NULL && i < call->argc; i++)
        if (!read_id(call, i, 0, &id))
            return;
    for (size_t i = 2; stream != NULL && i < call->argc; i++) {
        (void)read_id(call, i, 0, &id); /* it is one */
        count += delete_entry(stream, id);
    }
    answer_int(call, count);
}

static void run_xlen(struct call *call)
{
    struct stream *stream;

    if (find_stream(call, 1, &stream))
        answer_int(call, stream == NULL ? 0 : (int64_t)stream->count);
}

/* --- ranges -------------------------------------------------------------- */

/* An end of a range, which may be - or +. */
static bool read_end(struct call *call, size_t i, uint64_t seq,
                     struct stream_id *ret_id)
{
    *ret_id = (struct stream_id){0, 0};
    if (is_word(call->argv[i], "-"))
        return true;
    *ret_id = STREAM_ID_MAX;
    return is_word(call->argv[i], "+") || read_id(call, i, seq, ret_id);
}

/* At most `most` entries of the range, as an array. */
static void answer_range(struct call *call, const struct stream *stream,
                         struct stream_id from, struct stream_id to,
                         int64_t most)
{
    size_t first =
        id_rank(stream->entries, stream->count, sizeof(*stream->entries), from);
    size_t count = 0;

    while (first + count < stream->count && (int64_t)count < most &&
           id_compare(stream->entries[first + count].id, to) <= 0)
        count++;
    answer_array(call, count);
    for (size_t i = 0; i < count; i++)
        answer_entry(call, &stream->entries[first + i]);
}

static void run_xrange(struct call *call)
{
    struct stream *stream;
    struct stream_id from, to;
    int64_t most = INT64_MAX;

    if (!read_end(call, 2, 0, &from) || !read_end(call, 3, UINT64_MAX, &to))
        return;
    if (call->argc > 4 && (call->argc != 6 || !is_word(call->argv[4], "COUNT")))
        unknown_option(call, 4);
    if (call->argc > 4 && !read_int(call, 5, &most))
        return;
    if (!find_stream(call, 1, &stream))
        return;
    if (stream == NULL)
        answer_array(call, 0);
    else if (most == 0)
        answer_no_array(call);
    else
        answer_range(call, stream, from, to, most);
}

/* COUNT and BLOCK of XREAD. Returns where STREAMS stands; 0: replied. */
static size_t read_xread(struct call *call, int64_t *ret_most,
                         int64_t *ret_block_ms)
{
    size_t at = 1;

    for (; at + 1 < call->argc && !is_word(call->argv[at], "STREAMS");
         at += 2) {
        bool is_count = is_word(call->argv[at], "COUNT");

        if (!is_count && !is_word(call->argv[at], "BLOCK"))
            unknown_option(call, at);
        if (!read_int(call, at + 1, is_count ? ret_most : ret_block_ms))
            return 0;
    }
    if (call->argc != at + 3)
        unknown_option(call, at);
    if (*ret_block_ms >= 0 && call->client == NULL) {
        answer_error(call, "ERR XREAD command is not allowed with BLOCK option "
                           "from scripts");
        return 0;
    }
    return at;
}

/* Reads one stream, as weir asks. */
static void run_xread(struct call *call)
{
    struct stream *stream;
    struct stream_id after;
    int64_t most = INT64_MAX, block_ms = -1;
    size_t at = read_xread(call, &most, &block_ms);

    if (at == 0 || !find_stream(call, at + 1, &stream) ||
        !read_id(call, at + 2, 0, &after))
        return;
    if (stream == NULL || stream->count == 0 ||
        id_compare(stream->entries[stream->count - 1].id, after) <= 0) {
        if (block_ms < 0)
            answer_no_array(call);
        else
            block(call, block_ms * 1000);
        return;
    }
    after = id_behind(after);
    answer_array(call, 1);
    answer_array(call, 2);
    answer_bulk(call, call->argv[at + 1]);
    answer_range(call, stream, after, STREAM_ID_MAX, most);
}

const struct command stream_commands[] = {
    {"XADD", -5, run_xadd, WRITES | GROWS | ONE_KEY},
    {"XDEL", -3, run_xdel, WRITES | ONE_KEY},
    {"XLEN", 2, run_xlen, ONE_KEY},
    {"XRANGE", -4, run_xrange, ONE_KEY},
    {"XREAD", -4, run_xread, STREAMS},
    {0},
};
