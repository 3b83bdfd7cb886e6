/* SPDX-License-Identifier: MIT */

/* weir delete: a job in whatever state. */

#include "adapters/cli/client.h"
#include "adapters/cli/options.h"
#include "adapters/cli/output.h"

struct deletion {
    struct weir__client client;
    const char *topic, *id;
};

static bool print_json(const struct deletion *deletion, const char *was)
{
    struct json_object *object = json_object_new_object();

    if (object != NULL &&
        weir__json_put(object, "topic",
                       json_object_new_string(deletion->topic)) &&
        weir__json_put(object, "id", json_object_new_string(deletion->id)) &&
        weir__json_put(object, "was", json_object_new_string(was)))
        return weir__json_print_line(object);
    (void)json_object_put(object);
    return weir__json_print_line(NULL);
}

static void on_deleted(int code, enum weir_job_state was, void *arg)
{
    struct deletion *deletion = arg;

    if (code == WEIR_OK && deletion->client.cli->json &&
        !print_json(deletion, weir_job_state_name(was)))
        code = WEIR_ENOMEM;
    if (code == WEIR_OK && !deletion->client.cli->json)
        weir__print("deleted, was %s\n", weir_job_state_name(was));
    if (code == WEIR_OK && was == WEIR_JOB_RUNNING)
        weir__note(deletion->client.cli,
                   "the run that goes on is not interrupted; its verdict "
                   "will be ignored");
    weir__client_finish(&deletion->client, code);
}

static enum weir__exit ask(struct deletion *deletion)
{
    int rc = weir_reactor_delete(deletion->client.reactor, deletion->topic,
                                 deletion->id, on_deleted, deletion);

    if (rc == WEIR_OK)
        rc = weir__client_wait(&deletion->client);
    if (rc == WEIR_ENOTFOUND)
        return weir__client_not_found(&deletion->client, deletion->topic,
                                      deletion->id);
    return weir__client_exit(&deletion->client, rc, "delete");
}

static enum weir__exit run(const struct weir__cli *cli,
                           const struct weir__args *args)
{
    struct deletion deletion = {.topic = args->operand[0],
                                .id = args->operand[1]};
    enum weir__exit rc;

    if (!weir__operand_topic(deletion.topic) ||
        !weir__operand_id(deletion.id, false))
        return WEIR__EXIT_USAGE;
    rc = weir__client_open(&deletion.client, cli, NULL);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    rc = weir__client_know(&deletion.client, deletion.topic);
    if (rc == WEIR__EXIT_NONE)
        rc = ask(&deletion);
    weir__client_close(&deletion.client);
    return rc;
}

const struct weir__command weir__cmd_delete = {
    .name = "delete",
    .operands = "TOPIC ID",
    .operand_min = 2,
    .operand_max = 2,
    .summary = "Delete a job in any state",
    .details = "A job that is running is not interrupted, but never runs again "
               "and its\nverdict is ignored. With --json: "
               "{\"topic\",\"id\",\"was\"}, was being the state\nit was in.",
    .example = "weir delete order.close 42",
    .exits = "0 deleted, 2 wrong usage, 3 no such topic or job,\n"
             "  5 server unreachable",
    .run = run,
};
