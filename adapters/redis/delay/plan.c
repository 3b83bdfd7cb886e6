/* SPDX-License-Identifier: MIT */
#include "adapters/redis/delay/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/msgpack/record.h"
#include "adapters/redis/store/store.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

enum {
    PACK_BYTES = 256 * 1024, /* a larger job goes alone */
    JOB_OVERHEAD = 8,        /* offset and head of the id, about */
    SCATTERED_MAX = 16,
    MIXED_MAX = 64,
    SPAN_PART = 4,           /* of its first delay a larger one may span */
    MIXED_BYTES = 16 * 1024, /* that it may have */
    STRING_OVERHEAD = 16,    /* what the server puts around a string, about */
    PACK_OVERHEAD = 160,     /* what a pack costs it besides its bytes, about */
    TRIMMED_MIN = 64,        /* mean bytes of a job */
    FIRST_CAP = 64,
    KEPT_BYTES = 1024 * 1024
};

/* --- items -------------------------------------------------------------- */

void weir__items_fini(struct weir__items *items)
{
    weir__mem_free(items->list);
    weir__buf_fini(&items->bytes);
    *items = (struct weir__items){0};
}

void weir__items_reset(struct weir__items *items)
{
    if (items->bytes.cap > KEPT_BYTES || items->cap > KEPT_BYTES / 64) {
        weir__items_fini(items);
        return;
    }
    items->count = 0;
    weir__buf_reset(&items->bytes);
}

/* Room for one more item, zeroed, its index set; NULL when out of memory. */
static struct weir__item *push(struct weir__items *items)
{
    if (items->count == items->cap) {
        size_t cap = items->cap == 0 ? FIRST_CAP : items->cap * 2;
        struct weir__item *list =
            weir__mem_grow(items->list, cap, sizeof(*list));

        if (list == NULL)
            return NULL;
        items->list = list;
        items->cap = cap;
    }
    items->list[items->count] =
        (struct weir__item){.index = (uint32_t)items->count};
    return &items->list[items->count++];
}

/* Empty: it is of none. */
static struct weir_slice lane_of(const struct weir__buf *bytes,
                                 const struct weir__item *item)
{
    if (item->lane_len == 0)
        return (struct weir_slice){0};
    WEIR_ASSERT(item->lane_at + item->lane_len <= bytes->len);
    return (struct weir_slice){bytes->ptr + item->lane_at, item->lane_len};
}

/* Its priority, a digit, and its key. False when out of memory. */
static bool append_lane(struct weir__buf *bytes, struct weir__item *item,
                        const struct weir__record *record)
{
    uint32_t level =
        record->priority == 0 ? WEIR__LEVEL_NORMAL : record->priority - 1;
    size_t at = bytes->len;
    char digit;

    if (record->key.len == 0 && level == WEIR__LEVEL_NORMAL)
        return true;
    digit = (char)('0' + (level < WEIR__LEVELS ? level : WEIR__LEVELS - 1));
    weir__buf_append(bytes, &digit, 1);
    weir__buf_append(bytes, record->key.ptr, record->key.len);
    item->lane_at = (uint32_t)at;
    item->lane_len = (uint32_t)(bytes->len - at);
    if (bytes->failed)
        return false;
    item->lane_hash = (uint32_t)weir__slice_hash(lane_of(bytes, item)) | 1u;
    return true;
}

struct weir__item *weir__items_append(struct weir__items *items,
                                      struct weir_slice id,
                                      const struct weir__record *record)
{
    struct weir__buf *bytes = &items->bytes;
    size_t start = bytes->len;
    struct weir__item *item;

    weir__buf_append(bytes, id.ptr, id.len);
    weir__buf_append(bytes, "", 1);
    if (record != NULL)
        weir__record_write(bytes, record);
    item = bytes->failed ? NULL : push(items);
    if (item == NULL) {
        bytes->len = start;
        bytes->failed = false;
        return NULL;
    }
    item->id_at = start;
    item->id_len = (uint32_t)id.len;
    item->record_at = start + id.len + 1;
    item->record_len = (uint32_t)(bytes->len - item->record_at);
    if (record == NULL || append_lane(bytes, item, record))
        return item;
    items->count--;
    bytes->len = start;
    bytes->failed = false;
    return NULL;
}

bool weir__items_rewrite(struct weir__items *items, struct weir__item *item,
                         const struct weir__record *record)
{
    struct weir__buf *bytes = &items->bytes;
    size_t start = bytes->len;
    struct weir__item own = *item;

    weir__record_write(bytes, record);
    own.record_at = start;
    own.record_len = (uint32_t)(bytes->len - start);
    if (!bytes->failed && append_lane(bytes, &own, record)) {
        *item = own;
        return true;
    }
    bytes->len = start;
    bytes->failed = false;
    return false;
}

static int compare(uint64_t one, uint64_t other)
{
    return one < other ? -1 : one > other;
}

bool weir__item_is_tick(const struct weir__item *item)
{
    return item->outcome == WEIR__OUTCOME_SNOOZE && item->is_absolute &&
           item->away == NULL;
}

static int by_group(const void *left, const void *right)
{
    const struct weir__item *one = left, *other = right;
    bool have_keys = weir__item_is_alone(one) && weir__item_is_alone(other);

    if (have_keys && one->code == WEIR_OK && other->code == WEIR_OK)
        return compare(one->index, other->index);
    if (one->group != other->group)
        return compare(one->group, other->group);
    if (one->lane_hash != other->lane_hash)
        return compare(one->lane_hash, other->lane_hash);
    if (one->ms != other->ms)
        return one->ms < other->ms ? -1 : 1;
    return compare(one->index, other->index);
}

void weir__items_sort(struct weir__items *items)
{
    if (items->count > 1)
        qsort(items->list, items->count, sizeof(items->list[0]), by_group);
}

struct weir_slice weir__item_id(const struct weir__items *items,
                                const struct weir__item *item)
{
    WEIR_ASSERT(item->id_at + item->id_len <= items->bytes.len);
    return (struct weir_slice){items->bytes.ptr + item->id_at, item->id_len};
}

struct weir_slice weir__item_record(const struct weir__items *items,
                                    const struct weir__item *item)
{
    WEIR_ASSERT(item->record_at + item->record_len <= items->bytes.len);
    return (struct weir_slice){items->bytes.ptr + item->record_at,
                               item->record_len};
}

/* For qsort, which hands no context to its comparison. */
struct id_entry {
    struct weir_slice id;
    struct weir__item *item;
};

static int by_id(const void *left, const void *right)
{
    const struct id_entry *one = left, *other = right;
    size_t len = one->id.len < other->id.len ? one->id.len : other->id.len;
    int order = memcmp(one->id.ptr, other->id.ptr, len);

    if (order != 0)
        return order;
    if (one->id.len != other->id.len)
        return compare(one->id.len, other->id.len);
    return compare(one->item->index, other->item->index);
}

void weir__items_find_duplicates(struct weir__items *items)
{
    struct id_entry *entries =
        weir__mem_grow(NULL, items->count, sizeof(*entries));
    size_t count = 0;

    if (entries == NULL)
        return; /* then the pack that comes first on the server wins */
    for (size_t i = 0; i < items->count; i++)
        if (items->list[i].code == WEIR_OK && items->list[i].id_len > 0 &&
            items->list[i].key_len == 0)
            entries[count++] = (struct id_entry){
                weir__item_id(items, &items->list[i]), &items->list[i]};
    if (count > 1)
        qsort(entries, count, sizeof(*entries), by_id);
    for (size_t i = 1; i < count; i++) {
        struct weir_slice id = entries[i].id, last = entries[i - 1].id;

        if (id.len != last.len || memcmp(id.ptr, last.ptr, id.len) != 0)
            continue;
        entries[i].item->code = WEIR_EEXISTS;
        entries[i].item->group = UINT32_MAX;
    }
    weir__mem_free(entries);
}

/* --- planned packs -------------------------------------------------------- */

static size_t most_scattered(const struct weir__item *one)
{
    return one->away == NULL ? MIXED_MAX : SCATTERED_MAX;
}

/* Whether `item` may be in a pack with `one`, `count` behind it, as due times
 * go. */
static bool are_near(const struct weir__items *items,
                     const struct weir__item *one, size_t count)
{
    int64_t from_ms = one->is_absolute ? items->now_ms : 0;
    int64_t first = one->ms - from_ms, span = one[count].ms - one->ms;

    if (span > UINT32_MAX || (count > 0 && one[count].ms < one[count - 1].ms))
        return false;
    return count < SCATTERED_MAX || span <= first / SPAN_PART ||
           first + span <= 0;
}

static bool is_single(const struct weir__item *item)
{
    return item->is_single || weir__item_is_alone(item);
}

static bool are_of_one_lane(const struct weir__items *items,
                            const struct weir__item *one,
                            const struct weir__item *other)
{
    struct weir_slice lane, own;

    if (one->lane_hash != other->lane_hash || one->lane_hash == 0)
        return one->lane_hash == other->lane_hash;
    lane = lane_of(&items->bytes, one);
    own = lane_of(&items->bytes, other);
    return lane.len == own.len && memcmp(lane.ptr, own.ptr, lane.len) == 0;
}

/* How many items from `first` on fit into one pack; those must be of the same
 * group and lane and, if `is_equal`, due at the same time. */
static size_t fitting(const struct weir__items *items, size_t first, size_t end,
                      bool is_equal)
{
    const struct weir__item *one = &items->list[first];
    size_t bytes = 0, most = is_equal ? WEIR__SLOTS_MAX : most_scattered(one);
    size_t count = 0;

    while (first + count < end && count < most) {
        const struct weir__item *item = &one[count];

        if (item->group != one->group || (count > 0 && is_single(item)) ||
            !are_of_one_lane(items, one, item) ||
            (is_equal ? item->ms != one->ms : !are_near(items, one, count)))
            break;
        bytes += item->id_len + item->record_len + JOB_OVERHEAD;
        if (count > 0 && bytes > PACK_BYTES)
            break;
        if ((!is_equal || one->lane_len > 0) && count >= SCATTERED_MAX &&
            bytes > MIXED_BYTES)
            break;
        count++;
    }
    return count;
}

/* A job with a unique key has an id in its pack, too, where weir makes it. */
static void jobs_of(const struct weir__items *items,
                    const struct weir__planned_pack *planned,
                    struct weir__pack_job jobs[WEIR__SLOTS_MAX],
                    char made[WEIR__MADE_ID_LEN + 1])
{
    WEIR_ASSERT(planned->count > 0 && planned->count <= WEIR__SLOTS_MAX);
    for (size_t i = 0; i < planned->count; i++) {
        const struct weir__item *item = &items->list[planned->first + i];

        jobs[i].id = weir__item_id(items, item);
        jobs[i].record = weir__item_record(items, item);
    }
    if (planned->has_ids && jobs[0].id.len == 0) {
        weir__made_id(planned->seq, 0, made);
        jobs[0].id = weir__slice_of(made, WEIR__MADE_ID_LEN);
    }
}

static void measure(const struct weir__items *items,
                    struct weir__planned_pack *planned)
{
    struct weir__pack_job jobs[WEIR__SLOTS_MAX];
    char made[WEIR__MADE_ID_LEN + 1];

    jobs_of(items, planned, jobs, made);
    planned->size = weir__pack_measure(jobs, planned->count, planned->has_ids);
}

/* The server's allocator rounds up to one of four sizes in each doubling, which
 * would waste up to a fifth: the largest such size that is not above `len`. */
static size_t size_below(size_t len)
{
    size_t power = 1;

    while (power * 2 <= len)
        power *= 2;
    return power + (len - power) / (power / 4) * (power / 4);
}

/* How many jobs of the planned pack fit into `len` bytes. */
static size_t count_within(const struct weir__items *items,
                           const struct weir__planned_pack *planned, size_t len)
{
    size_t left = planned->size.len + STRING_OVERHEAD, count = planned->count;

    while (count > 0 && left > len) {
        const struct weir__item *item =
            &items->list[planned->first + count - 1];

        left -= item->record_len + sizeof(uint32_t) +
                (planned->has_ids ? item->id_len + 1 : 0);
        count--;
    }
    return count;
}

/* Leave some jobs to the next pack where that saves the server memory, and
 * enough come for another one. */
static void trim(const struct weir__items *items, size_t end,
                 struct weir__planned_pack *planned)
{
    size_t len = planned->size.len + STRING_OVERHEAD, below, above, count;
    size_t most = planned->is_scattered
                      ? most_scattered(&items->list[planned->first])
                      : WEIR__SLOTS_MAX;

    if (len < TRIMMED_MIN * most || planned->count < most)
        return;
    below = size_below(len);
    above = size_below(below + below / 4);
    count = count_within(items, planned, below);
    if (end - planned->first - count < most / 4 ||
        (below + PACK_OVERHEAD) * planned->count * 20 >
            (above + PACK_OVERHEAD) * count * 19)
        return;
    planned->count = count;
    measure(items, planned);
}

void weir__planned_pack_plan(const struct weir__items *items, size_t first,
                             size_t end, struct weir__planned_pack *ret_planned)
{
    struct weir__planned_pack planned = {.first = first};
    size_t mixed = 0;

    WEIR_ASSERT(first < end && end <= items->count);
    if (is_single(&items->list[first]))
        end = first + 1;                  /* it may be replaced */
    if (items->list[first].lane_len == 0) /* a lane has times of nodes */
        mixed = fitting(items, first, end, false);
    planned.count = fitting(items, first, end, true);
    if (planned.count < mixed) {
        planned.count = mixed;
        planned.is_scattered = true;
        planned.is_mixed = items->list[first].away == NULL;
    }
    planned.has_ids =
        items->list[first].id_len > 0 || items->list[first].key_len > 0;
    measure(items, &planned);
    if (items->list[first].lane_len == 0) /* others are of other lanes */
        trim(items, end, &planned);
    *ret_planned = planned;
}

void weir__planned_pack_write(struct weir__buf *buf,
                              const struct weir__items *items,
                              const struct weir__planned_pack *planned)
{
    struct weir__pack_job jobs[WEIR__SLOTS_MAX];
    char made[WEIR__MADE_ID_LEN + 1];

    jobs_of(items, planned, jobs, made);
    weir__pack_write(buf, jobs, planned->count, planned->has_ids);
}

void weir__planned_pack_key(struct weir__buf *buf,
                            const struct weir__prefix *prefix,
                            const struct weir__planned_pack *planned)
{
    if (planned->target == NULL)
        weir__prefix_pack(buf, prefix, planned->seq);
    else
        weir__prefix_outgoing(buf, prefix, planned->seq);
}

size_t weir__planned_pack_stage(struct weir__buf *buf,
                                const struct weir__prefix *prefix,
                                const struct weir__items *items,
                                const struct weir__planned_pack *planned)
{
    uint64_t number = items->list[planned->first].mark;
    char mark[WEIR__PACK_MARK + 8];
    size_t at, len = 0;

    if (number != 0)
        len = (size_t)snprintf(mark, sizeof(mark), "%0*" PRIu64,
                               WEIR__PACK_MARK, number);
    WEIR_ASSERT(len == 0 || len == WEIR__PACK_MARK);
    weir__resp_command(buf, 6);
    weir__resp_str(buf, "SET");
    weir__planned_pack_key(buf, prefix, planned);
    /* The pack and what is around it. */
    (void)weir__buf_reserve(buf, planned->size.len + 128);
    weir__resp_begin(buf, planned->size.len + len);
    at = buf->len;
    weir__planned_pack_write(buf, items, planned);
    weir__buf_append(buf, mark, len);
    weir__resp_end(buf);
    weir__resp_str(buf, "NX");
    weir__resp_str(buf, "PX");
    weir__resp_int(buf, WEIR__STAGED_MS);
    return at;
}

bool weir__planned_pack_name(const struct weir__store_topic *topic,
                             const struct weir__items *items,
                             struct weir__planned_pack *planned)
{
    const struct weir__item *item = &items->list[planned->first];

    if (weir__item_is_tick(item))
        weir__seq_next_tick(&topic->store->seqs, weir__topic_server_ms(topic),
                            planned->seq);
    else
        weir__topic_next_seq(topic, planned->seq);
    planned->target = item->away;
    if (planned->target == NULL)
        return true;
    if (item->outcome == WEIR__OUTCOME_DEAD)
        weir__topic_next_seq(topic, planned->second);
    return weir__call_slot_take(topic->store, &planned->call_slot);
}

void weir__planned_pack_tell(struct weir__buf *list,
                             const struct weir__items *items,
                             const struct weir__planned_pack *planned,
                             size_t key)
{
    struct weir__buf when = {0};

    weir__planned_pack_when(&when, items, planned);
    weir__pack_uint(list, key);
    weir__pack_uint(list, planned->count);
    weir__pack_uint(list, planned->size.header_len);
    weir__pack_str(list, when.ptr, when.len);
    list->failed = list->failed || when.failed;
    weir__buf_fini(&when);
}

static void append_le(struct weir__buf *buf, size_t len, uint64_t value)
{
    uint8_t bytes[8];

    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
    weir__buf_append(buf, bytes, len);
}

void weir__planned_pack_when(struct weir__buf *buf,
                             const struct weir__items *items,
                             const struct weir__planned_pack *planned)
{
    const struct weir__item *first = &items->list[planned->first];
    bool is_absolute = first->is_absolute;
    char text[32];
    int len;

    WEIR_ASSERT(first->ms >= 0);
    if (planned->is_mixed) {
        weir__buf_append(buf, is_absolute ? "t" : "s", 1);
        append_le(buf, 6, (uint64_t)first->ms);
        for (size_t i = 0; i < planned->count; i++)
            append_le(buf, 4, (uint64_t)(first[i].ms - first->ms));
        return;
    }
    if (planned->is_scattered) {
        weir__buf_append(buf, is_absolute ? "q" : "p", 1);
        weir__pack_array(buf, planned->count);
        for (size_t i = 0; i < planned->count; i++)
            weir__pack_uint(buf, (uint64_t)first[i].ms);
        return;
    }
    if (first->lane_len > 0) {
        weir__buf_append(buf, "l", 1);
        weir__buf_append(buf, items->bytes.ptr + first->lane_at, 1);
    }
    len = snprintf(text, sizeof(text), "%c%" PRId64, is_absolute ? 'a' : 'r',
                   first->ms);
    WEIR_ASSERT(len > 0 && (size_t)len < sizeof(text));
    weir__buf_append(buf, text, (size_t)len);
    if (first->lane_len > 0) {
        weir__buf_append(buf, " ", 1);
        weir__buf_append(buf, items->bytes.ptr + first->lane_at + 1,
                         first->lane_len - 1);
    }
}

bool weir__planned_packs_push(struct weir__planned_packs *planned_packs,
                              const struct weir__planned_pack *planned)
{
    if (planned_packs->count == planned_packs->cap) {
        size_t cap =
            planned_packs->cap == 0 ? FIRST_CAP : planned_packs->cap * 2;
        struct weir__planned_pack *list =
            weir__mem_grow(planned_packs->list, cap, sizeof(*list));

        if (list == NULL)
            return false;
        planned_packs->list = list;
        planned_packs->cap = cap;
    }
    planned_packs->list[planned_packs->count++] = *planned;
    return true;
}
