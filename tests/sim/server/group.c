/* SPDX-License-Identifier: MIT */

/* Groups of a stream's consumers. */

#include "tests/sim/server/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void group_free(struct group *group)
{
    table_clear(&group->consumers);
    free(group->pending);
    free(group);
}

/* --- how far a group is -------------------------------------------------- */

/* As streamRangeHasTombstones of Redis 7.0. */
static bool has_gap_behind(const struct stream *stream, struct stream_id id)
{
    return stream->count > 0 && !is_zero(stream->last_deleted) &&
           id_compare(stream->first, stream->last_deleted) <= 0 &&
           id_compare(id, stream->last_deleted) <= 0;
}

/* As streamEstimateDistanceFromFirstEverEntry; -1: unknown. */
static int64_t entries_until(const struct stream *stream, struct stream_id id)
{
    int order = id_compare(id, stream->last);
    bool is_whole = is_zero(stream->last_deleted) ||
                    id_compare(stream->last_deleted, stream->first) < 0;

    if (stream->added == 0)
        return 0;
    if (order == 0 || (order < 0 && stream->count == 0))
        return stream->added;
    if (order > 0 || !is_whole || id_compare(id, stream->first) > 0)
        return -1;
    return stream->added - (int64_t)stream->count +
           (id_compare(id, stream->first) == 0);
}

static int64_t lag_of(const struct stream *stream, const struct group *group)
{
    int64_t read = group->read;

    if (read < 0 || has_gap_behind(stream, group->last))
        read = entries_until(stream, group->last);
    return read < 0 ? -1 : stream->added - read;
}

static void deliver(const struct stream *stream, struct group *group,
                    struct stream_id id)
{
    if (group->read >= 0 && !has_gap_behind(stream, id))
        group->read++;
    else if (stream->added > 0)
        group->read = entries_until(stream, id);
    group->last = id;
}

/* --- finding ------------------------------------------------------------- */

static struct entry *find_group(const struct stream *stream, struct slice name)
{
    return stream == NULL ? NULL : table_find(&stream->groups, name);
}

static void answer_no_group(struct call *call, struct slice key,
                            struct slice group, const char *tail)
{
    char text[512];

    (void)snprintf(text, sizeof(text),
                   "NOGROUP No such key '%.*s' or consumer group '%.*s'%s",
                   (int)key.len, key.ptr, (int)group.len, group.ptr,
                   tail); /* cut */
    answer_error(call, text);
}

/* Finds key and group behind the command's name. False: replied. */
static bool need_group(struct call *call, struct stream **ret_stream,
                       struct group **ret_group)
{
    struct entry *entry;

    if (!find_stream(call, 1, ret_stream))
        return false;
    entry = find_group(*ret_stream, call->argv[2]);
    if (entry == NULL) {
        answer_no_group(call, call->argv[1], call->argv[2], "");
        return false;
    }
    *ret_group = entry->group;
    return true;
}

static struct entry *make_consumer(struct group *group, struct slice name)
{
    struct entry *entry = table_find(&group->consumers, name);

    return entry != NULL ? entry : table_add(&group->consumers, name);
}

/* --- what is pending ----------------------------------------------------- */

static size_t pending_rank(const struct group *group, struct stream_id id)
{
    return id_rank(group->pending, group->count, sizeof(*group->pending), id);
}

static struct pending *find_pending(struct group *group, struct stream_id id)
{
    size_t at = pending_rank(group, id);

    return at < group->count && id_compare(group->pending[at].id, id) == 0
               ? &group->pending[at]
               : NULL;
}

static struct pending *make_pending(struct group *group, struct stream_id id)
{
    struct pending *pending = find_pending(group, id);
    size_t at = pending_rank(group, id);

    if (pending != NULL)
        return pending;
    if (group->count == group->cap) {
        group->cap = group->cap == 0 ? 8 : 2 * group->cap;
        group->pending =
            realloc(group->pending, group->cap * sizeof(*group->pending));
    }
    if (group->pending == NULL)
        server_fail("the server has no memory for a group");
    memmove(&group->pending[at + 1], &group->pending[at],
            (group->count++ - at) * sizeof(*group->pending));
    group->pending[at] = (struct pending){.id = id, .times = 1};
    return &group->pending[at];
}

static void drop_pending(struct group *group, struct pending *pending)
{
    group->count--;
    memmove(pending, pending + 1,
            (size_t)(&group->pending[group->count] - pending) *
                sizeof(*pending));
}

/* --- commands ------------------------------------------------------------ */

/* XREADGROUP GROUP g c COUNT n STREAMS key >, as weir asks. */
static void run_xreadgroup(struct call *call)
{
    struct stream *stream;
    struct entry *entry, *consumer;
    struct group *group;
    int64_t most;
    size_t at, count = 0;

    if (call->argc != 9 || !is_word(call->argv[1], "GROUP") ||
        !is_word(call->argv[4], "COUNT") ||
        !is_word(call->argv[6], "STREAMS") || !is_word(call->argv[8], ">"))
        unknown_option(call, 1);
    if (!read_int(call, 5, &most) || !find_stream(call, 7, &stream))
        return;
    entry = find_group(stream, call->argv[2]);
    if (entry == NULL) {
        answer_no_group(call, call->argv[7], call->argv[2],
                        " in XREADGROUP with GROUP option");
        return;
    }
    group = entry->group;
    at = id_rank(stream->entries, stream->count, sizeof(*stream->entries),
                 id_behind(group->last));
    while (at + count < stream->count && (most <= 0 || (int64_t)count < most))
        count++;
    if (count == 0) {
        answer_no_array(call);
        return;
    }
    consumer = make_consumer(group, call->argv[3]);
    answer_array(call, 1);
    answer_array(call, 2);
    answer_bulk(call, call->argv[7]);
    answer_array(call, count);
    for (size_t i = at; i < at + count; i++) {
        struct pending *pending = make_pending(group, stream->entries[i].id);

        answer_entry(call, &stream->entries[i]);
        *pending = (struct pending){stream->entries[i].id, consumer,
                                    now_ms(call->server), 1};
        deliver(stream, group, stream->entries[i].id);
    }
}

static void run_xack(struct call *call)
{
    struct stream *stream;
    struct entry *entry;
    struct stream_id id;
    int64_t count = 0;

    if (!find_stream(call, 1, &stream))
        return;
    entry = find_group(stream, call->argv[2]);
    if (entry == NULL) {
        answer_int(call, 0);
        return;
    }
    for (size_t i = 3; i < call->argc; i++)
        if (!read_id(call, i, 0, &id))
            return;
    for (size_t i = 3; i < call->argc; i++) {
        struct pending *pending;

        (void)read_id(call, i, 0, &id); /* it is one */
        pending = find_pending(entry->group, id);
        if (pending == NULL)
            continue;
        drop_pending(entry->group, pending);
        count++;
    }
    answer_int(call, count);
}

/* To the consumer of the command. */
static void give(struct call *call, struct group *group,
                 struct pending *pending, const struct stream_entry *entry)
{
    pending->consumer = make_consumer(group, call->argv[3]);
    pending->delivered_ms = now_ms(call->server);
    pending->times++;
    answer_entry(call, entry);
}

/* How many of the ids are to be claimed: there, and somebody's if not forced.
 * Those that are pending but gone from the stream are forgotten, as Redis does.
 */
static size_t count_claims(struct call *call, const struct stream *stream,
                           struct group *group, size_t end, bool is_forced)
{
    size_t count = 0;

    for (size_t i = 5; i < end; i++) {
        struct pending *pending;
        struct stream_id id;

        (void)read_id(call, i, 0, &id); /* it is one */
        pending = find_pending(group, id);
        if (stream_find(stream, id) != NULL)
            count += pending != NULL || is_forced;
        else if (pending != NULL)
            drop_pending(group, pending);
    }
    return count;
}

/* XCLAIM key group consumer 0 id... [FORCE] */
static void run_xclaim(struct call *call)
{
    size_t end = call->argc;
    bool is_forced = is_word(call->argv[end - 1], "FORCE");
    struct stream *stream;
    struct group *group;
    struct stream_id id;

    end -= is_forced;
    if (!is_word(call->argv[4], "0"))
        unknown_option(call, 4);
    if (!need_group(call, &stream, &group))
        return;
    for (size_t i = 5; i < end; i++)
        if (!read_id(call, i, 0, &id))
            return;
    answer_array(call, count_claims(call, stream, group, end, is_forced));
    for (size_t i = 5; i < end; i++) {
        const struct stream_entry *entry;

        (void)read_id(call, i, 0, &id); /* it is one */
        entry = stream_find(stream, id);
        if (entry != NULL && (is_forced || find_pending(group, id) != NULL))
            give(call, group, make_pending(group, id), entry);
    }
}

/* One step of XAUTOCLAIM: writes the entry, or notes that it is gone. */
static bool claim_next(struct call *call, struct call *gone,
                       const struct stream *stream, struct group *group,
                       size_t *at, size_t *ret_gone)
{
    struct pending *pending = &group->pending[*at];
    const struct stream_entry *entry = stream_find(stream, pending->id);

    if (entry == NULL) {
        answer_id(gone, pending->id);
        (*ret_gone)++;
        drop_pending(group, pending);
        return false;
    }
    give(call, group, pending, entry);
    (*at)++;
    return true;
}

/* XAUTOCLAIM key group consumer idle start COUNT n */
static void run_xautoclaim(struct call *call)
{
    struct out entries = {0}, gone = {0};
    struct call found = *call, lost = *call;
    struct stream *stream;
    struct group *group;
    struct stream_id from;
    int64_t idle_ms, most;
    size_t at, count = 0, gone_count = 0;

    if (call->argc != 8 || !is_word(call->argv[6], "COUNT"))
        unknown_option(call, call->argc - 1);
    if (!read_int(call, 4, &idle_ms) || !read_id(call, 5, 0, &from) ||
        !read_int(call, 7, &most) || !need_group(call, &stream, &group))
        return;
    found.out = &entries;
    lost.out = &gone;
    at = pending_rank(group, from);
    for (int64_t tries = 10 * most; tries > 0 && most > 0 && at < group->count;
         tries--) {
        if (now_ms(call->server) - group->pending[at].delivered_ms < idle_ms) {
            at++;
            continue;
        }
        count += claim_next(&found, &lost, stream, group, &at, &gone_count);
        most--;
    }
    answer_array(call, 3);
    answer_id(call, at < group->count ? group->pending[at].id
                                      : (struct stream_id){0, 0});
    answer_array(call, count);
    out_bytes(call->out, entries.ptr, entries.len);
    answer_array(call, gone_count);
    out_bytes(call->out, gone.ptr, gone.len);
    out_free(&entries);
    out_free(&gone);
}

/* XPENDING key group from to count */
static void run_xpending(struct call *call)
{
    struct stream *stream;
    struct group *group;
    struct stream_id from = {0, 0}, to = STREAM_ID_MAX;
    int64_t most;
    size_t first, count = 0;

    if (call->argc != 6)
        unknown_option(call, call->argc - 1);
    if (!read_int(call, 5, &most) ||
        (!is_word(call->argv[3], "-") && !read_id(call, 3, 0, &from)) ||
        (!is_word(call->argv[4], "+") && !read_id(call, 4, UINT64_MAX, &to)) ||
        !need_group(call, &stream, &group))
        return;
    first = pending_rank(group, from);
    while (first + count < group->count && (int64_t)count < most &&
           id_compare(group->pending[first + count].id, to) <= 0)
        count++;
    answer_array(call, count);
    for (size_t i = first; i < first + count; i++) {
        const struct pending *pending = &group->pending[i];

        answer_array(call, 4);
        answer_id(call, pending->id);
        answer_bulk(call, entry_name(pending->consumer));
        answer_int(call, now_ms(call->server) - pending->delivered_ms);
        answer_int(call, pending->times);
    }
}

/* --- XGROUP and XINFO ---------------------------------------------------- */

static bool read_start(struct call *call, const struct stream *stream,
                       struct stream_id *ret_id)
{
    *ret_id = stream == NULL ? (struct stream_id){0, 0} : stream->last;
    return is_word(call->argv[4], "$") || read_id(call, 4, 0, ret_id);
}

static void make_group(struct call *call, struct stream *stream,
                       struct stream_id start)
{
    struct group *group = calloc(1, sizeof(*group));

    if (group == NULL)
        server_fail("the server has no memory for a group");
    *group = (struct group){.last = start, .read = -1};
    table_add(&stream->groups, call->argv[3])->group = group;
    answer_status(call, "OK");
}

static void answer_unknown_group(struct call *call)
{
    char text[512];

    (void)snprintf(text, sizeof(text),
                   "NOGROUP No such consumer group '%.*s' for key name '%.*s'",
                   (int)call->argv[3].len, call->argv[3].ptr,
                   (int)call->argv[2].len, call->argv[2].ptr); /* cut */
    answer_error(call, text);
}

/* XGROUP CREATE key group start [MKSTREAM], and SETID key group start */
static void run_xgroup(struct call *call)
{
    bool makes = is_word(call->argv[1], "CREATE");
    bool makes_stream = call->argc == 6 && is_word(call->argv[5], "MKSTREAM");
    struct object *object;
    struct stream *stream;
    struct stream_id start;
    struct entry *entry;

    if (call->argc < 5 || call->argc != 5u + makes_stream ||
        (!makes && !is_word(call->argv[1], "SETID")))
        unknown_option(call, 1);
    if (!find_stream(call, 2, &stream))
        return;
    if (stream == NULL && !makes_stream) {
        answer_error(call,
                     "ERR The XGROUP subcommand requires the key to exist. "
                     "Note that for CREATE you may want to use the MKSTREAM "
                     "option to create an empty stream automatically.");
        return;
    }
    entry = find_group(stream, call->argv[3]);
    if (!makes && entry == NULL) {
        answer_unknown_group(call);
        return;
    }
    if (!read_start(call, stream, &start))
        return;
    (void)make_object(call, 2, STREAM, &object); /* a stream, or free */
    if (entry == NULL) {
        make_group(call, object->stream, start);
    } else if (makes) {
        answer_error(call, "BUSYGROUP Consumer Group name already exists");
    } else {
        entry->group->last = start;
        entry->group->read = -1;
        answer_status(call, "OK");
    }
}

static void answer_count(struct call *call, int64_t count)
{
    if (count < 0)
        answer_nil(call);
    else
        answer_int(call, count);
}

static void run_xinfo(struct call *call)
{
    struct stream *stream;

    if (call->argc != 3 || !is_word(call->argv[1], "GROUPS"))
        unknown_option(call, 1);
    if (!find_stream(call, 2, &stream))
        return;
    if (stream == NULL) {
        answer_error(call, "ERR no such key");
        return;
    }
    answer_array(call, stream->groups.count);
    for (size_t i = 0; i < stream->groups.count; i++) {
        const struct group *group = stream->groups.list[i]->group;

        answer_array(call, 12);
        answer_text(call, "name");
        answer_bulk(call, entry_name(stream->groups.list[i]));
        answer_text(call, "consumers");
        answer_int(call, (int64_t)group->consumers.count);
        answer_text(call, "pending");
        answer_int(call, (int64_t)group->count);
        answer_text(call, "last-delivered-id");
        answer_id(call, group->last);
        answer_text(call, "entries-read");
        answer_count(call, group->read);
        answer_text(call, "lag");
        answer_count(call, lag_of(stream, group));
    }
}

const struct command group_commands[] = {
    {"XREADGROUP", -7, run_xreadgroup, WRITES | STREAMS},
    {"XACK", -4, run_xack, WRITES | ONE_KEY},
    {"XCLAIM", -6, run_xclaim, WRITES | ONE_KEY},
    {"XAUTOCLAIM", -6, run_xautoclaim, WRITES | ONE_KEY},
    {"XPENDING", -3, run_xpending, ONE_KEY},
    {"XGROUP", -2, run_xgroup, WRITES | GROWS | HAS_PARTS | ONE_KEY},
    {"XINFO", -2, run_xinfo, HAS_PARTS | ONE_KEY},
    {0},
};
