/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/msgpack/origin.h"
#include "adapters/msgpack/record.h"
#include "adapters/redis/delay/private.h"
#include "adapters/redis/delay/settle_call.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Taking runs back. A run that is done costs one bit in its node; what is to
 * be written (retries, snoozes, dead jobs) is encoded at once, since its slices
 * end with the run. delay/verdicts.c sends it all at flush. */

static void touch(struct weir__claimed_node *node)
{
    struct weir__delay_topic *topic = node->lease->topic;

    WEIR_ASSERT(node->next == NULL);
    *topic->touched_end = node;
    topic->touched_end = &node->next;
    weir__topic_mark(&topic->base);
}

static void set_bit(uint64_t bits[4], uint32_t slot)
{
    bits[slot >> 6] |= UINT64_C(1) << (slot & 63);
}

/* A dead job that moves to another topic: retries start over there, and where
 * it comes from is in its headers, unless it moved before. `headers` keeps
 * them. */
static void note_origin(const struct weir__delay_topic *topic,
                        struct weir__run *run, struct weir__buf *headers)
{
    struct weir__record *record = &run->record;
    struct weir_origin origin = {
        .topic = weir__slice_str(topic->base.name),
        .id = run->id,
        .token = run->token,
        .died_ms = run->due_ms + run->start_late_us / 1000,
        .error = record->error,
    };
    bool is_moved = record->spent > 0;

    record->spent = record->counters.attempt;
    record->added_ms = 0; /* it is a new one there */
    if (is_moved)
        return;
    weir__buf_reset(headers);
    if (weir__origin_write(headers, &origin, record->headers) &&
        !headers->failed) /* else it goes without */
        record->headers = weir__buf_slice(headers);
    headers->failed = false;
}

static struct weir__delay_topic *open_other(struct weir__delay_topic *topic,
                                            struct weir_slice name)
{
    return (struct weir__delay_topic *)weir__topic_open(
        topic->base.store, &weir__delay_kind, name); /* its first member */
}

/* Where dead jobs go. NULL: they stay, also without memory for it. */
static struct weir__delay_topic *on_dead_of(struct weir__delay_topic *topic)
{
    if (topic->on_dead_topic == NULL && topic->on_dead[0] != '\0')
        topic->on_dead_topic =
            open_other(topic, weir__slice_str(topic->on_dead));
    return topic->on_dead_topic;
}

/* Append a job to what is to be written; NULL when out of memory. */
static struct weir__item *append(struct weir__claimed_node *node,
                                 const struct weir__run *run,
                                 struct weir_slice id,
                                 const struct weir__record *record)
{
    struct weir__item *item =
        weir__items_append(&node->lease->topic->endings, id, record);

    if (item == NULL)
        return NULL;
    item->node = node;
    item->slot = run->slot;
    item->mark = node->lease->base.token;
    return item;
}

/* Remember the job itself; false when out of memory. */
static bool note_ending(struct weir__delay_topic *topic, struct weir__run *run,
                        struct weir__claimed_node *node)
{
    bool is_dead = run->outcome == WEIR__OUTCOME_DEAD;
    bool is_expired = /* counted, not kept */
        is_dead &&
        weir__slice_equal(run->record.reason, weir__slice_str("expired"));
    struct weir__delay_topic *away =
        is_dead && !is_expired ? on_dead_of(topic) : NULL;
    struct weir__item *item;

    if (run->record.cron.len > 0)
        topic->has_ticks = true;
    else if (!is_expired)
        weir__attempts_note(topic->base.store, run,
                            node->crashes.len > 0 ? 0 : node->ended,
                            &run->record, &topic->shared->scratch[1]);
    if (away != NULL) {
        note_origin(topic, run, &topic->shared->scratch[0]);
        run->record.unique = (struct weir_slice){0}; /* which is of its topic */
    }
    item = append(node, run, run->id, is_expired ? NULL : &run->record);
    if (item == NULL)
        return false;
    item->away = away;
    item->is_absolute = !is_dead && run->at_ms != 0;
    item->ms = is_dead ? 0 : item->is_absolute ? run->at_ms : run->delay_ms;
    item->outcome = run->outcome;
    /* A claim without a token finds ticks only if they are alone. The topic may
     * get its rate later. */
    item->is_single = run->record.cron.len > 0;
    return true;
}

/* Likewise the jobs that the run adds. */
static bool note_follows(struct weir__delay_topic *topic,
                         const struct weir__run *run,
                         struct weir__claimed_node *node)
{
    for (const struct weir__follow *follow = run->follows.first; follow != NULL;
         follow = follow->next) {
        bool is_away = follow->topic.len > 0;
        struct weir__delay_topic *away =
            is_away ? open_other(topic, follow->topic) : NULL;
        struct weir__item *item =
            append(node, run, follow->id, &follow->record);

        if (item == NULL || (is_away && away == NULL))
            return false;
        item->away = away;
        item->is_absolute = follow->at_ms != 0;
        item->ms = item->is_absolute ? follow->at_ms : follow->delay_ms;
        item->outcome = WEIR__OUTCOME_FOLLOW;
    }
    return true;
}

/* All of it, or nothing and false. */
static bool note_all(struct weir__delay_topic *topic, struct weir__run *run,
                     struct weir__claimed_node *node)
{
    struct weir__items *items = &topic->endings;
    size_t count = items->count, len = items->bytes.len;

    if ((run->outcome == WEIR__OUTCOME_DONE || note_ending(topic, run, node)) &&
        note_follows(topic, run, node))
        return true;
    items->count = count;
    items->bytes.len = len;
    items->bytes.failed = false;
    return false;
}

/* What the run's verdict writes somewhere else, in jobs. */
static uint32_t endings_of(const struct weir__run *run)
{
    return (uint32_t)run->follows.count + (run->outcome != WEIR__OUTCOME_DONE);
}

/* In bytes, but for ids and what is small. */
static size_t bytes_of(const struct weir__run *run)
{
    return (run->outcome != WEIR__OUTCOME_DONE
                ? run->record.body.len + run->record.attempts.len
                : 0) +
           run->follows.bytes;
}

static bool has_room(const struct weir__claimed_node *node,
                     const struct weir__run *run)
{
    if (node->asker != NULL ||
        (run->asker != NULL && node->verdicts + node->backs > 0))
        return false;
    return node->verdicts + node->endings + node->backs + 1 + endings_of(run) <=
               WEIR__SLOTS_PER_CALL &&
           (node->verdicts + node->backs == 0 ||
            node->bytes + bytes_of(run) <= WEIR__BYTES_PER_CALL);
}

/* The part of the node that takes the run's verdict: no part is too large for
 * one call, and one that is asked about is alone. NULL when out of memory. */
static struct weir__claimed_node *part_for(struct weir__claimed_node *node,
                                           const struct weir__run *run)
{
    struct weir__claimed_node *last = node->part == NULL ? node : node->part,
                              *part;

    if (has_room(last, run))
        return last;
    part = weir__mem_new(sizeof(*part));
    if (part == NULL)
        return NULL;
    memcpy(part->name, node->name, sizeof(part->name));
    part->size = node->size;
    part->lo = node->lo;
    part->ended = node->ended;
    part->due_ms = node->due_ms;
    part->is_mixed = node->is_mixed;
    part->pack = node->pack;
    part->lease = node->lease;
    part->part = part; /* tells it from a claimed node */
    node->part = part;
    return part;
}

/* Unless it has verdicts. */
static void forget_part(struct weir__claimed_node *node)
{
    if (node->part == NULL || node->part->verdicts + node->part->backs > 0)
        return;
    weir__mem_free(node->part);
    node->part = NULL;
}

static void take_verdict(struct weir__delay_topic *topic, struct weir__run *run,
                         struct weir__claimed_node *whole)
{
    struct weir__claimed_node *node = part_for(whole, run);

    if (node == NULL || !note_all(topic, run, node)) {
        forget_part(whole);
        weir__asker_tell(run->asker, WEIR_ENOMEM);
        return; /* its lease runs out */
    }
    node->asker = run->asker;
    WEIR_ASSERT((node->slots[run->slot >> 6] >> (run->slot & 63) & 1) == 0);
    if (node->verdicts + node->backs == 0)
        touch(node);
    set_bit(node->slots, run->slot);
    if (run->is_unstarted)
        set_bit(node->unstarted, run->slot);
    node->verdicts++;
    node->endings += endings_of(run);
    node->bytes += bytes_of(run);
    /* Another suspect starts at once: this one must not be under way then. */
    topic->touched_slots += run->is_suspect ? WEIR__SLOTS_PER_CALL : 1;
    topic->base.unsettled++;
}

/* A job that was not started returns under its due time. */
static void take_back(struct weir__delay_topic *topic, uint32_t slot,
                      bool is_unstarted, struct weir__claimed_node *node)
{
    if (node->verdicts + node->backs == 0)
        touch(node);
    set_bit(node->back, slot);
    if (is_unstarted)
        set_bit(node->unstarted, slot);
    node->backs++;
    topic->touched_slots++;
    topic->base.unsettled++;
}

void weir__delay_return(struct weir__claimed_node *node)
{
    WEIR_ASSERT(node->size == 1 && node->lease->out == 0);
    take_back(node->lease->topic, node->lo, true, node);
    weir__delay_lease_done(node->lease);
}

void weir__delay_settle(struct weir__store_topic *base, struct weir__run *run)
{
    struct weir__delay_topic *topic = weir__delay_topic_of(base);
    struct weir__delay_lease *lease = run->batch;
    struct weir__claimed_node *node = &lease->nodes[run->node];

    WEIR_ASSERT(run->magic == WEIR__RUN_MAGIC);
    WEIR_ASSERT(lease->topic == topic && lease->out > 0);
    WEIR_ASSERT(run->outcome != WEIR__OUTCOME_NONE);
    WEIR_ASSERT(node->starting == NULL);
    if (run->outcome == WEIR__OUTCOME_RETURN) {
        node = part_for(node, run);
        if (node != NULL) { /* else its lease runs out */
            node->asker = run->asker;
            take_back(topic, run->slot, run->is_unstarted, node);
        } else {
            weir__asker_tell(run->asker, WEIR_ENOMEM);
        }
    } else if (run->outcome != WEIR__OUTCOME_TAKEN) {
        take_verdict(topic, run, node);
    }
    weir__run_fini(run);
    lease->out--;
    if (lease->out == 0)
        weir__delay_lease_done(lease);
}

void weir__delay_drop(struct weir__delay_topic *topic,
                      struct weir__claimed_node *node)
{
    WEIR_ASSERT(node->lease->topic == topic &&
                node->verdicts + node->backs == 0);
    node->is_dropped = true;
    memset(node->unstarted, 0xff, sizeof(node->unstarted));
    topic->touched_slots += node->size;
    touch(node);
}

void weir__delay_clear_verdicts(struct weir__delay_topic *topic)
{
    struct weir__claimed_node *node = topic->touched;

    while (node != NULL) {
        struct weir__claimed_node *next = node->next;

        if (node->part == node) {
            weir__mem_free(node);
        } else {
            node->next = NULL;
            node->part = NULL;
            node->asker = NULL;
            node->verdicts = 0;
            node->backs = 0;
            node->endings = 0;
            node->bytes = 0;
            memset(node->slots, 0, sizeof(node->slots));
            memset(node->back, 0, sizeof(node->back));
            memset(node->unstarted, 0, sizeof(node->unstarted));
        }
        node = next;
    }
    topic->touched = NULL;
    topic->touched_end = &topic->touched;
    topic->touched_slots = 0;
    weir__items_reset(&topic->endings);
}
