/* SPDX-License-Identifier: MIT */
#include "tests/harness/names.h"

#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*ask_fn)(const char *, const char *, const struct addrinfo *,
                      struct addrinfo **);

static atomic_size_t asked;

static int ask_system(const char *name, const char *service,
                      const struct addrinfo *hints, struct addrinfo **list)
{
    ask_fn fn;
    void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");

    memcpy(&fn, &symbol, sizeof(fn));
    return fn(name, service, hints, list);
}

/* What stands behind `name` in the file; false: it is not there. */
static bool find(const char *path, const char *name, char *line, size_t cap)
{
    FILE *file = path == NULL ? NULL : fopen(path, "r");
    size_t len = strlen(name);
    bool found = false;

    while (file != NULL && !found && fgets(line, (int)cap, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        found = strncmp(line, name, len) == 0 && strchr(" ", line[len]) != NULL;
    }
    if (file != NULL)
        (void)fclose(file); /* was read */
    if (found)
        memmove(line, line + len, strlen(line + len) + 1);
    return found;
}

/* The addresses in `words`, in this order. */
static int ask_each(char *words, const struct addrinfo *hints,
                    struct addrinfo **list)
{
    struct addrinfo numeric = *hints;
    char *rest = NULL;

    *list = NULL;
    numeric.ai_flags |= AI_NUMERICHOST;
    for (char *word = strtok_r(words, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        int rc;

        while (*list != NULL)
            list = &(*list)->ai_next;
        rc = ask_system(word, NULL, &numeric, list);
        if (rc != 0)
            return rc;
    }
    return 0;
}

int getaddrinfo(const char *name, const char *service,
                const struct addrinfo *hints, struct addrinfo **list)
{
    char line[512], more[512] = "";
    char *from;
    FILE *file;

    if (name == NULL ||
        !find(getenv("WEIR_TEST_NAMES"), name, line, sizeof(line)))
        return ask_system(name, service, hints, list);
    (void)atomic_fetch_add(&asked, 1);
    from = strchr(line, '<');
    if (from != NULL) {
        file = fopen(from + 1, "r");
        if (file != NULL && fgets(more, sizeof(more), file) == NULL)
            more[0] = '\0';
        if (file != NULL)
            (void)fclose(file);
        more[strcspn(more, "\n")] = '\0';
        from = more;
    } else {
        from = line;
    }
    if (strspn(from, " ") == strlen(from))
        return EAI_NONAME;
    return ask_each(from, hints, list);
}

size_t names_asked(void)
{
    return atomic_load(&asked);
}
