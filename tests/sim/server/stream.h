/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_STREAM_H
#define WEIR_TEST_STREAM_H

/* Streams: entries in the order of their ids, and groups of consumers. */

#include "tests/sim/server/private.h"

struct stream_id {
    uint64_t ms, seq;
};

#define STREAM_ID_MAX ((struct stream_id){UINT64_MAX, UINT64_MAX})

struct stream_entry {
    struct stream_id id;
    struct text *words; /* owned: names and values in turns */
    size_t count;
};

/* An entry that a consumer has, until it is acknowledged. */
struct pending {
    struct stream_id id;
    struct entry *consumer; /* of the group's; NULL: of none yet */
    int64_t delivered_ms;
    int64_t times;
};

struct group {
    struct stream_id last;
    int64_t read; /* entries up to `last`, since the first ever; -1: unknown */
    struct table consumers;  /* without values */
    struct pending *pending; /* by id */
    size_t count, cap;
};

struct stream {
    struct stream_entry *entries; /* by id */
    size_t count, cap;
    struct stream_id last, first, last_deleted;
    int64_t added; /* since the first ever */
    struct table groups;
};

/* The position of the first element that is not below the id, in an array of
 * `count` elements of `size` bytes that begin with their id. */
size_t id_rank(const void *list, size_t count, size_t size,
               struct stream_id id);
bool is_zero(struct stream_id id);
struct stream_id id_behind(struct stream_id id); /* the next one */
int id_compare(struct stream_id a, struct stream_id b);

/* NULL: no entry has the id. */
const struct stream_entry *stream_find(const struct stream *stream,
                                       struct stream_id id);

/* Reads `1-2`, or `1` with the given seq. False: it is none, and that was
 * replied. */
bool read_id(struct call *call, size_t i, uint64_t seq,
             struct stream_id *ret_id);
void answer_id(struct call *call, struct stream_id id);
void answer_entry(struct call *call, const struct stream_entry *entry);

/* As find_object: the stream behind argument `i`, NULL if there is none. */
bool find_stream(struct call *call, size_t i, struct stream **ret_stream);

struct stream *stream_new(void);
void stream_free(struct stream *stream);
struct stream *stream_copy(const struct stream *stream); /* NULL: NULL */
void group_free(struct group *group);

#endif
