/* SPDX-License-Identifier: MIT */

/* The nodes of a cluster, for questions to each. */

#include "adapters/cli/doctor.h"

#include "core/mem.h"

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
    int rc = weir__probe_map(server, &members.map, err);

    if (rc != WEIR_OK)
        return rc;
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

void weir__members_close(struct weir__members *members)
{
    for (size_t i = 0; i < members->count; i++)
        weir__probe_close(members->list[i].probe);
    weir__mem_free(members->list);
    weir__cluster_map_unref(members->map);
    *members = (struct weir__members){0};
}
