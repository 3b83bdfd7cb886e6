/* SPDX-License-Identifier: MIT */

/* weir dead: jobs that will not run again by themselves. */

#include "adapters/cli/listing.h"
#include "adapters/cli/options.h"
#include "adapters/cli/output.h"
#include "adapters/cli/time.h"

#include <inttypes.h>

enum { ALL };
enum { LIST_LIMIT = 1000000 };

static const struct weir__flag flags[] = {
    [ALL] = {"all", NULL, "all dead jobs of the topic"},
};

/* --- listing ------------------------------------------------------------ */

static void print_line(const struct weir_job_info *job)
{
    char died[32];

    weir__time_print(job->due_ms, died);
    weir__print_text(job->id);
    weir__print("  died %s  attempt %u  ", died, job->counters.attempt);
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
    struct weir__listing list = {.topic = args->operand[0],
                                 .limit = LIST_LIMIT,
                                 .print_line = print_line};
    enum weir__exit rc;

    if (!weir__operand_topic(list.topic))
        return WEIR__EXIT_USAGE;
    rc = weir__client_open(&list.client, cli, NULL);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    rc = weir__client_know(&list.client, list.topic);
    if (rc == WEIR__EXIT_NONE)
        rc = weir__listing_finish(&list,
                                  weir_reactor_dead(list.client.reactor,
                                                    list.topic, LIST_LIMIT,
                                                    weir__listing_take, &list),
                                  "dead list");
    weir__client_close(&list.client);
    return rc;
}

/* --- requeueing and purging --------------------------------------------- */

/* One of the two, as one of the library's functions. */
struct change {
    struct weir__client client;
    const char *doing; /* "dead requeue" */
    const char *done;  /* "requeued" */
    const char *topic;
    const char *id; /* NULL: all */
    uint64_t count;
    int (*ask)(struct weir_reactor *reactor, const char *topic, const char *id,
               weir_count_fn fn, void *arg);
};

static void on_count(int code, uint64_t count, void *arg)
{
    struct change *change = arg;

    change->count = count;
    weir__client_finish(&change->client, code);
}

static enum weir__exit not_found(struct change *change)
{
    enum weir__exit rc =
        weir__client_not_found(&change->client, change->topic, NULL);

    if (rc != WEIR__EXIT_DONE || change->id == NULL)
        return rc;
    weir__complain("there is no dead job \"%s\" in topic \"%s\"", change->id,
                   change->topic);
    return WEIR__EXIT_NOT_FOUND;
}

static enum weir__exit ask(struct change *change)
{
    enum weir__exit rc = WEIR__EXIT_DONE;
    int code = change->ask(change->client.reactor, change->topic, change->id,
                           on_count, change);

    if (code == WEIR_OK)
        code = weir__client_wait(&change->client);
    if (code == WEIR_ENOTFOUND || (code == WEIR_OK && change->count == 0))
        rc = not_found(change);
    else if (code < 0)
        rc = weir__client_exit(&change->client, code, change->doing);
    if (rc != WEIR__EXIT_DONE)
        return rc;
    return weir__print_count(change->client.cli, change->topic, change->done,
                             change->count)
               ? WEIR__EXIT_DONE
               : WEIR__EXIT_FAILED;
}

static enum weir__exit run_change(struct change *change,
                                  const struct weir__cli *cli,
                                  const struct weir__args *args)
{
    bool is_all = args->value[ALL] != NULL;
    enum weir__exit rc;

    change->topic = args->operand[0];
    change->id = args->operand_count > 1 ? args->operand[1] : NULL;
    if (is_all == (change->id != NULL)) {
        weir__complain(is_all ? "%s: an id and --all exclude each other; give "
                                "one"
                              : "%s needs the id of a dead job, or --all",
                       change->doing);
        return WEIR__EXIT_USAGE;
    }
    if (!weir__operand_topic(change->topic) ||
        (change->id != NULL && !weir__operand_id(change->id, false)))
        return WEIR__EXIT_USAGE;
    rc = weir__client_open(&change->client, cli, NULL);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    rc = weir__client_know(&change->client, change->topic);
    if (rc == WEIR__EXIT_NONE)
        rc = ask(change);
    weir__client_close(&change->client);
    return rc;
}

static enum weir__exit run_requeue(const struct weir__cli *cli,
                                   const struct weir__args *args)
{
    struct change change = {.doing = "dead requeue",
                            .done = "requeued",
                            .ask = weir_reactor_requeue};

    return run_change(&change, cli, args);
}

static enum weir__exit run_purge(const struct weir__cli *cli,
                                 const struct weir__args *args)
{
    struct change change = {.doing = "dead purge",
                            .done = "deleted",
                            .ask = weir_reactor_purge_dead};

    return run_change(&change, cli, args);
}

const struct weir__command weir__cmd_dead_list = {
    .name = "dead list",
    .operands = "TOPIC",
    .operand_min = 1,
    .operand_max = 1,
    .summary = "List dead jobs, oldest first",
    .details = "A line for each: id, time of death, attempts, reason and the "
               "text of the\nlast error. With --json: an array of what weir "
               "show prints.",
    .example = "weir dead list order.close",
    .exits = "0 listed, also when there are none, 2 wrong usage,\n"
             "  3 no such topic, 5 server unreachable",
    .run = run_list,
};

const struct weir__command weir__cmd_dead_requeue = {
    .name = "dead requeue",
    .operands = "TOPIC [ID]",
    .operand_min = 1,
    .operand_max = 2,
    .flags = flags,
    .flag_count = sizeof(flags) / sizeof(flags[0]),
    .summary = "Make dead jobs ready again",
    .details = "One by its id, or all. Attempts and failures count from 0 "
               "again. With\n--json: {\"topic\",\"requeued\"}.",
    .example = "weir dead requeue order.close 42",
    .exits = "0 done, with --all also when there were none, 2 wrong usage,\n"
             "  3 no such topic or dead job, 5 server unreachable",
    .run = run_requeue,
};

const struct weir__command weir__cmd_dead_purge = {
    .name = "dead purge",
    .operands = "TOPIC [ID]",
    .operand_min = 1,
    .operand_max = 2,
    .flags = flags,
    .flag_count = sizeof(flags) / sizeof(flags[0]),
    .summary = "Delete dead jobs",
    .details = "One by its id, or all. With --json: {\"topic\",\"deleted\"}.",
    .example = "weir dead purge order.close --all",
    .exits = "0 done, with --all also when there were none, 2 wrong usage,\n"
             "  3 no such topic or dead job, 5 server unreachable",
    .run = run_purge,
};
