/* SPDX-License-Identifier: MIT */

/* weir purge: every job of a topic, in whatever state. */

#include "adapters/cli/client.h"
#include "adapters/cli/options.h"
#include "adapters/cli/output.h"

#include <inttypes.h>

enum { YES };

static const struct weir__flag flags[] = {
    [YES] = {"yes", NULL, "do it; without, only how many would go is told"},
};

struct purge {
    struct weir__client client;
    const char *topic;
    uint64_t count;
};

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    struct purge *purge = arg;

    if (stats != NULL)
        purge->count =
            stats->scheduled + stats->ready + stats->running + stats->dead;
    weir__client_finish(&purge->client, code);
}

static void on_purged(int code, uint64_t count, void *arg)
{
    struct purge *purge = arg;

    purge->count = count;
    weir__client_finish(&purge->client, code);
}

static enum weir__exit ask(struct purge *purge, bool is_meant)
{
    int rc = is_meant ? weir_reactor_purge(purge->client.reactor, purge->topic,
                                           on_purged, purge)
                      : weir_reactor_stats(purge->client.reactor, purge->topic,
                                           on_stats, purge);

    if (rc == WEIR_OK)
        rc = weir__client_wait(&purge->client);
    if (rc == WEIR_ENOTFOUND)
        return weir__client_not_found(&purge->client, purge->topic, NULL);
    if (rc < 0)
        return weir__client_exit(&purge->client, rc, "purge");
    if (is_meant)
        return weir__print_count(purge->client.cli, purge->topic, "deleted",
                                 purge->count)
                   ? WEIR__EXIT_DONE
                   : WEIR__EXIT_FAILED;
    weir__complain("purge would delete %" PRIu64 " job%s of topic \"%s\"; give "
                   "--yes to do so",
                   purge->count, purge->count == 1 ? "" : "s", purge->topic);
    return WEIR__EXIT_USAGE;
}

static enum weir__exit run(const struct weir__cli *cli,
                           const struct weir__args *args)
{
    struct purge purge = {.topic = args->operand[0]};
    enum weir__exit rc;

    if (!weir__operand_topic(purge.topic))
        return WEIR__EXIT_USAGE;
    rc = weir__client_open(&purge.client, cli, NULL);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    rc = weir__client_know(&purge.client, purge.topic);
    if (rc == WEIR__EXIT_NONE)
        rc = ask(&purge, args->value[YES] != NULL);
    weir__client_close(&purge.client);
    return rc;
}

const struct weir__command weir__cmd_purge = {
    .name = "purge",
    .operands = "TOPIC",
    .operand_min = 1,
    .operand_max = 1,
    .flags = flags,
    .flag_count = sizeof(flags) / sizeof(flags[0]),
    .summary = "Delete every job of a topic, in any state",
    .details = "Its options and totals stay. Jobs that are running are not "
               "interrupted, but\nnever run again and their verdicts are "
               "ignored. With --json:\n{\"topic\",\"deleted\"}.",
    .example = "weir purge order.close --yes",
    .exits = "0 deleted, 2 wrong usage, or --yes is missing, 3 no such topic,\n"
             "  5 server unreachable",
    .run = run,
};
