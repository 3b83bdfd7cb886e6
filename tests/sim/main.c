/* SPDX-License-Identifier: MIT */

/* sim_run [SEED]: runs the worlds of seeds 1 to 100, or the one of SEED, and
 * prints what happened in each, and how often each fault met each feature.
 * With WEIR_SIM_LOG=1 in the environment it prints what workers log, too. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/world.h"

/* How often a fault occurred in a world with the feature. */
static int pairs[WORLD_FAULT_COUNT][WORLD_FEATURE_COUNT];

static void print_bits(const char *what, unsigned bits,
                       const char *const *names, int count)
{
    printf("  %s:", what);
    for (int i = 0; i < count; i++)
        if ((bits >> i & 1) != 0)
            printf(" %s;", names[i]);
    printf("\n");
}

static void count_pairs(const struct world *world)
{
    for (int fault = 0; fault < WORLD_FAULT_COUNT; fault++)
        for (int feature = 0; feature < WORLD_FEATURE_COUNT; feature++)
            if ((world->plan->features >> feature & 1) != 0)
                pairs[fault][feature] += world->faults[fault];
}

static void print_pairs(void)
{
    printf("how often each fault occurred beside each feature:\n%22s", "");
    for (int feature = 0; feature < WORLD_FEATURE_COUNT; feature++)
        printf(" %10s", world_features[feature]);
    printf("\n");
    for (int fault = 0; fault < WORLD_FAULT_COUNT; fault++) {
        printf("%22s", world_faults[fault]);
        for (int feature = 0; feature < WORLD_FEATURE_COUNT; feature++)
            printf(" %10d", pairs[fault][feature]);
        printf("\n");
    }
}

static bool run(uint64_t seed)
{
    struct world_plan plan = world_plan_of(seed);
    struct world world;
    bool is_well = world_run(&world, &plan, seed);
    int faults = 0;

    for (int i = 0; i < WORLD_FAULT_COUNT; i++)
        faults += world.faults[i];
    count_pairs(&world);
    printf("seed %" PRIu64 ": %d workers, %d jobs added, %d refused, %d runs, "
           "%d of them again; %d faults, %d jobs lost of %d that may be; at "
           "most %.1f s late; %" PRIu64 " scripts, %.2f CPU s, hash %016" PRIx64
           "\n",
           seed, plan.workers, world.added, world.refused, world.runs,
           world.twice, faults, world.lost, world.may_miss,
           (double)world.late_ns * 1e-9, world.scripts, world.cpu_s,
           world.hash);
    if (!is_well) {
        print_bits("features", plan.features, world_features,
                   WORLD_FEATURE_COUNT);
        print_bits("faults", plan.faults, world_faults, WORLD_FAULT_COUNT);
        world_print_faults(&world);
        printf("  Again: ./run sim %" PRIu64 "\n", seed);
    }
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
    if (first != last)
        print_pairs();
    printf("%" PRIu64 " passed, %" PRIu64 " failed\n",
           last - first + 1 - failed, failed);
    return failed == 0 ? 0 : 1;
}
