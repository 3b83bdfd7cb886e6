/* SPDX-License-Identifier: MIT */

/* weir show, list, delete, reschedule, purge, dead: jobs that are there. */

#include "adapters/cli/ask.h"
#include "adapters/cli/new_job.h"
#include "adapters/cli/options.h"
#include "adapters/cli/output.h"
#include "adapters/cli/time.h"

#include <inttypes.h>
#include <string.h>

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
    .details = "With --json: {\"topic\",\"id\",\"state\",\"attempt\","
               "\"failures\",\"timeouts\",\n\"crashes\",\"snoozes\","
               "\"due_ms\",\"added_ms\",\"ttl_ms\",\"url\",\"retry\","
               "\"reason\",\n\"error\",\"body\"}; state is scheduled, ready, "
               "running or dead. due_ms is null\nwhile the job runs, and the "
               "time of death when it is dead; added_ms is null\nwhere nobody "
               "knows when it was added. Of a job that runs there are also\n"
               "\"worker\", who has it, \"claimed_ms\", since when, and "
               "\"lease_left_ms\", how long\nunless the worker prolongs it.",
    .example = "weir show order.close 42",
    .exits = "0 shown, 2 wrong usage, 3 no such topic or job,\n"
             "  5 server unreachable",
    .needs_kind = true,
    .ask = ask_show,
    .print = print_nothing,
};

/* --- list --------------------------------------------------------------- */

enum { STATE, LIMIT };
enum { ANY_STATE = -1, LIMIT_DEFAULT = 100, LIMIT_MAX = 1000000000 };

static const struct weir__flag list_flags[] = {
    [STATE] = {"state", "S",
               "only jobs that are scheduled, ready, running or dead"},
    [LIMIT] = {"limit", "N", "at most so many, 1 to 1000000000 (default: 100)"},
};

static void print_added(const struct weir_job_info *job)
{
    char added[32];

    if (job->added_ms <= 0)
        return;
    weir__time_print(job->added_ms, added);
    weir__print("  added %s", added);
}

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
    print_added(job);
    (void)printf("  attempt %u", job->counters.attempt);
    if (job->reason.len > 0) {
        (void)printf("  ");
        weir__print_text(job->reason);
    }
    (void)printf("\n");
}

static bool read_state(const char *text, int *ret_state)
{
    *ret_state = ANY_STATE;
    if (text == NULL)
        return true;
    for (int state = WEIR_JOB_SCHEDULED; state <= WEIR_JOB_DEAD; state++) {
        if (strcmp(text, weir_job_state_name((enum weir_job_state)state)) != 0)
            continue;
        *ret_state = state;
        return true;
    }
    weir__complain("--state: \"%s\" is none of scheduled, ready, running, dead",
                   text);
    return false;
}

static bool check_list(struct weir__ask *ask)
{
    static const struct weir__bounds limits = {1, LIMIT_MAX, "1 to 1000000000"};
    const char *const *value = ask->args->value;
    int64_t limit = LIMIT_DEFAULT;
    struct weir_error err = {0};
    int rc;

    if (!read_state(value[STATE], &ask->state))
        return false;
    rc = weir__value_number("--limit", value[LIMIT], limits, &limit, &err);
    ask->limit = (size_t)limit;
    return weir__told(rc, &err);
}

static int ask_list(struct weir__ask *ask)
{
    return weir_reactor_list(ask->client.reactor, ask->topic, ask->state,
                             ask->limit + 1, weir__ask_on_job, ask);
}

const struct weir__command weir__cmd_list = {
    .name = "list",
    .operands = "TOPIC",
    WEIR__FLAGS(list_flags),
    .summary = "List jobs of a topic",
    .details =
        "Scheduled ones first, then ready, running and dead ones; those "
        "that are\nscheduled or ready by due time. What changes "
        "meanwhile may be missed or come\ntwice. Events of bounded topics "
        "come by group, in the order of their turns,\ndue when they were "
        "added. With --json: an array of what weir show prints.",
    .example = "weir list order.close --state ready --limit 20",
    .exits = "0 listed, also when there are none, 2 wrong usage,\n"
             "  3 no such topic, 5 server unreachable",
    .needs_kind = true,
    .check = check_list,
    .ask = ask_list,
    .print_job = print_listed,
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

const struct weir__command weir__cmd_delete = {
    .name = "delete",
    .operands = "TOPIC ID",
    .summary = "Delete a job in any state",
    .details = "A job that is running is not interrupted, but never runs again "
               "and its\nverdict is ignored. With --json: "
               "{\"topic\",\"id\",\"was\"}, was being the state\nit was in.",
    .example = "weir delete order.close 42",
    .exits = "0 deleted, 2 wrong usage, 3 no such topic or job,\n"
             "  5 server unreachable",
    .needs_kind = true,
    .ask = ask_delete,
    .print = print_deleted,
};

/* --- reschedule --------------------------------------------------------- */

enum { DELAY, AT };

static const struct weir__flag due_flags[] = {
    [DELAY] = {"delay", "D", "time from now, such as 0ms, 15s, 3m, 2h, 1d"},
    [AT] = {"at", "RFC3339",
            "point in time instead, such as\n"
            "2026-01-31T08:30:00Z"},
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

const struct weir__command weir__cmd_reschedule = {
    .name = "reschedule",
    .operands = "TOPIC ID",
    WEIR__FLAGS(due_flags),
    .summary = "Give a scheduled or ready job another due time",
    .details = "With --json: {\"topic\",\"id\",\"due_ms\"}.",
    .example = "weir reschedule order.close 42 --delay 1h",
    .exits = "0 done, 1 the job is running or dead, 2 wrong usage,\n"
             "  3 no such topic or job, 5 server unreachable",
    .needs_kind = true,
    .check = check_due,
    .ask = ask_due,
    .refuse = refuse_due,
    .print = print_due,
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

/* --- dead jobs ---------------------------------------------------------- */

enum { ALL };
enum { DEAD_LIMIT = 1000000 };

static const struct weir__flag dead_flags[] = {
    [ALL] = {"all", NULL, "all dead jobs of the topic"},
};

static void print_dead(const struct weir_job_info *job)
{
    char died[32];

    weir__time_print(job->due_ms, died);
    weir__print_text(job->id);
    weir__print("  died %s", died);
    print_added(job);
    weir__print("  attempt %u  ", job->counters.attempt);
    weir__print_text(job->reason);
    if (job->error.len > 0) {
        (void)printf(": ");
        weir__print_text(job->error);
    }
    (void)printf("\n");
}

static int ask_dead(struct weir__ask *ask)
{
    ask->limit = DEAD_LIMIT;
    return weir_reactor_dead(ask->client.reactor, ask->topic, DEAD_LIMIT,
                             weir__ask_on_job, ask);
}

static bool check_which(struct weir__ask *ask)
{
    bool is_all = ask->args->value[ALL] != NULL;

    if (is_all != (ask->id != NULL))
        return true;
    weir__complain(is_all ? "%s: an id and --all exclude each other; give one"
                          : "%s needs the id of a dead job, or --all",
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

const struct weir__command weir__cmd_dead_list = {
    .name = "dead list",
    .operands = "TOPIC",
    .summary = "List dead jobs, oldest first",
    .details = "A line for each: id, time of death, when it was added, "
               "attempts, reason and\nthe text of the last error. With --json: "
               "an array of what weir "
               "show prints.",
    .example = "weir dead list order.close",
    .exits = "0 listed, also when there are none, 2 wrong usage,\n"
             "  3 no such topic, 5 server unreachable",
    .needs_kind = true,
    .ask = ask_dead,
    .print_job = print_dead,
};

const struct weir__command weir__cmd_dead_requeue = {
    .name = "dead requeue",
    .operands = "TOPIC [ID]",
    WEIR__FLAGS(dead_flags),
    .summary = "Make dead jobs ready again",
    .details = "One by its id, or all. Attempts and failures count from 0 "
               "again. With\n--json: {\"topic\",\"requeued\"}.",
    .example = "weir dead requeue order.close 42",
    .exits = "0 done, with --all also when there were none, 2 wrong usage,\n"
             "  3 no such topic or dead job, 5 server unreachable",
    .needs_kind = true,
    .check = check_which,
    .ask = ask_requeue,
    .refuse = refuse_none,
    .print = print_changed,
};

const struct weir__command weir__cmd_dead_purge = {
    .name = "dead purge",
    .operands = "TOPIC [ID]",
    WEIR__FLAGS(dead_flags),
    .summary = "Delete dead jobs",
    .details = "One by its id, or all. With --json: {\"topic\",\"deleted\"}.",
    .example = "weir dead purge order.close --all",
    .exits = "0 done, with --all also when there were none, 2 wrong usage,\n"
             "  3 no such topic or dead job, 5 server unreachable",
    .needs_kind = true,
    .check = check_which,
    .ask = ask_purge_dead,
    .refuse = refuse_none,
    .print = print_changed,
};
