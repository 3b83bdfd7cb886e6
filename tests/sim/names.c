/* SPDX-License-Identifier: MIT */

/* Looking up names of the world. */

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/fibre.h"

struct name {
    char *name, *addresses; /* NULL: is not there */
    struct name *next;
};

static struct name *names;

static char *copy(const char *text)
{
    char *copied = text == NULL ? NULL : strdup(text);

    if (text != NULL && copied == NULL)
        sim_fail("no memory for \"%s\"", text);
    return copied;
}

static struct name *find(const char *text)
{
    struct name *name = names;

    while (name != NULL && strcmp(name->name, text) != 0)
        name = name->next;
    return name;
}

void sim_name(const char *text, const char *addresses)
{
    struct name *name = find(text);

    if (name == NULL) {
        name = calloc(1, sizeof(*name));
        if (name == NULL)
            sim_fail("no memory for \"%s\"", text);
        name->name = copy(text);
        name->next = names;
        names = name;
    }
    free(name->addresses);
    name->addresses = copy(addresses);
}

void sim_names_end(void)
{
    while (names != NULL) {
        struct name *name = names;

        names = name->next;
        free(name->name);
        free(name->addresses);
        free(name);
    }
}

/* Puts the address before `list`. */
static int put(const char *address, const char *service,
               const struct addrinfo *hints, struct addrinfo **list)
{
    struct {
        struct addrinfo info; /* first: freed as one */
        struct sockaddr_in in;
    } *block = calloc(1, sizeof(*block));

    if (block == NULL)
        return EAI_MEMORY;
    if (inet_pton(AF_INET, address, &block->in.sin_addr) != 1) {
        free(block);
        return EAI_NONAME;
    }
    block->in.sin_family = AF_INET;
    block->in.sin_port =
        htons((uint16_t)(service == NULL ? 0 : strtol(service, NULL, 10)));
    block->info = (struct addrinfo){
        .ai_family = AF_INET,
        .ai_socktype = hints == NULL ? SOCK_STREAM : hints->ai_socktype,
        .ai_addrlen = sizeof(block->in),
        .ai_addr = (struct sockaddr *)&block->in,
        .ai_next = *list};
    *list = &block->info;
    return 0;
}

static int look_up(const char *text, const char *service,
                   const struct addrinfo *hints, struct addrinfo **list)
{
    struct in_addr literal;
    struct name *name;
    char addresses[512] = "";
    char *rest = NULL;
    int rc = EAI_NONAME;

    *list = NULL;
    if (inet_pton(AF_INET, text, &literal) == 1)
        return put(text, service, hints, list);
    if (hints != NULL && (hints->ai_flags & AI_NUMERICHOST) != 0)
        return EAI_NONAME;
    sim_sleep(SIM_MS + (int64_t)sim_below((uint64_t)(29 * SIM_MS)));
    name = find(text);
    if (name != NULL && name->addresses != NULL)
        (void)snprintf(addresses, sizeof(addresses), "%s",
                       name->addresses); /* a test's */
    for (char *word = strtok_r(addresses, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest))
        rc = put(word, service, hints, list);
    return rc;
}

/* The system's function of this name. */
static void *system_has(const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);

    if (symbol == NULL)
        sim_fail("the system has no %s", name);
    return symbol;
}

int getaddrinfo(const char *name, const char *service,
                const struct addrinfo *hints, struct addrinfo **list)
{
    int (*fn)(const char *, const char *, const struct addrinfo *,
              struct addrinfo **);
    void *symbol;

    if (sim_is_inside())
        return look_up(name, service, hints, list);
    symbol = system_has("getaddrinfo");
    memcpy(&fn, &symbol, sizeof(fn));
    return fn(name, service, hints, list);
}

void freeaddrinfo(struct addrinfo *list)
{
    void (*fn)(struct addrinfo *);
    void *symbol;

    if (!sim_is_inside()) {
        symbol = system_has("freeaddrinfo");
        memcpy(&fn, &symbol, sizeof(fn));
        fn(list);
        return;
    }
    while (list != NULL) {
        struct addrinfo *next = list->ai_next;

        free(list);
        list = next;
    }
}
