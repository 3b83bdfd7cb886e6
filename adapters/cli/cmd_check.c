/* SPDX-License-Identifier: MIT */

/* weir check: a configuration file and the plugins that it names. Looks for no
 * server and opens no instance of a plugin. */

#include "adapters/cli/blame.h"
#include "adapters/cli/client.h"
#include "adapters/cli/output.h"
#include "adapters/cli/services.h"

#include <string.h>

enum { CONFIG };

static const struct weir__flag flags[] = {
    [CONFIG] = {"config", "F", "the configuration file"},
};

static struct json_object *topic_json(const struct weir__service *service,
                                      const char *path)
{
    struct json_object *object = json_object_new_object();
    struct weir_slice file = {(const uint8_t *)path, strlen(path)};
    struct weir_slice plugin = {(const uint8_t *)service->plugin,
                                strlen(service->plugin)};

    if (object == NULL)
        return NULL;
    if (weir__json_put(object, "topic",
                       json_object_new_string(service->topic)) &&
        weir__json_put(object, "handler", weir__text_json(plugin)) &&
        weir__json_put(object, "file", weir__text_json(file)))
        return object;
    (void)json_object_put(object);
    return NULL;
}

static struct json_object *topics_json(const struct weir__services *services)
{
    struct json_object *array = json_object_new_array();
    char path[PATH_MAX];

    for (size_t i = 0; array != NULL && i < services->count; i++) {
        const struct weir__service *service = &services->list[i];
        struct json_object *object = NULL;

        if (weir__service_find(services, service, path))
            object = topic_json(service, path);
        if (object != NULL && json_object_array_add(array, object) == 0)
            continue;
        (void)json_object_put(object);
        (void)json_object_put(array);
        return NULL;
    }
    return array;
}

static bool print_json(const struct weir__services *services)
{
    struct json_object *object = json_object_new_object();
    struct weir_slice path = {(const uint8_t *)services->path,
                              strlen(services->path)};

    if (object != NULL &&
        weir__json_put(object, "config", weir__text_json(path)) &&
        weir__json_put(object, "topics", topics_json(services)))
        return weir__json_print_line(object);
    (void)json_object_put(object);
    return weir__json_print_line(NULL);
}

static enum weir__exit check(struct weir__services *services,
                             const struct weir__cli *cli,
                             const struct weir__args *args)
{
    /* No --handle here; what the flags' table has first is the file. */
    const struct weir__args no_handles = {.operand = args->operand};
    const struct weir__log log = {weir__log_line, NULL, cli->log_level};
    struct weir__cli configured = *cli;
    char from[PATH_MAX];
    enum weir__exit rc =
        weir__services_read(services, args->value[CONFIG], &no_handles);

    if (rc == WEIR__EXIT_NONE)
        rc = weir__services_check(services);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    weir__services_configure(services, &configured, from);
    if (configured.redis != NULL && !weir__client_check(&configured))
        return WEIR__EXIT_USAGE;
    weir__services_warn(services, &log);
    if (cli->json)
        return print_json(services) ? WEIR__EXIT_DONE : WEIR__EXIT_FAILED;
    weir__print("%s: nothing wrong, %zu topic%s\n", services->path,
                services->count, services->count == 1 ? "" : "s");
    return WEIR__EXIT_DONE;
}

static enum weir__exit run(const struct weir__cli *cli,
                           const struct weir__args *args)
{
    struct weir__services services = {0};
    enum weir__exit rc;

    if (args->value[CONFIG] == NULL) {
        weir__complain("check needs --config F; see weir check --help");
        return WEIR__EXIT_USAGE;
    }
    weir__blame_listen();
    rc = check(&services, cli, args);
    weir__services_fini(&services);
    return rc;
}

const struct weir__command weir__cmd_check = {
    .name = "check",
    .operands = "",
    .flags = flags,
    .flag_count = sizeof(flags) / sizeof(flags[0]),
    .summary = "Check a configuration file and its plugins",
    .details = "Reads the file as weir run does, loads the plugins that it "
               "names and checks\ntheir options; no server is looked for, no "
               "plugin is opened. Warns of\nsecrets that everybody can read. "
               "With --json:\n{\"config\",\"topics\":"
               "[{\"topic\",\"handler\",\"file\"}]}.",
    .example = "weir check --config weir.conf",
    .exits =
        "0 nothing is wrong, 2 wrong usage or configuration; each mistake\n"
        "  is told with file and line",
    .run = run,
};
