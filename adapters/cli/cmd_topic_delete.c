/* SPDX-License-Identifier: MIT */

/* weir topic delete: the topic itself, with what it holds where that is
 * wanted. */

#include "adapters/cli/ask.h"
#include "adapters/cli/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <weir/cron.h>

enum { YES };

static const struct weir__flag flags[] = {
    [YES] = {"yes", NULL, "also where it holds jobs, which are deleted"},
};

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    weir__ask_on_count(code,
                       stats == NULL ? 0
                                     : stats->scheduled + stats->ready +
                                           stats->running + stats->dead,
                       arg);
}

/* How many jobs it holds, in ask->count. */
static int count_jobs(struct weir__ask *ask)
{
    int rc = weir_reactor_stats(ask->client.reactor, ask->topic, on_stats, ask);

    return rc == WEIR_OK ? weir__client_wait(&ask->client) : rc;
}

static void on_cron(int code, const struct weir_cron_info *cron, void *arg)
{
    struct weir__ask *ask = arg;

    if (cron == NULL)
        weir__client_finish(&ask->client, code);
    else
        (void)snprintf(ask->text, sizeof(ask->text),
                       "it has schedules, such as %s: weir cron delete",
                       cron->cron.name); /* fits */
}

/* Other kinds have none. */
static int find_schedule(struct weir__ask *ask)
{
    int rc =
        weir_reactor_cron_list(ask->client.reactor, ask->topic, on_cron, ask);

    if (rc == WEIR_OK)
        rc = weir__client_wait(&ask->client);
    if (rc == WEIR_OK && ask->text[0] != '\0')
        return WEIR_EEXISTS;
    return rc == WEIR_EKIND ? WEIR_OK : rc;
}

static int purge(struct weir__ask *ask)
{
    int rc = weir_reactor_purge(ask->client.reactor, ask->topic,
                                weir__ask_on_count, ask);

    return rc == WEIR_OK ? weir__client_wait(&ask->client) : rc;
}

/* One that is listed and nothing more was deleted before, but for its name. */
static int ask_delete(struct weir__ask *ask)
{
    const bool is_wanted = ask->args->value[YES] != NULL;
    int rc = find_schedule(ask);

    if (rc == WEIR_OK)
        rc = count_jobs(ask);
    if (rc == WEIR_OK && ask->count > 0 && !is_wanted)
        return WEIR_EEXISTS;
    if (rc == WEIR_OK && ask->count > 0)
        rc = purge(ask);
    if (rc < 0 && rc != WEIR_ENOTFOUND)
        return rc;
    return weir_reactor_delete_topic(ask->client.reactor, ask->topic,
                                     weir__ask_on_code, ask);
}

static enum weir__exit refuse(struct weir__ask *ask, int code)
{
    if (code != WEIR_EEXISTS)
        return WEIR__EXIT_NONE;
    if (ask->text[0] != '\0') {
        weir__complain("topic delete: topic \"%s\" stays: %s", ask->topic,
                       ask->text);
        return WEIR__EXIT_FAILED;
    }
    weir__complain("topic delete would delete %" PRIu64
                   " job%s of topic \"%s\"; give --yes to do so",
                   ask->count, ask->count == 1 ? "" : "s", ask->topic);
    return WEIR__EXIT_USAGE;
}

static enum weir__exit print(struct weir__ask *ask)
{
    return weir__print_count(ask->client.cli, ask->topic, "deleted",
                             ask->count);
}

const struct weir__command weir__cmd_topic_delete = {
    .name = "topic delete",
    .operands = "TOPIC",
    WEIR__FLAGS(flags),
    .summary = "Delete a topic with its options and totals",
    .details =
        "It is listed no more; who adds to it later makes it anew. Where a "
        "program that\nadded to it before goes on adding, it is listed again "
        "within 10 minutes. Refused\nwhile a worker serves it, while it has "
        "schedules, and while jobs go from it to\nother topics. A list or "
        "stream of somebody else stays, with --yes as weir purge\nleaves it. "
        "Prints how many jobs went with it. With --json: "
        "{\"topic\",\"deleted\"}.",
    .example = "weir topic delete order.close",
    .exits =
        "0 deleted, 1 it is served, or jobs came meanwhile, 2 wrong\n"
        "  usage, or it holds jobs and --yes is missing, 3 no such topic,\n"
        "  5 server unreachable",
    .needs_kind = true,
    .ask = ask_delete,
    .refuse = refuse,
    .print = print,
};
