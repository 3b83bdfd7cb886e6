/* SPDX-License-Identifier: MIT */
#include "adapters/dl/loader.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "adapters/dl/option.h"
#include "adapters/dl/trust.h"
#include "adapters/dl/whole.h"
#include "core/assert.h"
#include "core/error.h"
#include "core/mem.h"

enum {
    TABLE_SIZE_MAX = 65536, /* more is no table */
    TABLE_ALIGN = _Alignof(struct weir_plugin),
    SENTENCE_CAP = 200
};

/* All that is required lies before this. */
#define TABLE_SIZE_MIN (offsetof(struct weir_plugin, run) + sizeof(weir_run_fn))

/* What dlopen says names a file: this one, or a library that it wants. */
static int cannot_load(const char *path, const char *why,
                       struct weir_error *err)
{
    if (why == NULL)
        why = path;
    if (strstr(why, path) != NULL)
        return weir__error_set(err, WEIR_ENOTFOUND,
                               "plugin cannot be loaded: %s", why);
    return weir__error_set(err, WEIR_ENOTFOUND,
                           "plugin %s cannot be loaded: %s", path, why);
}

/* Nothing is ever closed, refused files included: NODELETE keeps them mapped,
 * as their constructors may have left threads or hooks behind. */
static int find_table(const char *path, const struct weir_plugin **ret_table,
                      struct weir_error *err)
{
    const struct weir_plugin *table;
    void *library;
    int rc = weir__whole_check(path, err);

    if (rc == WEIR_OK)
        rc = weir__trust_check(path, err);
    if (rc < 0)
        return rc;
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL)
        return cannot_load(path, dlerror(), err);
    (void)dlerror(); /* an older one must not be taken for that of dlsym */
    table = dlsym(library, WEIR_PLUGIN_SYMBOL);
    if (dlerror() != NULL || table == NULL)
        return weir__error_set(err, WEIR_EABI,
                               "plugin %s: not a weir plugin of ABI %d: it "
                               "exports no %s",
                               path, WEIR_PLUGIN_ABI, WEIR_PLUGIN_SYMBOL);
    *ret_table = table;
    return WEIR_OK;
}

static int check_size(const struct weir_plugin *table, const char *path,
                      struct weir_error *err)
{
    WEIR_ASSERT(table != NULL);
    if (table->abi != WEIR_PLUGIN_ABI)
        return weir__error_set(err, WEIR_EABI,
                               "plugin %s: built for plugin ABI %" PRIu32
                               ", this weir has %d",
                               path, table->abi, WEIR_PLUGIN_ABI);
    if (table->size < TABLE_SIZE_MIN || table->size > TABLE_SIZE_MAX ||
        table->size % TABLE_ALIGN != 0)
        return weir__error_set(err, WEIR_EABI,
                               "plugin %s: its table claims %" PRIu32
                               " bytes; that cannot be",
                               path, table->size);
    return WEIR_OK;
}

static bool is_name(const char *name)
{
    return name != NULL && *name != '\0' &&
           name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-")] == '\0';
}

static int check_table(const struct weir_plugin *table, const char *path,
                       struct weir_error *err)
{
    if (!is_name(table->name))
        return weir__error_set(err, WEIR_EINVAL,
                               "plugin %s: it has no name of a-z, 0-9, _ and -",
                               path);
    if (table->run == NULL && table->run_batch == NULL)
        return weir__error_set(err, WEIR_EINVAL,
                               "plugin %s: it has no run function", path);
    if ((table->flags & ~(uint32_t)WEIR_PLUGIN_BLOCKING) != 0)
        return weir__error_set(err, WEIR_EABI,
                               "plugin %s: it has a flag that this weir does "
                               "not know",
                               path);
    if ((table->flags & WEIR_PLUGIN_BLOCKING) != 0 && table->flush != NULL)
        return weir__error_set(err, WEIR_EINVAL,
                               "plugin %s: it blocks and has a flush function; "
                               "only one of them can be",
                               path);
    if ((table->flags & WEIR_PLUGIN_BLOCKING) != 0 && table->run == NULL)
        return weir__error_set(err, WEIR_EINVAL,
                               "plugin %s: it blocks and has no run function "
                               "of one job",
                               path);
    return weir__option_table_check(table, path, err);
}

int weir__plugin_check(const struct weir_plugin *table, const char *path,
                       struct weir__plugin_file *ret_file,
                       struct weir_error *err)
{
    struct weir__plugin_file file = {.table = table};
    int rc = check_size(table, path, err);

    if (rc < 0)
        return rc;
    memcpy(&file.copy, table,
           table->size < sizeof(file.copy) ? table->size : sizeof(file.copy));
    rc = check_table(&file.copy, path, err);
    if (rc < 0)
        return rc;
    *ret_file = file;
    return WEIR_OK;
}

int weir__plugin_load(const char *path, struct weir__plugin_file *ret_file,
                      struct weir_error *err)
{
    const struct weir_plugin *table = NULL;
    int rc;

    /* without one, dlopen searches the system's folders */
    if (strchr(path, '/') == NULL)
        return weir__error_set(err, WEIR_EINVAL,
                               "plugin %s: a path needs a slash, as in ./%s",
                               path, path);
    rc = find_table(path, &table, err);
    return rc < 0 ? rc : weir__plugin_check(table, path, ret_file, err);
}

/* Call the plugin's open; what it says goes into `err`. */
static int call_open(const struct weir_plugin *plugin, struct weir_open *open,
                     void **ret_self, struct weir_error *err)
{
    char sentence[SENTENCE_CAP] = "";
    void *self = NULL;
    int rc;

    open->error = sentence;
    open->error_cap = sizeof(sentence);
    rc = plugin->open(open, &self);
    if (rc == WEIR_OK) {
        *ret_self = self;
        return WEIR_OK;
    }
    if (rc > 0)
        rc = WEIR_EINVAL;
    sentence[sizeof(sentence) - 1] = '\0'; /* it may have been filled up */
    if (*sentence == '\0')
        return weir__error_set(err, rc,
                               "plugin %s: cannot be opened for topic %s (%s)",
                               plugin->name, open->topic, weir_error_text(rc));
    return weir__error_set(err, rc, "plugin %s: %s", plugin->name, sentence);
}

int weir__instance_open(const struct weir__plugin_file *file,
                        const struct weir__instance_options *options,
                        struct weir__instance *ret_instance,
                        struct weir_error *err)
{
    const struct weir_plugin *plugin = &file->copy;
    struct weir_option_value *values = NULL;
    uint32_t limit = 0;
    struct weir_open open = {
        .size = sizeof(open),
        .host = options->host,
        .topic = options->topic,
        .loop = options->loop,
        .self = options->self,
        .redis = options->redis,
        .ret_limit = &limit,
    };
    void *self = options->self;
    int rc;

    WEIR_ASSERT(file->table != NULL &&
                (plugin->run != NULL || plugin->run_batch != NULL));
    WEIR_ASSERT(options->host != NULL && options->topic != NULL);
    rc = weir__option_values(plugin, options->options, options->option_count,
                             &values, err);
    if (rc < 0)
        return rc;
    open.values = values;
    if (plugin->open != NULL)
        rc = call_open(plugin, &open, &self, err);
    weir__mem_free(values);
    if (rc < 0)
        return rc;
    *ret_instance = (struct weir__instance){file, self, limit};
    return WEIR_OK;
}

void weir__instance_close(struct weir__instance *instance)
{
    if (instance->file != NULL && instance->file->copy.close != NULL)
        instance->file->copy.close(instance->self);
    *instance = (struct weir__instance){0};
}
