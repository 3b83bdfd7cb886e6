/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_OUTCOME_H
#define WEIR_CLI_OUTCOME_H

/* What came of a job in weir plugin try: its verdict, the jobs that its handler
 * added, what it counted and logged. */

#include "adapters/cli/cli.h"

#include <weir/test.h>

enum { WEIR__TRY_JOBS_MAX = 256, WEIR__TRY_ID_CAP = WEIR_MAX_ID + 8 };

struct weir__job_outcome {
    char id[WEIR__TRY_ID_CAP];
    const char *verdict; /* "RETRY_AFTER" */
    int64_t attempt;
    int64_t delay_ms; /* -1: none */
    const char *reason;
    const char *dead;
};

struct weir__outcome {
    const struct weir_trial *trial; /* NULL: it did not come to an end */
    const struct weir__job_outcome *jobs;
    size_t job_count;
    double time_ms; /* of all */
};

/* What to exit with. */
enum weir__exit weir__outcome_print(const struct weir__cli *cli,
                                    const struct weir__outcome *outcome);

#endif
