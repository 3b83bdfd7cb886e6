/* SPDX-License-Identifier: MIT */
#include <weir/weir.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/weir/host.h"

/* Going through the jobs of a topic place by place, on a real server. */

enum { JOBS = 300 };

static int answers, last_code, listed;
static int seen[2 * JOBS];             /* by the number in the id */
static char last_id[WEIR_MAX_ID + 1];  /* of the page */
static char place[WEIR_MAX_PLACE + 1]; /* behind the page */
static char states[JOBS + 1];          /* a letter for each job listed */

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

static void add_numbered(int first, int count, int64_t delay_ms)
{
    struct weir_new_job job = {.delay_ms = delay_ms};
    char id[32];

    answers = 0;
    for (int i = first; i < first + count; i++) {
        (void)snprintf(id, sizeof(id), "%d", i); /* fits */
        job.id = id;
        EXPECT_INT(WEIR_OK,
                   weir_reactor_add(weir, "t", &job, on_added, NULL, NULL));
    }
    AWAIT(answers == count);
}

static void on_listed(int code, const struct weir_job_info *job, void *arg)
{
    (void)arg;
    if (job == NULL) {
        last_code = code;
        answers++;
        return;
    }
    memcpy(last_id, job->id.ptr, job->id.len);
    last_id[job->id.len] = '\0';
    EXPECT_TRUE(job->place.len > 0 && job->place.len <= WEIR_MAX_PLACE);
    memcpy(place, job->place.ptr, job->place.len);
    place[job->place.len] = '\0';
    seen[strtol(last_id, NULL, 10)]++;
    states[listed++] = weir_job_state_name(job->state)[0];
}

/* The next jobs; how many came. */
static int page(int state, size_t limit)
{
    const struct weir_list what = {
        .state = state,
        .limit = limit,
        .after = place[0] == '\0' ? NULL : place,
    };
    char after[sizeof(place)];
    int before = listed;

    memcpy(after, place, sizeof(place));
    answers = 0;
    EXPECT_INT(WEIR_OK,
               weir_reactor_list_from(weir, "t", &what, on_listed, NULL));
    AWAIT(answers == 1);
    EXPECT_INT(WEIR_OK, last_code);
    EXPECT_TRUE(listed == before || strcmp(after, place) != 0);
    return listed - before;
}

static void on_deleted(int code, enum weir_job_state was, void *arg)
{
    (void)was;
    (void)arg;
    EXPECT_INT(WEIR_OK, code);
    answers++;
}

static void remove_one(const char *id)
{
    answers = 0;
    EXPECT_INT(WEIR_OK, weir_reactor_delete(weir, "t", id, on_deleted, NULL));
    AWAIT(answers == 1);
}

static void on_code(int code, const char *text, void *arg)
{
    (void)text;
    (void)arg;
    EXPECT_INT(WEIR_OK, code);
    answers++;
}

static void expect_each_once(int first, int count)
{
    for (int i = first; i < first + count; i++)
        EXPECT_INT(1, seen[i]);
}

static enum weir_verdict run_fail(void *self, struct weir_job *job)
{
    (void)self;
    return weir_fail(job, "no");
}

static void serve_failing(void)
{
    const struct weir_topic_options options = {.run = run_fail};

    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "t", &options, NULL));
}

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    EXPECT_INT(WEIR_OK, code);
    *(uint64_t *)arg = stats->dead;
    answers++;
}

static void await_dead(uint64_t count)
{
    uint64_t dead = 0;

    while (dead < count) {
        answers = 0;
        EXPECT_INT(WEIR_OK, weir_reactor_stats(weir, "t", on_stats, &dead));
        AWAIT(answers == 1);
    }
}

TEST(pages_of_one_pack_go_on_while_its_jobs_are_deleted)
{
    add_numbered(0, JOBS, 3600000);
    while (page(WEIR_JOB_SCHEDULED, 7) > 0)
        remove_one(last_id);
    EXPECT_INT(JOBS, listed);
    expect_each_once(0, JOBS);
}

TEST(pages_of_single_jobs_go_on_while_others_come_in_front)
{
    for (int i = 0; i < 30; i++)
        add_numbered(i, 1, 3600000 + 1000 * i);
    for (int i = 0; page(WEIR_JOB_SCHEDULED, 4) > 0; i++)
        add_numbered(100 + i, 1, 1800000);
    EXPECT_INT(30, listed);
    expect_each_once(0, 30);
}

TEST(pages_of_dead_jobs_go_on_while_these_are_deleted)
{
    add_numbered(0, JOBS, 0);
    serve_failing();
    await_dead(JOBS);
    while (page(WEIR_JOB_DEAD, 7) > 0)
        remove_one(last_id);
    EXPECT_INT(JOBS, listed);
    expect_each_once(0, JOBS);
}

TEST(what_is_due_behind_all_that_there_was_is_left_out)
{
    add_numbered(0, 20, 3600000);
    for (int i = 0; page(WEIR_JOB_SCHEDULED, 3) > 0; i++)
        add_numbered(100 + 10 * i, 10, 7200000);
    EXPECT_INT(20, listed);
    expect_each_once(0, 20);
}

TEST(pages_of_any_state_go_on_from_state_to_state)
{
    add_numbered(0, 5, 0);
    serve_failing();
    await_dead(5);
    answers = 0;
    EXPECT_INT(WEIR_OK, weir_reactor_pause(weir, "t", true, on_code, NULL));
    AWAIT(answers == 1);
    add_numbered(5, 5, 3600000);
    add_numbered(10, 5, 0);
    while (page(-1, 2) > 0)
        ;
    EXPECT_STR("sssssrrrrrddddd", states);
    expect_each_once(0, 15);
}

TEST(events_of_a_bounded_topic_are_paged_as_well)
{
    static const char *const groups[] = {"g", "h", "i"};
    static const char *const wrong[] = {
        "1:", "1:x", "1:-1", "1:1x", "0:1:", "4:1", "1:1000000000000000"};
    struct weir_list what = {.state = -1, .limit = 1};
    struct weir_new_job job = {0};
    const char *const settings[] = {"kind=bounded", NULL};
    char id[32];

    EXPECT_INT(WEIR_OK,
               weir_reactor_set(weir, "t", settings, on_code, NULL, NULL));
    AWAIT(answers == 1);
    answers = 0;
    for (int i = 0; i < 10; i++) {
        (void)snprintf(id, sizeof(id), "%d", i); /* fits */
        job.id = id;
        job.group = groups[i == 9 ? 2 : i % 2];
        EXPECT_INT(WEIR_OK,
                   weir_reactor_add(weir, "t", &job, on_added, NULL, NULL));
    }
    AWAIT(answers == 10);
    while (page(-1, 3) > 0)
        ;
    EXPECT_INT(10, listed);
    expect_each_once(0, 10);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        what.after = wrong[i];
        EXPECT_INT(WEIR_EINVAL,
                   weir_reactor_list_from(weir, "t", &what, on_listed, NULL));
    }
}

TEST(what_is_no_place_is_refused)
{
    static const char *const wrong[] = {
        "",
        "x",
        "4#1",
        "0#",
        "0#0",
        "0#-1",
        "0#1x",
        "0",
        "01,2",
        "01,2:",
        "01,2:short",
        "0-1,2:------------00",
        "0nan,2:------------00",
        "0inf,2:------------00",
        "01,2:------------0g",
        "01,2:------------000",
        "01,1e300:------------00",
        "31,2:",
        "31,2:0",
        "31,2:zz",
        "2#",
        "2#0",
        "2#-1",
        "2#+5",
        "2# 5",
        "2#5 ",
        "2#1000000000",
        "2#18446744073709551615",
    };
    struct weir_list what = {.state = -1, .limit = 1};

    add_numbered(0, 1, 0);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        what.after = wrong[i];
        EXPECT_INT(WEIR_EINVAL,
                   weir_reactor_list_from(weir, "t", &what, on_listed, NULL));
    }
    what.state = WEIR_JOB_DEAD;
    what.after = "01,2:------------00";
    EXPECT_INT(WEIR_EINVAL,
               weir_reactor_list_from(weir, "t", &what, on_listed, NULL));
}
