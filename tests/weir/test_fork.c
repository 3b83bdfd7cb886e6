/* SPDX-License-Identifier: MIT */
#include <weir/take.h>
#include <weir/thread.h>

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/weir/host.h"

/* A reactor that was opened before a fork: the child is refused, and the parent
 * notices nothing. */

static int added, stopped;
static char last_line[256];

static void on_added(int code, const char *id, void *arg)
{
    (void)id;
    (void)arg;
    EXPECT_INT(WEIR_OK, code);
    added++;
}

static void on_many(const struct weir_added *results, size_t count, void *arg)
{
    (void)results;
    (void)arg;
    added += (int)count;
}

static void on_stopped(void *arg)
{
    (void)arg;
    stopped++;
}

static void on_call(int code, struct weir_reactor *reactor, void *arg)
{
    (void)code;
    (void)reactor;
    (void)arg;
    added++;
}

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    (void)code;
    (void)stats;
    (void)arg;
    added++;
}

static void on_line(enum weir_level level, const char *text, void *arg)
{
    (void)arg;
    if (level == WEIR_LEVEL_ERROR)
        (void)snprintf(last_line, sizeof(last_line), "%s", text); /* cut */
}

static enum weir_verdict run(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    return WEIR_DONE;
}

/* A child's status has the number of the first check that failed. */
#define CHECK(condition)   \
    do {                   \
        checks++;          \
        if (!(condition))  \
            _exit(checks); \
    } while (0)

static int checks;

static void expect_child(pid_t pid)
{
    int status = -1;

    EXPECT_TRUE(pid > 0);
    EXPECT_TRUE(waitpid(pid, &status, 0) == pid);
    EXPECT_INT(0, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static int add(struct weir_reactor *reactor, struct weir_error *err)
{
    struct weir_new_job job = {0};

    return weir_reactor_add(reactor, "t", &job, on_added, NULL, err);
}

/* Everything that a child may try; then it ends. */
static void use_in_child(void)
{
    struct weir_new_job job = {0};
    struct weir_new_jobs jobs = {"t", &job, 1, on_many, NULL};
    struct weir_topic_options topic = {.run = run};
    struct weir_error err = {0};
    int before = added;

    checks = 0;
    CHECK(add(weir, &err) == WEIR_ETHREAD);
    CHECK(strstr(err.text, "opened before a fork") != NULL);
    CHECK(weir_reactor_add_many(weir, &jobs, &err) == WEIR_ETHREAD);
    CHECK(weir_reactor_submit(weir, &jobs, &err) == WEIR_ETHREAD);
    CHECK(weir_reactor_call(weir, on_call, NULL) == WEIR_ETHREAD);
    CHECK(weir_reactor_stats(weir, "t", on_stats, NULL) == WEIR_ETHREAD);
    CHECK(weir_reactor_pause(weir, "t", true, NULL, NULL) == WEIR_ETHREAD);
    CHECK(weir_reactor_declare(weir, "u", "list", &err) == WEIR_ETHREAD);
    CHECK(weir_reactor_serve(weir, "t", &topic, &err) == WEIR_ETHREAD);
    weir_reactor_stop(weir, on_stopped, NULL);
    weir_reactor_give_back(weir);
    CHECK(strcmp(last_line, "") == 0);
    ev_run(loop, 0); /* returns, though the loop has watchers */
    CHECK(strstr(last_line, "opened before a fork") != NULL);
    ev_loop_fork(loop);
    ev_run(loop, 0);
    weir_reactor_free(weir);
    CHECK(added == before && stopped == 0);
    _exit(0);
}

static void open_host(void)
{
    struct weir_options options = {.log = on_line};

    added = stopped = 0;
    last_line[0] = '\0';
    host_open(&options);
    EXPECT_INT(WEIR_OK, add(weir, NULL));
    AWAIT(added == 1);
}

TEST(a_child_of_a_fork_is_refused_and_its_parent_notices_nothing)
{
    long long connections;

    open_host();
    connections =
        redis_int(server, "EVAL %s 0",
                  "return tonumber(string.match(redis.call('INFO', 'stats'), "
                  "'total_connections_received:(%d+)'))");
    for (int i = 0; i < 3; i++) {
        pid_t pid = fork();

        if (pid == 0)
            use_in_child();
        expect_child(pid);
        EXPECT_INT(WEIR_OK, add(weir, NULL));
        AWAIT(added == 2 + i);
    }
    EXPECT_INT(connections,
               redis_int(server, "EVAL %s 0",
                         "return tonumber(string.match(redis.call('INFO', "
                         "'stats'), 'total_connections_received:(%d+)'))"));
    EXPECT_STR("4", redis_text(server, "HGET weir:{t}:meta added"));
    host_close();
}

/* Unanswered requests, unsent jobs and all. */
TEST(a_fork_in_the_middle_of_requests_loses_and_repeats_nothing)
{
    open_host();
    for (int i = 0; i < 200; i++) {
        pid_t pid;

        EXPECT_INT(WEIR_OK, add(weir, NULL));
        if (i % 40 != 0)
            continue;
        host_turn();
        pid = fork();
        if (pid == 0) {
            ev_loop_fork(loop);
            ev_run(loop, 0);
            weir_reactor_free(weir);
            _exit(0);
        }
        expect_child(pid);
    }
    AWAIT(added == 201);
    EXPECT_STR("201", redis_text(server, "HGET weir:{t}:meta added"));
    host_close();
}

TEST(a_child_opens_a_reactor_of_its_own)
{
    pid_t pid;

    open_host();
    pid = fork();
    if (pid == 0) {
        loop = ev_loop_new(EVFLAG_AUTO);
        weir = host_reactor(NULL);
        added = 0;
        checks = 0;
        CHECK(add(weir, NULL) == WEIR_OK);
        while (added == 0)
            ev_run(loop, EVRUN_ONCE);
        weir_reactor_free(weir);
        _exit(0);
    }
    expect_child(pid);
    EXPECT_STR("2", redis_text(server, "HGET weir:{t}:meta added"));
    host_close();
}

TEST(a_thread_of_a_parent_is_refused_in_a_child)
{
    struct weir_options options = {0};
    struct weir_thread *threads[2];
    pid_t pid;

    open_host();
    options.redis_url = redis_url(server);
    for (int i = 0; i < 2; i++)
        EXPECT_INT(WEIR_OK, weir_thread_open(&options, &threads[i], NULL));
    EXPECT_INT(WEIR_OK, weir_thread_start(threads[0], NULL));
    pid = fork();
    if (pid == 0) {
        struct weir_new_job job = {0};
        struct weir_new_jobs jobs = {"t", &job, 1, on_many, NULL};

        checks = 0;
        for (int i = 0; i < 2; i++) {
            CHECK(weir_thread_submit(threads[i], &jobs, NULL) == WEIR_ETHREAD);
            CHECK(weir_thread_start(threads[i], NULL) == WEIR_ETHREAD);
            CHECK(weir_thread_stop(threads[i], on_stopped, NULL) ==
                  WEIR_ETHREAD);
            CHECK(weir_thread_give_back(threads[i]) == WEIR_ETHREAD);
            CHECK(weir_thread_tell(threads[i], on_stopped, NULL) ==
                  WEIR_ETHREAD);
            CHECK(weir_thread_wait(threads[i], -1) == WEIR_ETHREAD);
            weir_thread_dispatch(threads[i]);
            weir_thread_free(threads[i]);
        }
        _exit(0);
    }
    expect_child(pid);
    for (int i = 0; i < 2; i++)
        weir_thread_free(threads[i]);
    host_close();
}
