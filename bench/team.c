/* SPDX-License-Identifier: MIT */
#include "bench/team.h"

#include "bench/say.h"
#include "core/assert.h"
#include "core/error.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_AGAIN_NS = 1000000, READY_LIMIT_S = 30, STOP_LIMIT_S = 60 };

#define NS_PER_S INT64_C(1000000000)

int bench_team_init(struct bench_team *team, int64_t jobs, bool stamps,
                    struct weir_error *err)
{
    size_t tally = (bench_tally_size(jobs) + 127) / 128 * 128;
    size_t stamp = stamps ? (size_t)jobs * sizeof(int64_t) : 0;
    size_t size = sizeof(struct bench_arena) + tally + stamp;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    *team = (struct bench_team){0};
    if (memory == MAP_FAILED)
        return weir__error_set(err, WEIR_ENOMEM,
                               "no memory to count %lld jobs in",
                               (long long)jobs);
    team->arena = memory;
    team->arena->size = size;
    team->arena->tally = bench_tally_init(team->arena + 1, jobs);
    if (!stamps)
        return WEIR_OK;
    team->arena->stamp = (void *)((char *)(team->arena + 1) + tally);
    for (int64_t i = 0; i < jobs; i++)
        team->arena->stamp[i] = BENCH_NO_STAMP;
    return WEIR_OK;
}

void bench_team_fini(struct bench_team *team)
{
    for (int i = 0; i < team->count; i++)
        bench_team_kill(team, i);
    if (team->arena != NULL)
        (void)munmap(team->arena, team->arena->size);
    *team = (struct bench_team){0};
}

/* In the child. */
_Noreturn static void live(const struct bench_team *team,
                           const struct bench_role *role, int orders)
{
    for (int i = 0; i <= team->count; i++)
        if (team->process[i].orders >= 0)
            (void)close(team->process[i].orders);
    bench_member_run(role, team->arena, team->count, orders);
    _exit(0);
}

static int start(struct bench_team *team, const struct bench_role *role,
                 struct weir_error *err)
{
    int ends[2];
    pid_t pid;

    WEIR_ASSERT(team->count < BENCH_MEMBERS_MAX);
    if (pipe(ends) != 0)
        return weir__error_set(err, WEIR_ESYSTEM, "cannot make a pipe: %s",
                               strerror(errno));
    team->process[team->count].orders = ends[1];
    pid = fork();
    if (pid == 0)
        live(team, role, ends[0]);
    (void)close(ends[0]);
    if (pid < 0) {
        (void)close(ends[1]);
        return weir__error_set(err, WEIR_ESYSTEM, "cannot fork: %s",
                               strerror(errno));
    }
    team->process[team->count].pid = pid;
    return team->count++;
}

int bench_team_join(struct bench_team *team, const struct bench_role *role,
                    struct weir_error *err)
{
    int64_t deadline = bench_now_ns() + READY_LIMIT_S * NS_PER_S;
    int who = start(team, role, err);

    while (who >= 0 && bench_team_state(team, who) < BENCH_READY) {
        int rc = bench_team_check(team, err);

        if (rc < 0)
            return rc;
        if (bench_now_ns() > deadline)
            return weir__error_set(err, WEIR_ETIMEDOUT,
                                   "a member did not become ready in time");
        bench_rest_ns(LOOK_AGAIN_NS);
    }
    return who < 0 ? who : bench_team_check(team, err) < 0 ? err->code : who;
}

void bench_team_order(struct bench_team *team, int who, char order)
{
    /* One that is gone is noticed by bench_team_check. */
    (void)!write(team->process[who].orders, &order, 1);
}

static void reaped(struct bench_team *team, int who)
{
    team->process[who].pid = 0;
    (void)close(team->process[who].orders);
    team->process[who].orders = -1;
}

void bench_team_kill(struct bench_team *team, int who)
{
    if (team->process[who].pid == 0)
        return;
    (void)kill(team->process[who].pid, SIGKILL);
    (void)waitpid(team->process[who].pid, NULL, 0);
    reaped(team, who);
}

int bench_team_state(const struct bench_team *team, int who)
{
    return atomic_load(&team->arena->member[who].state);
}

int bench_team_check(struct bench_team *team, struct weir_error *err)
{
    for (int i = 0; i < team->count; i++) {
        int status = 0;

        if (bench_team_state(team, i) == BENCH_FAILED)
            return weir__error_set(err, WEIR_ECONN, "%s",
                                   team->arena->member[i].error);
        if (team->process[i].pid == 0 ||
            waitpid(team->process[i].pid, &status, WNOHANG) == 0)
            continue;
        reaped(team, i);
        if (bench_team_state(team, i) == BENCH_FAILED)
            return weir__error_set(err, WEIR_ECONN, "%s",
                                   team->arena->member[i].error);
        if (bench_team_state(team, i) != BENCH_ENDED)
            return weir__error_set(err, WEIR_ESYSTEM,
                                   "a member ended by itself (status %d)",
                                   status);
    }
    return WEIR_OK;
}

static bool anybody_left(const struct bench_team *team)
{
    for (int i = 0; i < team->count; i++)
        if (team->process[i].pid != 0)
            return true;
    return false;
}

int bench_team_stop(struct bench_team *team, struct weir_error *err)
{
    int64_t deadline = bench_now_ns() + STOP_LIMIT_S * NS_PER_S;

    for (int i = 0; i < team->count; i++)
        if (team->process[i].pid != 0)
            bench_team_order(team, i, BENCH_STOP);
    while (anybody_left(team)) {
        int rc = bench_team_check(team, err);

        if (rc < 0)
            return rc;
        if (bench_now_ns() > deadline)
            return weir__error_set(err, WEIR_ETIMEDOUT,
                                   "a member did not stop in time");
        bench_rest_ns(LOOK_AGAIN_NS);
    }
    return WEIR_OK;
}

int64_t bench_team_handled(const struct bench_team *team)
{
    int64_t sum = 0;

    for (int i = 0; i < team->count; i++)
        sum += atomic_load(&team->arena->member[i].handled);
    return sum;
}

int64_t bench_team_fresh(const struct bench_team *team)
{
    int64_t sum = 0;

    for (int i = 0; i < team->count; i++)
        sum += atomic_load(&team->arena->member[i].fresh);
    return sum;
}

int64_t bench_team_cpu_ns(const struct bench_team *team)
{
    int64_t sum = 0;

    for (int i = 0; i < team->count; i++)
        sum += team->arena->member[i].cpu_ns;
    return sum;
}

int64_t bench_team_turn_ns(const struct bench_team *team)
{
    int64_t longest = 0;

    for (int i = 0; i < team->count; i++)
        if (team->arena->member[i].turn_ns > longest)
            longest = team->arena->member[i].turn_ns;
    return longest;
}

bool bench_team_settled(const struct bench_team *team, int64_t *ret_ns)
{
    int64_t latest = 0;

    for (int i = 0; i < team->count; i++) {
        struct bench_member *member = &team->arena->member[i];
        int64_t at = atomic_load(&member->settled_ns);

        if (team->process[i].pid != 0 &&
            atomic_load(&member->settled) != atomic_load(&member->handled))
            return false;
        latest = at > latest ? at : latest;
    }
    *ret_ns = latest;
    return true;
}
