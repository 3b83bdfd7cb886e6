/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_BULK_H
#define WEIR_CLI_BULK_H

/* Commands on many jobs of a topic: those with ids from the line or a file, or
 * those of a list, each looked at by the conditions, then printed or changed.
 * In slices: what is kept does not grow with the number of jobs, but for the
 * ids that were given, which are kept to take each once. */

#include "adapters/cli/ask.h"
#include "adapters/cli/filter.h"
#include "adapters/cli/ids.h"
#include "core/buf.h"

/* Flags of such commands, by name. A command has those that it wants. */
#define WEIR__IDS_FLAG                                       \
    {                                                        \
        "ids-from", "FILE",                                  \
            "ids of jobs, one a line, - for stdin; besides " \
            "those of\nthe line"                             \
    }
#define WEIR__BULK_FLAGS                                                      \
    WEIR__IDS_FLAG, WEIR__CONDITION_FLAGS,                                    \
        {"limit", "N", "at most so many that are meant (default: all)"},      \
    {                                                                         \
        "dry-run", NULL, "only tell which jobs are meant, and change nothing" \
    }

/* The end of its help. */
#define WEIR__BULK_JSON(done)                                        \
    "{\"topic\",\"" done "\",\"meant\",\"gone\"}, gone being those " \
    "that were not there\nor not in that state any more; with "      \
    "--dry-run:\n{\"topic\",\"ids\",\"meant\"}."

struct weir__bulk_one;

/* What is done to jobs. */
struct weir__bulk_rule {
    const struct weir__command *command;
    const char *word, *done; /* "delete", "deleted"; NULL: jobs are printed */
    int state;               /* of jobs that are meant; -1: any */
    bool is_waiting;         /* of these only scheduled and ready ones */
    size_t limit;            /* of those printed, unless said otherwise */
    /* Prints one that is meant, instead of what lists print; false: no
     * memory. Of kinds that keep their jobs, and not of ticks. May be NULL. */
    bool (*print_line)(const struct weir__ask *ask,
                       const struct weir_job_info *job);
    /* Issue the request of one job; its answer calls weir__bulk_answer. */
    int (*act)(struct weir__bulk_one *one);
};

/* A request of one job, on its way. */
struct weir__bulk_one {
    struct weir__bulk *bulk;
    char id[WEIR_MAX_ID + 1];
    struct weir__bulk_one *next; /* of those that are free */
};

struct weir__bulk {
    struct weir__ask ask; /* first */
    const struct weir__bulk_rule *rule;
    struct weir__filter filter;
    struct weir_due due; /* of reschedule */
    bool is_dry;
    struct weir__ids given;

    /* A slice. */
    struct weir__buf ids;           /* meant, each with its NUL */
    char place[WEIR_MAX_PLACE + 1]; /* where the list goes on */
    bool is_end;                    /* there is no more to look at */
    bool is_full;                   /* as many are meant as may be */
    size_t asked, out;              /* requests of the slice; not answered */
    int code;                       /* the first that ended it */

    struct weir__bulk_one *ones; /* as many as are on their way at once */
    size_t one_count;            /* of them used so far */
    struct weir__bulk_one *free_one;

    uint64_t meant, done, gone; /* gone: not there, or not in that state */
    struct weir__buf named;     /* ids of the first that are gone */

    enum weir__exit refusal; /* if nothing is asked */
};

/* Whether options of the line ask for more than one job by its id. */
bool weir__bulk_is_wanted(const struct weir__command *command,
                          const struct weir__args *args);

/* What to exit with. `due`: of reschedule, else NULL. BLOCKS. */
enum weir__exit weir__bulk(const struct weir__bulk_rule *rule,
                           const struct weir__cli *cli,
                           const struct weir__args *args,
                           const struct weir_due *due);

/* The answer of one action: WEIR_OK, or WEIR_ENOTFOUND where the job is gone
 * from its state, or what ends it all. */
void weir__bulk_answer(struct weir__bulk_one *one, int code);

#endif
