/* SPDX-License-Identifier: MIT */
#include "adapters/weir/facade.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/msgpack/headers.h"
#include "core/assert.h"
#include "core/chain.h"
#include "core/mem.h"
#include "core/text.h"

/* Managing jobs and topics for a host program: what it gives is checked here,
 * the rest is the store's. */

size_t weir_job_info_headers(const struct weir_job_info *job,
                             struct weir_header *ret_headers, size_t cap)
{
    struct weir_header headers[WEIR_MAX_HEADERS];
    size_t count = weir__headers_read(job->headers, headers);

    if (count > cap)
        count = cap;
    if (count > 0)
        memcpy(ret_headers, headers, count * sizeof(*headers));
    return count;
}

static int topic_and_id(struct weir_reactor *reactor, const char *topic,
                        const char *id, struct weir__store_topic **ret_handle)
{
    int rc = weir__id_check_any(weir__slice_str(id), NULL);

    if (rc < 0)
        return rc;
    return weir__facade_open(reactor, topic, NULL, ret_handle, NULL);
}

/* Without an id (NULL) all are meant. */
static int topic_and_maybe_id(struct weir_reactor *reactor, const char *topic,
                              const char *id,
                              struct weir__store_topic **ret_handle)
{
    if (id == NULL)
        return weir__facade_open(reactor, topic, NULL, ret_handle, NULL);
    return topic_and_id(reactor, topic, id, ret_handle);
}

int weir_reactor_show(struct weir_reactor *reactor, const char *topic,
                      const char *id, weir_show_fn fn, void *arg)
{
    struct weir__store_topic *handle;
    int rc = topic_and_id(reactor, topic, id, &handle);

    if (rc < 0)
        return rc;
    return reactor->store->ops->show(handle, weir__slice_str(id), fn, arg);
}

/* A store takes the callback that is given for what is asked. */
static void nobody_asked(int code, enum weir_job_state was, void *arg)
{
    (void)code;
    (void)was;
    (void)arg;
}

int weir_reactor_delete(struct weir_reactor *reactor, const char *topic,
                        const char *id, weir_delete_fn fn, void *arg)
{
    struct weir__store_topic *handle;
    int rc = topic_and_id(reactor, topic, id, &handle);

    if (rc < 0)
        return rc;
    return reactor->store->ops->remove(handle, weir__slice_str(id),
                                       fn == NULL ? nobody_asked : fn, arg);
}

int weir_reactor_dead(struct weir_reactor *reactor, const char *topic,
                      size_t limit, weir_show_fn fn, void *arg)
{
    return weir_reactor_list(reactor, topic, WEIR_JOB_DEAD, limit, fn, arg);
}

int weir_reactor_stats(struct weir_reactor *reactor, const char *topic,
                       weir_stats_fn fn, void *arg)
{
    struct weir__store_topic *handle;
    int rc = weir__facade_open(reactor, topic, NULL, &handle, NULL);

    if (rc < 0)
        return rc;
    return reactor->store->ops->stats(handle, fn, arg);
}

int weir_reactor_topics(struct weir_reactor *reactor, weir_topics_fn fn,
                        void *arg)
{
    int rc = weir__facade_check_thread(reactor, NULL);

    if (rc < 0)
        return rc;
    if (reactor->is_freed)
        return WEIR_ECANCELED;
    return reactor->store->ops->topics(reactor->store, fn, arg);
}

int weir_reactor_reschedule(struct weir_reactor *reactor, const char *topic,
                            const char *id, const struct weir_due *due,
                            weir_reschedule_fn fn, void *arg)
{
    struct weir__reschedule what = {weir__slice_str(id), due->delay_ms,
                                    due->at_ms};
    struct weir__store_topic *handle;
    int rc;

    rc = weir__facade_check_due(due->delay_ms, due->at_ms, NULL);
    if (rc < 0)
        return rc;
    rc = topic_and_id(reactor, topic, id, &handle);
    if (rc < 0)
        return rc;
    return reactor->store->ops->reschedule(handle, &what, fn, arg);
}

int weir_reactor_requeue(struct weir_reactor *reactor, const char *topic,
                         const char *id, weir_count_fn fn, void *arg)
{
    struct weir__store_topic *handle;
    int rc = topic_and_maybe_id(reactor, topic, id, &handle);

    if (rc < 0)
        return rc;
    return reactor->store->ops->requeue(handle, weir__slice_str(id), fn, arg);
}

int weir_reactor_purge_dead(struct weir_reactor *reactor, const char *topic,
                            const char *id, weir_count_fn fn, void *arg)
{
    struct weir__store_topic *handle;
    int rc = topic_and_maybe_id(reactor, topic, id, &handle);

    if (rc < 0)
        return rc;
    if (id == NULL)
        return reactor->store->ops->purge(handle, WEIR__PURGE_DEAD, fn, arg);
    return reactor->store->ops->forget(handle, weir__slice_str(id), fn, arg);
}

int weir_reactor_purge(struct weir_reactor *reactor, const char *topic,
                       weir_count_fn fn, void *arg)
{
    struct weir__store_topic *handle;
    int rc = weir__facade_open(reactor, topic, NULL, &handle, NULL);

    if (rc < 0)
        return rc;
    return reactor->store->ops->purge(handle, WEIR__PURGE_ALL, fn, arg);
}

int weir_reactor_delete_topic(struct weir_reactor *reactor, const char *topic,
                              weir_code_fn fn, void *arg)
{
    struct weir__store_topic *handle;
    int rc = weir__facade_open(reactor, topic, NULL, &handle, NULL);

    if (rc < 0)
        return rc;
    return reactor->store->ops->drop(handle, fn, arg);
}

/* --- lists -------------------------------------------------------------- */

/* A store that gives its jobs no places has numbers for them: STATE#COUNT, of
 * jobs up to this one. */
struct listing {
    struct weir_reactor *reactor;
    struct weir__store_topic *topic;
    int state;     /* being listed */
    bool is_every; /* and those behind it */
    size_t left;
    size_t passed; /* to be left out of this state, by number */
    size_t count;  /* came of this state */
    weir_show_fn fn;
    void *arg;
    char place[32];
    char after[WEIR_MAX_PLACE + 1]; /* the store's; "": from the first on */
};

static void on_listed(int code, const struct weir_job_info *job, void *arg);

static int list_state(struct listing *listing)
{
    const struct weir__list what = {
        .state = (enum weir_job_state)listing->state,
        .limit = listing->left < SIZE_MAX - listing->passed
                     ? listing->left + listing->passed
                     : SIZE_MAX,
        .after = weir__slice_str(listing->after),
    };

    if (listing->reactor->is_freed)
        return WEIR_ECANCELED;
    return listing->reactor->store->ops->list(listing->topic, &what, on_listed,
                                              listing);
}

static void show_listed(struct listing *listing,
                        const struct weir_job_info *job)
{
    struct weir_job_info numbered = *job;
    int len;

    listing->count++;
    if (listing->count <= listing->passed)
        return;
    WEIR_ASSERT(listing->left > 0);
    listing->left--;
    if (job->place.len == 0) {
        len = snprintf(listing->place, sizeof(listing->place), "%d#%zu",
                       listing->state, listing->count);
        numbered.place = weir__slice_of(listing->place, (size_t)len);
    }
    listing->fn(WEIR_OK, &numbered, listing->arg);
}

/* True: it goes on with the next state. */
static bool list_next(struct listing *listing, int *ret_code)
{
    if (!listing->is_every || listing->left == 0 ||
        listing->state == WEIR_JOB_DEAD)
        return false;
    listing->state++;
    listing->passed = 0;
    listing->count = 0;
    listing->after[0] = '\0';
    *ret_code = list_state(listing);
    if (*ret_code == WEIR_EKIND)
        *ret_code = WEIR_OK; /* topics of its kind keep no dead jobs */
    else if (*ret_code == WEIR_OK)
        return true;
    return false;
}

static void on_listed(int code, const struct weir_job_info *job, void *arg)
{
    struct listing *listing = arg;

    if (job != NULL) {
        show_listed(listing, job);
        return;
    }
    if (code == WEIR_OK && list_next(listing, &code))
        return;
    listing->fn(code, NULL, listing->arg);
    weir__mem_free(listing);
}

enum { PASSED_DIGITS = 9 }; /* nobody turns so many pages as to need more */

/* The number that show_listed wrote. */
static bool read_passed(const char *text, size_t *ret_passed)
{
    size_t len = strlen(text);

    if (len == 0 || len > PASSED_DIGITS || strspn(text, "0123456789") != len)
        return false;
    *ret_passed = strtoul(text, NULL, 10);
    return *ret_passed > 0;
}

/* Whose state it is, and what of it is the store's. */
static bool read_after(struct listing *listing, const char *after)
{
    size_t len = strlen(after);
    int state = after[0] - '0';

    if (state < WEIR_JOB_SCHEDULED || state > WEIR_JOB_DEAD ||
        len > WEIR_MAX_PLACE ||
        (listing->state >= 0 && state != listing->state))
        return false;
    listing->state = state;
    if (after[1] != '#') {
        memcpy(listing->after, after, len + 1);
        return true;
    }
    return read_passed(after + 2, &listing->passed);
}

int weir_reactor_list_from(struct weir_reactor *reactor, const char *topic,
                           const struct weir_list *list, weir_show_fn fn,
                           void *arg)
{
    struct weir__store_topic *handle;
    struct listing *listing;
    int rc;

    if (list->state < -1 || list->state > WEIR_JOB_DEAD)
        return WEIR_EINVAL;
    rc = weir__facade_open(reactor, topic, NULL, &handle, NULL);
    if (rc < 0)
        return rc;
    listing = weir__mem_new(sizeof(*listing));
    if (listing == NULL)
        return WEIR_ENOMEM;
    listing->reactor = reactor;
    listing->topic = handle;
    listing->is_every = list->state < 0;
    listing->state = list->state;
    listing->left = list->limit;
    listing->fn = fn;
    listing->arg = arg;
    if (list->after != NULL && !read_after(listing, list->after))
        rc = WEIR_EINVAL;
    if (listing->state < 0)
        listing->state = WEIR_JOB_SCHEDULED;
    if (rc == WEIR_OK)
        rc = list_state(listing);
    if (rc < 0)
        weir__mem_free(listing);
    return rc;
}

int weir_reactor_list(struct weir_reactor *reactor, const char *topic,
                      int state, size_t limit, weir_show_fn fn, void *arg)
{
    const struct weir_list list = {.state = state, .limit = limit};

    return weir_reactor_list_from(reactor, topic, &list, fn, arg);
}

/* --- topics ------------------------------------------------------------- */

int weir_reactor_pause(struct weir_reactor *reactor, const char *topic,
                       bool is_paused, weir_code_fn fn, void *arg)
{
    struct weir__store_topic *handle;
    int rc = weir__facade_open(reactor, topic, NULL, &handle, NULL);

    if (rc < 0)
        return rc;
    return reactor->store->ops->pause(handle, is_paused, fn, arg);
}

/* What is to be stored with a topic. */
struct set {
    struct weir_reactor *reactor;
    weir_code_fn fn;
    void *arg;
    char topic[WEIR_MAX_TOPIC + 1];
    struct weir__options options;
    struct weir__setting list[WEIR_MAX_OPTIONS + WEIR__TOPIC_OPTIONS];
    size_t count;
    struct weir__chain chain;      /* of on_dead */
    char next[WEIR_MAX_TOPIC + 1]; /* its next topic; "": there is none */
    char texts[];                  /* what the list points to */
};

static void add_setting(struct set *set, const char *name, size_t len,
                        const char *value)
{
    WEIR_ASSERT(set->count < sizeof(set->list) / sizeof(set->list[0]));
    set->list[set->count].name = weir__slice_of(name, len);
    set->list[set->count].value = weir__slice_str(value);
    set->count++;
}

/* Options that topics of the new kind do not have are removed: an earlier kind
 * may have left them. */
static void drop_unfit(struct set *set)
{
    for (int i = 0; i < WEIR__TOPIC_OPTIONS; i++) {
        const char *name = weir__topic_options[i].name;

        if (weir__topic_option_fits((enum weir__topic_option)i,
                                    set->options.kind, NULL) < 0)
            add_setting(set, name, strlen(name), "");
    }
}

/* An option that is removed need not fit. */
static int read_settings(struct set *set, const char *const *texts,
                         const char *kind, struct weir_error *err)
{
    const char *copy = set->texts;
    int rc;

    weir__options_init(&set->options);
    rc = weir__options_read(&set->options, set->topic, texts, err);
    if (rc < 0)
        return rc;
    if (set->options.kind[0] != '\0')
        kind = set->options.kind;
    for (; *texts != NULL && set->count < WEIR_MAX_OPTIONS; texts++) {
        size_t len = (size_t)(strchr(copy, '=') - copy); /* there is one */
        struct weir_slice name = weir__slice_of(copy, len);

        if (copy[len + 1] != '\0' &&
            weir__topic_option_stores(weir__topic_option_find(name), err) < 0)
            return WEIR_EINVAL;
        add_setting(set, copy, len, copy + len + 1);
        copy += strlen(copy) + 1;
    }
    if (*texts != NULL)
        return weir__error_set(err, WEIR_EINVAL, "more than %d options at once",
                               WEIR_MAX_OPTIONS);
    if (set->options.kind[0] != '\0')
        drop_unfit(set);
    return weir__options_fit(&set->options, kind, err);
}

/* The topic is of another kind from now on; what it is served as stays. */
static void change_kind(struct weir_reactor *reactor, const char *topic,
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

static void on_set(int code, const char *text, void *arg)
{
    struct set *set = arg;

    if (code == WEIR_OK && !set->reactor->is_freed &&
        set->options.kind[0] != '\0')
        change_kind(set->reactor, set->topic, set->options.kind);
    if (set->fn != NULL)
        set->fn(code, text, set->arg);
    weir__mem_free(set);
}

static int send(struct set *set)
{
    struct weir__store_topic *handle;
    int rc = weir__facade_open(set->reactor, set->topic, NULL, &handle, NULL);

    return rc < 0 ? rc
                  : set->reactor->store->ops->set(handle, set->list, set->count,
                                                  on_set, set);
}

static int follow(struct set *set, struct weir_error *err);

/* What is stored with a topic of the chain. */
static void on_next(int code, const char *key, const char *value, void *arg)
{
    struct set *set = arg;
    struct weir_error err = {0};

    if (key != NULL) {
        if (strcmp(key, "on_dead") == 0 && strcmp(value, "none") != 0 &&
            weir__topic_check(weir__slice_str(value), NULL) == WEIR_OK)
            memcpy(set->next, value, strlen(value) + 1);
        return;
    }
    if (code == WEIR_OK || code == WEIR_ENOTFOUND)
        code = follow(set, &err);
    if (code < 0)
        on_set(code, err.text, set);
}

/* On to the next topic of the chain; at its end the options are sent. */
static int follow(struct set *set, struct weir_error *err)
{
    struct weir__store_topic *handle;
    char topic[WEIR_MAX_TOPIC + 1];
    int rc = WEIR_EFULL;

    memcpy(topic, set->next, sizeof(topic));
    set->next[0] = '\0';
    if (topic[0] != '\0')
        rc = weir__chain_add(&set->chain, topic, err);
    if (rc == WEIR_EFULL)
        return send(set);
    if (rc == WEIR_OK)
        rc = weir__facade_open(set->reactor, topic, NULL, &handle, err);
    return rc < 0 ? rc
                  : set->reactor->store->ops->settings(handle, on_next, set);
}

/* A copy of the texts, and who is told. NULL: out of memory. */
static struct set *set_new(const char *topic, const char *const *settings)
{
    struct set *set;
    size_t size = 0;
    char *to;

    for (size_t i = 0; settings[i] != NULL; i++)
        size += strlen(settings[i]) + 1;
    set = weir__mem_new(sizeof(*set) + size);
    if (set == NULL)
        return NULL;
    memcpy(set->topic, topic, strlen(topic)); /* checked */
    to = set->texts;
    for (size_t i = 0; settings[i] != NULL; i++) {
        size = strlen(settings[i]) + 1;
        memcpy(to, settings[i], size);
        to += size;
    }
    return set;
}

int weir_reactor_set(struct weir_reactor *reactor, const char *topic,
                     const char *const *settings, weir_code_fn fn, void *arg,
                     struct weir_error *err)
{
    struct weir__store_topic *handle;
    struct set *set;
    int rc = weir__facade_open(reactor, topic, NULL, &handle, err);

    if (rc < 0)
        return rc;
    set = set_new(topic, settings);
    if (set == NULL)
        return weir__error_code(err, WEIR_ENOMEM);
    set->reactor = reactor;
    set->fn = fn;
    set->arg = arg;
    rc = read_settings(set, settings, reactor->store->ops->kind_name(handle),
                       err);
    if (rc == WEIR_OK) {
        (void)weir__chain_add(&set->chain, topic, NULL); /* the first */
        memcpy(set->next, set->options.on_dead, sizeof(set->next));
        rc = follow(set, NULL);
        if (rc < 0)
            (void)weir__error_code(err, rc);
    }
    if (rc < 0)
        weir__mem_free(set);
    return rc;
}

int weir_reactor_settings(struct weir_reactor *reactor, const char *topic,
                          weir_setting_fn fn, void *arg)
{
    struct weir__store_topic *handle;
    int rc = weir__facade_open(reactor, topic, NULL, &handle, NULL);

    if (rc < 0)
        return rc;
    return reactor->store->ops->settings(handle, fn, arg);
}

struct kind_question {
    struct weir_reactor *reactor;
    weir_kind_fn fn;
    void *arg;
    char topic[WEIR_MAX_TOPIC + 1];
};

/* What is served here stays what it is served as. */
static void on_kind(int code, const char *kind, void *arg)
{
    struct kind_question *question = arg;
    struct weir_reactor *reactor = question->reactor;

    if (code == WEIR_OK && !reactor->is_freed &&
        !weir__reactor_holds(reactor->core, weir__slice_str(question->topic)))
        change_kind(reactor, question->topic, kind);
    question->fn(code, kind, question->arg);
    weir__mem_free(question);
}

int weir_reactor_kind(struct weir_reactor *reactor, const char *topic,
                      weir_kind_fn fn, void *arg)
{
    struct kind_question *question;
    struct weir__store_topic *handle;
    int rc = weir__facade_open(reactor, topic, NULL, &handle, NULL);

    if (rc < 0)
        return rc;
    question = weir__mem_new(sizeof(*question));
    if (question == NULL)
        return WEIR_ENOMEM;
    question->reactor = reactor;
    question->fn = fn;
    question->arg = arg;
    (void)snprintf(question->topic, sizeof(question->topic), "%s",
                   topic); /* fits */
    rc = reactor->store->ops->kind(handle, on_kind, question);
    if (rc < 0)
        weir__mem_free(question);
    return rc;
}
