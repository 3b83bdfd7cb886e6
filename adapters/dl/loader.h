/* SPDX-License-Identifier: MIT */
#ifndef WEIR_DL_LOADER_H
#define WEIR_DL_LOADER_H

/* Opening plugins: dlopen with NOW, LOCAL and NODELETE, check everything, never
 * close. Every refusal is one sentence that names the file and what is wrong.
 * The library is mapped for the life of the process; only instances come and
 * go. */

#include <weir/plugin.h>

struct weir__plugin_file {
    const struct weir_plugin *table; /* as exported; may be shorter than ours */
    struct weir_plugin copy; /* checked, absent fields zeroed: use this one */
};

/* Open and check a shared object. BLOCKS (reads files).
 * WEIR_ENOTFOUND (no such file, or it cannot be loaded: what the loader said),
 * WEIR_EABI (no weir plugin, another ABI, a size that cannot be), WEIR_EINVAL
 * (a path without a slash, a place that everybody may write to, or a table that
 * contradicts itself: no name, no run, bad or double options). `err` may be
 * NULL. */
int weir__plugin_load(const char *path, struct weir__plugin_file *ret_file,
                      struct weir_error *err);

/* The second half of it, for a table that is linked in; `path` goes into
 * sentences. */
int weir__plugin_check(const struct weir_plugin *table, const char *path,
                       struct weir__plugin_file *ret_file,
                       struct weir_error *err);

/* One instance of a plugin. It keeps the address of its file, which therefore
 * must not move while there are instances. */
struct weir__instance {
    const struct weir__plugin_file *file; /* kept; NULL: closed */
    void *self;
    uint32_t limit; /* of pending runs; 0: none */
};

/* What an instance is opened with; borrowed for the call, except `host` and
 * `loop`. */
struct weir__instance_options {
    const char *topic;          /* NUL-terminated */
    const char *const *options; /* "key=value" each */
    size_t option_count;
    const struct weir_host *host;    /* kept until the instance is closed */
    struct weir_loop *loop;          /* kept likewise; NULL: there is none */
    void *self;                      /* of a table that is linked in; or NULL */
    struct weir_redis_source *redis; /* borrowed; NULL: there is none */
};

/* Check the options against the plugin's table, fill in defaults and open an
 * instance. WEIR_EINVAL with a sentence (unknown option, missing, wrong type,
 * out of bounds), WEIR_ENOMEM, or what the plugin's open returned with its own
 * sentence. `err` may be NULL. */
int weir__instance_open(const struct weir__plugin_file *file,
                        const struct weir__instance_options *options,
                        struct weir__instance *ret_instance,
                        struct weir_error *err);

/* Close it, once; a zeroed or closed instance is fine. */
void weir__instance_close(struct weir__instance *instance);

#endif
