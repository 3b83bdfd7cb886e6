/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/assert.h"
#include "core/lane.h"
#include "core/mem.h"
#include "core/option.h"
#include "core/text.h"

/* What is stored with a topic beats what its worker was configured with; what
 * a job brings along beats both, where the job is handled. */

static struct weir__lane_shared *
shared_new(const struct weir__lane_options *options)
{
    struct weir__lane_shared *shared = weir__mem_new(sizeof(*shared));

    if (shared == NULL)
        return NULL;
    shared->refs = 1;
    shared->options = *options;
    shared->options.name = (struct weir_slice){0};
    shared->options.store = NULL;
    shared->options.handler = NULL;
    shared->options.self = NULL;
    return shared;
}

static void shared_unref(struct weir__lane_shared *shared)
{
    if (shared == NULL || --shared->refs > 0)
        return;
    weir__mem_free(shared);
}

/* Shares the options of the lane served last where they are the same. (Bytes
 * between members may differ; that costs memory only.) */
int weir__lane_take_options(struct weir__lane *lane,
                            const struct weir__lane_options *options)
{
    const struct weir__lane *last = lane->reactor->lanes;
    struct weir__lane_shared *own = shared_new(options);

    if (own == NULL)
        return WEIR_ENOMEM;
    if (last != NULL &&
        memcmp(&last->own->options, &own->options, sizeof(own->options)) == 0) {
        shared_unref(own);
        own = last->own;
        own->refs++;
    }
    lane->own = own;
    lane->options = &own->options;
    lane->handler = options->handler;
    lane->self = options->self;
    return WEIR_OK;
}

void weir__lane_drop_options(struct weir__lane *lane)
{
    shared_unref(lane->own);
    shared_unref(lane->set);
}

int weir__lane_open_topic(struct weir__lane *lane)
{
    struct weir__store *store = lane->store;
    struct weir__store_topic_options options = {
        .name = weir__slice_str(lane->name),
        .max_dead = lane->options->max_dead,
        .on_dead = weir__slice_str(lane->options->on_dead),
        .fifo = lane->options->fifo,
        .feed = lane->options->feed,
        .bounded = lane->options->bounded,
    };

    options.fifo.lease_ms = lane->options->lease_ms;
    options.bounded.batch = lane->options->batch;
    if (strcmp(lane->options->on_dead, lane->name) == 0)
        options.on_dead = (struct weir_slice){0}; /* it is its own */
    return store->ops->topic_open(store, &options, &lane->topic);
}

/* The text was checked: it fits. The option's word stands for none. */
static void copy_text(char *to, enum weir__topic_option option,
                      const char *text)
{
    const char *none = weir__topic_options[option].word;

    if (none != NULL && strcmp(text, none) == 0)
        text = "";
    memcpy(to, text, strlen(text) + 1);
}

static void take_text(struct weir__lane_options *options,
                      enum weir__topic_option option, const char *text)
{
    struct weir__ladder ladder;

    if (option == WEIR__TOPIC_retry &&
        weir__ladder_parse(weir__slice_str(text), &ladder, NULL) == WEIR_OK)
        options->ladder = ladder;
    if (option == WEIR__TOPIC_on_dead)
        copy_text(options->on_dead, option, text);
    if (option == WEIR__TOPIC_on_retry)
        copy_text(options->feed.on_retry, option, text);
    if (option == WEIR__TOPIC_key)
        copy_text(options->feed.key, option, text);
    if (option == WEIR__TOPIC_group)
        copy_text(options->feed.group, option, text);
    if (option == WEIR__TOPIC_hot)
        copy_text(options->bounded.hot, option, text);
}

static void take_feed(struct weir__feed_options *feed,
                      enum weir__topic_option option, int64_t value)
{
    if (option == WEIR__TOPIC_auto_ack)
        feed->is_auto_ack = value != 0;
    if (option == WEIR__TOPIC_start)
        feed->starts_at_end = value != 0;
    if (option == WEIR__TOPIC_after)
        feed->is_deleting = value != 0;
    if (option == WEIR__TOPIC_claim_idle)
        feed->claim_idle_ms = value;
}

static void take_fifo(struct weir__fifo_options *fifo,
                      enum weir__topic_option option, int64_t value)
{
    if (option == WEIR__TOPIC_delay)
        fifo->delay_ms = value;
    if (option == WEIR__TOPIC_consumers)
        fifo->consumers = (uint32_t)value;
    if (option == WEIR__TOPIC_lock)
        fifo->is_locked = value != 0;
    if (option == WEIR__TOPIC_parking)
        fifo->is_two_step = value != 0;
    if (option == WEIR__TOPIC_auto_ack)
        fifo->is_auto_ack = value != 0;
}

static void take_bounded(struct weir__bounded_options *bounded,
                         enum weir__topic_option option, int64_t value)
{
    if (option == WEIR__TOPIC_length)
        bounded->length = (uint32_t)value;
    if (option == WEIR__TOPIC_overflow)
        bounded->overflow = (enum weir__overflow)value;
    if (option == WEIR__TOPIC_group_ttl)
        bounded->group_ttl_ms = value == WEIR__OPTION_NONE ? 0 : value;
    if (option == WEIR__TOPIC_linger)
        bounded->linger_ms = value;
}

static void take_lease(struct weir__lane_options *options, int64_t value)
{
    options->bounded.is_unleased = value == WEIR__OPTION_NONE;
    if (value != WEIR__OPTION_NONE)
        options->lease_ms = value;
}

/* The value is within the option's bounds. */
static void take_number(struct weir__lane_options *options,
                        enum weir__topic_option option, int64_t value)
{
    switch (option) {
    case WEIR__TOPIC_retry_jitter:
        options->retry_jitter = (uint32_t)value;
        break;
    case WEIR__TOPIC_concurrency:
        options->concurrency = (uint32_t)value;
        break;
    case WEIR__TOPIC_prefetch:
        options->has_prefetch = value != WEIR__OPTION_AUTO;
        options->prefetch = options->has_prefetch ? (uint32_t)value : 0;
        break;
    case WEIR__TOPIC_weight:
        options->weight = (uint32_t)value;
        break;
    case WEIR__TOPIC_timeout:
        options->timeout_ms = value;
        break;
    case WEIR__TOPIC_lease:
        take_lease(options, value);
        break;
    case WEIR__TOPIC_max_crashes:
        options->max_crashes = (uint32_t)value;
        break;
    case WEIR__TOPIC_ttl:
    case WEIR__TOPIC_max_age:
        options->ttl_ms = value == WEIR__OPTION_NONE ? 0 : value;
        break;
    case WEIR__TOPIC_max_dead:
        options->max_dead = (uint32_t)value;
        break;
    case WEIR__TOPIC_delay:
    case WEIR__TOPIC_consumers:
    case WEIR__TOPIC_lock:
    case WEIR__TOPIC_parking:
    case WEIR__TOPIC_auto_ack:
        take_fifo(&options->fifo, option, value);
        take_feed(&options->feed, option, value);
        break;
    case WEIR__TOPIC_start:
    case WEIR__TOPIC_after:
    case WEIR__TOPIC_claim_idle:
        take_feed(&options->feed, option, value);
        break;
    case WEIR__TOPIC_length:
    case WEIR__TOPIC_overflow:
    case WEIR__TOPIC_group_ttl:
    case WEIR__TOPIC_linger:
        take_bounded(&options->bounded, option, value);
        break;
    case WEIR__TOPIC_batch:
        options->batch = (uint32_t)value;
        break;
    case WEIR__TOPIC_kind:
    case WEIR__TOPIC_handler:
    case WEIR__TOPIC_options:
    case WEIR__TOPIC_retry:
    case WEIR__TOPIC_on_dead:
    case WEIR__TOPIC_on_retry:
    case WEIR__TOPIC_key:
    case WEIR__TOPIC_group:
    case WEIR__TOPIC_hot:
    case WEIR__TOPIC_max_body:
    case WEIR__TOPIC_max_pending:
    case WEIR__TOPIC_OPTIONS:
        break; /* texts, and what concerns those who add jobs */
    }
}

/* A later version may know more options than this one. */
static void take(const struct weir__lane *lane,
                 const struct weir__setting *setting,
                 struct weir__lane_options *options)
{
    const struct weir__log *log = lane->reactor->options.log;
    const char *text = (const char *)setting->value.ptr;
    enum weir__topic_option option = weir__topic_option_find(setting->name);
    struct weir_error err = {0};
    int64_t value;

    if (option == WEIR__TOPIC_OPTIONS) {
        weir__log(log, WEIR_LEVEL_WARN,
                  "%s: the stored option %.*s is not known here and ignored",
                  lane->name, (int)setting->name.len,
                  (const char *)setting->name.ptr);
        return;
    }
    if (weir__option_read(&weir__topic_options[option], text, &value, &err) <
        0) {
        weir__log(log, WEIR_LEVEL_WARN, "%s: a stored option is ignored: %s",
                  lane->name, err.text);
        return;
    }
    if (weir__option_is_number(&weir__topic_options[option]))
        take_number(options, option, value);
    else
        take_text(options, option, text);
}

/* Back to what the lane was served with, in a copy of its own where that will
 * change. */
static bool restore(struct weir__lane *lane, bool has_settings)
{
    if (!has_settings) {
        shared_unref(lane->set);
        lane->set = NULL;
        lane->options = &lane->own->options;
        return true;
    }
    if (lane->set == NULL)
        lane->set = shared_new(&lane->own->options);
    if (lane->set == NULL)
        return false;
    lane->set->options = lane->own->options;
    lane->options = &lane->set->options;
    return true;
}

void weir__lane_settings(void *user, const struct weir__setting *settings,
                         size_t count)
{
    struct weir__lane *lane = user;

    if (!restore(lane, count > 0)) {
        weir__log(lane->reactor->options.log, WEIR_LEVEL_ERROR,
                  "%s: out of memory, its stored options are not known here",
                  lane->name);
        return;
    }
    for (size_t i = 0; i < count; i++)
        take(lane, &settings[i], &lane->set->options);
    weir__lane_renew_soon(lane);
    weir__lane_list_push(lane, WEIR__LANES_HUNGRY);
    if (lane->ready.count > 0) /* concurrency may be higher now */
        weir__lane_list_push(lane, WEIR__LANES_READY);
    if (weir__lane_open_topic(lane) < 0) /* it is open: nothing to allocate */
        WEIR_UNREACHABLE("an open topic could not be opened");
}
