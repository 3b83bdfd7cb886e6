/* SPDX-License-Identifier: MIT */
#include "adapters/redis/node.h"

#include <string.h>

#include "core/assert.h"

/* In ASCII order, so that names sort like the numbers they stand for. */
static const char alphabet[] =
    "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
_Static_assert(sizeof(alphabet) == 65, "six bits a character");

static const char hex_digits[] = "0123456789abcdef";

static const int64_t YEAR_2020_MS = 1577836800000;

enum {
    TIME_CHARS = 8,
    COUNTER_BITS = 7,
    TICK_COUNTER = 127,   /* as scripts/lib/lone_name.lua has it */
    FIRST_TICK = 8192000, /* numbers of producers that name packs of ticks */
    LAST_TICK = (1 << 23) - 1
};

static void write_number(char *to, size_t len, uint64_t number)
{
    for (size_t i = len; i > 0; i--) {
        to[i - 1] = alphabet[number & 63];
        number >>= 6;
    }
}

static uint64_t since_2020(int64_t wall_ms)
{
    return wall_ms > YEAR_2020_MS ? (uint64_t)(wall_ms - YEAR_2020_MS) : 0;
}

static void write_name(char seq[WEIR__SEQ_LEN], uint64_t number,
                       uint32_t producer)
{
    write_number(seq, TIME_CHARS, number);
    write_number(seq + TIME_CHARS, WEIR__SEQ_LEN - TIME_CHARS, producer);
}

void weir__seq_next(struct weir__seq_maker *maker, int64_t wall_ms,
                    char ret_seq[WEIR__SEQ_LEN])
{
    uint64_t next = since_2020(wall_ms) << COUNTER_BITS;

    if (next <= maker->last)
        next = maker->last + 1;
    maker->last = next;
    write_name(ret_seq, next, maker->producer);
}

void weir__seq_next_tick(struct weir__seq_maker *maker, int64_t wall_ms,
                         char ret_seq[WEIR__SEQ_LEN])
{
    uint64_t ms = since_2020(wall_ms);

    if (ms <= maker->last_tick)
        ms = maker->last_tick + 1;
    maker->last_tick = ms;
    write_name(ret_seq, ms << COUNTER_BITS | TICK_COUNTER,
               FIRST_TICK + maker->producer % (LAST_TICK + 1 - FIRST_TICK));
}

/* As scripts/lib/is_tick.lua. */
bool weir__seq_is_tick(const char seq[WEIR__SEQ_LEN])
{
    char first[WEIR__SEQ_LEN];

    write_name(first, TICK_COUNTER, FIRST_TICK);
    return seq[TIME_CHARS - 1] == 'z' &&
           memcmp(seq + TIME_CHARS, first + TIME_CHARS, 2) >= 0 &&
           seq[TIME_CHARS] == first[TIME_CHARS];
}

/* Its place in the alphabet; -1 if it is not there. */
static int place_of(char letter)
{
    if (letter >= 'a' && letter <= 'z')
        return letter - 'a' + 38;
    if (letter >= 'A' && letter <= 'Z')
        return letter - 'A' + 11;
    if (letter >= '0' && letter <= '9')
        return letter - '0' + 1;
    return letter == '_' ? 37 : letter == '-' ? 0 : -1;
}

bool weir__seq_is_sound(const char seq[WEIR__SEQ_LEN])
{
    size_t i = 0;

    while (i < WEIR__SEQ_LEN && place_of(seq[i]) >= 0)
        i++;
    return i == WEIR__SEQ_LEN;
}

/* What is no name tells no useful time. */
int64_t weir__seq_ms(const char seq[WEIR__SEQ_LEN])
{
    uint64_t number = 0;

    for (size_t i = 0; i < TIME_CHARS; i++) {
        int place = place_of(seq[i]);

        number = number << 6 | (place < 0 ? 0 : (uint64_t)place);
    }
    return (int64_t)(number >> COUNTER_BITS) + YEAR_2020_MS;
}

/* One of 16 characters from '0' to '?'; -1 for any other. */
static int nibble(uint8_t byte)
{
    return byte >= '0' && byte <= '?' ? byte - '0' : -1;
}

/* Of the tree of some pack: what fits into a power of two begins at a multiple
 * of that. */
static bool is_node(unsigned lo, unsigned hi)
{
    unsigned span = 1;

    while (lo <= hi && span < hi - lo + 1)
        span *= 2;
    return lo <= hi && lo % span == 0;
}

int weir__node_read(struct weir_slice name, unsigned *ret_lo, unsigned *ret_hi)
{
    unsigned lo, hi;
    int part[4];

    if (name.len != WEIR__NODE_LEN)
        return WEIR_EMALFORMED;
    for (size_t i = 0; i < 4; i++) {
        part[i] = nibble(name.ptr[WEIR__SEQ_LEN + i]);
        if (part[i] < 0)
            return WEIR_EMALFORMED;
    }
    lo = (unsigned)(part[0] * 16 + part[1]);
    hi = (unsigned)(part[2] * 16 + part[3]);
    if (!is_node(lo, hi))
        return WEIR_EMALFORMED;
    *ret_lo = lo;
    *ret_hi = hi;
    return WEIR_OK;
}

void weir__made_id(const char *seq, unsigned slot,
                   char ret_id[WEIR__MADE_ID_LEN + 1])
{
    WEIR_ASSERT(slot < WEIR__SLOTS_MAX);
    ret_id[0] = '@';
    memcpy(ret_id + 1, seq, WEIR__SEQ_LEN);
    ret_id[WEIR__SEQ_LEN + 1] = hex_digits[slot / 16];
    ret_id[WEIR__SEQ_LEN + 2] = hex_digits[slot % 16];
    ret_id[WEIR__MADE_ID_LEN] = '\0';
}

/* The value of a hexadecimal digit; -1 for any other byte. */
static int digit_of(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

bool weir__made_id_read(struct weir_slice id, const char **ret_seq,
                        unsigned *ret_slot)
{
    const char *text = (const char *)id.ptr;
    int high, low;

    if (id.len != WEIR__MADE_ID_LEN || text[0] != '@' ||
        !weir__seq_is_sound(text + 1))
        return false;
    high = digit_of(text[WEIR__SEQ_LEN + 1]);
    low = digit_of(text[WEIR__SEQ_LEN + 2]);
    if (high < 0 || low < 0)
        return false;
    *ret_seq = text + 1;
    *ret_slot = (unsigned)(high * 16 + low);
    return true;
}

/* --- tables of mixed packs ------------------------------------------------ */

enum { TIME_BYTES = 6, SLOT_BYTES = 4 };

static int64_t read_le(const uint8_t *ptr, size_t len)
{
    uint64_t value = 0;

    for (size_t i = len; i > 0; i--)
        value = value << 8 | ptr[i - 1];
    return (int64_t)value;
}

size_t weir__table_len(size_t slots)
{
    return 2 * TIME_BYTES + SLOT_BYTES * slots;
}

int64_t weir__table_due_ms(const uint8_t *table, size_t slot)
{
    int64_t added_ms = read_le(table, TIME_BYTES);
    int64_t due_ms = read_le(table + TIME_BYTES, TIME_BYTES) +
                     read_le(table + weir__table_len(slot), SLOT_BYTES);

    return due_ms < added_ms ? added_ms : due_ms;
}
