/* SPDX-License-Identifier: MIT */
#include "adapters/config/option.h"

#include <stdio.h>
#include <string.h>

#include "adapters/config/config.h"
#include "core/assert.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/nearest.h"
#include "core/text.h"

enum { NAMES_MAX = WEIR__TOPIC_OPTIONS + 16, NAMES_CAP = 440 };

const char *const weir__config_sections[] = {"redis", "worker", "topic",
                                             "cron"};

#define BASE_redis  struct weir__config
#define BASE_worker struct weir__config
#define BASE_topic  struct weir__config_topic
#define BASE_cron   struct weir__config_cron

#define ROW(section, name, holder, form, min, max, fallback, word)           \
    {#section,                                                               \
     {#name, WEIR__OPTION_##form, WEIR__KINDS_ALL, min, max, fallback, word, \
      0},                                                                    \
     offsetof(BASE_##section, name)},

const struct weir__config_option weir__config_options[] = {
    WEIR__CONFIG_MAP(ROW) WEIR__CONFIG_TOPIC_MAP(ROW)
        WEIR__CONFIG_CRON_MAP(ROW){NULL, {0}, 0},
};

bool weir__config_is_list(const struct weir__option *row)
{
    return row->form == WEIR__OPTION_PATHS || row->form == WEIR__OPTION_PAIRS ||
           row->form == WEIR__OPTION_GROUPS || row->form == WEIR__OPTION_CHOSEN;
}

/* A struct weir__config_number, _text or _list. */
void *weir__config_holder(const struct weir__config_option *option, void *base)
{
    return (char *)base + option->offset;
}

void weir__config_release(const char *section, void *base)
{
    const struct weir__config_option *option = weir__config_options;

    for (; option->section != NULL; option++) {
        void *holder = weir__config_holder(option, base);
        struct weir__config_list *list = holder;

        if (strcmp(option->section, section) != 0 ||
            weir__option_is_number(&option->row))
            continue;
        if (!weir__config_is_list(&option->row)) {
            weir__mem_free(((struct weir__config_text *)holder)->value);
            continue;
        }
        for (size_t i = 0; i < list->count; i++)
            weir__mem_free(list->items[i]);
        weir__mem_free(list->items);
    }
}

void weir__config_free(struct weir__config *config)
{
    if (config == NULL)
        return;
    for (size_t i = 0; i < config->topic_count; i++) {
        struct weir__config_topic *topic = &config->topics[i];

        weir__config_release("topic", topic);
        for (size_t j = 0; j < WEIR__TOPIC_OPTIONS; j++)
            weir__mem_free(topic->said[j].value);
        weir__mem_free(topic->name);
    }
    weir__mem_free(config->topics);
    for (size_t i = 0; i < config->cron_count; i++) {
        weir__config_release("cron", &config->crons[i]);
        weir__mem_free(config->crons[i].name);
    }
    weir__mem_free(config->crons);
    weir__config_release("redis", config);
    weir__config_release("worker", config);
    weir__mem_free(config);
}

/* --- names --------------------------------------------------------------- */

/* Fills in the options of a section, or the sections where it is NULL. */
static size_t names_of(const char *section, const char *ret_names[NAMES_MAX])
{
    const struct weir__config_option *option = weir__config_options;
    size_t count = 0;

    for (size_t i = 0; section == NULL && i < WEIR__CONFIG_SECTIONS; i++)
        ret_names[count++] = weir__config_sections[i];
    for (; section != NULL && option->section != NULL; option++)
        if (strcmp(option->section, section) == 0)
            ret_names[count++] = option->row.name;
    if (section == NULL || strcmp(section, "topic") != 0)
        return count;
    for (size_t i = 0; i < WEIR__TOPIC_OPTIONS; i++)
        ret_names[count++] = weir__topic_options[i].name;
    WEIR_ASSERT(count <= NAMES_MAX);
    return count;
}

const char *weir__config_section(const char *name)
{
    for (size_t i = 0; i < WEIR__CONFIG_SECTIONS; i++)
        if (strcmp(name, weir__config_sections[i]) == 0)
            return weir__config_sections[i];
    return NULL;
}

static const char *name_at(const void *names, size_t i)
{
    return ((const char *const *)names)[i];
}

static bool has_name(const char *section, const char *name)
{
    const char *names[NAMES_MAX];
    size_t count = names_of(section, names);

    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* "a, b, c" */
static const char *list_names(const char *section, char buf[NAMES_CAP])
{
    const char *names[NAMES_MAX];
    size_t count = names_of(section, names), len = 0;

    for (size_t i = 0; i < count && len < NAMES_CAP; i++)
        len += (size_t)snprintf(buf + len, NAMES_CAP - len, "%s%s",
                                i == 0 ? "" : ", ", names[i]);
    return buf;
}

int weir__config_unknown(const char *section, const char *name,
                         struct weir_error *ret_why)
{
    const char *near, *home = NULL;
    char quote[WEIR__TEXT_QUOTE_CAP], list[NAMES_CAP];
    const char *names[NAMES_MAX];
    size_t count = names_of(section, names);

    (void)weir__text_quote(weir__slice_str(name), quote);
    if (strlen(quote) > 27) /* leave room for what is known */
        memcpy(quote + 24, "...", sizeof("..."));
    near = weir__nearest(name, names, count, name_at);
    for (size_t i = 0; i < WEIR__CONFIG_SECTIONS; i++)
        if (home == NULL && has_name(weir__config_sections[i], name))
            home = weir__config_sections[i];
    if (has_name(NULL, name))
        return weir__error_set(
            ret_why, WEIR_EINVAL,
            "%s is a section and cannot stand here: write %s on its own, with "
            "its options in { and }",
            quote, quote);
    if (home != NULL)
        return weir__error_set(
            ret_why, WEIR_EINVAL,
            "%s is an option of %s: write it in that section", quote, home);
    if (near != NULL && section == NULL)
        return weir__error_set(ret_why, WEIR_EINVAL,
                               "no section is called \"%s\": write %s", quote,
                               near);
    if (near != NULL)
        return weir__error_set(ret_why, WEIR_EINVAL,
                               "there is no option \"%s\" here: write %s",
                               quote, near);
    if (strspn(name, "abcdefghijklmnopqrstuvwxyz_") != strlen(name))
        return weir__error_set(
            ret_why, WEIR_EINVAL,
            "\"%s\" stands where a name should: write a value of several "
            "words in quotes",
            quote);
    return weir__error_set(
        ret_why, WEIR_EINVAL, "%s knows no \"%s\": write one of %s",
        section == NULL ? "weir" : section, quote, list_names(section, list));
}
