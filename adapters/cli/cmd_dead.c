/* SPDX-License-Identifier: MIT */

/* weir dead: jobs that are dead. */

#include "adapters/cli/bulk.h"
#include "adapters/cli/output.h"
#include "adapters/cli/time.h"

#include <stdio.h>

enum { ALL };
enum { DEAD_LIMIT = 1000000 };

static const struct weir__flag list_flags[] = {
    {"limit", "N", "at most so many, 1 to 1000000000 (default: 1000000)"},
    WEIR__IDS_FLAG,
    WEIR__CONDITION_FLAGS,
};

static const struct weir__flag dead_flags[] = {
    [ALL] = {"all", NULL, "all dead jobs of the topic"},
    WEIR__BULK_FLAGS,
};

static void print_dead(const struct weir_job_info *job)
{
    char died[32];

    weir__time_print(job->due_ms, died);
    weir__print_text(job->id);
    weir__print("  died %s", died);
    weir__job_print_added(job);
    weir__print("  attempt %u  ", job->counters.attempt);
    weir__print_text(job->reason);
    if (job->error.len > 0) {
        (void)printf(": ");
        weir__print_text(job->error);
    }
    (void)printf("\n");
}

static enum weir__exit run_list(const struct weir__cli *cli,
                                const struct weir__args *args)
{
    static const struct weir__bulk_rule rule = {
        .command = &weir__cmd_dead_list,
        .state = WEIR_JOB_DEAD,
        .limit = DEAD_LIMIT,
    };

    return weir__bulk(&rule, cli, args, NULL);
}

static bool check_which(struct weir__ask *ask)
{
    bool is_all = ask->args->value[ALL] != NULL;

    if (is_all != (ask->id != NULL))
        return true;
    weir__complain(is_all ? "%s: an id and --all exclude each other; give one"
                          : "%s needs the id of a dead job, a condition such "
                            "as --where, or --all",
                   ask->command->name);
    return false;
}

static int ask_requeue(struct weir__ask *ask)
{
    return weir_reactor_requeue(ask->client.reactor, ask->topic, ask->id,
                                weir__ask_on_count, ask);
}

static int ask_purge_dead(struct weir__ask *ask)
{
    return weir_reactor_purge_dead(ask->client.reactor, ask->topic, ask->id,
                                   weir__ask_on_count, ask);
}

/* With --all it is fine when there are none. */
static enum weir__exit print_changed(struct weir__ask *ask)
{
    const char *done =
        ask->command == &weir__cmd_dead_requeue ? "requeued" : "deleted";
    enum weir__exit rc = WEIR__EXIT_DONE;

    if (ask->count == 0)
        rc = weir__client_not_found(&ask->client, ask->topic, NULL);
    if (rc != WEIR__EXIT_DONE)
        return rc;
    if (ask->count > 0 || ask->id == NULL)
        return weir__print_count(ask->client.cli, ask->topic, done, ask->count);
    weir__complain("there is no dead job \"%s\" in topic \"%s\"", ask->id,
                   ask->topic);
    return WEIR__EXIT_NOT_FOUND;
}

static enum weir__exit refuse_none(struct weir__ask *ask, int code)
{
    ask->count = 0;
    return code == WEIR_ENOTFOUND ? print_changed(ask) : WEIR__EXIT_NONE;
}

static void on_one(int code, uint64_t count, void *arg)
{
    weir__bulk_answer(arg,
                      code == WEIR_OK && count == 0 ? WEIR_ENOTFOUND : code);
}

static int requeue_one(struct weir__bulk_one *one)
{
    struct weir__bulk *bulk = one->bulk;

    return weir_reactor_requeue(bulk->ask.client.reactor, bulk->ask.topic,
                                one->id, on_one, one);
}

static int purge_one(struct weir__bulk_one *one)
{
    struct weir__bulk *bulk = one->bulk;

    return weir_reactor_purge_dead(bulk->ask.client.reactor, bulk->ask.topic,
                                   one->id, on_one, one);
}

static enum weir__exit run_dead(const struct weir__bulk_rule *rule,
                                const struct weir__cli *cli,
                                const struct weir__args *args)
{
    return weir__bulk_is_wanted(rule->command, args)
               ? weir__bulk(rule, cli, args, NULL)
               : weir__ask(rule->command, cli, args);
}

static enum weir__exit run_requeue(const struct weir__cli *cli,
                                   const struct weir__args *args)
{
    static const struct weir__bulk_rule rule = {
        .command = &weir__cmd_dead_requeue,
        .word = "requeue",
        .done = "requeued",
        .state = WEIR_JOB_DEAD,
        .limit = SIZE_MAX,
        .act = requeue_one,
    };

    return run_dead(&rule, cli, args);
}

static enum weir__exit run_purge(const struct weir__cli *cli,
                                 const struct weir__args *args)
{
    static const struct weir__bulk_rule rule = {
        .command = &weir__cmd_dead_purge,
        .word = "delete",
        .done = "deleted",
        .state = WEIR_JOB_DEAD,
        .limit = SIZE_MAX,
        .act = purge_one,
    };

    return run_dead(&rule, cli, args);
}

const struct weir__command weir__cmd_dead_list = {
    .name = "dead list",
    .operands = "TOPIC [ID]...",
    WEIR__FLAGS(list_flags),
    .summary = "List dead jobs, oldest first",
    .details = "A line for each: id, time of death, when it was added, "
               "attempts, reason and\nthe text of the last error. With --json: "
               "an array of what weir "
               "show prints.",
    .example = "weir dead list order.close",
    .exits = "0 listed, also when there are none, 1 --where failed on a job,\n"
             "  2 wrong usage, 3 no such topic, or no job of an id, 5 server\n"
             "  unreachable",
    .print_job = print_dead,
    .run = run_list,
};

const struct weir__command weir__cmd_dead_requeue = {
    .name = "dead requeue",
    .operands = "TOPIC [ID]...",
    WEIR__FLAGS(dead_flags),
    .summary = "Make dead jobs ready again",
    .details = "One or several by their ids, those of which all conditions "
               "are true, or all.\nAttempts and failures count from 0 again. "
               "With --json, of one id or all:\n{\"topic\",\"requeued\"}; "
               "else\n" WEIR__BULK_JSON("requeued"),
    .example = "weir dead requeue order.close --reason exhausted --after -12h",
    .exits = "0 done, with --all or conditions also when there were none, 1 "
             "--where failed\n  on a job, 2 wrong usage, 3 no such topic or "
             "dead job, 5 server unreachable",
    .needs_kind = true,
    .check = check_which,
    .ask = ask_requeue,
    .refuse = refuse_none,
    .print = print_changed,
    .run = run_requeue,
};

const struct weir__command weir__cmd_dead_purge = {
    .name = "dead purge",
    .operands = "TOPIC [ID]...",
    WEIR__FLAGS(dead_flags),
    .summary = "Delete dead jobs",
    .details = "One or several by their ids, those of which all conditions "
               "are true, or all.\nWith --json, of one id or all: "
               "{\"topic\",\"deleted\"}; else\n" WEIR__BULK_JSON("deleted"),
    .example = "weir dead purge order.close --before -30d",
    .exits = "0 done, with --all or conditions also when there were none, 1 "
             "--where failed\n  on a job, 2 wrong usage, 3 no such topic or "
             "dead job, 5 server unreachable",
    .needs_kind = true,
    .check = check_which,
    .ask = ask_purge_dead,
    .refuse = refuse_none,
    .print = print_changed,
    .run = run_purge,
};
