/* SPDX-License-Identifier: MIT */
#ifndef WEIR_RECORD_H
#define WEIR_RECORD_H

/* What is stored of a job besides its id and due time, decoded. Plain data:
 * how it is written is the codec's business (adapters/msgpack/record.h).
 * Slices are borrowed from whatever was decoded; an empty slice means that
 * the field is absent. */

#include <weir/plugin.h>

/* What only some jobs have: X(type, name, form), in the order in which it is
 * written; zero is none. A row is all that the codec wants to know of it.
 *
 *     retry    ladder of the job itself
 *     headers  one msgpack map, raw
 *     reason   dead only: failed, exhausted, ...
 *     error    text of the last failed run
 *     spent    of attempt: in the topic it died in, before this one
 *     added_ms when the job was added, server time since 1970; a record that
 *              says nothing lies where it was added: the store tells
 *     attempts the last ones that did not finish it: one msgpack array, raw
 *     cron     of a tick alone: its schedule (core/schedule.h), of whose jobs
 *              the rest of the record is
 *     key      of jobs that take turns with those of other keys
 *     priority WEIR__LEVEL_... and one
 *     unique   key of which one job is to be there */
#define WEIR__RECORD_MAP(X)              \
    X(struct weir_slice, retry, text)    \
    X(int64_t, ttl_ms, duration)         \
    X(struct weir_slice, url, text)      \
    X(struct weir_slice, headers, raw)   \
    X(struct weir_slice, reason, text)   \
    X(struct weir_slice, error, text)    \
    X(uint32_t, spent, count)            \
    X(int64_t, added_ms, duration)       \
    X(struct weir_slice, attempts, list) \
    X(struct weir_slice, cron, text)     \
    X(struct weir_slice, key, text)      \
    X(uint32_t, priority, count)         \
    X(struct weir_slice, unique, text)

/* Values of `priority`, 0 is normal: the level and one. */
enum { WEIR__LEVEL_NORMAL = 2, WEIR__LEVELS = 4 };

struct weir__record {
    struct weir_counters counters; /* attempt: runs finished so far */
#define MEMBER(type, name, form) type name;
    WEIR__RECORD_MAP(MEMBER)
#undef MEMBER
    struct weir_slice body; /* one msgpack value, raw; empty means null */
};

#endif
