/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "adapters/redis/store/store.h"
#include "core/assert.h"
#include "core/mem.h"

/* Names that this process gives, and the seats of its calls. */

void weir__redis_next_seq(struct weir__redis *store, char seq[WEIR__SEQ_LEN])
{
    struct weir__seats *seats = &store->seats;

    WEIR_ASSERT(store->has_number || store->seqs.last > 0);
    weir__seq_next(&store->seqs, weir__redis_server_ms(store), seq);
    if (seats->name[0] == '\0')
        memcpy(seats->name, seq, WEIR__SEQ_LEN);
}

bool weir__seat_take(struct weir__redis *store, uint32_t *ret_seat)
{
    struct weir__seats *seats = &store->seats;
    uint32_t *list;

    if (seats->free_count > 0) {
        *ret_seat = seats->free[--seats->free_count];
        return true;
    }
    list = weir__mem_grow(seats->free, seats->count + 1u, sizeof(*list));
    if (list == NULL)
        return false;
    seats->free = list;
    *ret_seat = seats->count++;
    return true;
}

void weir__seat_leave(struct weir__redis *store, uint32_t seat)
{
    WEIR_ASSERT(store->seats.free_count < store->seats.count);
    store->seats.free[store->seats.free_count++] = seat;
}

void weir__seat_write(struct weir__buf *buf, const struct weir__redis *store,
                      uint32_t seat, uint64_t number)
{
    char text[WEIR__SEQ_LEN + 12];
    int len =
        snprintf(text, sizeof(text), "%s%" PRIu32, store->seats.name, seat);

    WEIR_ASSERT(len > WEIR__SEQ_LEN && (size_t)len < sizeof(text));
    weir__resp_str(buf, text);
    weir__resp_int(buf, (int64_t)number);
}
