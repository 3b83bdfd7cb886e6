/* SPDX-License-Identifier: MIT */

/* sim_run [SEED]: runs the worlds of seeds 1 to 100, or the one of SEED, and
 * prints what happened in each. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/world.h"

static bool run(uint64_t seed)
{
    struct world_plan plan = world_plan_of(seed);
    struct world world;
    bool is_well;

    world_run(&world, &plan, seed);
    is_well = world.missing == 0 && world.early == 0 && world.errors == 0;
    printf("seed %" PRIu64 ": %d workers, %d jobs added, %d refused, %d runs, "
           "%d of them again; %d holds, %d cuts, %d deaths, %d jumps of the "
           "clock; at most %.1f s late; %" PRIu64 " scripts, %.2f CPU s, hash "
           "%016" PRIx64 "\n",
           seed, plan.workers, world.added, world.refused, world.runs,
           world.twice, world.holds, world.cuts, world.deaths, world.jumps,
           (double)world.late_ns * 1e-9, world.scripts, world.cpu_s,
           world.hash);
    if (!is_well)
        printf("  %d jobs never ran, %d ran early, %d errors were logged%s%s\n"
               "  Again: ./run sim %" PRIu64 "\n",
               world.missing, world.early, world.errors,
               world.errors > 0 ? ": " : "", world.error, seed);
    (void)fflush(stdout); /* a run may be cut short */
    return is_well;
}

int main(int argc, char **argv)
{
    uint64_t first = 1, last = 100, failed = 0;
    char *end = NULL;

    if (argc > 1) {
        first = last = strtoull(argv[1], &end, 10);
        if (argc > 2 || *end != '\0' || end == argv[1]) {
            (void)fprintf(stderr, "sim: \"%s\" is no seed: give one number\n",
                          argv[argc - 1]);
            return 2;
        }
    }
    for (uint64_t seed = first; seed <= last; seed++)
        failed += !run(seed);
    printf("%" PRIu64 " passed, %" PRIu64 " failed\n",
           last - first + 1 - failed, failed);
    return failed == 0 ? 0 : 1;
}
