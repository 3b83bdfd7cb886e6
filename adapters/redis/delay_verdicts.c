/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/delay_draft.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Sending verdicts: calls of the settle script with up to 1,000 slots each.
 * What a verdict writes back is staged as packs before the call, like new jobs.
 * What a call says is put together in delay_draft.c. */

#define UNMET_NS INT64_C(1000000000)

struct settle_ask {
    struct weir__ask ask;
    struct weir__store_topic *topic;
    size_t verdicts;
    bool is_second;
    /* Commands to send when a pack was not staged: to stage them all once more,
     * then the call, which leaves out what cannot be staged. */
    size_t copy_count;
    struct weir__buf copies[];
};

/* --- replies ------------------------------------------------------------ */

static void ask_free(struct settle_ask *settle)
{
    for (size_t i = 0; i < settle->copy_count; i++)
        weir__buf_fini(&settle->copies[i]);
    weir__mem_free(settle);
}

/* Behind the pairs of nodes and slots come those that begin below 0: -1, how
 * many jobs that runs added have ids that exist; -2 or -3, a topic that does
 * not take jobs from here. Returns where these begin. */
static size_t end_of_slots(const struct redisReply *reply)
{
    size_t end = (size_t)reply->elements;
    int64_t node;

    while (end >= 3 && weir__reply_int(reply, end - 2, &node) && node < 0)
        end -= 2;
    return end;
}

/* Verdicts whose new pack was not there at the second time either. */
static size_t count_left_out(const struct redisReply *reply)
{
    size_t count = 0, end = end_of_slots(reply);
    int64_t slot;

    for (size_t i = 2; i < end; i += 2)
        count += weir__reply_int(reply, i, &slot) && slot >= WEIR__SLOTS_MAX;
    return count;
}

static void note_unkept(const struct weir__store_topic *topic, size_t unkept)
{
    if (unkept > 0)
        weir__log(topic->store->base.options.log, WEIR_LEVEL_WARN,
                  "redis: %s: the server did not keep what %zu verdicts write "
                  "back (is it full?); their jobs run again",
                  topic->base.name, unkept);
}

static void note_twins(const struct weir__store_topic *topic, int64_t twins)
{
    weir__log(topic->store->base.options.log, WEIR_LEVEL_WARN,
              "redis: %s: %lld jobs that handlers added with their verdicts "
              "exist already",
              topic->base.name, (long long)twins);
}

/* Once in a second. */
static void note_unmet(struct weir__store_topic *topic, struct weir_slice away,
                       bool is_full)
{
    int64_t now_ns = weir__base_now_ns(&topic->store->base);

    if (topic->unmet_ns != 0 && now_ns - topic->unmet_ns < UNMET_NS)
        return;
    topic->unmet_ns = now_ns;
    weir__log(topic->store->base.options.log, WEIR_LEVEL_ERROR,
              "redis: %s: %.*s %s; handlers that add jobs there with DONE run "
              "again",
              topic->base.name, (int)away.len, (const char *)away.ptr,
              is_full ? "is full (max_pending)" : "is not of kind delay");
}

/* What the reply says of jobs that runs add. */
static void note_follows(struct weir__store_topic *topic,
                         const struct redisReply *reply)
{
    size_t count = (size_t)reply->elements;
    struct weir_slice away;
    int64_t node, twins;

    for (size_t i = end_of_slots(reply); i + 1 < count; i += 2) {
        if (!weir__reply_int(reply, i, &node))
            continue;
        if (node == -1 && weir__reply_int(reply, i + 1, &twins))
            note_twins(topic, twins);
        if (node < -1 && weir__reply_str(reply, i + 1, &away))
            note_unmet(topic, away, node == -3);
    }
}

static bool send_again(struct settle_ask *settle)
{
    struct weir__delay *store = settle->topic->store;
    size_t count = settle->copy_count;

    if (count == 0 || settle->is_second)
        return false;
    settle->is_second = true;
    for (size_t i = 0; i + 1 < count; i++)
        weir__base_send(&store->base, &settle->copies[i], NULL,
                        WEIR__SEND_AGAIN, NULL);
    weir__base_send(&store->base, &settle->copies[count - 1],
                    &weir__script_settle, WEIR__SEND_AGAIN, &settle->ask);
    return true;
}

static void on_settled(struct weir__ask *ask, int code,
                       const struct redisReply *reply)
{
    struct settle_ask *settle = (struct settle_ask *)ask; /* first member */
    struct weir__store_topic *topic = settle->topic;
    size_t verdicts = settle->verdicts, refused = verdicts, unkept = 0;
    size_t pairs;
    int64_t settled = -1;

    if (code == WEIR_OK && weir__reply_int(reply, 0, &settled) &&
        settled >= 0) {
        pairs = (end_of_slots(reply) - 1) / 2;
        refused = pairs < verdicts ? pairs : verdicts;
    }
    if (code == WEIR_OK && settled == -1 && send_again(settle))
        return;
    weir__base_log_error(&topic->base, "settle", code, reply);
    if (code == WEIR_OK) {
        unkept = settled == -1 ? verdicts : count_left_out(reply);
        note_unkept(topic, unkept);
        if (settled >= 0)
            note_follows(topic, reply);
        weir__base_log_refused(&topic->base,
                               refused > unkept ? refused - unkept : 0);
    }
    ask_free(settle);
    WEIR_ASSERT(topic->base.unsettled >= verdicts);
    topic->base.unsettled -= verdicts;
    if (topic->base.user != NULL && verdicts > 0)
        topic->store->base.events.settled(topic->base.user, verdicts, refused);
}

/* --- sending ------------------------------------------------------------ */

/* Stage a pack, and keep a copy: it may have to be repeated. */
static void send_stage(struct settle_ask *settle, struct weir__buf *bytes)
{
    struct weir__buf *copy = &settle->copies[settle->copy_count];

    weir__buf_append(copy, bytes->ptr, bytes->len);
    settle->copy_count++;
    weir__base_send(&settle->topic->store->base, bytes, NULL, WEIR__SEND_AGAIN,
                    NULL);
}

static void send_call(struct weir__draft *draft)
{
    struct weir__store_topic *topic = draft->topic;
    const struct weir__parcels *parcels = &topic->store->parcels;
    struct weir__buf bytes = {0};
    struct settle_ask *settle = NULL;
    size_t copies = 0;

    if (weir__draft_plan(draft)) {
        copies = parcels->count == 0 ? 0 : parcels->count + 1;
        settle =
            weir__mem_new(sizeof(*settle) + copies * sizeof(settle->copies[0]));
    }
    if (settle == NULL) { /* the leases run out */
        WEIR_ASSERT(topic->base.unsettled >= draft->verdicts);
        topic->base.unsettled -= draft->verdicts;
        return;
    }
    settle->ask.done = on_settled;
    settle->ask.base = topic->base.base;
    settle->topic = topic;
    settle->verdicts = draft->verdicts;
    for (size_t i = 0; i < parcels->count; i++) {
        struct weir__store_topic *home = weir__draft_home(draft, i);

        weir__base_announce(&home->base);
        weir__topic_write_stage(&bytes, home, &topic->endings,
                                &parcels->list[i]);
        send_stage(settle, &bytes);
    }
    if (copies > 0)
        weir__draft_write(&settle->copies[settle->copy_count++], draft, true);
    weir__draft_write(&bytes, draft, false);
    weir__base_send(&topic->store->base, &bytes, &weir__script_settle,
                    WEIR__SEND_AGAIN, &settle->ask);
}

/* --- flushing ----------------------------------------------------------- */

/* Where dead jobs go. Without memory for it they stay. */
static void find_grave(struct weir__store_topic *topic)
{
    struct weir__store_topic_options options = {
        .name = weir__slice_str(topic->on_dead)};
    struct weir__store *store = &topic->store->base.port;

    topic->grave = NULL;
    if (topic->endings.count == 0 || options.name.len == 0 ||
        store->ops->topic_open(store, &options, &topic->grave) < 0)
        return;
    weir__base_announce(&topic->grave->base);
}

static void send_all(struct weir__store_topic *topic)
{
    struct weir__held *held = topic->touched;
    size_t item = 0;

    find_grave(topic);
    weir__draft_sort_endings(topic, held);
    while (held != NULL) {
        struct weir__draft draft = weir__draft_nodes(topic, held);

        weir__draft_endings(&draft, item);
        send_call(&draft);
        item = draft.end_item;
        held = draft.end;
    }
    WEIR_ASSERT(item == topic->endings.count);
}

void weir__topic_flush_settles(struct weir__store_topic *topic)
{
    if (topic->endings.count > 0 && !topic->store->base.has_number)
        return; /* its answer flushes them */
    send_all(topic);
    weir__topic_clear_verdicts(topic);
    while (topic->spent_leases != NULL) {
        struct weir__lease *lease = topic->spent_leases;

        topic->spent_leases = lease->next_spent;
        if (lease->returned > 0)
            weir__topic_release(topic, lease->token, lease->returned);
        weir__lease_free(lease);
    }
}
