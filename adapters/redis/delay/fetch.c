/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "adapters/msgpack/record.h"
#include "adapters/redis/delay/private.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* A claim's packs: how they are fetched, and what they become, for each pack
 * one allocation with the runs, the ids and a copy of the bytes (a reply dies
 * with its callback).
 *
 * The server writes at most 64 KiB to a connection in a turn of its loop
 * (NET_MAX_WRITES_PER_EVENT), whatever else it does in that turn: beside a fast
 * producer, a worker with one connection gets half of what is added, and its
 * claims wait behind its own packs. So large fetches go by connections of their
 * own, which are opened when first there is much to fetch. */

enum {
    MUCH = 512,                  /* jobs */
    TOO_LARGE = 64 * 1024 * 1024 /* taken for the bytes of a pack */
};

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
    for (size_t i = 0; i < lease->node_count; i++)
        weir__buf_fini(&lease->nodes[i].crashes);
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
    weir__keeper_shut(lease->topic->base.store->keeper);
    lease->is_done = true;
    weir__keeper_reopen(lease->topic->base.store->keeper);
    if (lease->settles == 0)
        weir__delay_lease_free(lease);
    else
        free_batches(lease);
}

/* --- fetching ----------------------------------------------------------- */

/* So many for all servers, and one for each at least. */
static size_t fetcher_count(const struct weir__server *server)
{
    size_t servers = 0;

    for (server = server->store->servers; server != NULL; server = server->next)
        servers++;
    return servers < WEIR__FETCHERS ? WEIR__FETCHERS / servers : 1;
}

static void open_fetchers(struct weir__server *server)
{
    const char *worker = server->store->worker;
    size_t count = fetcher_count(server);
    char name[WEIR__KEY_MAX + 8];

    (void)snprintf(name, sizeof(name), "%s:fetch", worker); /* fits */
    for (size_t i = 0; i < count; i++) {
        struct weir__conn_options conn = {.name = name, .seed = 2 + i};

        if (server->fetchers[i] == NULL)
            (void)weir__link_beside(server, &conn, &server->fetchers[i]);
    }
}

/* The next one that is ready; NULL: none. */
static struct weir__conn *next_fetcher(struct weir__server *server)
{
    for (size_t i = 0; i < WEIR__FETCHERS; i++) {
        struct weir__conn *conn;

        server->fetcher = (server->fetcher + 1) % WEIR__FETCHERS;
        conn = server->fetchers[server->fetcher];
        if (conn != NULL && weir__conn_is_ready(conn))
            return conn;
    }
    return NULL;
}

/* By a fetcher, or by the connection of all commands. */
static void send_fetch(struct weir__delay_lease *lease,
                       struct weir__conn *fetcher)
{
    struct weir__redis *store = lease->topic->base.store;
    unsigned bodies = weir__send_bodies(lease->pack_count);
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, 1 + lease->pack_count);
    weir__resp_str(&bytes, "MGET");
    for (size_t i = 0; i < lease->pack_count; i++)
        weir__prefix_pack(&bytes, &lease->topic->base.prefix,
                          lease->packs[i].first->name);
    lease->by_fetcher = fetcher != NULL;
    if (fetcher == NULL) {
        weir__place_send(lease->topic->base.place, &bytes, NULL,
                         WEIR__SEND_AGAIN | bodies, &lease->request);
        return;
    }
    weir__redis_send_by(store, fetcher, &bytes, NULL, WEIR__SEND_ONCE | bodies,
                        &lease->request);
    weir__conn_flush(fetcher);
}

void weir__lease_fetch(struct weir__delay_lease *lease)
{
    struct weir__server *server = lease->topic->base.place->server;
    bool is_large = lease->jobs >= MUCH;

    if (is_large)
        open_fetchers(server);
    send_fetch(lease, is_large ? next_fetcher(server) : NULL);
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
    *batch =
        (struct weir__batch){.size = size,
                             .header_len = WEIR__PACK_HEAD,
                             .added_ms = weir__seq_ms(fetched->first->name)};
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
                    const struct weir__claimed_node *node,
                    const struct weir__pack *pack, uint32_t slot)
{
    const struct weir__delay_lease *lease = node->lease;
    bool has_id =
        pack != NULL && batch->ids != NULL && batch->ids[slot].len > 0;
    int64_t due_ms = weir__claimed_due_ms(node, slot);
    int64_t late_us = lease->time_us - due_ms * 1000;
    int rc = WEIR_EMALFORMED;

    *run = (struct weir__run){
        .job = {&weir__host},
        .magic = WEIR__RUN_MAGIC,
        .batch = node->lease,
        .node = (uint32_t)(node - lease->nodes),
        .slot = slot,
        .token = lease->base.token,
        .due_ms = due_ms,
        .late_us = late_us < 0 ? 0 : late_us,
        .claimed_ns = lease->claimed_ns,
        .is_adopted = lease->is_adopted,
        .is_suspect = node->ended > 0,
        .blamed = node->ended > 0 ? node->ended - 1 : 0,
    };
    if (pack != NULL)
        rc = weir__record_read(weir__pack_record(pack, slot), &run->record);
    if (rc == WEIR_ENEWER)
        return rc;
    run->is_malformed =
        rc != WEIR_OK || (pack != NULL && pack->has_ids && !has_id);
    if (run->is_malformed)
        run->record = (struct weir__record){0};
    if (run->record.added_ms == 0)
        run->record.added_ms = batch->added_ms;
    run->lost_due = node->lost_due;
    run->is_malformed = run->is_malformed || run->lost_due;
    run->record.counters.crashes += node->ended;
    if (has_id) {
        run->id = batch->ids[slot];
        return WEIR_OK;
    }
    weir__made_id(node->name, slot, batch->made[run - batch->runs]);
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
static void deliver_node(struct weir__claimed_node *node,
                         struct arrival *arrival)
{
    struct weir__delay_lease *lease = node->lease;
    const struct weir__fetched *fetched = &lease->packs[node->pack];
    struct weir__batch *batch = fetched->batch;
    bool is_readable = node->lo + node->size <= fetched->pack.count;

    for (uint32_t slot = node->lo; slot < node->lo + node->size; slot++) {
        struct weir__run *run = &batch->runs[batch->run_count];

        if (node->alone != 0 && slot + 1 != node->alone)
            continue;
        if (fill_run(run, batch, node, is_readable ? &fetched->pack : NULL,
                     slot) != WEIR_OK) {
            run->magic = 0;
            warn_newer(lease->topic);
            continue;
        }
        if (run->is_malformed && !run->lost_due)
            weir__topic_log_loss(&lease->topic->base, WEIR__LOSS_MALFORMED, 1,
                                 run->id);
        node->is_laned = node->is_laned || run->record.key.len > 0 ||
                         run->record.priority > 0;
        batch->run_count++;
        *arrival->end = run;
        arrival->end = &run->next;
        arrival->count++;
    }
}

/* --- packs -------------------------------------------------------------- */

/* Prepare pack number `index`; without a reply, which was too large, it cannot
 * be read. Afterwards it is gone (also where its name is none, so that no id
 * can be made of it), and its nodes are settled away; or has a batch (of
 * malformed runs where it cannot be read), or neither: then its jobs are left
 * alone until their lease runs out. */
static void open_pack(struct weir__delay_lease *lease, size_t index,
                      const struct redisReply *reply)
{
    struct weir__fetched *fetched = &lease->packs[index];
    struct weir_slice bytes;
    int rc = WEIR_ETOOBIG;

    if (!weir__seq_is_sound(fetched->first->name) ||
        (reply != NULL && !weir__reply_str(reply, index, &bytes))) {
        fetched->is_gone = true;
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

/* --- delivery ------------------------------------------------------------- */

/* Nodes in the order in which they were claimed: oldest first. */
static void deliver(struct weir__delay_lease *lease, struct arrival *arrival)
{
    bool has_dropped = false, has_laned = false;

    for (size_t i = 0; i < lease->node_count; i++) {
        struct weir__claimed_node *node = &lease->nodes[i];
        const struct weir__fetched *fetched = &lease->packs[node->pack];

        if (fetched->batch != NULL)
            deliver_node(node, arrival);
        if (fetched->is_gone)
            weir__delay_drop(lease->topic, node);
        has_dropped = has_dropped || fetched->is_gone;
        has_laned = has_laned || node->is_laned;
    }
    arrival->first = has_laned ? weir__runs_by_turn(arrival->first)
                               : weir__runs_by_due(arrival->first);
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

static bool has_all(const struct redisReply *reply)
{
    struct weir_slice pack;

    for (size_t i = 0; i < (size_t)reply->elements; i++)
        if (!weir__reply_str(reply, i, &pack))
            return false;
    return true;
}

/* A fetcher may be with a server that commands have left, or not reached: that
 * a pack is gone only the connection that claimed it can say. */
static bool is_fetched_again(const struct weir__delay_lease *lease, int code,
                             const struct redisReply *reply)
{
    return lease->by_fetcher && code != WEIR_ESERVER && code != WEIR_ETOOBIG &&
           (code != WEIR_OK || !has_all(reply)) &&
           !lease->topic->base.store->is_closed;
}

void weir__lease_fetched(struct weir__request *request, int code,
                         const struct redisReply *reply)
{
    struct weir__delay_lease *lease = lease_of(request);
    struct weir__delay_topic *topic = lease->topic;
    struct arrival arrival = {NULL, &arrival.first, 0};
    size_t jobs = lease->jobs;

    if (is_fetched_again(lease, code, reply)) {
        send_fetch(lease, NULL);
        return;
    }
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

/* --- early fetches -------------------------------------------------------- */

/* A worker that is woken for one new pack asks for it together with its claim,
 * not afterwards: one round trip less from the add to the handler. Whether the
 * pack is its own the answer to the claim says, which comes first. */
struct weir__early_fetch {
    struct weir__request request;
    struct weir__delay_topic *topic;
    struct weir__delay_lease
        *lease; /* whose pack this is; NULL: nobody's, so far */
    char seq[WEIR__SEQ_LEN];
};

static void on_fetched(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct weir__early_fetch *early =
        (struct weir__early_fetch *)request; /* its first member */
    struct weir__delay_lease *lease = early->lease;

    if (early->topic->early == early) /* the claim is sent once more */
        early->topic->early = NULL;
    weir__mem_free(early);
    if (lease == NULL)
        return;
    if (code == WEIR_OK || code == WEIR_ESERVER || code == WEIR_ETOOBIG ||
        code == WEIR_ECANCELED)
        weir__lease_fetched(&lease->request, code, reply);
    else
        weir__lease_fetch(lease); /* this one did not get there */
}

void weir__early_fetch_note(struct weir__store_topic *base, const char *seq)
{
    struct weir__delay_topic *topic = weir__delay_topic_of(base);

    memcpy(topic->early_seq, seq, sizeof(topic->early_seq));
    topic->has_early = true;
}

void weir__early_fetch_send(struct weir__delay_topic *topic)
{
    struct weir__early_fetch *early;
    struct weir__buf bytes = {0};

    if (!topic->has_early)
        return;
    topic->has_early = false;
    early = weir__mem_new(sizeof(*early));
    if (early == NULL)
        return; /* it is fetched afterwards */
    early->request.done = on_fetched;
    early->topic = topic;
    memcpy(early->seq, topic->early_seq, sizeof(early->seq));
    topic->early = early;
    weir__resp_command(&bytes, 2);
    weir__resp_str(&bytes, "MGET");
    weir__prefix_pack(&bytes, &topic->base.prefix, early->seq);
    weir__place_send(topic->base.place, &bytes, NULL,
                     WEIR__SEND_ONCE | weir__send_bodies(1), &early->request);
}

/* Options that changed are read before jobs arrive: then it is fetched again,
 * behind them. */
bool weir__early_fetch_takes(struct weir__delay_topic *topic,
                             struct weir__delay_lease *lease)
{
    struct weir__early_fetch *early = topic->early;

    topic->early = NULL;
    if (early == NULL || lease == NULL || lease->pack_count != 1 ||
        memcmp(lease->packs[0].first->name, early->seq, WEIR__SEQ_LEN) != 0 ||
        topic->base.is_following)
        return false;
    early->lease = lease;
    return true;
}
