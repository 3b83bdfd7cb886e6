/* SPDX-License-Identifier: MIT */
#include "adapters/cli/reload.h"

#include "adapters/cli/beaten.h"
#include "adapters/cli/counters.h"
#include "adapters/cli/crons.h"
#include "adapters/cli/difference.h"
#include "core/mem.h"
#include "core/text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <weir/change.h>

static const double SLOW_S = 3.0; /* then it is said what is waited for */

static const struct weir__log *log_of(const struct weir__reload *reload)
{
    return reload->serving.log;
}

/* --- code that was loaded ------------------------------------------------- */

/* NULL: none of that name. */
static const struct weir__loaded *find_loaded(const struct weir__reload *reload,
                                              const char *file)
{
    for (size_t i = 0; i < reload->loaded_count; i++)
        if (strcmp(reload->loaded[i].file, file) == 0)
            return &reload->loaded[i];
    return NULL;
}

static bool is_replaced(const struct weir__loaded *loaded,
                        const struct stat *at)
{
    return loaded->device != at->st_dev || loaded->inode != at->st_ino ||
           loaded->changed.tv_sec != at->st_mtim.tv_sec ||
           loaded->changed.tv_nsec != at->st_mtim.tv_nsec;
}

/* Without memory it is not known, and no warning comes. */
static void note_loaded(struct weir__reload *reload, const char *file,
                        const struct stat *at)
{
    size_t size = strlen(file) + 1;
    char *copy = weir__mem_new(size);
    struct weir__loaded *loaded = weir__mem_grow(
        reload->loaded, reload->loaded_count + 1, sizeof(*loaded));

    if (loaded != NULL)
        reload->loaded = loaded;
    if (copy == NULL || loaded == NULL) {
        weir__mem_free(copy);
        return;
    }
    memcpy(copy, file, size);
    loaded[reload->loaded_count++] =
        (struct weir__loaded){copy, at->st_dev, at->st_ino, at->st_mtim};
}

/* The system has one piece of code for a path, the first one. */
static void look_at_files(struct weir__reload *reload,
                          const struct weir__services *services)
{
    for (size_t i = 0; i < services->count; i++) {
        const char *file = services->list[i].file;
        const struct weir__loaded *loaded;
        struct stat at;

        if (file == NULL || stat(file, &at) != 0)
            continue;
        loaded = find_loaded(reload, file);
        if (loaded == NULL)
            note_loaded(reload, file, &at);
        else if (is_replaced(loaded, &at))
            weir__log(log_of(reload), WEIR_LEVEL_WARN,
                      "reload: %s was replaced; the code that was loaded "
                      "before runs on: restart weir, or give the new file "
                      "another name",
                      file);
    }
}

/* --- what cannot change --------------------------------------------------- */

static bool may_change(const char *name)
{
    static const char *const names[] = {"plugin_path", "log_level",
                                        "log_format", "drain"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool is_same(const struct weir__config_option *option,
                    struct weir__config *one, struct weir__config *other)
{
    const void *first = weir__config_holder(option, one);
    const void *second = weir__config_holder(option, other);

    if (weir__option_is_number(&option->row))
        return ((const struct weir__config_number *)first)->value ==
               ((const struct weir__config_number *)second)->value;
    return weir__is_same_text(
        ((const struct weir__config_text *)first)->value,
        ((const struct weir__config_text *)second)->value);
}

/* What the program was started with stays. */
static enum weir__exit check_program(struct weir__reload *reload)
{
    const struct weir__config_option *option = weir__config_options;
    struct weir__config *was = reload->first.config;
    struct weir__config *next = reload->next.config;
    enum weir__exit rc = WEIR__EXIT_NONE;

    for (; option->section != NULL; option++) {
        const char *name = option->row.name;
        int line;

        if (strcmp(option->section, "topic") == 0 ||
            strcmp(option->section, "cron") == 0 || may_change(name) ||
            is_same(option, was, next))
            continue;
        line = *(const int *)weir__config_holder(option, next); /* its first */
        if (line > 0)
            weir__complain("%s:%d: %s cannot change while weir runs: restart "
                           "it",
                           reload->next.path, line, name);
        else
            weir__complain("%s: %s cannot be left out while weir runs: restart "
                           "it",
                           reload->next.path, name);
        rc = WEIR__EXIT_USAGE;
    }
    return rc;
}

static enum weir__exit read_file(struct weir__reload *reload)
{
    struct weir__services *next = &reload->next;
    enum weir__exit rc =
        weir__services_read(next, reload->services->path, reload->args);
    enum weir__exit found;

    if (next->config == NULL)
        return rc;
    found = weir__services_check(next);
    look_at_files(reload, next);
    rc = rc == WEIR__EXIT_NONE ? found : rc;
    found = weir__services_check_dirs(next);
    rc = rc == WEIR__EXIT_NONE ? found : rc;
    found = next->config->is_partial ? rc : check_program(reload);
    rc = rc == WEIR__EXIT_NONE ? found : rc;
    if (rc == WEIR__EXIT_NONE && reload->is_cluster)
        rc = weir__services_check_keys(next);
    return rc;
}

/* --- what is told --------------------------------------------------------- */

static void log_change(const struct weir__reload *reload,
                       const struct weir__service *was,
                       const struct weir__service *now)
{
    struct weir__buf text = {0};

    weir__difference_put(&text, was, now);
    weir__log(log_of(reload), WEIR_LEVEL_INFO, "reload: changed %s (%.*s)",
              now->topic, (int)text.len, (const char *)text.ptr);
    weir__buf_fini(&text);
}

/* --- the change ----------------------------------------------------------- */

struct changes {
    struct weir_change *list;
    struct weir_topic_options *options;
    const struct weir__service **of; /* in the next ones; NULL: it goes */
    size_t count;
};

static int changes_init(struct changes *changes, size_t most)
{
    changes->list = weir__mem_new((most + 1) * sizeof(*changes->list));
    changes->options = weir__mem_new((most + 1) * sizeof(*changes->options));
    changes->of = weir__mem_new((most + 1) * sizeof(*changes->of));
    return changes->list == NULL || changes->options == NULL ||
                   changes->of == NULL
               ? WEIR_ENOMEM
               : WEIR_OK;
}

static void changes_fini(struct changes *changes)
{
    weir__mem_free(changes->list);
    weir__mem_free(changes->options);
    weir__mem_free(changes->of);
}

static void collect(const struct weir__reload *reload, struct changes *changes)
{
    const struct weir__services *was = reload->services, *next = &reload->next;

    for (size_t i = 0; i < was->count; i++)
        if (weir__services_find(next, was->list[i].topic) == NULL)
            changes->list[changes->count++].topic = was->list[i].topic;
    for (size_t i = 0; i < next->count; i++) {
        const struct weir__service *now = &next->list[i];
        const struct weir__service *before =
            weir__services_find(was, now->topic);
        struct weir_topic_options *options = &changes->options[changes->count];

        if (before != NULL && weir__is_served_alike(before, now))
            continue;
        *options = weir__serving_options(&reload->serving, now);
        if (before != NULL && weir__is_same_handler(before, now)) {
            options->plugin = NULL;
            options->plugin_options = NULL;
            options->plugin_option_count = 0;
        }
        changes->of[changes->count] = now;
        changes->list[changes->count].topic = now->topic;
        changes->list[changes->count++].options = options;
    }
}

static void log_drain(const struct weir__reload *reload)
{
    const struct weir__config *was = reload->services->config;
    const struct weir__config *next = reload->next.config;
    char before[24], after[24];

    if (was->drain.value == next->drain.value)
        return;
    (void)weir__duration_format(was->drain.value, before);
    (void)weir__duration_format(next->drain.value, after);
    weir__log(log_of(reload), WEIR_LEVEL_INFO,
              "reload: changed worker (drain %s to %s)", before, after);
}

static bool is_credential(const char *path)
{
    const char *dir = getenv("CREDENTIALS_DIRECTORY");

    return dir != NULL && strncmp(path, dir, strlen(dir)) == 0;
}

static void log_all(const struct weir__reload *reload,
                    const struct changes *changes)
{
    log_drain(reload);
    for (size_t i = 0; i < changes->count; i++) {
        const char *topic = changes->list[i].topic;
        const struct weir__service *was =
            weir__services_find(reload->services, topic);

        if (changes->of[i] == NULL)
            weir__log(log_of(reload), WEIR_LEVEL_INFO, "reload: removed %s",
                      topic);
        else if (was == NULL)
            weir__log(log_of(reload), WEIR_LEVEL_INFO,
                      "reload: added %s with %s", topic, changes->of[i]->file);
        else
            log_change(reload, was, changes->of[i]);
    }
    if (changes->count == 0)
        weir__log(
            log_of(reload), WEIR_LEVEL_INFO,
            "reload: %s has the same topics, served alike%s", reload->next.path,
            is_credential(reload->next.path) ? "; a systemd without "
                                               "RefreshOnReload= hands out a "
                                               "changed file at a restart only"
                                             : "");
}

static void complain(const struct weir__reload *reload,
                     const struct weir__service *service,
                     const struct weir_error *err)
{
    const struct weir__config_topic *section =
        service == NULL ? NULL : service->section;
    int line;

    if (section == NULL) {
        weir__complain("%s", err->text);
        return;
    }
    line = section->handler.line > 0 ? section->handler.line : section->line;
    if (strncmp(err->text, "kind:", 5) == 0)
        line = section->said[WEIR__TOPIC_kind].line;
    weir__complain("%s:%d: %s: %s", reload->next.path, line, service->topic,
                   err->text);
}

/* What the program was started with is still pointed to. */
static void take_over(struct weir__reload *reload)
{
    if (reload->services->config == reload->first.config)
        *reload->services = (struct weir__services){0};
    weir__services_fini(reload->services);
    *reload->services = reload->next;
    reload->next = (struct weir__services){0};
}

/* Of what has changed: the rest was told. */
static void look_at_stored(const struct weir__reload *reload,
                           const struct changes *changes)
{
    for (size_t i = 0; i < changes->count; i++)
        if (changes->of[i] != NULL)
            weir__beaten_look(&reload->serving, reload->services,
                              changes->of[i]);
}

static bool apply(struct weir__reload *reload)
{
    struct changes changes = {0};
    struct weir_error err = {0};
    size_t at = 0;
    int rc =
        changes_init(&changes, reload->services->count + reload->next.count);

    if (rc == WEIR_OK) {
        collect(reload, &changes);
        rc = weir_reactor_change(reload->serving.reactor, changes.list,
                                 changes.count, &at, &err);
        if (rc < 0)
            complain(reload, at < changes.count ? changes.of[at] : NULL, &err);
    } else {
        weir__complain("out of memory");
    }
    if (rc == WEIR_OK) {
        log_all(reload, &changes);
        take_over(reload);
        weir__crons_set(reload->serving.reactor, reload->services,
                        log_of(reload));
        look_at_stored(reload, &changes);
    }
    changes_fini(&changes);
    return rc == WEIR_OK;
}

/* --- its course ----------------------------------------------------------- */

static void finish(struct weir__reload *reload, bool is_changed)
{
    weir__log_sentences(false);
    if (is_changed)
        reload->taken(reload->arg);
    else
        weir__log(log_of(reload), WEIR_LEVEL_ERROR,
                  "reload: nothing was changed");
    weir__services_fini(&reload->next);
    weir__notify_reloaded(reload->notify, is_changed);
}

static void end_questions(struct weir__reload *reload)
{
    ev_timer_stop(reload->loop, &reload->slow);
    weir__kind_questions_fini(&reload->kinds);
    weir__mem_free(reload->coming);
    reload->coming = NULL;
    reload->is_asking = false;
}

static void begin(struct weir__reload *reload);

static void on_kind(size_t at, int code, const char *kind, void *arg)
{
    struct weir__reload *reload = arg;
    const struct weir__service *service =
        &reload->next.list[reload->coming[at]];
    enum weir__exit found = WEIR__EXIT_NONE;

    if (reload->is_over)
        return;
    if (code != WEIR_OK) {
        weir__complain("topic \"%s\": the server does not say of which kind it "
                       "is: %s",
                       service->topic, weir_error_text(code));
        found = WEIR__EXIT_FAILED;
    } else if (kind != NULL) {
        found =
            weir__serving_kind(&reload->serving, &reload->next, service, kind);
    }
    if (reload->found == WEIR__EXIT_NONE)
        reload->found = found;
    if (reload->kinds.unknown > 0)
        return;
    found = reload->found;
    end_questions(reload);
    if (reload->is_again) {
        reload->is_again = false;
        weir__services_fini(&reload->next);
        begin(reload);
        return;
    }
    finish(reload, found == WEIR__EXIT_NONE && apply(reload));
}

static void on_slow(struct ev_loop *loop, struct ev_timer *timer, int events)
{
    const struct weir__reload *reload = timer->data;

    (void)loop;
    (void)events;
    weir__log(log_of(reload), WEIR_LEVEL_WARN,
              "reload: the server has to say of which kind new topics are, and "
              "does not answer; nothing is changed until it does");
}

/* Nothing is told in here. */
static void ask(struct weir__reload *reload, size_t count)
{
    struct weir__kind_questions *kinds = &reload->kinds;

    kinds->loop = reload->loop;
    kinds->reactor = reload->serving.reactor;
    kinds->told = on_kind;
    kinds->arg = reload;
    for (size_t i = 0; i < count; i++)
        kinds->list[i].topic = reload->next.list[reload->coming[i]].topic;
    reload->is_asking = true;
    reload->found = WEIR__EXIT_NONE;
    ev_timer_init(&reload->slow, on_slow, SLOW_S, 0.0);
    reload->slow.data = reload;
    ev_now_update(reload->loop);
    ev_timer_start(reload->loop, &reload->slow);
    weir__kind_questions_ask(kinds);
}

static size_t find_coming(struct weir__reload *reload)
{
    size_t count = 0;

    for (size_t i = 0; i < reload->next.count; i++)
        if (weir__services_find(reload->services, reload->next.list[i].topic) ==
            NULL)
            reload->coming[count++] = i;
    return count;
}

static void begin(struct weir__reload *reload)
{
    size_t count;

    weir__log_sentences(true); /* what is wrong is told beside jobs */
    if (read_file(reload) != WEIR__EXIT_NONE) {
        finish(reload, false);
        return;
    }
    reload->coming =
        weir__mem_new((reload->next.count + 1) * sizeof(*reload->coming));
    count = reload->coming == NULL ? 0 : find_coming(reload);
    if (reload->coming == NULL ||
        (count > 0 &&
         weir__kind_questions_init(&reload->kinds, count) != WEIR_OK)) {
        weir__complain("out of memory");
        end_questions(reload);
        finish(reload, false);
        return;
    }
    if (count > 0) {
        ask(reload, count);
        return;
    }
    end_questions(reload);
    finish(reload, apply(reload));
}

static const char *why_not(const struct weir__reload *reload)
{
    if (reload->services->path == NULL)
        return "weir run was started without --config: there is no file to "
               "read again";
    if (reload->is_over)
        return "weir ends";
    if (reload->is_ready && reload->waiting->unknown > 0)
        return "topics still wait for their server";
    return reload->never;
}

void weir__reload(struct weir__reload *reload)
{
    const char *why = why_not(reload);

    if (why != NULL) {
        weir__log(log_of(reload), WEIR_LEVEL_WARN,
                  "SIGHUP: nothing was changed: %s", why);
        weir__notify_not_reloading(reload->notify);
        return;
    }
    if (!reload->is_ready || reload->is_asking) {
        reload->is_wanted = !reload->is_ready;
        reload->is_again = reload->is_asking;
        weir__log(log_of(reload), WEIR_LEVEL_INFO,
                  "SIGHUP: %s is read again when the server has answered",
                  reload->services->path);
        return;
    }
    weir__log(log_of(reload), WEIR_LEVEL_INFO, "SIGHUP: reading %s again",
              reload->services->path);
    weir__notify_reloading(reload->notify);
    begin(reload);
}

/* --- life ----------------------------------------------------------------- */

/* Jobs of a handler that was replaced have ended, or of a topic that went. */
static void on_ended(const char *topic, void *self, void *arg)
{
    const struct weir__reload *reload = arg;

    (void)self;
    if (weir__services_find(reload->services, topic) != NULL)
        return;
    weir__counters_log(reload->serving.reactor, topic, log_of(reload));
    weir__log(log_of(reload), WEIR_LEVEL_INFO,
              "%s is served no longer, its last job has ended", topic);
}

void weir__reload_ready(struct weir__reload *reload, bool is_cluster)
{
    reload->is_cluster = is_cluster;
    reload->first = *reload->services;
    look_at_files(reload, reload->services);
    for (size_t i = 0; i < reload->services->count; i++)
        weir__beaten_look(&reload->serving, reload->services,
                          &reload->services->list[i]);
    weir_reactor_on_ended(reload->serving.reactor, on_ended, reload);
    reload->is_ready = true;
    if (reload->is_wanted)
        weir__reload(reload);
}

void weir__reload_stop(struct weir__reload *reload)
{
    reload->is_over = true;
    weir__log_sentences(false);
    if (reload->is_asking)
        ev_timer_stop(reload->loop, &reload->slow);
}

void weir__reload_fini(struct weir__reload *reload)
{
    if (!reload->is_ready)
        return;
    if (reload->is_asking)
        end_questions(reload);
    weir__services_fini(&reload->next);
    if (reload->services->config != reload->first.config)
        weir__services_fini(&reload->first);
    for (size_t i = 0; i < reload->loaded_count; i++)
        weir__mem_free(reload->loaded[i].file);
    weir__mem_free(reload->loaded);
}
