/* SPDX-License-Identifier: MIT */
#ifndef WEIR_RECORD_H
#define WEIR_RECORD_H

/* What is stored of a job besides its id and due time, decoded. Plain data:
 * how it is written is the codec's business (adapters/msgpack/record.h).
 * Slices are borrowed from whatever was decoded; an empty slice means that
 * the field is absent. */

#include <weir/plugin.h>

struct weir__record {
    struct weir_counters counters; /* attempt: runs finished so far */
    struct weir_slice retry;       /* ladder text of the job itself */
    struct weir_slice url;
    struct weir_slice headers; /* one msgpack map, raw */
    struct weir_slice reason;  /* dead only: failed, exhausted, ... */
    struct weir_slice error;   /* text of the last failed run */
    int64_t ttl_ms;            /* 0: none */
    uint32_t spent; /* of attempt: in the topic it died in, before this one */
    struct weir_slice body; /* one msgpack value, raw; empty means null */
};

#endif
