/* SPDX-License-Identifier: MIT */
#include "adapters/weir/facade.h"

#include <string.h>

#include "core/mem.h"
#include "core/option.h"
#include "core/text.h"

/* Managing jobs and topics for a host program: what it gives is checked here,
 * the rest is the store's. */

static int topic_and_id(struct weir_reactor *reactor, const char *topic,
                        const char *id, struct weir__place *ret_place)
{
    int rc =
        id == NULL ? WEIR_OK : weir__id_check_any(weir__slice_str(id), NULL);

    if (rc < 0)
        return rc;
    return weir__facade_place(reactor, topic, ret_place, NULL);
}

int weir_reactor_reschedule(struct weir_reactor *reactor, const char *topic,
                            const char *id, const struct weir_due *due,
                            weir_reschedule_fn fn, void *arg)
{
    struct weir__reschedule what = {weir__slice_str(id), due->delay_ms,
                                    due->at_ms};
    struct weir__place place;
    int rc;

    if (id == NULL)
        return WEIR_EINVAL;
    rc = weir__facade_check_due(due->delay_ms, due->at_ms, NULL);
    if (rc < 0)
        return rc;
    rc = topic_and_id(reactor, topic, id, &place);
    if (rc < 0)
        return rc;
    return place.store->ops->reschedule(place.topic, &what, fn, arg);
}

int weir_reactor_requeue(struct weir_reactor *reactor, const char *topic,
                         const char *id, weir_count_fn fn, void *arg)
{
    struct weir__place place;
    int rc = topic_and_id(reactor, topic, id, &place);

    if (rc < 0)
        return rc;
    return place.store->ops->requeue(place.topic, weir__slice_str(id), fn, arg);
}

int weir_reactor_purge_dead(struct weir_reactor *reactor, const char *topic,
                            const char *id, weir_count_fn fn, void *arg)
{
    struct weir__place place;
    int rc = topic_and_id(reactor, topic, id, &place);

    if (rc < 0)
        return rc;
    if (id == NULL)
        return place.store->ops->purge(place.topic, WEIR__PURGE_DEAD, fn, arg);
    return place.store->ops->forget(place.topic, weir__slice_str(id), fn, arg);
}

int weir_reactor_purge(struct weir_reactor *reactor, const char *topic,
                       weir_count_fn fn, void *arg)
{
    struct weir__place place;
    int rc = weir__facade_place(reactor, topic, &place, NULL);

    if (rc < 0)
        return rc;
    return place.store->ops->purge(place.topic, WEIR__PURGE_ALL, fn, arg);
}

/* --- lists -------------------------------------------------------------- */

struct listing {
    struct weir_reactor *reactor;
    struct weir__place place;
    int state;     /* being listed */
    bool is_every; /* and those behind it */
    size_t left;
    weir_show_fn fn;
    void *arg;
};

static int list_state(struct listing *listing);

static void on_listed(int code, const struct weir_job_info *job, void *arg)
{
    struct listing *listing = arg;

    if (job != NULL) {
        listing->left--;
        listing->fn(code, job, listing->arg);
        return;
    }
    if (code == WEIR_OK && listing->is_every && listing->left > 0 &&
        listing->state < WEIR_JOB_DEAD) {
        listing->state++;
        code = list_state(listing);
        if (code == WEIR_OK)
            return;
        if (code == WEIR_EKIND)
            code = WEIR_OK; /* topics of its kind keep no dead jobs */
    }
    listing->fn(code, NULL, listing->arg);
    weir__mem_free(listing);
}

static int list_state(struct listing *listing)
{
    const struct weir__store_ops *ops = listing->place.store->ops;

    if (listing->reactor->is_freed)
        return WEIR_ECANCELED;
    if (listing->state == WEIR_JOB_DEAD)
        return ops->dead(listing->place.topic, listing->left, on_listed,
                         listing);
    return ops->list(listing->place.topic, (enum weir_job_state)listing->state,
                     listing->left, on_listed, listing);
}

int weir_reactor_list(struct weir_reactor *reactor, const char *topic,
                      int state, size_t limit, weir_show_fn fn, void *arg)
{
    struct weir__place place;
    struct listing *listing;
    int rc;

    if (state < -1 || state > WEIR_JOB_DEAD)
        return WEIR_EINVAL;
    rc = weir__facade_place(reactor, topic, &place, NULL);
    if (rc < 0)
        return rc;
    listing = weir__mem_new(sizeof(*listing));
    if (listing == NULL)
        return WEIR_ENOMEM;
    listing->reactor = reactor;
    listing->place = place;
    listing->is_every = state < 0;
    listing->state = state < 0 ? WEIR_JOB_SCHEDULED : state;
    listing->left = limit;
    listing->fn = fn;
    listing->arg = arg;
    rc = list_state(listing);
    if (rc < 0)
        weir__mem_free(listing);
    return rc;
}

/* --- topics ------------------------------------------------------------- */

int weir_reactor_pause(struct weir_reactor *reactor, const char *topic,
                       bool is_paused, weir_code_fn fn, void *arg)
{
    struct weir__place place;
    int rc = weir__facade_common(reactor, topic, &place, NULL);

    if (rc < 0)
        return rc;
    return place.store->ops->pause(place.topic, is_paused, fn, arg);
}

/* "key=value" into its parts; an empty value removes the option. */
static int read_setting(const char *topic, const char *text,
                        struct weir__setting *ret_setting,
                        struct weir_error *err)
{
    char quote[WEIR__TEXT_QUOTE_CAP];
    const char *equals = strchr(text, '=');
    struct weir__setting setting;
    enum weir__topic_option option;
    int64_t number;

    if (equals == NULL)
        return weir__error_set(err, WEIR_EINVAL,
                               "\"%s\" has no =: write option=value",
                               weir__text_quote(weir__slice_str(text), quote));
    setting.name = weir__slice_of(text, (size_t)(equals - text));
    setting.value = weir__slice_str(equals + 1);
    option = weir__topic_option_find(setting.name);
    if (option == WEIR__TOPIC_OPTIONS || option == WEIR__TOPIC_handler ||
        option == WEIR__TOPIC_options)
        return weir__error_set(err, WEIR_EINVAL,
                               "\"%s\" is not an option that is stored with a "
                               "topic",
                               weir__text_quote(setting.name, quote));
    *ret_setting = setting;
    if (setting.value.len == 0)
        return WEIR_OK;
    if (option == WEIR__TOPIC_on_dead && strcmp(equals + 1, topic) == 0)
        return weir__error_set(err, WEIR_EINVAL,
                               "on_dead: \"%s\" is this topic itself: write "
                               "another one",
                               topic);
    return weir__option_read(&weir__topic_options[option], equals + 1, &number,
                             err);
}

/* The kind among the settings; NULL: it is not set. */
static const char *kind_among(const struct weir__setting *settings,
                              size_t count)
{
    const char *kind = NULL;

    for (size_t i = 0; i < count; i++)
        if (weir__topic_option_find(settings[i].name) == WEIR__TOPIC_kind &&
            settings[i].value.len > 0)
            kind = (const char *)settings[i].value.ptr;
    return kind;
}

/* Options that topics of the kind do not have may be removed, not set. The kind
 * is the one that is being set, or what was declared. */
static int check_fit(const struct weir__setting *settings, size_t count,
                     const char *kind, struct weir_error *err)
{
    if (kind_among(settings, count) != NULL)
        kind = kind_among(settings, count);
    for (size_t i = 0; i < count; i++) {
        enum weir__topic_option option =
            weir__topic_option_find(settings[i].name);
        int rc = settings[i].value.len == 0
                     ? WEIR_OK
                     : weir__topic_option_fits(option, kind, err);

        if (rc == WEIR_OK && option == WEIR__TOPIC_lease &&
            weir__slice_equal(settings[i].value, weir__slice_str("none")))
            rc = weir__topic_unleased_fits(kind, err);
        if (rc < 0)
            return rc;
    }
    return WEIR_OK;
}

/* Options that topics of the kind do not have are removed: an earlier kind may
 * have left them. Returns how many settings there are then; `list` has room. */
static size_t drop_unfit(struct weir__setting *list, size_t count,
                         const char *kind)
{
    struct weir_error unused;

    for (int i = 0; i < WEIR__TOPIC_OPTIONS; i++) {
        if (weir__topic_option_fits((enum weir__topic_option)i, kind,
                                    &unused) == WEIR_OK)
            continue;
        list[count].name = weir__slice_str(weir__topic_options[i].name);
        list[count].value = weir__slice_str("");
        count++;
    }
    return count;
}

/* A set that changes the kind. */
struct change {
    struct weir_reactor *reactor;
    weir_code_fn fn;
    void *arg;
    char topic[WEIR_MAX_TOPIC + 1];
    char kind[16];
};

static void on_changed(int code, const char *text, void *arg)
{
    struct change *change = arg;

    if (code == WEIR_OK && !change->reactor->is_freed)
        weir__facade_changed(change->reactor, change->topic, change->kind);
    if (change->fn != NULL)
        change->fn(code, text, change->arg);
    weir__mem_free(change);
}

static int set_kind(struct weir_reactor *reactor,
                    const struct weir__place *place,
                    const struct weir__setting *list, size_t count,
                    const struct change *wanted)
{
    struct change *change = weir__mem_new(sizeof(*change));
    int rc;

    if (change == NULL)
        return WEIR_ENOMEM;
    *change = *wanted;
    change->reactor = reactor;
    rc = place->store->ops->set(place->topic, list, count, on_changed, change);
    if (rc < 0)
        weir__mem_free(change);
    return rc;
}

int weir_reactor_set(struct weir_reactor *reactor, const char *topic,
                     const char *const *settings, weir_code_fn fn, void *arg,
                     struct weir_error *err)
{
    enum { MOST = 2 * WEIR__TOPIC_OPTIONS };
    struct weir__setting list[MOST + WEIR__TOPIC_OPTIONS];
    struct weir__place place, common;
    size_t most = MOST, count = 0;
    int rc = weir__facade_common(reactor, topic, &common, err);

    for (; rc == WEIR_OK && settings[count] != NULL; count++)
        rc = count == most
                 ? weir__error_set(err, WEIR_EINVAL,
                                   "more than %zu options at once", most)
                 : read_setting(topic, settings[count], &list[count], err);
    if (rc == WEIR_OK)
        rc = weir__facade_place(reactor, topic, &place, err);
    if (rc == WEIR_OK)
        rc = check_fit(list, count, weir__facade_kind_of(reactor, place.store),
                       err);
    if (rc < 0)
        return rc;
    if (kind_among(list, count) == NULL) {
        rc = common.store->ops->set(common.topic, list, count, fn, arg);
    } else {
        struct change change = {.fn = fn, .arg = arg};

        memcpy(change.topic, topic, strlen(topic)); /* checked */
        memcpy(change.kind, kind_among(list, count),
               strlen(kind_among(list, count))); /* one that there is */
        count = drop_unfit(list, count, change.kind);
        rc = set_kind(reactor, &common, list, count, &change);
    }
    if (rc < 0)
        return weir__error_set(err, rc, "%s", weir_error_text(rc));
    return WEIR_OK;
}

int weir_reactor_settings(struct weir_reactor *reactor, const char *topic,
                          weir_setting_fn fn, void *arg)
{
    struct weir__place place;
    int rc = weir__facade_common(reactor, topic, &place, NULL);

    if (rc < 0)
        return rc;
    return place.store->ops->settings(place.topic, fn, arg);
}

int weir_reactor_kind(struct weir_reactor *reactor, const char *topic,
                      weir_kind_fn fn, void *arg)
{
    struct weir__place place;
    int rc = weir__facade_common(reactor, topic, &place, NULL);

    if (rc < 0)
        return rc;
    return place.store->ops->kind(place.topic, fn, arg);
}
