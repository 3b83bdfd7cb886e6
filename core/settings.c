/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/assert.h"
#include "core/lane.h"
#include "core/mem.h"
#include "core/text.h"

/* The options of a lane. What is stored with a topic beats what its worker was
 * configured with, but for what its flags say; what a job brings along beats
 * all, where the job is handled. */

static struct weir__lane_shared *shared_new(const struct weir__options *options)
{
    struct weir__lane_shared *shared = weir__mem_new(sizeof(*shared));

    if (shared == NULL)
        return NULL;
    shared->refs = 1;
    shared->options = *options;
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
                            const struct weir__options *options)
{
    const struct weir__lane *last = lane->reactor->lanes;

    if (last != NULL &&
        memcmp(&last->own->options, options, sizeof(*options)) == 0) {
        lane->own = last->own;
        lane->own->refs++;
    } else {
        lane->own = shared_new(options);
    }
    if (lane->own == NULL)
        return WEIR_ENOMEM;
    lane->options = &lane->own->options;
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
        .served = lane->options,
    };

    return store->ops->topic_open(store, &options, &lane->topic);
}

/* A later version may know more options than this one, and other values. */
static void take(const struct weir__lane *lane,
                 const struct weir__setting *setting,
                 struct weir__options *options)
{
    const struct weir__log *log = lane->reactor->options.log;
    const char *text = (const char *)setting->value.ptr;
    enum weir__topic_option option = weir__topic_option_find(setting->name);
    struct weir_error err = {0};

    if (option == WEIR__TOPIC_OPTIONS)
        weir__log(log, WEIR_LEVEL_WARN,
                  "%s: the stored option %.*s is not known here and ignored",
                  lane->name, (int)setting->name.len,
                  (const char *)setting->name.ptr);
    else if ((options->pinned >> option & 1) == 0 &&
             weir__options_put(options, lane->name, option, text, &err) < 0)
        weir__log(log, WEIR_LEVEL_WARN, "%s: a stored option is ignored: %s",
                  lane->name, err.text);
}

/* Dead jobs do not go round, whatever is stored. */
static void take_on_dead(const struct weir__lane *lane,
                         struct weir__options *options)
{
    struct weir_error err;

    if (weir__reactor_check_on_dead(lane->reactor, lane->name, options->on_dead,
                                    &err) == WEIR_OK)
        return;
    weir__log(lane->reactor->options.log, WEIR_LEVEL_WARN,
              "%s: a stored option is ignored: %s", lane->name, err.text);
    memcpy(options->on_dead, lane->own->options.on_dead,
           sizeof(options->on_dead));
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
    if (count > 0)
        take_on_dead(lane, &lane->set->options);
    weir__lane_renew_soon(lane);
    weir__lane_list_push(lane, WEIR__LANES_HUNGRY);
    if (lane->ready.count > 0) /* concurrency may be higher now */
        weir__lane_list_push(lane, WEIR__LANES_READY);
    if (weir__lane_open_topic(lane) < 0) /* it is open: nothing to allocate */
        WEIR_UNREACHABLE("an open topic could not be opened");
}
