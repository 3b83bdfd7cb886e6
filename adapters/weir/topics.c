/* SPDX-License-Identifier: MIT */
#include "adapters/weir/facade.h"

#include <string.h>

#include "core/assert.h"
#include "core/text.h"

/* The store of a reactor, and the topics that a host names. */

static void on_connection(int code, const char *text, void *arg)
{
    struct weir_reactor *reactor = arg;

    weir__reactor_connection(reactor->core, code == WEIR_OK);
    if (reactor->on_connection != NULL)
        reactor->on_connection(code, text, reactor->on_connection_arg);
}

static void on_dropped(const struct weir__dropped *dropped, void *arg)
{
    const struct weir_reactor *reactor = arg;
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

int weir__facade_open_store(struct weir_reactor *reactor)
{
    struct weir__store_events events = weir__lane_events();
    struct weir__redis_options options = {
        .loop = reactor->loop,
        .url = &reactor->url,
        .worker = reactor->name,
        .seed = reactor->seed,
        .wait_ms = reactor->request_timeout_ms,
        .clock = weir__driver_clock,
        .log = &reactor->log,
        .blocked_log = &reactor->blocked_log,
        .events = &events,
        .arg = reactor,
        .depth = &reactor->depth,
    };
    int rc;

    events.connection = on_connection;
    events.dropped = on_dropped;
    rc = weir__redis_open(&options, &reactor->store);
    if (rc == WEIR_OK)
        weir__reactor_attach(reactor->core, reactor->store);
    return rc;
}

/* --- topics --------------------------------------------------------------- */

/* The first kind is that of topics that nobody declared. */
static int check_kind(const char *topic, const char *was, const char *kind,
                      struct weir_error *err)
{
    if (strcmp(was, kind) == 0 || strcmp(was, "delay") == 0)
        return WEIR_OK;
    return weir__error_set(err, WEIR_EINVAL,
                           "topic %s was declared as of kind %s", topic, was);
}

int weir__facade_open(struct weir_reactor *reactor, const char *topic,
                      const char *kind, struct weir__place *ret_place,
                      struct weir_error *err)
{
    struct weir__store_topic_options options = {
        .name = weir__slice_str(topic),
    };
    const struct weir__store_ops *ops;
    int rc = weir__topic_check(options.name, err);

    if (rc < 0)
        return rc;
    if (reactor->is_freed)
        return weir__error_set(err, WEIR_ECANCELED, "%s",
                               weir_error_text(WEIR_ECANCELED));
    ops = reactor->store->ops;
    ret_place->store = reactor->store;
    rc = ops->topic_open(reactor->store, &options, &ret_place->topic);
    if (rc == WEIR_OK && kind != NULL) {
        rc = check_kind(topic, ops->kind_name(ret_place->topic), kind, err);
        if (rc < 0)
            return rc;
        options.kind = kind;
        rc = ops->topic_open(reactor->store, &options, &ret_place->topic);
    }
    if (rc == WEIR_EINVAL)
        return weir__error_set(err, rc,
                               "kind: \"%.40s\" is not a kind that this "
                               "version of weir can work with",
                               kind);
    if (rc < 0)
        return weir__error_set(err, rc, "%s", weir_error_text(rc));
    return WEIR_OK;
}

void weir__facade_changed(struct weir_reactor *reactor, const char *topic,
                          const char *kind)
{
    struct weir__store_topic_options options = {
        .name = weir__slice_str(topic),
        .kind = kind,
    };
    struct weir__store_topic *unused;

    (void)reactor->store->ops->topic_open(reactor->store, &options,
                                          &unused); /* else EKIND is told */
}

int weir_reactor_declare(struct weir_reactor *reactor, const char *topic,
                         const char *kind, struct weir_error *err)
{
    struct weir__place place;

    return weir__facade_open(reactor, topic, kind, &place, err);
}
