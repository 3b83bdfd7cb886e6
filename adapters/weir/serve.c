/* SPDX-License-Identifier: MIT */
#include "adapters/weir/facade.h"

#include <stdio.h>
#include <string.h>

#include "core/ladder.h"
#include "core/mem.h"
#include "core/option.h"
#include "core/text.h"

/* Serving a topic: defaults, bounds, and the handler's origin. */

struct bound {
    const char *name;
    int64_t value; /* 0: not given */
    int64_t min;
    int64_t max;
};

static int check_bounds(const struct weir_topic_options *options,
                        struct weir_error *err)
{
    const struct bound bounds[] = {
        {"retry_jitter", options->retry_jitter, 0, 50},
        {"concurrency", options->concurrency, 1, 100000},
        {"prefetch", options->prefetch, 0, 100000},
        {"weight", options->weight, 1, 1000},
        {"lease_ms", options->lease_ms, 300, WEIR__HOUR_MS},
        {"max_dead", options->max_dead, 1, UINT32_MAX},
        {"ttl_ms", options->ttl_ms, 1, 3650 * WEIR__DAY_MS},
        {"timeout_ms", options->timeout_ms, 10, 7 * WEIR__DAY_MS},
        {"max_crashes", options->max_crashes, 1, 100},
        {"delay_ms", options->delay_ms, 0, 365 * WEIR__DAY_MS},
        {"consumers", options->consumers, 1, 1000},
        {"claim_idle_ms", options->claim_idle_ms, 1, 7 * WEIR__DAY_MS},
        {"batch", options->batch, 1, 1000},
        {"length", options->length, 1, 1000000},
        {"max_age_ms", options->max_age_ms, 1, 3650 * WEIR__DAY_MS},
        {"group_ttl_ms", options->group_ttl_ms, 1000, 365 * WEIR__DAY_MS},
        {"linger_ms", options->linger_ms, 0, WEIR__HOUR_MS},
    };

    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        const struct bound *bound = &bounds[i];

        if (bound->value != 0 &&
            (bound->value < bound->min || bound->value > bound->max))
            return weir__error_set(
                err, WEIR_EINVAL, "%s is %lld: wanted %lld to %lld",
                bound->name, (long long)bound->value, (long long)bound->min,
                (long long)bound->max);
    }
    return WEIR_OK;
}

static uint32_t or_default(uint32_t value, uint32_t fallback)
{
    return value == 0 ? fallback : value;
}

static int check_on_dead(const char *topic, const char *on_dead,
                         struct weir_error *err)
{
    if (strcmp(topic, on_dead) == 0)
        return weir__error_set(err, WEIR_EINVAL,
                               "on_dead: \"%s\" is this topic itself", topic);
    return weir__topic_check(weir__slice_str(on_dead), err);
}

/* Options that topics of the kind do not have. */
static int check_fit(const struct weir_topic_options *options, const char *kind,
                     struct weir_error *err)
{
    const struct {
        enum weir__topic_option option;
        bool is_given;
    } given[] = {
        {WEIR__TOPIC_retry, options->retry != NULL},
        {WEIR__TOPIC_retry_jitter, options->retry_jitter != 0},
        {WEIR__TOPIC_prefetch, options->has_prefetch},
        {WEIR__TOPIC_max_crashes, options->max_crashes != 0},
        {WEIR__TOPIC_ttl, options->ttl_ms != 0},
        {WEIR__TOPIC_max_dead, options->max_dead != 0},
        {WEIR__TOPIC_on_dead, options->on_dead != NULL},
        {WEIR__TOPIC_delay, options->has_delay},
        {WEIR__TOPIC_consumers, options->consumers != 0},
        {WEIR__TOPIC_lock, options->lock != NULL},
        {WEIR__TOPIC_auto_ack, options->auto_ack != NULL},
        {WEIR__TOPIC_parking, options->parking != NULL},
        {WEIR__TOPIC_key, options->key != NULL},
        {WEIR__TOPIC_group, options->group != NULL},
        {WEIR__TOPIC_on_retry, options->on_retry != NULL},
        {WEIR__TOPIC_start, options->start != NULL},
        {WEIR__TOPIC_after, options->after != NULL},
        {WEIR__TOPIC_claim_idle, options->claim_idle_ms != 0},
        {WEIR__TOPIC_length, options->length != 0},
        {WEIR__TOPIC_overflow, options->overflow != NULL},
        {WEIR__TOPIC_max_age, options->max_age_ms != 0},
        {WEIR__TOPIC_group_ttl, options->group_ttl_ms != 0},
        {WEIR__TOPIC_linger, options->linger_ms != 0},
        {WEIR__TOPIC_hot, options->hot_count != 0},
    };

    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        int rc = given[i].is_given
                     ? weir__topic_option_fits(given[i].option, kind, err)
                     : WEIR_OK;

        if (rc < 0)
            return rc;
    }
    return options->is_unleased ? weir__topic_unleased_fits(kind, err)
                                : WEIR_OK;
}

/* NULL: the default. */
static int read_word(enum weir__topic_option option, const char *text,
                     bool *ret_is, struct weir_error *err)
{
    const struct weir__option *row = &weir__topic_options[option];
    int64_t value = row->fallback;
    int rc = WEIR_OK;

    if (text != NULL)
        rc = weir__option_read(row, text, &value, err);
    *ret_is = value != 0;
    return rc;
}

static int fill_fifo(const struct weir_topic_options *options,
                     struct weir__fifo_options *ret_fifo,
                     struct weir_error *err)
{
    int rc;

    ret_fifo->delay_ms = options->has_delay ? options->delay_ms : -1;
    ret_fifo->consumers = options->consumers == 0 ? 1 : options->consumers;
    rc = read_word(WEIR__TOPIC_lock, options->lock, &ret_fifo->is_locked, err);
    if (rc == WEIR_OK)
        rc = read_word(WEIR__TOPIC_auto_ack, options->auto_ack,
                       &ret_fifo->is_auto_ack, err);
    if (rc == WEIR_OK)
        rc = read_word(WEIR__TOPIC_parking, options->parking,
                       &ret_fifo->is_two_step, err);
    return rc;
}

static int append_hot(char hot[WEIR__HOT_MAX + 1], const char *pattern,
                      struct weir_error *err)
{
    size_t used = strlen(hot), len = strlen(pattern);
    int rc =
        weir__option_check(&weir__topic_options[WEIR__TOPIC_hot], pattern, err);

    if (rc < 0)
        return rc;
    if (used + len + 1 > WEIR__HOT_MAX)
        return weir__error_set(err, WEIR_EINVAL,
                               "hot: more than %d bytes of patterns",
                               WEIR__HOT_MAX);
    if (used > 0)
        hot[used++] = ' ';
    memcpy(hot + used, pattern, len + 1);
    return WEIR_OK;
}

static int fill_bounded(const struct weir_topic_options *options,
                        struct weir__lane_options *ret_lane,
                        struct weir_error *err)
{
    struct weir__bounded_options *bounded = &ret_lane->bounded;
    int64_t overflow = 0;
    int rc = WEIR_OK;

    bounded->length = or_default(options->length, 1000);
    bounded->linger_ms = options->linger_ms;
    bounded->group_ttl_ms = options->group_ttl_ms;
    bounded->is_unleased = options->is_unleased;
    if (options->max_age_ms > 0)
        ret_lane->ttl_ms = options->max_age_ms;
    if (options->overflow != NULL)
        rc = weir__option_read(&weir__topic_options[WEIR__TOPIC_overflow],
                               options->overflow, &overflow, err);
    bounded->overflow = (enum weir__overflow)overflow;
    for (size_t i = 0; i < options->hot_count && rc == WEIR_OK; i++)
        rc = append_hot(bounded->hot, options->hot[i], err);
    return rc;
}

static int fill_lane(const char *topic,
                     const struct weir_topic_options *options,
                     struct weir__lane_options *ret_lane,
                     struct weir_error *err)
{
    const char *ladder =
        options->retry == NULL ? WEIR__LADDER_DEFAULT : options->retry;
    int rc;

    *ret_lane = (struct weir__lane_options){
        .name = weir__slice_str(topic),
        .run = options->run,
        .blocks = options->blocking,
        .run_batch = options->run_batch,
        .batch = or_default(options->batch, 128),
        .self = options->self,
        .retry_jitter = options->retry_jitter,
        .concurrency = or_default(options->concurrency, 256),
        .prefetch = options->prefetch,
        .has_prefetch = options->has_prefetch,
        .weight = or_default(options->weight, 1),
        .lease_ms = options->lease_ms == 0 ? 5000 : options->lease_ms,
        .max_dead = or_default(options->max_dead, 10000),
        .ttl_ms = options->ttl_ms,
        .timeout_ms = options->timeout_ms == 0 ? 30000 : options->timeout_ms,
        .max_crashes = or_default(options->max_crashes, 3),
    };
    if (options->on_dead != NULL) {
        rc = check_on_dead(topic, options->on_dead, err);
        if (rc < 0)
            return rc;
        memcpy(ret_lane->on_dead, options->on_dead, strlen(options->on_dead));
    }
    rc = fill_fifo(options, &ret_lane->fifo, err);
    if (rc == WEIR_OK)
        rc = weir__facade_feed(topic, options, &ret_lane->feed, err);
    if (rc == WEIR_OK)
        rc = fill_bounded(options, ret_lane, err);
    if (rc < 0)
        return rc;
    return weir__ladder_parse(weir__slice_str(ladder), &ret_lane->ladder, err);
}

int weir__facade_lane(const char *topic,
                      const struct weir_topic_options *options,
                      struct weir__lane_options *ret_lane,
                      struct weir_error *err)
{
    int rc = weir__topic_check(weir__slice_str(topic), err);

    if (rc == WEIR_OK)
        rc = check_bounds(options, err);
    return rc < 0 ? rc : fill_lane(topic, options, ret_lane, err);
}

void weir__facade_close_plugin(struct weir__bound_plugin *bound)
{
    if (bound == NULL)
        return;
    weir__instance_close(&bound->instance);
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
    };
    struct weir__instance_options instance = {
        .topic = topic,
        .options = options->plugin_options,
        .option_count = options->plugin_option_count,
        .host = &weir__host,
        .self = options->table == NULL ? NULL : options->self,
    };
    int rc = find_plugin(options, topic, &bound->file, err);

    if (rc < 0)
        return rc;
    share.plugin = bound->file.copy.name;
    rc = weir__ev_loop_open(&share, &bound->loop);
    if (rc < 0)
        return weir__error_set(err, rc, "%s", weir_error_text(rc));
    instance.loop = bound->loop;
    return weir__instance_open(&bound->file, &instance, &bound->instance, err);
}

/* Exactly one of function, plugin and table. */
static int check_handler(const char *topic,
                         const struct weir_topic_options *options,
                         struct weir_error *err)
{
    if ((options->run != NULL || options->run_batch != NULL) +
            (options->plugin != NULL) + (options->table != NULL) !=
        1)
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

static int serve_lane(struct weir_reactor *reactor,
                      const struct weir__lane_options *lane, const char *topic,
                      struct weir_error *err)
{
    int rc = weir__reactor_serve(reactor->core, lane);

    if (rc == WEIR_EEXISTS)
        return weir__error_set(err, rc, "topic %s is served already", topic);
    if (rc < 0)
        return weir__error_set(err, rc, "topic %s: %s", topic,
                               weir_error_text(rc));
    return WEIR_OK;
}

static int serve_plugin(struct weir_reactor *reactor,
                        const struct weir_topic_options *options,
                        const char *topic, struct weir__lane_options *lane,
                        struct weir_error *err)
{
    struct weir__bound_plugin *bound = weir__mem_new(sizeof(*bound));
    int rc;

    if (bound == NULL)
        return weir__error_set(err, WEIR_ENOMEM, "out of memory");
    rc = open_plugin(reactor, topic, options, bound, err);
    if (rc < 0)
        goto fail;
    lane->run = bound->file.copy.run;
    lane->run_batch = bound->file.copy.run_batch;
    lane->flush = bound->file.copy.flush;
    lane->blocks = (bound->file.copy.flags & WEIR_PLUGIN_BLOCKING) != 0;
    lane->self = bound->instance.self;
    rc = serve_lane(reactor, lane, topic, err);
    if (rc < 0)
        goto fail;
    bound->next = reactor->plugins;
    reactor->plugins = bound;
    return WEIR_OK;
fail:
    weir__facade_close_plugin(bound);
    return rc;
}

/* Where a kind has no ladder every retry is as good as the first. */
static int fit_lane(const struct weir_reactor *reactor,
                    const struct weir_topic_options *options,
                    struct weir__lane_options *lane, struct weir_error *err)
{
    const char *kind = weir__facade_kind_of(reactor, lane->store);

    if (weir__topic_option_fits(WEIR__TOPIC_retry, kind, NULL) < 0)
        (void)weir__ladder_parse(weir__slice_str("1s ..."), &lane->ladder,
                                 NULL); /* it is one */
    return check_fit(options, kind, err);
}

int weir_reactor_serve(struct weir_reactor *reactor, const char *topic,
                       const struct weir_topic_options *options,
                       struct weir_error *err)
{
    struct weir__lane_options lane;
    int rc;

    if (reactor->is_freed)
        return weir__error_set(err, WEIR_ECANCELED, "%s",
                               weir_error_text(WEIR_ECANCELED));
    rc = weir__facade_lane(topic, options, &lane, err);
    if (rc == WEIR_OK)
        rc = check_handler(topic, options, err);
    if (rc < 0)
        return rc;
    rc = weir__facade_declare(reactor, topic, options->kind, &lane.store, err);
    if (rc == WEIR_OK)
        rc = fit_lane(reactor, options, &lane, err);
    if (rc < 0)
        return rc;
    if (options->plugin != NULL || options->table != NULL)
        return serve_plugin(reactor, options, topic, &lane, err);
    return serve_lane(reactor, &lane, topic, err);
}
