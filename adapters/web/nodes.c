/* SPDX-License-Identifier: MIT */
#include "adapters/web/nodes.h"

#include "adapters/cli/doctor.h"
#include "adapters/server/info.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LIMIT_MS = 1000, FRESH_S = 5 };

struct weir__nodes {
    struct weir__redis_url url;
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    bool is_wanted, is_ending;
    struct weir__node *list; /* owned */
    size_t count;
    time_t asked_s; /* of a clock that only goes on */
};

/* --- one node ------------------------------------------------------------- */

static void copy(char *to, size_t cap, struct weir_slice text)
{
    (void)snprintf(to, cap, "%.*s", (int)text.len,
                   (const char *)text.ptr); /* cut */
}

/* slave0:ip=..,port=..,state=online,offset=123,lag=0 */
static uint64_t behind(const char *info)
{
    uint64_t offset = weir__info_number(info, "master_repl_offset");
    uint64_t most = 0;

    for (const char *at = strstr(info, "\nslave"); at != NULL;
         at = strstr(at + 1, "\nslave")) {
        const char *end = strpbrk(at + 1, "\r\n");
        const char *text = strstr(at, ",offset=");
        uint64_t own;

        if (text == NULL || end == NULL || text > end)
            continue;
        own = strtoull(text + sizeof(",offset=") - 1, NULL, 10);
        if (own < offset && offset - own > most)
            most = offset - own;
    }
    return most;
}

static void read_info(struct weir__node *node, const char *info)
{
    struct weir_slice valkey = weir__info_field(info, "valkey_version");
    char version[40];

    copy(version, sizeof(version),
         valkey.len > 0 ? valkey : weir__info_field(info, "redis_version"));
    (void)snprintf(node->version, sizeof(node->version), "%s %s",
                   valkey.len > 0 ? "valkey" : "redis", version); /* fits */
    node->is_up = true;
    node->is_primary = weir__info_is(info, "role", "master");
    node->replicas = weir__info_number(info, "connected_slaves");
    node->clients = weir__info_number(info, "connected_clients");
    node->memory_bytes = weir__info_number(info, "used_memory");
    node->memory_max_bytes = weir__info_number(info, "maxmemory");
    node->evicted = (int64_t)weir__info_number(info, "evicted_keys");
    node->behind_bytes = behind(info);
}

static void look_at(struct weir__node *node, struct weir__probe *probe)
{
    static const char *const words[] = {"INFO", NULL};
    const char *text;

    if (weir__probe_ask(probe, words, &text) == WEIR_OK)
        read_info(node, text);
    else
        copy(node->why, sizeof(node->why), weir__slice_str(text));
}

/* --- all of them ---------------------------------------------------------- */

static size_t look_at_members(const struct weir__members *members,
                              struct weir__node **ret_list)
{
    struct weir__node *list =
        weir__mem_new((members->count + 1) * sizeof(*list));

    *ret_list = list;
    for (size_t i = 0; list != NULL && i < members->count; i++) {
        const struct weir__member *member = &members->list[i];

        (void)snprintf(list[i].name, sizeof(list[i].name), "%s",
                       member->name); /* fits */
        if (member->probe != NULL)
            look_at(&list[i], member->probe);
        else
            copy(list[i].why, sizeof(list[i].why),
                 weir__slice_str(member->why));
    }
    return list == NULL ? 0 : members->count;
}

/* `why`: it was not reached, or the other nodes are not known. */
static size_t look_at_server(const struct weir__redis_url *url,
                             struct weir__probe *probe, const char *why,
                             struct weir__node **ret_list)
{
    struct weir__node *node = weir__mem_new(sizeof(*node));
    const struct weir__redis_host *host =
        probe != NULL ? weir__probe_host(probe) : &url->hosts[0];

    *ret_list = node;
    if (node == NULL)
        return 0;
    if (host->port == 0)
        (void)snprintf(node->name, sizeof(node->name), "unix:%s", host->name);
    else
        (void)snprintf(node->name, sizeof(node->name), "%s:%u", host->name,
                       (unsigned)host->port); /* cut */
    copy(node->why, sizeof(node->why), weir__slice_str(why));
    if (probe != NULL)
        look_at(node, probe);
    return 1;
}

static size_t look(const struct weir__redis_url *url,
                   struct weir__node **ret_list)
{
    struct weir__members members = {0};
    struct weir__probe *probe = NULL;
    struct weir_error err = {0};
    size_t count;
    int rc;

    if (weir__probe_open(url, LIMIT_MS, &probe, &err) != WEIR_OK)
        return look_at_server(url, NULL, err.text, ret_list);
    rc = weir__members_open(url, probe, &members, &err);
    if (rc == WEIR_OK && members.count == 0)
        rc = weir__error_set(&err, WEIR_ESERVER,
                             "no node of its cluster has slots");
    if (rc == WEIR_OK)
        count = look_at_members(&members, ret_list);
    else
        count = look_at_server(url, probe, rc == WEIR_ENOTFOUND ? "" : err.text,
                               ret_list);
    weir__members_close(&members);
    weir__probe_close(probe);
    return count;
}

/* --- the thread ----------------------------------------------------------- */

static void *run(void *arg)
{
    struct weir__nodes *nodes = arg;

    (void)pthread_mutex_lock(&nodes->lock);
    while (!nodes->is_ending) {
        struct weir__node *list = NULL;
        size_t count;

        if (!nodes->is_wanted) {
            (void)pthread_cond_wait(&nodes->changed, &nodes->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&nodes->lock);
        count = look(&nodes->url, &list);
        (void)pthread_mutex_lock(&nodes->lock);
        weir__mem_free(nodes->list);
        nodes->list = list;
        nodes->count = count;
        nodes->is_wanted = false;
    }
    (void)pthread_mutex_unlock(&nodes->lock);
    return NULL;
}

/* Signals are the loop's. */
static int start(struct weir__nodes *nodes)
{
    sigset_t all, before;
    int rc;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&nodes->thread, NULL, run, nodes);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0 ? WEIR_OK : WEIR_ESYSTEM;
}

int weir__nodes_open(const char *url, struct weir__nodes **ret_nodes)
{
    struct weir__nodes *nodes = weir__mem_new(sizeof(*nodes));
    int rc;

    WEIR_ASSERT(url != NULL);
    if (nodes == NULL)
        return WEIR_ENOMEM;
    rc = weir__redis_url_parse(url, &nodes->url, NULL);
    if (rc == WEIR_OK) {
        (void)pthread_mutex_init(&nodes->lock, NULL); /* cannot fail here */
        (void)pthread_cond_init(&nodes->changed, NULL);
        rc = start(nodes);
    }
    if (rc != WEIR_OK) {
        weir__mem_free(nodes);
        return rc;
    }
    *ret_nodes = nodes;
    return WEIR_OK;
}

void weir__nodes_close(struct weir__nodes *nodes)
{
    if (nodes == NULL)
        return;
    (void)pthread_mutex_lock(&nodes->lock);
    nodes->is_ending = true;
    (void)pthread_cond_signal(&nodes->changed);
    (void)pthread_mutex_unlock(&nodes->lock);
    (void)pthread_join(nodes->thread, NULL);
    (void)pthread_cond_destroy(&nodes->changed);
    (void)pthread_mutex_destroy(&nodes->lock);
    weir__mem_free(nodes->list);
    weir__mem_free(nodes);
}

size_t weir__nodes_list(struct weir__nodes *nodes, struct weir__node **ret_list)
{
    struct timespec now = {0};
    struct weir__node *list = NULL;
    size_t count = 0;

    WEIR_ASSERT(ret_list != NULL);
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail */
    (void)pthread_mutex_lock(&nodes->lock);
    if (nodes->count > 0)
        list = weir__mem_new(nodes->count * sizeof(*list));
    if (list != NULL) {
        count = nodes->count;
        memcpy(list, nodes->list, count * sizeof(*list));
    }
    if (!nodes->is_wanted &&
        (nodes->asked_s == 0 || now.tv_sec >= nodes->asked_s + FRESH_S)) {
        nodes->asked_s = now.tv_sec;
        nodes->is_wanted = true;
        (void)pthread_cond_signal(&nodes->changed);
    }
    (void)pthread_mutex_unlock(&nodes->lock);
    *ret_list = list;
    return count;
}
