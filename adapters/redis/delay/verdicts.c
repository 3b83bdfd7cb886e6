/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/conn/error.h"
#include "adapters/redis/delay/backlog.h"
#include "adapters/redis/delay/settle_call.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Sending verdicts: calls of the settle script with up to 1,024 slots each.
 * What a verdict writes back is staged as packs before the call, like new jobs.
 * What a call says is put together in delay/settle_call.c. */

/* --- sending again ------------------------------------------------------ */

static void leave_backlog(struct weir__delay_lease *lease)
{
    weir__keeper_shut(lease->topic->base.store->keeper);
    lease->in_backlog--;
    weir__keeper_reopen(lease->topic->base.store->keeper);
}

/* It was answered for good, or will not be. */
static void leave_leases(struct weir__settle *settle)
{
    for (size_t i = 0; i < settle->lease_count; i++) {
        struct weir__delay_lease *lease = settle->leases[i];

        WEIR_ASSERT(lease->settles > 0);
        lease->settles--;
        if (settle->is_in_backlog)
            leave_backlog(lease);
        if (!lease->is_done || lease->settles > 0)
            continue;
        /* The call that was to end it found this left. */
        if (settle->is_in_backlog)
            weir__delay_lease_done(lease);
        else
            weir__delay_lease_free(lease);
    }
}

void weir__settle_free(struct weir__settle *settle)
{
    leave_leases(settle);
    for (size_t i = 0; i <= settle->packs; i++)
        weir__buf_fini(&settle->copies[i]);
    weir__mem_free(settle->handle);
    settle->is_over = true;
    if (settle->staging == 0)
        weir__mem_free(settle);
}

static void on_staged(int code, const struct redisReply *reply, void *arg)
{
    struct weir__settle *settle = arg;

    WEIR_ASSERT(settle->staging > 0);
    settle->staging--;
    /* The call tells whether what is there is another producer's. */
    settle->is_taken =
        settle->is_taken || (code == WEIR_OK && reply->type == REDIS_REPLY_NIL);
    settle->is_refused = settle->is_refused || code == WEIR_ETOOBIG;
    if (settle->is_over && settle->staging == 0)
        weir__mem_free(settle);
}

static void stage(struct weir__settle *settle, struct weir__buf *bytes,
                  unsigned flags)
{
    struct weir__place *place = settle->topic->base.place;

    if (weir__place_command(place, bytes, NULL, flags, on_staged, settle) ==
        WEIR_OK)
        settle->staging++;
}

static void send_copy(struct weir__settle *settle, size_t index,
                      struct weir__request *request)
{
    const unsigned flags = WEIR__SEND_AGAIN | WEIR__SEND_REPLAY;
    const struct weir__buf *copy = &settle->copies[index];
    struct weir__buf bytes = {0};

    weir__buf_append(&bytes, copy->ptr, copy->len);
    bytes.failed = bytes.failed || copy->failed;
    if (request == NULL)
        stage(settle, &bytes, flags);
    else
        weir__place_send(settle->topic->base.place, &bytes, settle->script,
                         flags, request);
}

/* The copies stay, as it may have to be repeated; a call without packs comes
 * back with its answer. */
void weir__settle_send(struct weir__settle *settle)
{
    settle->topic->settles_out++;
    if (settle->packs == 0) {
        weir__place_send(settle->topic->base.place, &settle->copies[0],
                         settle->script, WEIR__SEND_AGAIN | WEIR__SEND_REPLAY,
                         &settle->request);
        return;
    }
    for (size_t i = 0; i < settle->packs; i++)
        send_copy(settle, i, NULL);
    send_copy(settle, settle->packs, &settle->request);
}

void weir__settle_leave_out(struct weir__settle *settle)
{
    struct weir__buf *call = &settle->copies[settle->packs];

    settle->is_second = true;
    if (settle->is_taken)
        weir__settle_rename(settle);
    if (settle->packs > 0)
        weir__settle_call_leave_out(call);
    if (settle->offers)
        weir__settle_call_offer_nothing(call);
    settle->offers = false;
}

/* --- replies ------------------------------------------------------------ */

/* Behind the pairs of nodes and slots come those that begin below 0: -1, how
 * many jobs that runs added have ids that exist; -2, an entry of the outbox;
 * -3, how many that has; -4, how many dead jobs went. Returns where these
 * begin. */
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

static void note_unkept(const struct weir__delay_topic *topic, size_t unkept)
{
    if (unkept > 0)
        weir__log(topic->base.store->options.log, WEIR_LEVEL_WARN,
                  "redis: %s: the server did not keep what %zu verdicts write "
                  "back (is it full?); they are told again",
                  topic->base.name, unkept);
}

static void note_duplicates(const struct weir__delay_topic *topic,
                            int64_t duplicates)
{
    weir__log(topic->base.store->options.log, WEIR_LEVEL_WARN,
              "redis: %s: %lld jobs that handlers added with their verdicts "
              "exist already",
              topic->base.name, (long long)duplicates);
}

/* It is on its way to its topic, from here on by the outbox. */
static void send_out(struct weir__settle *settle, struct weir_slice entry)
{
    size_t first;

    if (settle->out_count == 0)
        return; /* it says so of a call that had none */
    WEIR_ASSERT(settle->packs >= settle->out_count);
    first = settle->packs - settle->out_count;
    for (size_t i = 0; i < settle->out_count; i++) {
        struct weir__settle_out *out = &settle->outs[i];
        const struct weir__buf *copy = &settle->copies[first + i];

        if (!out->is_open || entry.len < WEIR__SEQ_LEN ||
            memcmp(out->seq, entry.ptr, WEIR__SEQ_LEN) != 0)
            continue;
        out->is_open = !weir__relays_send(
            &settle->topic->outbox, entry,
            weir__slice_of(copy->ptr + out->pack_at, out->pack_len),
            out->call_slot);
        settle->is_unsure = settle->is_unsure || out->is_open;
    }
}

/* What the reply says of jobs that runs add, and of the dead. */
static void note_rest(struct weir__settle *settle,
                      const struct redisReply *reply)
{
    struct weir__delay_topic *topic = settle->topic;
    size_t count = (size_t)reply->elements;
    struct weir_slice entry;
    int64_t what, number;

    for (size_t i = end_of_slots(reply); i + 1 < count; i += 2) {
        if (!weir__reply_int(reply, i, &what))
            continue;
        if (what == -2 && weir__reply_str(reply, i + 1, &entry))
            send_out(settle, entry);
        if (what == -2 || !weir__reply_int(reply, i + 1, &number))
            continue;
        if (what == -1)
            note_duplicates(topic, number);
        else if (what == -4)
            weir__topic_evicted(&topic->base, number);
        else
            weir__relays_note_length(&topic->outbox, number);
    }
    if (settle->out_count > 0)
        weir__place_flush(topic->base.place);
}

/* The others came to nothing. */
static void leave_call_slots(struct weir__settle *settle)
{
    for (size_t i = 0; i < settle->out_count; i++)
        if (settle->outs[i].is_open)
            weir__call_slot_leave(settle->topic->base.store,
                                  settle->outs[i].call_slot);
}

/* So many verdicts more are answered for good. */
static void tell(struct weir__settle *settle, size_t verdicts, size_t refused)
{
    settle->told += verdicts;
    weir__topic_settled(&settle->topic->base, verdicts, refused);
}

static void answer(struct weir__settle *settle, int code)
{
    struct weir__asker *asker = settle->asker;

    settle->asker = NULL;
    weir__asker_tell(asker, code);
}

/* The lease may have ended before the claim's answer was read. Then the jobs
 * are another worker's, which may be through with the pack: only what was still
 * under this claim is lost. */
static void note_dropped(const struct weir__settle *settle,
                         const struct redisReply *reply)
{
    size_t len = weir__seq_is_sound(settle->dropped) ? WEIR__SEQ_LEN : 0;
    int64_t lost;

    if (settle->is_dropped && weir__reply_int(reply, 0, &lost) && lost > 0)
        weir__topic_log_loss(&settle->topic->base, WEIR__LOSS_GONE,
                             (size_t)lost,
                             weir__slice_of(settle->dropped, len));
}

/* Verdicts that a repeat settled before are refused when it comes again. */
static void read_answer(struct weir__settle *settle,
                        const struct redisReply *reply, size_t unkept)
{
    size_t pairs = (end_of_slots(reply) - 1) / 2;
    size_t settled = settle->verdicts - settle->told;
    size_t refused =
        pairs > unkept + settle->told ? pairs - unkept - settle->told : 0;

    settled -= unkept < settled ? unkept : settled;
    if (refused > settled)
        refused = settled;
    note_dropped(settle, reply);
    note_rest(settle, reply);
    tell(settle, settled, refused);
    if (settled > 0)
        answer(settle, refused > 0 ? WEIR_ENOTFOUND : WEIR_OK);
}

/* False: it is in the backlog, and this runs again. */
static bool is_final(struct weir__settle *settle, int code,
                     const struct redisReply *reply)
{
    int64_t settled = -1;
    size_t unkept = 0;

    if (code == WEIR_ESERVER)
        return !weir__backlog_push(settle, reply);
    if (code != WEIR_OK)
        return true;
    if (!weir__reply_int(reply, 0, &settled) || settled < 0) {
        unkept = settle->verdicts - settle->told;
    } else {
        unkept = count_left_out(reply);
        read_answer(settle, reply, unkept);
    }
    if (unkept > 0 && !settle->is_in_backlog)
        note_unkept(settle->topic, unkept);
    return unkept == 0 || !weir__backlog_push(settle, reply);
}

/* It may have recorded packs for other topics, and this process does not know
 * their entries: sent once more it names them. */
static void ask_again(struct weir__settle *settle)
{
    leave_leases(settle);
    settle->lease_count = 0;
    weir__backlog_add(settle);
}

/* Nobody waits for its verdicts any more. */
static void end(struct weir__settle *settle, int code)
{
    struct weir__delay_topic *topic = settle->topic;
    size_t rest = settle->verdicts - settle->told;

    tell(settle, rest, rest);
    answer(settle, rest > 0 && code == WEIR_OK ? WEIR_ESERVER : code);
    weir__topic_settled(&topic->base, settle->backs, 0);
    settle->backs = 0;
    if (settle->is_unsure && settle->out_count > 0 && code != WEIR_ESERVER &&
        !topic->base.store->is_closed) {
        ask_again(settle);
        return;
    }
    if (!settle->is_unsure)
        leave_call_slots(settle);
    if (settle->is_in_backlog) {
        topic->backlog_cost -= settle->cost;
        weir__backlog_release(topic);
    }
    weir__settle_free(settle);
}

/* The job whose verdict the server refused is dead now. */
static void on_failed(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct weir__settle *settle =
        (struct weir__settle *)request; /* first member */
    int64_t result;

    WEIR_ASSERT(settle->topic->settles_out > 0);
    settle->topic->settles_out--;
    weir__backlog_note_error(settle->topic, "finish", code, reply);
    if (code == WEIR_OK && weir__reply_int(reply, 0, &result) && result == 1) {
        weir__refused_log(settle);
        tell(settle, 1, 0);
    }
    end(settle, code);
}

static bool fail_refused(struct weir__settle *settle, int code)
{
    if ((!settle->is_refused && code != WEIR_ETOOBIG) ||
        !weir__refused_rewrite(settle))
        return false;
    answer(settle, WEIR_ETOOBIG);
    settle->request.done = on_failed;
    weir__settle_send(settle);
    weir__place_flush(settle->topic->base.place);
    return true;
}

static void on_settled(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct weir__settle *settle =
        (struct weir__settle *)request; /* first member */
    struct weir__delay_topic *topic = settle->topic;
    bool is_repeat = settle->is_unsure;
    int64_t settled = 0;

    WEIR_ASSERT(topic->settles_out > 0);
    topic->settles_out--;
    if (settle->offers)
        weir__offer_answered(topic, code, reply);
    settle->is_unsure =
        code == WEIR_EUNKNOWN || (settle->is_unsure && code != WEIR_OK);
    if (topic->touched != NULL || topic->done != NULL)
        weir__topic_mark(&topic->base);
    if (fail_refused(settle, code))
        return;
    if (code == WEIR_OK && weir__reply_int(reply, 0, &settled) &&
        settled <= 0 && settle->verdicts > 0 && settle->backs == 0 &&
        !is_repeat)
        weir__conn_replay_nothing(topic->base.place->server->commands);
    if (code == WEIR_OK && weir__reply_int(reply, 0, &settled) &&
        settled == -1 && settle->packs > 0 && !settle->is_second) {
        weir__settle_leave_out(settle);
        weir__settle_send(settle);
        return;
    }
    weir__backlog_note_error(topic, "settle", code, reply);
    if (is_final(settle, code, reply))
        end(settle, code);
}

/* --- sending ------------------------------------------------------------ */

/* The command that stages a pack of the call. */
static void write_stage(struct weir__settle *settle,
                        const struct weir__settle_call *call, size_t index)
{
    const struct weir__planned_pack *planned = &call->planned[index];
    struct weir__buf *copy = &settle->copies[index];
    size_t at = weir__planned_pack_stage(copy, &call->topic->base.prefix,
                                         &call->topic->endings, planned);

    WEIR_ASSERT(at + planned->size.len <= copy->len || copy->failed);
    if (planned->target == NULL)
        return;
    (void)weir__topic_register(&planned->target->base);
    settle->outs[settle->out_count] = (struct weir__settle_out){
        .call_slot = planned->call_slot,
        .is_open = true,
        .pack_at = at,
        .pack_len = planned->size.len,
    };
    memcpy(settle->outs[settle->out_count].seq, planned->seq, WEIR__SEQ_LEN);
    settle->out_count++;
}

/* False when out of memory: what is not whole would be missing each time. */
static bool write_copies(struct weir__settle *settle,
                         const struct weir__settle_call *call)
{
    bool failed = false;

    (void)weir__topic_register(&call->topic->base);
    for (size_t i = 0; i < settle->packs; i++)
        write_stage(settle, call, i);
    settle->script =
        weir__settle_call_write(&settle->copies[settle->packs], call);
    for (size_t i = 0; i <= settle->packs; i++)
        failed = failed || settle->copies[i].failed;
    return !failed;
}

static void take_leases(struct weir__settle *settle,
                        const struct weir__settle_call *call)
{
    for (const struct weir__claimed_node *node = call->first; node != call->end;
         node = node->next)
        if (settle->lease_count == 0 ||
            settle->leases[settle->lease_count - 1] != node->lease) {
            node->lease->settles++;
            settle->leases[settle->lease_count++] = node->lease;
        }
}

/* A server that never heard of the claim may have given the jobs to another
 * worker. */
static void note_drop(struct weir__settle *settle,
                      const struct weir__settle_call *call)
{
    if (!call->is_dropped)
        return;
    settle->is_dropped = call->first->lease->connection ==
                         call->topic->base.place->server->connection;
    memcpy(settle->dropped, call->first->name, sizeof(settle->dropped));
}

/* With its copies, and leases of the nodes. NULL when out of memory. */
static struct weir__settle *settle_new(const struct weir__settle_call *call)
{
    struct weir__delay_topic *topic = call->topic;
    size_t copies = call->planned_count + 1;
    size_t outs = call->planned_count - call->moves;
    struct weir__settle *settle = weir__mem_new(
        sizeof(*settle) + copies * sizeof(settle->copies[0]) +
        outs * sizeof(settle->outs[0]) +
        (call->nodes + call->back_nodes) * sizeof(settle->leases[0]));

    if (settle == NULL)
        return NULL;
    settle->request.done = on_settled;
    settle->request.store = topic->base.store;
    settle->topic = topic;
    settle->packs = call->planned_count;
    settle->verdicts = call->verdicts;
    settle->backs = call->backs;
    settle->first_key = weir__settle_call_first_key(call);
    settle->asker = call->asker;
    settle->outs = (void *)(settle->copies + copies);
    settle->leases = (void *)(settle->outs + outs);
    if (!write_copies(settle, call)) {
        weir__settle_free(settle);
        return NULL;
    }
    take_leases(settle, call);
    weir__refused_prepare(settle, call);
    note_drop(settle, call);
    settle->offers = call->offer != 0;
    topic->base.wants_claim = topic->base.wants_claim && !settle->offers;
    return settle;
}

static void send_call(struct weir__settle_call *call)
{
    struct weir__delay_topic *topic = call->topic;
    struct weir__settle *settle;

    weir__settle_call_offer(call);
    settle = weir__settle_call_plan(call) ? settle_new(call) : NULL;
    if (settle == NULL)
        weir__settle_call_forgo(call);
    else if (weir__backlog_is_crowded(topic))
        weir__backlog_add(settle);
    else
        weir__settle_send(settle);
}

/* --- flushing ----------------------------------------------------------- */

static void send_all(struct weir__delay_topic *topic)
{
    struct weir__claimed_node *node = topic->touched;
    size_t item = 0;

    if (node == NULL && topic->done == NULL)
        return;
    topic->endings.now_ms = weir__topic_server_ms(&topic->base);
    weir__settle_call_sort_endings(topic, node);
    do {
        struct weir__settle_call call = weir__settle_call_nodes(topic, node);

        weir__settle_call_endings(&call, item);
        send_call(&call);
        item = call.end_item;
        node = call.end;
    } while (node != NULL);
    WEIR_ASSERT(item == topic->endings.count);
}

void weir__delay_send_settles(struct weir__store_topic *base)
{
    struct weir__delay_topic *topic = weir__delay_topic_of(base);

    send_all(topic);
    weir__delay_clear_verdicts(topic);
    while (topic->done != NULL) {
        struct weir__delay_lease *lease = topic->done;

        topic->done = lease->next_done;
        weir__delay_lease_leave(lease);
    }
}

/* While the server is busy with a call that was sent, runs that are just done
 * gather: full calls, and whole nodes of runs that ended one after the other,
 * cost it less. The answer flushes them. They stay ahead of a claim, which
 * would give back what it finds under a lease that ended. */
static bool gathers(const struct weir__delay_topic *topic)
{
    return topic->settles_out > 0 && topic->endings.count == 0 &&
           topic->touched_slots < WEIR__SLOTS_PER_CALL &&
           !topic->base.wants_claim &&
           weir__conn_is_ready(topic->base.place->server->commands);
}

void weir__delay_flush_settles(struct weir__delay_topic *topic)
{
    if (!gathers(topic))
        weir__delay_send_settles(&topic->base);
}
