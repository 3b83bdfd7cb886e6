/* SPDX-License-Identifier: MIT */
#include "adapters/cli/services.h"
#include "adapters/cli/crons.h"

#include "adapters/dl/loader.h"
#include "adapters/dl/option.h"
#include "adapters/redis/cluster/slot.h"
#include "adapters/redis/url.h"
#include "core/chain.h"
#include "core/mem.h"
#include "core/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static enum weir__exit out_of_memory(void)
{
    weir__complain("out of memory");
    return WEIR__EXIT_FAILED;
}

/* --- reading ------------------------------------------------------------ */

static struct weir__service *find(const struct weir__services *services,
                                  const char *topic)
{
    for (size_t i = 0; i < services->count; i++) {
        if (strcmp(services->list[i].topic, topic) == 0)
            return &services->list[i];
    }
    return NULL;
}

static void add_section(struct weir__services *services,
                        const struct weir__config_topic *section)
{
    services->list[services->count++] = (struct weir__service){
        .topic = section->name,
        .plugin = section->handler.value,
        .options = (const char *const *)section->options.items,
        .option_count = section->options.count,
        .section = section,
    };
}

static bool add_handle(struct weir__services *services,
                       const struct weir__handle *handle)
{
    struct weir__service *service = find(services, handle->topic);

    if (service != NULL && service->is_flag) {
        weir__complain("--handle: topic \"%s\" is given twice; a topic has "
                       "one handler",
                       handle->topic);
        return false;
    }
    if (service == NULL) {
        service = &services->list[services->count++];
        *service = (struct weir__service){.topic = handle->topic};
    }
    service->plugin = handle->plugin;
    service->options = handle->options;
    service->option_count = handle->option_count;
    service->is_flag = true;
    return true;
}

static void tell(const char *sentence, void *arg)
{
    (void)arg;
    weir__complain("%s", sentence);
}

enum weir__exit weir__services_read_file(struct weir__services *services,
                                         const char *path)
{
    int rc;

    services->path = path;
    if (path == NULL)
        return WEIR__EXIT_NONE;
    rc = weir__config_read(path, tell, NULL, &services->config);
    if (rc == WEIR_OK)
        return WEIR__EXIT_NONE;
    return rc == WEIR_ENOMEM ? WEIR__EXIT_FAILED : WEIR__EXIT_USAGE;
}

static int in_order(const void *one, const void *other)
{
    const struct weir__service *first =
        *(const struct weir__service *const *)one;
    const struct weir__service *second =
        *(const struct weir__service *const *)other;

    return strcmp(first->topic, second->topic);
}

static int is_of(const void *topic, const void *service)
{
    return strcmp(topic,
                  (*(const struct weir__service *const *)service)->topic);
}

/* False when out of memory. */
static bool sort(struct weir__services *services)
{
    size_t count = services->count;

    services->by_topic =
        weir__mem_new((count + 1) * sizeof(*services->by_topic));
    if (services->by_topic == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        services->by_topic[i] = &services->list[i];
    qsort(services->by_topic, count, sizeof(*services->by_topic), in_order);
    return true;
}

const struct weir__service *
weir__services_find(const struct weir__services *services, const char *topic)
{
    const struct weir__service *const *found =
        services->count == 0
            ? NULL
            : bsearch(topic, services->by_topic, services->count,
                      sizeof(*services->by_topic), is_of);

    return found == NULL ? NULL : *found;
}

/* Each topic of the file by its own or by --handle. */
static bool have_handlers(const struct weir__services *services)
{
    bool are_there = services->count > 0;

    for (size_t i = 0; i < services->count; i++) {
        const struct weir__service *service = &services->list[i];

        if (service->plugin != NULL || service->section->handler.line > 0 ||
            service->section->is_partial)
            continue;
        weir__complain("%s:%d: topic \"%s\" has no handler: write handler = "
                       "PLUGIN, or give --handle %s=PLUGIN",
                       services->path, service->section->line, service->topic,
                       service->topic);
        are_there = false;
    }
    if (services->count == 0 && services->path != NULL &&
        !services->config->is_partial)
        weir__complain("%s: no topic: write topic \"NAME\" { handler = PLUGIN "
                       "}",
                       services->path);
    return are_there;
}

/* Options that topics of a section's kind do not have; each is told. Without a
 * kind the stored topic's counts. */
static bool section_fits(const struct weir__services *services,
                         const struct weir__config_topic *section)
{
    const struct weir__options *values = &section->values;
    struct weir_error err;
    bool fits = true;

    for (size_t i = 0; values->kind[0] != '\0' && i < WEIR__TOPIC_OPTIONS;
         i++) {
        if (weir__options_fit_one(values, (enum weir__topic_option)i,
                                  values->kind, &err) == WEIR_OK)
            continue;
        weir__complain("%s:%d: %s", services->path, section->said[i].line,
                       err.text);
        fits = false;
    }
    return fits;
}

static const struct weir__config_topic *
find_section(const struct weir__services *services, const char *topic)
{
    const struct weir__service *service = weir__services_find(services, topic);

    return service == NULL ? NULL : service->section;
}

/* Jobs of one topic go only to another of kind delay. */
static bool target_fits(const struct weir__services *services,
                        const struct weir__config_text *said,
                        const char *option, const char *topic)
{
    const struct weir__config_topic *target = find_section(services, topic);

    if (target == NULL || target->values.kind[0] == '\0' ||
        strcmp(target->values.kind, "delay") == 0)
        return true;
    weir__complain("%s:%d: %s: topic \"%s\" is of kind %s: name one of kind "
                   "delay",
                   services->path, said->line, option, topic,
                   target->values.kind);
    return false;
}

/* A cycle is told at the first of its sections. */
static bool ends(const struct weir__services *services,
                 const struct weir__config_topic *section)
{
    const struct weir__config_topic *next = section;
    struct weir__chain chain = {0};
    struct weir_error err;
    int rc = WEIR_OK;

    while (rc == WEIR_OK && next != NULL && next >= section) {
        rc = weir__chain_add(&chain, next->name, &err);
        next = find_section(services, next->values.on_dead);
    }
    if (rc == WEIR_EINVAL)
        weir__complain("%s:%d: %s", services->path,
                       section->said[WEIR__TOPIC_on_dead].line, err.text);
    return rc != WEIR_EINVAL;
}

static bool check_section(const struct weir__services *services,
                          const struct weir__config_topic *section)
{
    bool fits = section_fits(services, section);
    bool has_target = target_fits(services, &section->said[WEIR__TOPIC_on_dead],
                                  "on_dead", section->values.on_dead);
    bool has_later = target_fits(services, &section->said[WEIR__TOPIC_on_retry],
                                 "on_retry", section->values.on_retry);

    return ends(services, section) && fits && has_target && has_later;
}

enum weir__exit weir__services_read(struct weir__services *services,
                                    const char *path,
                                    const struct weir__args *args)
{
    size_t sections = 0;
    enum weir__exit rc;
    bool are_good;

    rc = weir__services_read_file(services, path);
    are_good = rc == WEIR__EXIT_NONE;
    if (!are_good && services->config == NULL)
        return rc;
    if (path != NULL)
        sections = services->config->topic_count;
    services->handles =
        weir__mem_new(args->all_count[0] * sizeof(*services->handles));
    services->list = weir__mem_new((sections + args->all_count[0]) *
                                   sizeof(*services->list));
    if (services->handles == NULL || services->list == NULL)
        return out_of_memory();
    for (size_t i = 0; i < sections; i++)
        add_section(services, &services->config->topics[i]);
    for (size_t i = 0; i < args->all_count[0]; i++) {
        struct weir__handle *handle = &services->handles[i];

        if (!weir__handle_parse(args->all[0][i], handle))
            return WEIR__EXIT_USAGE;
        services->handle_count++;
        if (!add_handle(services, handle))
            return WEIR__EXIT_USAGE;
    }
    if (!sort(services))
        return out_of_memory();
    are_good = have_handlers(services) && are_good;
    for (size_t i = 0; i < sections; i++)
        are_good =
            check_section(services, &services->config->topics[i]) && are_good;
    are_good = weir__crons_check(services) && are_good;
    return are_good ? WEIR__EXIT_NONE : WEIR__EXIT_USAGE;
}

/* --- plugins ------------------------------------------------------------ */

/* What a sentence about an option of a service begins with. */
struct place {
    char text[PATH_MAX + 64];
};

static struct place place_of(const struct weir__services *services,
                             const struct weir__service *service,
                             const char *name, int line)
{
    struct place place = {""};

    if (!service->is_flag)
        (void)snprintf(place.text, sizeof(place.text),
                       "%s:%d: %s: ", services->path, line, name);
    return place;
}

bool weir__service_find(const struct weir__services *services,
                        const struct weir__service *service,
                        char ret_path[PATH_MAX])
{
    int line = service->section != NULL ? service->section->handler.line : 0;
    struct place place = place_of(services, service, "handler", line);
    struct weir__plugin_places places = {
        .who = place.text,
        .dirs =
            services->config != NULL ? &services->config->plugin_path : NULL,
    };

    return weir__plugin_find(service->plugin, &places, ret_path);
}

static bool check_options(const struct weir__services *services,
                          const struct weir__service *service,
                          const struct weir_plugin *plugin)
{
    struct weir_option_value *values = NULL;
    struct weir_error err = {0};
    int line = 0;

    if (weir__option_values(plugin, service->options, service->option_count,
                            &values, &err) == WEIR_OK) {
        weir__mem_free(values);
        return true;
    }
    if (service->section != NULL)
        line = service->section->options.line > 0
                   ? service->section->options.line
                   : service->section->handler.line;
    if (service->is_flag)
        weir__complain("%s: %s", service->topic, err.text);
    else
        weir__complain("%s%s",
                       place_of(services, service, "options", line).text,
                       err.text);
    return false;
}

static char *copy_of(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = weir__mem_new(size);

    if (copy == NULL)
        (void)out_of_memory();
    else
        memcpy(copy, text, size);
    return copy;
}

static bool check_one(const struct weir__services *services,
                      struct weir__service *service)
{
    struct weir__plugin_file file;
    struct weir_error err = {0};
    char path[PATH_MAX];

    if (!weir__service_find(services, service, path))
        return false;
    service->file = copy_of(path);
    if (service->file == NULL)
        return false;
    if (weir__plugin_load(path, &file, &err) == WEIR_OK)
        return check_options(services, service, &file.copy);
    weir__complain(
        "%s%s",
        place_of(services, service, "handler",
                 service->section != NULL ? service->section->handler.line : 0)
            .text,
        err.text);
    return false;
}

/* What was passed over may say where its plugin is, or what it needs. */
static bool is_whole(const struct weir__services *services,
                     const struct weir__service *service)
{
    return services->config == NULL ||
           (!services->config->is_partial &&
            (service->section == NULL || !service->section->is_partial));
}

enum weir__exit weir__services_check(struct weir__services *services)
{
    enum weir__exit rc = WEIR__EXIT_NONE;

    for (size_t i = 0; i < services->count; i++) {
        if (services->list[i].plugin != NULL &&
            is_whole(services, &services->list[i]) &&
            !check_one(services, &services->list[i]))
            rc = WEIR__EXIT_USAGE;
    }
    return rc;
}

/* --- options ------------------------------------------------------------ */

static bool is_key_near(const struct weir__service *service)
{
    const char *key = service->section->values.key;

    return key[0] == '\0' ||
           weir__options_key_is_path(&service->section->values) ||
           weir__cluster_slot(weir__slice_str(key)) ==
               weir__cluster_slot_of_topic(weir__slice_str(service->topic));
}

enum weir__exit weir__services_check_keys(const struct weir__services *services)
{
    enum weir__exit rc = WEIR__EXIT_NONE;

    for (size_t i = 0; i < services->count; i++) {
        const struct weir__service *service = &services->list[i];

        if (service->section == NULL || is_key_near(service))
            continue;
        weir__complain(
            "%s:%d: key: \"%s\" is in another slot of the cluster "
            "than topic \"%s\": write a name with {%s} in it",
            services->path, service->section->said[WEIR__TOPIC_key].line,
            service->section->values.key, service->topic, service->topic);
        rc = WEIR__EXIT_USAGE;
    }
    return rc;
}

struct weir_topic_options
weir__service_options(const struct weir__service *service)
{
    const struct weir__config_topic *section = service->section;
    struct weir_topic_options options = {
        .plugin_options = service->options,
        .plugin_option_count = service->option_count,
    };
    size_t count = 0;

    for (size_t i = 0; section != NULL && i < WEIR__TOPIC_OPTIONS; i++)
        if (section->said[i].value != NULL)
            options.options[count++] = section->said[i].value;
    return options;
}

/* Those that concern who adds jobs belong to what is stored. */
static void note_unused(const struct weir__services *services,
                        const struct weir__log *log)
{
    static const enum weir__topic_option unused[] = {
        WEIR__TOPIC_max_body, WEIR__TOPIC_max_pending, WEIR__TOPIC_durability,
        WEIR__TOPIC_unique,   WEIR__TOPIC_unique_for,  WEIR__TOPIC_unique_else,
        WEIR__TOPIC_max_wait, WEIR__TOPIC_key,
    };
    const size_t count = sizeof(unused) / sizeof(unused[0]);

    for (size_t i = 0; i < count * services->config->topic_count; i++) {
        const struct weir__config_topic *topic =
            &services->config->topics[i / count];
        enum weir__topic_option option = unused[i % count];
        const struct weir__config_text *said = &topic->said[option];

        if (said->value != NULL && (option != WEIR__TOPIC_key ||
                                    weir__options_key_is_path(&topic->values)))
            weir__log(log, WEIR_LEVEL_WARN,
                      "%s:%d: %s is not looked at by weir run; store it with "
                      "the topic: weir topic set %s %s",
                      services->path, said->line,
                      weir__topic_options[option].name, topic->name,
                      said->value);
    }
}

/* --- directories --------------------------------------------------------- */

static bool is_dir(const char *path)
{
    struct stat at;

    return stat(path, &at) == 0 && S_ISDIR(at.st_mode);
}

enum weir__exit weir__services_check_dirs(const struct weir__services *services)
{
    const struct weir__config *config = services->config;
    enum weir__exit rc = WEIR__EXIT_NONE;
    struct stat at;

    for (size_t i = 0; i < config->plugin_path.count; i++) {
        if (is_dir(config->plugin_path.items[i]))
            continue;
        weir__complain("%s:%d: plugin_path: there is no directory %s",
                       services->path, config->plugin_path.line,
                       config->plugin_path.items[i]);
        rc = WEIR__EXIT_USAGE;
    }
    if (config->data.value != NULL && stat(config->data.value, &at) == 0 &&
        !S_ISDIR(at.st_mode)) {
        weir__complain("%s:%d: data: %s is no directory", services->path,
                       config->data.line, config->data.value);
        rc = WEIR__EXIT_USAGE;
    }
    return rc;
}

/* --- secrets -------------------------------------------------------------- */

static bool has_password(const char *url)
{
    struct weir__redis_url parsed;

    return url != NULL && weir__redis_url_parse(url, &parsed, NULL) == 0 &&
           (parsed.password[0] != '\0' || parsed.sentinel_password[0] != '\0');
}

/* Among the options that the file gives. */
static bool has_secret(const struct weir__services *services,
                       const struct weir__service *service)
{
    struct weir__plugin_file file;
    char path[PATH_MAX];

    if (service->is_flag || service->option_count == 0 ||
        !weir__service_find(services, service, path) ||
        weir__plugin_load(path, &file, NULL) < 0)
        return false;
    for (size_t i = 0; i < service->option_count; i++)
        if (weir__option_is_secret(&file.copy, service->options[i]))
            return true;
    return false;
}

/* The line of the first secret in the file; 0: none. */
static int secret_line(const struct weir__services *services)
{
    if (has_password(services->config->url.value))
        return services->config->url.line;
    for (size_t i = 0; i < services->count; i++)
        if (has_secret(services, &services->list[i]))
            return services->list[i].section->options.line;
    return 0;
}

/* Group readable is how a service is given its file. */
static void note_readable(const struct weir__services *services,
                          const struct weir__log *log)
{
    struct stat at;
    int line;

    if (stat(services->path, &at) != 0 || !S_ISREG(at.st_mode) ||
        (at.st_mode & S_IROTH) == 0)
        return;
    line = secret_line(services);
    if (line > 0)
        weir__log(log, WEIR_LEVEL_WARN,
                  "%s:%d: a secret that everybody can read: chmod o-r %s",
                  services->path, line, services->path);
}

void weir__services_warn(const struct weir__services *services,
                         const struct weir__log *log)
{
    if (services->config == NULL)
        return;
    note_unused(services, log);
    note_readable(services, log);
}

void weir__services_configure(const struct weir__services *services,
                              struct weir__cli *cli, char from[PATH_MAX])
{
    const struct weir__config *config = services->config;

    if (config == NULL)
        return;
    if (cli->redis == NULL && config->url.value != NULL) {
        (void)snprintf(from, PATH_MAX, "%s:%d: url", services->path,
                       config->url.line);
        cli->redis = config->url.value;
        cli->redis_from = from;
    }
    if (cli->data == NULL)
        cli->data = config->data.value;
    if (!cli->has_log_level && config->log_level.line > 0)
        cli->log_level = (enum weir_level)config->log_level.value;
    if (!cli->has_log_format && config->log_format.line > 0)
        weir__log_format((enum weir__log_format)config->log_format.value);
    cli->worker = config->name.value;
    cli->block_warn_ms = config->block_warn.value;
    cli->threads = (uint32_t)config->threads.value;
}

void weir__services_fini(struct weir__services *services)
{
    for (size_t i = 0; i < services->count; i++)
        weir__mem_free(services->list[i].file);
    for (size_t i = 0; i < services->handle_count; i++)
        weir__handle_fini(&services->handles[i]);
    weir__mem_free(services->handles);
    weir__mem_free(services->list);
    weir__mem_free(services->by_topic);
    weir__config_free(services->config);
    *services = (struct weir__services){0};
}
