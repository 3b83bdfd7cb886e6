/* SPDX-License-Identifier: MIT */
#include "adapters/cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BAR = 30 };

void weir__progress_init(struct weir__progress *progress,
                         const struct weir__cli *cli, uint64_t total,
                         double now)
{
    *progress = (struct weir__progress){
        .is_shown =
            cli->log_level <= WEIR_LEVEL_INFO && isatty(STDERR_FILENO) == 1,
        .total = total,
        .begun_at = now,
    };
}

static void print_bar(const struct weir__progress *progress, uint64_t done)
{
    static const char full[] = "##############################";
    static const char empty[] = "------------------------------";
    double part = (double)done / (double)progress->total;
    int filled;

    _Static_assert(sizeof(full) == BAR + 1 && sizeof(empty) == BAR + 1,
                   "as wide as the bar");
    part = part > 1.0 ? 1.0 : part; /* the file grew */
    filled = (int)(part * BAR);
    (void)fprintf(stderr, "[%.*s%.*s] %3.0f %%  ", filled, full, BAR - filled,
                  empty, part * 100.0);
}

void weir__progress_draw(struct weir__progress *progress, uint64_t done,
                         uint64_t lines, double now)
{
    double seconds = now - progress->begun_at;

    if (!progress->is_shown)
        return;
    (void)fprintf(stderr, "\r\033[K");
    if (progress->total > 0)
        print_bar(progress, done);
    (void)fprintf(stderr, "%" PRIu64 " lines, %.0f a second", lines,
                  seconds > 0.0 ? (double)lines / seconds : 0.0);
    (void)fflush(stderr);
    progress->is_drawn = true;
}

void weir__progress_clear(struct weir__progress *progress)
{
    if (!progress->is_drawn)
        return;
    (void)fprintf(stderr, "\r\033[K");
    progress->is_drawn = false;
}
