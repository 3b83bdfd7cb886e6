/* SPDX-License-Identifier: MIT */
#include "adapters/cli/crons.h"

#include "adapters/cli/cron_texts.h"
#include "core/mem.h"
#include "core/text.h"

#include <stdio.h>
#include <string.h>

/* --- checking ------------------------------------------------------------- */

static const struct weir__config_text *
said(const struct weir__config_cron *section, enum weir__cron_field field)
{
    switch (field) {
    case WEIR__CRON_AT:
        return &section->at;
    case WEIR__CRON_EVERY:
        return &section->every;
    case WEIR__CRON_ZONE:
        return &section->zone;
    case WEIR__CRON_BODY:
        return &section->body;
    case WEIR__CRON_MISSED:
        return &section->missed;
    case WEIR__CRON_OVERLAP:
        return &section->overlap;
    case WEIR__CRON_JITTER:
        return &section->jitter;
    case WEIR__CRON_RETRY:
        return &section->retry;
    case WEIR__CRON_TTL:
        return &section->ttl;
    case WEIR__CRON_URL:
        return &section->url;
    case WEIR__CRON_FIELDS:
        break;
    }
    return NULL;
}

static int read_section(const struct weir__config_cron *section,
                        struct weir_cron *ret_cron,
                        enum weir__cron_field *ret_field,
                        struct weir_error *err)
{
    struct weir__cron_texts texts = {.dashes = "", .name = section->name};

    for (int i = 0; i < WEIR__CRON_FIELDS; i++)
        texts.value[i] = said(section, (enum weir__cron_field)i)->value;
    return weir__cron_texts_read(&texts, ret_cron, ret_field, err);
}

/* The topic that a schedule names; a kind that the file gives it is delay. */
static bool check_topic(const struct weir__services *services,
                        const struct weir__config_cron *section)
{
    const char *topic = section->to.value;
    const struct weir__service *service;
    struct weir_error err = {0};

    if (topic == NULL) {
        weir__complain("%s:%d: cron \"%s\" has no topic: write to = TOPIC",
                       services->path, section->line, section->name);
        return false;
    }
    if (weir__topic_check(weir__slice_str(topic), &err) < 0) {
        weir__complain("%s:%d: %s", services->path, section->to.line, err.text);
        return false;
    }
    service = weir__services_find(services, topic);
    if (service == NULL || service->section == NULL ||
        service->section->values.kind[0] == '\0' ||
        strcmp(service->section->values.kind, "delay") == 0)
        return true;
    weir__complain("%s:%d: topic \"%s\" is of kind %s: only topics of kind "
                   "delay have schedules",
                   services->path, section->to.line, topic,
                   service->section->values.kind);
    return false;
}

static bool check(const struct weir__services *services,
                  const struct weir__config_cron *section)
{
    enum weir__cron_field field;
    struct weir_error err = {0};
    struct weir_cron cron;
    const struct weir__config_text *text;
    int rc = read_section(section, &cron, &field, &err);

    weir_body_free(cron.body);
    if (rc == WEIR_OK)
        return true;
    text = said(section, field);
    weir__complain("%s:%d: %s", services->path,
                   text != NULL && text->line > 0 ? text->line : section->line,
                   err.text);
    return false;
}

bool weir__crons_check(const struct weir__services *services)
{
    bool are_good = true;

    for (size_t i = 0;
         services->config != NULL && i < services->config->cron_count; i++) {
        const struct weir__config_cron *section = &services->config->crons[i];

        if (section->is_partial)
            continue; /* more may stand behind the mistake */
        are_good = check_topic(services, section) && are_good;
        are_good = check(services, section) && are_good;
    }
    return are_good;
}

/* --- setting -------------------------------------------------------------- */

struct setting {
    const struct weir__log *log;
    char topic[WEIR_MAX_TOPIC + 1], name[WEIR_MAX_TOPIC + 1];
};

static void on_set(int code, const char *text, void *arg)
{
    struct setting *setting = arg;

    if (code == WEIR_OK)
        weir__log(setting->log, WEIR_LEVEL_INFO, "%s: schedule %s is set",
                  setting->topic, setting->name);
    else if (code != WEIR_EEXISTS && code != WEIR_ECANCELED)
        weir__log(setting->log, WEIR_LEVEL_ERROR,
                  "%s: schedule %s is not set: %s; it is tried again when "
                  "weir starts, or reads its file",
                  setting->topic, setting->name,
                  text == NULL ? weir_error_text(code) : text);
    weir__mem_free(setting);
}

static void set(struct weir_reactor *reactor,
                const struct weir__config_cron *section,
                const struct weir__log *log)
{
    struct setting *setting = weir__mem_new(sizeof(*setting));
    enum weir__cron_field field;
    struct weir_error err = {0};
    struct weir_cron cron;
    int rc;

    if (setting == NULL)
        return;
    setting->log = log;
    (void)snprintf(setting->topic, sizeof(setting->topic), "%s",
                   section->to.value); /* fits */
    (void)snprintf(setting->name, sizeof(setting->name), "%s",
                   section->name); /* fits */
    rc = read_section(section, &cron, &field, &err);
    if (rc == WEIR_OK)
        rc = weir_reactor_cron_set(reactor, section->to.value, &cron, on_set,
                                   setting, &err);
    weir_body_free(cron.body);
    if (rc < 0)
        on_set(rc, err.text, setting);
}

void weir__crons_set(struct weir_reactor *reactor,
                     const struct weir__services *services,
                     const struct weir__log *log)
{
    for (size_t i = 0;
         services->config != NULL && i < services->config->cron_count; i++)
        set(reactor, &services->config->crons[i], log);
}
