/* SPDX-License-Identifier: MIT */
#include <weir/thread.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "tests/harness/oom.h"
#include "tests/weir/host.h"

/* Hosts without memory, at each allocation in turn: handlers on threads, jobs
 * that handlers add with their verdicts, adds through a thread. */

enum { JOBS = 40, TURNS = 600, LEASE_MS = 300 }; /* time is the subject */

static atomic_int runs, denied, seen[JOBS];
static int logged;
static bool fails_here; /* handlers have memory fail, one at a time */

static void log_line(enum weir_level level, const char *text, void *arg)
{
    (void)level;
    (void)arg;
    if (strstr(text, "from a thread") != NULL)
        logged++;
}

static struct weir_stats stats;
static bool is_asking;

static void on_stats(int code, const struct weir_stats *got, void *arg)
{
    (void)arg;
    is_asking = false;
    if (code == WEIR_OK)
        stats = *got;
}

static bool are_done(uint64_t count)
{
    oom_off(); /* handlers have it fail */
    if (!is_asking && stats.done_total < count) {
        is_asking = true;
        EXPECT_INT(WEIR_OK, weir_reactor_stats(weir, "t", on_stats, NULL));
    }
    return !is_asking;
}

/* Job N adds "after-N" with its verdict, which notes that it ran. */
static enum weir_verdict run_chain(void *self, struct weir_job *job)
{
    struct weir_slice id = weir_job_id(job);
    struct weir_follow follow = {0};
    char text[32];
    int run = atomic_fetch_add(&runs, 1), number;

    (void)self;
    (void)snprintf(text, sizeof(text), "%.*s", (int)id.len,
                   (const char *)id.ptr); /* fits */
    weir_job_log(job, WEIR_LEVEL_INFO, "from a thread");
    if (sscanf(text, "after-%d", &number) == 1) {
        atomic_fetch_add(&seen[number], 1);
        return WEIR_DONE;
    }
    (void)snprintf(text, sizeof(text), "after-%.*s", (int)id.len,
                   (const char *)id.ptr); /* fits */
    follow.id = text;
    if (fails_here && weir_job_counters(job).attempt == 1)
        oom_after(0);
    if (weir_job_follow(job, &follow) != WEIR_OK) {
        oom_off();
        atomic_fetch_add(&denied, 1);
        return WEIR_RETRY;
    }
    if (fails_here && run < 64 && run % 3 == 1) /* until the turn ends */
        oom_after(run / 3);
    return WEIR_DONE;
}

static int added;

static void on_one_added(int code, const char *id, void *arg)
{
    (void)id;
    (void)arg;
    EXPECT_INT(WEIR_OK, code);
    added++;
}

static void add_chain(void)
{
    for (int i = 0; i < JOBS; i++) {
        char id[16];
        struct weir_new_job job = {.id = id};

        (void)snprintf(id, sizeof(id), "%d", i); /* fits */
        EXPECT_INT(WEIR_OK,
                   weir_reactor_add(weir, "t", &job, on_one_added, NULL, NULL));
    }
    while (added < JOBS)
        ev_run(loop, EVRUN_ONCE);
}

/* Jobs that lack memory are retried, or come back when their lease ends. What
 * they add comes with their verdict, or not at all. */
static void survive(bool blocking)
{
    struct weir_topic_options options = {
        .run = run_chain,
        .blocking = blocking,
        /* time is the subject */
        .options = {"retry=1ms...", "lease=300ms", "max_crashes=100"}};

    if (!blocking) {
        fails_here = true;
        options.options[3] = "concurrency=1";
        options.options[4] = "prefetch=0";
    }
    host_open(&(struct weir_options){.log = log_line, .threads = 2});
    add_chain();
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "t", &options, NULL));
    for (int n = 0; n < TURNS; n++) {
        if (blocking && n % 8 != 0)
            oom_after(n % 40);
        ev_run(loop, EVRUN_ONCE);
        oom_off();
    }
    AWAIT(are_done(2 * JOBS));
    EXPECT_INT(2 * JOBS, stats.done_total);
    for (int i = 0; i < JOBS; i++)
        EXPECT_TRUE(atomic_load(&seen[i]) >= 1);
    EXPECT_INT(2 * JOBS, stats.added_total);
    EXPECT_INT(0, stats.dead + stats.failed_total);
    EXPECT_TRUE(logged > 0);
}

TEST(handlers_on_threads_survive_a_host_without_memory)
{
    survive(true);
}

TEST(handlers_on_the_loop_survive_a_host_without_memory)
{
    survive(false);
    EXPECT_TRUE(atomic_load(&denied) >= JOBS);
}

/* --- through a thread ----------------------------------------------------- */

static int answers, last_code, lacked;

static void on_added(const struct weir_added *each, size_t count, void *arg)
{
    (void)arg;
    EXPECT_INT(2, count);
    answers++;
    last_code = each[0].code < 0 ? each[0].code : each[1].code;
    lacked += last_code < 0;
}

TEST(what_a_thread_took_is_answered_once_whatever_fails)
{
    struct weir_new_job jobs[2] = {{.url = "http://a"}, {.url = "http://b"}};
    const struct weir_new_jobs many = {"t", jobs, 2, on_added, NULL};
    struct weir_options options = {0};
    struct weir_thread *thread = NULL;
    int taken = 0, failed = 0;
    struct patience patience;

    server = redis_start(NULL);
    options.redis_url = redis_url(server);
    EXPECT_INT(WEIR_OK, weir_thread_open(&options, &thread, NULL));
    EXPECT_INT(WEIR_OK, weir_thread_start(thread, NULL));
    last_code = WEIR_ENOMEM;
    patience = patience_start(30.);
    for (int n = 0; last_code < 0 && !patience_ended(&patience); n++) {
        int rc;

        oom_after(n);
        rc = weir_thread_submit(thread, &many, NULL);
        EXPECT_TRUE(rc == WEIR_OK || rc == WEIR_ENOMEM);
        taken += rc == WEIR_OK;
        failed += rc < 0;
        (void)weir_thread_wait(thread, 20);
        oom_off();
        while (answers < taken && !patience_ended(&patience))
            (void)weir_thread_wait(thread, 100);
        EXPECT_INT(taken, answers);
        if (last_code == WEIR_OK && lacked == 0) {
            last_code = WEIR_ENOMEM; /* the thread came too late: all again */
            n = -1;
        }
    }
    EXPECT_INT(WEIR_OK, last_code);
    EXPECT_TRUE(failed > 0);
    EXPECT_TRUE(lacked > 0); /* the thread lacked memory, too */
    weir_thread_free(thread);
    EXPECT_INT(taken, answers);
}

TEST(a_reactor_with_threads_that_lacks_memory_is_not_opened)
{
    struct weir_options options = {.redis_url = "redis://127.0.0.1:1",
                                   .threads = 4};
    struct weir_topic_options topic = {.run = run_chain, .blocking = true};
    int rc = WEIR_ENOMEM, failed = 0;

    options.loop = ev_loop_new(0);
    for (int n = 0; rc == WEIR_ENOMEM; n++) {
        oom_after(n);
        rc = weir_reactor_open(&options, &weir, NULL);
        if (rc == WEIR_OK) {
            rc = weir_reactor_serve(weir, "t", &topic, NULL);
            oom_off();
            weir_reactor_free(weir);
        }
        oom_off();
        failed += rc < 0;
    }
    EXPECT_INT(WEIR_OK, rc);
    EXPECT_TRUE(failed > 4);
    ev_loop_destroy(options.loop);
}
