/* SPDX-License-Identifier: MIT */

/* weir check: a configuration file and the plugins that it names. Looks for no
 * server and opens no instance of a plugin. */

#include "adapters/cli/blame.h"
#include "adapters/cli/client.h"
#include "adapters/cli/output.h"
#include "adapters/cli/services.h"
#include "adapters/redis/url.h"

enum { CONFIG };

static const struct weir__flag flags[] = {
    [CONFIG] = {"config", "F", "the configuration file"},
};

static struct json_object *topics_json(const struct weir__services *services)
{
    struct json_object *array = json_object_new_array();
    char path[PATH_MAX];

    for (size_t i = 0; array != NULL && i < services->count; i++) {
        const struct weir__service *service = &services->list[i];
        struct json_object *object = NULL;

        if (weir__service_find(services, service, path))
            object = WEIR__OBJECT(weir__field_str("topic", service->topic),
                                  weir__field_str("handler", service->plugin),
                                  weir__field_str("file", path));
        array = weir__array_with(array, object);
    }
    return array;
}

static enum weir__exit worse(enum weir__exit one, enum weir__exit other)
{
    return one == WEIR__EXIT_NONE ? other : one;
}

/* By the address alone. */
static bool is_cluster(const struct weir__cli *cli)
{
    struct weir__redis_url url;

    return cli->redis != NULL &&
           weir__redis_url_parse(cli->redis, &url, NULL) == WEIR_OK &&
           !url.is_sentinel && url.host_count > 1;
}

static enum weir__exit check(struct weir__services *services,
                             const struct weir__cli *cli,
                             const struct weir__args *args)
{
    /* No --handle here; what the flags' table has first is the file. */
    const struct weir__args no_handles = {.operand = args->operand};
    const struct weir__log log = {.line_fn = weir__log_line,
                                  .level = cli->log_level};
    struct weir__cli configured = *cli;
    char from[PATH_MAX];
    enum weir__exit rc =
        weir__services_read(services, args->value[CONFIG], &no_handles);

    if (services->config != NULL) /* each mistake is told */
        rc = worse(worse(rc, weir__services_check(services)),
                   weir__services_check_dirs(services));
    weir__services_configure(services, &configured, from);
    if (configured.redis != NULL && !weir__client_check(&configured))
        rc = worse(rc, WEIR__EXIT_USAGE);
    else if (is_cluster(&configured))
        rc = worse(rc, weir__services_check_keys(services));
    if (rc != WEIR__EXIT_NONE)
        return rc;
    weir__services_warn(services, &log);
    if (cli->json)
        return weir__print_object(
            WEIR__OBJECT(weir__field_str("config", services->path),
                         weir__field("topics", topics_json(services))));
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
    WEIR__FLAGS(flags),
    .summary = "Check a configuration file and its plugins",
    .details =
        "Reads the file as weir run does, loads the plugins that it names and "
        "checks\ntheir options, and looks for its directories; no server is "
        "looked for, no\nplugin is opened. Warns of secrets that everybody can "
        "read. With --json:\n"
        "{\"config\",\"topics\":[{\"topic\",\"handler\",\"file\"}]}.",
    .example = "weir check --config weir.conf",
    .exits =
        "0 nothing is wrong, 2 wrong usage or configuration; each mistake\n"
        "  is told with file and line",
    .run = run,
};
