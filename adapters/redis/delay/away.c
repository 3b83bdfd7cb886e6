/* SPDX-License-Identifier: MIT */
#include "adapters/redis/delay/away.h"

#include <string.h>

enum { TOPIC_KEYS = 4 }; /* wait ids meta idle */

static const struct weir__parcels *parcels_of(const struct weir__draft *draft)
{
    return &draft->topic->shared->parcels;
}

static const struct weir__item *first_of(const struct weir__draft *draft,
                                         size_t parcel)
{
    const struct weir__parcel *parcels = parcels_of(draft)->list;

    return &draft->topic->endings.list[parcels[parcel].first];
}

/* Is this the first parcel of its topic? */
static bool is_first(const struct weir__draft *draft, size_t parcel)
{
    return parcel == draft->graves ||
           first_of(draft, parcel)->away != first_of(draft, parcel - 1)->away;
}

static size_t count_topics(const struct weir__draft *draft)
{
    size_t count = 0;

    for (size_t i = draft->graves; i < parcels_of(draft)->count; i++)
        count += is_first(draft, i);
    return count;
}

size_t weir__away_key_count(const struct weir__draft *draft)
{
    return TOPIC_KEYS * count_topics(draft);
}

void weir__away_write_keys(struct weir__buf *buf,
                           const struct weir__draft *draft)
{
    for (size_t i = draft->graves; i < parcels_of(draft)->count; i++)
        if (is_first(draft, i))
            weir__prefix_keys(buf, &first_of(draft, i)->away->base.prefix,
                              "wait ids meta idle");
}

static void write_aways(struct weir__buf *list, const struct weir__draft *draft,
                        uint32_t pack_key)
{
    size_t end = parcels_of(draft)->count;
    uint64_t topic = 0;

    weir__buf_reset(list);
    weir__pack_array(list, 6 * (end - draft->graves));
    for (size_t i = draft->graves; i < end; i++) {
        topic += is_first(draft, i);
        weir__draft_write_pack(list, draft, pack_key, i);
        weir__pack_uint(list, topic);
        weir__draft_write_sources(list, draft, i);
    }
}

/* Their keys are behind those of all parcels. */
static void write_topics(struct weir__buf *list,
                         const struct weir__draft *draft, uint32_t pack_key)
{
    uint64_t key = pack_key + parcels_of(draft)->count;

    weir__buf_reset(list);
    weir__pack_array(list, 2 * count_topics(draft));
    for (size_t i = draft->graves; i < parcels_of(draft)->count; i++) {
        const char *name = first_of(draft, i)->away->base.name;

        if (!is_first(draft, i))
            continue;
        weir__pack_str(list, name, strlen(name));
        weir__pack_uint(list, key);
        key += TOPIC_KEYS;
    }
}

void weir__away_write(struct weir__buf *buf, const struct weir__draft *draft,
                      uint32_t pack_key)
{
    struct weir__buf *lists = draft->topic->shared->scratch;

    write_aways(&lists[0], draft, pack_key);
    write_topics(&lists[1], draft, pack_key);
    weir__resp_bytes(buf, weir__buf_slice(&lists[0]));
    weir__resp_bytes(buf, weir__buf_slice(&lists[1]));
    buf->failed = buf->failed || lists[0].failed || lists[1].failed;
    weir__resp_str(buf, "delay");
}
