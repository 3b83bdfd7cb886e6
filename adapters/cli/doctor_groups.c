/* SPDX-License-Identifier: MIT */

/* weir doctor names groups of bounded topics that no worker serves. */

#include "adapters/cli/doctor.h"
#include "adapters/cli/topics.h"

#include <inttypes.h>
#include <string.h>

struct looking {
    struct weir__doctor *doctor;
    struct weir__client client;
    size_t topics, unserved; /* bounded topics; those with a finding */
};

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    struct looking *looking = arg;

    if (stats != NULL && stats->unserved > 0) {
        looking->unserved++;
        weir__doctor_note(looking->doctor, "groups", WEIR__HEALTH_WARNING,
                          "start a worker whose --groups match them",
                          "topic %s: %" PRId64 " group%s that no worker "
                          "serves, such as %s",
                          stats->topic, stats->unserved,
                          stats->unserved == 1 ? " waits" : "s wait",
                          stats->unserved_groups);
    }
    weir__client_finish(&looking->client, code);
}

/* A topic that is gone by now, or that cannot be read, is not one of them. */
static void look_at(struct looking *looking, const char *topic)
{
    struct weir__client *client = &looking->client;
    int rc = weir__client_ask_kind(client, topic);

    if (rc < 0 || strcmp(client->kind, "bounded") != 0)
        return;
    looking->topics++;
    rc = weir_reactor_declare(client->reactor, topic, client->kind, NULL);
    if (rc == WEIR_OK)
        rc = weir_reactor_stats(client->reactor, topic, on_stats, looking);
    if (rc == WEIR_OK)
        (void)weir__client_wait(client);
}

void weir__doctor_groups(struct weir__doctor *doctor,
                         const struct weir__cli *cli)
{
    struct looking looking = {.doctor = doctor};
    struct weir__topics topics;
    int rc;

    if (weir__client_open(&looking.client, cli, NULL, WEIR__PROBE_MS) !=
        WEIR__EXIT_NONE)
        return;
    rc = weir__topics_ask(&looking.client, &topics);
    if (rc == WEIR_OK)
        rc = weir__client_wait(&looking.client);
    for (size_t i = 0; rc == WEIR_OK && i < topics.count; i++)
        look_at(&looking, topics.names[i]);
    weir__topics_fini(&topics);
    weir__client_close(&looking.client);
    if (looking.topics > 0 && looking.unserved == 0)
        weir__doctor_note(doctor, "groups", WEIR__HEALTH_OK, NULL,
                          "no group waits that no worker serves");
}
