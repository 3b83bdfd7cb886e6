/* SPDX-License-Identifier: MIT */
#include "adapters/weir/facade.h"

#include <stdio.h>
#include <string.h>

#include "core/assert.h"
#include "core/call.h"
#include "core/mem.h"
#include "core/text.h"

/* Serving a topic: its options, and where the handler comes from. */

/* All but what the kind says. */
int weir__facade_lane(const char *topic,
                      const struct weir_topic_options *options,
                      struct weir__lane_options *ret_lane,
                      struct weir_error *err)
{
    struct weir__options *values = &ret_lane->options;
    int rc = weir__topic_check(weir__slice_str(topic), err);

    if (rc < 0)
        return rc;
    if (options->options[WEIR_MAX_OPTIONS - 1] != NULL)
        return weir__error_set(err, WEIR_EINVAL,
                               "topic %s: %d options or more: write up to %d",
                               topic, WEIR_MAX_OPTIONS, WEIR_MAX_OPTIONS - 1);
    *ret_lane = (struct weir__lane_options){
        .name = weir__slice_str(topic),
        .run = options->run,
        .run_batch = options->run_batch,
        .self = options->self,
        .blocks = options->blocking,
    };
    weir__options_init(values);
    rc = weir__options_read(values, topic, options->options, err);
    if (rc == WEIR_OK)
        rc = weir__options_pin(values, topic, options->overrides, err);
    return rc;
}

void weir__facade_close_plugin(struct weir_reactor *reactor,
                               struct weir__bound_plugin *bound)
{
    struct weir__call call = {.what = "the close",
                              .handler = bound->file.copy.name};

    weir__call_begin(reactor->store, &call);
    reactor->calling = bound->loop;
    weir__instance_close(&bound->instance);
    reactor->calling = NULL;
    (void)weir__call_end(reactor->store, &call); /* has no run */
    weir__ev_loop_close(bound->loop);
    weir__mem_free(bound);
}

static int find_plugin(const struct weir_topic_options *options,
                       const char *topic, struct weir__plugin_file *ret_file,
                       struct weir_error *err)
{
    char name[sizeof("the table of topic ") + WEIR_MAX_TOPIC];

    if (options->table == NULL)
        return weir__plugin_load(options->plugin, ret_file, err);
    (void)snprintf(name, sizeof(name), "the table of topic %s", topic);
    return weir__plugin_check(options->table, name, ret_file, err); /* fits */
}

static int open_plugin(struct weir_reactor *reactor, const char *topic,
                       const struct weir_topic_options *options,
                       struct weir__bound_plugin *bound, struct weir_error *err)
{
    struct weir__ev_loop_options share = {
        .loop = reactor->loop,
        .topic = topic,
        .log = &reactor->log,
        .depth = &reactor->depth,
        .store = &reactor->store,
        .calling = &reactor->calling,
    };
    struct weir__instance_options instance = {
        .topic = topic,
        .options = options->plugin_options,
        .option_count = options->plugin_option_count,
        .host = &weir__host,
        .self = options->table == NULL ? NULL : options->self,
    };
    struct weir__call call = {.what = "the open", .topic = topic};
    int rc = find_plugin(options, topic, &bound->file, err);

    if (rc < 0)
        return rc;
    share.plugin = bound->file.copy.name;
    rc = weir__ev_loop_open(&share, &bound->loop);
    if (rc < 0)
        return weir__error_code(err, rc);
    instance.loop = bound->loop;
    weir__facade_redis(&bound->source, reactor, bound->loop);
    instance.redis = &bound->source.port;
    call.handler = bound->file.copy.name;
    weir__call_begin(reactor->store, &call);
    reactor->calling = bound->loop;
    rc = weir__instance_open(&bound->file, &instance, &bound->instance, err);
    reactor->calling = NULL;
    (void)weir__call_end(reactor->store, &call); /* has no run */
    return rc;
}

/* Exactly one of function, plugin and table; or none. */
static int check_handler(const char *topic,
                         const struct weir_topic_options *options,
                         bool may_keep, struct weir_error *err)
{
    int count = (options->run != NULL || options->run_batch != NULL) +
                (options->plugin != NULL) + (options->table != NULL);

    if (count != 1 && (count != 0 || !may_keep))
        return weir__error_set(err, WEIR_EINVAL,
                               "topic %s: give it one of a function, a "
                               "plugin, a table",
                               topic);
    if (options->blocking && options->run == NULL && options->run_batch != NULL)
        return weir__error_set(err, WEIR_EINVAL,
                               "topic %s: a handler of many jobs cannot block",
                               topic);
    if (options->blocking && options->run == NULL)
        return weir__error_set(err, WEIR_EINVAL,
                               "topic %s: blocking is for functions; a plugin "
                               "says it itself",
                               topic);
    return WEIR_OK;
}

/* Jobs that are out belong to a topic of their kind. */
static int check_stays(const struct weir_reactor *reactor, const char *topic,
                       const char *kind, struct weir_error *err)
{
    struct weir__store_topic *handle;
    const char *was;
    int rc;

    if (kind == NULL ||
        !weir__reactor_holds(reactor->core, weir__slice_str(topic)))
        return WEIR_OK;
    rc = weir__facade_open((struct weir_reactor *)(uintptr_t)reactor, topic,
                           NULL, &handle, err);
    if (rc < 0)
        return rc;
    was = reactor->store->ops->kind_name(handle);
    if (strcmp(was, kind) == 0)
        return WEIR_OK;
    return weir__error_set(err, WEIR_EINVAL,
                           "kind: topic %s is served as one of kind %s, which "
                           "cannot change meanwhile",
                           topic, was);
}

/* Open the topic; do the options fit its kind? Where a kind has no ladder every
 * retry is as good as the first. */
static int place_lane(struct weir_reactor *reactor, const char *topic,
                      struct weir__lane_options *lane, const char **ret_was,
                      struct weir_error *err)
{
    struct weir__options *options = &lane->options;
    const char *kind = options->kind[0] == '\0' ? NULL : options->kind;
    struct weir__store_topic *handle;
    int rc = check_stays(reactor, topic, kind, err);

    if (rc == WEIR_OK)
        rc = weir__facade_open(reactor, topic, NULL, &handle, err);
    if (rc == WEIR_OK) {
        *ret_was = reactor->store->ops->kind_name(handle);
        rc = weir__facade_open(reactor, topic, kind, &handle, err);
    }
    if (rc < 0)
        return rc;
    kind = reactor->store->ops->kind_name(handle);
    if (weir__topic_option_fits(WEIR__TOPIC_retry, kind, NULL) < 0)
        (void)weir__ladder_parse(weir__slice_str("1s ..."), &options->retry,
                                 NULL); /* it is one */
    return weir__options_fit(options, kind, err);
}

/* A topic is of the kind that it is opened with last; nothing is allocated for
 * one that it was of. `was` may be NULL. */
static void open_as_before(const struct weir_reactor *reactor,
                           const char *topic, const char *was)
{
    const struct weir__store_topic_options options = {
        .name = weir__slice_str(topic),
        .kind = was,
    };
    struct weir__store_topic *handle;

    if (was != NULL &&
        reactor->store->ops->topic_open(reactor->store, &options, &handle) < 0)
        WEIR_UNREACHABLE("an open topic could not be opened");
}

static int bind_plugin(struct weir_reactor *reactor,
                       const struct weir_topic_options *options,
                       const char *topic, struct weir__lane_options *lane,
                       struct weir_error *err)
{
    struct weir__bound_plugin *bound = weir__mem_new(sizeof(*bound));
    int rc;

    if (bound == NULL)
        return weir__error_code(err, WEIR_ENOMEM);
    rc = open_plugin(reactor, topic, options, bound, err);
    if (rc < 0) {
        weir__facade_close_plugin(reactor, bound);
        return rc;
    }
    lane->run = bound->file.copy.run;
    lane->run_batch = bound->file.copy.run_batch;
    lane->flush = bound->file.copy.flush;
    lane->blocks = (bound->file.copy.flags & WEIR_PLUGIN_BLOCKING) != 0;
    lane->self = bound->instance.self;
    lane->limit = bound->instance.limit;
    lane->owner = bound;
    lane->handler = bound->file.copy.name;
    return WEIR_OK;
}

static int plan(struct weir_reactor *reactor, const char *topic,
                const struct weir__lane_options *lane,
                struct weir__plan **ret_plan, struct weir_error *err)
{
    int rc = weir__reactor_plan(reactor->core, lane, ret_plan);

    if (rc == WEIR_ENOTFOUND)
        return weir__error_set(err, rc,
                               "topic %s is not served: give it one of a "
                               "function, a plugin, a table",
                               topic);
    if (rc < 0)
        return weir__error_set(err, rc, "topic %s: %s", topic,
                               weir_error_text(rc));
    return WEIR_OK;
}

int weir__facade_prepare(struct weir_reactor *reactor, const char *topic,
                         const struct weir_topic_options *options,
                         bool may_keep, struct weir__prepared *ret_prepared,
                         struct weir_error *err)
{
    struct weir__lane_options lane;
    const char *was = NULL;
    int rc;

    rc = weir__facade_lane(topic, options, &lane, err);
    if (rc == WEIR_OK)
        rc = check_handler(topic, options, may_keep, err);
    if (rc == WEIR_OK)
        rc = place_lane(reactor, topic, &lane, &was, err);
    if (rc == WEIR_OK && (options->plugin != NULL || options->table != NULL))
        rc = bind_plugin(reactor, options, topic, &lane, err);
    if (rc < 0) {
        open_as_before(reactor, topic, was);
        return rc;
    }
    ret_prepared->topic = topic;
    ret_prepared->was = was;
    ret_prepared->bound = lane.owner;
    rc = plan(reactor, topic, &lane, &ret_prepared->plan, err);
    if (rc < 0) {
        weir__facade_cancel(reactor, ret_prepared);
        *ret_prepared = (struct weir__prepared){0};
    }
    return rc;
}

void weir__facade_commit(struct weir_reactor *reactor,
                         const struct weir__prepared *prepared)
{
    weir__plan_commit(prepared->plan);
    if (prepared->bound == NULL)
        return;
    prepared->bound->next = reactor->plugins;
    reactor->plugins = prepared->bound;
}

void weir__facade_cancel(struct weir_reactor *reactor,
                         const struct weir__prepared *prepared)
{
    weir__plan_drop(prepared->plan);
    open_as_before(reactor, prepared->topic, prepared->was);
    if (prepared->bound != NULL)
        weir__facade_close_plugin(reactor, prepared->bound);
}

int weir__facade_serve(struct weir_reactor *reactor, const char *topic,
                       const struct weir_topic_options *options,
                       const size_t *wanted, struct weir_error *err)
{
    struct weir__prepared prepared = {0};
    int rc =
        weir__facade_prepare(reactor, topic, options, false, &prepared, err);

    if (rc < 0)
        return rc;
    rc = weir__plan_check_on_dead(prepared.plan, NULL, NULL, err);
    if (rc < 0) {
        weir__facade_cancel(reactor, &prepared);
        return rc;
    }
    weir__plan_want(prepared.plan, wanted);
    weir__facade_commit(reactor, &prepared);
    return WEIR_OK;
}

int weir_reactor_serve(struct weir_reactor *reactor, const char *topic,
                       const struct weir_topic_options *options,
                       struct weir_error *err)
{
    int rc = weir__facade_check_thread(reactor, err);

    if (rc < 0)
        return rc;
    if (reactor->is_freed)
        return weir__error_code(err, WEIR_ECANCELED);
    rc = weir__topic_check(weir__slice_str(topic), err);
    if (rc == WEIR_OK)
        rc = weir__takes_check(reactor, topic, err);
    if (rc < 0)
        return rc;
    if (weir__reactor_serves(reactor->core, weir__slice_str(topic)))
        return weir__error_set(err, WEIR_EEXISTS, "topic %s is served already",
                               topic);
    return weir__facade_serve(reactor, topic, options, NULL, err);
}
