/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/delay/backlog.h"
#include "adapters/redis/store/cluster.h"
#include "core/text.h"

/* Jobs that come without a claim. The message has what the answer to a claim
 * has, and the pack; from there on a job is like any other. */

static const char withdrawn[] = "withdrawn";

struct handed {
    struct weir_slice node, server, pack;
    int64_t token, due_ms, time_us;
    int64_t age_us; /* of the offer, by the server's clock */
    int64_t offer_ns;
    int64_t revision; /* of the stored options */
};

/* --- offers --------------------------------------------------------------- */

int64_t weir__offer_begin(struct weir__delay_topic *topic)
{
    const struct weir__store_topic *base = &topic->base;

    topic->offer_ns = 0;
    if (base->claim.takes_jobs && base->claim.room > 0 && !topic->is_stopped &&
        topic->limits[0] == '\0' && !weir__cluster_is_one(base->store))
        topic->offer_ns = weir__redis_now_ns(base->store);
    return topic->offer_ns;
}

/* A wake-up that named a pack is followed at once. */
int64_t weir__offer_renew(struct weir__delay_topic *topic)
{
    if (!topic->base.wants_claim || topic->has_early ||
        weir__backlog_is_crowded(topic) ||
        weir__backlog_claim(topic) != WEIR__CLAIM_GO)
        return 0;
    weir__relays_look(&topic->outbox);
    return weir__offer_begin(topic);
}

/* Of a server that refused the call it is asked by a claim as well. */
void weir__offer_answered(struct weir__delay_topic *topic, int code,
                          const struct redisReply *reply)
{
    struct weir__claimed claimed = {.next_due_us = -1};

    claimed.code = code == WEIR_ESERVER ? WEIR_OK : code;
    if (claimed.code == WEIR_OK &&
        (!weir__reply_int(reply, 1, &claimed.next_due_us) ||
         claimed.next_due_us < -1))
        claimed.next_due_us = 0;
    claimed.will_wake = claimed.next_due_us != 0;
    if (claimed.code == WEIR_OK)
        topic->is_idle = claimed.will_wake;
    if (!claimed.will_wake)
        topic->offer_ns = 0;
    if (topic->base.user != NULL)
        topic->base.store->events.claimed(topic->base.user, &claimed);
}

/* --- the message ---------------------------------------------------------- */

/* Up to the next blank, which is skipped. */
static struct weir_slice next_word(struct weir_slice *rest)
{
    const uint8_t *blank =
        rest->len == 0 ? NULL : memchr(rest->ptr, ' ', rest->len);
    size_t len = blank == NULL ? rest->len : (size_t)(blank - rest->ptr);
    struct weir_slice word = {rest->ptr, len};

    if (blank != NULL)
        len++;
    *rest = weir__slice_of(rest->ptr + len, rest->len - len);
    return word;
}

static int64_t next_number(struct weir_slice *rest)
{
    return weir__digits_read(next_word(rest));
}

static struct handed read_handed(struct weir_slice what)
{
    struct handed handed;

    handed.node = next_word(&what);
    handed.token = next_number(&what);
    handed.due_ms = next_number(&what);
    handed.time_us = next_number(&what);
    handed.age_us = next_number(&what);
    handed.offer_ns = next_number(&what);
    handed.revision = next_number(&what);
    handed.server = next_word(&what);
    handed.pack = what;
    return handed;
}

/* NULL: not a message of the script, or no memory; its lease runs out. */
static struct weir__delay_lease *make_lease(struct weir__delay_topic *topic,
                                            const struct handed *handed)
{
    struct weir__delay_lease *lease;
    struct weir__claimed_node *node;
    unsigned lo, hi;

    if (weir__node_read(handed->node, &lo, &hi) != WEIR_OK || lo != hi ||
        handed->token <= 0 || handed->pack.len == 0 ||
        handed->due_ms > WEIR__DUE_MAX_MS)
        return NULL;
    lease = weir__delay_lease_new(topic, 1, 0);
    if (lease == NULL)
        return NULL;
    node = &lease->nodes[0];
    memcpy(node->name, handed->node.ptr, sizeof(node->name));
    node->lo = lo;
    node->size = 1;
    node->due_ms = handed->due_ms;
    node->lease = lease;
    lease->jobs = 1;
    lease->is_handed = true;
    weir__delay_lease_claimed(lease, handed->time_us, (uint64_t)handed->token);
    return lease;
}

/* Since when it may have been leased at the earliest, monotonic: the call was
 * sent before the server's clock showed the time of the offer. */
static int64_t since_ns(const struct weir__delay_topic *topic,
                        const struct handed *handed)
{
    int64_t now_ns = weir__redis_now_ns(topic->base.store);
    int64_t at_ns = handed->offer_ns + handed->age_us * 1000;

    return at_ns < now_ns ? at_ns : now_ns;
}

/* It is for the last offer of this process to this server, whose other half of
 * a lease is left to begin with. */
static bool is_wanted(const struct weir__delay_topic *topic,
                      const struct handed *handed)
{
    const struct weir__store_topic *base = &topic->base;
    const char *identity = weir__conn_identity(base->place->server->commands);
    int64_t age_ns = weir__redis_now_ns(base->store) - since_ns(topic, handed);

    return base->user != NULL && topic->offer_ns != 0 &&
           handed->offer_ns == topic->offer_ns &&
           weir__slice_equal(handed->server, weir__slice_str(identity)) &&
           age_ns <= base->claim.lease_ms * INT64_C(500000);
}

/* Options that changed are read before the job comes, as after a claim. */
static void take(struct weir__delay_topic *topic, const struct handed *handed,
                 struct weir__delay_lease *lease)
{
    struct redisReply pack = {.type = REDIS_REPLY_STRING,
                              .str = (char *)(uintptr_t)handed->pack.ptr,
                              .len = handed->pack.len};
    struct redisReply *packs[] = {&pack};
    const struct redisReply reply = {
        .type = REDIS_REPLY_ARRAY, .elements = 1, .element = packs};

    topic->offer_ns = 0;
    topic->is_idle = false;
    weir__topic_follow(&topic->base, handed->revision);
    topic->base.store->events.handed(topic->base.user, since_ns(topic, handed));
    if (topic->base.is_following)
        weir__lease_fetch(lease);
    else
        weir__lease_fetched(&lease->request, WEIR_OK, &reply);
}

void weir__delay_told(struct weir__store_topic *base, struct weir_slice what)
{
    struct weir__delay_topic *topic = weir__delay_topic_of(base);
    struct handed handed = read_handed(what);
    struct weir__delay_lease *lease;

    if (what.len == 0 || weir__slice_equal(what, weir__slice_str(withdrawn))) {
        topic->is_withdrawing = false;
        return;
    }
    lease = base->store->is_closed ? NULL : make_lease(topic, &handed);
    if (lease == NULL)
        return;
    if (is_wanted(topic, &handed))
        take(topic, &handed, lease);
    else
        weir__delay_return(&lease->nodes[0]);
}

/* --- stopping ------------------------------------------------------------- */

static void on_published(struct weir__request *request, int code,
                         const struct redisReply *reply)
{
    struct weir__delay_topic *topic =
        ((struct weir__withdrawal *)request)->topic; /* its first member */

    if (code != WEIR_OK || reply->integer == 0) /* no client heard it */
        topic->is_withdrawing = false;
}

/* A job that was handed over before comes ahead of what is published now. An
 * offer of somebody else that is withdrawn with this one costs a wake-up. */
void weir__delay_stop(struct weir__store_topic *base)
{
    struct weir__delay_topic *topic = weir__delay_topic_of(base);
    struct weir__withdrawal *withdrawal = &topic->withdrawal;
    char channel[WEIR__REDIS_PREFIX_CAP + WEIR__KEY_MAX + 32];
    struct weir__buf bytes = {0}, text = {0};

    if (topic->offer_ns == 0 || topic->is_stopped) {
        topic->is_stopped = true;
        return;
    }
    topic->is_stopped = topic->is_withdrawing = true;
    weir__prefix_command(&bytes, &base->prefix, 3, "HDEL", "meta");
    weir__resp_str(&bytes, "offer");
    weir__place_send(base->place, &bytes, NULL, WEIR__SEND_ONCE, NULL);
    withdrawal->request.store = base->store;
    withdrawal->request.done = on_published;
    withdrawal->topic = topic;
    weir__wake_channel(channel, sizeof(channel), base->place->server);
    weir__buf_append(&text, base->name, strlen(base->name));
    weir__buf_append(&text, " ", 1);
    weir__buf_append(&text, withdrawn, strlen(withdrawn));
    weir__resp_command(&bytes, 3);
    weir__resp_str(&bytes, "PUBLISH");
    weir__resp_str(&bytes, channel);
    weir__resp_bytes(&bytes, weir__buf_slice(&text));
    bytes.failed = bytes.failed || text.failed;
    weir__buf_fini(&text);
    weir__place_send(base->place, &bytes, NULL, WEIR__SEND_ONCE,
                     &withdrawal->request);
}

/* Served again. */
void weir__delay_listen(struct weir__store_topic *base)
{
    if (base->user != NULL)
        weir__delay_topic_of(base)->is_stopped = false;
}

size_t weir__delay_unsettled(const struct weir__store_topic *base)
{
    const struct weir__delay_topic *topic =
        (const struct weir__delay_topic *)base; /* its first member */
    const struct weir__conn *wakes = base->place->server->wakes;

    return base->unsettled + (topic->is_withdrawing && wakes != NULL &&
                              weir__conn_is_ready(wakes));
}
