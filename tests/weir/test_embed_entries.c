/* SPDX-License-Identifier: MIT */
#include <weir/weir.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/weir/host.h"

/* Going through the entries of a list or stream place by place. */

enum { ENTRIES = 1300 };

static int answers, last_code, listed;
static int seen[ENTRIES + 1]; /* by the number that is the body */
static char last_id[WEIR_MAX_ID + 1];
static char place[WEIR_MAX_PLACE + 1];
static enum weir_verdict verdict;

static void on_code(int code, const char *text, void *arg)
{
    (void)text;
    (void)arg;
    EXPECT_INT(WEIR_OK, code);
    answers++;
}

static void open_kind(const char *setting)
{
    const char *const settings[] = {setting, NULL};

    host_open(NULL);
    answers = 0;
    EXPECT_INT(WEIR_OK,
               weir_reactor_set(weir, "t", settings, on_code, NULL, NULL));
    AWAIT(answers == 1);
}

/* A small integer in msgpack: itself, or behind its length. */
static int number_of(struct weir_slice body)
{
    int number = 0;

    EXPECT_TRUE(body.len >= 1 && body.len <= 3);
    for (size_t i = body.len > 1 ? 1 : 0; i < body.len; i++)
        number = number * 256 + body.ptr[i];
    return number;
}

static void on_listed(int code, const struct weir_job_info *job, void *arg)
{
    int number;

    (void)arg;
    if (job == NULL) {
        last_code = code;
        answers++;
        return;
    }
    (void)snprintf(last_id, sizeof(last_id), "%.*s", (int)job->id.len,
                   (const char *)job->id.ptr);
    (void)snprintf(place, sizeof(place), "%.*s", (int)job->place.len,
                   (const char *)job->place.ptr);
    number = number_of(job->body);
    EXPECT_TRUE(number >= 1 && number <= ENTRIES);
    seen[number]++;
    listed++;
}

static int page(int state, size_t limit)
{
    const struct weir_list what = {.state = state,
                                   .limit = limit,
                                   .after = place[0] == '\0' ? NULL : place};
    int before = listed;

    answers = 0;
    EXPECT_INT(WEIR_OK,
               weir_reactor_list_from(weir, "t", &what, on_listed, NULL));
    AWAIT(answers == 1);
    EXPECT_INT(WEIR_OK, last_code);
    return listed - before;
}

static void expect_all_once(void)
{
    EXPECT_INT(ENTRIES, listed);
    for (int i = 1; i <= ENTRIES; i++)
        EXPECT_INT(1, seen[i]);
    listed = 0;
    memset(seen, 0, sizeof(seen));
    place[0] = '\0';
}

static void push_all(void)
{
    EXPECT_INT(1, redis_int(server, "EVAL %s 1 t %d",
                            "for i = 1, ARGV[1] do "
                            "redis.call('RPUSH', KEYS[1], i) end return 1",
                            ENTRIES));
}

static enum weir_verdict run(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    return verdict;
}

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    EXPECT_INT(WEIR_OK, code);
    *(struct weir_stats *)arg = *stats;
    answers++;
}

/* Until all have run once. */
static void run_all(enum weir_verdict with, const char *option)
{
    const struct weir_topic_options options = {.run = run, .options = {option}};
    struct weir_stats stats = {0};

    verdict = with;
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "t", &options, NULL));
    while (stats.dead + stats.scheduled < ENTRIES) {
        answers = 0;
        EXPECT_INT(WEIR_OK, weir_reactor_stats(weir, "t", on_stats, &stats));
        AWAIT(answers == 1);
    }
}

static void on_count(int code, uint64_t count, void *arg)
{
    (void)arg;
    EXPECT_INT(WEIR_OK, code);
    EXPECT_INT(1, count);
    answers++;
}

TEST(every_entry_of_a_list_is_listed_at_once_and_in_pages)
{
    open_kind("kind=list");
    push_all();
    EXPECT_INT(ENTRIES, page(WEIR_JOB_READY, SIZE_MAX));
    expect_all_once();
    while (page(WEIR_JOB_READY, 7) > 0)
        ;
    expect_all_once();
}

TEST(every_entry_is_listed_from_the_end_that_it_is_taken_from)
{
    open_kind("kind=list");
    answers = 0;
    EXPECT_INT(WEIR_OK, weir_reactor_set(
                            weir, "t", (const char *const[]){"end=right", NULL},
                            on_code, NULL, NULL));
    AWAIT(answers == 1);
    push_all();
    EXPECT_INT(3, page(WEIR_JOB_READY, 3));
    EXPECT_INT(1, seen[ENTRIES]);
    while (page(WEIR_JOB_READY, 600) > 0)
        ;
    expect_all_once();
}

TEST(every_entry_of_a_stream_is_listed_at_once_and_in_pages)
{
    open_kind("kind=stream");
    for (int i = 1; i <= ENTRIES; i++)
        (void)redis_text(server, "XADD t %d-1 body %d", i, i);
    EXPECT_INT(ENTRIES, page(WEIR_JOB_READY, SIZE_MAX));
    expect_all_once();
    while (page(-1, 7) > 0)
        ;
    expect_all_once();
}

TEST(what_is_ready_again_comes_before_what_nobody_took)
{
    open_kind("kind=list");
    push_all();
    for (int i = 1; i <= 10; i++) {
        EXPECT_INT(1, redis_int(server, "HSET weir:{t}:held @%016x %d", i, i));
        EXPECT_INT(1,
                   redis_int(server, "ZADD weir:{t}:wait %d @%016x", i / 4, i));
    }
    EXPECT_INT(10, redis_int(server, "EVAL %s 1 t",
                             "for i = 1, 10 do redis.call('LPOP', KEYS[1]) "
                             "end return 10"));
    EXPECT_INT(7, page(WEIR_JOB_READY, 7));
    EXPECT_STR("@0000000000000007", last_id);
    while (page(WEIR_JOB_READY, 7) > 0)
        ;
    expect_all_once();
}

TEST(pages_of_dead_entries_go_on_while_these_are_deleted)
{
    open_kind("kind=list");
    push_all();
    run_all(WEIR_FAIL, NULL);
    EXPECT_INT(ENTRIES, page(WEIR_JOB_DEAD, SIZE_MAX));
    expect_all_once();
    while (page(WEIR_JOB_DEAD, 9) > 0) {
        answers = 0;
        EXPECT_INT(WEIR_OK,
                   weir_reactor_purge_dead(weir, "t", last_id, on_count, NULL));
        AWAIT(answers == 1);
    }
    expect_all_once();
}

TEST(pages_of_scheduled_entries_go_on)
{
    open_kind("kind=list");
    push_all();
    run_all(WEIR_RETRY, "retry=1h");
    while (page(WEIR_JOB_SCHEDULED, 7) > 0)
        ;
    expect_all_once();
}

TEST(what_is_no_place_of_an_entry_is_refused)
{
    static const char *const wrong[] = {
        "1w", "1w:", "1w1", "1x1:", "0n1:", "1n:", "1n1:0", "1n1:0g", "1winf:",
    };
    struct weir_list what = {.state = -1, .limit = 1};

    open_kind("kind=list");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        what.after = wrong[i];
        EXPECT_INT(WEIR_EINVAL,
                   weir_reactor_list_from(weir, "t", &what, on_listed, NULL));
    }
}
