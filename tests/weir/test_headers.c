/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "tests/harness/oom.h"
#include "tests/weir/host.h"

/* Headers of jobs on their way: added from whatever thread, read by handlers
 * that block and by others, passed on to what these add. */

#define HEADER(name, value)                                \
    {                                                      \
        {(const uint8_t *)(name), sizeof(name) - 1},       \
            {(const uint8_t *)(value), sizeof(value) - 1}, \
    }

static const struct weir_header trace[] = {
    HEADER("user", "a b"),
    HEADER("Traceparent", "00-1"),
    HEADER("tracestate", "x=1"),
};

/* --- what handlers saw ---------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char seen[2000];
static int64_t added_ms[8];
static int runs;

/* "ID: name=value, ..." of a job, a line each. */
static void note(const struct weir_job *job)
{
    struct weir_header headers[WEIR_MAX_HEADERS];
    size_t count = weir_job_headers(job, headers, WEIR_MAX_HEADERS);
    struct weir_slice id = weir_job_id(job);
    size_t len;

    EXPECT_INT(0, pthread_mutex_lock(&lock));
    len = strlen(seen);
    len += (size_t)snprintf(seen + len, sizeof(seen) - len,
                            "%.*s:", (int)id.len, (const char *)id.ptr);
    for (size_t i = 0; i < count; i++)
        len += (size_t)snprintf(
            seen + len, sizeof(seen) - len, " %.*s=%.*s",
            (int)headers[i].name.len, (const char *)headers[i].name.ptr,
            (int)headers[i].value.len, (const char *)headers[i].value.ptr);
    (void)snprintf(seen + len, sizeof(seen) - len, "\n");
    EXPECT_TRUE(runs < 8);
    added_ms[runs++] = weir_job_added_ms(job);
    EXPECT_INT(0, pthread_mutex_unlock(&lock));
}

static int runs_now(void)
{
    int count;

    EXPECT_INT(0, pthread_mutex_lock(&lock));
    count = runs;
    EXPECT_INT(0, pthread_mutex_unlock(&lock));
    return count;
}

static bool is_id(const struct weir_job *job, const char *id)
{
    return weir__slice_equal(weir_job_id(job), weir__slice_str(id));
}

/* What the job named "first" adds has a trace in the name; others end. */
static enum weir_verdict pass_on(void *self, struct weir_job *job)
{
    const struct weir_header own[] = {HEADER("TRACEPARENT", "00-2")};
    const struct weir_header state[] = {HEADER("Tracestate", "y=2")};
    const struct weir_header plain[] = {HEADER("a", "1")};
    struct weir_slice parent = weir_job_header(job, "traceparent");

    (void)self;
    note(job);
    if (!is_id(job, "first"))
        return WEIR_DONE;
    EXPECT_MEM("00-1", 4, parent.ptr, parent.len);
    EXPECT_INT(0, weir_job_header(job, "none").len);
    EXPECT_INT(WEIR_OK,
               weir_job_follow(job, &(struct weir_follow){.id = "same"}));
    EXPECT_INT(WEIR_OK,
               weir_job_follow_to(job, "t",
                                  &(struct weir_follow){.id = "plain",
                                                        .headers = plain,
                                                        .header_count = 1}));
    EXPECT_INT(WEIR_OK,
               weir_job_follow(job, &(struct weir_follow){.id = "own",
                                                          .headers = own,
                                                          .header_count = 1}));
    EXPECT_INT(WEIR_OK,
               weir_job_follow(job, &(struct weir_follow){.id = "state",
                                                          .headers = state,
                                                          .header_count = 1}));
    EXPECT_INT(WEIR_EINVAL,
               weir_job_follow(job, &(struct weir_follow){.headers = trace,
                                                          .header_count = 17}));
    return WEIR_DONE;
}

/* --- the host ------------------------------------------------------------- */

static int answers;

static void on_added(const struct weir_added *added, size_t count, void *arg)
{
    (void)arg;
    for (size_t i = 0; i < count; i++)
        EXPECT_INT(WEIR_OK, added[i].code);
    answers++;
}

static void serve(weir_run_fn run, bool blocking)
{
    struct weir_topic_options options = {.run = run, .blocking = blocking};

    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "t", &options, NULL));
}

static void expect_line(const char *line)
{
    EXPECT_CONTAINS(line, seen);
}

static void expect_passed_on(void)
{
    AWAIT(runs_now() == 5);
    expect_line("first: user=a b Traceparent=00-1 tracestate=x=1\n");
    expect_line("same: Traceparent=00-1 tracestate=x=1\n");
    expect_line("plain: a=1 Traceparent=00-1 tracestate=x=1\n");
    expect_line("own: TRACEPARENT=00-2\n");
    expect_line("state: Tracestate=y=2\n"); /* of no trace of ours */
    for (int i = 1; i < runs; i++)
        EXPECT_TRUE(added_ms[i] >= added_ms[0] && added_ms[0] > 0);
}

static const struct weir_new_job first = {
    .id = "first", .headers = trace, .header_count = 3};

TEST(a_trace_goes_on_in_the_jobs_that_a_handler_adds)
{
    host_open(NULL);
    serve(pass_on, false);
    EXPECT_INT(WEIR_OK, weir_reactor_add(weir, "t", &first, NULL, NULL, NULL));
    expect_passed_on();
}

TEST(a_handler_that_blocks_reads_headers_and_passes_them_on)
{
    host_open(NULL);
    serve(pass_on, true);
    EXPECT_INT(WEIR_OK, weir_reactor_add(weir, "t", &first, NULL, NULL, NULL));
    expect_passed_on();
}

static enum weir_verdict just_note(void *self, struct weir_job *job)
{
    (void)self;
    note(job);
    return WEIR_DONE;
}

TEST(jobs_of_one_submit_have_headers_of_their_own)
{
    struct weir_header headers[] = {HEADER("a", "1"), HEADER("b", "2")};
    struct weir_new_job jobs[] = {
        {.id = "none"},
        {.id = "two", .headers = headers, .header_count = 2},
        {.id = "one", .headers = headers + 1, .header_count = 1},
    };
    struct weir_new_jobs many = {"t", jobs, 3, on_added, NULL};

    host_open(NULL);
    EXPECT_INT(WEIR_OK, weir_reactor_submit(weir, &many, NULL));
    memset(headers, 0, sizeof(headers)); /* everything was copied */
    serve(just_note, false);
    AWAIT(runs_now() == 3 && answers == 1);
    EXPECT_STR("none:\ntwo: a=1 b=2\none: b=2\n", seen);
}

TEST(what_is_no_header_is_refused_with_its_job)
{
    const struct weir_header twice[] = {HEADER("a", "1"), HEADER("A", "2")};
    struct weir_new_job jobs[] = {{0}, {.headers = twice, .header_count = 2}};
    struct weir_new_jobs many = {"t", jobs, 2, on_added, NULL};
    struct weir_error err = {0};

    host_open(NULL);
    EXPECT_INT(WEIR_EINVAL, weir_reactor_add_many(weir, &many, &err));
    EXPECT_STR("job 1: header \"A\" is given twice", err.text);
    EXPECT_INT(WEIR_EINVAL, weir_reactor_submit(weir, &many, &err));
    EXPECT_INT(WEIR_EINVAL,
               weir_reactor_add(weir, "t", &jobs[1], NULL, NULL, &err));
    EXPECT_STR("header \"A\" is given twice", err.text);
}

TEST(without_memory_for_headers_nothing_is_added)
{
    int rc = WEIR_ENOMEM, refused = -1;

    host_open(NULL);
    for (int n = 0; rc == WEIR_ENOMEM; n++) {
        oom_after(n);
        rc = weir_reactor_add(weir, "t", &first, NULL, NULL, NULL);
        oom_off();
        refused++;
    }
    EXPECT_INT(WEIR_OK, rc);
    EXPECT_TRUE(refused > 0);
    serve(just_note, false);
    AWAIT(runs_now() == 1);
    EXPECT_STR("first: user=a b Traceparent=00-1 tracestate=x=1\n", seen);
}
