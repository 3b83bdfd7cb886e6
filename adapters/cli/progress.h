/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_PROGRESS_H
#define WEIR_CLI_PROGRESS_H

/* A line on stderr that shows how far a long command is, where stderr is a
 * terminal and notes are told; elsewhere every function does nothing. */

#include "adapters/cli/cli.h"

struct weir__progress {
    bool is_shown;   /* at all */
    bool is_drawn;   /* the line stands on the terminal now */
    uint64_t total;  /* bytes; 0: not known */
    double begun_at; /* seconds on the loop's clock */
};

void weir__progress_init(struct weir__progress *progress,
                         const struct weir__cli *cli, uint64_t total,
                         double now);

/* Draw it: `done` bytes of the total, `lines` so far. */
void weir__progress_draw(struct weir__progress *progress, uint64_t done,
                         uint64_t lines, double now);

/* Take it away, so that something else can be said. */
void weir__progress_clear(struct weir__progress *progress);

#endif
