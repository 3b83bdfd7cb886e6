/* SPDX-License-Identifier: MIT */

/* weir plugin info and list: what a plugin says about itself, and which there
 * are. */

#include "adapters/cli/blame.h"
#include "adapters/cli/output.h"
#include "adapters/cli/plugin_path.h"
#include "adapters/dl/loader.h"
#include "core/mem.h"
#include "core/text.h"

#include <inttypes.h>
#include <string.h>

static const int64_t MIB = 1024 * 1024;

static const char *type_name(enum weir_option_type type)
{
    switch (type) {
    case WEIR_OPTION_TEXT:
        return "text";
    case WEIR_OPTION_INT:
        return "integer";
    case WEIR_OPTION_BOOL:
        return "boolean";
    case WEIR_OPTION_DURATION:
        return "duration";
    case WEIR_OPTION_SIZE:
        return "size";
    case WEIR_OPTION_CHOICE:
        return "choice";
    }
    return "?";
}

/* Option number i; the table may come from a build with longer entries. */
static struct weir_option option_at(const struct weir_plugin *plugin, size_t i)
{
    size_t size = plugin->option_size;
    struct weir_option option;

    memset(&option, 0, sizeof(option));
    memcpy(&option, (const char *)plugin->options + i * size,
           size < sizeof(option) ? size : sizeof(option));
    return option;
}

static bool is_bounded(const struct weir_option *option)
{
    return option->min != 0 || option->max != 0;
}

static bool is_secret(const struct weir_option *option)
{
    return (option->flags & WEIR_OPTION_SECRET) != 0;
}

/* --- JSON ------------------------------------------------------------- */

static struct weir__field bound_field(const char *name, bool is_given,
                                      int64_t bound)
{
    return is_given ? weir__field(name, json_object_new_int64(bound))
                    : weir__field_null(name);
}

static struct json_object *option_json(const struct weir_option *option)
{
    bool has_bounds = is_bounded(option);

    return WEIR__OBJECT(weir__field_str("name", option->name),
                        weir__field_str("type", type_name(option->type)),
                        weir__field_str("default", option->fallback),
                        weir__field_bool("required", option->fallback == NULL),
                        bound_field("min", has_bounds, option->min),
                        bound_field("max", has_bounds, option->max),
                        weir__field_str("choices", option->choices),
                        weir__field_bool("secret", is_secret(option)),
                        weir__field_str("help", option->help));
}

static struct json_object *plugin_json(const char *path,
                                       const struct weir_plugin *plugin)
{
    struct json_object *options = json_object_new_array();

    for (size_t i = 0; i < plugin->option_count; i++) {
        struct weir_option option = option_at(plugin, i);

        options = weir__array_with(options, option_json(&option));
    }
    return WEIR__OBJECT(weir__field_str("file", path),
                        weir__field_str("name", plugin->name),
                        weir__field_str("version", plugin->version),
                        weir__field_str("summary", plugin->summary),
                        weir__field_number("abi", plugin->abi),
                        weir__field("options", options));
}

/* --- text ------------------------------------------------------------- */

static void print_bound(enum weir_option_type type, int64_t bound)
{
    char duration[24];

    if (type == WEIR_OPTION_DURATION) {
        (void)weir__duration_format(bound, duration);
        weir__print("%s", duration);
    } else if (type == WEIR_OPTION_SIZE && bound > 0 && bound % MIB == 0) {
        (void)printf("%" PRId64 "MiB", bound / MIB);
    } else {
        weir__print("%" PRId64 "%s", bound,
                    type == WEIR_OPTION_SIZE ? " bytes" : "");
    }
}

static void print_bounds(const struct weir_option *option)
{
    (void)printf(", ");
    print_bound(option->type, option->min);
    (void)printf(" to ");
    print_bound(option->type, option->max);
}

static void print_option(const struct weir_option *option)
{
    const char *secret = is_secret(option) ? ", secret" : "";

    weir__print("  %s (%s", option->name, type_name(option->type));
    if (option->choices != NULL)
        weir__print(": %s", option->choices);
    if (is_bounded(option))
        print_bounds(option);
    if (option->fallback == NULL)
        weir__print(", required%s)", secret);
    else
        weir__print(", default \"%s\"%s)", option->fallback, secret);
    weir__print("  %s\n", option->help != NULL ? option->help : "");
}

static void print_plugin(const char *path, const struct weir_plugin *plugin)
{
    weir__print("name     %s\n", plugin->name);
    if (plugin->version != NULL)
        weir__print("version  %s\n", plugin->version);
    if (plugin->summary != NULL)
        weir__print("summary  %s\n", plugin->summary);
    (void)printf("abi      %u\n", plugin->abi);
    weir__print("file     %s\n", path);
    if (plugin->option_count > 0)
        (void)printf("options\n");
    for (size_t i = 0; i < plugin->option_count; i++) {
        struct weir_option option = option_at(plugin, i);

        print_option(&option);
    }
}

static enum weir__exit run(const struct weir__cli *cli,
                           const struct weir__args *args)
{
    static const struct weir__plugin_places places = {.who = ""};
    struct weir__plugin_file file;
    struct weir_error err = {0};
    char path[PATH_MAX];

    if (!weir__plugin_find(args->operand[0], &places, path))
        return WEIR__EXIT_USAGE;
    weir__blame_listen();
    if (weir__plugin_load(path, &file, &err) < 0) {
        weir__complain("%s", err.text);
        return WEIR__EXIT_USAGE;
    }
    if (!cli->json) {
        print_plugin(path, &file.copy);
        return WEIR__EXIT_DONE;
    }
    return weir__print_object(plugin_json(path, &file.copy));
}

/* --- plugin list --------------------------------------------------------- */

struct listing {
    struct json_object *array; /* with --json */
    bool is_json;
};

static void list_one(struct listing *listing, const char *dir, const char *file)
{
    const char *slash = strchr(dir, '/') == NULL ? "./" : "";
    char name[NAME_MAX + 1], path[2 * PATH_MAX];

    (void)snprintf(name, sizeof(name), "%.*s", (int)strlen(file) - 3,
                   file);                                            /* fits */
    (void)snprintf(path, sizeof(path), "%s%s/%s", slash, dir, file); /* fits */
    if (listing->is_json)
        listing->array = weir__array_with(
            listing->array,
            WEIR__OBJECT(weir__field_text("name", weir__slice_str(name)),
                         weir__field_text("file", weir__slice_str(path))));
    else
        weir__print("%-15s %s\n", name, path);
}

static bool list_dir(const char *path, void *arg)
{
    char *names[WEIR__PLUGINS_MAX];
    DIR *dir = opendir(path);
    size_t count;

    if (dir == NULL)
        return false; /* none there */
    count = weir__plugin_names(dir, names);
    for (size_t i = 0; i < count; i++) {
        list_one(arg, path, names[i]);
        weir__mem_free(names[i]);
    }
    (void)closedir(dir);
    return false;
}

static enum weir__exit list(const struct weir__cli *cli,
                            const struct weir__args *args)
{
    struct listing listing = {.is_json = cli->json};

    (void)args;
    if (cli->json)
        listing.array = json_object_new_array();
    (void)weir__plugin_dirs(NULL, list_dir, &listing);
    return cli->json ? weir__print_object(
                           WEIR__OBJECT(weir__field("plugins", listing.array)))
                     : WEIR__EXIT_DONE;
}

const struct weir__command weir__cmd_plugin_list = {
    .name = "plugin list",
    .operands = "",
    .summary = "List the plugins that are found by name",
    .details = "A line for each: its name and its file; of a name that comes "
               "twice the first is\ntaken. None is loaded. With --json: "
               "{\"plugins\":[{\"name\",\"file\"}]}.",
    .example = "weir plugin list",
    .exits = "0 listed, also when there are none, 2 wrong usage",
    .run = list,
};

const struct weir__command weir__cmd_plugin_info = {
    .name = "plugin info",
    .operands = "F.so",
    .summary = "Describe a plugin and its options",
    .details = "F.so is a path or a name, as weir run takes it. Needs no "
               "server. With\n--json: {\"file\",\"name\",\"version\","
               "\"summary\",\"abi\",\n\"options\":[{\"name\",\"type\","
               "\"default\",\"required\",\"min\",\"max\",\"choices\",\n"
               "\"secret\",\"help\"}]}.",
    .example = "weir plugin info build/plugins/echo.so",
    .exits = "0 shown, 2 wrong usage, no such plugin, or none that fits",
    .run = run,
};
