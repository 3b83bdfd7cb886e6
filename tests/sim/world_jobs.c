/* SPDX-License-Identifier: MIT */

/* The jobs of a world: who adds them, what handlers do, and what is missing at
 * the end. */

#include <ev.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/world_private.h"

#define RATE_PER_S 50
#define BURST      20
#define ASK_S      2. /* between two looks at the counters */

enum { PARALLEL = 8, PER_KEY = 2, JOB_KEYS = 20, IDS = 300, UNIQUES = 100 };

struct job *jobs;
int next_number;
const char *const topics[TOPICS_MAX] = {"t", "u", "v"};

/* By topic: what runs, and what the server counted. */
static struct topic_state {
    int running, claims;
    int per_key[JOB_KEYS];
    uint64_t lost; /* at the last look */
    struct weir_stats stats;
    bool is_told;
} states[TOPICS_MAX];

static int64_t begin_ns;

/* --- handlers ------------------------------------------------------------ */

static int key_of(const struct job *job)
{
    return (int)(job - jobs) % JOB_KEYS;
}

/* Leases do not end before their handlers do in a world without faults. So the
 * bounds hold for handlers there. */
static void check_bounds(const struct topic_state *state, const struct job *job)
{
    const struct world *world = this_world;
    int64_t elapsed_s = (sim_now() - begin_ns) / SIM_S + 1;
    int begins = 1 + world->faults[WORLD_FAULT_CLOCK] * 2 +
                 world->faults[WORLD_FAULT_RESTART] +
                 world->faults[WORLD_FAULT_KEY] +
                 5 * world->faults[WORLD_FAULT_EVICTION];

    if (has_feature(WORLD_RATE) &&
        state->claims > RATE_PER_S * elapsed_s + BURST * begins)
        this_world->beyond++;
    if (world->plan->faults != 0)
        return;
    if (has_feature(WORLD_PARALLEL) && state->running > PARALLEL)
        this_world->beyond++;
    if (has_feature(WORLD_KEYS) && has_feature(WORLD_KEY_PARALLEL) &&
        state->per_key[key_of(job)] > PER_KEY)
        this_world->beyond++;
}

static void note_start(struct job *job)
{
    int64_t now_us = world_now_us();

    this_world->runs++;
    this_world->ghosts += job->is_refused && !job->may_go;
    if (job->runs == 0 && sim_now() - job->due_ns > this_world->late_ns)
        this_world->late_ns = sim_now() - job->due_ns;
    this_world->early += job->runs == 0 && now_us + 1000 < job->due_us &&
                         job->seen_us + 1000 < job->due_us;
    this_world->twice += job->is_over;
    job->runs++;
}

/* What is given while the clock is ahead may wait for it. */
static void note_time(struct job *job)
{
    job->told_ns = sim_now();
    job->is_far = job->is_far || is_clock_ahead();
}

static enum weir_verdict verdict_of(struct job *job, struct weir_job *told)
{
    note_time(job);
    if (job->snoozes > 0) {
        job->snoozes--;
        return weir_snooze(told, (int64_t)sim_below(3000));
    }
    if (job->retries > 0) {
        job->retries--;
        return job->retries > 0 ? weir_retry(told, "not yet")
                                : weir_retry_after(told, 500, "not yet");
    }
    job->is_over = true;
    return job->fails ? weir_fail(told, "it never works") : WEIR_DONE;
}

static enum weir_verdict run(void *self, struct weir_job *told)
{
    const struct world_plan *plan = this_world->plan;
    struct topic_state *state;
    struct job *job;
    int64_t number = -1;

    (void)self;
    SIM_CHECK(weir_job_i64(told, "number", &number));
    SIM_CHECK(number >= 0 && number < plan->jobs);
    job = &jobs[number];
    state = &states[job->topic];
    note_start(job);
    state->running++;
    state->claims++;
    state->per_key[key_of(job)]++;
    check_bounds(state, job);
    if (has_feature(WORLD_HOLDS) && sim_one_in((uint64_t)plan->hold_one_in))
        sim_sleep((int64_t)sim_below((uint64_t)plan->hold_ns));
    else
        sim_sleep((int64_t)sim_below(2 * SIM_MS));
    state->running--;
    state->per_key[key_of(job)]--;
    return verdict_of(job, told);
}

void serve_topics(struct weir_reactor *reactor)
{
    struct weir_topic_options topic = {
        .run = run,
        .blocking = has_feature(WORLD_THREADS),
        .options = {"lease=2s", "timeout=6s", "retry=100ms 1s 3s ..."}};
    struct weir_error err = {0};
    size_t count = 3;

    if (has_feature(WORLD_RATE))
        topic.options[count++] = "rate=50/s burst 20";
    if (has_feature(WORLD_PARALLEL))
        topic.options[count++] = "parallel=8";
    if (has_feature(WORLD_KEY_PARALLEL))
        topic.options[count++] = "key_parallel=2";
    for (int i = 0; i < topic_count(); i++)
        if (weir_reactor_serve(reactor, topics[i], &topic, &err) < 0)
            sim_fail("%s: %s", topics[i], err.text);
}

/* --- the producer -------------------------------------------------------- */

static struct weir_reactor *producer;
static ev_timer next_job, next_look;

static void on_added(int code, const char *id, void *arg)
{
    struct job *job = arg;

    (void)id;
    note_time(job);
    if (code == WEIR_OK) {
        job->is_added = true;
        if (job->delay_ms >= 0)
            job->due_last_us = world_now_us() + job->delay_ms * 1000;
        this_world->added++;
    } else {
        job->is_refused = code != WEIR_EUNKNOWN;
        this_world->refused++;
    }
}

struct texts {
    char id[16], key[16], unique[16];
};

static bool at_random(enum world_feature feature, uint64_t one_in)
{
    return has_feature(feature) && sim_one_in(one_in);
}

static void name_job(struct job *job, struct weir_new_job *new_job,
                     struct texts *texts)
{
    static const char *const fors[] = {"until-start", "until-done", "2s"};

    if (at_random(WORLD_IDS, 2)) {
        (void)snprintf(texts->id, sizeof(texts->id), "j%d",
                       (int)sim_below(IDS)); /* fits */
        new_job->id = texts->id;
    }
    if (has_feature(WORLD_KEYS)) {
        (void)snprintf(texts->key, sizeof(texts->key), "k%d",
                       key_of(job)); /* fits */
        new_job->key = texts->key;
    }
    if (at_random(WORLD_UNIQUE, 2)) {
        (void)snprintf(texts->unique, sizeof(texts->unique), "q%d",
                       (int)sim_below(UNIQUES)); /* fits */
        new_job->unique = texts->unique;
        new_job->unique_for = fors[sim_below(3)];
        new_job->unique_else = "reject";
    }
    job->is_named = new_job->id != NULL || new_job->unique != NULL;
}

static void time_job(struct job *job, struct weir_new_job *new_job)
{
    int64_t delay_ms =
        has_feature(WORLD_DELAYS)
            ? (int64_t)sim_below((uint64_t)this_world->plan->delay_ms + 1)
            : 0;

    job->due_ns = sim_now() + delay_ms * SIM_MS;
    job->due_us = world_now_us() + delay_ms * 1000;
    if (at_random(WORLD_TIMES, 2)) {
        job->delay_ms = -1;
        new_job->at_ms = job->due_us / 1000;
        job->due_us = job->due_last_us = new_job->at_ms * 1000;
    } else {
        job->delay_ms = new_job->delay_ms = delay_ms;
    }
}

static void draw_job(struct job *job, struct weir_new_job *new_job,
                     struct texts *texts)
{
    static const char *const priorities[] = {"urgent", "high", "normal", "low"};

    job->topic = (int)sim_below((uint64_t)topic_count());
    job->retries = at_random(WORLD_RETRIES, 4) ? 1 + (int)sim_below(2) : 0;
    job->snoozes = at_random(WORLD_SNOOZES, 6) ? 1 : 0;
    job->fails = at_random(WORLD_FAILURES, 10);
    if (has_feature(WORLD_PRIORITIES))
        new_job->priority = priorities[sim_below(4)];
    name_job(job, new_job, texts);
    time_job(job, new_job);
}

static void add_next(struct ev_loop *loop, ev_timer *timer, int events)
{
    const struct world_plan *plan = this_world->plan;
    struct job *job = &jobs[next_number];
    struct weir_new_job new_job = {0};
    struct weir_error err = {0};
    struct texts texts;
    char json[32];
    int len = snprintf(json, sizeof(json), "{\"number\":%d}", next_number);

    (void)events;
    draw_job(job, &new_job, &texts);
    note_time(job);
    next_number++;
    SIM_CHECK(weir_body_from_json(json, (size_t)len, &new_job.body, &err) == 0);
    if (weir_reactor_add(producer, topics[job->topic], &new_job, on_added, job,
                         &err) < 0)
        sim_fail("the add of %s: %s", json, err.text);
    weir_body_free(new_job.body);
    if (next_number == plan->jobs)
        return;
    ev_timer_set(timer, (double)sim_below((uint64_t)(2 * plan->gap_ns)) * 1e-9,
                 0.);
    ev_timer_start(loop, timer);
}

/* --- counters ------------------------------------------------------------ */

/* The counters begin again where `meta` was lost. */
static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    struct topic_state *state = arg;

    if (code != WEIR_OK)
        return;
    if (stats->lost_total < state->lost)
        state->lost = 0;
    this_world->lost += (int)(stats->lost_total - state->lost);
    state->lost = stats->lost_total;
    state->stats = *stats;
    state->is_told = true;
}

static void ask_counters(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)timer;
    (void)events;
    for (int i = 0; i < topic_count(); i++)
        SIM_CHECK(
            weir_reactor_stats(producer, topics[i], on_stats, &states[i]) == 0);
}

static void on_dead(int code, const struct weir_job_info *info, void *arg)
{
    static const char begin[] = "\x81\xa6number";
    struct weir_slice body = {0};
    int number = 0;

    (void)arg;
    SIM_CHECK(code == WEIR_OK);
    if (info != NULL)
        body = info->body;
    if (body.len < sizeof(begin))
        return; /* malformed */
    SIM_CHECK(memcmp(body.ptr, begin, sizeof(begin) - 1) == 0);
    for (size_t i = sizeof(begin) - 1; i < body.len; i++)
        if (i >= sizeof(begin) || body.len == sizeof(begin))
            number = number * 256 + ((const unsigned char *)body.ptr)[i];
    SIM_CHECK(number < this_world->plan->jobs);
    jobs[number].is_dead = true;
}

static void ask_last(int code, struct weir_reactor *reactor, void *arg)
{
    SIM_CHECK(code == WEIR_OK);
    for (int i = 0; i < topic_count(); i++) {
        states[i].is_told = false;
        SIM_CHECK(weir_reactor_dead(reactor, topics[i], 10000, on_dead, arg) ==
                  0);
    }
}

void jobs_ask_last(void *arg)
{
    SIM_CHECK(weir_reactor_call(producer, ask_last, arg) == 0);
}

void produce(void *name)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);

    producer = open_reactor(loop, name);
    ev_timer_init(&next_job, add_next, 1., 0.);
    ev_timer_start(loop, &next_job);
    ev_timer_init(&next_look, ask_counters, ASK_S, ASK_S);
    ev_timer_start(loop, &next_look);
    ev_run(loop, 0);
}

/* --- the end ------------------------------------------------------------- */

static void expect_count(const char *topic, const char *what, uint64_t wanted,
                         uint64_t got)
{
    if (wanted == got)
        return;
    this_world->miscounted++;
    (void)snprintf(this_world->error, sizeof(this_world->error),
                   "%s: %s: wanted %" PRIu64 ", got %" PRIu64, topic, what,
                   wanted, got); /* cut */
}

/* What a server lost it did not count, and what it did again it may count
 * again. */
static bool counts_are_exact(void)
{
    return !has_fault(WORLD_FAULT_KEY) && !has_fault(WORLD_FAULT_EVICTION) &&
           !has_fault(WORLD_FAULT_RESTART);
}

static void judge_topic(int topic)
{
    const struct weir_stats *stats = &states[topic].stats;
    uint64_t left = stats->scheduled + stats->ready + stats->running;
    uint64_t added = 0, done = 0, dead = 0, far = 0;

    if (!states[topic].is_told)
        sim_fail("topic %s: its counters were not told", topics[topic]);
    for (const struct job *job = jobs; job < jobs + next_number; job++) {
        bool is_of_it = job->topic == topic && job->is_added;

        added += is_of_it;
        dead += is_of_it && job->is_dead;
        done += is_of_it && !job->is_dead && job->is_over;
        far += is_of_it && job->is_far && !job->is_dead &&
               (!job->is_over || has_fault(WORLD_FAULT_RESTART));
    }
    if (left > far)
        this_world->left += (int)(left - far);
    if (!counts_are_exact())
        return;
    expect_count(topics[topic], "added", added, stats->added_total);
    expect_count(topics[topic], "done", done, stats->done_total);
    expect_count(topics[topic], "dead", dead, stats->dead);
}

static bool is_missing(const struct job *job)
{
    return job->is_added && !job->is_dead && !job->may_go && !job->is_far &&
           (job->fails || !job->is_over);
}

void jobs_judge(void)
{
    struct world *world = this_world;

    for (const struct job *job = jobs; job < jobs + next_number; job++)
        world->missing += is_missing(job);
    if (world->lost > 0 || world->may_miss > 0)
        world->missing -=
            world->lost < world->may_miss ? world->lost : world->may_miss;
    if (world->missing < 0)
        world->missing = 0;
    for (int i = 0; i < topic_count(); i++)
        judge_topic(i);
}

void jobs_begin(void)
{
    next_number = 0;
    begin_ns = sim_now();
    memset(states, 0, sizeof(states));
}
