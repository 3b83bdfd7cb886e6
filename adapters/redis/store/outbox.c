/* SPDX-License-Identifier: MIT */
#include "adapters/redis/store/outbox.h"

#include <string.h>

#include "adapters/redis/store/kind.h"
#include "adapters/redis/store/relay.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* The entries that this process knows, when they are tried again, and looks for
 * those of workers that are gone. What a target does not take waits without its
 * bytes. store/relay.c sends one entry on. */

enum {
    LENGTH_MAX = 10000, /* entries, above which nothing is claimed */
    LOOK_COUNT = 64,    /* entries that one look sees */
    OLD_MAX = 16,       /* of these what is sent */
    OLD_OF_TARGET = 4,  /* and for one topic */
    OLD_MS = 2000,      /* its worker has had the time */
    FIRST_MS = 50,      /* between tries where a target takes none */
    MOST_MS = 5000,
    PROBES_MAX = 16 /* targets that are tried again at a time */
};

#define LOOK_NS  INT64_C(5000000000)
#define APART_NS INT64_C(150000000) /* looks of all topics together */

static void look(struct weir__relays *box);

/* --- the list ----------------------------------------------------------- */

static struct weir__relay *find(const struct weir__relays *box, const char *seq)
{
    struct weir__relay *relay = box->relays;

    while (relay != NULL && memcmp(relay->seq, seq, WEIR__SEQ_LEN) != 0)
        relay = relay->next;
    return relay;
}

static void append(struct weir__relay *relay)
{
    struct weir__relays *box = relay->box;

    *box->relays_end = relay;
    box->relays_end = &relay->next;
}

static void forget(struct weir__relay *relay)
{
    struct weir__relays *box = relay->box;
    struct weir__relay **at = &box->relays;

    while (*at != relay) {
        WEIR_ASSERT(*at != NULL);
        at = &(*at)->next;
    }
    *at = relay->next;
    if (relay->next == NULL)
        box->relays_end = at;
    if (box->next_probe == relay)
        box->next_probe = relay->next;
    weir__relay_free(relay);
}

/* The lane may have waited for it. */
static void stop_sending(struct weir__relay *relay)
{
    struct weir__relays *box = relay->box;

    WEIR_ASSERT(box->sending > 0 && !relay->is_waiting);
    WEIR_ASSERT(relay->is_own || box->old > 0);
    box->sending--;
    box->old -= !relay->is_own;
    if (box->sending == 0 && box->topic->user != NULL)
        box->topic->store->events.settled(box->topic->user, 0, 0);
}

/* --- trying again ------------------------------------------------------- */

static void arm(struct weir__relays *box)
{
    struct ev_loop *loop = box->topic->store->options.loop;

    if (ev_is_active(&box->timer) || box->topic->store->is_closed)
        return;
    box->wait_ms = box->wait_ms == 0 ? FIRST_MS : box->wait_ms * 2;
    if (box->wait_ms > MOST_MS)
        box->wait_ms = MOST_MS;
    ev_now_update(loop); /* it may be as old as the turn */
    ev_timer_set(&box->timer, (double)box->wait_ms / 1000., 0.);
    ev_timer_start(loop, &box->timer);
}

/* What a look brought comes again by another one. */
void weir__relays_put_off(struct weir__relay *relay)
{
    struct weir__relays *box = relay->box;

    stop_sending(relay);
    weir__buf_fini(&relay->pack);
    box->goes_on = false;
    if (!relay->is_own) {
        forget(relay);
        return;
    }
    relay->is_waiting = true;
    relay->was_refused = true;
    arm(box);
}

static struct weir__relay *first_waiting(const struct weir__relays *box,
                                         struct weir_slice target)
{
    struct weir__relay *relay = box->relays;

    while (relay != NULL &&
           (!relay->is_waiting || !weir__slice_equal(relay->target, target)))
        relay = relay->next;
    return relay;
}

/* The caller flushes. */
static void send_on(struct weir__relay *relay)
{
    WEIR_ASSERT(!relay->is_waiting || relay->pack.len == 0);
    relay->is_waiting = false;
    relay->box->sending++;
    relay->box->old += !relay->is_own;
    weir__relay_send(relay);
}

void weir__relays_sent(struct weir__relay *relay)
{
    struct weir__relays *box = relay->box;
    struct weir__relay *next = first_waiting(box, relay->target);
    bool is_own = relay->is_own;

    if (relay->was_refused)
        box->wait_ms = 0;
    if (is_own)
        weir__call_slot_leave(box->topic->store, relay->own_call_slot);
    box->length -= box->length > 0;
    stop_sending(relay);
    forget(relay);
    if (next != NULL) /* the target takes jobs again */
        send_on(next);
    else if (!is_own && box->old == 0 && box->goes_on)
        look(box);
    weir__place_flush(box->topic->place);
}

bool weir__relays_send(struct weir__relays *box, struct weir_slice entry,
                       struct weir_slice pack, uint32_t call_slot)
{
    const char *seq = (const char *)entry.ptr;
    struct weir__relay *relay;
    int rc;

    WEIR_ASSERT(entry.len >= WEIR__SEQ_LEN);
    if (find(box, seq) != NULL)
        return false; /* a look found it */
    entry.ptr += WEIR__SEQ_LEN;
    entry.len -= WEIR__SEQ_LEN;
    rc = weir__relay_new(box, seq, entry, &relay);
    if (rc != WEIR_OK)
        return rc != WEIR_ENOMEM;
    relay->is_own = true;
    relay->own_call_slot = call_slot;
    relay->is_waiting = first_waiting(box, relay->target) != NULL;
    append(relay);
    if (relay->is_waiting) { /* behind those */
        relay->was_refused = true;
        return true;
    }
    weir__buf_append(&relay->pack, pack.ptr, pack.len);
    if (relay->pack.failed)
        weir__buf_fini(&relay->pack); /* it is fetched */
    send_on(relay);
    return true;
}

/* --- old entries --------------------------------------------------------- */

static size_t count_of_target(const struct weir__relays *box,
                              struct weir_slice target)
{
    size_t count = 0;

    for (const struct weir__relay *relay = box->relays; relay != NULL;
         relay = relay->next)
        count += !relay->is_own && weir__slice_equal(relay->target, target);
    return count;
}

/* A name of a time to come is nobody's either. */
static bool is_old(const struct weir__relays *box, const char *seq)
{
    int64_t age_ms = weir__topic_server_ms(box->topic) - weir__seq_ms(seq);

    return age_ms >= OLD_MS || age_ms <= -OLD_MS;
}

/* WEIR_EMALFORMED: somebody else wrote it. */
static int take_old(struct weir__relays *box, struct weir_slice seq,
                    struct weir_slice entry)
{
    const char *name = (const char *)seq.ptr;
    struct weir__relay *relay;
    int rc;

    if (seq.len != WEIR__SEQ_LEN || !weir__seq_is_sound(name))
        return WEIR_EMALFORMED;
    if (box->old == OLD_MAX || find(box, name) != NULL || !is_old(box, name))
        return WEIR_OK;
    rc = weir__relay_new(box, name, entry, &relay);
    if (rc != WEIR_OK)
        return rc;
    if (first_waiting(box, relay->target) != NULL ||
        count_of_target(box, relay->target) >= OLD_OF_TARGET) {
        weir__relay_free(relay);
        return WEIR_OK;
    }
    append(relay);
    /* The keeper, which may have written it, registers nothing. */
    weir__redis_register(box->topic->store, relay->target);
    send_on(relay);
    return WEIR_OK;
}

struct look {
    struct weir__request request;
    struct weir__relays *box;
};

static void on_look(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    struct weir__relays *box = ((struct look *)request)->box;
    struct weir_slice seq, entry;
    size_t foreign = 0, pairs, at;

    weir__mem_free(request);
    box->is_looking = false;
    weir__topic_log_error(box->topic, "relay", code, reply);
    if (code != WEIR_OK || reply->type != REDIS_REPLY_ARRAY)
        return;
    pairs = (size_t)reply->elements / 2;
    for (size_t i = 0; i < pairs; i++) {
        at = (box->looked + i) % pairs * 2; /* those of a small hash come in one
                                               order each time */
        if (weir__reply_str(reply, at, &seq) &&
            weir__reply_str(reply, at + 1, &entry) &&
            take_old(box, seq, entry) == WEIR_EMALFORMED) {
            weir__relay_remove(box->topic, seq, NULL);
            foreign++;
        }
    }
    box->looked += OLD_MAX;
    if (foreign > 0) {
        weir__log(box->topic->store->options.log, WEIR_LEVEL_ERROR,
                  "redis: %s: %zu entries of its outbox were not written by "
                  "weir and are removed",
                  box->topic->name, foreign);
        box->look_ns = 0; /* others may be behind them */
    }
    box->goes_on = box->old > 0;
    weir__place_flush(box->topic->place);
}

static int64_t gap_ns(const struct weir__redis *store)
{
    int64_t all = (int64_t)store->topic_count * APART_NS;

    return all > LOOK_NS ? all : LOOK_NS;
}

static void look(struct weir__relays *box)
{
    const struct weir__store_topic *topic = box->topic;
    struct weir__buf bytes = {0};
    struct look *looking = weir__mem_new(sizeof(*looking));

    box->look_ns = weir__redis_now_ns(topic->store) + gap_ns(topic->store);
    if (looking == NULL)
        return;
    looking->request.done = on_look;
    looking->box = box;
    box->is_looking = true;
    weir__resp_command(&bytes, 4);
    weir__resp_str(&bytes, "HRANDFIELD");
    weir__prefix_key(&bytes, &topic->prefix, "relay");
    weir__resp_int(&bytes, LOOK_COUNT);
    weir__resp_str(&bytes, "WITHVALUES");
    weir__place_send(topic->place, &bytes, NULL, WEIR__SEND_ONCE,
                     &looking->request);
}

void weir__relays_look(struct weir__relays *box)
{
    if (box->topic->user == NULL || box->is_looking || box->old > 0 ||
        weir__redis_now_ns(box->topic->store) < box->look_ns)
        return;
    look(box);
}

/* --- too many ------------------------------------------------------------ */

bool weir__relays_is_full(const struct weir__relays *box)
{
    return box->length >= LENGTH_MAX;
}

void weir__relays_note_length(struct weir__relays *box, int64_t length)
{
    box->length = length < 0 ? 0 : (size_t)length;
}

void weir__relays_ask_length(struct weir__relays *box,
                             struct weir__request *request)
{
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, 2);
    weir__resp_str(&bytes, "HLEN");
    weir__prefix_key(&bytes, &box->topic->prefix, "relay");
    weir__place_send(box->topic->place, &bytes, NULL, WEIR__SEND_AGAIN,
                     request);
}

/* --- init and fini ------------------------------------------------------- */

/* One for each target: its answer sends those behind it. Where there are many
 * the next try begins behind these. */
static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__relays *box = timer->data;
    struct weir__relay *probes[PROBES_MAX], *relay = box->next_probe;
    bool is_part = relay != NULL;
    size_t count = 0, i;

    (void)loop; /* the store's own */
    (void)events;
    if (relay == NULL)
        relay = box->relays;
    for (; relay != NULL && count < PROBES_MAX; relay = relay->next) {
        for (i = 0; i < count; i++)
            if (weir__slice_equal(probes[i]->target, relay->target))
                break;
        if (relay->is_waiting && i == count)
            probes[count++] = first_waiting(box, relay->target);
    }
    box->next_probe = relay;
    for (i = 0; i < count; i++)
        send_on(probes[i]);
    if (is_part || relay != NULL)
        arm(box);
    weir__place_flush(box->topic->place);
}

void weir__relays_init(struct weir__relays *box,
                       struct weir__store_topic *topic)
{
    WEIR_ASSERT(topic->kind->undeliverable != NULL);
    topic->outbox = box;
    box->topic = topic;
    box->relays_end = &box->relays;
    ev_timer_init(&box->timer, on_timer, 0., 0.);
    box->timer.data = box;
}

void weir__relays_fini(struct weir__relays *box)
{
    ev_timer_stop(box->topic->store->options.loop, &box->timer);
    while (box->relays != NULL) {
        struct weir__relay *relay = box->relays;

        box->relays = relay->next;
        weir__relay_free(relay);
    }
}
