/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <string.h>

#include "adapters/msgpack/record.h"
#include "adapters/redis/delay/private.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* What a claim's packs become: for each pack one allocation with the runs, the
 * ids and a copy of the bytes (a reply dies with its callback). */

enum { TOO_LARGE = 64 * 1024 * 1024 }; /* taken for the bytes of a pack */

/* What one fetch delivers. */
struct arrival {
    struct weir__run *first, **end;
    size_t count;
};

static struct weir__delay_lease *lease_of(struct weir__request *request)
{
    return (
        struct weir__delay_lease *)(void *)((char *)request -
                                            offsetof(struct weir__delay_lease,
                                                     request));
}

static void batch_free(struct weir__block_cache *cache,
                       struct weir__batch *batch)
{
    if (batch == NULL)
        return;
    for (size_t i = 0; i < batch->run_count; i++)
        if (batch->runs[i].magic == WEIR__RUN_MAGIC)
            weir__run_fini(&batch->runs[i]);
    weir__block_cache_put(cache, batch, batch->size);
}

static void free_batches(struct weir__delay_lease *lease)
{
    for (size_t i = 0; i < lease->pack_count; i++) {
        batch_free(&lease->topic->shared->batches, lease->packs[i].batch);
        lease->packs[i].batch = NULL;
    }
}

void weir__delay_lease_free(struct weir__delay_lease *lease)
{
    weir__lease_end(&lease->base);
    free_batches(lease);
    weir__mem_free(lease);
}

void weir__delay_lease_done(struct weir__delay_lease *lease)
{
    WEIR_ASSERT(lease->out == 0);
    lease->next_done = lease->topic->done;
    lease->topic->done = lease;
    weir__topic_mark(&lease->topic->base);
}

void weir__delay_lease_leave(struct weir__delay_lease *lease)
{
    lease->is_done = true;
    if (lease->settles == 0)
        weir__delay_lease_free(lease);
    else
        free_batches(lease);
}

/* --- batches ------------------------------------------------------------ */

/* `pack` is NULL where the bytes cannot be read. Ids are made where the pack
 * has none that a job can have, also for slots that it does not have. Runs come
 * first in the allocation, bytes last, which keeps everything aligned. */
static struct weir__batch *batch_new(struct weir__block_cache *cache,
                                     const struct weir__fetched *fetched,
                                     const struct weir__pack *pack)
{
    bool has_ids = pack != NULL && pack->has_ids;
    bool makes_ids = !has_ids || pack->lacks_some || fetched->end > pack->count;
    size_t runs = fetched->jobs * sizeof(struct weir__run);
    size_t ids = has_ids ? pack->count * sizeof(struct weir_slice) : 0;
    size_t made = makes_ids ? fetched->jobs * (WEIR__MADE_ID_LEN + 1) : 0;
    size_t len = pack == NULL ? 0 : pack->bytes.len;
    size_t size = sizeof(struct weir__batch) + runs + ids + made + len;
    struct weir__batch *batch = weir__block_cache_take(cache, &size);
    uint8_t *at;

    if (batch == NULL)
        return NULL;
    *batch = (struct weir__batch){.size = size, .header_len = WEIR__PACK_HEAD};
    at = (uint8_t *)(batch + 1);
    batch->runs = (struct weir__run *)(void *)at;
    at += runs;
    if (has_ids)
        batch->ids = (struct weir_slice *)(void *)at;
    at += ids;
    if (makes_ids)
        batch->made = (char(*)[WEIR__MADE_ID_LEN + 1])(void *)at;
    batch->bytes = at + made;
    return batch;
}

/* Copy the pack behind the runs and make `pack` look at the copy. */
static void take_bytes(struct weir__batch *batch, struct weir__pack *pack)
{
    memcpy(batch->bytes, pack->bytes.ptr, pack->bytes.len);
    pack->bytes.ptr = batch->bytes;
    batch->header_len = pack->header_len;
    if (pack->has_ids)
        weir__pack_ids(pack, batch->ids);
}

/* --- runs --------------------------------------------------------------- */

/* WEIR_OK, also for a job that cannot be read; WEIR_ENEWER: leave it. */
static int fill_run(struct weir__run *run, struct weir__batch *batch,
                    const struct weir__claimed_node *held,
                    const struct weir__pack *pack, uint32_t slot)
{
    const struct weir__delay_lease *lease = held->lease;
    bool has_id =
        pack != NULL && batch->ids != NULL && batch->ids[slot].len > 0;
    int64_t late_us = lease->time_us - held->due_ms * 1000;
    int rc = WEIR_EMALFORMED;

    *run = (struct weir__run){
        .job = {&weir__host},
        .magic = WEIR__RUN_MAGIC,
        .batch = held->lease,
        .node = (uint32_t)(held - lease->nodes),
        .slot = slot,
        .token = lease->base.token,
        .due_ms = held->due_ms,
        .late_us = late_us < 0 ? 0 : late_us,
        .claimed_ns = lease->claimed_ns,
        .is_suspect = held->ended > 0,
        .blamed = held->ended > 0 ? held->ended - 1 : 0,
    };
    if (pack != NULL)
        rc = weir__record_read(weir__pack_record(pack, slot), &run->record);
    if (rc == WEIR_ENEWER)
        return rc;
    run->is_malformed =
        rc != WEIR_OK || (pack != NULL && pack->has_ids && !has_id);
    if (run->is_malformed)
        run->record = (struct weir__record){0};
    run->record.counters.crashes += held->ended;
    if (has_id) {
        run->id = batch->ids[slot];
        return WEIR_OK;
    }
    weir__made_id(held->name, slot, batch->made[run - batch->runs]);
    run->id = (struct weir_slice){
        (const uint8_t *)batch->made[run - batch->runs], WEIR__MADE_ID_LEN};
    return WEIR_OK;
}

static void warn_newer(struct weir__delay_topic *topic)
{
    if (topic->warned_newer)
        return;
    topic->warned_newer = true;
    weir__log(topic->base.store->options.log, WEIR_LEVEL_WARN,
              "redis: %s has jobs written by a newer version of weir; they are "
              "left alone",
              topic->base.name);
}

/* All runs of one node into its batch, in order of slots. */
static void deliver_node(struct weir__claimed_node *held,
                         struct arrival *arrival)
{
    struct weir__delay_lease *lease = held->lease;
    const struct weir__fetched *fetched = &lease->packs[held->pack];
    struct weir__batch *batch = fetched->batch;
    bool is_readable = held->lo + held->size <= fetched->pack.count;

    for (uint32_t slot = held->lo; slot < held->lo + held->size; slot++) {
        struct weir__run *run = &batch->runs[batch->run_count];

        if (fill_run(run, batch, held, is_readable ? &fetched->pack : NULL,
                     slot) != WEIR_OK) {
            run->magic = 0;
            warn_newer(lease->topic);
            continue;
        }
        if (run->is_malformed)
            weir__topic_log_loss(&lease->topic->base, WEIR__LOSS_MALFORMED, 1,
                                 run->id);
        batch->run_count++;
        *arrival->end = run;
        arrival->end = &run->next;
        arrival->count++;
    }
}

/* --- packs -------------------------------------------------------------- */

/* Its nodes are settled away. */
static void lose_pack(struct weir__delay_lease *lease,
                      struct weir__fetched *fetched)
{
    const char *seq = fetched->first->name;
    size_t len = weir__seq_is_sound(seq) ? WEIR__SEQ_LEN : 0;

    fetched->is_gone = true;
    weir__topic_log_loss(&lease->topic->base, WEIR__LOSS_GONE, fetched->jobs,
                         weir__slice_of(seq, len));
}

/* Prepare pack number `index`; without a reply, which was too large, it cannot
 * be read. Afterwards it is gone (also where its name is none, so that no id
 * can be made of it), or has a batch (of malformed runs where it cannot be
 * read), or neither: then its jobs are left alone until their lease runs out.
 */
static void open_pack(struct weir__delay_lease *lease, size_t index,
                      const struct redisReply *reply)
{
    struct weir__fetched *fetched = &lease->packs[index];
    struct weir_slice bytes;
    int rc = WEIR_ETOOBIG;

    if (!weir__seq_is_sound(fetched->first->name) ||
        (reply != NULL && !weir__reply_str(reply, index, &bytes))) {
        lose_pack(lease, fetched);
        return;
    }
    if (reply != NULL)
        rc = weir__pack_read(bytes, &fetched->pack);
    if (rc == WEIR_ENEWER) {
        warn_newer(lease->topic);
        return;
    }
    fetched->batch = batch_new(&lease->topic->shared->batches, fetched,
                               rc == WEIR_OK ? &fetched->pack : NULL);
    if (fetched->batch == NULL)
        return;
    if (rc == WEIR_OK)
        take_bytes(fetched->batch, &fetched->pack);
}

/* Nodes in the order in which they were claimed: oldest first. */
static void deliver(struct weir__delay_lease *lease, struct arrival *arrival)
{
    bool has_dropped = false;

    for (size_t i = 0; i < lease->node_count; i++) {
        struct weir__claimed_node *held = &lease->nodes[i];
        const struct weir__fetched *fetched = &lease->packs[held->pack];

        if (fetched->batch != NULL)
            deliver_node(held, arrival);
        if (fetched->is_gone)
            weir__delay_drop(lease->topic, held);
        has_dropped = has_dropped || fetched->is_gone;
    }
    lease->out = arrival->count;
    if (lease->out == 0 && has_dropped)
        weir__delay_lease_done(lease);
    else if (lease->out == 0)
        weir__delay_lease_free(lease); /* it runs out by itself */
}

/* What packs cost: follows slowly downwards, at once upwards. */
static void note_bytes(struct weir__delay_topic *topic,
                       const struct redisReply *reply)
{
    size_t count = (size_t)reply->elements, bytes = 0;
    struct weir_slice one;

    for (size_t i = 0; i < count; i++)
        if (weir__reply_str(reply, i, &one))
            bytes += one.len;
    bytes = bytes / count + 1;
    if (topic->pack_bytes > bytes)
        bytes = topic->pack_bytes - (topic->pack_bytes - bytes) / 4;
    topic->pack_bytes = bytes;
}

void weir__lease_fetched(struct weir__request *request, int code,
                         const struct redisReply *reply)
{
    struct weir__delay_lease *lease = lease_of(request);
    struct weir__delay_topic *topic = lease->topic;
    struct arrival arrival = {NULL, &arrival.first, 0};
    size_t jobs = lease->jobs;

    if (weir__lease_fetch_again(lease, code, reply))
        return;
    lease->is_fetching = false;
    if (code == WEIR_ETOOBIG) /* from now on one by one */
        topic->pack_bytes = TOO_LARGE;
    weir__topic_log_error(&topic->base, "fetch", code, reply);
    if (code == WEIR_OK && reply->type == REDIS_REPLY_ARRAY &&
        (size_t)reply->elements == lease->pack_count) {
        note_bytes(topic, reply);
        for (size_t i = 0; i < lease->pack_count; i++)
            open_pack(lease, i, reply);
        deliver(lease, &arrival);
    } else if (code == WEIR_ETOOBIG && lease->pack_count == 1) {
        open_pack(lease, 0, NULL);
        deliver(lease, &arrival);
    } else {
        weir__delay_lease_free(lease); /* it runs out by itself */
    }
    if (topic->base.user != NULL)
        topic->base.store->events.arrived(topic->base.user, arrival.first,
                                          arrival.count, jobs - arrival.count);
}
