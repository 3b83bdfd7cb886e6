/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_PLUGIN_PATH_H
#define WEIR_CLI_PLUGIN_PATH_H

/* Where plugins are, and what `--handle` says about them. */

#include "adapters/cli/cli.h"
#include "adapters/config/config.h"

#include <dirent.h>
#include <limits.h>

/* Each directory in which names are looked up, in order, whether it is there or
 * not, until `fn` says true; returns that. `dirs` are those of the
 * configuration, or NULL. */
typedef bool (*weir__plugin_dir_fn)(const char *dir, void *arg);
bool weir__plugin_dirs(const struct weir__config_list *dirs,
                       weir__plugin_dir_fn fn, void *arg);

enum { WEIR__PLUGINS_MAX = 256 }; /* of a directory that are looked at */

/* Its files that end in .so, sorted, each owned by the caller, and how many. */
size_t weir__plugin_names(DIR *dir, char *ret_names[WEIR__PLUGINS_MAX]);

/* Where else plugins are looked for, and who asks. */
struct weir__plugin_places {
    const char *who; /* what a sentence begins with, "" or "FILE:3: ..." */
    const struct weir__config_list *dirs; /* of the configuration, or NULL */
};

/* The file of a plugin. A text with a slash, or one that ends in .so, is a
 * path. A name is looked up as NAME.so in WEIR_PLUGIN_PATH (colon-separated),
 * in the configuration's directories, in plugins/ beside the executable, in the
 * installed directory. False with a sentence that names the places. */
bool weir__plugin_find(const char *name,
                       const struct weir__plugin_places *places,
                       char ret_path[PATH_MAX]);

/* TOPIC=PLUGIN[?key=value&...] in parts. */
struct weir__handle {
    char *text;           /* owned; the others point into it */
    const char *topic;    /* NULL where there is none */
    const char *plugin;   /* as written */
    const char **options; /* "key=value", percent-decoded; owned */
    size_t option_count;
};

/* Parse and check it, with a sentence where it is wrong. On true the caller
 * releases with weir__handle_fini. */
bool weir__handle_parse(const char *text, struct weir__handle *ret_handle);

/* The same of PLUGIN[?key=value&...]. */
bool weir__handle_parse_plugin(const char *text,
                               struct weir__handle *ret_handle);
void weir__handle_fini(struct weir__handle *handle);

#endif
