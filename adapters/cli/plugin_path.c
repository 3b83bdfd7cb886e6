/* SPDX-License-Identifier: MIT */
#include "adapters/cli/plugin_path.h"

#include "core/buf.h"
#include "core/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(WEIR_PLUGIN_BELOW_PREFIX) < 64,
               "the folder of plugins fits behind the prefix");

static bool visit(const char *dir, size_t len, weir__plugin_dir_fn fn,
                  void *arg)
{
    char path[PATH_MAX];

    return len > 0 &&
           snprintf(path, sizeof(path), "%.*s", (int)len, dir) <
               (int)sizeof(path) &&
           fn(path, arg);
}

static bool visit_list(const char *list, weir__plugin_dir_fn fn, void *arg)
{
    while (list != NULL && *list != '\0') {
        size_t len = strcspn(list, ":");

        if (visit(list, len, fn, arg))
            return true;
        list += len + (list[len] == ':' ? 1 : 0);
    }
    return false;
}

/* plugins/ of a build tree, or where the prefix has them that the executable
 * was installed, or moved, to. */
static bool visit_beside_executable(weir__plugin_dir_fn fn, void *arg)
{
    static const char below[] = "/" WEIR_PLUGIN_BELOW_PREFIX;
    char dir[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", dir, sizeof(dir) - 64);
    char *slash;

    if (len <= 0)
        return false;
    dir[len] = '\0';
    slash = strrchr(dir, '/');
    if (slash == NULL)
        return false;
    memcpy(slash, "/plugins", sizeof("/plugins"));
    if (fn(dir, arg))
        return true;
    *slash = '\0';
    slash = strrchr(dir, '/');
    if (slash == NULL || strcmp(slash, "/bin") != 0)
        return false;
    memcpy(slash, below, sizeof(below));
    return strcmp(dir, WEIR_PLUGIN_DIR) != 0 && fn(dir, arg);
}

bool weir__plugin_dirs(const struct weir__config_list *dirs,
                       weir__plugin_dir_fn fn, void *arg)
{
    if (visit_list(getenv("WEIR_PLUGIN_PATH"), fn, arg))
        return true;
    for (size_t i = 0; dirs != NULL && i < dirs->count; i++) {
        if (visit(dirs->items[i], strlen(dirs->items[i]), fn, arg))
            return true;
    }
    return visit_beside_executable(fn, arg) ||
           visit(WEIR_PLUGIN_DIR, strlen(WEIR_PLUGIN_DIR), fn, arg);
}

static int by_name(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

static char *copy_of(const char *text)
{
    char *copy = weir__mem_new(strlen(text) + 1);

    if (copy != NULL)
        memcpy(copy, text, strlen(text) + 1);
    return copy;
}

size_t weir__plugin_names(DIR *dir, char *ret_names[WEIR__PLUGINS_MAX])
{
    const struct dirent *entry;
    size_t count = 0;

    while (count < WEIR__PLUGINS_MAX && (entry = readdir(dir)) != NULL) {
        size_t len = strlen(entry->d_name);

        if (len <= 3 || strcmp(entry->d_name + len - 3, ".so") != 0)
            continue;
        ret_names[count] = copy_of(entry->d_name);
        count += ret_names[count] != NULL;
    }
    qsort(ret_names, count, sizeof(ret_names[0]), by_name);
    return count;
}

/* The places a name was looked for in, for the sentence. */
struct search {
    const char *name;
    char *found; /* PATH_MAX bytes */
    char places[512];
};

static bool look(const char *dir, void *arg)
{
    struct search *search = arg;
    size_t used = strlen(search->places);
    int written;

    (void)snprintf(search->places + used, sizeof(search->places) - used, "%s%s",
                   used > 0 ? ", " : "", dir); /* cut */
    written = snprintf(search->found, PATH_MAX, "%s/%s.so", dir, search->name);
    return written > 0 && written < PATH_MAX &&
           access(search->found, F_OK) == 0;
}

/* What ends in .so is a file in this directory, as for other commands. */
static bool is_path(const char *text)
{
    size_t len = strlen(text);

    return strchr(text, '/') != NULL ||
           (len >= 3 && strcmp(text + len - 3, ".so") == 0);
}

bool weir__plugin_find(const char *name,
                       const struct weir__plugin_places *places,
                       char ret_path[PATH_MAX])
{
    struct search search = {.name = name, .found = ret_path};

    if (is_path(name)) {
        if (snprintf(ret_path, PATH_MAX, "%s%s",
                     strchr(name, '/') == NULL ? "./" : "", name) < PATH_MAX)
            return true;
        weir__complain("%sthe path of the plugin is too long", places->who);
        return false;
    }
    if (weir__plugin_dirs(places->dirs, look, &search))
        return true;
    weir__complain("%sthere is no plugin \"%s\": no %s.so in %s; set "
                   "WEIR_PLUGIN_PATH, or give a path with a slash",
                   places->who, name, name, search.places);
    return false;
}
