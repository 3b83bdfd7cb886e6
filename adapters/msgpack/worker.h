/* SPDX-License-Identifier: MIT */
#ifndef WEIR_MSGPACK_WORKER_H
#define WEIR_MSGPACK_WORKER_H

/* What a worker tells of itself: a msgpack map with the names of struct
 * weir_worker, but for `topic_count` and `seen_ms`, and `stopping`. `topics`
 * are names; `serves` has concurrency, held and running of each in turn, and
 * `groups`, if there are any, the patterns of each. Unknown names are ignored
 * on reading, what is missing is 0 or "". */

#include <weir/worker.h>

#include "core/buf.h"

/* Append it; longer texts than may be read are cut. Errors are sticky in
 * `buf`. */
void weir__worker_write(struct weir__buf *buf,
                        const struct weir_worker *worker);

/* A worker with the memory of its texts. Zeroed has none. */
struct weir__worker {
    struct weir_worker told; /* points into this struct */
    char name[WEIR_MAX_TOPIC + 1];
    char host[65];
    char version[25];
    char transport[9];
    struct weir_worker_topic *topics; /* owned */
    size_t topics_cap;
    struct weir__buf names;  /* of topics, each with its NUL */
    struct weir__buf groups; /* likewise */
};

/* Into one that is zeroed, or was read before. Whoever wrote the bytes: texts
 * hold nothing but 0x21 to 0x7e. WEIR_EMALFORMED: not a map, or it has no name;
 * WEIR_ENOMEM. */
int weir__worker_read(struct weir_slice bytes, struct weir__worker *worker);

void weir__worker_fini(struct weir__worker *worker);

#endif
