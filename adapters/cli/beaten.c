/* SPDX-License-Identifier: MIT */
#include "adapters/cli/beaten.h"

#include "core/mem.h"
#include "core/text.h"

#include <string.h>

struct look {
    const struct weir__serving *serving;
    const struct weir__services *services;
    char topic[WEIR_MAX_TOPIC + 1];
};

/* What flags say beats both. */
static bool is_by_flag(const struct weir__serving *serving, const char *name)
{
    size_t len = strlen(name);

    for (const char *const *said = serving->said; *said != NULL; said++)
        if (strncmp(*said, name, len) == 0 && (*said)[len] == '=')
            return true;
    return false;
}

/* "1m" and "60s" are the same. */
static bool is_other(const struct weir__config_topic *section,
                     enum weir__topic_option option, const char *value)
{
    struct weir__options said, stored;

    memcpy(&said, &section->values, sizeof(said));
    memcpy(&stored, &section->values, sizeof(stored));
    return weir__options_put(&stored, section->name, option, value, NULL) ==
               WEIR_OK &&
           memcmp(&said, &stored, sizeof(said)) != 0;
}

/* weir_setting_fn */
static void on_setting(int code, const char *key, const char *value, void *arg)
{
    struct look *look = arg;
    const struct weir__service *service =
        code == WEIR_ECANCELED
            ? NULL
            : weir__services_find(look->services, look->topic);
    const struct weir__config_text *said;
    enum weir__topic_option option;

    if (key == NULL) {
        weir__mem_free(look);
        return;
    }
    option = weir__topic_option_find(weir__slice_str(key));
    if (service == NULL || service->section == NULL ||
        option == WEIR__TOPIC_OPTIONS || option == WEIR__TOPIC_kind)
        return; /* another kind has been refused */
    said = &service->section->said[option];
    if (said->value != NULL && !is_by_flag(look->serving, key) &&
        is_other(service->section, option, value))
        weir__log(look->serving->log, WEIR_LEVEL_INFO,
                  "%s: %s is %s by what is stored, not %s as in %s:%d",
                  look->topic, key, value, strchr(said->value, '=') + 1,
                  look->services->path, said->line);
}

static bool has_options(const struct weir__service *service)
{
    const struct weir__config_topic *section = service->section;

    for (size_t i = 0; section != NULL && i < WEIR__TOPIC_OPTIONS; i++)
        if (i != WEIR__TOPIC_kind && section->said[i].value != NULL)
            return true;
    return false;
}

/* Without memory it is not said. */
void weir__beaten_look(const struct weir__serving *serving,
                       const struct weir__services *services,
                       const struct weir__service *service)
{
    struct look *look;

    if (!has_options(service))
        return;
    look = weir__mem_new(sizeof(*look));
    if (look == NULL)
        return;
    look->serving = serving;
    look->services = services;
    memcpy(look->topic, service->topic, strlen(service->topic) + 1);
    if (weir_reactor_settings(serving->reactor, look->topic, on_setting, look) <
        0)
        weir__mem_free(look);
}
