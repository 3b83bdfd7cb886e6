/* SPDX-License-Identifier: MIT */

/* weir export, import: jobs as lines of JSON. */

#include "adapters/cli/add_lines.h"
#include "adapters/cli/bulk.h"
#include "adapters/cli/options.h"
#include "adapters/cli/output.h"
#include "adapters/cli/past.h"

#include <string.h>

static const struct weir__flag export_flags[] = {
    {"state", "S", "only jobs that are scheduled, ready, running or dead"},
    {"limit", "N", "at most so many, 1 to 1000000000 (default: all)"},
    WEIR__IDS_FLAG,
    WEIR__CONDITION_FLAGS,
};

static bool print_line(const struct weir__ask *ask,
                       const struct weir_job_info *job)
{
    struct json_object *line = weir__export_json(ask->topic, job);
    bool is_good = line != NULL && weir__print_json("", line);

    if (is_good)
        (void)printf("\n");
    (void)json_object_put(line);
    return is_good;
}

static enum weir__exit run_export(const struct weir__cli *cli,
                                  const struct weir__args *args)
{
    static const struct weir__bulk_rule rule = {
        .command = &weir__cmd_export,
        .state = -1,
        .limit = SIZE_MAX - 1,
        .print_line = print_line,
    };

    return weir__bulk(&rule, cli, args, NULL);
}

const struct weir__command weir__cmd_export = {
    .name = "export",
    .operands = "TOPIC [ID]...",
    WEIR__FLAGS(export_flags),
    .summary = "Print jobs as lines that import takes",
    .details = "A JSON object a line, as weir add --jsonl has them, with what "
               "became of the job\n"
               "so far in \"past\": added, died (times), attempt, failures, "
               "timeouts, crashes,\n"
               "snoozes, reason, error, attempts; and the body as "
               "\"msgpack\", in base64, where\n"
               "JSON cannot carry it. Due times are points in time; what "
               "runs is due at once\n"
               "where it is imported. Jobs stay where they are. For topics "
               "of kind delay and\n"
               "bounded; events of the latter are added when they are "
               "imported.",
    .example = "weir export order.close > jobs",
    .exits = "0 exported, also when there are none, 1 --where failed on a "
             "job,\n  2 wrong usage, or a topic of another kind, 3 no such "
             "topic, or no job of an\n  id, 5 server unreachable",
    .run = run_export,
};

static enum weir__exit run_import(const struct weir__cli *cli,
                                  const struct weir__args *args)
{
    return weir__operand_topic(args->operand[0])
               ? weir__add_lines(cli, args->operand[0], args->operand[1])
               : WEIR__EXIT_USAGE;
}

const struct weir__command weir__cmd_import = {
    .name = "import",
    .operands = "TOPIC FILE",
    .summary = "Add jobs that export printed",
    .details = "The same as weir add TOPIC --jsonl FILE; - for stdin. Jobs "
               "keep ids, due times,\ncounters, and stay dead if they were. "
               "What is there already stays as it is.",
    .example = "weir export order.close | weir import order.close - --redis "
               "redis://other",
    .exits = "0 added, 1 lines were refused, 2 wrong usage, 4 an id exists "
             "already, in\n  whatever state (nothing was changed for it), 5 "
             "server unreachable",
    .run = run_import,
};
