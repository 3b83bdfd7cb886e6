/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/delay/backlog.h"
#include "core/assert.h"
#include "core/mem.h"

/* Claiming: one call of the claim script, whose reply names nodes, then one
 * MGET of their packs (their names are not known when the script is called).
 * delay/fetch.c makes runs of what comes back. */

enum {
    REPLY_BYTES = 4 * 1024 * 1024, /* that a fetch may bring, about */
    HEAD = 5,                      /* elements before the nodes */
    PLACES = 2048 /* of the table below: more than twice as many as packs */
};

_Static_assert(WEIR__DUE_MAX_MS < INT64_C(1) << 44,
               "a score holds it and a state");

struct claim_request {
    struct weir__request request;
    struct weir__delay_topic *topic;
    size_t room;
    enum weir__backlog_claim go;
};

static void report(struct weir__delay_topic *topic,
                   const struct weir__claimed *claimed)
{
    if (topic->base.user != NULL)
        topic->base.store->events.claimed(topic->base.user, claimed);
}

/* --- reading the reply -------------------------------------------------- */

/* A time that only somebody else can have written is moved to a bound. */
static int64_t bounded_ms(int64_t due_ms)
{
    return due_ms < WEIR__DUE_MAX_MS ? due_ms : WEIR__DUE_MAX_MS;
}

int64_t weir__claimed_due_ms(const struct weir__claimed_node *node,
                             uint32_t slot)
{
    WEIR_ASSERT(slot - node->lo < node->size);
    if (node->table == NULL)
        return node->due_ms;
    return bounded_ms(weir__table_due_ms(node->table, slot - node->lo));
}

/* Due time and state as one number. */
static bool read_score(struct weir__claimed_node *node, int64_t score)
{
    if (score < 0)
        return false;
    node->is_mixed = score >= WEIR__MIXED_MS * WEIR__NODE_STATES;
    if (node->is_mixed)
        score -= WEIR__MIXED_MS * WEIR__NODE_STATES;
    node->due_ms = bounded_ms(score / WEIR__NODE_STATES);
    node->ended = (uint32_t)(score % WEIR__NODE_STATES / 2);
    return true;
}

/* Its state, then the part of the pack's table that is of its slots, which goes
 * behind the packs. Empty: the table was lost. */
static bool read_table(struct weir__delay_lease *lease,
                       struct weir__claimed_node *node, struct weir_slice told)
{
    WEIR_ASSERT(node->size > 0);
    node->lost_due = told.len == 0;
    node->is_mixed = true;
    if (node->lost_due)
        return true;
    if (told.len != 1 + weir__table_len(node->size))
        return false;
    node->ended = told.ptr[0] / 2;
    memcpy(lease->tables_end, told.ptr + 1, told.len - 1);
    node->table = lease->tables_end;
    lease->tables_end += told.len - 1;
    node->due_ms = weir__claimed_due_ms(node, node->lo);
    return true;
}

static bool read_node(struct weir__delay_lease *lease,
                      const struct redisReply *reply, size_t index,
                      int64_t time_us)
{
    struct weir__claimed_node *node = &lease->nodes[index];
    struct weir_slice name, told;
    int64_t score;
    unsigned lo, hi;

    if (!weir__reply_str(reply, HEAD + 2 * index, &name) ||
        weir__node_read(name, &lo, &hi) != WEIR_OK)
        return false;
    memcpy(node->name, name.ptr, sizeof(node->name));
    node->lo = lo;
    node->size = hi - lo + 1;
    if (!(weir__reply_int(reply, HEAD + 2 * index + 1, &score)
              ? read_score(node, score)
              : weir__reply_str(reply, HEAD + 2 * index + 1, &told) &&
                    read_table(lease, node, told)))
        return false;
    if (node->lost_due)
        node->due_ms = time_us / 1000;
    node->lease = lease;
    lease->jobs += node->size;
    return node->ended == 0 || node->size == 1; /* suspects come one by one */
}

static size_t place_of(const char *seq)
{
    uint64_t bits;

    memcpy(&bits, seq + 2, sizeof(bits)); /* the part that varies most */
    return (size_t)((bits * UINT64_C(0x9e3779b97f4a7c15)) >> 53);
}
_Static_assert(PLACES == 1 << (64 - 53), "place_of fits the table");

/* Number the packs in the order of their first node. */
static void number_packs(struct weir__delay_lease *lease)
{
    uint16_t table[PLACES] = {0}; /* pack + 1 */

    for (size_t i = 0; i < lease->node_count; i++) {
        struct weir__claimed_node *node = &lease->nodes[i];
        struct weir__fetched *fetched;
        size_t place = place_of(node->name);

        while (table[place] != 0 &&
               memcmp(lease->packs[table[place] - 1].first->name, node->name,
                      WEIR__SEQ_LEN) != 0)
            place = (place + 1) % PLACES;
        if (table[place] == 0) {
            lease->packs[lease->pack_count].first = node;
            lease->pack_count++;
            table[place] = (uint16_t)lease->pack_count;
        }
        node->pack = (uint32_t)(table[place] - 1);
        fetched = &lease->packs[node->pack];
        fetched->jobs += node->size;
        if (node->lo + node->size > fetched->end)
            fetched->end = node->lo + node->size;
    }
}

struct weir__delay_lease *weir__delay_lease_new(struct weir__delay_topic *topic,
                                                size_t nodes, size_t tables)
{
    struct weir__delay_lease *lease =
        weir__mem_new(sizeof(*lease) + nodes * sizeof(lease->nodes[0]) +
                      nodes * sizeof(lease->packs[0]) + tables);

    if (lease == NULL)
        return NULL;
    lease->topic = topic;
    lease->request.done = weir__lease_fetched;
    lease->node_count = nodes;
    lease->packs = (struct weir__fetched *)(void *)(lease->nodes + nodes);
    lease->tables_end = (uint8_t *)(lease->packs + nodes);
    return lease;
}

void weir__delay_lease_claimed(struct weir__delay_lease *lease, int64_t time_us,
                               uint64_t token)
{
    struct weir__store_topic *topic = &lease->topic->base;

    lease->time_us = time_us;
    weir__lease_begin(&lease->base, topic, token);
    if (!lease->is_adopted) /* else somebody says so */
        weir__claim_note_token(topic, token);
    lease->claimed_ns = weir__redis_now_ns(topic->store);
    lease->connection = topic->place->server->connection;
    number_packs(lease);
}

/* Bytes of the tables in the reply, a bit more. */
static size_t tables_len(const struct redisReply *reply, size_t nodes)
{
    struct weir_slice told;
    size_t len = 0;

    for (size_t i = 0; i < nodes; i++)
        if (weir__reply_str(reply, HEAD + 2 * i + 1, &told))
            len += told.len;
    return len;
}

/* NULL when out of memory or not an answer of the script. */
static struct weir__delay_lease *read_lease(struct weir__delay_topic *topic,
                                            const struct redisReply *reply,
                                            const struct weir__claim_head *head,
                                            size_t jobs)
{
    size_t nodes = ((size_t)reply->elements - HEAD) / 2;
    struct weir__delay_lease *lease =
        nodes == 0 || nodes > WEIR__SLOTS_PER_CALL
            ? NULL
            : weir__delay_lease_new(topic, nodes, tables_len(reply, nodes));
    bool is_sound = true;

    if (lease == NULL)
        return NULL;
    for (size_t i = 0; i < nodes && is_sound; i++)
        is_sound = read_node(lease, reply, i, head->time_us);
    if (!is_sound || lease->jobs != jobs) {
        weir__delay_lease_free(lease);
        return NULL;
    }
    weir__delay_lease_claimed(lease, head->time_us, head->token);
    return lease;
}

/* --- the claim ---------------------------------------------------------- */

/* WEIR_OK and what to report, or an error; the lease if there are jobs. */
static int read_reply(struct weir__delay_topic *topic,
                      const struct redisReply *reply, size_t room,
                      struct weir__claimed *claimed,
                      struct weir__delay_lease **ret_lease)
{
    struct weir__claim_head head;
    int rc = weir__claim_read(reply, room, claimed, &head);

    if (rc != WEIR_OK)
        return rc;
    weir__topic_log_aside(&topic->base, reply,
                          HEAD + (reply->elements - HEAD) / 2 * 2);
    if (topic->base.user != NULL) { /* before jobs are fetched */
        weir__topic_follow(&topic->base, head.revision);
        weir__delay_watch_ticks(topic, head.time_us);
    }
    if (claimed->count == 0)
        return WEIR_OK;
    *ret_lease = read_lease(topic, reply, &head, claimed->count);
    return *ret_lease == NULL ? WEIR_ESERVER : WEIR_OK;
}

/* It was not sent: the worker comes again a second later. */
static void on_put_off(struct claim_request *claim, int code,
                       const struct redisReply *reply)
{
    const struct weir__claimed claimed = {
        .code = code == WEIR_OK ? WEIR_ESERVER : code, .next_due_us = -1};
    struct weir__delay_topic *topic = claim->topic;
    bool is_probe = claim->go == WEIR__CLAIM_PROBE;

    if (claim->go == WEIR__CLAIM_CROWDED && code == WEIR_OK)
        weir__relays_note_length(&topic->outbox, reply->integer);
    weir__mem_free(claim);
    if (is_probe) {
        weir__backlog_note_error(topic, "claim", code, reply);
        if (code == WEIR_OK)
            weir__backlog_probed(topic);
    }
    report(topic, &claimed);
}

static void on_claimed(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct claim_request *claim =
        (struct claim_request *)request; /* its first member */
    struct weir__delay_topic *topic = claim->topic;
    struct weir__claimed claimed = {.next_due_us = -1};
    struct weir__delay_lease *lease = NULL;
    size_t room = claim->room;
    int64_t time_us;

    if (claim->go != WEIR__CLAIM_GO) {
        on_put_off(claim, code, reply);
        return;
    }
    weir__mem_free(claim);
    weir__backlog_note_error(topic, "claim", code, reply);
    if (code == WEIR_OK) {
        code = read_reply(topic, reply, room, &claimed, &lease);
        if (code == WEIR_ESERVER)
            weir__topic_log_error(&topic->base, "claim", code, reply);
    }
    if (code != WEIR_OK)
        claimed = (struct weir__claimed){.next_due_us = -1};
    else if (topic->is_adopting && weir__reply_int(reply, 0, &time_us))
        lease = weir__adopted_next(topic, time_us, &claimed);
    claimed.will_wake = claimed.count < room && claimed.next_due_us != 0;
    claimed.code = code;
    if (claimed.count > 0 || claimed.is_paused)
        topic->offer_ns = 0;
    if (code == WEIR_OK && room > 0) /* else it asked for no job */
        topic->is_idle = claimed.count == 0 || claimed.will_wake;
    if (lease != NULL && topic->base.user == NULL) {
        weir__delay_lease_free(
            lease); /* it runs out, nobody is there to run it */
        return;
    }
    report(topic, &claimed);
    if (!weir__early_fetch_takes(topic, lease) && lease != NULL)
        weir__lease_fetch(lease);
}

static size_t most_nodes(const struct weir__delay_topic *topic)
{
    size_t bytes = topic->pack_bytes > 0 ? topic->pack_bytes : 256 * 1024;
    size_t most = REPLY_BYTES / bytes;

    return most < 1                      ? 1
           : most > WEIR__NODES_PER_CALL ? WEIR__NODES_PER_CALL
                                         : most;
}

/* A write that changes nothing, and is taken where others are. */
static void send_probe(struct claim_request *claim)
{
    const struct weir__store_topic *topic = &claim->topic->base;
    struct weir__buf bytes = {0};

    weir__prefix_command(&bytes, &topic->prefix, 4, "SETRANGE", "probe");
    weir__resp_str(&bytes, "0");
    weir__resp_str(&bytes, "");
    weir__place_send(topic->place, &bytes, NULL, WEIR__SEND_HERE,
                     &claim->request);
}

/* What goes out in place of a claim that has to wait, if it has to. */
static bool send_instead(struct claim_request *claim)
{
    if (claim->go == WEIR__CLAIM_PROBE)
        send_probe(claim);
    else if (claim->go == WEIR__CLAIM_CROWDED)
        weir__relays_ask_length(&claim->topic->outbox, &claim->request);
    else if (claim->go == WEIR__CLAIM_PUT_OFF)
        weir__redis_fail(&claim->request, WEIR_ESERVER);
    return claim->go != WEIR__CLAIM_GO;
}

/* Arguments that few claims have: that of an offer, and behind it limits. A
 * worker that has none says so once to each server, where others may have left
 * some. */
static size_t count_more(struct weir__delay_topic *topic)
{
    uint64_t connection = topic->base.place->server->connection;
    bool is_worker = !topic->base.claim.is_by_hand && !topic->is_adopting;

    if (topic->base.user != NULL && topic->base.is_served &&
        (topic->limits[0] != '\0' ||
         (is_worker &&
          (topic->tells_limits || topic->limits_told != connection)))) {
        topic->tells_limits = false;
        topic->limits_told = connection;
        return 4;
    }
    return topic->offer_ns != 0;
}

static void write_more(struct weir__buf *buf,
                       const struct weir__delay_topic *topic, size_t count)
{
    if (topic->offer_ns != 0)
        weir__resp_int(buf, topic->offer_ns);
    else if (count > 0)
        weir__resp_str(buf, "");
    if (count < 4)
        return;
    weir__resp_str(buf, ""); /* suspects come as they do */
    weir__resp_str(buf, topic->limits);
    weir__resp_int(buf, topic->base.revision);
}

void weir__delay_flush_claim(struct weir__delay_topic *topic)
{
    struct weir__delay *shared = topic->shared;
    struct weir__buf bytes = {0};
    struct claim_request *claim;
    size_t more;

    if (!topic->base.wants_claim || topic->base.is_following)
        return; /* what it asks for depends on options that are being read */
    claim = weir__mem_new(sizeof(*claim));
    if (claim == NULL) {
        weir__topic_mark(&topic->base); /* the next flush tries again */
        return;
    }
    if (!topic->has_recalled && topic->base.user != NULL)
        weir__delay_recall(topic);
    topic->base.wants_claim = false;
    claim->request.done = on_claimed;
    claim->topic = topic;
    if (topic->is_adopting) /* it only looks, for options that changed */
        topic->base.claim.room = 0;
    claim->room = topic->base.claim.room;
    claim->go = weir__backlog_claim(topic);
    claim->request.store = shared->store;
    weir__relays_look(&topic->outbox);
    if (send_instead(claim))
        return;
    (void)weir__offer_begin(topic);
    more = count_more(topic);
    weir__resp_eval(&bytes, &weir__script_delay_claim, 9, 7 + more);
    weir__prefix_keys(&bytes, &topic->base.prefix,
                      "wait run lease ids meta idle held due absent");
    weir__resp_int(&bytes, (int64_t)topic->base.claim.room);
    weir__resp_int(&bytes, topic->base.claim.lease_ms);
    weir__resp_int(&bytes, (int64_t)most_nodes(topic));
    weir__resp_str(&bytes,
                   claim->room == 0 ? "" : topic->base.place->server->worker);
    weir__resp_int(&bytes, topic->is_idle + 2 * topic->base.claim.has_jobs +
                               4 * topic->base.claim.is_slow);
    weir__resp_str(&bytes, "delay");
    weir__claim_write_server(&bytes, &topic->base);
    write_more(&bytes, topic, more);
    weir__place_send(topic->base.place, &bytes, &weir__script_delay_claim,
                     WEIR__SEND_HERE, &claim->request);
    weir__early_fetch_send(topic);
}
