/* SPDX-License-Identifier: MIT */
#include <weir/weir.h>

#include "tests/weir/host.h"

/* "Inside any callback everything is allowed, weir_reactor_free included": each
 * callback of <weir/weir.h> frees the reactor that calls it, while another
 * request of the same sort waits for its answer. */
static int calls, firsts;

/* A list calls for each thing and once more: that one is its answer. */
static void free_at(bool is_answer)
{
    struct weir_reactor *mine = weir;

    calls += is_answer;
    weir = NULL;
    weir_reactor_free(mine);
}

static void free_it(void)
{
    free_at(true);
}

/* --- one of each sort of callback --- */

static void on_added(int code, const char *id, void *arg)
{
    (void)code;
    (void)id;
    (void)arg;
    free_it();
}

static void on_many(const struct weir_added *added, size_t count, void *arg)
{
    (void)arg;
    EXPECT_INT(2, count);
    EXPECT_TRUE(added[1].id != NULL);
    free_it();
}

static void on_call(int code, struct weir_reactor *reactor, void *arg)
{
    (void)code;
    (void)reactor;
    (void)arg;
    free_it();
}

static void on_kind(int code, const char *kind, void *arg)
{
    (void)code;
    (void)kind;
    (void)arg;
    free_it();
}

static void on_job(int code, const struct weir_job_info *job, void *arg)
{
    (void)code;
    (void)job;
    (void)arg;
    free_it();
}

static void on_listed(int code, const struct weir_job_info *job, void *arg)
{
    (void)code;
    (void)arg;
    free_at(job == NULL);
}

static void on_delete(int code, enum weir_job_state was, void *arg)
{
    (void)code;
    (void)was;
    (void)arg;
    free_it();
}

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    (void)code;
    (void)stats;
    (void)arg;
    free_it();
}

static void on_topic(int code, const char *topic, void *arg)
{
    (void)code;
    (void)arg;
    free_at(topic == NULL);
}

static void on_reschedule(int code, enum weir_job_state was, int64_t due_ms,
                          void *arg)
{
    (void)code;
    (void)was;
    (void)due_ms;
    (void)arg;
    free_it();
}

static void on_count(int code, uint64_t count, void *arg)
{
    (void)code;
    (void)count;
    (void)arg;
    free_it();
}

static void on_code(int code, const char *text, void *arg)
{
    (void)code;
    (void)text;
    (void)arg;
    free_it();
}

static void on_setting(int code, const char *key, const char *value, void *arg)
{
    (void)code;
    (void)value;
    (void)arg;
    free_at(key == NULL);
}

static void on_idle(const char *topic, void *arg)
{
    (void)topic;
    (void)arg;
    free_it();
}

static void on_stopped(void *arg)
{
    (void)arg;
    free_it();
}

/* --- who asks for them --- */

static const struct weir_new_job two[2] = {{.delay_ms = 60000},
                                           {.delay_ms = 60000}};
static const struct weir_new_jobs both = {
    .topic = "t", .jobs = two, .count = 2, .fn = on_many};
static const struct weir_due due = {.delay_ms = 1000};
static const char *const settings[] = {"retry=1s", NULL};

static int ask_add(void)
{
    return weir_reactor_add(weir, "t", two, on_added, NULL, NULL);
}

static int ask_add_many(void)
{
    return weir_reactor_add_many(weir, &both, NULL);
}

static int ask_submit(void)
{
    return weir_reactor_submit(weir, &both, NULL);
}

static int ask_call(void)
{
    return weir_reactor_call(weir, on_call, NULL);
}

static int ask_kind(void)
{
    return weir_reactor_kind(weir, "t", on_kind, NULL);
}

static int ask_show(void)
{
    return weir_reactor_show(weir, "t", "a", on_job, NULL);
}

static int ask_dead(void)
{
    return weir_reactor_dead(weir, "t", 10, on_listed, NULL);
}

static int ask_list(void)
{
    return weir_reactor_list(weir, "t", -1, 10, on_listed, NULL);
}

static int ask_delete(void)
{
    return weir_reactor_delete(weir, "t", "a", on_delete, NULL);
}

static int ask_stats(void)
{
    return weir_reactor_stats(weir, "t", on_stats, NULL);
}

static int ask_topics(void)
{
    return weir_reactor_topics(weir, on_topic, NULL);
}

static int ask_reschedule(void)
{
    return weir_reactor_reschedule(weir, "t", "a", &due, on_reschedule, NULL);
}

static int ask_requeue(void)
{
    return weir_reactor_requeue(weir, "t", NULL, on_count, NULL);
}

static int ask_purge_dead(void)
{
    return weir_reactor_purge_dead(weir, "t", NULL, on_count, NULL);
}

static int ask_purge(void)
{
    return weir_reactor_purge(weir, "t", on_count, NULL);
}

static int ask_pause(void)
{
    return weir_reactor_pause(weir, "t", false, on_code, NULL);
}

static int ask_set(void)
{
    return weir_reactor_set(weir, "t", settings, on_code, NULL, NULL);
}

static int ask_settings(void)
{
    return weir_reactor_settings(weir, "t", on_setting, NULL);
}

static int ask_delete_topic(void)
{
    return weir_reactor_delete_topic(weir, "gone", on_code, NULL);
}

static int (*const asks[])(void) = {
    ask_add,    ask_add_many,   ask_submit,   ask_call,        ask_kind,
    ask_show,   ask_dead,       ask_list,     ask_delete,      ask_stats,
    ask_topics, ask_reschedule, ask_requeue,  ask_purge_dead,  ask_purge,
    ask_pause,  ask_set,        ask_settings, ask_delete_topic};

/* --- the host --- */

static void open_again(const struct weir_options *options)
{
    weir = host_reactor(options);
    calls = 0;
}

/* Until the reactor is gone. Then a turn more: nothing of it may be left on the
 * loop. */
static void await_free(void)
{
    AWAIT(weir == NULL);
    ev_run(loop, EVRUN_NOWAIT);
}

static void on_first(int code, const char *id, void *arg)
{
    (void)id;
    (void)arg;
    EXPECT_INT(WEIR_OK, code);
    firsts++;
}

static void add_first(int64_t delay_ms)
{
    const struct weir_new_job job = {.id = "a", .delay_ms = delay_ms};

    EXPECT_INT(WEIR_OK,
               weir_reactor_add(weir, "t", &job, on_first, NULL, NULL));
    while (firsts == 0)
        ev_run(loop, EVRUN_ONCE);
}

TEST(every_answer_may_free_the_reactor_while_another_is_waited_for)
{
    host_open(NULL);
    add_first(60000);
    weir_reactor_free(weir);
    for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
        open_again(NULL);
        EXPECT_INT(WEIR_OK, asks[i]());
        EXPECT_INT(WEIR_OK, asks[i]());
        await_free();
        EXPECT_INT(2, calls);
    }
}

static enum weir_verdict run_done(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    return WEIR_DONE;
}

static enum weir_verdict run_many(void *self, struct weir_job *const *jobs,
                                  size_t count, enum weir_verdict *verdicts)
{
    (void)self;
    (void)jobs;
    (void)count;
    (void)verdicts;
    free_it();
    return WEIR_DONE;
}

static void serve(struct weir_topic_options options)
{
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "t", &options, NULL));
}

TEST(a_handler_of_many_jobs_may_free_the_reactor)
{
    host_open(NULL);
    serve((struct weir_topic_options){.run_batch = run_many});
    add_first(50);
    await_free();
    EXPECT_INT(1, calls);
}

static void on_any(int code, const char *id, void *arg)
{
    (void)id;
    (void)arg;
    EXPECT_TRUE(code == WEIR_OK || code == WEIR_ECANCELED);
    firsts++;
}

/* A job that is handed over may run before its add is answered. */
TEST(a_handler_may_free_the_reactor_that_adds_its_job)
{
    const struct weir_new_job job = {.id = "a"};

    host_open(NULL);
    serve((struct weir_topic_options){.run_batch = run_many});
    EXPECT_INT(WEIR_OK, weir_reactor_add(weir, "t", &job, on_any, NULL, NULL));
    await_free();
    EXPECT_INT(1, calls);
    EXPECT_INT(1, firsts);
}

TEST(a_topic_that_ran_out_may_free_the_reactor)
{
    host_open(NULL);
    serve((struct weir_topic_options){.run = run_done});
    weir_reactor_on_idle(weir, on_idle, NULL);
    await_free();
    EXPECT_INT(1, calls);
}

TEST(the_end_of_a_stop_may_free_the_reactor)
{
    host_open(NULL);
    serve((struct weir_topic_options){.run = run_done});
    add_first(0);
    weir_reactor_stop(weir, on_stopped, NULL);
    await_free();
    EXPECT_INT(1, calls);
}

static void on_connection(int code, const char *text, void *arg)
{
    bool *is_up = arg;

    (void)text;
    if (code == WEIR_OK)
        *is_up = true;
    else
        free_it();
}

TEST(a_connection_that_comes_up_or_breaks_may_free_the_reactor)
{
    bool is_up = false;

    host_open(&(struct weir_options){.on_connection = on_code});
    await_free();
    EXPECT_INT(1, calls);
    open_again(&(struct weir_options){.on_connection = on_connection,
                                      .on_connection_arg = &is_up});
    while (!is_up)
        ev_run(loop, EVRUN_ONCE);
    redis_stop(server);
    await_free();
    EXPECT_INT(1, calls);
}

static void on_log(enum weir_level level, const char *text, void *arg)
{
    (void)level;
    (void)text;
    (void)arg;
    if (weir != NULL)
        free_it();
}

TEST(a_log_line_may_free_the_reactor)
{
    host_open(&(struct weir_options){.log = on_log});
    await_free();
    EXPECT_INT(1, calls);
    open_again(
        &(struct weir_options){.log = on_log, .log_level = WEIR_LEVEL_WARN});
    serve((struct weir_topic_options){.run = run_done});
    redis_stop(server);
    await_free();
    EXPECT_INT(1, calls);
}
