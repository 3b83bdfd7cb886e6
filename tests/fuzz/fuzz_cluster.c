/* SPDX-License-Identifier: MIT */

/* Any answer to CLUSTER SLOTS, as it is on the wire: what is taken is a map
 * that holds together, is the same when it is read again, and has a slot where
 * it is put. What is refused is refused with a sentence. */

#include <string.h>

#include <hiredis/hiredis.h>

#include "adapters/redis/cluster/endpoint.h"
#include "adapters/redis/cluster/map.h"
#include "tests/fuzz/fuzz.h"

static const struct weir__redis_host asked = {"seed", 7000};

/* Its reader takes memory for as many elements as are announced. */
static bool is_large(const uint8_t *data, size_t size)
{
    size_t digits = 0;

    for (size_t i = 0; i < size && digits < 6; i++)
        digits = data[i] >= '0' && data[i] <= '9' ? digits + 1 : 0;
    return digits == 6;
}

static void *parse(const uint8_t *data, size_t size)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;

    if (redisReaderFeed(reader, (const char *)data, size) == REDIS_OK)
        (void)redisReaderGetReply(reader, &reply); /* NULL: not a whole one */
    redisReaderFree(reader);
    return reply;
}

/* Somewhere else, and where it is. */
static void put(struct weir__cluster_map *map, uint16_t slot)
{
    static const struct weir__redis_host host = {"elsewhere", 1};
    struct weir__cluster_map *other, *again;
    int rc = weir__cluster_map_with(map, slot, &host, &other);

    FUZZ_TRUE(rc == WEIR_OK || rc == WEIR_EFULL);
    if (rc != WEIR_OK)
        return;
    weir__cluster_map_check(other);
    FUZZ_TRUE(weir__endpoint_equal(&weir__cluster_map_find(other, slot)->host,
                                   &host));
    for (uint16_t i = 0; i < WEIR__CLUSTER_SLOTS; i++)
        FUZZ_TRUE(i == slot || !weir__cluster_map_has_moved(map, other, i));
    FUZZ_TRUE(weir__cluster_map_with(other, slot, &host, &again) == WEIR_OK);
    FUZZ_TRUE(again == other);
    weir__cluster_map_unref(again);
    weir__cluster_map_unref(other);
}

static uint16_t first_covered(const struct weir__cluster_map *map)
{
    uint16_t slot = 0;

    while (slot < WEIR__CLUSTER_SLOTS - 1 &&
           weir__cluster_map_find(map, slot) == NULL)
        slot++;
    return slot;
}

static void read_again(const redisReply *reply, struct weir__cluster_map *map)
{
    struct weir__cluster_map *again;

    FUZZ_TRUE(weir__cluster_map_read(reply, &asked, map, &again, NULL) ==
              WEIR_OK);
    FUZZ_TRUE(again == map);
    weir__cluster_map_unref(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    redisReply *reply = is_large(data, size) ? NULL : parse(data, size);
    struct weir__cluster_map *map;
    struct weir_error err = {0};
    int rc;

    if (reply == NULL)
        return 0;
    rc = weir__cluster_map_read(reply, &asked, NULL, &map, &err);
    FUZZ_TRUE(rc == WEIR_OK || rc == WEIR_ESERVER);
    FUZZ_TRUE(reply->type == REDIS_REPLY_ERROR ||
              (rc == WEIR_OK) == (err.text[0] == '\0'));
    if (rc == WEIR_OK) {
        weir__cluster_map_check(map);
        FUZZ_TRUE(weir__cluster_map_count(map) <=
                  weir__cluster_map_covered(map));
        read_again(reply, map);
        put(map, (uint16_t)(size % WEIR__CLUSTER_SLOTS));
        put(map, first_covered(map)); /* maybe the only one of its node */
        weir__cluster_map_unref(map);
    }
    freeReplyObject(reply);
    return 0;
}
