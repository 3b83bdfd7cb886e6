/* SPDX-License-Identifier: MIT */
#include "adapters/weir/facade.h"

#include <string.h>

#include "adapters/redis/bounded/bounded.h"
#include "adapters/redis/classic/fifo.h"
#include "adapters/redis/delay/delay.h"
#include "adapters/redis/external/feed.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Kinds of topics, and the store that keeps each. A topic is of the first kind
 * unless it was declared. */

static const struct {
    const char *name;
    weir__store_open_fn open;
} kinds[] = {
    {"delay", weir__delay_open},           {"list", weir__list_open},
    {"stream", weir__stream_open},         {"sync", weir__sync_open},
    {"concurrent", weir__concurrent_open}, {"bounded", weir__bounded_open},
};
_Static_assert(sizeof(kinds) / sizeof(kinds[0]) == WEIR__KINDS,
               "a reactor has room for a store of each kind");
_Static_assert((int)WEIR__KINDS <= (int)WEIR__STORES_MAX,
               "core takes as many stores");

/* The host hears of the connection of the store that every reactor has. */
static void on_connection(int code, const char *text, void *arg)
{
    struct weir__kept *kept = arg;
    struct weir_reactor *reactor = kept->reactor;

    weir__reactor_connection(reactor->core, kept->store, code == WEIR_OK);
    if (reactor->on_connection != NULL && kept == &reactor->kept[0])
        reactor->on_connection(code, text, reactor->on_connection_arg);
}

static void on_dropped(const struct weir__dropped *dropped, void *arg)
{
    const struct weir__kept *kept = arg;
    const struct weir_reactor *reactor = kept->reactor;
    char topic[WEIR_MAX_TOPIC + 1], group[WEIR_MAX_ID + 1];

    if (reactor->drop_fn == NULL)
        return;
    WEIR_ASSERT(dropped->topic.len < sizeof(topic));
    WEIR_ASSERT(dropped->group.len < sizeof(group));
    memcpy(topic, dropped->topic.ptr, dropped->topic.len);
    topic[dropped->topic.len] = '\0';
    memcpy(group, dropped->group.ptr, dropped->group.len);
    group[dropped->group.len] = '\0';
    reactor->drop_fn(topic, group, dropped->reason, dropped->count,
                     reactor->drop_arg);
}

void weir_reactor_on_drop(struct weir_reactor *reactor, weir_drop_fn fn,
                          void *arg)
{
    reactor->drop_fn = fn;
    reactor->drop_arg = arg;
}

const char *weir_drop_name(enum weir_drop reason)
{
    static const char *const names[] = {"overflow", "age", "ttl"};

    WEIR_ASSERT((unsigned)reason < sizeof(names) / sizeof(names[0]));
    return names[reason];
}

struct weir__store *weir__facade_store(const struct weir_reactor *reactor)
{
    return reactor->kept[0].store;
}

int weir__facade_open_store(struct weir_reactor *reactor, unsigned kind)
{
    struct weir__kept *kept = &reactor->kept[kind];
    struct weir__store_events events = weir__lane_events();
    struct weir__redis_options options = {
        .loop = reactor->loop,
        .url = &reactor->url,
        .worker = reactor->name,
        .seed = reactor->seed + kind,
        .wait_ms = reactor->request_timeout_ms,
        .clock = weir__driver_clock,
        .log = &reactor->log,
        .events = &events,
        .arg = kept,
        .depth = &reactor->depth,
    };
    int rc;

    WEIR_ASSERT(kind < WEIR__KINDS);
    if (kept->store != NULL)
        return WEIR_OK;
    kept->reactor = reactor;
    events.connection = on_connection;
    events.dropped = on_dropped;
    rc = kinds[kind].open(&options, &kept->store);
    if (rc == WEIR_OK)
        weir__reactor_attach(reactor->core, kept->store);
    return rc;
}

void weir__facade_close_stores(struct weir_reactor *reactor)
{
    for (size_t i = 0; i < WEIR__KINDS; i++)
        if (reactor->kept[i].store != NULL)
            reactor->kept[i].store->ops->close(reactor->kept[i].store);
    while (reactor->declared != NULL) {
        struct weir__declared *declared = reactor->declared;

        reactor->declared = declared->next;
        weir__mem_free(declared);
    }
}

/* --- topics --------------------------------------------------------------- */

static struct weir__declared *find(const struct weir_reactor *reactor,
                                   const char *topic)
{
    struct weir__declared *declared = reactor->declared;

    while (declared != NULL && strcmp(declared->topic, topic) != 0)
        declared = declared->next;
    return declared;
}

static int find_kind(const char *name, unsigned *ret_kind,
                     struct weir_error *err)
{
    for (unsigned i = 0; i < WEIR__KINDS; i++) {
        if (strcmp(kinds[i].name, name) != 0)
            continue;
        *ret_kind = i;
        return WEIR_OK;
    }
    return weir__error_set(err, WEIR_EINVAL,
                           "kind: \"%.40s\" is not a kind that this version "
                           "of weir can work with",
                           name);
}

const char *weir__facade_kind_of(const struct weir_reactor *reactor,
                                 const struct weir__store *store)
{
    unsigned kind = 0;

    while (reactor->kept[kind].store != store) {
        kind++;
        WEIR_ASSERT(kind < WEIR__KINDS);
    }
    return kinds[kind].name;
}

static int note(struct weir_reactor *reactor, const char *topic, unsigned kind,
                struct weir_error *err)
{
    struct weir__declared *declared = weir__mem_new(sizeof(*declared));

    if (declared == NULL)
        return weir__error_set(err, WEIR_ENOMEM, "out of memory");
    declared->kind = kind;
    memcpy(declared->topic, topic, strlen(topic) + 1);
    declared->next = reactor->declared;
    reactor->declared = declared;
    return WEIR_OK;
}

void weir__facade_changed(struct weir_reactor *reactor, const char *topic,
                          const char *kind)
{
    struct weir__declared *declared = find(reactor, topic);
    unsigned number = 0;

    if (find_kind(kind, &number, NULL) < 0)
        return;
    if (declared != NULL)
        declared->kind = number;
    else if (number != 0)
        (void)note(reactor, topic, number, NULL); /* requests say EKIND else */
}

int weir__facade_declare(struct weir_reactor *reactor, const char *topic,
                         const char *kind, struct weir__store **ret_store,
                         struct weir_error *err)
{
    const struct weir__declared *declared = find(reactor, topic);
    unsigned number = declared == NULL ? 0 : declared->kind;
    int rc = WEIR_OK;

    if (kind != NULL)
        rc = find_kind(kind, &number, err);
    if (rc == WEIR_OK && declared != NULL && declared->kind != number)
        return weir__error_set(err, WEIR_EINVAL,
                               "topic %s was declared as of kind %s", topic,
                               kinds[declared->kind].name);
    if (rc == WEIR_OK && declared == NULL && number != 0)
        rc = note(reactor, topic, number, err);
    if (rc < 0)
        return rc;
    rc = weir__facade_open_store(reactor, number);
    if (rc < 0)
        return weir__error_set(err, rc, "%s", weir_error_text(rc));
    *ret_store = reactor->kept[number].store;
    return WEIR_OK;
}

static int open_topic(struct weir__store *store, const char *topic,
                      struct weir__place *ret_place, struct weir_error *err)
{
    struct weir__store_topic_options options = {
        .name = weir__slice_str(topic),
    };
    int rc = store->ops->topic_open(store, &options, &ret_place->topic);

    if (rc < 0)
        return weir__error_set(err, rc, "%s", weir_error_text(rc));
    ret_place->store = store;
    return WEIR_OK;
}

static int check_topic(const struct weir_reactor *reactor, const char *topic,
                       struct weir_error *err)
{
    if (reactor->is_freed)
        return weir__error_set(err, WEIR_ECANCELED, "%s",
                               weir_error_text(WEIR_ECANCELED));
    return weir__topic_check(weir__slice_str(topic), err);
}

int weir_reactor_declare(struct weir_reactor *reactor, const char *topic,
                         const char *kind, struct weir_error *err)
{
    struct weir__store *store;
    int rc = check_topic(reactor, topic, err);

    return rc < 0 ? rc
                  : weir__facade_declare(reactor, topic, kind, &store, err);
}

int weir__facade_place(struct weir_reactor *reactor, const char *topic,
                       struct weir__place *ret_place, struct weir_error *err)
{
    struct weir__store *store;
    int rc = check_topic(reactor, topic, err);

    if (rc == WEIR_OK)
        rc = weir__facade_declare(reactor, topic, NULL, &store, err);
    return rc < 0 ? rc : open_topic(store, topic, ret_place, err);
}

int weir__facade_common(struct weir_reactor *reactor, const char *topic,
                        struct weir__place *ret_place, struct weir_error *err)
{
    int rc = check_topic(reactor, topic, err);

    return rc < 0
               ? rc
               : open_topic(weir__facade_store(reactor), topic, ret_place, err);
}
