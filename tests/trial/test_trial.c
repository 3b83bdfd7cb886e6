/* SPDX-License-Identifier: MIT */
#include <weir/test.h>

#include <string.h>

#include "tests/harness/oom.h"
#include "tests/harness/test.h"

#define MINUTE_MS (INT64_C(60) * 1000)
#define HOUR_MS   (60 * MINUTE_MS)

static struct weir_error err;

static struct weir_trial *open_trial(const struct weir_trial_options *options)
{
    struct weir_trial *trial = NULL;

    EXPECT_INT(WEIR_OK, weir_trial_open(options, &trial, &err));
    return trial;
}

static void add(struct weir_trial *trial, const char *id, int64_t delay_ms)
{
    struct weir_trial_job job = {.id = id, .delay_ms = delay_ms};

    EXPECT_INT(WEIR_OK, weir_trial_add(trial, &job, &err));
}

static enum weir_verdict done(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    return WEIR_DONE;
}

static enum weir_verdict always_retry(void *self, struct weir_job *job)
{
    (void)self;
    weir_job_log(job, WEIR_LEVEL_DEBUG, "not yet");
    return weir_retry(job, "gateway said no");
}

TEST(a_job_runs_at_its_due_time_and_not_before)
{
    struct weir_trial *trial =
        open_trial(&(struct weir_trial_options){.serve = {.run = done}});

    add(trial, "a", 3000);
    weir_trial_advance(trial, 2999);
    EXPECT_INT(WEIR_TRIAL_WAITING, weir_trial_state(trial, "a"));
    EXPECT_TRUE(weir_trial_last(trial) == NULL);
    weir_trial_advance(trial, 1);
    EXPECT_INT(WEIR_TRIAL_DONE, weir_trial_state(trial, "a"));
    EXPECT_INT(1, weir_trial_run_count(trial));
    EXPECT_STR("a", weir_trial_last(trial)->id);
    EXPECT_INT(1, weir_trial_last(trial)->attempt);
    EXPECT_INT(WEIR_DONE, weir_trial_last(trial)->verdict);
    EXPECT_INT(-1, weir_trial_last(trial)->delay_ms);
    EXPECT_INT(3000, weir_trial_last(trial)->elapsed_ms);
    EXPECT_INT(1, weir_trial_counters(trial, "a").attempt);
    EXPECT_INT(WEIR_TRIAL_NONE, weir_trial_state(trial, "b"));
    weir_trial_free(trial);
}

static const uint8_t one_seven[] = {0x81, 0xa1, 'n', 7};

static enum weir_verdict add_next(void *self, struct weir_job *job)
{
    struct weir_follow next = {.id = "next", .delay_ms = 500};

    (void)self;
    if (weir_job_id(job).len == 4)
        return WEIR_DONE;
    EXPECT_INT(WEIR_OK, weir_job_follow(job, &next));
    next = (struct weir_follow){.id = "a"}; /* it was there before */
    EXPECT_INT(WEIR_OK, weir_job_follow(job, &next));
    next = (struct weir_follow){.body = {one_seven, sizeof(one_seven)},
                                .retry = "1s",
                                .url = "http://h/",
                                .ttl_ms = 7};
    EXPECT_INT(WEIR_OK, weir_job_follow_to(job, "other", &next));
    EXPECT_INT(WEIR_EINVAL, weir_job_follow_to(job, "no topic", &next));
    return WEIR_DONE;
}

TEST(jobs_that_a_handler_adds_run_when_they_are_due)
{
    struct weir_trial *trial =
        open_trial(&(struct weir_trial_options){.serve = {.run = add_next}});

    add(trial, "a", 0);
    weir_trial_advance(trial, 499);
    EXPECT_INT(1, weir_trial_run_count(trial));
    EXPECT_INT(WEIR_TRIAL_WAITING, weir_trial_state(trial, "next"));
    weir_trial_advance(trial, 1);
    EXPECT_INT(2, weir_trial_run_count(trial));
    EXPECT_STR("next", weir_trial_last(trial)->id);
    weir_trial_free(trial);
}

TEST(jobs_that_a_handler_adds_are_listed_those_for_other_topics_too)
{
    struct weir_trial *trial =
        open_trial(&(struct weir_trial_options){.serve = {.run = add_next}});
    const struct weir_trial_follow *follow;

    add(trial, "a", 0);
    weir_trial_advance(trial, 1000);
    EXPECT_INT(3, weir_trial_follow_count(trial));
    follow = weir_trial_follow_at(trial, 0);
    EXPECT_STR("trial", follow->topic);
    EXPECT_STR("next", follow->id);
    EXPECT_STR("a", follow->by);
    EXPECT_STR("null", follow->json);
    EXPECT_INT(500, follow->delay_ms);
    follow = weir_trial_follow_at(trial, 2);
    EXPECT_STR("other", follow->topic);
    EXPECT_STR("", follow->id);
    EXPECT_STR("{\"n\":7}", follow->json);
    EXPECT_STR("1s", follow->retry);
    EXPECT_STR("http://h/", follow->url);
    EXPECT_INT(7, follow->ttl_ms);
    EXPECT_TRUE(weir_trial_follow_at(trial, 3) == NULL);
    EXPECT_INT(2, weir_trial_run_count(trial)); /* of "a" and "next" */
    weir_trial_free(trial);
}

static enum weir_verdict add_endlessly(void *self, struct weir_job *job)
{
    const struct weir_follow again = {0};

    (void)self;
    EXPECT_INT(WEIR_OK, weir_job_follow(job, &again));
    return WEIR_DONE;
}

TEST(a_job_that_adds_one_each_time_lets_time_pass)
{
    struct weir_trial *trial = open_trial(
        &(struct weir_trial_options){.serve = {.run = add_endlessly}});

    add(trial, "a", 0);
    weir_trial_advance(trial, 10);
    EXPECT_INT(11, weir_trial_run_count(trial));
    weir_trial_free(trial);
}

static enum weir_verdict count(void *self, struct weir_job *job)
{
    (void)self;
    weir_job_count(job, "runs", 1);
    weir_job_count(job, "begun", weir_job_counters(job).attempt);
    return WEIR_DONE;
}

static void on_counter(const char *name, uint64_t value, void *arg)
{
    uint64_t *seen = arg;

    *seen = name == NULL ? *seen * 10 : *seen * 10 + value;
}

TEST(what_a_handler_counts_is_read_by_its_name)
{
    struct weir_trial *trial =
        open_trial(&(struct weir_trial_options){.serve = {.run = count}});
    uint64_t seen = 0;

    EXPECT_INT(0, weir_trial_counter(trial, "runs"));
    add(trial, "a", 0);
    add(trial, "b", 0);
    add(trial, "c", 0);
    weir_trial_advance(trial, 0);
    EXPECT_INT(3, weir_trial_counter(trial, "runs"));
    EXPECT_INT(3, weir_trial_counter(trial, "begun"));
    EXPECT_INT(0, weir_trial_counter(trial, "other"));
    weir_trial_each_counter(trial, on_counter, &seen);
    EXPECT_INT(330, seen);
    weir_trial_free(trial);
}

TEST(the_whole_default_ladder_passes_in_one_call)
{
    static const int64_t steps[] = {
        15000,   3 * MINUTE_MS, 10 * MINUTE_MS, 30 * MINUTE_MS, 30 * MINUTE_MS,
        HOUR_MS, 2 * HOUR_MS,   6 * HOUR_MS,    15 * HOUR_MS};
    struct weir_trial *trial = open_trial(
        &(struct weir_trial_options){.serve = {.run = always_retry}});
    int64_t at_ms = 0;

    add(trial, "a", 0);
    weir_trial_advance(trial, 26 * HOUR_MS);
    EXPECT_INT(10, weir_trial_run_count(trial));
    for (size_t i = 0; i < 9; i++) {
        const struct weir_trial_run *run = weir_trial_run_at(trial, i);

        EXPECT_INT(i + 1, run->attempt);
        EXPECT_INT(steps[i], run->delay_ms);
        EXPECT_INT(at_ms, run->elapsed_ms);
        EXPECT_STR("", run->dead);
        at_ms += steps[i];
    }
    EXPECT_INT(10, weir_trial_last(trial)->attempt);
    EXPECT_INT(-1, weir_trial_last(trial)->delay_ms);
    EXPECT_STR("exhausted", weir_trial_last(trial)->dead);
    EXPECT_STR("gateway said no", weir_trial_last(trial)->reason);
    EXPECT_INT(WEIR_TRIAL_DEAD, weir_trial_state(trial, "a"));
    EXPECT_INT(10, weir_trial_counters(trial, "a").failures);
    EXPECT_INT(26 * HOUR_MS, weir_trial_elapsed_ms(trial));
    weir_trial_free(trial);
}

TEST(log_lines_are_kept_with_their_level)
{
    struct weir_trial *trial = open_trial(
        &(struct weir_trial_options){.serve = {.run = always_retry}});

    add(trial, "a", 0);
    weir_trial_advance(trial, 0);
    EXPECT_INT(1, weir_trial_line_count(trial));
    EXPECT_STR("trial a: not yet", weir_trial_line_at(trial, 0)->text);
    EXPECT_INT(WEIR_LEVEL_DEBUG, weir_trial_line_at(trial, 0)->level);
    EXPECT_TRUE(weir_trial_line_at(trial, 1) == NULL);
    EXPECT_TRUE(weir_trial_logged(trial, "not yet"));
    EXPECT_TRUE(!weir_trial_logged(trial, "at last"));
    weir_trial_free(trial);
}

struct seen {
    int64_t order;
    uint32_t attempt;
    char url[40];
};

static enum weir_verdict look(void *self, struct weir_job *job)
{
    struct seen *seen = self;
    struct weir_slice url = weir_job_url(job);

    EXPECT_TRUE(weir_job_i64(job, "order", &seen->order));
    seen->attempt = weir_job_counters(job).attempt;
    memcpy(seen->url, url.ptr, url.len);
    EXPECT_INT(0, weir_job_lateness_us(job));
    return WEIR_DONE;
}

TEST(a_handler_sees_the_job_as_it_was_given)
{
    struct seen seen = {0};
    struct weir_trial *trial = open_trial(&(struct weir_trial_options){
        .serve = {.run = look, .self = &seen}, .topic = "orders"});
    struct weir_trial_job job = {
        .id = "a",
        .json = "{\"order\": 42}",
        .url = "http://a/b",
        .counters = {.attempt = 3},
    };

    EXPECT_INT(WEIR_OK, weir_trial_add(trial, &job, &err));
    weir_trial_advance(trial, 0);
    EXPECT_INT(42, seen.order);
    EXPECT_INT(3, seen.attempt);
    EXPECT_STR("http://a/b", seen.url);
    EXPECT_INT(3, weir_trial_last(trial)->attempt);
    weir_trial_free(trial);
}

static enum weir_verdict snooze_at_once(void *self, struct weir_job *job)
{
    int *runs = self;

    (*runs)++;
    return weir_snooze(job, 0);
}

TEST(a_handler_that_wants_to_run_again_at_once_does_not_stop_time)
{
    int runs = 0;
    struct weir_trial *trial = open_trial(&(struct weir_trial_options){
        .serve = {.run = snooze_at_once, .self = &runs}});

    add(trial, "a", 0);
    weir_trial_advance(trial, 0);
    EXPECT_INT(1, runs);
    EXPECT_INT(0, weir_trial_last(trial)->delay_ms);
    EXPECT_INT(1, weir_trial_last(trial)->attempt);
    weir_trial_advance(trial, 5);
    EXPECT_INT(6, runs);
    EXPECT_INT(6, weir_trial_counters(trial, "a").snoozes);
    weir_trial_free(trial);
}

TEST(many_jobs_run_in_the_order_of_their_due_times)
{
    enum { JOBS = 3000 };
    struct weir_trial *trial =
        open_trial(&(struct weir_trial_options){.serve = {.run = done}});
    int64_t before = 0;

    for (int64_t i = 0; i < JOBS; i++)
        add(trial, NULL, i * 7919 % 10007);
    weir_trial_advance(trial, 10007);
    EXPECT_INT(JOBS, weir_trial_run_count(trial));
    for (size_t i = 0; i < JOBS; i++) {
        int64_t at_ms = weir_trial_run_at(trial, i)->elapsed_ms;

        EXPECT_TRUE(at_ms >= before);
        before = at_ms;
    }
    EXPECT_INT(WEIR_TRIAL_DONE, weir_trial_state(trial, "@3000"));
    weir_trial_free(trial);
}

static int flush_fails(void *self)
{
    (void)self;
    return -1;
}

static int flush_works(void *self)
{
    (void)self;
    return 0;
}

static int opened;

static int open_table(const struct weir_open *open, void **ret_self)
{
    EXPECT_STR("trial", open->topic);
    EXPECT_INT(7, open->values[0].number);
    *ret_self = NULL;
    opened++;
    return 0;
}

static void close_table(void *self)
{
    (void)self;
    opened--;
}

static const struct weir_option table_options[] = {
    {.name = "n", .type = WEIR_OPTION_INT},
};

static struct weir_plugin table_of(int (*flush)(void *self))
{
    return (struct weir_plugin){
        .abi = WEIR_PLUGIN_ABI,
        .size = sizeof(struct weir_plugin),
        .name = "table",
        .options = table_options,
        .option_count = 1,
        .option_size = sizeof(struct weir_option),
        .open = open_table,
        .run = done,
        .flush = flush,
        .close = close_table,
    };
}

TEST(a_table_that_is_linked_in_is_opened_flushed_and_closed)
{
    const struct weir_plugin table = table_of(flush_fails);
    const char *const values[] = {"n=7"};
    struct weir_trial *trial = open_trial(&(struct weir_trial_options){
        .table = &table,
        .serve = {.plugin_options = values, .plugin_option_count = 1}});

    EXPECT_INT(1, opened);
    add(trial, "a", 0);
    weir_trial_advance(trial, 0);
    EXPECT_INT(WEIR_RETRY, weir_trial_last(trial)->verdict);
    EXPECT_STR("flush failed", weir_trial_last(trial)->reason);
    weir_trial_free(trial);
    EXPECT_INT(0, opened);
}

TEST(a_plugin_is_loaded_from_its_file)
{
    const char *const values[] = {"fail=2"};
    struct weir_trial *trial = open_trial(&(struct weir_trial_options){
        .serve = {.plugin = WEIR_TEST_PLUGINS "/flaky.so",
                  .plugin_options = values,
                  .plugin_option_count = 1,
                  .options = {"retry=1s ..."}}});

    add(trial, "a", 0);
    weir_trial_advance(trial, 5000);
    EXPECT_INT(3, weir_trial_run_count(trial));
    EXPECT_STR("flaky: attempt 2 of 2 that fail",
               weir_trial_run_at(trial, 1)->reason);
    EXPECT_INT(WEIR_TRIAL_DONE, weir_trial_state(trial, "a"));
    weir_trial_free(trial);
}

static void expect_refusal(const struct weir_trial_options *options,
                           const char *sentence)
{
    struct weir_trial *trial = NULL;

    EXPECT_TRUE(weir_trial_open(options, &trial, &err) < 0);
    EXPECT_STR(sentence, err.text);
    EXPECT_TRUE(trial == NULL);
}

TEST(what_cannot_be_served_is_refused_with_a_sentence)
{
    expect_refusal(&(struct weir_trial_options){.topic = NULL},
                   "a trial needs one handler: a function, the path of a "
                   "plugin, or its table");
    expect_refusal(
        &(struct weir_trial_options){
            .serve = {.run = done, .options = {"retry=soon"}}},
        "retry ladder, step 1: \"soon\" is not a duration: write "
        "digits and one of ms, s, m, h, d, w, for example 15s or 1h30m");
    expect_refusal(
        &(struct weir_trial_options){.serve = {.plugin = "flaky.so"}},
        "plugin flaky.so: a path needs a slash, as in ./flaky.so");
}

TEST(what_is_no_job_is_refused_with_a_sentence)
{
    struct weir_trial *trial =
        open_trial(&(struct weir_trial_options){.serve = {.run = done}});

    add(trial, "a", 0);
    EXPECT_INT(
        WEIR_EEXISTS,
        weir_trial_add(trial, &(struct weir_trial_job){.id = "a"}, &err));
    EXPECT_STR("a job with this id exists already", err.text);
    EXPECT_INT(
        WEIR_EINVAL,
        weir_trial_add(trial, &(struct weir_trial_job){.json = "{"}, &err));
    EXPECT_INT(
        WEIR_EINVAL,
        weir_trial_add(trial, &(struct weir_trial_job){.delay_ms = -1}, &err));
    weir_trial_free(trial);
}

TEST(a_trial_survives_lack_of_memory_anywhere)
{
    const struct weir_plugin table = table_of(flush_works);
    const char *const values[] = {"n=7"};
    struct weir_trial_options options = {
        .table = &table,
        .serve = {.plugin_options = values, .plugin_option_count = 1}};
    struct weir_trial_job job = {.id = "a"};
    int rc = WEIR_ENOMEM;

    for (int n = 0; n < 60; n++) {
        struct weir_trial *trial = NULL;

        oom_after(n);
        rc = weir_trial_open(&options, &trial, &err);
        if (rc == WEIR_OK)
            rc = weir_trial_add(trial, &job, &err);
        if (rc == WEIR_OK)
            weir_trial_advance(trial, 60000);
        oom_off();
        if (rc == WEIR_OK) {
            weir_trial_advance(trial, 60000);
            EXPECT_INT(WEIR_TRIAL_DONE, weir_trial_state(trial, "a"));
        }
        weir_trial_free(trial);
        EXPECT_INT(0, opened);
    }
    EXPECT_INT(WEIR_OK, rc);
}
