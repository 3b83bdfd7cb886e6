/* SPDX-License-Identifier: MIT */
#ifndef WEIR_REDIS_PACK_H
#define WEIR_REDIS_PACK_H

/* A pack: up to 256 jobs in one string on the server.
 *
 *   0  "W1"
 *   2  slots - 1
 *   3  slots that are gone; the only byte that scripts rewrite
 *   4  flags: 1 = has an id block
 *   5  header length, 24 bits, little endian: all before the offsets
 *   8  id block: msgpack array of one str for each slot
 *      slots + 1 offsets of 32 bits, little endian, from the end of this table
 *      records, opaque here
 *
 * What is read comes from a server and is not trusted. Knows no connection. */

#include "core/buf.h"

enum {
    WEIR__PACK_HEAD = 8,
    WEIR__STAGED_MS = 60000, /* a pack lives until a script keeps it */
    WEIR__PACK_MARK = 16     /* bytes behind the records of some packs */
};

struct weir__pack {
    struct weir_slice bytes; /* borrowed */
    size_t count;            /* slots */
    size_t header_len;
    bool has_ids;
    bool lacks_some; /* of the ids some are none */
};

/* Check every length in `bytes`. WEIR_EMALFORMED; WEIR_ENEWER for a layout
 * that this version does not know. */
int weir__pack_read(struct weir_slice bytes, struct weir__pack *ret_pack);

/* The ids of all slots; the pack has them. What its producer wrote in the place
 * of one that no job can have becomes an empty slice. */
void weir__pack_ids(const struct weir__pack *pack, struct weir_slice *ret_ids);

struct weir_slice weir__pack_record(const struct weir__pack *pack, size_t slot);

/* --- writing -------------------------------------------------------------- */

struct weir__pack_job {
    struct weir_slice id; /* not used in packs without ids */
    struct weir_slice record;
};

struct weir__pack_size {
    size_t header_len;
    size_t len; /* of the whole pack */
};

/* What weir__pack_write will append for `count` (1 to 256) jobs. */
struct weir__pack_size weir__pack_measure(const struct weir__pack_job *jobs,
                                          size_t count, bool has_ids);
void weir__pack_write(struct weir__buf *buf, const struct weir__pack_job *jobs,
                      size_t count, bool has_ids);

/* The msgpack that scripts read; strings only as str, the server's decoder
 * knows no bin. */
void weir__pack_array(struct weir__buf *buf, size_t count);
void weir__pack_uint(struct weir__buf *buf, uint64_t value);
void weir__pack_str(struct weir__buf *buf, const void *bytes, size_t len);

#endif
