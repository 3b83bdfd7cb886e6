/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/change.h>

#include "adapters/redis/store/kind.h"
#include "adapters/weir/facade.h"
#include "tests/weir/host.h"

/* A callback holds the loop while a job is in hand, on a real server. Whichever
 * callback it is, the job's lease is renewed, and the log names it. */

static int holds;                     /* callbacks that held the loop */
static int runs;                      /* that are pending */
static struct weir_handle handles[4]; /* of these */
static bool may_hold;                 /* the callback under test does */
static bool wants_line;      /* and until the log names it, which takes 1 s */
static char held[1000];      /* the first line about that, */
static atomic_bool is_named; /* once it is there */
static struct weir_loop *share;
static struct weir_redis *redis;

static void on_blocked(const struct weir_log_line *line, void *arg)
{
    (void)arg;
    if (line->event == NULL || strcmp(line->event, "held") != 0 || is_named)
        return;
    (void)snprintf(held, sizeof(held), "%s", line->text); /* cut */
    is_named = true;
}

static double lease_end(void)
{
    return strtod(redis_text(server, "EVAL %s 1 weir:{t}:lease",
                             "return redis.call('ZRANGE', KEYS[1], 0, 0, "
                             "'WITHSCORES')[2] or ''"),
                  NULL);
}

/* Until the lease was renewed twice. */
static void hold(void)
{
    struct patience patience = patience_start(30.);
    double end = lease_end();

    if (!may_hold || holds++ > 0)
        return;
    EXPECT_TRUE(end > 0.);
    for (int times = 0; times < 2 || (wants_line && !is_named);) {
        double next = lease_end();

        ev_sleep(.005);
        times += next > end;
        end = next;
        EXPECT_TRUE(!patience_ended(&patience));
    }
}

static void hold_cancel(struct weir_job *job, enum weir_cancel why, void *arg)
{
    (void)job;
    (void)why;
    (void)arg;
    hold();
}

static enum weir_verdict pend(void *self, struct weir_job *job)
{
    (void)self;
    EXPECT_TRUE(runs < 4);
    handles[runs++] = weir_job_handle(job);
    weir_job_on_cancel(job, hold_cancel, NULL);
    return WEIR_PENDING;
}

static enum weir_verdict finish(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    return WEIR_DONE;
}

static void hold_timer(void *arg)
{
    (void)arg;
    hold();
}

static void hold_watch(int fd, unsigned events, void *arg)
{
    char byte;

    (void)events;
    (void)arg;
    EXPECT_INT(1, read(fd, &byte, 1));
    hold();
}

static void hold_command(int code, struct weir_slice text, void *arg)
{
    (void)text;
    (void)arg;
    EXPECT_INT(WEIR_OK, code);
    hold();
}

static int open_table(const struct weir_open *open, void **ret_self)
{
    share = weir_open_loop(open);
    EXPECT_INT(WEIR_OK, weir_open_redis(open, NULL, &redis));
    *ret_self = NULL;
    hold();
    return WEIR_OK;
}

static void close_table(void *self)
{
    (void)self;
    weir_redis_close(redis);
    hold();
}

static int hold_flush(void *self)
{
    (void)self;
    hold();
    return 0;
}

static const struct weir_plugin table = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "keepsake",
    .open = open_table,
    .run = finish,
    .flush = hold_flush,
    .close = close_table,
};

static void serve_table(void)
{
    const struct weir_topic_options options = {.table = &table};

    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "p", &options, NULL));
}

static void add(const char *topic, weir_added_fn fn)
{
    struct weir_new_job job = {.id = "1"};

    if (strcmp(topic, "bounded") == 0)
        job.group = "g";
    EXPECT_INT(WEIR_OK, weir_reactor_add(weir, topic, &job, fn, NULL, NULL));
}

static void let_go(void)
{
    while (runs > 0)
        (void)weir_complete(handles[--runs], WEIR_DONE, 0, NULL);
}

/* A job is in hand, and the keeper renews as for a lease of 300 ms. */
static void begin(void)
{
    const struct weir_topic_options kept = {
        .run = pend,
        .options = {"lease=1h", "timeout=1h"},
    };

    host_open(&(struct weir_options){.blocked_log_line = on_blocked});
    test_at_end(let_go);
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "t", &kept, NULL));
    add("t", NULL);
    AWAIT(runs == 1);
    weir__keeper_note(((const struct weir__redis *)weir->store)->keeper, 300);
}

static void expect_kept(void)
{
    AWAIT(holds > 0);
}

static void expect_named(const char *who)
{
    AWAIT(holds > 0);
    EXPECT_CONTAINS(who, held);
    EXPECT_CONTAINS(" has held the loop for 1 s, and nothing else runs", held);
}

TEST(a_flush)
{
    begin();
    serve_table();
    may_hold = wants_line = true;
    add("p", NULL);
    expect_named("p: the flush of keepsake");
}

TEST(the_open_of_a_plugin)
{
    begin();
    may_hold = true;
    serve_table();
    expect_kept();
}

TEST(the_close_of_a_plugin)
{
    const struct weir_change change = {.topic = "p"}; /* is left */
    size_t at;

    begin();
    serve_table();
    may_hold = true;
    EXPECT_INT(WEIR_OK, weir_reactor_change(weir, &change, 1, &at, NULL));
    expect_kept();
}

TEST(a_timer_of_a_plugin)
{
    struct weir_timer *timer;

    begin();
    serve_table();
    may_hold = wants_line = true;
    timer = weir_timer_new(share, hold_timer, NULL);
    weir_timer_start(timer, 0);
    expect_named("p: a timer of keepsake");
    weir_timer_free(timer);
}

TEST(a_descriptor_of_a_plugin)
{
    struct weir_watch *watch;
    int ends[2];

    begin();
    serve_table();
    may_hold = true;
    EXPECT_INT(0, pipe(ends));
    EXPECT_INT(1, write(ends[1], "x", 1));
    watch = weir_watch_new(share, ends[0], hold_watch, NULL);
    weir_watch_set(watch, WEIR_FD_READ);
    expect_kept();
    weir_watch_free(watch);
}

TEST(a_command_of_a_plugin)
{
    const struct weir_slice words[] = {{(const uint8_t *)"GET", 3},
                                       {(const uint8_t *)"x", 1}};

    begin();
    serve_table();
    may_hold = true;
    EXPECT_INT(WEIR_OK, weir_redis_send(redis, words, 2, hold_command, NULL));
    expect_kept();
}

static void hold_added(int code, const char *id, void *arg)
{
    (void)id;
    (void)arg;
    EXPECT_INT(WEIR_OK, code);
    hold();
}

TEST(the_callback_of_an_add)
{
    begin();
    may_hold = wants_line = true;
    add("t2", hold_added);
    expect_named("t2: the callback of an add of the program");
}

TEST(the_callback_of_an_add_of_another_kind)
{
    static const char *const kinds[] = {"bounded", "concurrent"};

    begin();
    may_hold = true;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        holds = 0;
        EXPECT_INT(WEIR_OK,
                   weir_reactor_declare(weir, kinds[i], kinds[i], NULL));
        add(kinds[i], hold_added);
        expect_kept();
    }
}

static void hold_stats(int code, const struct weir_stats *stats, void *arg)
{
    (void)code;
    (void)stats;
    (void)arg;
    hold();
}

TEST(the_callback_of_a_request)
{
    begin();
    may_hold = true;
    EXPECT_INT(WEIR_OK, weir_reactor_stats(weir, "t", hold_stats, NULL));
    expect_kept();
}

static void hold_call(int code, struct weir_reactor *reactor, void *arg)
{
    (void)code;
    (void)reactor;
    (void)arg;
    hold();
}

TEST(a_call_of_another_thread)
{
    begin();
    may_hold = true;
    EXPECT_INT(WEIR_OK, weir_reactor_call(weir, hold_call, NULL));
    expect_kept();
}

static void hold_idle(const char *topic, void *arg)
{
    (void)arg;
    if (strcmp(topic, "quick") == 0)
        hold();
}

TEST(the_idle_callback)
{
    const struct weir_topic_options quick = {.run = finish};

    begin();
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "quick", &quick, NULL));
    may_hold = true;
    weir_reactor_on_idle(weir, hold_idle, NULL);
    add("quick", NULL);
    expect_kept();
}

TEST(a_cancel_callback)
{
    const struct weir_topic_options overdue = {
        .run = pend,
        .options = {"timeout=10ms"},
    };

    begin();
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "c", &overdue, NULL));
    may_hold = true;
    add("c", NULL);
    expect_kept();
}
