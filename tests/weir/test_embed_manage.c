/* SPDX-License-Identifier: MIT */
#include <weir/weir.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/weir/host.h"

/* Managing topics through <weir/weir.h>, with workers on a real server. */
static int answers, last_code, listed, runs;
static uint64_t last_count;
static char first_id[WEIR_MAX_ID + 1], texts[512];
static struct weir_stats last_stats;

static void open_host(void)
{
    host_open(&(struct weir_options){.name = "w1"});
}
TEST_SETUP(open_host)

static void on_added(int code, const char *id, void *arg)
{
    (void)id;
    (void)arg;
    EXPECT_INT(WEIR_OK, code);
    answers++;
}

static void add(const char *id, int64_t delay_ms)
{
    struct weir_new_job job = {.id = id, .delay_ms = delay_ms};

    EXPECT_INT(WEIR_OK,
               weir_reactor_add(weir, "t", &job, on_added, NULL, NULL));
}

static void add_many(int count)
{
    int before = answers;

    for (int i = 0; i < count; i++)
        add(NULL, 0);
    AWAIT(answers == before + count);
}

static void on_code(int code, const char *text, void *arg)
{
    (void)arg;
    EXPECT_TRUE(text != NULL);
    last_code = code;
    answers++;
}

static void set(const char *setting)
{
    const char *const settings[] = {setting, NULL};
    int before = answers;

    EXPECT_INT(WEIR_OK,
               weir_reactor_set(weir, "t", settings, on_code, NULL, NULL));
    AWAIT(answers > before);
    EXPECT_INT(WEIR_OK, last_code);
}

static void pause_topic(bool is_paused)
{
    int before = answers;

    EXPECT_INT(WEIR_OK,
               weir_reactor_pause(weir, "t", is_paused, on_code, NULL));
    AWAIT(answers > before);
    EXPECT_INT(WEIR_OK, last_code);
}

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    (void)arg;
    answers++;
    last_code = code;
    if (stats != NULL)
        last_stats = *stats;
}

static void ask_stats(void)
{
    int before = answers;

    EXPECT_INT(WEIR_OK, weir_reactor_stats(weir, "t", on_stats, NULL));
    AWAIT(answers > before);
}

static void on_count(int code, uint64_t count, void *arg)
{
    (void)arg;
    last_code = code;
    last_count = count;
    answers++;
}

static void on_listed(int code, const struct weir_job_info *job, void *arg)
{
    (void)arg;
    if (job == NULL) {
        last_code = code;
        answers++;
        return;
    }
    listed++;
    (void)snprintf(texts + strlen(texts), sizeof(texts) - strlen(texts),
                   "%.*s:%s ", (int)job->id.len, (const char *)job->id.ptr,
                   weir_job_state_name(job->state));
}

static enum weir_verdict run_fail(void *self, struct weir_job *job)
{
    (void)self;
    runs++;
    return weir_fail(job, "no");
}

static enum weir_verdict run_retry(void *self, struct weir_job *job)
{
    (void)self;
    runs++;
    return weir_retry(job, "no");
}

static void block(int64_t ms)
{
    struct timespec nap = {0, (long)ms * 1000000};

    (void)nanosleep(&nap, NULL);
}

static enum weir_verdict run_slow(void *self, struct weir_job *job)
{
    int *count = self;

    if (first_id[0] == '\0')
        (void)snprintf(first_id, sizeof(first_id), "%.*s",
                       (int)weir_job_id(job).len,
                       (const char *)weir_job_id(job).ptr);
    runs++;
    if (count != NULL)
        (*count)++;
    block(5);
    return WEIR_DONE;
}

static void serve(struct weir_reactor *reactor,
                  const struct weir_topic_options *options)
{
    EXPECT_INT(WEIR_OK, weir_reactor_serve(reactor, "t", options, NULL));
}

TEST(what_is_stored_with_the_topic_beats_the_worker_and_yields_when_removed)
{
    struct weir_topic_options options = {.run = run_retry,
                                         .options = {"retry=none"}};

    set("retry=10ms 10ms");
    serve(weir, &options);
    add("a", 0);
    AWAIT(runs == 3); /* two retries, although the worker has none */
    set("retry=");
    add("b", 0);
    AWAIT(runs == 4);
    do
        ask_stats();
    while (last_stats.dead < 2);
    EXPECT_INT(4, runs);
}

TEST(what_is_stored_does_not_beat_what_overrides_it)
{
    static const char *const overrides[] = {"retry=none", NULL};
    struct weir_topic_options options = {
        .run = run_retry, .options = {"retry=1h"}, .overrides = overrides};

    set("retry=10ms 10ms");
    serve(weir, &options);
    add("a", 0);
    do
        ask_stats();
    while (last_stats.dead < 1);
    EXPECT_INT(1, runs);
}

TEST(a_running_worker_follows_a_stored_option_before_the_next_job)
{
    struct weir_topic_options options = {.run = run_retry,
                                         .options = {"retry=none"}};

    serve(weir, &options);
    add("a", 0);
    AWAIT(runs == 1);
    set("retry=10ms 10ms 10ms");
    add("b", 0);
    AWAIT(runs == 5);
}

TEST(the_stored_time_to_live_counts_where_a_job_has_none)
{
    struct weir_topic_options options = {.run = run_slow};
    struct weir_new_job own = {.ttl_ms = 3600000};

    set("ttl=1ms");
    add_many(2);
    EXPECT_INT(WEIR_OK,
               weir_reactor_add(weir, "t", &own, on_added, NULL, NULL));
    AWAIT(answers == 4);
    block(20);
    serve(weir, &options);
    do
        ask_stats();
    while (last_stats.expired_total < 2 || last_stats.done_total < 1);
    EXPECT_INT(1, runs);
}

TEST(bad_settings_are_refused_with_a_sentence_and_nothing_is_set)
{
    static const char *const wrong[] = {
        "concurrency=0", "retry=5",        "on_dead=t", "handler=x",
        "nothing=1",     "max_body=17MiB", "ttl"};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const char *const settings[] = {"weight=2", wrong[i], NULL};
        struct weir_error err = {0};

        EXPECT_INT(WEIR_EINVAL,
                   weir_reactor_set(weir, "t", settings, on_code, NULL, &err));
        EXPECT_TRUE(err.text[0] != '\0');
    }
    EXPECT_INT(0, redis_int(server, "EXISTS weir:{t}:options"));
}

TEST(a_busy_worker_obeys_a_pause_and_goes_on_after_it)
{
    struct weir_topic_options options = {.run = run_slow,
                                         .options = {"prefetch=1000"}};
    int seen;

    add_many(1000);
    serve(weir, &options);
    AWAIT(runs > 10);
    pause_topic(true);
    do { /* what it holds goes back */
        seen = runs;
        ask_stats();
        block(20);
    } while (last_stats.running > 0 || runs != seen);
    EXPECT_TRUE(runs < 1000); /* they take 5 s at least */
    EXPECT_INT(1000 - runs, last_stats.ready);
    EXPECT_INT(0, last_stats.crashed_total);
    pause_topic(false);
    AWAIT(runs == 1000);
}

TEST(a_job_that_came_due_before_a_backlog_runs_before_it)
{
    struct weir_topic_options options = {.run = run_slow,
                                         .options = {"concurrency=1"}};

    add("first", 1);
    AWAIT(answers == 1);
    block(5);
    for (int i = 0; i < 5; i++)
        add_many(20000);
    serve(weir, &options);
    AWAIT(runs > 5);
    EXPECT_STR("first", first_id);
}

TEST(two_workers_with_one_slot_each_share_evenly)
{
    static int left, right;
    struct weir_topic_options one = {
        .run = run_slow, .self = &left, .options = {"concurrency=1"}};
    struct weir_topic_options two = {
        .run = run_slow, .self = &right, .options = {"concurrency=1"}};
    struct weir_reactor *other;

    other = host_reactor(&(struct weir_options){.name = "w2"});
    add_many(400);
    serve(weir, &one);
    serve(other, &two);
    AWAIT(left + right == 400);
    printf("  %d and %d\n", left, right);
    EXPECT_TRUE(left >= 120 && right >= 120);
    weir_reactor_free(other);
}

TEST(jobs_in_every_state_are_listed_one_state_after_the_other)
{
    struct weir_topic_options options = {.run = run_fail};

    add("dead", 0);
    serve(weir, &options);
    AWAIT(runs == 1);
    do
        ask_stats();
    while (last_stats.dead < 1);
    pause_topic(true);
    add("later", 3600000);
    add("ready", 0);
    AWAIT(answers > 4);
    answers = 0;
    EXPECT_INT(WEIR_OK, weir_reactor_list(weir, "t", -1, 10, on_listed, NULL));
    AWAIT(answers == 1);
    EXPECT_STR("later:scheduled ready:ready dead:dead ", texts);
    EXPECT_INT(3, listed);
}

TEST(dead_jobs_are_requeued_and_purged_through_the_reactor)
{
    struct weir_topic_options options = {.run = run_fail};

    add_many(10);
    serve(weir, &options);
    do
        ask_stats();
    while (last_stats.dead < 10);
    answers = 0;
    EXPECT_INT(WEIR_OK, weir_reactor_requeue(weir, "t", NULL, on_count, NULL));
    AWAIT(answers == 1);
    EXPECT_INT(10, last_count);
    AWAIT(runs == 20);
    do
        ask_stats();
    while (last_stats.dead < 10);
    answers = 0;
    EXPECT_INT(WEIR_OK,
               weir_reactor_purge_dead(weir, "t", NULL, on_count, NULL));
    AWAIT(answers == 1);
    EXPECT_INT(10, last_count);
    EXPECT_INT(WEIR_OK, weir_reactor_purge(weir, "t", on_count, NULL));
    AWAIT(answers == 2);
    EXPECT_INT(0, last_count);
}
