/* SPDX-License-Identifier: MIT */
#include "adapters/cli/serving.h"

#include <string.h>

struct weir_topic_options
weir__serving_options(const struct weir__serving *serving,
                      const struct weir__service *service)
{
    struct weir_topic_options options = weir__service_options(service);

    options.overrides = serving->said;
    options.plugin = service->file;
    return options;
}

enum weir__exit weir__serving_kind(const struct weir__serving *serving,
                                   const struct weir__services *services,
                                   const struct weir__service *service,
                                   const char *kind)
{
    const struct weir__config_topic *section = service->section;
    struct weir_error err = {0};
    int rc = weir_reactor_declare(serving->reactor, service->topic, kind, &err);

    if (rc != WEIR_OK) {
        weir__complain("topic \"%s\": %s", service->topic, err.text);
        return rc == WEIR_EINVAL ? WEIR__EXIT_USAGE : WEIR__EXIT_FAILED;
    }
    if (section == NULL || section->values.kind[0] == '\0' ||
        strcmp(section->values.kind, kind) == 0)
        return WEIR__EXIT_NONE;
    weir__complain("%s:%d: kind: topic \"%s\" is stored as one of kind %s, not "
                   "%s",
                   services->path, section->said[WEIR__TOPIC_kind].line,
                   service->topic, kind, section->values.kind);
    return WEIR__EXIT_USAGE;
}

enum weir__exit weir__serve(const struct weir__serving *serving,
                            const struct weir__service *service)
{
    const struct weir_topic_options options =
        weir__serving_options(serving, service);
    struct weir_error err = {0};

    switch (
        weir_reactor_serve(serving->reactor, service->topic, &options, &err)) {
    case WEIR_OK:
        weir__log(serving->log, WEIR_LEVEL_INFO, "serving %s with %s",
                  service->topic, service->file);
        return WEIR__EXIT_NONE;
    case WEIR_ENOMEM:
        weir__complain("out of memory");
        return WEIR__EXIT_FAILED;
    default:
        weir__complain("%s: %s", service->topic, err.text);
        return WEIR__EXIT_USAGE;
    }
}
