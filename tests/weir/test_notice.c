/* SPDX-License-Identifier: MIT */
#include <weir/notice.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/oom.h"
#include "tests/weir/host.h"

/* A host that is told once: of room, of answers, of verdicts. */
enum { BODY = 256 * 1024, MOST = 1000 };

static char told[64]; /* a letter for each notice, in their order */
static int codes[64], answers, failed, runs;

/* `arg` is its letter. */
static void tell(int code, void *arg)
{
    size_t len = strlen(told);

    EXPECT_TRUE(len + 1 < sizeof(told));
    told[len] = *(const char *)arg;
    codes[len] = code;
}

#define WHEN(what, ...) \
    EXPECT_INT(WEIR_OK, weir_reactor_when_##what(weir, __VA_ARGS__))

/* Letters for `tell`, which are not constants there. */
static char letters[] = "abcdef";
#define A (letters + 0)
#define B (letters + 1)
#define C (letters + 2)
#define D (letters + 3)

static void open_counting(const struct weir_options *options)
{
    host_open(options);
    EXPECT_INT(WEIR_OK, weir_reactor_count_added(weir));
}

static void on_added(int code, const char *id, void *arg)
{
    (void)id;
    (void)arg;
    answers++;
    failed += code < 0;
}

static void on_many(const struct weir_added *added, size_t count, void *arg)
{
    (void)arg;
    for (size_t i = 0; i < count; i++)
        on_added(added[i].code, added[i].id, NULL);
}

static int add(const char *id, weir_added_fn fn)
{
    struct weir_new_job job = {.id = id, .delay_ms = 60000};

    return weir_reactor_add(weir, "orders", &job, fn, NULL, NULL);
}

static void add_many(const char *one, const char *other)
{
    struct weir_new_job jobs[2] = {{.id = one, .delay_ms = 60000},
                                   {.id = other, .delay_ms = 60000}};
    struct weir_new_jobs many = {"orders", jobs, 2, on_many, NULL};

    EXPECT_INT(WEIR_OK, weir_reactor_add_many(weir, &many, NULL));
}

static enum weir_verdict run(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    runs++;
    if (runs == 1)
        WHEN(settled, tell, A);
    return WEIR_DONE;
}

static void serve(weir_run_fn fn)
{
    struct weir_topic_options topic = {.run = fn};

    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "orders", &topic, NULL));
}

/* --- what was added ------------------------------------------------------- */

TEST(it_is_told_once_that_all_jobs_are_answered)
{
    open_counting(NULL);
    EXPECT_INT(WEIR_OK, add("1", NULL));
    EXPECT_INT(WEIR_OK, add("2", on_added));
    EXPECT_INT(WEIR_OK, add("1", on_added)); /* it is there */
    add_many("3", "4");
    WHEN(added, tell, A);
    EXPECT_STR("", told);
    AWAIT(told[0] != '\0');
    EXPECT_INT(4, answers); /* before */
    EXPECT_INT(WEIR_OK, codes[0]);
    WHEN(added, tell, B); /* nothing was added since */
    EXPECT_STR("a", told);
    AWAIT(told[1] != '\0');
    EXPECT_INT(WEIR_OK, codes[1]);
    host_close();
    EXPECT_STR("ab", told);
}

TEST(the_first_failure_among_the_jobs_is_told_and_no_later_one)
{
    struct weir_new_job bad = {.durability = "fsync"}; /* it cannot confirm */

    open_counting(NULL);
    EXPECT_INT(WEIR_OK, add("1", NULL));
    EXPECT_INT(WEIR_OK,
               weir_reactor_add(weir, "orders", &bad, NULL, NULL, NULL));
    WHEN(added, tell, A);
    EXPECT_INT(WEIR_OK, add("2", on_added));
    WHEN(added, tell, B);
    AWAIT(strlen(told) == 2);
    EXPECT_STR("ab", told);
    EXPECT_INT(WEIR_EINVAL, codes[0]);
    EXPECT_INT(WEIR_OK, codes[1]);
}

TEST(a_failure_among_many_that_were_submitted_is_told)
{
    struct weir_new_job jobs[2] = {{0}, {.durability = "fsync"}};
    struct weir_new_jobs many = {"orders", jobs, 2, on_many, NULL};

    open_counting(NULL);
    EXPECT_INT(WEIR_OK, weir_reactor_submit(weir, &many, NULL));
    AWAIT(answers == 2); /* by then it was taken */
    WHEN(added, tell, A);
    AWAIT(told[0] != '\0');
    EXPECT_INT(WEIR_EINVAL, codes[0]);
}

TEST(an_add_that_was_refused_at_once_is_not_waited_for)
{
    struct weir_new_job bad = {.delay_ms = -1};
    struct weir_new_jobs many = {"orders", &bad, 1, on_many, NULL};

    open_counting(NULL);
    EXPECT_INT(WEIR_EINVAL,
               weir_reactor_add(weir, "orders", &bad, on_added, NULL, NULL));
    EXPECT_INT(WEIR_EINVAL, weir_reactor_add_many(weir, &many, NULL));
    WHEN(added, tell, A);
    AWAIT(told[0] != '\0');
    EXPECT_INT(WEIR_OK, codes[0]);
    EXPECT_INT(0, answers);
}

TEST(adds_without_a_server_fail_and_that_is_told)
{
    struct weir_options options = {.request_timeout_ms = 100};

    open_counting(&options);
    redis_kill(server, SIGKILL);
    EXPECT_INT(WEIR_OK, add("1", NULL));
    WHEN(added, tell, A);
    AWAIT(told[0] != '\0');
    EXPECT_TRUE(codes[0] == WEIR_ECONN || codes[0] == WEIR_EUNKNOWN);
}

static int asked;

static void ask_again(int code, void *arg)
{
    struct weir_totals totals;

    (void)arg;
    asked++;
    weir_reactor_totals(weir, &totals); /* also at the end */
    if (code == WEIR_OK)
        WHEN(added, ask_again, NULL);
    else
        EXPECT_INT(WEIR_ECANCELED,
                   weir_reactor_when_added(weir, ask_again, NULL));
}

TEST(who_asks_again_in_the_callback_is_told_in_a_later_turn)
{
    int before;

    open_counting(NULL);
    serve(run);
    WHEN(added, ask_again, NULL);
    AWAIT(asked == 1);
    host_turn();
    EXPECT_TRUE(asked <= 2);
    before = asked;
    AWAIT(asked > before);
    before = asked;
    host_close();
    EXPECT_INT(before + 1, asked);
}

/* --- its end -------------------------------------------------------------- */

TEST(what_nobody_was_told_yet_is_canceled_with_the_reactor)
{
    open_counting(NULL);
    EXPECT_INT(WEIR_OK, add("1", on_added));
    WHEN(added, tell, A);
    WHEN(room, "orders", tell, B);
    WHEN(settled, tell, C);
    host_close();
    EXPECT_INT(1, answers);
    EXPECT_STR("abc", told);
    for (int i = 0; i < 3; i++)
        EXPECT_INT(WEIR_ECANCELED, codes[i]);
}

static void tell_and_free(int code, void *arg)
{
    tell(code, arg);
    weir_reactor_free(weir);
    EXPECT_INT(WEIR_ECANCELED, weir_reactor_count_added(weir));
    EXPECT_INT(WEIR_ECANCELED, weir_reactor_when_added(weir, tell, A));
    EXPECT_INT(WEIR_ECANCELED, weir_reactor_when_room(weir, "x", tell, A));
    EXPECT_INT(WEIR_ECANCELED, weir_reactor_when_settled(weir, tell, A));
}

TEST(the_reactor_may_be_freed_where_it_is_told)
{
    open_counting(NULL);
    WHEN(added, tell_and_free, A);
    WHEN(added, tell, B);
    WHEN(room, "orders", tell, C);
    WHEN(settled, tell, D);
    AWAIT(strlen(told) == 4);
    weir = NULL;
    EXPECT_STR("abcd", told);
    EXPECT_INT(WEIR_OK, codes[0]);
    for (int i = 1; i < 4; i++)
        EXPECT_INT(WEIR_ECANCELED, codes[i]);
}

static void tell_of_stop(void *arg)
{
    tell(WEIR_OK, arg);
}

TEST(a_reactor_that_stopped_still_tells)
{
    open_counting(NULL);
    weir_reactor_stop(weir, tell_of_stop, A);
    AWAIT(told[0] != '\0');
    EXPECT_INT(WEIR_OK, add("1", NULL));
    WHEN(added, tell, B);
    AWAIT(told[1] != '\0');
    WHEN(settled, tell, C);
    AWAIT(told[2] != '\0');
    WHEN(room, "orders", tell, D);
    AWAIT(told[3] != '\0');
    EXPECT_STR("abcd", told);
    for (int i = 0; i < 4; i++)
        EXPECT_INT(WEIR_OK, codes[i]);
}

TEST(what_was_added_before_the_count_is_not_waited_for)
{
    host_open(NULL);
    EXPECT_INT(WEIR_EINVAL, weir_reactor_when_added(weir, tell, A));
    EXPECT_INT(WEIR_OK, add("1", on_added));
    add_many("2", "3");
    EXPECT_INT(WEIR_OK, weir_reactor_count_added(weir));
    WHEN(added, tell, A);
    EXPECT_INT(WEIR_OK, add("4", NULL));
    EXPECT_INT(WEIR_OK, weir_reactor_count_added(weir)); /* changes nothing */
    WHEN(added, tell, B);
    AWAIT(strlen(told) == 2 && answers == 3);
    EXPECT_STR("ab", told);
}

TEST(what_cannot_be_asked_is_said_at_once)
{
    int rc = WEIR_ENOMEM;

    host_open(NULL);
    EXPECT_INT(WEIR_EINVAL, weir_reactor_when_room(weir, "no {t}", tell, A));
    oom_after(0);
    EXPECT_INT(WEIR_ENOMEM, weir_reactor_count_added(weir));
    oom_off();
    EXPECT_INT(WEIR_OK, weir_reactor_count_added(weir));
    oom_after(0);
    EXPECT_INT(WEIR_ENOMEM, weir_reactor_when_added(weir, tell, A));
    EXPECT_INT(WEIR_ENOMEM, weir_reactor_when_settled(weir, tell, A));
    for (int n = 0; rc == WEIR_ENOMEM; n++) {
        oom_after(n);
        rc = weir_reactor_when_room(weir, "orders", tell, B);
    }
    oom_off();
    AWAIT(told[0] != '\0');
    EXPECT_INT(WEIR_OK, rc);
    host_close();
    EXPECT_STR("b", told);
}

/* --- room ----------------------------------------------------------------- */

static uint8_t body[BODY];
static int refusals, sent, wanted;

static int add_large(const char *topic)
{
    struct weir_new_job job = {.body = {body, BODY}, .delay_ms = 60000};
    struct weir_new_job event = {.body = {body, BODY}, .group = "g"};

    return weir_reactor_add(weir, topic,
                            strcmp(topic, "events") == 0 ? &event : &job,
                            on_added, NULL, NULL);
}

/* One msgpack value. */
static void make_body(void)
{
    body[0] = 0xc6; /* bin 32 */
    body[1] = 0;
    body[2] = (BODY - 5) >> 16;
    body[3] = ((BODY - 5) >> 8) & 255;
    body[4] = (BODY - 5) & 255;
}

/* Add until the queue is full. */
static void fill(const char *topic)
{
    int rc = WEIR_OK;

    make_body();
    for (sent = 0; rc == WEIR_OK && sent < MOST; sent++)
        rc = add_large(topic);
    sent--;
    EXPECT_INT(WEIR_EFULL, rc);
}

/* Turns in which a notice that comes too early would come. */
static void turn_a_while(void)
{
    host_turns(100);
}

static void expect_room_of(const char *topic)
{
    redis_kill(server, SIGSTOP);
    fill(topic);
    WHEN(room, topic, tell, A);
    turn_a_while();
    EXPECT_STR("", told);
    redis_kill(server, SIGCONT);
    AWAIT(told[0] != '\0');
    EXPECT_INT(WEIR_OK, codes[0]);
    EXPECT_INT(WEIR_OK, add_large(topic));
    AWAIT(answers == sent + 1);
    EXPECT_STR("a", told);
}

static struct weir_options patient = {.request_timeout_ms = 120000};

TEST(there_is_room_again_when_the_server_has_answered)
{
    open_counting(&patient);
    expect_room_of("orders");
    EXPECT_INT(0, failed);
}

TEST(there_is_room_for_events_again)
{
    open_counting(&patient);
    EXPECT_INT(WEIR_OK, weir_reactor_declare(weir, "events", "bounded", NULL));
    expect_room_of("events");
}

/* A loop of adds as docs/embedding.md has it. */
static void add_rest(int code, void *arg)
{
    EXPECT_INT(WEIR_OK, code);
    while (sent < wanted) {
        int rc = add_large("orders");

        if (rc == WEIR_EFULL) {
            refusals++;
            WHEN(room, "orders", add_rest, arg);
            return;
        }
        EXPECT_INT(WEIR_OK, rc);
        sent++;
    }
    WHEN(added, tell, A);
}

TEST(a_loop_that_waits_for_room_adds_all_of_its_jobs)
{
    open_counting(&patient);
    make_body();
    wanted = 400; /* 100 MiB */
    add_rest(WEIR_OK, NULL);
    AWAIT(told[0] != '\0');
    EXPECT_INT(WEIR_OK, codes[0]);
    EXPECT_INT(wanted, answers);
    EXPECT_INT(0, failed);
    EXPECT_TRUE(refusals > 0);
}

TEST(without_a_server_there_is_room_when_the_jobs_have_failed)
{
    struct weir_options options = {.request_timeout_ms = 300};

    open_counting(&options);
    redis_kill(server, SIGKILL);
    fill("orders");
    WHEN(room, "orders", tell, A);
    AWAIT(told[0] != '\0');
    EXPECT_INT(WEIR_OK, codes[0]);
    EXPECT_TRUE(failed > 0);
}

/* --- verdicts ------------------------------------------------------------- */

static int add_due(void)
{
    struct weir_new_job job = {0};

    return weir_reactor_add(weir, "orders", &job, on_added, NULL, NULL);
}

TEST(the_verdict_of_the_handler_that_asks_is_settled_then)
{
    struct weir_totals totals;

    open_counting(NULL);
    serve(run);
    EXPECT_INT(WEIR_OK, add_due());
    AWAIT(told[0] != '\0');
    EXPECT_INT(WEIR_OK, codes[0]);
    weir_reactor_totals(weir, &totals);
    EXPECT_INT(1, totals.done);
    EXPECT_INT(0, totals.unanswered);
    EXPECT_STR("1", redis_text(server, "HGET weir:{orders}:meta settled"));
}

static enum weir_verdict run_and_stop_server(void *self, struct weir_job *job)
{
    redis_kill(server, SIGSTOP);
    return run(self, job);
}

TEST(while_the_server_does_not_answer_nothing_is_settled)
{
    open_counting(NULL);
    serve(run_and_stop_server);
    EXPECT_INT(WEIR_OK, add_due());
    AWAIT(runs == 1);
    turn_a_while();
    EXPECT_STR("", told);
    redis_kill(server, SIGCONT);
    AWAIT(told[0] != '\0');
    EXPECT_INT(WEIR_OK, codes[0]);
}

/* Each job adds the next, so that the topic is never at rest. */
static enum weir_verdict run_next(void *self, struct weir_job *job)
{
    struct weir_follow next = {0};

    EXPECT_INT(WEIR_OK, weir_job_follow(job, &next));
    return run(self, job);
}

TEST(jobs_that_keep_coming_do_not_hold_it_up)
{
    open_counting(NULL);
    serve(run_next);
    for (int i = 0; i < 200; i++)
        EXPECT_INT(WEIR_OK, add_due());
    AWAIT(told[0] != '\0');
    EXPECT_INT(WEIR_OK, codes[0]);
    WHEN(settled, tell, B);
    WHEN(settled, tell, C);
    AWAIT(strlen(told) == 3);
    EXPECT_STR("abc", told);
}

static struct weir_handle other;

/* The first job is retried, the second one ends later. */
static enum weir_verdict run_two(void *self, struct weir_job *job)
{
    (void)self;
    if (runs++ == 0) {
        WHEN(settled, tell, A);
        return weir_retry(job, "later");
    }
    other = weir_job_handle(job);
    return WEIR_PENDING;
}

static uint64_t unanswered(void)
{
    struct weir_totals totals;

    weir_reactor_totals(weir, &totals);
    return totals.unanswered;
}

/* There is as much settled as was asked for, but of what came later. */
TEST(a_verdict_that_waits_for_a_full_server_is_not_settled_by_another_one)
{
    open_counting(NULL);
    EXPECT_INT(WEIR_OK, add_due());
    EXPECT_INT(WEIR_OK, add_due());
    AWAIT(answers == 2);
    EXPECT_STR("OK", redis_text(server, "CONFIG SET maxmemory 1"));
    serve(run_two);
    AWAIT(runs == 2);
    EXPECT_STR("", told);
    EXPECT_INT(WEIR_OK, weir_complete(other, WEIR_DONE, 0, NULL));
    AWAIT(redis_int(server, "HEXISTS weir:{orders}:meta settled") == 1 &&
          unanswered() == 1);
    turn_a_while();
    EXPECT_STR("", told);
    EXPECT_INT(1, unanswered());
    EXPECT_STR("OK", redis_text(server, "CONFIG SET maxmemory 0"));
    AWAIT(told[0] != '\0');
    EXPECT_INT(WEIR_OK, codes[0]);
    EXPECT_INT(0, unanswered());
}
