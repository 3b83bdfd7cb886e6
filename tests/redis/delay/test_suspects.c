/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>

#include "adapters/msgpack/attempts.h"
#include "adapters/redis/conn/private.h"
#include "adapters/redis/delay/private.h"
#include "core/text.h"
#include "tests/redis/store/store_fixture.h"

/* What becomes of jobs whose workers die: a worker dies when its store is
 * closed before it settles anything. */

enum { LEASE_MS = 300 }; /* time is the subject */

/* A worker that has claimed all jobs of the topic, once they can be had. */
static struct host *worker_with(const char *name, size_t jobs)
{
    struct host *host = host_open(name);

    AWAIT(host_claim(host, 10, LEASE_MS) > 0);
    EXPECT_INT(jobs, host->arrived);
    return host;
}

static void add_three(void)
{
    struct host *host = host_open("producer");

    host_add(host, "a", 0);
    host_add(host, "b", 0);
    host_add(host, NULL, 0);
    AWAIT(host->added == 3);
    host_close(host);
}

/* Three jobs, and a worker that died with them. */
static void open_with_suspects(void)
{
    (void)world_open(NULL);
    add_three();
    host_close(worker_with("first", 3));
}

static struct weir__run *run_of(struct host *host, const char *id)
{
    struct weir__run *run = host->runs;

    while (!weir__slice_equal(run->id, weir__slice_str(id))) {
        run = run->next;
        EXPECT_TRUE(run != NULL);
    }
    return run;
}

static void expect_run(const struct weir__run *run, uint32_t blamed,
                       uint32_t crashes)
{
    EXPECT_TRUE(run->is_suspect);
    EXPECT_INT(blamed, run->blamed);
    EXPECT_INT(crashes, run->record.counters.crashes);
}

TEST(the_first_worker_that_dies_blames_none_of_its_jobs)
{
    (void)world_open(NULL);
    add_three();
    struct host *one = worker_with("w1", 3), *other;

    for (struct weir__run *run = one->runs; run != NULL; run = run->next)
        EXPECT_TRUE(!run->is_suspect);
    host_close(one);
    other = worker_with("w2", 3);
    for (struct weir__run *run = other->runs; run != NULL; run = run->next)
        expect_run(run, 0, 1);
    EXPECT_INT(3, host_list(other, WEIR_JOB_RUNNING, 10));
    EXPECT_INT(1, other->info.counters.crashes);
}

/* The next one starts at once, and a worker that dies then had only that. */
TEST(the_verdict_of_a_suspect_waits_for_no_other_call)
{
    open_with_suspects();
    struct host *host = worker_with("w1", 3);
    const struct weir__redis *base =
        (struct weir__redis *)host->store; /* its begin */
    const struct weir__delay_topic *topic =
        (struct weir__delay_topic *)host->topic; /* likewise */
    struct weir__run *run = host_take(host);

    EXPECT_INT(WEIR_OK, host_start(host, run));
    base->servers->commands->answer_ns = 1; /* the server is near */
    redis_kill(proc, SIGSTOP);
    for (int i = 0; i < 5; i++)
        host_ask_purge(host, WEIR__PURGE_DEAD);
    EXPECT_TRUE(weir__conn_is_busy(base->servers->commands));
    host_settle(host, run, WEIR__OUTCOME_DONE);
    host->store->ops->flush(host->store);
    EXPECT_INT(1, topic->settles_out);
    redis_kill(proc, SIGCONT);
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
}

TEST(of_suspects_only_those_that_were_started_are_blamed)
{
    open_with_suspects();
    struct host *one = worker_with("w1", 3), *other;

    EXPECT_INT(WEIR_OK, host_start(one, run_of(one, "b")));
    EXPECT_INT(WEIR_OK, host_show(one, "b"));
    EXPECT_INT(1, one->info.counters.crashes);
    host_close(one);
    other = worker_with("w2", 3);
    expect_run(run_of(other, "a"), 0, 1);
    expect_run(run_of(other, "b"), 1, 2);
    EXPECT_INT(WEIR_OK, host_show(other, "b"));
    EXPECT_INT(2, other->info.counters.crashes);
    EXPECT_INT(WEIR_OK, host_stats(other));
    EXPECT_INT(4, other->stats.crashed_total);
}

TEST(a_suspect_that_is_given_back_is_not_blamed)
{
    open_with_suspects();
    struct host *one = worker_with("w1", 3), *other;

    EXPECT_INT(WEIR_OK, host_start(one, one->runs));
    host_settle_all(one, WEIR__OUTCOME_RETURN);
    host_await_settled(one);
    other = worker_with("w2", 3);
    for (struct weir__run *run = other->runs; run != NULL; run = run->next)
        expect_run(run, 0, 1);
}

TEST(a_suspect_that_is_retried_is_none_any_more)
{
    open_with_suspects();
    struct host *one = worker_with("w1", 3), *other;

    EXPECT_INT(WEIR_OK, host_start(one, one->runs));
    host_settle_all(one, WEIR__OUTCOME_RETRY);
    host_await_settled(one);
    other = worker_with("w2", 3);
    for (struct weir__run *run = other->runs; run != NULL; run = run->next) {
        EXPECT_TRUE(!run->is_suspect);
        EXPECT_INT(0, run->blamed);
        EXPECT_INT(1, run->record.counters.crashes);
    }
}

TEST(a_start_that_comes_too_late_is_refused)
{
    open_with_suspects();
    struct host *one = worker_with("w1", 3), *other = worker_with("w2", 3);

    EXPECT_INT(WEIR_ENOTFOUND, host_start(one, run_of(one, "a")));
    EXPECT_INT(WEIR_OK, host_start(other, run_of(other, "a")));
    EXPECT_INT(WEIR_OK, host_remove(one, "b"));
    EXPECT_INT(WEIR_ENOTFOUND, host_start(other, run_of(other, "b")));
}

TEST(a_store_that_is_closed_answers_its_starts)
{
    static struct host listener;
    open_with_suspects();
    struct host *one = worker_with("w1", 3);

    one->store->ops->topic_listen(one->topic, &listener);
    one->store->ops->start(one->topic, one->runs);
    host_close(one);
    EXPECT_INT(1, listener.starts);
    EXPECT_INT(WEIR_ECANCELED, listener.start_code);
}

/* --- the worker that comes back ----------------------------------------- */

static const char running[] = "when this worker died last time it was running";

/* Says what the worker says of its last life when it comes back. */
static void come_back(const char *name)
{
    struct host *host = host_open(name);

    world_log[0] = '\0';
    (void)host_claim(host, 0, LEASE_MS);
    EXPECT_INT(WEIR_OK, host_stats(host)); /* answered after the recall */
    EXPECT_INT(WEIR_OK, host_stats(host)); /* and after the fetch */
    host_close(host);
}

TEST(a_worker_that_comes_back_names_the_suspect_it_was_running)
{
    open_with_suspects();
    struct host *one = worker_with("w1", 3);

    EXPECT_INT(WEIR_OK, host_start(one, run_of(one, "b")));
    host_close(one);
    come_back("other");
    EXPECT_STR("", world_log);
    come_back("w1");
    EXPECT_CONTAINS("redis: t: ", world_log);
    EXPECT_CONTAINS(running, world_log);
    EXPECT_CONTAINS(" job b\n", world_log);
    come_back("w1");
    EXPECT_STR("", world_log);
}

TEST(it_names_a_made_id_and_after_somebody_else_has_the_job)
{
    open_with_suspects();
    struct host *one = worker_with("w1", 3);
    struct weir__run *run = one->runs;
    char id[WEIR_MAX_ID + 1];

    while (run->id.ptr[0] != '@')
        run = run->next;
    (void)snprintf(id, sizeof(id), "%s", run_id(run));
    EXPECT_INT(WEIR_OK, host_start(one, run));
    host_close(one);
    (void)worker_with("w2", 3);
    come_back("w1");
    EXPECT_CONTAINS(running, world_log);
    EXPECT_CONTAINS(id, world_log);
}

TEST(it_says_nothing_of_suspects_that_it_settled_or_gave_back)
{
    open_with_suspects();
    struct host *one = worker_with("w1", 3);

    EXPECT_INT(WEIR_OK, host_start(one, one->runs));
    host_settle(one, host_take(one), WEIR__OUTCOME_DONE);
    host_settle_all(one, WEIR__OUTCOME_RETURN);
    host_await_settled(one);
    host_close(one);
    come_back("w1");
    EXPECT_STR("", world_log);
    one = worker_with("w1", 2);
    EXPECT_INT(WEIR_OK, host_start(one, one->runs));
    host_settle_all(one, WEIR__OUTCOME_RETURN);
    host_await_settled(one);
    host_close(one);
    come_back("w1");
    EXPECT_STR("", world_log);
}

/* --- what is told of crashes ---------------------------------------------- */

struct told {
    bool is_there;
    char text[512]; /* "OUTCOME WORKER: WHY", a comma between */
    int64_t at_ms[WEIR_MAX_ATTEMPTS];
};

static void on_told(int code, const struct weir_job_info *info, void *arg)
{
    struct told *told = arg;
    struct weir_attempt attempts[WEIR_MAX_ATTEMPTS];
    size_t count, len = 0;

    EXPECT_INT(WEIR_OK, code);
    count = weir__attempts_read(info->attempts, attempts);
    told->is_there = true;
    for (size_t i = 0; i < count; i++) {
        told->at_ms[i] = attempts[i].ended_ms;
        len += (size_t)snprintf(
            told->text + len, sizeof(told->text) - len, "%s%s %.*s%s%.*s",
            i > 0 ? ", " : "", weir_attempt_outcome_name(attempts[i].outcome),
            (int)attempts[i].worker.len, (const char *)attempts[i].worker.ptr,
            attempts[i].error.len > 0 ? ": " : "", (int)attempts[i].error.len,
            (const char *)attempts[i].error.ptr); /* fits */
    }
}

static struct told tell(struct host *host, const char *id)
{
    struct told told = {0};

    EXPECT_INT(WEIR_OK, host->store->ops->show(host->topic, weir__slice_str(id),
                                               on_told, &told));
    AWAIT(told.is_there);
    return told;
}

/* The worker dies with a job that it started. */
static void die_with(struct host *host, const char *id)
{
    EXPECT_INT(WEIR_OK, host_start(host, run_of(host, id)));
    host_close(host);
}

TEST(each_crash_is_told_with_its_own_time_and_worker)
{
    struct told told;
    struct weir__run *run;
    struct host *host;

    open_with_suspects();
    die_with(worker_with("w1", 3), "b");
    host = worker_with("w2", 3);
    EXPECT_STR("crash first", tell(host, "a").text);
    EXPECT_STR("crash first, crash w1", tell(host, "b").text);
    die_with(host, "b");
    host = worker_with("w3", 3);
    told = tell(host, "b");
    EXPECT_STR("crash first, crash w1, crash w2", told.text);
    EXPECT_TRUE(told.at_ms[0] > 0 && told.at_ms[0] < told.at_ms[1] &&
                told.at_ms[1] < told.at_ms[2]);
    run = run_of(host, "b");
    EXPECT_INT(WEIR_OK, host_start(host, run));
    run->verdict = WEIR_RETRY;
    run->delay_ms = 3600000;
    host_settle(host, run, WEIR__OUTCOME_RETRY);
    AWAIT(host->settled == 1);
    EXPECT_STR("crash first, crash w1, crash w2, retry w3",
               tell(host, "b").text);
    EXPECT_STR("crash first", tell(host, "a").text);
}

static void crash(struct host *host, const char *how)
{
    host->store->ops->note_crash(host->store, how);
    host_close(host);
}

TEST(a_crash_is_told_with_how_the_worker_ended)
{
    struct weir__run *run;
    struct host *host;

    (void)world_open(NULL);
    add_three();
    crash(worker_with("first", 3), "SIGBUS");
    host = worker_with("w1", 3);
    EXPECT_INT(WEIR_OK, host_start(host, run_of(host, "b")));
    crash(host, "SIGSEGV in p.so+0x1139");
    host = worker_with("w2", 3);
    EXPECT_STR("crash first: SIGBUS", tell(host, "a").text);
    EXPECT_STR("crash first: SIGBUS, crash w1: SIGSEGV in p.so+0x1139",
               tell(host, "b").text);
    run = run_of(host, "b");
    EXPECT_INT(WEIR_OK, host_start(host, run));
    run->delay_ms = 3600000;
    host_settle(host, run, WEIR__OUTCOME_RETRY);
    AWAIT(host->settled == 1);
    EXPECT_STR("crash first: SIGBUS, crash w1: SIGSEGV in p.so+0x1139, "
               "retry w2",
               tell(host, "b").text);
}

/* The name of a plugin's file may be anything. */
TEST(how_a_worker_ended_is_one_line_of_100_bytes)
{
    char how[301], wanted[128];
    struct host *host;

    memset(how, 'x', 300);
    memcpy(how, " \n0 255 1 other\n", 16);
    how[300] = '\0';
    (void)world_open(NULL);
    add_three();
    crash(worker_with("first", 3), how);
    host = worker_with("w1", 3);
    (void)snprintf(wanted, sizeof(wanted), "crash first:   0 255 1 other %.84s",
                   how + 16); /* fits */
    EXPECT_STR(wanted, tell(host, "a").text);
}

/* Its first line is gone, as all of `started` may be. */
TEST(a_crash_of_which_nothing_is_known_any_more_is_told_without_a_worker)
{
    struct weir__run *run;
    struct host *host;

    open_with_suspects();
    die_with(worker_with("w1", 3), "b");
    EXPECT_INT(1, redis_int(proc, "DEL weir:{t}:started"));
    host = worker_with("w2", 3);
    run = run_of(host, "b");
    EXPECT_INT(WEIR_OK, host_start(host, run));
    run->delay_ms = 3600000;
    host_settle(host, run, WEIR__OUTCOME_RETRY);
    AWAIT(host->settled == 1);
    EXPECT_STR("crash , crash w1, retry w2", tell(host, "b").text);
}

/* Another client may have written anything there. */
TEST(lines_of_crashes_that_are_none_are_passed_over)
{
    struct host *host;

    open_with_suspects();
    host = worker_with("w1", 3);
    (void)redis_text(proc, "EVAL %s 1 weir:{t}:started",
                     "for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do "
                     "redis.call('HSET', KEYS[1], field, '0 255 x w\\n0 255 "
                     "99999999999999999"
                     " w\\n\\n0 999 5 w2\\n0 1') end");
    EXPECT_TRUE(tell(host, "a").text[0] != '\0');
    EXPECT_INT(WEIR_OK, host_start(host, run_of(host, "a")));
}
