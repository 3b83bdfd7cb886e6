/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/bounded/private.h"
#include "core/mem.h"
#include "core/text.h"

/* Claiming: the script takes from groups that it offered before, and offers the
 * next ones. Where a claim got offers only, the next one goes at once. */

enum {
    HEAD_KEYS = 8,
    HEAD_ARGS = 9,
    TIME = 0,
    NEXT,
    STATE,
    ADDED,
    OFFERS,
    BATCHES,
    DROPS,
    LISTS_END,
    TRIES_MAX = 4,
    FEW_EVENTS = 16, /* at a turn: less than that weighs what the turn costs */
    REST_MIN_US = 1300, /* more than a claim needs of a server of its own */
    REST_MAX_US = 10000
};

#define HELD_NS INT64_C(45000000) /* that the server keeps offers for us */

struct weir__bounded_claim {
    struct weir__request request;
    struct weir__bounded_topic *topic;
    size_t room; /* 0: a look */
    bool has_end;
    int64_t sent_ns;
    int64_t revision;
    int64_t time_us;
    struct weir__claimed claimed;
    struct weir__run *first, **end;
};

/* --- leases --------------------------------------------------------------- */

static struct weir__bounded_lease *lease_new(struct weir__bounded_topic *topic,
                                             size_t count,
                                             struct weir_slice group)
{
    struct weir__bounded_lease *lease = weir__mem_new(
        sizeof(*lease) + group.len +
        count * (sizeof(lease->events[0]) + sizeof(lease->runs[0])));

    if (lease == NULL)
        return NULL;
    lease->topic = topic;
    lease->runs = (struct weir__run *)(void *)(lease->events + count);
    lease->group.ptr = (uint8_t *)(lease->runs + count);
    lease->group.len = group.len;
    memcpy(lease->runs + count, group.ptr, group.len);
    return lease;
}

void weir__bounded_lease_free(struct weir__bounded_lease *lease)
{
    weir__lease_end(&lease->base);
    for (size_t i = 0; i < lease->count; i++)
        if (lease->runs[i].magic == WEIR__RUN_MAGIC)
            weir__run_fini(&lease->runs[i]);
    weir__buf_fini(&lease->bytes);
    weir__buf_fini(&lease->rewritten);
    weir__mem_free(lease);
}

/* --- reading the reply -------------------------------------------------- */

static const struct redisReply *list_at(const struct redisReply *reply,
                                        size_t index)
{
    if (reply->type != REDIS_REPLY_ARRAY || index >= (size_t)reply->elements ||
        reply->element[index]->type != REDIS_REPLY_ARRAY)
        return NULL;
    return reply->element[index];
}

/* The events' bytes first, made ids behind them: then nothing moves. */
static bool copy_events(struct weir__bounded_lease *lease,
                        const struct redisReply *events)
{
    size_t count = (size_t)events->elements, len = 0;
    struct weir_slice event;

    for (size_t i = 0; i < count; i++) {
        if (!weir__reply_str(events, i, &event))
            return false;
        lease->events[i].at = len;
        lease->events[i].len = event.len;
        len += event.len;
    }
    if (weir__buf_reserve(&lease->bytes,
                          len + count * (WEIR__MADE_ID_LEN + 1)) == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        (void)weir__reply_str(events, i, &event);
        weir__buf_append(&lease->bytes, event.ptr, event.len);
    }
    return true;
}

static void fill_run(struct weir__bounded_lease *lease, size_t index,
                     int64_t time_us, int64_t now_ns)
{
    struct weir__run *run = &lease->runs[index];
    struct weir_slice event = {lease->bytes.ptr + lease->events[index].at,
                               lease->events[index].len};
    char *id = (char *)lease->bytes.ptr + lease->bytes.len +
               index * (WEIR__MADE_ID_LEN + 1);
    bool is_group = weir__group_is_sound(lease->group);

    run->job.host = &weir__host;
    run->magic = WEIR__RUN_MAGIC;
    run->batch = lease;
    run->node = (uint32_t)index;
    run->group = is_group ? lease->group : weir__slice_str("unreadable");
    run->token = lease->base.token;
    run->claimed_ns = now_ns;
    run->due_ms = time_us / 1000; /* where the event does not say */
    run->is_malformed = weir__event_read(event, run, id) < 0 || !is_group;
    if (run->is_malformed)
        weir__topic_log_loss(&lease->topic->base, WEIR__LOSS_MALFORMED, 1,
                             run->id);
    run->late_us = time_us - run->due_ms * 1000;
    if (run->late_us < 0)
        run->late_us = 0;
    run->record.reason = (struct weir_slice){0};
    run->record.error = (struct weir_slice){0}; /* of an earlier run */
    run->record.counters.crashes += lease->ended;
    run->is_suspect = lease->ended > 0;
    run->blamed = lease->ended > 0 ? lease->ended - 1 : 0;
    if (index + 1 < lease->count)
        run->next = run + 1;
}

/* NULL: out of memory, or not an answer of the script. */
static struct weir__bounded_lease *
read_lease(const struct weir__bounded_claim *claim,
           const struct redisReply *batch)
{
    struct weir__bounded_topic *topic = claim->topic;
    const struct redisReply *events = list_at(batch, 3);
    int64_t now_ns = weir__redis_now_ns(topic->base.store), ended;
    struct weir_slice group, token;
    struct weir__bounded_lease *lease;

    if (events == NULL || !weir__reply_str(batch, 0, &group) ||
        !weir__reply_str(batch, 1, &token) ||
        !weir__reply_int(batch, 2, &ended) || ended < 0 || ended > UINT8_MAX ||
        events->elements == 0 || events->elements > WEIR__BOUND_EVENTS)
        return NULL;
    lease = lease_new(topic, (size_t)events->elements, group);
    if (lease == NULL)
        return NULL;
    lease->ended = (uint32_t)ended;
    lease->has_end = claim->has_end;
    weir__lease_begin(&lease->base, &topic->base,
                      strtoull((const char *)token.ptr, NULL, 10));
    weir__claim_note_token(&topic->base, lease->base.token);
    if (!copy_events(lease, events)) {
        weir__bounded_lease_free(lease);
        return NULL;
    }
    lease->count = (size_t)events->elements;
    lease->out = lease->count;
    for (size_t i = 0; i < lease->count; i++)
        fill_run(lease, i, claim->time_us, now_ns);
    return lease;
}

static void read_leases(struct weir__bounded_claim *claim,
                        const struct redisReply *batches)
{
    for (size_t i = 0; i < (size_t)batches->elements; i++) {
        const struct redisReply *batch = list_at(batches, i);
        struct weir__bounded_lease *lease =
            batch == NULL ? NULL : read_lease(claim, batch);

        if (lease == NULL)
            continue; /* its lease runs out */
        *claim->end = lease->runs;
        claim->end = &lease->runs[lease->count - 1].next;
        claim->claimed.count += lease->count;
    }
}

static void note_batches(struct weir__bounded_topic *topic, size_t events,
                         size_t batches)
{
    if (batches == 0)
        return;
    events = events / batches + 1;
    if (topic->per_group == 0)
        topic->per_group = events;
    topic->per_group = (3 * topic->per_group + events + 3) / 4;
}

/* A group's turn costs the server the same for one event as for many. Where
 * events are added at least as fast as they are claimed, and the server is slow
 * to answer, claims at once would find ever fewer of each group, and it would
 * do little else: so it is left alone as long as it took. */
static int64_t rest_us(const struct weir__bounded_claim *claim, size_t turns,
                       int64_t added)
{
    struct weir__bounded_topic *topic = claim->topic;
    size_t count = claim->claimed.count;
    int64_t now_ns = weir__redis_now_ns(topic->base.store);
    int64_t took_us = (now_ns - claim->sent_ns) / 1000;

    if (count == claim->room || count >= FEW_EVENTS * turns ||
        added - topic->added < (int64_t)count || took_us < REST_MIN_US)
        return 0;
    return took_us > REST_MAX_US ? REST_MAX_US : took_us;
}

static void read_offers(struct weir__bounded_topic *topic,
                        const struct redisReply *offers)
{
    struct weir_slice group;

    weir__buf_reset(&topic->offers);
    topic->offer_count = 0;
    topic->offered_ns = weir__redis_now_ns(topic->base.store);
    for (size_t i = 0; i < (size_t)offers->elements; i++) {
        if (!weir__reply_str(offers, i, &group))
            continue;
        weir__buf_append(&topic->offers, &group.len, sizeof(group.len));
        weir__buf_append(&topic->offers, group.ptr, group.len);
        topic->offer_count++;
    }
    if (topic->offers.failed) /* they are offered again */
        topic->offer_count = 0;
}

static void report_drops(const struct weir__bounded_topic *topic,
                         const struct redisReply *drops)
{
    for (size_t i = 0; i < (size_t)drops->elements; i++) {
        const struct redisReply *drop = list_at(drops, i);
        struct weir_slice group, reason;
        int64_t count;

        if (drop != NULL && weir__reply_str(drop, 0, &group) &&
            group.len <= WEIR_MAX_ID && weir__reply_str(drop, 1, &reason) &&
            weir__reply_int(drop, 2, &count) && count > 0)
            weir__bounded_report_drop(
                topic, group,
                weir__slice_equal(reason, weir__slice_str("ttl"))
                    ? WEIR_DROP_TTL
                    : WEIR_DROP_OVERFLOW,
                (uint64_t)count);
    }
}

/* False: not an answer of the script. */
static bool read_lists(struct weir__bounded_claim *claim,
                       const struct redisReply *reply)
{
    const struct redisReply *offers = list_at(reply, OFFERS);
    const struct redisReply *batches = list_at(reply, BATCHES);
    const struct redisReply *drops = list_at(reply, DROPS);
    size_t turns;
    int64_t added;

    if (!weir__reply_int(reply, ADDED, &added) || offers == NULL ||
        batches == NULL || drops == NULL)
        return false;
    read_leases(claim, batches);
    turns = (size_t)batches->elements;
    note_batches(claim->topic, claim->claimed.count, turns);
    if (turns > 0)
        claim->claimed.rest_us = rest_us(claim, turns, added);
    claim->topic->added = added;
    read_offers(claim->topic, offers);
    report_drops(claim->topic, drops);
    return true;
}

static int read_reply(struct weir__bounded_claim *claim,
                      const struct redisReply *reply)
{
    int64_t state;

    if (!weir__reply_int(reply, TIME, &claim->time_us))
        return WEIR_ESERVER;
    if (claim->time_us < 0)
        return WEIR_EKIND;
    if (!weir__reply_time(reply, TIME, &claim->time_us) ||
        !weir__reply_int(reply, NEXT, &claim->claimed.next_due_us) ||
        !weir__reply_int(reply, STATE, &state))
        return WEIR_ESERVER;
    claim->claimed.is_paused = (state & 1) != 0;
    claim->revision = state >> 1;
    if (!read_lists(claim, reply))
        return WEIR_ESERVER;
    weir__topic_log_aside(&claim->topic->base, reply, LISTS_END);
    return weir__claimed_check(&claim->claimed, claim->room);
}

/* --- delivering --------------------------------------------------------- */

/* Nobody is there to run them: their leases run out. */
static void drop_leases(struct weir__bounded_claim *claim)
{
    while (claim->first != NULL) {
        struct weir__bounded_lease *lease = claim->first->batch;

        claim->first = lease->runs[lease->count - 1].next;
        weir__bounded_lease_free(lease);
    }
}

/* Ends the claim. */
static void deliver(struct weir__bounded_claim *claim)
{
    struct weir__bounded_topic *topic = claim->topic;
    const struct weir__store_events *events = &topic->base.store->events;
    struct weir__claimed claimed = claim->claimed;
    struct weir__run *first = claim->first;

    if (topic->base.user == NULL) {
        drop_leases(claim);
        weir__mem_free(claim);
        return;
    }
    weir__mem_free(claim);
    events->claimed(topic->base.user, &claimed);
    if (first != NULL)
        events->arrived(topic->base.user, first, claimed.count, 0);
}

void weir__bounded_followed(struct weir__store_topic *base, int code)
{
    struct weir__bounded_topic *topic = weir__bounded_topic_of(base);
    struct weir__bounded_claim *claim = topic->claimed;

    (void)code; /* the next claim has the revision again */
    topic->claimed = NULL;
    if (claim != NULL)
        deliver(claim);
}

static bool tries_again(struct weir__bounded_claim *claim)
{
    struct weir__bounded_topic *topic = claim->topic;

    if (claim->room == 0 || claim->claimed.count > 0 ||
        topic->offer_count == 0 || topic->tries >= TRIES_MAX ||
        topic->base.user == NULL || claim->revision != topic->base.revision ||
        topic->base.store->is_closed)
        return false;
    topic->tries++;
    topic->base.wants_claim = true;
    weir__mem_free(claim);
    weir__bounded_flush_claim(topic);
    weir__place_flush(topic->base.place);
    return true;
}

static void on_claimed(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct weir__bounded_claim *claim =
        (struct weir__bounded_claim *)request; /* its first member */
    struct weir__bounded_topic *topic = claim->topic;

    weir__topic_log_error(&topic->base, "claim", code, reply);
    claim->claimed.next_due_us = -1;
    claim->revision = topic->base.revision;
    if (code == WEIR_OK) {
        code = read_reply(claim, reply);
        if (code == WEIR_ESERVER)
            weir__topic_log_error(&topic->base, "claim", code, reply);
    }
    if (code != WEIR_OK) {
        drop_leases(claim);
        claim->claimed = (struct weir__claimed){.next_due_us = -1};
    }
    claim->claimed.code = code;
    if (code == WEIR_OK && claim->room > 0)
        topic->is_idle = claim->claimed.count == 0 && topic->offer_count == 0;
    if (code == WEIR_OK && tries_again(claim))
        return;
    if (topic->offer_count > 0 && claim->claimed.count == 0)
        claim->claimed.next_due_us = 0;
    if (code != WEIR_OK || claim->revision == topic->base.revision ||
        topic->base.user == NULL) {
        deliver(claim);
        return;
    }
    /* What was claimed waits for the options that were changed before it. */
    topic->claimed = claim;
    weir__topic_follow(&topic->base, claim->revision);
}

/* --- asking ------------------------------------------------------------- */

static size_t offers_wanted(const struct weir__bounded_topic *topic)
{
    size_t per_group = topic->per_group == 0 ? 1 : topic->per_group;
    size_t count = topic->base.claim.room / per_group + 2;

    if (topic->base.claim.room == 0)
        return 0;
    return count > WEIR__BOUND_OFFERS ? WEIR__BOUND_OFFERS : count;
}

static void write_bounds(struct weir__buf *buf,
                         const struct weir__store_topic *topic)
{
    const struct weir__options *options = topic->options;
    char text[sizeof(options->hot) + 100];

    if (!topic->is_served) {
        weir__resp_str(buf, "");
        return;
    }
    (void)snprintf(
        text, sizeof(text),
        "%" PRIu32 " %" PRIu32 " %" PRId64 " %" PRIu32 " %" PRId64 " %s",
        options->length, options->overflow, options->linger, options->batch,
        options->group_ttl > 0 ? options->group_ttl : 0,
        options->hot); /* it fits */
    weir__resp_str(buf, text);
}

static struct weir_slice next_offer(const uint8_t **at)
{
    struct weir_slice group;

    memcpy(&group.len, *at, sizeof(group.len));
    group.ptr = *at + sizeof(group.len);
    *at = group.ptr + group.len;
    return group;
}

/* One that is registered with other patterns would be woken for these. */
void weir__bounded_serve(struct weir__store_topic *base)
{
    struct weir__bounded_topic *topic = weir__bounded_topic_of(base);
    const char *groups = base->options->groups;

    if (strcmp(topic->groups, groups) == 0)
        return;
    weir__topic_leave_idle(base);
    topic->is_idle = false;
    topic->has_other_groups = base->user != NULL;
    memcpy(topic->groups, groups, sizeof(topic->groups));
    base->sleeps_for = topic->groups;
    if (base->user != NULL)
        base->store->events.wake(base->user);
}

static void write_claim(struct weir__buf *buf,
                        const struct weir__bounded_topic *topic, bool is_look)
{
    bool is_fresh =
        topic->offer_count > 0 &&
        weir__redis_now_ns(topic->base.store) - topic->offered_ns < HELD_NS;
    size_t count = is_look || !is_fresh ? 0 : topic->offer_count;
    const uint8_t *at = topic->offers.ptr;

    weir__resp_eval(buf, &weir__script_bounded_claim, HEAD_KEYS + 2 * count + 1,
                    HEAD_ARGS + count);
    weir__prefix_keys(buf, &topic->base.prefix,
                      "rot hot lease out meta idle options "
                      "ttl");
    for (size_t i = 0; i < count; i++) {
        struct weir_slice group = next_offer(&at);

        weir__bounded_group_key(buf, topic, 'g', group);
        weir__bounded_group_key(buf, topic, 'l', group);
    }
    weir__prefix_key(buf, &topic->base.prefix, "absent");
    weir__resp_str(buf, topic->base.name);
    weir__resp_str(buf, "bounded");
    weir__resp_int(buf, (int64_t)topic->base.claim.room);
    weir__resp_int(buf, topic->base.options->lease == WEIR__OPTION_NONE
                            ? 0
                            : topic->base.claim.lease_ms);
    if (is_look)
        weir__resp_str(buf, "");
    else
        weir__topic_write_sleeper(buf, &topic->base);
    weir__resp_int(buf, topic->is_idle + 2 * topic->base.claim.has_jobs +
                            4 * topic->has_other_groups +
                            8 * (topic->groups[0] != '\0' && !is_look));
    weir__resp_int(buf, (int64_t)offers_wanted(topic));
    write_bounds(buf, &topic->base);
    weir__claim_write_server(buf, &topic->base);
    at = topic->offers.ptr;
    for (size_t i = 0; i < count; i++)
        weir__resp_bytes(buf, next_offer(&at));
}

void weir__bounded_flush_claim(struct weir__bounded_topic *topic)
{
    struct weir__buf bytes = {0};
    struct weir__bounded_claim *claim;

    if (!topic->base.wants_claim)
        return;
    claim = weir__mem_new(sizeof(*claim));
    if (claim == NULL) {
        weir__topic_mark(&topic->base); /* the next flush tries again */
        return;
    }
    topic->base.wants_claim = false;
    claim->request.done = on_claimed;
    claim->topic = topic;
    claim->end = &claim->first;
    claim->room = topic->base.claim.room;
    claim->sent_ns = weir__redis_now_ns(topic->base.store);
    claim->has_end = topic->base.options->lease != WEIR__OPTION_NONE;
    write_claim(&bytes, topic, claim->room == 0);
    if (claim->room > 0) {
        topic->offer_count = 0; /* the reply brings others */
        topic->has_other_groups = false;
    }
    weir__place_send(topic->base.place, &bytes, &weir__script_bounded_claim,
                     WEIR__SEND_HERE |
                         weir__send_bodies(topic->base.claim.room),
                     &claim->request);
}
