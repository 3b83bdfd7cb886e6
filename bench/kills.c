/* SPDX-License-Identifier: MIT */
#include "bench/kills.h"

#include "core/assert.h"

/* xorshift: each run of a benchmark kills in the same order. */
static int64_t below(struct bench_kills *kills, int64_t bound)
{
    kills->random ^= kills->random << 13;
    kills->random ^= kills->random >> 7;
    kills->random ^= kills->random << 17;
    return (int64_t)(kills->random % (uint64_t)(bound > 0 ? bound : 1));
}

static void plan(struct bench_kills *kills)
{
    int64_t step = kills->jobs * 3 / 4 / BENCH_KILLS;

    kills->next += step / 2 + below(kills, step);
}

void bench_kills_init(struct bench_kills *kills, const struct bench_role *role,
                      int workers, int64_t jobs)
{
    WEIR_ASSERT(workers > 0 && workers <= BENCH_VICTIMS_MAX);
    *kills = (struct bench_kills){.role = *role,
                                  .workers = workers,
                                  .jobs = jobs,
                                  .random = UINT64_C(0x9e3779b97f4a7c15)};
    kills->role.adds = kills->role.handles_at_once = false;
    kills->role.handles = true;
    for (int i = 0; i < workers; i++)
        kills->alive[i] = i;
    plan(kills);
}

int bench_kills_look(struct bench_kills *kills, struct bench_team *team,
                     struct weir_error *err)
{
    int *victim;
    int who;

    if (kills->count == BENCH_KILLS || bench_team_handled(team) < kills->next)
        return WEIR_OK;
    victim = &kills->alive[below(kills, kills->workers)];
    bench_team_kill(team, *victim);
    kills->count++;
    plan(kills);
    who = bench_team_join(team, &kills->role, err);
    if (who < 0)
        return who;
    bench_team_order(team, who, BENCH_GO);
    *victim = who;
    return WEIR_OK;
}
