/* SPDX-License-Identifier: MIT */
#include "adapters/redis/classic/private.h"
#include "core/assert.h"
#include "core/random.h"

struct weir__classic_topic *
weir__classic_topic_of(struct weir__store_topic *topic)
{
    WEIR_ASSERT(topic->kind == &weir__sync_kind ||
                topic->kind == &weir__concurrent_kind);
    return (struct weir__classic_topic *)topic; /* its first member */
}

/* --- claims --------------------------------------------------------------- */

/* The first `room` messages that are due, as a list of runs. */
static struct weir__run *hand_out(struct weir__classic_topic *topic,
                                  size_t room, size_t *ret_count)
{
    struct weir__run *first = NULL, **end = &first;

    *ret_count = 0;
    while (*ret_count < room && topic->ready != NULL) {
        struct weir__message *message = topic->ready;

        topic->ready = message->next;
        topic->ready_count--;
        weir__consumer_state(message->consumer, WEIR__CONSUMER_OUT);
        message->run.next = NULL;
        *end = &message->run;
        end = &message->run.next;
        (*ret_count)++;
    }
    if (topic->ready == NULL)
        topic->ready_end = &topic->ready;
    return first;
}

/* A claim waits while a message may still come of what consumers do. */
static bool may_wait(const struct weir__classic_topic *topic)
{
    if (topic->claim_code != WEIR_OK || topic->is_stopping)
        return false;
    if (!topic->is_serving)
        return true;
    return !topic->is_paused && topic->base.claim.room > 0 &&
           topic->ready == NULL && topic->busy > 0;
}

void weir__classic_answer(struct weir__classic_topic *topic)
{
    const struct weir__store_events *events = &topic->base.store->events;
    struct weir__claimed claimed = {
        .code = topic->claim_code,
        .next_due_us = -1,
        .is_paused = topic->is_paused,
    };
    struct weir__run *first = NULL;

    if (!topic->base.wants_claim || may_wait(topic) || topic->base.user == NULL)
        return;
    topic->base.wants_claim = false;
    topic->claim_code = topic->is_foreign ? WEIR_EKIND : WEIR_OK;
    if (claimed.code == WEIR_OK && !topic->is_paused && !topic->is_stopping)
        first = hand_out(topic, topic->base.claim.room, &claimed.count);
    events->claimed(topic->base.user, &claimed);
    if (claimed.count > 0)
        events->arrived(topic->base.user, first, claimed.count, 0);
}

static void on_answer(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__classic_topic *topic = timer->data;

    (void)loop; /* the store's own */
    (void)events;
    weir__redis_enter(topic->base.store);
    weir__classic_answer(topic);
    if (topic->base.user != NULL && topic->busy == 0)
        topic->base.store->events.settled(topic->base.user, 0, 0);
    weir__redis_leave(topic->base.store);
}

void weir__classic_answer_soon(struct weir__classic_topic *topic)
{
    if (!topic->base.store->is_closed && !ev_is_active(&topic->answer))
        ev_timer_start(topic->base.store->options.loop, &topic->answer);
}

static int claim(struct weir__store_topic *base,
                 const struct weir__claim *wanted)
{
    struct weir__classic_topic *topic = weir__classic_topic_of(base);

    (void)wanted; /* noted with the topic */
    if (!may_wait(topic))
        weir__classic_answer_soon(topic);
    return WEIR_OK;
}

static void stop(struct weir__store_topic *base)
{
    struct weir__classic_topic *topic = weir__classic_topic_of(base);

    topic->is_stopping = true;
    weir__classic_give_back(topic);
    weir__classic_answer_soon(topic);
}

static size_t unsettled(const struct weir__store_topic *topic)
{
    return ((const struct weir__classic_topic *)topic)->busy;
}

/* Consumers keep their messages by polling. */
static bool is_unleased(const struct weir__store_topic *topic)
{
    (void)topic;
    return true;
}

/* --- topics --------------------------------------------------------------- */

static void topic_init(struct weir__store_topic *base)
{
    struct weir__classic_topic *topic = weir__classic_topic_of(base);

    topic->shared = (struct weir__classic *)weir__redis_shared(
        base->store, base->kind); /* its first member */
    topic->policy = base->kind == &weir__sync_kind ? &weir__sync_policy
                                                   : &weir__concurrent_policy;
    topic->ready_end = &topic->ready;
    ev_timer_init(&topic->poll, weir__classic_on_poll, 0., 1.);
    topic->poll.data = topic;
    ev_timer_init(&topic->answer, on_answer, 0., 0.);
    topic->answer.data = topic;
}

static void listen(struct weir__store_topic *base)
{
    struct weir__classic_topic *topic = weir__classic_topic_of(base);

    if (base->user == NULL)
        return;
    weir__classic_poll(topic);
    if (!ev_is_active(&topic->poll))
        ev_timer_again(base->store->options.loop, &topic->poll);
}

/* --- connections ---------------------------------------------------------- */

static void connected(struct weir__store_topic *topic)
{
    if (topic->user != NULL)
        weir__classic_poll(weir__classic_topic_of(topic));
}

static void woken(struct weir__store_topic *base)
{
    struct weir__classic_topic *topic = weir__classic_topic_of(base);

    if (topic->is_paused)
        weir__classic_poll(topic);
    else
        weir__classic_wake(topic);
}

static void followed(struct weir__store_topic *topic, int code)
{
    if (code == WEIR_OK) /* else the next poll has the revision again */
        weir__classic_serve(weir__classic_topic_of(topic));
}

/* --- life ----------------------------------------------------------------- */

static void flush(struct weir__store_topic *base)
{
    struct weir__classic_topic *topic = weir__classic_topic_of(base);

    weir__classic_flush_backs(topic);
    weir__classic_flush_adds(topic);
}

static void flush_shared(struct weir__shared *base)
{
    struct weir__classic *shared =
        (struct weir__classic *)base; /* its first member */

    while (shared->dirty != NULL) {
        struct weir__consumer *consumer = shared->dirty;

        shared->dirty = consumer->next_dirty;
        consumer->is_dirty = false;
        weir__conn_flush(consumer->conn);
    }
}

static void fail_adds(struct weir__store_topic *topic, int code)
{
    weir__classic_fail_adds(weir__classic_topic_of(topic), code);
}

/* Answers on the common connection, which is closed by now, name consumers. */
static void topic_fini(struct weir__store_topic *base)
{
    struct weir__classic_topic *topic = weir__classic_topic_of(base);

    ev_timer_stop(base->store->options.loop, &topic->poll);
    ev_timer_stop(base->store->options.loop, &topic->answer);
    weir__classic_dismiss(topic);
}

/* A worker's name may come back after a crash; what it holds is another's. */
static uint32_t make_start(const struct weir__classic *shared)
{
    const struct weir__redis *store = shared->store;
    uint64_t state = store->options.seed ^ (uint64_t)weir__redis_now_ns(store) ^
                     (uint64_t)(uintptr_t)shared;

    return (uint32_t)weir__random_next(&state);
}

static void shared_init(struct weir__shared *base)
{
    struct weir__classic *shared =
        (struct weir__classic *)base; /* its first member */

    if (base->store->options.log != NULL)
        shared->quiet = *base->store->options.log;
    shared->quiet.level = WEIR_LEVEL_ERROR; /* the first one says it all */
    shared->start = make_start(shared);
}

#define CLASSIC_KIND(kind_name)                                                \
    {                                                                          \
        .name = (kind_name), .topic_size = sizeof(struct weir__classic_topic), \
        .shared_size = sizeof(struct weir__classic),                           \
        .shared_init = shared_init, .topic_init = topic_init,                  \
        .topic_fini = topic_fini, .listen = listen, .connected = connected,    \
        .woken = woken, .flush = flush, .flush_shared = flush_shared,          \
        .followed = followed, .fail_adds = fail_adds, .claim = claim,          \
        .settle = weir__classic_settle, .stop = stop, .unsettled = unsettled,  \
        .renew = weir__classic_renew, .is_unleased = is_unleased,              \
        .add = weir__classic_add, .purge = weir__classic_purge,                \
        .list = weir__classic_list, .stats = weir__topic_stats,                \
        .stats_script = &weir__script_classic_stats,                           \
        .stats_keys = "fifo parked meta", .stats_key_count = 3,                \
        .counted = weir__classic_counted,                                      \
    }

const struct weir__kind weir__sync_kind = CLASSIC_KIND("sync");
const struct weir__kind weir__concurrent_kind = CLASSIC_KIND("concurrent");
