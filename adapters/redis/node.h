/* SPDX-License-Identifier: MIT */
#ifndef WEIR_REDIS_NODE_H
#define WEIR_REDIS_NODE_H

/* Names of packs, of nodes of their trees, and of jobs whose id weir makes.
 * Pure arithmetic; docs/packs.md says what the names mean.
 *
 * A pack's name (seq) is 12 characters of a 64-letter alphabet in ASCII order:
 * 48 bits of time and counter, then 24 bits of producer number, so names of
 * one producer sort by time and those of different producers never collide. */

#include <weir/base.h>

enum {
    WEIR__SEQ_LEN = 12,
    WEIR__NODE_LEN = 16,    /* seq, two characters of lo, two of hi */
    WEIR__MADE_ID_LEN = 15, /* '@', seq, two hexadecimal digits of the slot */
    WEIR__SLOTS_MAX = 256   /* of one pack */
};

/* Makes the names of one process's packs. Zeroed: none was made yet. */
struct weir__seq_maker {
    uint64_t last;      /* 41 bits of ms since 2020, 7 bits of counter */
    uint64_t last_tick; /* ms since 2020 */
    uint32_t producer;  /* 24 bits are used */
};

/* The next name, not terminated. `wall_ms` is about the server's time; names
 * neither repeat nor go back when it does. */
void weir__seq_next(struct weir__seq_maker *maker, int64_t wall_ms,
                    char ret_seq[WEIR__SEQ_LEN]);

/* The name of a pack of ticks, by which scripts tell it from others
 * (scripts/lib/left_ticks.lua). */
void weir__seq_next_tick(struct weir__seq_maker *maker, int64_t wall_ms,
                         char ret_seq[WEIR__SEQ_LEN]);

/* Is it the name of a pack of ticks? */
bool weir__seq_is_tick(const char seq[WEIR__SEQ_LEN]);

/* Can these bytes, which somebody else may have written, be a name? */
bool weir__seq_is_sound(const char seq[WEIR__SEQ_LEN]);

/* The time in a name, in ms since 1970. */
int64_t weir__seq_ms(const char seq[WEIR__SEQ_LEN]);

/* Check and take apart a node's name as a server sent it. WEIR_EMALFORMED. */
int weir__node_read(struct weir_slice name, unsigned *ret_lo, unsigned *ret_hi);

/* The id of the job in a slot of a pack without ids; NUL-terminated. */
void weir__made_id(const char *seq, unsigned slot,
                   char ret_id[WEIR__MADE_ID_LEN + 1]);

/* Where a job with a made id was put when it was added: *ret_seq points into
 * the id. False if no made id looks like this. */
bool weir__made_id_read(struct weir_slice id, const char **ret_seq,
                        unsigned *ret_slot);

/* --- tables of mixed packs ------------------------------------------------ */

/* When the slots of a mixed pack are due (scripts/lib/mixed.lua): bytes of a
 * table for so many slots, and the server time that it has for one. */
size_t weir__table_len(size_t slots);
int64_t weir__table_due_ms(const uint8_t *table, size_t slot);

#endif
