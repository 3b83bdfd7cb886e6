/* SPDX-License-Identifier: MIT */
#include <weir/weir.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/weir/host.h"

/* A host program with its own loop: <weir/weir.h> on a real server. */
static int runs, answers, last_code;
static bool goal; /* what the test waits for has happened */
static struct weir_stats last_stats;

static void log_line(enum weir_level level, const char *text, void *arg)
{
    (void)arg;
    if (level >= WEIR_LEVEL_WARN)
        printf("  log: %s\n", text);
}

static struct weir_options logging = {.log = log_line};

static void await_goal(void)
{
    AWAIT(goal);
    goal = false;
}

static void on_added(int code, const char *id, void *arg)
{
    (void)arg;
    EXPECT_TRUE(id != NULL && (code < 0 || id[0] != '\0'));
    answers++;
    last_code = code;
    goal = true;
}

static int add_json(const char *topic, const char *id, const char *json,
                    int64_t delay_ms)
{
    struct weir_new_job job = {.id = id, .delay_ms = delay_ms};
    struct weir_error err = {0};
    int rc = weir_body_from_json(json, strlen(json), &job.body, &err);

    EXPECT_INT(WEIR_OK, rc);
    rc = weir_reactor_add(weir, topic, &job, on_added, NULL, &err);
    weir_body_free(job.body);
    return rc;
}

static enum weir_verdict run_done(void *self, struct weir_job *job)
{
    int64_t order = 0;

    (void)self;
    EXPECT_TRUE(weir_job_i64(job, "order", &order));
    EXPECT_INT(17, order);
    runs++;
    goal = true;
    return WEIR_DONE;
}

static void serve(struct weir_reactor *reactor, const char *topic,
                  weir_run_fn run)
{
    struct weir_topic_options options = {.run = run, .self = reactor};
    struct weir_error err = {0};

    EXPECT_INT(WEIR_OK, weir_reactor_serve(reactor, topic, &options, &err));
}

TEST(a_plain_function_handles_what_was_added)
{
    host_open(&logging);
    serve(weir, "orders", run_done);
    EXPECT_INT(WEIR_OK, add_json("orders", "a", "{\"order\": 17}", 20));
    await_goal();
    EXPECT_INT(WEIR_OK, last_code);
    await_goal();
    EXPECT_INT(1, runs);
}

TEST(a_second_job_with_the_same_id_is_refused)
{
    host_open(&logging);
    EXPECT_INT(WEIR_OK, add_json("orders", "a", "1", 60000));
    await_goal();
    EXPECT_INT(WEIR_OK, last_code);
    EXPECT_INT(WEIR_OK, add_json("orders", "a", "2", 60000));
    await_goal();
    EXPECT_INT(WEIR_EEXISTS, last_code);
}

static enum weir_verdict run_free(void *self, struct weir_job *job)
{
    (void)job;
    runs++;
    weir_reactor_free(self);
    weir = NULL;
    goal = true;
    return WEIR_DONE;
}

TEST(a_handler_may_free_its_reactor)
{
    host_open(&logging);
    serve(weir, "orders", run_free);
    for (int i = 0; i < 10; i++)
        EXPECT_INT(WEIR_OK, add_json("orders", NULL, "null", 0));
    while (runs == 0)
        await_goal();
    ev_run(loop, EVRUN_NOWAIT); /* nothing of it is left to be called */
    EXPECT_INT(1, runs);
}

static void on_added_free(int code, const char *id, void *arg)
{
    (void)id;
    (void)arg;
    answers++;
    last_code = code;
    if (answers > 1)
        return;
    weir_reactor_free(weir);
    weir = NULL;
    goal = true;
}

TEST(an_answer_may_free_the_reactor_and_the_others_are_canceled)
{
    struct weir_new_job job = {.delay_ms = 1000};

    host_open(&logging);
    EXPECT_INT(WEIR_OK, weir_reactor_add(weir, "orders", &job, on_added_free,
                                         NULL, NULL));
    while (answers == 0)
        ev_run(loop, EVRUN_ONCE);
    EXPECT_INT(1, answers);
    EXPECT_INT(WEIR_OK, last_code);
}

TEST(freeing_cancels_what_was_not_answered)
{
    struct weir_new_job job = {.delay_ms = 1000};

    host_open(&logging);
    for (int i = 0; i < 3; i++)
        EXPECT_INT(WEIR_OK, weir_reactor_add(weir, "orders", &job, on_added,
                                             NULL, NULL));
    weir_reactor_free(weir);
    weir = NULL;
    EXPECT_INT(3, answers);
    EXPECT_INT(WEIR_ECANCELED, last_code);
}

static int runs_of[2];

static enum weir_verdict run_count(void *self, struct weir_job *job)
{
    (void)job;
    runs_of[self == weir ? 0 : 1]++;
    goal = true;
    return WEIR_DONE;
}

TEST(two_reactors_live_in_one_process)
{
    struct weir_reactor *other;

    host_open(&logging);
    logging.name = "other";
    other = host_reactor(&logging);
    serve(weir, "first", run_count);
    serve(other, "second", run_count);
    EXPECT_INT(WEIR_OK, add_json("first", "a", "1", 0));
    EXPECT_INT(WEIR_OK, add_json("second", "a", "1", 0));
    while (runs_of[0] + runs_of[1] < 2)
        await_goal();
    EXPECT_INT(1, runs_of[0]);
    EXPECT_INT(1, runs_of[1]);
    weir_reactor_free(other);
}

static void on_show(int code, const struct weir_job_info *job, void *arg)
{
    (void)arg;
    last_code = code;
    goal = true;
    if (code < 0)
        return;
    EXPECT_MEM("a", 1, job->id.ptr, job->id.len);
    EXPECT_INT(WEIR_JOB_SCHEDULED, job->state);
    EXPECT_INT(0, job->counters.attempt);
    EXPECT_MEM("1s 2s", 5, job->retry.ptr, job->retry.len);
    EXPECT_MEM("http://x/", 9, job->url.ptr, job->url.len);
    EXPECT_MEM("\x81\xa1k\x07", 4, job->body.ptr, job->body.len);
}

static void on_delete(int code, enum weir_job_state was, void *arg)
{
    (void)arg;
    last_code = code;
    if (code == WEIR_OK)
        EXPECT_INT(WEIR_JOB_SCHEDULED, was);
    goal = true;
}

TEST(a_job_is_shown_as_it_was_added_and_gone_once_deleted)
{
    struct weir_new_job job = {
        .id = "a",
        .body = {(const uint8_t *)"\x81\xa1k\x07", 4},
        .delay_ms = 60000,
        .retry = "1s 2s",
        .url = "http://x/",
    };

    host_open(&logging);
    EXPECT_INT(WEIR_OK,
               weir_reactor_add(weir, "orders", &job, on_added, NULL, NULL));
    await_goal();
    EXPECT_INT(WEIR_OK, weir_reactor_show(weir, "orders", "a", on_show, NULL));
    await_goal();
    EXPECT_INT(WEIR_OK,
               weir_reactor_delete(weir, "orders", "a", on_delete, NULL));
    await_goal();
    EXPECT_INT(WEIR_OK, last_code);
    EXPECT_INT(WEIR_OK, weir_reactor_show(weir, "orders", "a", on_show, NULL));
    await_goal();
    EXPECT_INT(WEIR_ENOTFOUND, last_code);
    EXPECT_INT(WEIR_OK, weir_reactor_show(weir, "none", "a", on_show, NULL));
    await_goal();
    EXPECT_INT(WEIR_ENOTFOUND, last_code);
}

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    (void)arg;
    last_code = code;
    if (code == WEIR_OK)
        last_stats = *stats;
    goal = true;
}

static void on_idle(const char *topic, void *arg)
{
    (void)topic;
    (void)arg;
    goal = true;
}

static enum weir_verdict run_fail(void *self, struct weir_job *job)
{
    (void)self;
    runs++;
    return weir_fail(job, "no such order");
}

static void on_dead(int code, const struct weir_job_info *job, void *arg)
{
    (void)arg;
    last_code = code;
    if (job == NULL) {
        goal = true;
        return;
    }
    answers++;
    EXPECT_INT(WEIR_JOB_DEAD, job->state);
    EXPECT_MEM("failed", 6, job->reason.ptr, job->reason.len);
    EXPECT_MEM("no such order", 13, job->error.ptr, job->error.len);
}

TEST(failed_jobs_are_counted_and_listed_with_their_reason)
{
    host_open(&logging);
    EXPECT_INT(WEIR_OK, add_json("orders", "a", "1", 0));
    EXPECT_INT(WEIR_OK, add_json("orders", "b", "2", 0));
    while (answers < 2)
        await_goal();
    weir_reactor_on_idle(weir, on_idle, NULL);
    serve(weir, "orders", run_fail);
    while (runs < 2)
        await_goal();
    EXPECT_INT(WEIR_OK, weir_reactor_stats(weir, "orders", on_stats, NULL));
    await_goal();
    EXPECT_INT(2, last_stats.dead);
    EXPECT_INT(2, last_stats.failed_total);
    EXPECT_INT(0, last_stats.running);
    answers = 0;
    EXPECT_INT(WEIR_OK, weir_reactor_dead(weir, "orders", 10, on_dead, NULL));
    await_goal();
    EXPECT_INT(2, answers);
}

static void on_stopped(void *arg)
{
    (void)arg;
    goal = true;
}

TEST(stopping_ends_with_its_callback_and_loses_nothing)
{
    host_open(&logging);
    serve(weir, "orders", run_done);
    for (int i = 0; i < 100; i++)
        EXPECT_INT(WEIR_OK, add_json("orders", NULL, "{\"order\": 17}", 0));
    while (runs == 0)
        await_goal();
    goal = false;
    weir_reactor_stop(weir, on_stopped, NULL);
    await_goal();
    while (answers < 100)
        await_goal();
    EXPECT_INT(WEIR_OK, weir_reactor_stats(weir, "orders", on_stats, NULL));
    await_goal();
    EXPECT_INT(0, last_stats.running);
    /* What became due within this millisecond still counts as scheduled. */
    EXPECT_INT(100,
               last_stats.scheduled + last_stats.ready + last_stats.done_total);
    EXPECT_INT(runs, last_stats.done_total);
}

TEST(what_is_wrong_with_an_argument_is_said)
{
    struct weir_topic_options topic = {.run = run_done,
                                       /* time is the subject */
                                       .options = {"lease=100ms"}};
    struct weir_new_job job = {.id = "has blank "};
    struct weir_options options = {.redis_url = "redis://127.0.0.1"};
    struct weir_reactor *none = NULL;
    struct weir_error err = {0};

    EXPECT_INT(WEIR_EINVAL, weir_reactor_open(&options, &none, &err));
    host_open(&logging);
    EXPECT_INT(WEIR_EINVAL, weir_reactor_serve(weir, "orders", &topic, &err));
    EXPECT_STR("lease: \"100ms\" is out of bounds: write 300ms to 1h, or "
               "none",
               err.text);
    topic.options[0] = "on_dead=db";
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "da", &topic, &err));
    topic.options[0] = "on_dead=da";
    EXPECT_INT(WEIR_EINVAL, weir_reactor_serve(weir, "db", &topic, &err));
    EXPECT_CONTAINS("db -> da -> db", err.text);
    topic = (struct weir_topic_options){0};
    EXPECT_INT(WEIR_EINVAL, weir_reactor_serve(weir, "orders", &topic, &err));
    topic.run = run_done;
    EXPECT_INT(WEIR_EINVAL, weir_reactor_serve(weir, "no {t}", &topic, &err));
    EXPECT_CONTAINS("no {t}", err.text);
    EXPECT_INT(WEIR_EINVAL,
               weir_reactor_add(weir, "orders", &job, NULL, NULL, &err));
    EXPECT_CONTAINS("has blank", err.text);
    job = (struct weir_new_job){.body = {(const uint8_t *)"\x81", 1}};
    EXPECT_INT(WEIR_EMALFORMED,
               weir_reactor_add(weir, "orders", &job, NULL, NULL, &err));
}

/* Run one of the examples; returns its exit code and what it printed. */
static int run_example(const char *name, const char *arg, char *ret_text,
                       size_t cap)
{
    char path[512];
    int fds[2], status = 0;
    size_t len = 0;
    ssize_t got;
    pid_t pid;

    (void)snprintf(path, sizeof(path), "%s/%s", EXAMPLES_DIR, name);
    EXPECT_INT(0, pipe(fds));
    pid = fork();
    if (pid == 0) {
        (void)dup2(fds[1], STDOUT_FILENO);
        (void)dup2(fds[1], STDERR_FILENO);
        (void)execl(path, name, redis_url(server), arg, (char *)NULL);
        _exit(127);
    }
    (void)close(fds[1]);
    for (;;) {
        got = read(fds[0], ret_text + len, cap - 1 - len);
        if (got <= 0)
            break;
        len += (size_t)got;
    }
    ret_text[len] = '\0';
    (void)close(fds[0]);
    EXPECT_INT(pid, waitpid(pid, &status, 0));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(the_embedding_example_closes_its_order)
{
    char text[2000];

    server = redis_start(NULL);
    EXPECT_INT(0, run_example("embed", NULL, text, sizeof(text)));
    EXPECT_STR("closing order 17\n", text);
}

TEST(the_epoll_example_closes_its_order_in_its_own_loop)
{
    char text[2000];

    server = redis_start(NULL);
    EXPECT_INT(0, run_example("embed_epoll", NULL, text, sizeof(text)));
    EXPECT_STR("closing order 17\n", text);
    EXPECT_STR("1", redis_text(server, "HGET weir:{order.close}:meta settled"));
}

TEST(the_glib_example_closes_its_order_in_its_own_loop)
{
    char text[2000];

    server = redis_start(NULL);
    EXPECT_INT(0, run_example("embed_glib", NULL, text, sizeof(text)));
    EXPECT_STR("closing order 17\n", text);
    EXPECT_STR("1", redis_text(server, "HGET weir:{order.close}:meta settled"));
}

TEST(the_libuv_example_closes_its_order_in_its_own_loop)
{
    char text[2000];

    server = redis_start(NULL);
    EXPECT_INT(0, run_example("embed_uv", NULL, text, sizeof(text)));
    EXPECT_STR("closing order 17\n", text);
    EXPECT_STR("1", redis_text(server, "HGET weir:{order.close}:meta settled"));
}

/* Give a producer these lines; returns its exit code and what it said. */
static int produce(const char *lines, char *ret_text, size_t cap)
{
    char command[1200];
    size_t len;
    FILE *from;
    int status;

    (void)snprintf(command, sizeof(command),
                   "printf '%s' | %s/producer %s orders 2>&1", lines,
                   EXAMPLES_DIR, redis_url(server));
    from = popen(command, "r");
    EXPECT_TRUE(from != NULL);
    len = fread(ret_text, 1, cap - 1, from);
    ret_text[len] = '\0';
    status = pclose(from);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(the_producer_example_adds_its_lines_up_to_a_wrong_one)
{
    char text[2000];

    server = redis_start(NULL);
    EXPECT_INT(0, produce("1\\n{\"order\": 2}\\n3\\n", text, sizeof(text)));
    EXPECT_STR("added 3 of 3\n", text);
    EXPECT_INT(1, produce("4\\n{wrong\\n6\\n", text, sizeof(text)));
    EXPECT_CONTAINS("added 1 of 1\n", text);
    EXPECT_CONTAINS("producer: json: ", text);
}

TEST(the_drain_example_handles_each_of_100000_jobs_once)
{
    char text[2000];

    server = redis_start(NULL);
    EXPECT_INT(0, run_example("drain", "100000", text, sizeof(text)));
    EXPECT_CONTAINS("added 100000", text);
    EXPECT_CONTAINS("drained 100000", text);
    EXPECT_CONTAINS("lost 0, handled twice 0", text);
}

TEST(the_tills_of_the_example_close_each_order_once)
{
    char text[2000], line[40];

    server = redis_start(NULL);
    EXPECT_INT(0, run_example("tills", NULL, text, sizeof(text)));
    for (int order = 1; order <= 5; order++) {
        (void)snprintf(line, sizeof(line), "order %d closed\n", order);
        EXPECT_CONTAINS(line, text);
    }
    EXPECT_CONTAINS("order 3 once more\n", text);
    EXPECT_STR("6", redis_text(server, "HGET weir:{tills}:meta settled"));
}
