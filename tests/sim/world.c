/* SPDX-License-Identifier: MIT */
#include "tests/sim/world.h"

#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/weir.h>

#include "core/random.h"

#define ADDRESS "/redis.sock"
#define URL     "unix:///redis.sock"

enum { NAMES = 64, NAME_CAP = 16 };

struct job {
    bool is_added;
    int runs;
    int64_t delay_ms, due_ns;
    int64_t due_us, due_last_us; /* by the server's clock: between these */
    int64_t seen_us; /* what that said when it was ahead, before the job ran */
};

/* The world that runs, for callbacks. */
static struct world *this_world;
static struct job *jobs;
static char names[NAMES][NAME_CAP];
static int workers_begun;

static int64_t now_us(void)
{
    return sim_redis_now_us(&this_world->redis);
}

/* --- handlers ------------------------------------------------------------ */

static enum weir_verdict run(void *self, struct weir_job *told)
{
    const struct world_plan *plan = this_world->plan;
    struct job *job;
    int64_t number = -1;

    (void)self;
    SIM_CHECK(weir_job_i64(told, "number", &number));
    SIM_CHECK(number >= 0 && number < plan->jobs);
    job = &jobs[number];
    this_world->runs++;
    if (job->runs == 0 && sim_now() - job->due_ns > this_world->late_ns)
        this_world->late_ns = sim_now() - job->due_ns;
    this_world->early += job->runs == 0 && now_us() + 1000 < job->due_us &&
                         job->seen_us + 1000 < job->due_us;
    this_world->twice += job->runs++ > 0;
    if (sim_one_in((uint64_t)plan->hold_one_in)) {
        this_world->holds++;
        sim_sleep((int64_t)sim_below((uint64_t)plan->hold_ns));
    } else {
        sim_sleep((int64_t)sim_below(2 * SIM_MS));
    }
    return WEIR_DONE;
}

static void on_log(enum weir_level level, const char *text, void *arg)
{
    sim_note(text, strlen(text));
    if (level < WEIR_LEVEL_ERROR)
        return;
    this_world->errors++;
    (void)snprintf(this_world->error, sizeof(this_world->error), "%s: %s",
                   (const char *)arg, text); /* cut */
}

static struct weir_reactor *open_reactor(struct ev_loop *loop, char *name)
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

static void work(void *arg)
{
    const struct world_plan *plan = this_world->plan;
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    struct weir_topic_options topic = {.run = run, .blocking = plan->blocks};
    struct weir_error err = {0};

    memcpy(topic.options, plan->options, sizeof(plan->options));
    if (weir_reactor_serve(open_reactor(loop, arg), "t", &topic, &err) < 0)
        sim_fail("%s: %s", (const char *)arg, err.text);
    ev_run(loop, 0);
}

/* --- the producer -------------------------------------------------------- */

static struct weir_reactor *producer;
static ev_timer next_job;
static int next_number;
static char producer_name[] = "producer";

static void on_added(int code, const char *id, void *arg)
{
    struct job *job = arg;

    (void)id;
    if (code == WEIR_OK) {
        job->is_added = true;
        job->due_last_us = now_us() + job->delay_ms * 1000;
        this_world->added++;
    } else {
        this_world->refused++;
    }
}

static void add_next(struct ev_loop *loop, ev_timer *timer, int events)
{
    const struct world_plan *plan = this_world->plan;
    struct job *job = &jobs[next_number];
    struct weir_new_job new_job = {
        .delay_ms = (int64_t)sim_below((uint64_t)plan->delay_ms + 1)};
    struct weir_error err = {0};
    char json[32];
    int len = snprintf(json, sizeof(json), "{\"number\":%d}", next_number++);

    (void)events;
    job->delay_ms = new_job.delay_ms;
    job->due_ns = sim_now() + new_job.delay_ms * SIM_MS;
    job->due_us = now_us() + new_job.delay_ms * 1000;
    if (weir_body_from_json(json, (size_t)len, &new_job.body, &err) < 0 ||
        weir_reactor_add(producer, "t", &new_job, on_added, job, &err) < 0)
        this_world->refused++;
    weir_body_free(new_job.body);
    if (next_number == plan->jobs)
        return;
    ev_timer_set(timer, (double)sim_below((uint64_t)(2 * plan->gap_ns)) * 1e-9,
                 0.);
    ev_timer_start(loop, timer);
}

static void produce(void *arg)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);

    producer = open_reactor(loop, arg);
    ev_timer_init(&next_job, add_next, 1., 0.);
    ev_timer_start(loop, &next_job);
    ev_run(loop, 0);
}

/* --- trouble ------------------------------------------------------------- */

static void cut(void *arg)
{
    sim_cut(this_world->redis.port);
    this_world->cuts++;
    sim_at(sim_now() + (int64_t)sim_below(20 * SIM_S), cut, arg);
}

/* A job that was due may be claimed already, and one that was sent may get its
 * due time now. */
static void set_ahead(int64_t by_us)
{
    int64_t before_us = now_us();

    this_world->redis.ahead_us += by_us;
    for (struct job *job = jobs; job < jobs + next_number; job++) {
        if (job->runs == 0 && job->seen_us < before_us)
            job->seen_us = before_us;
        if (!job->is_added && job->due_us > now_us() + job->delay_ms * 1000)
            job->due_us = now_us() + job->delay_ms * 1000;
    }
}

static void jump_back(void *arg)
{
    set_ahead(-(int64_t)(uintptr_t)arg * 1000000);
}

static void jump(void *arg)
{
    uint64_t ahead_s = 1 + sim_below(sim_one_in(2) ? 60 : 86400);

    if (sim_one_in(3)) {
        set_ahead(-(int64_t)sim_below(60) * 1000000);
    } else {
        set_ahead((int64_t)ahead_s * 1000000);
        sim_at(sim_now() + (int64_t)sim_below(5 * SIM_S), jump_back,
               (void *)(uintptr_t)ahead_s);
    }
    this_world->jumps++;
    sim_at(sim_now() + (int64_t)sim_below(120 * SIM_S), jump, arg);
}

static int start_worker(void)
{
    char *name = names[workers_begun++ % NAMES];

    (void)snprintf(name, NAME_CAP, "w%d", workers_begun); /* fits */
    return sim_start(name, work, name);
}

static void die(void *arg)
{
    int *pids = arg;
    int *pid = &pids[sim_below((uint64_t)this_world->plan->workers)];

    sim_kill(*pid);
    *pid = start_worker();
    this_world->deaths++;
    sim_at(sim_now() + (int64_t)sim_below(40 * SIM_S), die, arg);
}

/* --- the world ----------------------------------------------------------- */

static double cpu_s(void)
{
    struct timespec now;

    SIM_CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct world_plan world_plan_of(uint64_t seed)
{
    uint64_t random = seed;

    return (struct world_plan){
        .jobs = 2000,
        .workers = 1 + (int)(weir__random_next(&random) % 4),
        .least_ns = (int64_t)(weir__random_next(&random) % 1000) * SIM_US,
        .gap_ns = 100 * SIM_MS,
        .delay_ms = (int64_t)(weir__random_next(&random) % 10000),
        .hold_one_in = 20 + (int)(weir__random_next(&random) % 200),
        .hold_ns = 8 * SIM_S,
        .blocks = weir__random_next(&random) % 3 == 0,
        .cuts = weir__random_next(&random) % 4 != 0,
        .jumps = weir__random_next(&random) % 3 == 0,
        .deaths = weir__random_next(&random) % 4 != 0,
        .run_ns = 600 * SIM_S,
        .options = {"lease=2s", "timeout=6s"},
    };
}

void world_run(struct world *world, const struct world_plan *plan,
               uint64_t seed)
{
    int pids[NAMES];
    double begin_s = cpu_s();

    *world = (struct world){.plan = plan};
    this_world = world;
    jobs = calloc((size_t)plan->jobs, sizeof(*jobs));
    SIM_CHECK(jobs != NULL && plan->workers <= NAMES);
    next_number = workers_begun = 0;
    sim_open(seed);
    sim_net.least_ns = plan->least_ns;
    sim_redis_open(&world->redis, ADDRESS);
    for (int i = 0; i < plan->workers; i++)
        pids[i] = start_worker();
    (void)sim_start("producer", produce, producer_name);
    if (plan->cuts)
        sim_at(sim_now() + 3 * SIM_S, cut, NULL);
    if (plan->deaths)
        sim_at(sim_now() + 5 * SIM_S, die, pids);
    if (plan->jumps)
        sim_at(sim_now() + 30 * SIM_S, jump, NULL);
    sim_run(sim_now() + plan->run_ns);
    for (int i = 0; i < plan->jobs; i++)
        world->missing += jobs[i].is_added && jobs[i].runs == 0 &&
                          jobs[i].due_us < now_us() - 60000000 &&
                          jobs[i].due_last_us < now_us() - 60000000;
    world->hash = sim_hash();
    world->scripts = server_scripts(world->redis.server);
    sim_close();
    sim_redis_close(&world->redis);
    free(jobs);
    world->cpu_s = cpu_s() - begin_s;
}
