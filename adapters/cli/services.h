/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_SERVICES_H
#define WEIR_CLI_SERVICES_H

/* Which topics weir run serves, with which plugin and options: what --handle
 * says, and what the configuration file says. --handle takes the place of a
 * topic's handler and options; its other options stay. Needs no server: weir
 * check looks at the same. Every refusal has been printed. */

#include "adapters/cli/plugin_path.h"
#include "adapters/config/config.h"
#include "core/error.h"

#include <weir/weir.h>

struct weir__service {
    const char *topic;
    const char *plugin; /* as written */
    char *file;         /* of it, owned; NULL: not checked, or not found */
    const char *const *options;
    size_t option_count;
    const struct weir__config_topic *section; /* NULL: none in the file */
    bool is_flag; /* plugin and options come from --handle */
};

struct weir__services {
    const char *path;             /* of the file, as given; NULL: none */
    struct weir__config *config;  /* owned; NULL: none */
    struct weir__handle *handles; /* owned */
    size_t handle_count;
    struct weir__service *list;            /* owned; those of the file first */
    const struct weir__service **by_topic; /* the same, sorted; owned */
    size_t count;
};

/* Read the file alone. */
enum weir__exit weir__services_read_file(struct weir__services *services,
                                         const char *path);

/* Read the file at `path` (NULL: none) and the values of --handle. A zeroed
 * struct is empty; release with weir__services_fini in any case. */
enum weir__exit weir__services_read(struct weir__services *services,
                                    const char *path,
                                    const struct weir__args *args);

/* NULL: none of that topic. Of services that were read. */
const struct weir__service *
weir__services_find(const struct weir__services *services, const char *topic);

/* Find and load each plugin and check its options against its table; nothing
 * of a plugin is run but what its file runs when it is loaded. Goes on after a
 * mistake. */
enum weir__exit weir__services_check(struct weir__services *services);

/* Directories that the file names are there; what weir run makes itself may be
 * missing. */
enum weir__exit
weir__services_check_dirs(const struct weir__services *services);

/* In a cluster a list or stream has to be in the slot of its topic. Goes on
 * after a mistake. */
enum weir__exit
weir__services_check_keys(const struct weir__services *services);

/* The file of a service's plugin. */
bool weir__service_find(const struct weir__services *services,
                        const struct weir__service *service,
                        char ret_path[PATH_MAX]);

/* What the file says about how the topic is served; the rest zero. */
struct weir_topic_options
weir__service_options(const struct weir__service *service);

/* What the file says about the program, where neither flag nor environment
 * did. `from` is memory for the place of the url in sentences. */
void weir__services_configure(const struct weir__services *services,
                              struct weir__cli *cli, char from[PATH_MAX]);

/* Log what is hardly meant so: options of the file that weir run does not look
 * at, and secrets in a file that everybody can read. Behind a check that found
 * nothing wrong. */
void weir__services_warn(const struct weir__services *services,
                         const struct weir__log *log);

void weir__services_fini(struct weir__services *services);

#endif
