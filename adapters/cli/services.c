/* SPDX-License-Identifier: MIT */
#include "adapters/cli/services.h"

#include "adapters/dl/loader.h"
#include "adapters/dl/option.h"
#include "adapters/redis/url.h"
#include "core/mem.h"
#include "core/option.h"

#include <inttypes.h>
#include <stdio.h>
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

static enum weir__exit read_file(struct weir__services *services)
{
    struct weir_error err = {0};
    int rc = weir__config_read(services->path, &services->config, &err);

    if (rc == WEIR_OK)
        return WEIR__EXIT_NONE;
    weir__complain("%s", err.text);
    return rc == WEIR_ENOMEM ? WEIR__EXIT_FAILED : WEIR__EXIT_USAGE;
}

/* Each topic of the file by its own or by --handle. */
static bool have_handlers(const struct weir__services *services)
{
    for (size_t i = 0; i < services->count; i++) {
        const struct weir__service *service = &services->list[i];

        if (service->plugin != NULL)
            continue;
        weir__complain("%s:%d: topic \"%s\" has no handler: write handler = "
                       "PLUGIN, or give --handle %s=PLUGIN",
                       services->path, service->section->line, service->topic,
                       service->topic);
        return false;
    }
    if (services->count == 0 && services->path != NULL)
        weir__complain("%s: no topic: write topic \"NAME\" { handler = PLUGIN "
                       "}",
                       services->path);
    return services->count > 0;
}

/* What the file says of a topic's kind, and options that the kind does not
 * have. */
static bool fits(const struct weir__services *services,
                 const struct weir__config_topic *section)
{
    struct weir_error err = {0};
    int rc = WEIR_OK, line = 0;

    for (size_t i = 0; i < WEIR__TOPIC_OPTIONS && rc == WEIR_OK; i++) {
        line = weir__config_topic_line(section, (enum weir__topic_option)i);
        if (line > 0)
            rc = weir__topic_option_fits((enum weir__topic_option)i,
                                         section->kind.value, &err);
    }
    if (rc < 0)
        weir__complain("%s:%d: %s", services->path, line, err.text);
    return rc == WEIR_OK;
}

static bool all_fit(const struct weir__services *services)
{
    for (size_t i = 0; i < services->count; i++) {
        const struct weir__config_topic *section = services->list[i].section;

        if (section != NULL && section->kind.value != NULL &&
            !fits(services, section))
            return false;
    }
    return true;
}

enum weir__exit weir__services_read(struct weir__services *services,
                                    const char *path,
                                    const struct weir__args *args)
{
    size_t sections = 0;

    services->path = path;
    if (path != NULL) {
        enum weir__exit rc = read_file(services);

        if (rc != WEIR__EXIT_NONE)
            return rc;
        sections = services->config->topic_count;
    }
    services->handles =
        weir__mem_new(args->all_count * sizeof(*services->handles));
    services->list =
        weir__mem_new((sections + args->all_count) * sizeof(*services->list));
    if (services->handles == NULL || services->list == NULL)
        return out_of_memory();
    for (size_t i = 0; i < sections; i++)
        add_section(services, &services->config->topics[i]);
    for (size_t i = 0; i < args->all_count; i++) {
        struct weir__handle *handle = &services->handles[i];

        if (!weir__handle_parse(args->all[i], handle))
            return WEIR__EXIT_USAGE;
        services->handle_count++;
        if (!add_handle(services, handle))
            return WEIR__EXIT_USAGE;
    }
    return have_handlers(services) && all_fit(services) ? WEIR__EXIT_NONE
                                                        : WEIR__EXIT_USAGE;
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

static bool check_one(const struct weir__services *services,
                      const struct weir__service *service)
{
    struct weir__plugin_file file;
    struct weir_error err = {0};
    char path[PATH_MAX];

    if (!weir__service_find(services, service, path))
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

enum weir__exit weir__services_check(const struct weir__services *services)
{
    enum weir__exit rc = WEIR__EXIT_NONE;

    for (size_t i = 0; i < services->count; i++) {
        if (!check_one(services, &services->list[i]))
            rc = WEIR__EXIT_USAGE;
    }
    return rc;
}

/* --- options ------------------------------------------------------------ */

static uint32_t given(const struct weir__config_number *number)
{
    return number->line > 0 ? (uint32_t)number->value : 0;
}

static const char *yes_or_no(const struct weir__config_number *number)
{
    if (number->line == 0)
        return NULL;
    return number->value != 0 ? "yes" : "no";
}

/* Options of sync and concurrent topics. */
static void give_fifo(const struct weir__config_topic *section,
                      struct weir_topic_options *options)
{
    options->has_delay = section->delay.line > 0;
    options->delay_ms = options->has_delay ? section->delay.value : 0;
    options->consumers = given(&section->consumers);
    options->batch = given(&section->batch);
    options->lock = yes_or_no(&section->lock);
    options->auto_ack = yes_or_no(&section->auto_ack);
    if (section->parking.line > 0)
        options->parking = section->parking.value == 0 ? "atomic" : "two-step";
}

/* Options of list and stream topics. */
static void give_feed(const struct weir__config_topic *section,
                      struct weir_topic_options *options)
{
    options->key = section->key.value;
    options->group = section->group.value;
    options->on_retry = section->on_retry.value;
    if (section->start.line > 0)
        options->start = section->start.value == 0 ? "0" : "$";
    if (section->after.line > 0)
        options->after = section->after.value == 0 ? "keep" : "delete";
    if (section->claim_idle.line > 0)
        options->claim_idle_ms = section->claim_idle.value;
}

/* Options of bounded topics. */
static void give_bounded(const struct weir__config_topic *section,
                         struct weir_topic_options *options)
{
    static const char *const modes[] = {"drop-oldest", "drop-new", "reject"};

    options->length = given(&section->length);
    if (section->overflow.line > 0)
        options->overflow = modes[section->overflow.value];
    if (section->max_age.line > 0 &&
        section->max_age.value != WEIR__CONFIG_NONE)
        options->max_age_ms = section->max_age.value;
    if (section->group_ttl.line > 0 &&
        section->group_ttl.value != WEIR__CONFIG_NONE)
        options->group_ttl_ms = section->group_ttl.value;
    if (section->linger.line > 0)
        options->linger_ms = section->linger.value;
    options->hot = (const char *const *)section->hot.items;
    options->hot_count = section->hot.count;
    options->is_unleased = section->lease.value == WEIR__CONFIG_NONE;
    if (options->is_unleased)
        options->lease_ms = 0;
}

struct weir_topic_options
weir__service_options(const struct weir__service *service)
{
    const struct weir__config_topic *section = service->section;
    struct weir_topic_options options = {
        .plugin_options = service->options,
        .plugin_option_count = service->option_count,
    };

    if (section == NULL)
        return options;
    options.kind = section->kind.value;
    options.retry = section->retry.value;
    options.retry_jitter = given(&section->retry_jitter);
    options.concurrency = given(&section->concurrency);
    options.has_prefetch = section->prefetch.line > 0 &&
                           section->prefetch.value != WEIR__CONFIG_AUTO;
    if (options.has_prefetch)
        options.prefetch = given(&section->prefetch);
    options.weight = given(&section->weight);
    options.lease_ms = section->lease.line > 0 ? section->lease.value : 0;
    options.max_dead = given(&section->max_dead);
    options.max_crashes = given(&section->max_crashes);
    options.timeout_ms = section->timeout.line > 0 ? section->timeout.value : 0;
    options.on_dead = section->on_dead.value;
    if (section->ttl.line > 0 && section->ttl.value != WEIR__CONFIG_NONE)
        options.ttl_ms = section->ttl.value;
    give_fifo(section, &options);
    give_feed(section, &options);
    give_bounded(section, &options);
    return options;
}

/* One that concerns those who add jobs: it belongs to what is stored. */
static void note_topic_option(const struct weir__services *services,
                              const struct weir__log *log, const char *topic,
                              enum weir__topic_option option,
                              const struct weir__config_number *number)
{
    const char *name = weir__topic_options[option].name;
    char value[24] = "none";

    if (number->line == 0)
        return;
    if (number->value != WEIR__CONFIG_NONE)
        (void)snprintf(value, sizeof(value), "%" PRId64,
                       number->value); /* fits */
    weir__log(log, WEIR_LEVEL_WARN,
              "%s:%d: %s is not looked at by weir run; store it with the "
              "topic: weir topic set %s %s=%s",
              services->path, number->line, name, topic, name, value);
}

static void note_unused(const struct weir__services *services,
                        const struct weir__log *log)
{
    for (size_t i = 0; i < services->config->topic_count; i++) {
        const struct weir__config_topic *topic = &services->config->topics[i];

        note_topic_option(services, log, topic->name, WEIR__TOPIC_max_body,
                          &topic->max_body);
        note_topic_option(services, log, topic->name, WEIR__TOPIC_max_pending,
                          &topic->max_pending);
    }
}

/* --- secrets -------------------------------------------------------------- */

static bool has_password(const char *url)
{
    struct weir__redis_url parsed;

    return url != NULL && weir__redis_url_parse(url, &parsed, NULL) == 0 &&
           parsed.password[0] != '\0';
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
    cli->worker = config->name.value;
    cli->block_warn_ms = config->block_warn.value;
    cli->threads = (uint32_t)config->threads.value;
}

void weir__services_fini(struct weir__services *services)
{
    for (size_t i = 0; i < services->handle_count; i++)
        weir__handle_fini(&services->handles[i]);
    weir__mem_free(services->handles);
    weir__mem_free(services->list);
    weir__config_free(services->config);
    *services = (struct weir__services){0};
}
