/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "adapters/redis/store/store.h"
#include "core/assert.h"
#include "core/mem.h"

/* Names that this process gives to packs, and the slots of its calls. */

void weir__redis_next_seq(struct weir__redis *store, char seq[WEIR__SEQ_LEN])
{
    struct weir__call_slots *slots = &store->call_slots;

    WEIR_ASSERT(store->has_number || store->seqs.last > 0);
    weir__seq_next(&store->seqs, weir__redis_server_ms(store), seq);
    if (slots->name[0] == '\0')
        memcpy(slots->name, seq, WEIR__SEQ_LEN);
}

bool weir__call_slot_take(struct weir__redis *store, uint32_t *ret_call_slot)
{
    struct weir__call_slots *slots = &store->call_slots;
    uint32_t *list;

    if (slots->free_count > 0) {
        *ret_call_slot = slots->free[--slots->free_count];
        return true;
    }
    list = weir__mem_grow(slots->free, slots->count + 1u, sizeof(*list));
    if (list == NULL)
        return false;
    slots->free = list;
    *ret_call_slot = slots->count++;
    return true;
}

void weir__call_slot_leave(struct weir__redis *store, uint32_t call_slot)
{
    WEIR_ASSERT(store->call_slots.free_count < store->call_slots.count);
    store->call_slots.free[store->call_slots.free_count++] = call_slot;
}

void weir__call_slot_write(struct weir__buf *buf,
                           const struct weir__redis *store, uint32_t call_slot,
                           uint64_t number)
{
    char text[WEIR__SEQ_LEN + 12];
    int len = snprintf(text, sizeof(text), "%s%" PRIu32, store->call_slots.name,
                       call_slot);

    WEIR_ASSERT(len > WEIR__SEQ_LEN && (size_t)len < sizeof(text));
    weir__resp_str(buf, text);
    weir__resp_int(buf, (int64_t)number);
}
