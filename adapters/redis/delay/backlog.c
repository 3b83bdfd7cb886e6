/* SPDX-License-Identifier: MIT */
#include "adapters/redis/delay/backlog.h"

#include "adapters/redis/conn/error.h"
#include "core/assert.h"
#include "core/random.h"

enum {
    FIRST_MS = 50,
    MOST_MS = 500,
    DENIED_MS = 5000, /* somebody has to change something; up to twice */
    VERDICT_COST = 1024,
    /* Bytes that wait: with those of adds (delay/add.c) the connection takes
     * all. */
    QUEUED_MAX = 24 * 1024 * 1024,
    COST_MAX = 4 * 1024 * 1024 /* of a topic; beyond it no claims */
};

#define MS_NS INT64_C(1000000)

/* At random from `ms` to twice as much. */
static int64_t jitter_ms(struct weir__delay *shared, int64_t ms)
{
    return ms +
           (int64_t)(weir__random_next(&shared->random) % (uint64_t)(ms + 1));
}

/* --- errors -------------------------------------------------------------- */

static enum weir__error_class class_of(const struct redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR ? weir__error_classify(reply->str)
                                            : WEIR__ERROR_OTHER;
}

/* A full server takes claims and renewals: these need no room. */
void weir__backlog_note_error(struct weir__delay_topic *topic, const char *what,
                              int code, const struct redisReply *reply)
{
    struct weir__delay *shared = topic->shared;
    enum weir__error_class class = WEIR__ERROR_OTHER;

    if (code == WEIR_ESERVER && reply != NULL)
        class = class_of(reply);
    weir__topic_log_error(&topic->base, what, code, reply);
    if (class == WEIR__ERROR_REFUSED)
        topic->is_refused = true;
    else if (class == WEIR__ERROR_DENIED)
        topic->base.claims_from_ns = weir__redis_now_ns(shared->store) +
                                     jitter_ms(shared, DENIED_MS) * MS_NS;
}

/* --- claims -------------------------------------------------------------- */

enum weir__backlog_claim
weir__backlog_claim(const struct weir__delay_topic *topic)
{
    if (topic->backlog_cost > COST_MAX)
        return WEIR__CLAIM_PUT_OFF;
    if (weir__relays_is_full(&topic->outbox))
        return WEIR__CLAIM_CROWDED;
    return topic->is_refused ? WEIR__CLAIM_PROBE : WEIR__CLAIM_GO;
}

void weir__backlog_probed(struct weir__delay_topic *topic)
{
    topic->is_refused = false;
    weir__topic_calm(&topic->base);
}

/* --- holding ------------------------------------------------------------- */

static void arm(struct weir__delay_topic *topic, int64_t ms)
{
    struct ev_loop *loop = topic->base.store->options.loop;

    if (ev_is_active(&topic->backlog_timer))
        return;
    ev_now_update(loop); /* it may be as old as the turn */
    ev_timer_set(&topic->backlog_timer, (double)ms / 1000., 0.);
    ev_timer_start(loop, &topic->backlog_timer);
}

static int64_t next_ms(struct weir__delay_topic *topic)
{
    topic->backlog_ms =
        topic->backlog_ms == 0 ? FIRST_MS : topic->backlog_ms * 2;
    if (topic->backlog_ms > MOST_MS / 2)
        topic->backlog_ms = MOST_MS / 2;
    return jitter_ms(topic->shared, topic->backlog_ms);
}

static void append(struct weir__settle *settle, int64_t wait_ms)
{
    struct weir__delay_topic *topic = settle->topic;

    if (!settle->is_in_backlog) {
        settle->cost = (settle->verdicts + settle->backs) * VERDICT_COST;
        for (size_t i = 0; i <= settle->packs; i++)
            settle->cost += settle->copies[i].len;
        topic->backlog_cost += settle->cost;
        weir__keeper_shut(topic->base.store->keeper);
        for (size_t i = 0; i < settle->lease_count; i++)
            settle->leases[i]->in_backlog++;
        weir__keeper_reopen(topic->base.store->keeper);
    }
    settle->is_in_backlog = true;
    weir__settle_leave_out(settle);
    settle->next = NULL;
    *topic->backlog_end = settle;
    topic->backlog_end = &settle->next;
    arm(topic, wait_ms);
}

bool weir__backlog_is_crowded(const struct weir__delay_topic *topic)
{
    return !topic->base.store->is_closed &&
           weir__place_queued(topic->base.place) > QUEUED_MAX;
}

void weir__backlog_add(struct weir__settle *settle)
{
    append(settle, FIRST_MS);
}

static const char *why_of(enum weir__error_class class)
{
    return class == WEIR__ERROR_REFUSED  ? "takes no writes"
           : class == WEIR__ERROR_DENIED ? "denies us a right"
                                         : "is full";
}

bool weir__backlog_push(struct weir__settle *settle,
                        const struct redisReply *reply)
{
    struct weir__delay_topic *topic = settle->topic;
    enum weir__error_class class = class_of(reply);
    bool is_error = reply->type == REDIS_REPLY_ERROR;

    if ((is_error && class != WEIR__ERROR_REFUSED &&
         class != WEIR__ERROR_FULL && class != WEIR__ERROR_DENIED) ||
        (!is_error && settle->packs == 0) || topic->base.user == NULL ||
        settle->verdicts + settle->backs == 0 || topic->base.store->is_closed)
        return false;
    if (settle->packs == 0)
        weir__conn_take_back(topic->base.place->server->commands,
                             &settle->copies[0]);
    topic->backlog_why = why_of(class);
    append(settle, class == WEIR__ERROR_DENIED
                       ? jitter_ms(topic->shared, DENIED_MS)
                       : next_ms(topic));
    return true;
}

static struct weir__settle *take_first(struct weir__delay_topic *topic)
{
    struct weir__settle *settle = topic->backlog;

    if (settle != NULL)
        topic->backlog = settle->next;
    if (topic->backlog == NULL)
        topic->backlog_end = &topic->backlog;
    return settle;
}

void weir__backlog_release(struct weir__delay_topic *topic)
{
    struct weir__settle *settle;

    topic->backlog_ms = 0;
    while (!weir__backlog_is_crowded(topic) &&
           (settle = take_first(topic)) != NULL)
        weir__settle_send(settle);
    if (topic->backlog != NULL)
        arm(topic, FIRST_MS);
    if (!topic->base.store->is_closed)
        weir__place_flush(topic->base.place);
}

static void on_backlog_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__delay_topic *topic = timer->data;

    (void)loop; /* the store's own */
    (void)events;
    if (topic->backlog == NULL)
        return;
    if (weir__backlog_is_crowded(topic)) {
        arm(topic, next_ms(topic));
        return;
    }
    (void)weir__leases_renew(&topic->base, topic->base.claim.lease_ms);
    weir__settle_send(take_first(topic));
    weir__place_flush(topic->base.place);
}

void weir__backlog_init(struct weir__delay_topic *topic)
{
    topic->backlog_end = &topic->backlog;
    ev_timer_init(&topic->backlog_timer, on_backlog_timer, 0., 0.);
    topic->backlog_timer.data = topic;
}

void weir__backlog_fini(struct weir__delay_topic *topic)
{
    struct weir__settle *settle;
    size_t verdicts = 0;

    ev_timer_stop(topic->base.store->options.loop, &topic->backlog_timer);
    while ((settle = take_first(topic)) != NULL) {
        verdicts += settle->verdicts - settle->told;
        weir__settle_free(settle);
    }
    if (verdicts > 0 && topic->backlog_why != NULL)
        weir__log(topic->base.store->options.log, WEIR_LEVEL_ERROR,
                  "redis: %s: %zu verdicts were not taken, as the server %s; "
                  "these jobs run again when their leases have ended",
                  topic->base.name, verdicts, topic->backlog_why);
}
