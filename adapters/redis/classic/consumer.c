/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/msgpack/record.h"
#include "adapters/msgpack/scan.h"
#include "adapters/redis/classic/private.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Consumers: what each of them waits for, and what it holds. */

#define LOST_NS INT64_C(1000000000) /* after an error, until it tries again */

enum { SHORT_LEASE_MS = 3000 }; /* a poll each second is not enough */

/* --- states --------------------------------------------------------------- */

static bool is_busy(enum weir__consumer_state state)
{
    return state != WEIR__CONSUMER_IDLE && state != WEIR__CONSUMER_WAITING &&
           state != WEIR__CONSUMER_OUT;
}

static bool is_at_head(enum weir__consumer_state state)
{
    return state == WEIR__CONSUMER_LOOKING || state == WEIR__CONSUMER_WAITING;
}

/* A worker with one may hold its loop for long: others are woken before it. */
static bool is_in_hand(enum weir__consumer_state state)
{
    return state >= WEIR__CONSUMER_HELD;
}

static void list_idle(struct weir__consumer *consumer)
{
    struct weir__classic_topic *topic = consumer->topic;

    if (consumer->is_idle_listed ||
        consumer->index >= topic->base.options->consumers)
        return;
    consumer->is_idle_listed = true;
    consumer->next_idle = topic->idle;
    topic->idle = consumer;
}

void weir__consumer_state(struct weir__consumer *consumer,
                          enum weir__consumer_state state)
{
    struct weir__classic_topic *topic = consumer->topic;

    ev_timer_stop(topic->base.store->options.loop, &consumer->timer);
    topic->busy -= is_busy(consumer->state);
    topic->at_head -= is_at_head(consumer->state);
    topic->in_hand -= is_in_hand(consumer->state);
    weir__keeper_shut(topic->base.store->keeper);
    consumer->state = state;
    weir__keeper_reopen(topic->base.store->keeper);
    topic->busy += is_busy(state);
    topic->at_head += is_at_head(state);
    topic->in_hand += is_in_hand(state);
    if (state == WEIR__CONSUMER_IDLE)
        list_idle(consumer);
}

static bool may_poll(const struct weir__classic_topic *topic)
{
    return topic->is_serving && topic->base.user != NULL && !topic->is_paused &&
           !topic->is_stopping && !topic->has_newer &&
           !topic->base.store->is_closed;
}

void weir__consumer_rest(struct weir__consumer *consumer)
{
    struct weir__classic_topic *topic = consumer->topic;

    weir__consumer_state(consumer, WEIR__CONSUMER_IDLE);
    if (topic->busy == 0)
        weir__classic_answer_soon(topic);
}

static void arm(struct weir__consumer *consumer, int64_t ns)
{
    struct ev_loop *loop = consumer->topic->base.store->options.loop;

    ev_now_update(loop);
    ev_timer_set(&consumer->timer, (double)(ns < 0 ? 0 : ns) * 1e-9, 0.);
    ev_timer_start(loop, &consumer->timer);
}

void weir__consumer_wait(struct weir__consumer *consumer, int64_t ns)
{
    struct weir__classic_topic *topic = consumer->topic;

    weir__consumer_state(consumer, WEIR__CONSUMER_WAITING);
    arm(consumer, ns);
    if (topic->busy == 0)
        weir__classic_answer_soon(topic);
}

void weir__consumer_next(struct weir__consumer *consumer)
{
    const struct weir__classic_topic *topic = consumer->topic;

    WEIR_ASSERT(consumer->message == NULL);
    if (!may_poll(topic) || consumer->index >= topic->base.options->consumers) {
        weir__consumer_rest(consumer);
        return;
    }
    weir__consumer_state(consumer, WEIR__CONSUMER_LOOKING);
    if (topic->is_sync)
        weir__sync_begin(consumer);
    else
        weir__concurrent_begin(consumer);
}

/* How many consumers may poll at once. With the lock one of a worker is at the
 * head, its others would only wait for the lock. */
static size_t crowd_of(const struct weir__classic_topic *topic)
{
    return topic->is_sync && topic->base.options->lock ? 1 : SIZE_MAX;
}

/* How many poll when there is a message; more follow after each success. */
static size_t herd_of(const struct weir__classic_topic *topic)
{
    return topic->is_sync ? crowd_of(topic) : 1;
}

static void name_owner(struct weir__consumer *consumer)
{
    const struct weir__classic *shared = consumer->topic->shared;

    (void)snprintf(consumer->owner, sizeof(consumer->owner), "%s.%08x.%u.%u",
                   shared->store->worker, shared->start, consumer->index,
                   consumer->life); /* fits */
}

void weir__consumer_forget(struct weir__consumer *consumer)
{
    struct weir__keeper *keeper = consumer->topic->base.store->keeper;
    struct weir__message *message = consumer->message;

    if (message == NULL)
        return;
    weir__keeper_shut(keeper);
    consumer->message = NULL;
    weir__keeper_reopen(keeper);
    weir__run_fini(&message->run);
    weir__mem_free(message);
}

void weir__consumer_lost(struct weir__consumer *consumer, const char *what,
                         int code, const struct redisReply *reply)
{
    weir__topic_log_error(&consumer->topic->base, what, code, reply);
    if (consumer->message != NULL)
        weir__asker_tell(consumer->message->run.asker, code);
    weir__consumer_forget(consumer);
    consumer->has_lock = false;
    consumer->life++;
    name_owner(consumer);
    if (!consumer->topic->base.store->is_closed)
        weir__consumer_wait(consumer, LOST_NS);
}

/* --- sending -------------------------------------------------------------- */

void weir__consumer_send(struct weir__consumer *consumer,
                         struct weir__buf *bytes,
                         const struct weir__script *script, unsigned flags,
                         weir__reply_fn fn)
{
    struct weir__classic *shared = consumer->topic->shared;
    int rc =
        weir__conn_send(consumer->conn, bytes, script, flags, fn, consumer);

    if (rc < 0) {
        weir__consumer_lost(consumer, script->name, rc, NULL);
        return;
    }
    if (consumer->is_dirty)
        return;
    consumer->is_dirty = true;
    consumer->next_dirty = shared->dirty;
    shared->dirty = consumer;
}

void weir__consumer_pop(struct weir__consumer *consumer, const char *todo,
                        weir__reply_fn fn)
{
    const struct weir__classic_topic *topic = consumer->topic;
    struct weir__buf bytes = {0};

    consumer->has_told_busy = topic->in_hand > 0;
    weir__resp_eval(&bytes, &weir__script_classic_pop, 7, 7);
    weir__prefix_keys(&bytes, &topic->base.prefix,
                      "fifo parked alive meta idle lock absent");
    weir__resp_str(&bytes, consumer->owner);
    weir__resp_str(&bytes, topic->base.place->server->worker);
    weir__resp_int(&bytes, weir__options_lease_ms(topic->base.options));
    weir__resp_str(&bytes, todo);
    weir__resp_int(&bytes, consumer->has_lock);
    weir__resp_int(&bytes, consumer->has_told_busy);
    weir__claim_write_floor(&bytes, &topic->base);
    weir__consumer_send(consumer, &bytes, &weir__script_classic_pop,
                        WEIR__SEND_ONCE, fn);
}

/* --- messages as they are stored: scripts/lib/message.lua ----------------- */

static struct weir_slice behind(struct weir_slice bytes, size_t len)
{
    return weir__slice_of(bytes.ptr + len, bytes.len - len);
}

/* Others may have written any time. */
static int64_t time_of(const struct weir_value *value)
{
    int64_t ms = value->as.i64;

    return ms < 0 ? 0 : ms > WEIR__DUE_MAX_MS ? WEIR__DUE_MAX_MS : ms;
}

int weir__message_read(struct weir_slice bytes, struct weir_slice *ret_id,
                       int64_t *ret_due_ms, struct weir__record *ret_record)
{
    struct weir_value array, due, added, id;
    int rc;

    if (weir__msgpack_check(bytes) != WEIR_OK)
        return WEIR_EMALFORMED;
    bytes = behind(bytes, weir__msgpack_head(bytes, &array));
    if (array.type != WEIR_TYPE_ARRAY || array.as.count != 4)
        return WEIR_EMALFORMED;
    bytes = behind(bytes, weir__msgpack_head(bytes, &due));
    if (due.type != WEIR_TYPE_INT)
        return WEIR_EMALFORMED;
    bytes = behind(bytes, weir__msgpack_head(bytes, &added));
    if (added.type != WEIR_TYPE_INT)
        return WEIR_EMALFORMED;
    bytes = behind(bytes, weir__msgpack_head(bytes, &id));
    if (id.type != WEIR_TYPE_STR ||
        weir__id_check_any(id.as.bytes, NULL) != WEIR_OK)
        return WEIR_EMALFORMED;
    *ret_id = id.as.bytes;
    *ret_due_ms = time_of(&due);
    rc = weir__record_read(bytes, ret_record);
    if (ret_record->added_ms == 0 && ret_record->counters.attempt == 0 &&
        ret_record->counters.snoozes == 0) /* it was never written anew */
        ret_record->added_ms = time_of(&added);
    return rc;
}

/* --- holding a message ---------------------------------------------------- */

/* A newer version's record: what came before and comes after it waits, too. */
static void leave_newer(struct weir__classic_topic *topic)
{
    if (!topic->has_newer)
        weir__log(topic->base.store->options.log, WEIR_LEVEL_WARN,
                  "redis: the message at the head of %s was written by a newer "
                  "version of weir; it is left alone, with all behind it",
                  topic->base.name);
    topic->has_newer = true;
}

static void fill_run(struct weir__message *message, int64_t time_us,
                     int64_t token)
{
    struct weir__run *run = &message->run;
    int64_t due_ms = time_us / 1000;
    int rc = weir__message_read(weir__slice_of(message->bytes, message->len),
                                &run->id, &due_ms, &run->record);

    run->magic = WEIR__RUN_MAGIC;
    run->batch = message;
    run->token = (uint64_t)token;
    weir__claim_note_token(&message->consumer->topic->base, run->token);
    if (rc == WEIR_ENEWER) {
        leave_newer(message->consumer->topic);
    } else if (rc != WEIR_OK) {
        run->id = weir__slice_str("unreadable");
        run->record = (struct weir__record){0};
        run->is_malformed = true;
        due_ms = time_us / 1000;
    }
    run->due_ms = due_ms;
    run->late_us = time_us - due_ms * 1000;
    run->claimed_ns = weir__redis_now_ns(message->consumer->topic->base.store);
}

bool weir__consumer_keep(struct weir__consumer *consumer,
                         const struct redisReply *reply, size_t index)
{
    struct weir__message *message;
    struct weir_slice bytes;
    int64_t time_us = 0, token = 0;

    if (!weir__reply_str(reply, index, &bytes) ||
        !weir__reply_time(reply, 0, &time_us))
        return false;
    (void)weir__reply_int(reply, 1, &token); /* of one that was popped */
    message = weir__mem_new(sizeof(*message) + bytes.len);
    if (message == NULL)
        return false;
    memcpy(message->bytes, bytes.ptr, bytes.len);
    message->len = bytes.len;
    message->consumer = consumer;
    fill_run(message, time_us, token);
    weir__keeper_shut(consumer->topic->base.store->keeper);
    consumer->message = message;
    weir__keeper_reopen(consumer->topic->base.store->keeper);
    return true;
}

void weir__consumer_parked(struct weir__consumer *consumer)
{
    struct weir__keeper *keeper = consumer->topic->base.store->keeper;

    weir__keeper_shut(keeper);
    consumer->message->is_parked = true;
    weir__keeper_reopen(keeper);
}

/* Nanoseconds until it is due, never less; what is due in a century waits for
 * one of its days first. */
static int64_t wait_of(const struct weir__message *message)
{
    int64_t early_us = -message->run.late_us;

    if (early_us > WEIR__FIFO_WAIT_US)
        early_us = WEIR__FIFO_WAIT_US;
    return message->run.claimed_ns + early_us * 1000 -
           weir__redis_now_ns(message->consumer->topic->base.store);
}

static void ready(struct weir__consumer *consumer)
{
    struct weir__classic_topic *topic = consumer->topic;
    struct weir__message *message = consumer->message;

    weir__consumer_state(consumer, WEIR__CONSUMER_READY);
    message->run.next = NULL;
    *topic->ready_end = &message->run;
    topic->ready_end = &message->run.next;
    if (topic->base.wants_claim)
        weir__classic_answer(topic);
    else if (topic->base.user != NULL)
        topic->base.store->events.wake(topic->base.user);
}

static void hold(struct weir__consumer *consumer)
{
    int64_t ns = wait_of(consumer->message);

    if (ns <= 0) {
        ready(consumer);
        return;
    }
    weir__consumer_state(consumer, WEIR__CONSUMER_HELD);
    arm(consumer, ns);
}

void weir__consumer_took(struct weir__consumer *consumer)
{
    struct weir__classic_topic *topic = consumer->topic;

    if (consumer->message->is_parked &&
        weir__options_lease_ms(topic->base.options) < SHORT_LEASE_MS)
        weir__classic_poll_soon(topic);
    if (may_poll(topic)) {
        hold(consumer);
    } else {
        weir__consumer_state(consumer, WEIR__CONSUMER_BACK);
        topic->has_backs = true;
        weir__topic_mark(&topic->base);
    }
    weir__classic_kick(topic, herd_of(topic));
}

static void unready(struct weir__classic_topic *topic,
                    const struct weir__run *run)
{
    struct weir__run **at = &topic->ready;

    while (*at != run)
        at = &(*at)->next;
    *at = run->next;
    if (topic->ready_end == &run->next)
        topic->ready_end = at;
}

void weir__consumer_drop(struct weir__consumer *consumer)
{
    if (consumer->state == WEIR__CONSUMER_READY)
        unready(consumer->topic, &consumer->message->run);
    if (consumer->state != WEIR__CONSUMER_READY &&
        consumer->state != WEIR__CONSUMER_HELD)
        return;
    weir__consumer_forget(consumer);
    weir__consumer_next(consumer);
}

void weir__classic_give_back(struct weir__classic_topic *topic)
{
    for (size_t i = 0; i < topic->consumer_count; i++) {
        struct weir__consumer *consumer = topic->consumers[i];

        if (consumer->state == WEIR__CONSUMER_WAITING)
            weir__consumer_rest(consumer);
        if (consumer->state == WEIR__CONSUMER_READY)
            unready(topic, &consumer->message->run);
        if (consumer->state != WEIR__CONSUMER_READY &&
            consumer->state != WEIR__CONSUMER_HELD)
            continue;
        weir__consumer_state(consumer, WEIR__CONSUMER_BACK);
        topic->has_backs = true;
        weir__topic_mark(&topic->base);
    }
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__consumer *consumer = timer->data;
    struct weir__classic *shared = consumer->topic->shared;

    (void)loop; /* the store's own */
    (void)events;
    weir__redis_enter(shared->store);
    if (consumer->state == WEIR__CONSUMER_HELD)
        hold(consumer);
    else if (consumer->state == WEIR__CONSUMER_WAITING)
        weir__consumer_next(consumer);
    weir__redis_leave(shared->store);
}

/* --- all of them ---------------------------------------------------------- */

void weir__classic_kick(struct weir__classic_topic *topic, uint64_t count)
{
    while (count > 0 && topic->idle != NULL && may_poll(topic) &&
           topic->at_head < crowd_of(topic)) {
        struct weir__consumer *consumer = topic->idle;

        topic->idle = consumer->next_idle;
        consumer->is_idle_listed = false;
        weir__consumer_next(consumer);
        count--;
    }
}

void weir__classic_wake(struct weir__classic_topic *topic)
{
    for (size_t i = 0; i < topic->consumer_count; i++)
        if (topic->consumers[i]->state == WEIR__CONSUMER_WAITING)
            weir__consumer_next(topic->consumers[i]);
    weir__classic_kick(topic, herd_of(topic));
}

static struct weir__consumer *consumer_new(struct weir__classic_topic *topic)
{
    struct weir__classic *shared = topic->shared;
    struct weir__consumer *consumer = weir__mem_new(sizeof(*consumer));
    struct weir__conn_options conn = {
        .seed = 2 + topic->consumer_count,
        .log = &shared->quiet,
    };

    if (consumer == NULL)
        return NULL;
    consumer->topic = topic;
    consumer->index = (uint32_t)topic->consumer_count;
    ev_timer_init(&consumer->timer, on_timer, 0., 0.);
    consumer->timer.data = consumer;
    name_owner(consumer);
    if (weir__link_beside_place(topic->base.place, &conn, &consumer->conn) ==
        WEIR_OK)
        return consumer;
    weir__mem_free(consumer);
    return NULL;
}

static void consumer_close(struct weir__consumer *consumer)
{
    struct weir__classic *shared = consumer->topic->shared;
    struct weir__consumer **at = &shared->dirty;

    while (*at != NULL && *at != consumer)
        at = &(*at)->next_dirty;
    if (*at != NULL)
        *at = consumer->next_dirty;
    ev_timer_stop(shared->store->options.loop, &consumer->timer);
    weir__conn_close(consumer->conn);
    weir__consumer_forget(consumer);
    weir__mem_free(consumer);
}

static void relist(struct weir__classic_topic *topic)
{
    topic->idle = NULL;
    for (size_t i = topic->consumer_count; i > 0; i--) {
        struct weir__consumer *consumer = topic->consumers[i - 1];

        consumer->is_idle_listed = false;
        if (consumer->state == WEIR__CONSUMER_IDLE)
            list_idle(consumer);
    }
}

static void shrink(struct weir__classic_topic *topic)
{
    while (topic->consumer_count > topic->base.options->consumers) {
        struct weir__consumer *last =
            topic->consumers[topic->consumer_count - 1];

        if (last->state != WEIR__CONSUMER_IDLE)
            return; /* a later poll */
        weir__keeper_shut(topic->base.store->keeper);
        topic->consumer_count--;
        weir__keeper_reopen(topic->base.store->keeper);
        consumer_close(last);
        relist(topic);
    }
}

/* What memory does not allow now is tried again at the next poll. */
void weir__classic_fit(struct weir__classic_topic *topic)
{
    void *consumers;

    if (topic->consumer_count == topic->base.options->consumers)
        return;
    shrink(topic);
    if (topic->consumer_count >= topic->base.options->consumers)
        return;
    weir__keeper_shut(topic->base.store->keeper);
    consumers = weir__mem_grow(topic->consumers, topic->base.options->consumers,
                               sizeof(struct weir__consumer *));
    if (consumers != NULL)
        topic->consumers = consumers;
    weir__keeper_reopen(topic->base.store->keeper);
    if (consumers == NULL)
        return;
    while (topic->consumer_count < topic->base.options->consumers) {
        struct weir__consumer *consumer = consumer_new(topic);

        if (consumer == NULL)
            break;
        weir__keeper_shut(topic->base.store->keeper);
        topic->consumers[topic->consumer_count++] = consumer;
        weir__keeper_reopen(topic->base.store->keeper);
    }
    relist(topic);
}

void weir__classic_dismiss(struct weir__classic_topic *topic)
{
    for (size_t i = 0; i < topic->consumer_count; i++)
        consumer_close(topic->consumers[i]);
    weir__mem_free(topic->consumers);
    topic->consumers = NULL;
    topic->consumer_count = 0;
}
