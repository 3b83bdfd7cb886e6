/* SPDX-License-Identifier: MIT */
#include "adapters/redis/store/store.h"
#include "core/text.h"

/* The list of topics, PREFIX:topics, which has a slot of its own. */

/* Somebody may have removed it; those of many topics not all at once. */
#define REGISTER_NS INT64_C(600000000000)
#define APART_NS    INT64_C(150000000)
#define LISTED_NS   INT64_C(500000000) /* not longer, it may be away */

static void add_to_list(struct weir__redis *store, struct weir_slice name,
                        struct weir__request *request)
{
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, 3);
    weir__resp_str(&bytes, "SADD");
    weir__topics_key(&bytes, store);
    weir__resp_bytes(&bytes, name);
    weir__place_send(store->topics_place, &bytes, NULL,
                     WEIR__SEND_AGAIN | WEIR__SEND_REPLAY, request);
}

void weir__redis_register(struct weir__redis *store, struct weir_slice name)
{
    add_to_list(store, name, NULL);
}

void weir__topic_unregister(struct weir__store_topic *topic,
                            struct weir__request *request)
{
    struct weir__redis *store = topic->store;
    struct weir__buf bytes = {0};

    topic->registered = 0;
    topic->listing.is_done = false;
    weir__resp_command(&bytes, 3);
    weir__resp_str(&bytes, "SREM");
    weir__topics_key(&bytes, store);
    weir__resp_str(&bytes, topic->name);
    weir__place_send(store->topics_place, &bytes, NULL, WEIR__SEND_AGAIN,
                     request);
    weir__place_flush(store->topics_place);
}

static void tell_listed(struct weir__listing *listing)
{
    struct weir__request *request;

    listing->is_done = true;
    while ((request = listing->waiting) != NULL) {
        listing->waiting = request->next;
        weir__redis_fail(request, WEIR_OK);
    }
}

/* However it ended: whoever waits need not. */
static void on_listed(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct weir__listing *listing = (struct weir__listing *)request; /* first */

    (void)code;
    (void)reply;
    listing->is_asked = false;
    tell_listed(listing);
    weir__topic_mark(listing->topic);
}

static void register_again(struct weir__store_topic *topic, int64_t now_ns)
{
    struct weir__redis *store = topic->store;
    struct weir__listing *listing = &topic->listing;
    bool is_first = !listing->is_asked && !listing->is_done;

    if (is_first) {
        listing->request.done = on_listed;
        listing->topic = topic;
        listing->is_asked = true;
        listing->asked_ns = now_ns;
    }
    topic->registered = store->topics_place->server->connection;
    topic->registered_ns = now_ns;
    add_to_list(store, weir__slice_str(topic->name),
                is_first ? &listing->request : NULL);
}

static bool is_to_register(const struct weir__store_topic *topic,
                           int64_t now_ns)
{
    struct weir__redis *store = topic->store;

    if (topic->registered != store->topics_place->server->connection)
        return true;
    if (now_ns - topic->registered_ns < REGISTER_NS ||
        now_ns < store->register_ns)
        return false;
    store->register_ns = now_ns + APART_NS;
    return true;
}

bool weir__topic_register(struct weir__store_topic *topic)
{
    const struct weir__place *list = topic->store->topics_place;
    int64_t now_ns = weir__redis_now_ns(topic->store);

    if (is_to_register(topic, now_ns))
        register_again(topic, now_ns);
    if (topic->listing.is_done || list->server == topic->place->server)
        return true; /* or in front of whatever comes */
    if (now_ns - topic->listing.asked_ns >= LISTED_NS)
        tell_listed(&topic->listing);
    else
        weir__topic_mark(topic);
    return topic->listing.is_done;
}

void weir__topic_await_listed(struct weir__store_topic *topic,
                              struct weir__request *request)
{
    struct weir__request **end = &topic->listing.waiting;

    if (weir__topic_register(topic)) {
        request->done(request, WEIR_OK, NULL);
        return;
    }
    while (*end != NULL)
        end = &(*end)->next;
    *end = request;
    request->next = NULL;
}

void weir__topic_flush_listed(struct weir__store_topic *topic)
{
    if (topic->listing.waiting != NULL)
        (void)weir__topic_register(topic); /* which tells them */
}
