/* SPDX-License-Identifier: MIT */

/* weir show: one job. */

#include "adapters/cli/client.h"
#include "adapters/cli/options.h"
#include "adapters/cli/output.h"

struct show {
    struct weir__client client;
    const char *topic, *id;
};

static void on_show(int code, const struct weir_job_info *job, void *arg)
{
    struct show *show = arg;

    if (job != NULL && !show->client.cli->json)
        weir__job_print(show->topic, job);
    else if (job != NULL &&
             !weir__json_print_line(weir__job_json(show->topic, job)))
        code = WEIR_ENOMEM;
    weir__client_finish(&show->client, code);
}

static enum weir__exit ask(struct show *show)
{
    int rc = weir_reactor_show(show->client.reactor, show->topic, show->id,
                               on_show, show);

    if (rc == WEIR_OK)
        rc = weir__client_wait(&show->client);
    if (rc == WEIR_ENOTFOUND)
        return weir__client_not_found(&show->client, show->topic, show->id);
    return weir__client_exit(&show->client, rc, "show");
}

static enum weir__exit run(const struct weir__cli *cli,
                           const struct weir__args *args)
{
    struct show show = {.topic = args->operand[0], .id = args->operand[1]};
    enum weir__exit rc;

    if (!weir__operand_topic(show.topic) || !weir__operand_id(show.id, false))
        return WEIR__EXIT_USAGE;
    rc = weir__client_open(&show.client, cli, NULL);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    rc = weir__client_know(&show.client, show.topic);
    if (rc == WEIR__EXIT_NONE)
        rc = ask(&show);
    weir__client_close(&show.client);
    return rc;
}

const struct weir__command weir__cmd_show = {
    .name = "show",
    .operands = "TOPIC ID",
    .operand_min = 2,
    .operand_max = 2,
    .summary = "Show one job",
    .details = "With --json: {\"topic\",\"id\",\"state\",\"attempt\","
               "\"failures\",\"timeouts\",\n\"crashes\",\"snoozes\","
               "\"due_ms\",\"ttl_ms\",\"url\",\"retry\",\"reason\",\"error\","
               "\"body\"};\nstate is scheduled, ready, running or dead. due_ms "
               "is null while the job\nruns, and the time of death when it is "
               "dead.",
    .example = "weir show order.close 42",
    .exits = "0 shown, 2 wrong usage, 3 no such topic or job,\n"
             "  5 server unreachable",
    .run = run,
};
