/* SPDX-License-Identifier: MIT */

/* weir pause and weir resume. */

#include "adapters/cli/client.h"
#include "adapters/cli/options.h"
#include "adapters/cli/output.h"

struct pause {
    struct weir__client client;
    const char *topic;
    bool is_paused; /* is to be */
};

static void on_done(int code, const char *text, void *arg)
{
    struct pause *pause = arg;

    (void)text;
    weir__client_finish(&pause->client, code);
}

static bool print(const struct pause *pause)
{
    struct json_object *object;

    if (!pause->client.cli->json) {
        weir__print("%s\n", pause->is_paused ? "paused" : "resumed");
        return true;
    }
    object = json_object_new_object();
    if (object != NULL &&
        weir__json_put(object, "topic", json_object_new_string(pause->topic)) &&
        weir__json_put(object, "paused",
                       json_object_new_boolean(pause->is_paused)))
        return weir__json_print_line(object);
    (void)json_object_put(object);
    return weir__json_print_line(NULL);
}

static enum weir__exit ask(struct pause *pause)
{
    const char *doing = pause->is_paused ? "pause" : "resume";
    int rc;

    if (!pause->is_paused) { /* a mistyped topic is not to be made */
        enum weir__exit found =
            weir__client_not_found(&pause->client, pause->topic, NULL);

        if (found != WEIR__EXIT_DONE)
            return found;
    }
    rc = weir_reactor_pause(pause->client.reactor, pause->topic,
                            pause->is_paused, on_done, pause);
    if (rc == WEIR_OK)
        rc = weir__client_wait(&pause->client);
    if (rc < 0)
        return weir__client_exit(&pause->client, rc, doing);
    return print(pause) ? WEIR__EXIT_DONE : WEIR__EXIT_FAILED;
}

static enum weir__exit run(const struct weir__cli *cli,
                           const struct weir__args *args, bool is_paused)
{
    struct pause pause = {.topic = args->operand[0], .is_paused = is_paused};
    enum weir__exit rc;

    if (!weir__operand_topic(pause.topic))
        return WEIR__EXIT_USAGE;
    rc = weir__client_open(&pause.client, cli, NULL);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    rc = ask(&pause);
    weir__client_close(&pause.client);
    return rc;
}

static enum weir__exit run_pause(const struct weir__cli *cli,
                                 const struct weir__args *args)
{
    return run(cli, args, true);
}

static enum weir__exit run_resume(const struct weir__cli *cli,
                                  const struct weir__args *args)
{
    return run(cli, args, false);
}

const struct weir__command weir__cmd_pause = {
    .name = "pause",
    .operands = "TOPIC",
    .operand_min = 1,
    .operand_max = 1,
    .summary = "Let no more jobs of a topic through",
    .details = "Every worker obeys within 1 s; jobs that run are not "
               "interrupted, and jobs can\nstill be added. The topic is made "
               "when it does not exist. With --json:\n{\"topic\",\"paused\"}.",
    .example = "weir pause order.close",
    .exits = "0 paused, also when it was before, 2 wrong usage,\n"
             "  5 server unreachable",
    .run = run_pause,
};

const struct weir__command weir__cmd_resume = {
    .name = "resume",
    .operands = "TOPIC",
    .operand_min = 1,
    .operand_max = 1,
    .summary = "Let jobs of a paused topic through again",
    .details = "With --json: {\"topic\",\"paused\"}.",
    .example = "weir resume order.close",
    .exits = "0 resumed, also when it was not paused, 2 wrong usage,\n"
             "  3 no such topic, 5 server unreachable",
    .run = run_resume,
};
