/* SPDX-License-Identifier: MIT */

/* sim_hashes COUNT: prints the hashes of the worlds of seeds 1 to COUNT, a line
 * each. All builds of weir print the same. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/conn_world.h"

int main(int argc, char **argv)
{
    uint64_t count = argc == 2 ? strtoull(argv[1], NULL, 10) : 0;

    if (count == 0) {
        (void)fprintf(stderr, "usage: %s COUNT\n", argv[0]);
        return 2;
    }
    for (uint64_t seed = 1; seed <= count; seed++)
        printf("%016" PRIx64 "\n", conn_world_run(seed, true, "redis.example"));
    return 0;
}
