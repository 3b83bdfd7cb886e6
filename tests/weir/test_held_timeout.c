/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/store/keeper.h"
#include "adapters/redis/store/store.h"
#include "adapters/weir/facade.h"
#include "tests/weir/host.h"

/* A handler holds the loop for longer than its timeout, on a real server: what
 * became of the job is told as of any other one. */

static char lines[1000]; /* of topics */
static int runs, held_runs;

static void on_line(const struct weir_log_line *line, void *arg)
{
    size_t len = strlen(lines);

    (void)arg;
    if (line->topic != NULL && line->event != NULL &&
        strcmp(line->event, "held") != 0)
        (void)snprintf(lines + len, sizeof(lines) - len, "%s %s\n", line->event,
                       line->text);
}

static struct weir_totals totals_now(void)
{
    struct weir_totals totals;

    weir_reactor_totals(weir, &totals);
    return totals;
}

/* The run is settled elsewhere, and the store has heard of it. */
static void await_taken(void)
{
    const struct weir__redis *store =
        (const struct weir__redis *)weir->store; /* its first member */
    struct patience patience = patience_start(60.);

    while (!weir__keeper_has_taken(store->keeper)) {
        EXPECT_TRUE(!patience_ended(&patience));
        ev_sleep(.01);
    }
    EXPECT_INT(0, redis_int(server, "ZCARD weir:{t}:run"));
}

/* The first runs hold the loop until then. */
static enum weir_verdict hold(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    if (runs++ < held_runs)
        await_taken();
    return WEIR_DONE;
}

static void serve_held(int count, const char *retry)
{
    struct weir_topic_options options = {
        .run = hold,
        .options = {"timeout=100ms", retry, "retry_jitter=0"},
    };
    struct weir_new_job job = {.id = "1"};

    held_runs = count;
    host_open(&(struct weir_options){.log_line = on_line});
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "t", &options, NULL));
    EXPECT_INT(WEIR_OK, weir_reactor_add(weir, "t", &job, NULL, NULL, NULL));
}

TEST(its_death_is_a_line_and_counts)
{
    serve_held(1, "retry=none");
    AWAIT(totals_now().timed_out == 1);
    EXPECT_CONTAINS("dead t 1: dead: exhausted at attempt 1: timeout\n", lines);
    EXPECT_CONTAINS("late t 1: it ran longer than its timeout of 100 ms and "
                    "was settled as timed out; its verdict is ignored\n",
                    lines);
    EXPECT_INT(1, totals_now().dead);
    EXPECT_INT(0, totals_now().retried + totals_now().done);
}

TEST(its_retry_is_a_line_and_counts)
{
    serve_held(1, "retry=10ms 1h");
    AWAIT(totals_now().done == 1);
    EXPECT_CONTAINS("timeout t 1: retry 1 of 2 in 10ms: timeout\n", lines);
    EXPECT_INT(1, totals_now().timed_out);
    EXPECT_INT(1, totals_now().retried);
    EXPECT_INT(0, totals_now().dead);
}
