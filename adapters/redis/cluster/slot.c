/* SPDX-License-Identifier: MIT */
#include "adapters/redis/cluster/slot.h"

#include <string.h>

#include "core/assert.h"
#include "core/text.h"

/* CRC16/XMODEM: polynomial 0x1021, nothing reflected, from 0. */
static uint16_t crc16(struct weir_slice bytes)
{
    unsigned crc = 0;

    for (size_t i = 0; i < bytes.len; i++) {
        crc ^= (unsigned)bytes.ptr[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 0x8000) != 0 ? crc << 1 ^ 0x1021 : crc << 1;
    }
    return (uint16_t)crc;
}

/* What stands between the first '{' and the next '}', else all of the key. */
static struct weir_slice hashed_part(struct weir_slice key)
{
    const uint8_t *open = key.len == 0 ? NULL : memchr(key.ptr, '{', key.len);
    const uint8_t *close;

    if (open == NULL)
        return key;
    close = memchr(open, '}', key.len - (size_t)(open - key.ptr));
    if (close == NULL || close == open + 1)
        return key;
    return weir__slice_of(open + 1, (size_t)(close - open - 1));
}

uint16_t weir__cluster_slot(struct weir_slice key)
{
    return crc16(hashed_part(key)) % WEIR__CLUSTER_SLOTS;
}

uint16_t weir__cluster_slot_of_topic(struct weir_slice topic)
{
    WEIR_ASSERT(topic.len > 0);
    WEIR_ASSERT(memchr(topic.ptr, '{', topic.len) == NULL);
    WEIR_ASSERT(memchr(topic.ptr, '}', topic.len) == NULL);
    return crc16(topic) % WEIR__CLUSTER_SLOTS;
}
