/* SPDX-License-Identifier: MIT */
#include "adapters/redis/store/place.h"

#include <stdio.h>

#include "adapters/redis/cluster/redirect.h"
#include "adapters/redis/cluster/slot.h"
#include "adapters/redis/store/cluster.h"
#include "adapters/redis/store/store.h"
#include "core/assert.h"
#include "core/mem.h"

enum {
    PROBE_MIN_MS = 20,
    PROBE_MAX_MS = 100,
    APART_MS = 10,     /* probes of all places together */
    UNHEARD_MS = 1000, /* an answer is not waited for any more */
    TELL_MS = 1000,    /* what is held for longer is worth a line */
    CIRCLE_MS = 100,   /* who is sent on again so soon goes round in one */
    AGAIN_MS = 60000,  /* repeats are recognised for so long */
    HELD_MAX = 64 * 1024 * 1024,
    SLOT_NAME_CAP = WEIR_MAX_TOPIC + 48
};

#define MS_NS INT64_C(1000000)

/* --- places --------------------------------------------------------------- */

/* It was lost, perhaps since another server has the slot. */
static void find(void *arg, struct weir__conn *conn)
{
    const struct weir__place *place = arg;
    const struct weir__server *server =
        weir__cluster_server(place->store, place->slot);

    weir__cluster_ask(place->store);
    if (server == NULL)
        weir__conn_not_located(conn, WEIR_ECONN, "no server has the slot");
    else
        weir__conn_located(conn, weir__cluster_host_of(server)->name,
                           weir__cluster_host_of(server)->port);
}

static void forget(void *arg, struct weir__conn *conn)
{
    (void)arg; /* nothing is under way */
    (void)conn;
}

struct weir__place *weir__place_of_slot(struct weir__redis *store,
                                        uint16_t slot)
{
    struct weir__place **at = &store->places[slot % WEIR__PLACE_BUCKETS];

    while (*at != NULL && (*at)->slot != slot)
        at = &(*at)->next;
    if (*at != NULL)
        return *at;
    *at = weir__mem_new(sizeof(**at));
    if (*at == NULL)
        return NULL;
    (*at)->store = store;
    (*at)->slot = slot;
    (*at)->locator = (struct weir__locator){find, forget, *at, true};
    (*at)->server = weir__cluster_server(store, slot);
    if ((*at)->server == NULL) /* whoever it is says where it is */
        (*at)->server = store->servers;
    return *at;
}

struct weir__place *weir__place_of_topic(struct weir__redis *store,
                                         struct weir_slice topic)
{
    return weir__place_of_slot(store, weir__cluster_slot_of_topic(topic));
}

static struct weir__place *place_of(struct weir__sequence *sequence)
{
    return (struct weir__place *)sequence; /* its first member */
}

static bool is_at_server(const struct weir__place *place)
{
    return place->state == WEIR__PLACE_SETTLED;
}

/* --- holding -------------------------------------------------------------- */

static size_t cost_of(const struct weir__command_list *list)
{
    size_t cost = 0;

    for (const struct weir__command *command = list->first; command != NULL;
         command = command->next)
        cost += weir__request_cost(command);
    return cost;
}

static void take_in(struct weir__place *place, struct weir__command_list *list)
{
    place->held_bytes += cost_of(list);
    weir__commands_merge(&place->held, list);
}

static void withdraw(struct weir__place *place)
{
    struct weir__command_list list;

    weir__conn_withdraw(place->server->commands, &place->sequence, &list);
    take_in(place, &list);
}

/* What another one acknowledged is said to it again. */
static void go_to(struct weir__place *place, struct weir__server *server)
{
    struct weir__command_list acked;

    WEIR_ASSERT(place->sequence.on_way == 0);
    if (place->server == server)
        return;
    weir__conn_withdraw_acked(place->server->commands, &place->sequence,
                              &acked);
    take_in(place, &acked);
    place->server = server;
}

/* Where many wait, as in a cluster that is down, the first that is answered has
 * the others probe. */
static int64_t wait_ms(const struct weir__place *place)
{
    int64_t all_ms = (int64_t)place->store->waiting * APART_MS;

    return all_ms > place->probe_ms ? all_ms : place->probe_ms;
}

static void probe_others(const struct weir__redis *store)
{
    for (struct weir__place *place = store->moving; place != NULL;
         place = place->next_moving)
        if (place->is_down && place->state == WEIR__PLACE_HELD)
            place->probe_ns = 0;
}

static void enter(struct weir__place *place, enum weir__place_state state)
{
    struct weir__redis *store = place->store;

    if (place->state == WEIR__PLACE_SETTLED) {
        store->waiting++;
        place->since_ns = weir__redis_now_ns(store);
        place->probe_ms = PROBE_MIN_MS;
    }
    if (!place->is_moving) {
        place->is_moving = true;
        place->next_moving = store->moving;
        store->moving = place;
        weir__cluster_tick_soon(store);
    }
    place->sequence.is_watched = true;
    if (state == WEIR__PLACE_HELD)
        place->probe_ns = weir__redis_now_ns(store) + wait_ms(place) * MS_NS;
    place->state = state;
    place->is_open = false;
    withdraw(place);
}

/* "slot 15891 of topic t" */
static void name_slot(const struct weir__place *place, char text[SLOT_NAME_CAP])
{
    const struct weir__store_topic *topic = place->store->topics;

    while (topic != NULL && topic->place != place)
        topic = topic->next;
    (void)snprintf(text, SLOT_NAME_CAP, "slot %u of %s%s",
                   (unsigned)place->slot,
                   topic != NULL                         ? "topic "
                   : place == place->store->topics_place ? "the list of topics"
                                                         : "another topic",
                   topic != NULL ? topic->name : ""); /* fits */
}

bool weir__place_is_asked(const struct weir__place *place)
{
    return place != place->store->topics_place || place->store->topics == NULL;
}

static const char *state_of_slot(const struct weir__place *place)
{
    if (weir__cluster_is_denied(place->store))
        return "is elsewhere, and the user may not run CLUSTER SLOTS";
    return weir__redirect_read(place->why, &place->server->host).kind ==
                   WEIR__REDIRECT_DOWN
               ? "is served by no node"
               : "moves, and is at no node";
}

static void tell_held(struct weir__place *place)
{
    const struct weir__redis *store = place->store;
    char slot[SLOT_NAME_CAP];
    char text[sizeof(slot) + sizeof(place->why) + 80];

    place->is_told = true;
    name_slot(place, slot);
    (void)snprintf(text, sizeof(text), "%s %s (%s)", slot, state_of_slot(place),
                   place->why); /* fits */
    weir__log(store->options.log, WEIR_LEVEL_WARN, "redis: %s", text);
    if (store->events.held != NULL && weir__place_is_asked(place))
        store->events.held(text, store->options.arg);
}

static void tell_settled(struct weir__place *place)
{
    char slot[SLOT_NAME_CAP];

    if (!place->is_told)
        return;
    place->is_told = false;
    name_slot(place, slot);
    weir__log(place->store->options.log, WEIR_LEVEL_INFO, "redis: %s is served",
              slot);
}

static void settle(struct weir__place *place, struct weir__server *server)
{
    bool is_other = place->server != server;

    go_to(place, server);
    place->state = WEIR__PLACE_SETTLED;
    place->store->waiting--;
    place->is_open = false;
    place->sequence.is_watched = false;
    weir__commands_merge(&place->held, &place->back);
    place->held_bytes = 0;
    weir__conn_give(server->commands, &place->held);
    weir__conn_flush(server->commands);
    tell_settled(place);
    weir__link_arrived(place, is_other);
}

static void move_on(struct weir__place *place)
{
    struct weir__server *server =
        weir__cluster_server(place->store, place->slot);

    WEIR_ASSERT(place->state == WEIR__PLACE_LEAVING);
    withdraw(place);
    if (server == NULL) {
        enter(place, WEIR__PLACE_HELD);
        return;
    }
    place->left_ns = weir__redis_now_ns(place->store);
    settle(place, server);
}

void weir__place_leave(struct weir__place *place)
{
    if (place->state == WEIR__PLACE_HELD)
        return; /* the next probe goes there */
    if (place->state == WEIR__PLACE_PROBING && !place->server->is_away)
        return; /* the answer comes first */
    enter(place, WEIR__PLACE_LEAVING);
    if (place->sequence.on_way == 0)
        move_on(place);
}

void weir__place_lost(struct weir__place *place)
{
    WEIR_ASSERT(place->sequence.on_way == 0);
    if (place->state == WEIR__PLACE_LEAVING)
        move_on(place);
}

/* --- what servers say ----------------------------------------------------- */

/* In a circle, or where nobody is told, time has to pass. */
static bool may_follow(const struct weir__place *place,
                       const struct weir__redirect *redirect)
{
    int64_t ns = weir__redis_now_ns(place->store) - place->left_ns;

    return redirect->kind == WEIR__REDIRECT_MOVED && redirect->has_target &&
           (place->left_ns == 0 || ns >= CIRCLE_MS * MS_NS);
}

void weir__place_redirected(struct weir__sequence *sequence,
                            struct weir__command *command, const char *text,
                            void *arg)
{
    struct weir__place *place = place_of(sequence);
    struct weir__server *server = arg;
    struct weir__redirect redirect = weir__redirect_read(text, &server->host);

    WEIR_ASSERT(place->server == server);
    if (command != NULL) {
        place->held_bytes += weir__request_cost(command);
        weir__request_append(&place->back, command);
    }
    (void)snprintf(place->why, sizeof(place->why), "%s", text); /* cut */
    place->is_down = redirect.kind == WEIR__REDIRECT_DOWN;
    weir__cluster_redirected(server, &redirect);
    switch (place->state) {
    case WEIR__PLACE_SETTLED:
        enter(place, may_follow(place, &redirect) ? WEIR__PLACE_LEAVING
                                                  : WEIR__PLACE_HELD);
        break;
    case WEIR__PLACE_PROBING:
        place->probe_ms *= 2;
        if (place->probe_ms > PROBE_MAX_MS)
            place->probe_ms = PROBE_MAX_MS;
        enter(place, WEIR__PLACE_HELD);
        break;
    case WEIR__PLACE_LEAVING:
    case WEIR__PLACE_HELD:
        break;
    }
}

void weir__place_drained(struct weir__sequence *sequence, void *arg)
{
    struct weir__place *place = place_of(sequence);

    (void)arg; /* its server */
    if (place->state == WEIR__PLACE_LEAVING)
        move_on(place);
    else if (place->state == WEIR__PLACE_PROBING) {
        if (place->is_down)
            probe_others(place->store);
        settle(place, place->server);
    }
}

/* --- time ----------------------------------------------------------------- */

/* With the oldest; where there is none the next one that is sent is the
 * probe. */
static void probe(struct weir__place *place)
{
    struct weir__server *server =
        weir__cluster_server(place->store, place->slot);
    struct weir__command_list first = {0};
    struct weir__command *command;

    withdraw(place); /* what was lost since */
    if (server != NULL)
        go_to(place, server);
    weir__commands_merge(&place->held, &place->back);
    if (server == NULL && place->held.first != NULL)
        return;
    place->probe_ns = weir__redis_now_ns(place->store);
    place->state = WEIR__PLACE_PROBING;
    place->is_open = place->held.first == NULL;
    if (place->is_open) {
        weir__link_wake(place);
        return;
    }
    command = weir__request_take(&place->held);
    place->held_bytes -= weir__request_cost(command);
    weir__request_append(&first, command);
    weir__conn_give(place->server->commands, &first);
    weir__conn_flush(place->server->commands);
}

/* What the user may not ask will not be told later either. */
static int64_t patience_ms(const struct weir__redis *store)
{
    if (weir__cluster_is_denied(store))
        return 2 * TELL_MS; /* the sentence comes first */
    return store->options.wait_ms != 0 ? store->options.wait_ms
                                       : WEIR__CLUSTER_WAIT_MS;
}

/* Repeats, as calls that were acknowledged are, as long as they are known. */
static bool is_late(const struct weir__place *place,
                    const struct weir__command *command)
{
    int64_t now_ms = weir__redis_now_ns(place->store) / MS_NS;

    if (command->may_have_run && now_ms - command->first_ms > AGAIN_MS)
        return true;
    return !command->is_replay &&
           now_ms - command->queued_ms > patience_ms(place->store);
}

/* What waited too long. */
static void give_up(struct weir__place *place)
{
    struct weir__command_list late = {0}, rest = {0};
    struct weir__command *command;

    weir__commands_merge(&place->held, &place->back);
    while ((command = weir__request_take(&place->held)) != NULL)
        weir__request_append(is_late(place, command) ? &late : &rest, command);
    place->held = rest;
    place->held_bytes -= cost_of(&late);
    if (late.first != NULL)
        weir__conn_fail(place->server->commands, &late);
}

/* Nobody asks, or who was asked is away. */
static void end_probe(struct weir__place *place)
{
    if (!place->is_open) {
        enter(place, WEIR__PLACE_HELD);
        return;
    }
    place->is_told = false;
    settle(place, place->server);
}

static void tick(struct weir__place *place)
{
    int64_t now_ns = weir__redis_now_ns(place->store);

    if (!place->is_told && place->state != WEIR__PLACE_LEAVING &&
        place->why[0] != '\0' && now_ns - place->since_ns >= TELL_MS * MS_NS)
        tell_held(place);
    if (place->sequence.on_way > 0) { /* it ends before what waits here */
        if (weir__conn_owed_ms(place->server->commands) >= UNHEARD_MS)
            weir__cluster_abandon(place->server);
        return;
    }
    give_up(place);
    if (place->state == WEIR__PLACE_HELD && now_ns >= place->probe_ns)
        probe(place);
    else if (place->state == WEIR__PLACE_PROBING &&
             now_ns - place->probe_ns >= UNHEARD_MS * MS_NS)
        end_probe(place);
}

bool weir__places_tick(struct weir__redis *store)
{
    struct weir__place **at = &store->moving;

    for (struct weir__place *place = store->moving; place != NULL;
         place = place->next_moving)
        if (!is_at_server(place))
            tick(place);
    while (*at != NULL) {
        struct weir__place *place = *at;

        place->is_moving = !is_at_server(place);
        if (place->is_moving)
            at = &place->next_moving;
        else
            *at = place->next_moving;
    }
    return store->moving != NULL;
}

void weir__place_look_beside(const struct weir__place *place,
                             struct weir__conn *conn)
{
    const struct weir__redis_host *host = weir__cluster_host_of(place->server);

    if (is_at_server(place) && weir__conn_owed_ms(conn) >= UNHEARD_MS &&
        !weir__conn_is_at(conn, host->name, host->port))
        weir__conn_abandon(conn, "its topic is at another server");
}

/* --- sending -------------------------------------------------------------- */

static int hold(struct weir__place *place, const struct weir__sending *sending)
{
    struct weir__command *command;
    int rc = WEIR_OK;

    if ((sending->flags & WEIR__SEND_HERE) != 0)
        rc = WEIR_ECONN;
    else if (place->held_bytes > HELD_MAX)
        rc = WEIR_EFULL;
    if (rc != WEIR_OK) {
        weir__buf_fini(sending->bytes);
        return rc;
    }
    rc = weir__conn_make(place->server->commands, &place->sequence, sending,
                         &command);
    if (rc != WEIR_OK)
        return rc;
    command->queued_ms = weir__redis_now_ns(place->store) / MS_NS;
    place->held_bytes += weir__request_cost(command);
    weir__request_append(&place->held, command);
    return WEIR_OK;
}

int weir__place_command(struct weir__place *place, struct weir__buf *bytes,
                        const struct weir__script *script, unsigned flags,
                        weir__reply_fn fn, void *arg)
{
    const struct weir__sending sending = {bytes, script, flags, fn, arg};

    if (!is_at_server(place) && !place->is_open)
        return hold(place, &sending);
    place->is_open = false;
    place->server->is_dirty = true;
    return weir__conn_send_in(place->server->commands, &place->sequence,
                              &sending);
}

void weir__place_flush(struct weir__place *place)
{
    weir__conn_flush(place->server->commands);
}

bool weir__place_is_up(const struct weir__place *place)
{
    return is_at_server(place) && place->server->is_up;
}

size_t weir__place_queued(const struct weir__place *place)
{
    return weir__conn_queued(place->server->commands) + place->held_bytes;
}

/* --- the end -------------------------------------------------------------- */

void weir__places_release(struct weir__redis *store)
{
    while (store->moving != NULL) {
        struct weir__place *place = store->moving;

        store->moving = place->next_moving;
        weir__commands_merge(&place->held, &place->back);
        weir__conn_give(place->server->commands, &place->held);
        place->state = WEIR__PLACE_SETTLED;
        place->sequence.is_watched = false;
        place->is_moving = false;
    }
}

void weir__places_fini(struct weir__redis *store)
{
    for (size_t i = 0; i < WEIR__PLACE_BUCKETS; i++)
        while (store->places[i] != NULL) {
            struct weir__place *place = store->places[i];

            store->places[i] = place->next;
            WEIR_ASSERT(place->sequence.on_way == 0);
            weir__mem_free(place);
        }
}
