/* SPDX-License-Identifier: MIT */

/* The nodes of a cluster, for questions to each, and which topics they have. */

#include "adapters/cli/doctor.h"

#include "adapters/redis/cluster/slot.h"
#include "core/mem.h"
#include "core/text.h"

#include <stdio.h>
#include <string.h>

static void open_member(struct weir__member *member,
                        const struct weir__redis_url *url)
{
    const struct weir__redis_host *host = &member->node->host;
    bool is_v6 = strchr(host->name, ':') != NULL;
    struct weir__redis_url own;
    struct weir_error err = {0};

    (void)snprintf(member->name, sizeof(member->name), "%s%s%s:%u",
                   is_v6 ? "[" : "", host->name, is_v6 ? "]" : "",
                   (unsigned)host->port); /* fits */
    weir__redis_url_of_server(url, host, &own);
    own.is_unix = host->port == 0;
    if (weir__probe_open(&own, WEIR__PROBE_MS, &member->probe, &err) == WEIR_OK)
        return;
    (void)snprintf(member->why, sizeof(member->why), "%s", err.text); /* cut */
}

int weir__members_open(const struct weir__redis_url *url,
                       struct weir__probe *server,
                       struct weir__members *ret_members,
                       struct weir_error *err)
{
    struct weir__members members = {0};
    const struct weir__redis_host *host = weir__probe_host(server);
    struct weir_error why = {0};
    int rc = weir__probe_map(server, &members.map, &why);

    if (rc != WEIR_OK)
        return weir__error_set(err, rc,
                               "whether %s port %u is a node of a cluster is "
                               "not known: %s",
                               host->name, (unsigned)host->port, why.text);
    members.count = weir__cluster_map_count(members.map);
    members.list = weir__mem_new(members.count * sizeof(members.list[0]));
    if (members.list == NULL) {
        weir__cluster_map_unref(members.map);
        return weir__error_set(err, WEIR_ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < members.count; i++) {
        members.list[i].node = weir__cluster_map_node(members.map, i);
        open_member(&members.list[i], url);
    }
    *ret_members = members;
    return WEIR_OK;
}

const char *weir__members_advice(const struct weir_error *err)
{
    return strstr(err->text, "NOPERM") != NULL
               ? "allow CLUSTER SLOTS"
               : "see what redis-cli CLUSTER SLOTS says there";
}

void weir__members_close(struct weir__members *members)
{
    for (size_t i = 0; i < members->count; i++)
        weir__probe_close(members->list[i].probe);
    weir__mem_free(members->list);
    weir__cluster_map_unref(members->map);
    *members = (struct weir__members){0};
}

struct weir__probe *weir__members_probe(const struct weir__members *members,
                                        uint16_t slot)
{
    const struct weir__cluster_node *node;

    if (members->map == NULL)
        return members->server;
    node = weir__cluster_map_find(members->map, slot);
    for (size_t i = 0; i < members->count; i++)
        if (members->list[i].node == node)
            return members->list[i].probe;
    return NULL;
}

/* --- topics --------------------------------------------------------------- */

char *weir__probe_page(struct weir__probe *probe, const char *const *words,
                       char cursor[24], const char **ret_why)
{
    const char *text, *members;
    char *copy = NULL;

    if (weir__probe_ask(probe, words, &text) != WEIR_OK) {
        *ret_why = text;
        return NULL;
    }
    members = text + strcspn(text, "\n");
    copy = weir__mem_new(strlen(members) + 1);
    *ret_why = "out of memory";
    if (copy != NULL)
        memcpy(copy, members, strlen(members) + 1);
    (void)snprintf(cursor, 24, "%.*s", (int)(members - text), text); /* fits */
    return copy;
}

/* Returns how many were topics. */
static size_t tell_page(char *names, void (*fn)(const char *topic, void *arg),
                        void *arg)
{
    char *rest = NULL;
    size_t count = 0;

    for (char *name = strtok_r(names, "\n", &rest); name != NULL;
         name = strtok_r(NULL, "\n", &rest)) {
        if (weir__topic_check(weir__slice_str(name), NULL) != WEIR_OK)
            continue;
        count++;
        fn(name, arg);
    }
    return count;
}

bool weir__members_topics(const struct weir__members *members,
                          const char *prefix,
                          void (*fn)(const char *topic, void *arg), void *arg,
                          size_t *ret_count, bool *ret_is_all)
{
    enum { PAGES_MAX = 20 }; /* 1,000 each */
    char key[WEIR__REDIS_PREFIX_CAP + 8], cursor[24] = "0", *names;
    const char *words[] = {"SSCAN", key, cursor, "COUNT", "1000", NULL}, *why;
    struct weir__probe *probe;
    size_t pages = 0, count = 0;

    (void)snprintf(key, sizeof(key), "%s:topics", prefix); /* fits */
    probe =
        weir__members_probe(members, weir__cluster_slot(weir__slice_str(key)));
    do {
        names =
            probe == NULL ? NULL : weir__probe_page(probe, words, cursor, &why);
        if (names == NULL)
            return false;
        count += tell_page(names, fn, arg);
        weir__mem_free(names);
        pages++;
    } while (strcmp(cursor, "0") != 0 && pages < PAGES_MAX);
    *ret_count = count;
    *ret_is_all = strcmp(cursor, "0") == 0;
    return true;
}
