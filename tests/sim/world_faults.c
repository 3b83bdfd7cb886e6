/* SPDX-License-Identifier: MIT */

/* The faults of a world. */

#include <stdio.h>
#include <string.h>

#include "tests/sim/world_private.h"

#define CALM_NS (120 * SIM_S) /* without new faults, at the end of a world */

static int *workers;
static int (*next_worker)(void);
static int lasting[WORLD_FAULT_COUNT]; /* how many faults of each kind last */
static int64_t calm_from_ns;

static int64_t random_ns(int64_t limit_ns)
{
    return (int64_t)sim_below((uint64_t)limit_ns);
}

bool is_clock_ahead(void)
{
    return lasting[WORLD_FAULT_CLOCK] > 0;
}

/* --- the network --------------------------------------------------------- */

static void cut(void)
{
    sim_cut(this_world->redis.port);
}

static void stall(void)
{
    sim_stall(this_world->redis.port, sim_now() + random_ns(5 * SIM_S));
}

/* --- workers ------------------------------------------------------------- */

static void kill_worker(void)
{
    int *pid = &workers[sim_below((uint64_t)this_world->plan->workers)];

    sim_kill(*pid);
    *pid = next_worker();
}

/* --- the server's clock -------------------------------------------------- */

#define IN_FLIGHT_NS (60 * SIM_S) /* verdicts that a server did not take yet */

/* A job that was due may be claimed already, and one that was sent may get its
 * due time now. */
static void set_ahead(int64_t by_us)
{
    int64_t before_us = world_now_us();

    this_world->redis.ahead_us += by_us;
    for (struct job *job = jobs; job < jobs + next_number; job++) {
        int64_t due_us = world_now_us() + job->delay_ms * 1000;

        if (job->runs == 0 && job->seen_us < before_us)
            job->seen_us = before_us;
        if (!job->is_added && job->delay_ms >= 0 && job->due_us > due_us)
            job->due_us = due_us;
        if (by_us > 0 && sim_now() - job->told_ns < IN_FLIGHT_NS)
            job->is_far = true;
    }
}

static void jump_back(void *arg)
{
    lasting[WORLD_FAULT_CLOCK]--;
    set_ahead(-(int64_t)(uintptr_t)arg * 1000000);
}

static void jump(void)
{
    uint64_t ahead_s = 1 + sim_below(sim_one_in(2) ? 60 : 86400);

    if (sim_one_in(3)) {
        set_ahead(-(int64_t)sim_below(20) * 1000000);
        return;
    }
    lasting[WORLD_FAULT_CLOCK]++;
    set_ahead((int64_t)ahead_s * 1000000);
    sim_at(sim_now() + random_ns(5 * SIM_S), jump_back,
           (void *)(uintptr_t)ahead_s);
}

/* --- states of the server ------------------------------------------------ */

static const unsigned states[WORLD_FAULT_COUNT] = {
    [WORLD_FAULT_FULL] = SERVER_FULL,
    [WORLD_FAULT_DISK] = SERVER_DISK,
    [WORLD_FAULT_REPLICA] = SERVER_REPLICA,
    [WORLD_FAULT_LOADING] = SERVER_LOADING,
};

static void show_faults(void)
{
    unsigned all = 0;

    for (int i = 0; i < WORLD_FAULT_COUNT; i++)
        all |= lasting[i] > 0 ? states[i] : 0;
    server_faults(this_world->redis.server, all);
    sim_net.spread_ns =
        lasting[WORLD_FAULT_PIECES] > 0 ? 200 * SIM_MS : 20 * SIM_US;
    sim_net.in_pieces = lasting[WORLD_FAULT_PIECES] > 0;
    sim_net.cut_one_in = lasting[WORLD_FAULT_CUT_OFF] > 0 ? 20 : 0;
    if (lasting[WORLD_FAULT_RIGHTS] == 0)
        server_forbid(this_world->redis.server, NULL, NULL);
}

static void end_state(void *arg)
{
    lasting[(uintptr_t)arg]--;
    show_faults();
}

static void begin_state(enum world_fault fault, int64_t for_ns)
{
    lasting[fault]++;
    show_faults();
    sim_at(sim_now() + random_ns(for_ns), end_state, (void *)(uintptr_t)fault);
}

/* Of commands in scripts TIME alone: the others come behind a write as well,
 * and Redis does not undo what a script wrote before it is refused one. */
static void forbid(void)
{
    static const char *const commands[] = {"evalsha", "script", "time"};
    size_t count = sizeof(commands) / sizeof(commands[0]);
    size_t at = (size_t)sim_below(count + 1);

    server_forbid(this_world->redis.server, at < count ? commands[at] : NULL,
                  at < count ? NULL : "another prefix");
    begin_state(WORLD_FAULT_RIGHTS, 10 * SIM_S);
}

/* --- lost keys ----------------------------------------------------------- */

static void lose_dead(void)
{
    for (struct job *job = jobs; job < jobs + next_number; job++)
        job->may_go = job->may_go || (job->is_over && job->fails);
}

/* What goes with a key, as docs/packs.md has it: the jobs of a pack, all that
 * wait or run, or all that are dead. */
static int jobs_of_key(const char *key)
{
    const char *name = strstr(key, "}:");
    int waiting = 0;

    if (name == NULL)
        return 0;
    if (strncmp(name, "}:p:", 4) == 0)
        return 256;
    if (strcmp(name, "}:rec") == 0)
        lose_dead();
    if (strcmp(name, "}:wait") != 0 && strcmp(name, "}:run") != 0 &&
        strcmp(name, "}:due") != 0)
        return 0;
    for (const struct job *job = jobs; job < jobs + next_number; job++)
        waiting += !job->is_over && !job->is_refused;
    return waiting;
}

static void lose_key(void)
{
    struct server *server = this_world->redis.server;
    char key[256];

    if (!server_any_key(server, key, sizeof(key)))
        return;
    this_world->may_miss += jobs_of_key(key);
    sim_note(key, strlen(key));
    (void)server_lose(server, key); /* it is there */
}

static void evict(void)
{
    for (uint64_t count = 1 + sim_below(5); count > 0; count--)
        lose_key();
}

static void restart(void *arg)
{
    (void)arg;
    server_restart(this_world->redis.server);
    begin_state(WORLD_FAULT_LOADING, SIM_S);
}

static void crash(void *arg)
{
    cut();
    sim_at(sim_now(), restart, arg); /* behind the end of the connections */
}

static void save(void)
{
    server_save(this_world->redis.server);
    sim_at(sim_now() + random_ns(SIM_S), crash, NULL);
}

/* --- one after the other ------------------------------------------------- */

static const int every_s[WORLD_FAULT_COUNT] = {
#define EVERY(name, text, every) every,
    WORLD_FAULTS(EVERY)
#undef EVERY
};

static void strike(enum world_fault fault)
{
    switch (fault) {
    case WORLD_FAULT_CUT:
        cut();
        break;
    case WORLD_FAULT_STALL:
        stall();
        break;
    case WORLD_FAULT_DEATH:
        kill_worker();
        break;
    case WORLD_FAULT_CLOCK:
        jump();
        break;
    case WORLD_FAULT_RIGHTS:
        forbid();
        break;
    case WORLD_FAULT_KEY:
        lose_key();
        break;
    case WORLD_FAULT_EVICTION:
        evict();
        break;
    case WORLD_FAULT_RESTART:
        save();
        break;
    case WORLD_FAULT_CUT_OFF:
    case WORLD_FAULT_PIECES:
    case WORLD_FAULT_FULL:
    case WORLD_FAULT_DISK:
    case WORLD_FAULT_REPLICA:
    case WORLD_FAULT_LOADING:
    case WORLD_FAULT_COUNT:
        begin_state(fault, 10 * SIM_S);
    }
}

static void plan_next(enum world_fault fault);

static void strike_and_go_on(void *arg)
{
    enum world_fault fault = (enum world_fault)(uintptr_t)arg;

    this_world->faults[fault]++;
    strike(fault);
    plan_next(fault);
}

static void plan_next(enum world_fault fault)
{
    int64_t at_ns = sim_now() + random_ns(2 * every_s[fault] * SIM_S);

    if (at_ns < calm_from_ns)
        sim_at(at_ns, strike_and_go_on, (void *)(uintptr_t)fault);
}

void faults_begin(int *pids, int (*start_worker)(void))
{
    workers = pids;
    next_worker = start_worker;
    memset(lasting, 0, sizeof(lasting));
    calm_from_ns = sim_now() + this_world->plan->run_ns - CALM_NS;
    for (int i = 0; i < WORLD_FAULT_COUNT; i++)
        if (has_fault((enum world_fault)i))
            plan_next((enum world_fault)i);
}
