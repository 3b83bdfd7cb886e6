/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/lane.h"
#include "core/text.h"
#include "tests/core/reactor_fixture.h"
#include "tests/harness/oom.h"

/* Handlers that block, over a pool whose threads are the test: it begins an
 * thread run and lets it come back when it likes. */

static struct weir__thread_run *waiting[64], *begun[64];
static int waiting_count, begun_count;

static void start(struct weir__pool *port, struct weir__thread_run *thread_run)
{
    EXPECT_TRUE(port == pool && waiting_count < 64);
    waiting[waiting_count++] = thread_run;
}

static struct weir__thread_run *take(struct weir__thread_run **list, int *count,
                                     int at)
{
    struct weir__thread_run *thread_run = list[at];

    EXPECT_TRUE(at < *count);
    (*count)--;
    memmove(list + at, list + at + 1,
            (size_t)(*count - at) * sizeof(struct weir__thread_run *));
    return thread_run;
}

static int64_t recall(struct weir__pool *port,
                      struct weir__thread_run *thread_run)
{
    (void)port;
    for (int i = 0; i < waiting_count && thread_run->began_ns == 0; i++)
        if (waiting[i] == thread_run)
            (void)take(waiting, &waiting_count, i);
    return thread_run->began_ns;
}

static void cancel(struct weir__pool *port, struct weir__thread_run *thread_run)
{
    (void)port;
    thread_run->is_canceled = true;
}

static bool is_canceled(struct weir__pool *port,
                        const struct weir__thread_run *thread_run)
{
    (void)port;
    return thread_run->is_canceled;
}

static char said[200];

static void log_line(struct weir__pool *port,
                     struct weir__thread_run *thread_run, enum weir_level level,
                     const char *text)
{
    (void)port;
    (void)thread_run;
    (void)level;
    (void)snprintf(said, sizeof(said), "%s", text);
}

static struct weir__pool two_threads = {2,      start,       recall,
                                        cancel, is_canceled, log_line};

static void open_blocking(const char *ladder)
{
    struct weir__lane_options lane = lane_options(ladder);

    pool = &two_threads;
    lane.blocks = true;
    lane.flush = NULL;
    open_reactor(&lane);
}

/* A thread begins with the oldest one. */
static void begin(void)
{
    struct weir__thread_run *thread_run = take(waiting, &waiting_count, 0);

    thread_run->began_ns = mem_store_clock(store);
    begun[begun_count++] = thread_run;
}

/* The handler of the oldest one that has begun runs and comes back. */
static void come_back(void)
{
    struct weir__thread_run *thread_run = take(begun, &begun_count, 0);

    weir__thread_run_do(thread_run);
    weir__reactor_returned(reactor, thread_run);
}

static void finish_all(void)
{
    while (waiting_count > 0 || begun_count > 0) {
        if (begun_count == 0)
            begin();
        come_back();
        (void)settle_down();
    }
}

TEST(a_blocking_run_is_done_when_its_thread_came_back)
{
    open_blocking("1s");
    add_many(1);
    (void)settle_down();
    EXPECT_INT(0, runs);
    EXPECT_INT(1, waiting_count);
    EXPECT_STR("running", mem_store_job(store, "j0")->state);
    begin();
    come_back();
    (void)settle_down();
    EXPECT_INT(1, runs);
    EXPECT_STR("j0 ", order);
    EXPECT_STR("gone", mem_store_job(store, "j0")->state);
}

/* Each allocation of the start fails in turn. */
TEST(a_run_for_which_there_is_no_memory_loses_no_attempt)
{
    int snoozed = 0;

    for (int n = 0; n < 8; n++) {
        open_blocking("none");
        add_many(1);
        oom_once_after(n);
        (void)settle_down();
        oom_off();
        EXPECT_TRUE(strcmp("dead", mem_store_job(store, "j0")->state) != 0);
        if (waiting_count == 0) {
            snoozed++;
            EXPECT_INT(0, mem_store_job(store, "j0")->counters.attempt);
        }
        finish_all();
        close_reactor();
    }
    EXPECT_TRUE(snoozed > 0);
}

static enum weir_verdict mixed(struct weir_job *job)
{
    if (weir_job_id(job).ptr[1] == '0')
        return weir_retry_after(job, 2500, "later");
    return weir_fail(job, "never");
}

TEST(its_verdict_brings_delay_and_reason)
{
    open_blocking("1s");
    behaviour = mixed;
    add_many(2);
    (void)settle_down();
    finish_all();
    EXPECT_STR("waiting", mem_store_job(store, "j0")->state);
    EXPECT_INT(mem_store_now_ms(store) + 2500,
               mem_store_job(store, "j0")->due_ms);
    EXPECT_STR("later", mem_store_job(store, "j0")->error);
    EXPECT_STR("dead", mem_store_job(store, "j1")->state);
    EXPECT_STR("never", mem_store_job(store, "j1")->error);
}

TEST(no_more_thread_runs_are_away_than_there_are_threads)
{
    open_blocking("1s");
    add_many(5);
    (void)settle_down();
    EXPECT_INT(2, waiting_count);
    begin();
    begin();
    (void)settle_down();
    EXPECT_INT(0, waiting_count);
    come_back();
    (void)settle_down();
    EXPECT_INT(1, waiting_count);
    finish_all();
    EXPECT_INT(5, runs);
}

static bool was_canceled;

static enum weir_verdict look(struct weir_job *job)
{
    was_canceled = weir_job_canceled(job);
    EXPECT_MEM("j0", 2, weir_job_id(job).ptr, weir_job_id(job).len);
    return weir_fail(job, "too late");
}

TEST(a_run_that_times_out_is_retried_while_its_thread_goes_on)
{
    open_blocking("10s");
    behaviour = look;
    add_many(1);
    (void)settle_down();
    begin();
    pass(30001);
    EXPECT_STR("waiting", mem_store_job(store, "j0")->state);
    EXPECT_STR("timeout", mem_store_job(store, "j0")->error);
    EXPECT_TRUE(!weir__reactor_drop_pending(reactor)); /* no handle is held */
    come_back();
    (void)settle_down();
    EXPECT_TRUE(was_canceled);
    EXPECT_CONTAINS("its verdict is ignored", last_log);
    EXPECT_STR("waiting", mem_store_job(store, "j0")->state);
    EXPECT_INT(1, mem_store_job(store, "j0")->counters.timeouts);
}

TEST(a_thread_that_does_not_come_back_keeps_its_place)
{
    open_blocking("1s");
    add_many(4);
    (void)settle_down();
    begin();
    begin();
    pass(30500);
    EXPECT_INT(0, waiting_count);
    come_back();
    (void)settle_down();
    EXPECT_INT(1, waiting_count);
    finish_all();
    pass(31000);
    finish_all();
}

TEST(what_no_thread_began_with_goes_back_uncounted)
{
    open_blocking("1s");
    add_many(1);
    (void)settle_down();
    EXPECT_INT(1, waiting_count);
    mem_store_advance(store, 30001);
    (void)turn();
    EXPECT_INT(0, waiting_count);
    (void)settle_down();
    EXPECT_INT(1, waiting_count); /* claimed once more */
    finish_all();
    EXPECT_INT(1, runs);
    EXPECT_STR("gone", mem_store_job(store, "j0")->state);
    EXPECT_INT(0, mem_store_job(store, "j0")->counters.timeouts);
}

TEST(the_timeout_counts_from_when_a_thread_began)
{
    open_blocking("1s");
    add_many(1);
    (void)settle_down();
    pass(20000);
    begin();
    pass(20000);
    EXPECT_STR("running", mem_store_job(store, "j0")->state);
    pass(10100);
    EXPECT_STR("timeout", mem_store_job(store, "j0")->error);
    come_back();
}

static enum weir_verdict pend(struct weir_job *job)
{
    EXPECT_INT(0, weir_job_handle(job).ticket);
    weir_job_log(job, WEIR_LEVEL_INFO, "hello");
    EXPECT_STR("hello", said);
    return WEIR_PENDING;
}

TEST(a_blocking_run_cannot_be_pending_and_logs_through_the_pool)
{
    open_blocking("1s");
    behaviour = pend;
    add_many(1);
    (void)settle_down();
    begin();
    come_back();
    (void)settle_down();
    EXPECT_CONTAINS("cannot be pending", said);
    EXPECT_STR("waiting", mem_store_job(store, "j0")->state);
    EXPECT_STR("pending in a thread", mem_store_job(store, "j0")->error);
}

static uint64_t counted;

static void on_counter(const char *name, uint64_t value, void *arg)
{
    (void)arg;
    if (name != NULL && strcmp(name, "sent") == 0)
        counted = value;
}

static uint64_t count_now(void)
{
    counted = 0;
    EXPECT_INT(WEIR_OK,
               weir__reactor_counters(reactor, weir__slice_of("orders", 6),
                                      on_counter, NULL));
    return counted;
}

static enum weir_verdict count_sent(struct weir_job *job)
{
    weir_job_count(job, "sent", 3);
    weir_job_count(job, "Sent", 1);
    EXPECT_INT(0, count_now()); /* the loop does not see it yet */
    return WEIR_DONE;
}

TEST(what_a_thread_counts_shows_when_its_run_returns_also_too_late)
{
    open_blocking("1s");
    behaviour = count_sent;
    add_many(1);
    (void)settle_down();
    begin();
    pass(31000); /* beyond its timeout */
    come_back();
    EXPECT_INT(3, count_now());
}

TEST(what_a_thread_counts_in_vain_is_logged_on_the_loop)
{
    open_blocking("1s");
    behaviour = count_sent;
    last_log[0] = '\0';
    add_many(1);
    (void)settle_down();
    begin();
    come_back();
    EXPECT_INT(3, count_now());
    EXPECT_CONTAINS("counter \"Sent\" is ignored", last_log);
}

TEST(a_lost_lease_tells_the_thread)
{
    open_blocking("1s");
    behaviour = look;
    add_many(1);
    (void)settle_down();
    begin();
    mem_store_lose(store, "j0");
    (void)turn();
    come_back();
    EXPECT_TRUE(was_canceled);
}

TEST(a_stop_waits_for_threads_unless_told_otherwise)
{
    open_blocking("1s");
    add_many(2);
    (void)settle_down();
    begin();
    weir__reactor_stop(reactor, on_stopped, NULL);
    (void)settle_down();
    EXPECT_INT(0, stops);
    weir__reactor_abort(reactor);
    (void)settle_down();
    EXPECT_INT(1, stops);
    EXPECT_INT(0, waiting_count); /* it was taken back */
    EXPECT_STR("waiting", mem_store_job(store, "j0")->state);
    come_back();
}

TEST(without_a_pool_the_handler_runs_on_the_loop)
{
    struct weir__lane_options lane = lane_options("1s");

    lane.blocks = true;
    lane.flush = NULL;
    open_reactor(&lane);
    add_many(3);
    (void)settle_down();
    EXPECT_INT(3, runs);
}

/* --- changes of who serves ------------------------------------------------ */

static int ended;

static void on_ended(const char *topic, void *self, void *owner, void *arg)
{
    EXPECT_STR("orders", topic);
    EXPECT_TRUE(self == NULL && owner == NULL && arg == NULL);
    ended++;
}

TEST(a_handler_that_was_replaced_ends_when_its_threads_are_back)
{
    struct weir__lane_options lane = lane_options("1s");
    struct weir__plan *plan;

    open_blocking("1s");
    weir__reactor_on_ended(reactor, on_ended, NULL);
    add_many(1);
    (void)settle_down();
    begin();
    EXPECT_INT(WEIR_OK, weir__reactor_plan(reactor, &lane, &plan));
    weir__plan_commit(plan); /* one that does not block */
    mem_store_add(store, "new", 0, NULL, true);
    (void)settle_down();
    EXPECT_STR("gone", mem_store_job(store, "new")->state);
    EXPECT_INT(0, ended);
    come_back();
    (void)settle_down();
    EXPECT_STR("gone", mem_store_job(store, "j0")->state);
    EXPECT_INT(1, ended);
}

TEST(a_topic_is_left_when_the_thread_of_a_run_that_timed_out_is_back)
{
    struct weir__lane_options lane = lane_options("1h");

    pool = &two_threads;
    lane.blocks = true;
    lane.flush = NULL;
    lane.options.timeout = 2000;
    open_reactor(&lane);
    weir__reactor_on_ended(reactor, on_ended, NULL);
    add_many(1);
    (void)settle_down();
    begin();
    weir__reactor_unserve(reactor, weir__slice_str("orders"));
    pass(60000);
    EXPECT_STR("waiting", mem_store_job(store, "j0")->state);
    EXPECT_INT(0, ended);
    come_back();
    (void)settle_down();
    EXPECT_INT(1, ended);
}
