/* SPDX-License-Identifier: MIT */

/* weir pause and weir resume. */

#include "adapters/cli/ask.h"
#include "adapters/cli/output.h"

enum { NEW };

static const struct weir__flag pause_flags[] = {
    [NEW] = {"new", NULL, "make the topic, paused, if it does not exist"},
};

/* A mistyped topic is not to be made. */
static int ask_pause(struct weir__ask *ask)
{
    int rc = weir__client_ask_kind(&ask->client, ask->topic);

    ask->client.advice = "--new makes it";
    if (rc < 0 && (rc != WEIR_ENOTFOUND || ask->args->value[NEW] == NULL))
        return rc;
    return weir_reactor_pause(ask->client.reactor, ask->topic, true,
                              weir__ask_on_code, ask);
}

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    (void)stats;
    weir__client_finish(arg, code);
}

static int ask_resume(struct weir__ask *ask)
{
    int code = weir_reactor_stats(ask->client.reactor, ask->topic, on_stats,
                                  &ask->client);

    if (code == WEIR_OK)
        code = weir__client_wait(&ask->client);
    if (code < 0)
        return code;
    return weir_reactor_pause(ask->client.reactor, ask->topic, false,
                              weir__ask_on_code, ask);
}

static enum weir__exit print(struct weir__ask *ask)
{
    bool is_paused = ask->command == &weir__cmd_pause;

    if (ask->client.cli->json)
        return weir__print_object(
            WEIR__OBJECT(weir__field_str("topic", ask->topic),
                         weir__field_bool("paused", is_paused)));
    weir__print("%s\n", is_paused ? "paused" : "resumed");
    return WEIR__EXIT_DONE;
}

const struct weir__command weir__cmd_pause = {
    .name = "pause",
    .operands = "TOPIC",
    WEIR__FLAGS(pause_flags),
    .summary = "Let no more jobs of a topic through",
    .details = "Every worker obeys within 1 s; jobs that run are not "
               "interrupted, and jobs can\nstill be added. With --json: "
               "{\"topic\",\"paused\"}.",
    .example = "weir pause order.close",
    .exits = "0 paused, also when it was before, 2 wrong usage,\n"
             "  3 no such topic, 5 server unreachable",
    .ask = ask_pause,
    .print = print,
};

const struct weir__command weir__cmd_resume = {
    .name = "resume",
    .operands = "TOPIC",
    .summary = "Let jobs of a paused topic through again",
    .details = "With --json: {\"topic\",\"paused\"}.",
    .example = "weir resume order.close",
    .exits = "0 resumed, also when it was not paused, 2 wrong usage,\n"
             "  3 no such topic, 5 server unreachable",
    .ask = ask_resume,
    .print = print,
};
