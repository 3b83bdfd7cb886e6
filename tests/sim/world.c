/* SPDX-License-Identifier: MIT */
#include "tests/sim/world.h"

#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/random.h"
#include "tests/sim/world_private.h"

#define ADDRESS "/redis.sock"
#define URL     "unix:///redis.sock"

struct world *this_world;
static char names[NAMES][NAME_CAP];
static int workers_begun;
static char producer_name[] = "producer";

const char *const world_features[WORLD_FEATURE_COUNT] = {
#define TEXT(name, text) text,
    WORLD_FEATURES(TEXT)
#undef TEXT
};

const char *const world_faults[WORLD_FAULT_COUNT] = {
#define TEXT(name, text, every) text,
    WORLD_FAULTS(TEXT)
#undef TEXT
};

bool has_feature(enum world_feature feature)
{
    return (this_world->plan->features >> feature & 1) != 0;
}

bool has_fault(enum world_fault fault)
{
    return (this_world->plan->faults >> fault & 1) != 0;
}

int topic_count(void)
{
    return has_feature(WORLD_TOPICS) ? TOPICS_MAX : 1;
}

int64_t world_now_us(void)
{
    return sim_redis_now_us(&this_world->redis);
}

/* --- what is logged ------------------------------------------------------ */

/* A line that a fault explains, by a part of its text. */
static bool is_explained(const char *text)
{
    static const struct {
        enum world_fault fault;
        const char *text;
    } lines[] = {
        {WORLD_FAULT_FULL, "no writes until that is over"},
        {WORLD_FAULT_DISK, "no writes until that is over"},
        {WORLD_FAULT_RIGHTS, "see weir doctor: it needs the keys"},
        {WORLD_FAULT_RIGHTS, "denies us access"},
        {WORLD_FAULT_KEY, "claimed jobs are lost"},
        {WORLD_FAULT_EVICTION, "claimed jobs are lost"},
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (this_world->faults[lines[i].fault] > 0 &&
            strstr(text, lines[i].text) != NULL)
            return true;
    return false;
}

static void on_log(enum weir_level level, const char *text, void *arg)
{
    sim_note(text, strlen(text));
    if (getenv("WEIR_SIM_LOG") != NULL)
        (void)fprintf(stderr, "%.6f %s: %s\n", (double)sim_now() * 1e-9,
                      (const char *)arg, text);
    if (level < WEIR_LEVEL_ERROR || is_explained(text))
        return;
    this_world->errors++;
    (void)snprintf(this_world->error, sizeof(this_world->error), "%s: %s",
                   (const char *)arg, text); /* cut */
}

/* --- processes ----------------------------------------------------------- */

struct weir_reactor *open_reactor(struct ev_loop *loop, char *name)
{
    struct weir_options options = {.loop = loop,
                                   .redis_url = URL,
                                   .name = name,
                                   .log = on_log,
                                   .blocked_log = on_log,
                                   .log_arg = name,
                                   .log_level = WEIR_LEVEL_INFO,
                                   .request_timeout_ms = 600000};
    struct weir_reactor *reactor = NULL;
    struct weir_error err = {0};

    if (weir_reactor_open(&options, &reactor, &err) < 0)
        sim_fail("%s: %s", name, err.text);
    return reactor;
}

static void work(void *name)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);

    serve_topics(open_reactor(loop, name));
    ev_run(loop, 0);
}

static int start_worker(void)
{
    char *name = names[workers_begun++ % NAMES];

    (void)snprintf(name, NAME_CAP, "w%d", workers_begun); /* fits */
    return sim_start(name, work, name);
}

/* --- the world ----------------------------------------------------------- */

static double cpu_s(void)
{
    struct timespec now;

    SIM_CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* A bit in `one_in` is set. */
static unsigned random_bits(uint64_t *random, int count, uint64_t one_in)
{
    unsigned bits = 0;

    for (int i = 0; i < count; i++)
        bits |= (unsigned)(weir__random_next(random) % one_in == 0) << i;
    return bits;
}

/* A tenth of all worlds has no faults. */
struct world_plan world_plan_of(uint64_t seed)
{
    uint64_t random = seed;
    struct world_plan plan = {
        .jobs = 800,
        .workers = 1 + (int)(weir__random_next(&random) % 4),
        .least_ns = (int64_t)(weir__random_next(&random) % 1000) * SIM_US,
        .gap_ns = 100 * SIM_MS,
        .delay_ms = (int64_t)(weir__random_next(&random) % 10000),
        .hold_one_in = 20 + (int)(weir__random_next(&random) % 200),
        .run_ns = 240 * SIM_S,
    };

    plan.features = random_bits(&random, WORLD_FEATURE_COUNT, 2);
    if (weir__random_next(&random) % 10 != 0)
        plan.faults = random_bits(&random, WORLD_FAULT_COUNT, 4);
    plan.hold_ns = (plan.faults == 0 ? 5 : 8) * SIM_S;
    return plan;
}

static bool is_well(const struct world *world)
{
    return world->missing + world->early + world->ghosts + world->beyond +
                   world->left + world->miscounted + world->errors ==
               0 &&
           world->problem[0] == '\0';
}

void world_print_faults(const struct world *world)
{
    const struct {
        int count;
        const char *text;
    } lines[] = {
        {world->missing, "jobs are missing"},
        {world->early, "jobs ran early"},
        {world->ghosts, "runs of jobs whose add was refused"},
        {world->beyond, "runs beyond a bound of the topic"},
        {world->left, "jobs still wait or run"},
        {world->miscounted, "counters are wrong"},
        {world->errors, "errors were logged"},
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (lines[i].count > 0)
            printf("  %d %s\n", lines[i].count, lines[i].text);
    if (world->error[0] != '\0')
        printf("  the last: %s\n", world->error);
    if (world->problem[0] != '\0')
        printf("  %s\n", world->problem);
}

/* The model of jobs does not know what the server lost, nor what a script does
 * that ends in its middle. */
static bool is_judged(const struct world_plan *plan)
{
    const unsigned unknown = 1U << WORLD_FAULT_FULL | 1U << WORLD_FAULT_RIGHTS |
                             1U << WORLD_FAULT_KEY |
                             1U << WORLD_FAULT_EVICTION |
                             1U << WORLD_FAULT_RESTART;

    return (plan->faults & unknown) == 0;
}

static void listener_judge(struct world *world)
{
    listen_walk(world->listener);
    (void)snprintf(world->problem, sizeof(world->problem), "%s",
                   listen_problem(world->listener)); /* fits */
    world->judged = listen_calls(world->listener);
}

bool world_run(struct world *world, const struct world_plan *plan,
               uint64_t seed)
{
    int pids[NAMES];
    double begin_s = cpu_s();

    *world = (struct world){.plan = plan};
    this_world = world;
    jobs = calloc((size_t)plan->jobs, sizeof(*jobs));
    SIM_CHECK(jobs != NULL && plan->workers <= NAMES);
    workers_begun = 0;
    sim_open(seed);
    sim_net.least_ns = plan->least_ns;
    jobs_begin();
    sim_redis_open(&world->redis, ADDRESS);
    if (plan->script != NULL)
        server_plant(world->redis.server, plan->script->sha1, plan->find,
                     plan->replace);
    if (is_judged(plan))
        world->listener = listen_open(world->redis.server, NULL);
    for (int i = 0; i < plan->workers; i++)
        pids[i] = start_worker();
    (void)sim_start("producer", produce, producer_name);
    faults_begin(pids, start_worker);
    sim_at(sim_now() + plan->run_ns - 5 * SIM_S, jobs_ask_last, NULL);
    sim_run(sim_now() + plan->run_ns);
    jobs_judge();
    if (world->listener != NULL)
        listener_judge(world);
    world->hash = sim_hash();
    world->scripts = server_scripts(world->redis.server);
    sim_close();
    if (world->listener != NULL)
        listen_close(world->listener);
    sim_redis_close(&world->redis);
    free(jobs);
    world->cpu_s = cpu_s() - begin_s;
    return is_well(world);
}
