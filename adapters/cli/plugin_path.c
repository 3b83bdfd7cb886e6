/* SPDX-License-Identifier: MIT */
#include "adapters/cli/plugin_path.h"

#include "core/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The places a name was looked for in, for the sentence. */
struct search {
    const char *name;
    char *found; /* PATH_MAX bytes */
    char places[512];
};

/* Look into one directory, `len` bytes of `dir`. */
static bool look(struct search *search, const char *dir, size_t len)
{
    size_t used = strlen(search->places);
    int written;

    if (len == 0)
        return false;
    (void)snprintf(search->places + used, sizeof(search->places) - used,
                   "%s%.*s", used > 0 ? ", " : "", (int)len, dir); /* cut */
    written = snprintf(search->found, PATH_MAX, "%.*s/%s.so", (int)len, dir,
                       search->name);
    return written > 0 && written < PATH_MAX &&
           access(search->found, F_OK) == 0;
}

static bool look_in_list(struct search *search, const char *list)
{
    while (list != NULL && *list != '\0') {
        size_t len = strcspn(list, ":");

        if (look(search, list, len))
            return true;
        list += len + (list[len] == ':' ? 1 : 0);
    }
    return false;
}

static bool look_in_dirs(struct search *search,
                         const struct weir__config_list *dirs)
{
    for (size_t i = 0; dirs != NULL && i < dirs->count; i++) {
        if (look(search, dirs->items[i], strlen(dirs->items[i])))
            return true;
    }
    return false;
}

static bool look_beside_executable(struct search *search)
{
    char dir[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", dir, sizeof(dir) - 16);
    char *slash;

    if (len <= 0)
        return false;
    dir[len] = '\0';
    slash = strrchr(dir, '/');
    if (slash == NULL)
        return false;
    memcpy(slash, "/plugins", sizeof("/plugins"));
    return look(search, dir, strlen(dir));
}

bool weir__plugin_find(const char *name,
                       const struct weir__plugin_places *places,
                       char ret_path[PATH_MAX])
{
    struct search search = {.name = name, .found = ret_path};

    if (strchr(name, '/') != NULL) {
        if (snprintf(ret_path, PATH_MAX, "%s", name) < PATH_MAX)
            return true;
        weir__complain("%sthe path of the plugin is too long", places->who);
        return false;
    }
    if (look_in_list(&search, getenv("WEIR_PLUGIN_PATH")) ||
        look_in_dirs(&search, places->dirs) ||
        look_beside_executable(&search) ||
        look(&search, WEIR_PLUGIN_DIR, strlen(WEIR_PLUGIN_DIR)))
        return true;
    weir__complain("%sthere is no plugin \"%s\": no %s.so in %s; set "
                   "WEIR_PLUGIN_PATH, or give a path with a slash",
                   places->who, name, name, search.places);
    return false;
}

bool weir__plugin_operand(const char *text, char ret_path[PATH_MAX])
{
    const struct weir__plugin_places places = {.who = ""};
    size_t len = strlen(text);

    if (strchr(text, '/') != NULL || len < 3 ||
        strcmp(text + len - 3, ".so") != 0)
        return weir__plugin_find(text, &places, ret_path);
    if (snprintf(ret_path, PATH_MAX, "./%s", text) < PATH_MAX)
        return true;
    weir__complain("the path of the plugin is too long");
    return false;
}
