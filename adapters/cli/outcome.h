/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_OUTCOME_H
#define WEIR_CLI_OUTCOME_H

/* What came of a job in weir plugin try: its verdict, the jobs that its handler
 * added, what it counted and logged. */

#include "adapters/cli/cli.h"

#include <weir/test.h>

struct weir__outcome {
    const struct weir_trial *trial; /* NULL: it did not come to an end */
    const char *verdict;            /* "RETRY_AFTER" */
    int64_t attempt;
    int64_t delay_ms; /* -1: none */
    const char *reason;
    const char *dead;
    double time_ms;
};

/* What to exit with. */
enum weir__exit weir__outcome_print(const struct weir__cli *cli,
                                    const struct weir__outcome *outcome);

#endif
