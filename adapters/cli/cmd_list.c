/* SPDX-License-Identifier: MIT */

/* weir list: jobs of a topic, by state. */

#include "adapters/cli/listing.h"
#include "adapters/cli/options.h"
#include "adapters/cli/output.h"
#include "adapters/cli/time.h"

#include <string.h>

enum { STATE, LIMIT };
enum { ANY_STATE = -1, LIMIT_DEFAULT = 100, LIMIT_MAX = 1000000000 };

static const struct weir__flag flags[] = {
    [STATE] = {"state", "S",
               "only jobs that are scheduled, ready, running or dead"},
    [LIMIT] = {"limit", "N", "at most so many, 1 to 1000000000 (default: 100)"},
};

static void print_line(const struct weir_job_info *job)
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
    (void)printf("  attempt %u", job->counters.attempt);
    if (job->reason.len > 0) {
        (void)printf("  ");
        weir__print_text(job->reason);
    }
    (void)printf("\n");
}

static bool read_state(const char *text, int *ret_state)
{
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

static enum weir__exit ask(struct weir__listing *listing, int state)
{
    int code =
        weir_reactor_list(listing->client.reactor, listing->topic, state,
                          listing->limit + 1, weir__listing_take, listing);
    enum weir__exit rc = weir__listing_finish(listing, code, "list");

    if (listing->is_more)
        weir__note(listing->client.cli,
                   "there are more than %zu; --limit N shows more",
                   listing->limit);
    return rc;
}

static enum weir__exit run(const struct weir__cli *cli,
                           const struct weir__args *args)
{
    static const struct weir__bounds limits = {1, LIMIT_MAX, "1 to 1000000000"};
    struct weir__listing listing = {.topic = args->operand[0],
                                    .print_line = print_line};
    int64_t limit = LIMIT_DEFAULT;
    int state = ANY_STATE;
    enum weir__exit rc;

    if (!weir__operand_topic(args->operand[0]) ||
        !read_state(args->value[STATE], &state) ||
        !weir__flag_number("limit", args->value[LIMIT], limits, &limit))
        return WEIR__EXIT_USAGE;
    listing.limit = (size_t)limit;
    rc = weir__client_open(&listing.client, cli, NULL);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    rc = weir__client_know(&listing.client, listing.topic);
    if (rc == WEIR__EXIT_NONE)
        rc = ask(&listing, state);
    weir__client_close(&listing.client);
    return rc;
}

const struct weir__command weir__cmd_list = {
    .name = "list",
    .operands = "TOPIC",
    .operand_min = 1,
    .operand_max = 1,
    .flags = flags,
    .flag_count = sizeof(flags) / sizeof(flags[0]),
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
    .run = run,
};
