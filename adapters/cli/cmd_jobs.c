/* SPDX-License-Identifier: MIT */

/* weir show, list, delete, reschedule, purge: jobs that are there. */

#include "adapters/cli/bulk.h"
#include "adapters/cli/new_job.h"
#include "adapters/cli/options.h"
#include "adapters/cli/output.h"
#include "adapters/cli/time.h"
#include "core/schedule.h"
#include "core/text.h"

#include <inttypes.h>

/* --- show --------------------------------------------------------------- */

/* The job is borrowed: it is printed at once. */
static void on_show(int code, const struct weir_job_info *job, void *arg)
{
    struct weir__ask *ask = arg;

    if (job != NULL && !ask->client.cli->json)
        weir__job_print(ask->topic, job);
    else if (job != NULL && weir__print_object(weir__job_json(
                                ask->topic, job)) != WEIR__EXIT_DONE)
        code = WEIR_ENOMEM;
    weir__client_finish(&ask->client, code);
}

static int ask_show(struct weir__ask *ask)
{
    return weir_reactor_show(ask->client.reactor, ask->topic, ask->id, on_show,
                             ask);
}

static enum weir__exit print_nothing(struct weir__ask *ask)
{
    (void)ask;
    return WEIR__EXIT_DONE;
}

const struct weir__command weir__cmd_show = {
    .name = "show",
    .operands = "TOPIC ID",
    .summary = "Show one job",
    .details =
        "With --json: {\"topic\",\"id\",\"state\",\"attempt\","
        "\"failures\",\"timeouts\",\n\"crashes\",\"snoozes\","
        "\"due_ms\",\"added_ms\",\"ttl_ms\",\"url\",\"retry\","
        "\"reason\",\n\"error\",\"headers\",\"body\"}; state is "
        "scheduled, ready, running or dead.\ndue_ms is null while the "
        "job runs, and the time of death when it is dead;\nadded_ms is "
        "null where nobody knows when it was added. Of a job that runs\n"
        "there are also "
        "\"worker\", who has it, \"claimed_ms\", since when, and\n"
        "\"lease_left_ms\", how long unless the worker prolongs it, 0: it "
        "ended. A job\nis running while it is under a lease, also where "
        "its worker only holds it and\nhas not started it yet. Where "
        "attempts did not finish the job there are also\n\"attempts\", the "
        "last 8, oldest first: [{\"ended_ms\",\"outcome\",\"error\",\n"
        "\"worker\"}]; outcome is retry, timeout, fail or crash. A job "
        "that has them\nhas \"key\", \"priority\" and \"unique\", the key "
        "it was added with, too.",
    .example = "weir show order.close 42",
    .exits = "0 shown, 2 wrong usage, 3 no such topic or job,\n"
             "  5 server unreachable",
    .needs_kind = true,
    .ask = ask_show,
    .print = print_nothing,
};

/* --- list --------------------------------------------------------------- */

enum { LIST_LIMIT = 100 };

static const struct weir__flag list_flags[] = {
    {"state", "S", "only jobs that are scheduled, ready, running or dead"},
    {"limit", "N", "at most so many, 1 to 1000000000 (default: 100)"},
    WEIR__IDS_FLAG,
    WEIR__CONDITION_FLAGS,
};

static void print_listed(const struct weir_job_info *job)
{
    char due[32];

    weir__print_text(job->id);
    weir__print("  %s", weir_job_state_name(job->state));
    if (job->group.len > 0) {
        (void)printf("  group ");
        weir__print_text(job->group);
    }
    if (job->due_ms >= 0) {
        weir__time_print(job->due_ms, due);
        weir__print("  %s %s", job->state == WEIR_JOB_DEAD ? "died" : "due",
                    due);
    }
    weir__job_print_added(job);
    if (job->worker.len > 0) {
        (void)printf("  worker ");
        weir__print_text(job->worker);
    }
    (void)printf("  attempt %u", job->counters.attempt);
    if (job->reason.len > 0) {
        (void)printf("  ");
        weir__print_text(job->reason);
    }
    (void)printf("\n");
}

static enum weir__exit run_list(const struct weir__cli *cli,
                                const struct weir__args *args)
{
    static const struct weir__bulk_rule rule = {
        .command = &weir__cmd_list, .state = -1, .limit = LIST_LIMIT};

    return weir__bulk(&rule, cli, args, NULL);
}

const struct weir__command weir__cmd_list = {
    .name = "list",
    .operands = "TOPIC [ID]...",
    WEIR__FLAGS(list_flags),
    .summary = "List jobs of a topic",
    .details =
        "Scheduled ones first, then ready, running and dead ones; those "
        "that are\nscheduled or ready by due time; or those with the ids "
        "that are given. Of several\nconditions all have to be true.\n\nOf "
        "delay topics three sorts follow each other, each by due time: "
        "jobs that were\nadded alone or with others of their due time, "
        "with others of other due times,\nwith a key or a priority. Jobs "
        "that stay as they are come once. What changes\nmeanwhile may be "
        "missed or come twice. Events of bounded topics come by group,\nin "
        "the order of their turns, due when they were added. With --json: "
        "an array of\nwhat weir show prints, without \"lease_left_ms\".",
    .example = "weir list order.close --state ready --where '.body.order > 40'",
    .exits = "0 listed, also when there are none, 1 --where failed on a job,\n"
             "  2 wrong usage, 3 no such topic, or no job of an id, 5 server\n"
             "  unreachable",
    .print_job = print_listed,
    .run = run_list,
};

/* --- delete ------------------------------------------------------------- */

static void on_deleted(int code, enum weir_job_state was, void *arg)
{
    struct weir__ask *ask = arg;

    ask->was = was;
    weir__client_finish(&ask->client, code);
}

static int ask_delete(struct weir__ask *ask)
{
    return weir_reactor_delete(ask->client.reactor, ask->topic, ask->id,
                               on_deleted, ask);
}

static enum weir__exit print_deleted(struct weir__ask *ask)
{
    const char *was = weir_job_state_name(ask->was);
    enum weir__exit rc = WEIR__EXIT_DONE;

    if (ask->client.cli->json)
        rc = weir__print_object(WEIR__OBJECT(
            weir__field_str("topic", ask->topic),
            weir__field_str("id", ask->id), weir__field_str("was", was)));
    else
        weir__print("deleted, was %s\n", was);
    if (ask->was == WEIR_JOB_RUNNING)
        weir__note(ask->client.cli,
                   "the run that goes on is not interrupted; its verdict "
                   "will be ignored");
    return rc;
}

static enum weir__exit refuse_tick(struct weir__ask *ask, int code)
{
    if (code != WEIR_EINVAL)
        return WEIR__EXIT_NONE;
    weir__complain("%s: job \"%s\" is the tick of a schedule; see weir cron "
                   "delete and weir cron pause",
                   ask->command->name, ask->id);
    return WEIR__EXIT_USAGE;
}

static void on_one_deleted(int code, enum weir_job_state was, void *arg)
{
    (void)was;
    weir__bulk_answer(arg, code);
}

static int delete_one(struct weir__bulk_one *one)
{
    struct weir__bulk *bulk = one->bulk;

    return weir_reactor_delete(bulk->ask.client.reactor, bulk->ask.topic,
                               one->id, on_one_deleted, one);
}

static enum weir__exit run_delete(const struct weir__cli *cli,
                                  const struct weir__args *args)
{
    static const struct weir__bulk_rule rule = {
        .command = &weir__cmd_delete,
        .word = "delete",
        .done = "deleted",
        .state = -1,
        .limit = SIZE_MAX,
        .act = delete_one,
    };

    if (args->operand_count == 2 &&
        !weir__bulk_is_wanted(&weir__cmd_delete, args))
        return weir__ask(&weir__cmd_delete, cli, args);
    return weir__bulk(&rule, cli, args, NULL);
}

static const struct weir__flag delete_flags[] = {
    {"state", "S", "only jobs that are scheduled, ready, running or dead"},
    WEIR__BULK_FLAGS,
};

const struct weir__command weir__cmd_delete = {
    .name = "delete",
    .operands = "TOPIC [ID]...",
    WEIR__FLAGS(delete_flags),
    .summary = "Delete jobs in any state",
    .details = "One or several by their ids, or those of which all conditions "
               "are true. A job\nthat is running is not interrupted, but never "
               "runs again and its verdict is\nignored. With --json, of one "
               "id: {\"topic\",\"id\",\"was\"}, was being the state it\n"
               "was in; else\n" WEIR__BULK_JSON("deleted"),
    .example = "weir delete order.close --where '.body.tenant == \"x\"' "
               "--dry-run",
    .exits = "0 deleted, 1 --where failed on a job, 2 wrong usage, 3 no such "
             "topic,\n  or no job of an id, 5 server unreachable",
    .needs_kind = true,
    .ask = ask_delete,
    .refuse = refuse_tick,
    .print = print_deleted,
    .run = run_delete,
};

/* --- reschedule --------------------------------------------------------- */

enum { DELAY, AT };

static const struct weir__flag due_flags[] = {
    [DELAY] = {"delay", "D", "time from now, such as 0ms, 15s, 3m, 2h, 1d"},
    [AT] = {"at", "RFC3339",
            "point in time instead, such as\n"
            "2026-01-31T08:30:00Z"},
    {"state", "S", "only jobs that are scheduled or ready"},
    WEIR__BULK_FLAGS,
};

static bool check_due(struct weir__ask *ask)
{
    const char *const *value = ask->args->value;
    const struct weir__job_texts texts = {
        .dashes = "--",
        .value = {[WEIR__JOB_DELAY] = value[DELAY], [WEIR__JOB_AT] = value[AT]},
    };
    struct weir_error err = {0};

    if (value[DELAY] == NULL && value[AT] == NULL) {
        weir__complain("reschedule needs --delay D or --at RFC3339; see weir "
                       "reschedule --help");
        return false;
    }
    return weir__told(weir__job_texts_read(&texts, &ask->job, &err), &err);
}

static void on_due(int code, enum weir_job_state was, int64_t due_ms, void *arg)
{
    struct weir__ask *ask = arg;

    ask->was = was;
    ask->due_ms = due_ms;
    weir__client_finish(&ask->client, code);
}

static int ask_due(struct weir__ask *ask)
{
    const struct weir_due due = {ask->job.delay_ms, ask->job.at_ms};

    return weir_reactor_reschedule(ask->client.reactor, ask->topic, ask->id,
                                   &due, on_due, ask);
}

static enum weir__exit refuse_due(struct weir__ask *ask, int code)
{
    if (code != WEIR_EINVAL)
        return WEIR__EXIT_NONE;
    if (weir__tick_name(weir__slice_str(ask->id)).len > 0)
        return refuse_tick(ask, code);
    weir__complain("job \"%s\" in topic \"%s\" is %s; only what is "
                   "scheduled or ready can be given another time",
                   ask->id, ask->topic, weir_job_state_name(ask->was));
    return WEIR__EXIT_FAILED;
}

static enum weir__exit print_due(struct weir__ask *ask)
{
    char due[32];

    if (ask->client.cli->json)
        return weir__print_object(
            WEIR__OBJECT(weir__field_str("topic", ask->topic),
                         weir__field_str("id", ask->id),
                         weir__field_int("due_ms", ask->due_ms)));
    weir__time_print(ask->due_ms, due);
    weir__print("due %s\n", due);
    return WEIR__EXIT_DONE;
}

static void on_one_due(int code, enum weir_job_state was, int64_t due_ms,
                       void *arg)
{
    (void)was;
    (void)due_ms;
    weir__bulk_answer(arg, code);
}

static int reschedule_one(struct weir__bulk_one *one)
{
    struct weir__bulk *bulk = one->bulk;

    return weir_reactor_reschedule(bulk->ask.client.reactor, bulk->ask.topic,
                                   one->id, &bulk->due, on_one_due, one);
}

static enum weir__exit run_reschedule(const struct weir__cli *cli,
                                      const struct weir__args *args)
{
    static const struct weir__bulk_rule rule = {
        .command = &weir__cmd_reschedule,
        .word = "reschedule",
        .done = "rescheduled",
        .state = -1,
        .is_waiting = true,
        .limit = SIZE_MAX,
        .act = reschedule_one,
    };
    struct weir__ask ask = {.args = args};
    struct weir_due due;

    if (args->operand_count == 2 &&
        !weir__bulk_is_wanted(&weir__cmd_reschedule, args))
        return weir__ask(&weir__cmd_reschedule, cli, args);
    if (!check_due(&ask))
        return WEIR__EXIT_USAGE;
    due = (struct weir_due){ask.job.delay_ms, ask.job.at_ms};
    return weir__bulk(&rule, cli, args, &due);
}

const struct weir__command weir__cmd_reschedule = {
    .name = "reschedule",
    .operands = "TOPIC [ID]...",
    WEIR__FLAGS(due_flags),
    .summary = "Give scheduled or ready jobs another due time",
    .details = "One or several by their ids, or those of which all conditions "
               "are true; --before\nand --after compare the due time that they "
               "have. With --json, of one id:\n{\"topic\",\"id\",\"due_ms\"}; "
               "else\n" WEIR__BULK_JSON("rescheduled"),
    .example = "weir reschedule order.close 42 --delay 1h",
    .exits = "0 done, 1 the job is running or dead, or --where failed on a "
             "job,\n  2 wrong usage, 3 no such topic, or no job of an id, 5 "
             "server unreachable",
    .needs_kind = true,
    .check = check_due,
    .ask = ask_due,
    .refuse = refuse_due,
    .print = print_due,
    .run = run_reschedule,
};

/* --- purge -------------------------------------------------------------- */

enum { YES };

static const struct weir__flag purge_flags[] = {
    [YES] = {"yes", NULL, "do it; without, only how many would go is told"},
};

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    weir__ask_on_count(code,
                       stats == NULL ? 0
                                     : stats->scheduled + stats->ready +
                                           stats->running + stats->dead,
                       arg);
}

static int ask_purge(struct weir__ask *ask)
{
    if (ask->args->value[YES] != NULL)
        return weir_reactor_purge(ask->client.reactor, ask->topic,
                                  weir__ask_on_count, ask);
    return weir_reactor_stats(ask->client.reactor, ask->topic, on_stats, ask);
}

static enum weir__exit print_purged(struct weir__ask *ask)
{
    if (ask->args->value[YES] != NULL)
        return weir__print_count(ask->client.cli, ask->topic, "deleted",
                                 ask->count);
    weir__complain("purge would delete %" PRIu64 " job%s of topic \"%s\"; give "
                   "--yes to do so",
                   ask->count, ask->count == 1 ? "" : "s", ask->topic);
    return WEIR__EXIT_USAGE;
}

const struct weir__command weir__cmd_purge = {
    .name = "purge",
    .operands = "TOPIC",
    WEIR__FLAGS(purge_flags),
    .summary = "Delete every job of a topic, in any state",
    .details = "Its options and totals stay. Jobs that are running are not "
               "interrupted, but\nnever run again and their verdicts are "
               "ignored. With --json:\n{\"topic\",\"deleted\"}.",
    .example = "weir purge order.close --yes",
    .exits = "0 deleted, 2 wrong usage, or --yes is missing, 3 no such topic,\n"
             "  5 server unreachable",
    .needs_kind = true,
    .ask = ask_purge,
    .print = print_purged,
};
