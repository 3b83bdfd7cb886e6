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

void weir__lane_unshare(struct weir__lane_shared *shared)
{
    if (shared == NULL || --shared->refs > 0)
        return;
    weir__mem_free(shared);
}

/* Shares the options of the lane served last where they are the same. (Bytes
 * between members may differ; that costs memory only.) */
struct weir__lane_shared *weir__lane_share(const struct weir__reactor *reactor,
                                           const struct weir__options *options)
{
    const struct weir__lane *last = reactor->lanes;

    if (last == NULL ||
        memcmp(&last->own->options, options, sizeof(*options)) != 0)
        return shared_new(options);
    last->own->refs++;
    return last->own;
}

void weir__lane_drop_options(struct weir__lane *lane)
{
    weir__lane_unshare(lane->own);
    weir__lane_unshare(lane->set);
    weir__mem_free(lane->stored);
}

/* --- what is stored ------------------------------------------------------- */

/* The settings as they were told last, in one piece. */
struct weir__stored {
    size_t count;
    struct weir__setting settings[];
};

static struct weir_slice copy_text(uint8_t **to, struct weir_slice text)
{
    struct weir_slice copy = {*to, text.len};

    if (text.len > 0)
        memcpy(*to, text.ptr, text.len);
    (*to)[text.len] = '\0';
    *to += text.len + 1;
    return copy;
}

static size_t size_of(const struct weir__setting *settings, size_t count)
{
    size_t size = sizeof(struct weir__stored) + count * sizeof(*settings);

    for (size_t i = 0; i < count; i++)
        size += settings[i].name.len + settings[i].value.len + 2;
    return size;
}

/* False when out of memory. */
static bool keep(struct weir__lane *lane, const struct weir__setting *settings,
                 size_t count)
{
    struct weir__stored *stored = NULL;
    uint8_t *to;

    if (count > 0) {
        stored = weir__mem_new(size_of(settings, count));
        if (stored == NULL)
            return false;
        to = (uint8_t *)&stored->settings[count];
        stored->count = count;
        for (size_t i = 0; i < count; i++) {
            stored->settings[i].name = copy_text(&to, settings[i].name);
            stored->settings[i].value = copy_text(&to, settings[i].value);
        }
    }
    weir__mem_free(lane->stored);
    lane->stored = stored;
    return true;
}

bool weir__lane_stores(const struct weir__lane *lane,
                       enum weir__topic_option option)
{
    for (size_t i = 0; lane->stored != NULL && i < lane->stored->count; i++)
        if (weir__topic_option_find(lane->stored->settings[i].name) == option)
            return true;
    return false;
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
             (weir__topic_option_stores(option, &err) < 0 ||
              weir__options_put(options, lane->name, option, text, &err) < 0))
        weir__log(log, WEIR_LEVEL_WARN, "%s: a stored option is ignored: %s",
                  lane->name, err.text);
}

/* Dead jobs do not go round, whatever is stored. */
static void judge_on_dead(const struct weir__lane *lane,
                          struct weir__options *options)
{
    struct weir_error err;

    if (weir__reactor_check_on_dead(lane->reactor, lane->name, options->on_dead,
                                    NULL, NULL, &err) == WEIR_OK)
        return;
    weir__log(lane->reactor->options.log, WEIR_LEVEL_WARN,
              "%s: a stored option is ignored: %s", lane->name, err.text);
    memcpy(options->on_dead, lane->own->options.on_dead,
           sizeof(options->on_dead));
}

/* Back to what the lane was served with, in a copy of its own where that will
 * change. */
static bool restore(struct weir__lane *lane)
{
    if (lane->stored == NULL) {
        weir__lane_unshare(lane->set);
        lane->set = NULL;
        lane->options = &lane->own->options;
        return true;
    }
    if (lane->set == NULL)
        lane->set = shared_new(&lane->own->options);
    if (lane->set == NULL) {
        lane->options = &lane->own->options;
        return false;
    }
    lane->set->options = lane->own->options;
    lane->options = &lane->set->options;
    return true;
}

static void complain(const struct weir__lane *lane)
{
    weir__log(lane->reactor->options.log, WEIR_LEVEL_ERROR,
              "%s: out of memory, its stored options are not known here",
              lane->name);
}

/* The store knows the topic already: nothing to allocate. */
static void tell_store(struct weir__lane *lane)
{
    const struct weir__store_topic_options options = {
        .name = weir__slice_str(lane->name),
        .served = lane->options,
    };

    if (lane->store->ops->topic_open(lane->store, &options, &lane->topic) < 0)
        WEIR_UNREACHABLE("an open topic could not be opened");
}

void weir__lane_merge(struct weir__lane *lane)
{
    if (!restore(lane))
        complain(lane);
    else if (lane->stored != NULL)
        for (size_t i = 0; i < lane->stored->count; i++)
            take(lane, &lane->stored->settings[i], &lane->set->options);
}

void weir__lane_apply(struct weir__lane *lane)
{
    if (lane->set != NULL && lane->options == &lane->set->options)
        judge_on_dead(lane, &lane->set->options);
    weir__lane_renew_soon(lane);
    if (lane->pending.count > 0)
        weir__lane_arm_timeout(lane);
    weir__lane_list_push(lane, WEIR__LANES_HUNGRY);
    if (lane->ready.count > 0) /* concurrency may be higher now */
        weir__lane_list_push(lane, WEIR__LANES_READY);
    tell_store(lane);
}

void weir__lane_settings(void *user, const struct weir__setting *settings,
                         size_t count)
{
    struct weir__lane *lane = user;

    if (!keep(lane, settings, count)) {
        complain(lane);
        return;
    }
    weir__lane_merge(lane);
    weir__lane_apply(lane);
}
