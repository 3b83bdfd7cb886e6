/* SPDX-License-Identifier: MIT */
#include <weir/change.h>

#include <signal.h>
#include <string.h>

#include "tests/weir/take_fixture.h"

/* Takes beside what else touches their topics. */

/* --- serving ------------------------------------------------------------- */

static int runs, ends, idles;

static enum weir_verdict run(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    runs++;
    return WEIR_DONE;
}

static void on_ended(const char *topic, void *self, void *arg)
{
    (void)topic;
    (void)self;
    (void)arg;
    ends++;
}

static void on_idle(const char *topic, void *arg)
{
    (void)topic;
    (void)arg;
    idles++;
}

static const struct weir_topic_options served = {.run = run};

static int change(const struct weir_topic_options *options,
                  struct weir_error *err)
{
    const struct weir_change one = {.topic = "orders", .options = options};
    size_t at;

    return weir_reactor_change(weir, &one, 1, &at, err);
}

TEST(a_topic_is_not_served_and_taken_from_at_once)
{
    struct weir_error err = {0};
    const struct weir_take_options options = {.fn = on_taken};

    host_open(NULL);
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    EXPECT_INT(WEIR_EEXISTS, weir_reactor_serve(weir, "orders", &served, &err));
    EXPECT_CONTAINS("a call of weir_reactor_take waits", err.text);
    EXPECT_INT(WEIR_EEXISTS, change(&served, &err));
    EXPECT_INT(WEIR_EEXISTS, change(NULL, &err));
    add("a");
    AWAIT(answers == 1);
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "orders", &served, &err));
    EXPECT_INT(WEIR_EEXISTS, weir_reactor_take(weir, "orders", &options, &err));
    EXPECT_CONTAINS("served here: its handler gets the jobs", err.text);
    EXPECT_INT(WEIR_OK, change(NULL, &err));
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 0));
    AWAIT(answers == 2);
    settle(0, WEIR_DONE);
    expect_settled("OK ");
}

TEST(takes_that_are_out_stay_so_while_a_handler_serves_their_topic)
{
    struct weir_error err = {0};

    host_open(NULL);
    weir_reactor_on_ended(weir, on_ended, NULL);
    weir_reactor_on_idle(weir, on_idle, NULL);
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    AWAIT(redis_int(server, "ZCARD weir:{orders}:idle") == 1);
    for (int i = 0; i < 5; i++)
        host_turn();
    EXPECT_INT(0, idles); /* that is said of handlers */
    add("a");
    add("b");
    AWAIT(take_count == 1);
    take(1, 1);
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "orders", &served, &err));
    add("c");
    AWAIT(runs == 1);
    settle(0, WEIR_DONE);
    expect_settled("OK ");
    EXPECT_INT(WEIR_OK, change(NULL, &err));
    settle(1, WEIR_DONE);
    expect_settled("OK OK ");
    AWAIT(ends == 1); /* of the handler, and none of the takes */
    take(1, 0);
    take(1, 0);
    EXPECT_INT(1, ends);
    EXPECT_INT(3, look()->done_total);
}

TEST(what_came_beside_goes_back_for_others)
{
    struct weir_reactor *other;

    host_open(NULL);
    other = host_reactor(NULL);
    for (int i = 0; i < 20; i++)
        add(NULL);
    take(5, 5);
    EXPECT_INT(WEIR_OK, weir_reactor_serve(other, "orders", &served, NULL));
    AWAIT(runs == 15);
    for (size_t i = 0; i < 5; i++)
        give_back(i);
    AWAIT(runs == 20);
    expect_settled("OK OK OK OK OK ");
    weir_reactor_free(other);
}

/* A waiting call that is over does not swallow wake-ups of others. */
TEST(a_call_that_is_over_leaves_new_jobs_to_workers)
{
    struct weir_reactor *other;

    host_open(NULL);
    take(1, 0);
    other = host_reactor(NULL);
    EXPECT_INT(WEIR_OK, weir_reactor_serve(other, "orders", &served, NULL));
    AWAIT(redis_int(server, "ZCARD weir:{orders}:idle") == 1);
    for (int i = 0; i < 20; i++) {
        add(NULL);
        AWAIT(runs == i + 1);
        AWAIT(redis_int(server, "ZCARD weir:{orders}:idle") == 1);
        take(1, 0);
    }
    weir_reactor_free(other);
}

static void take_again(int code, struct weir_take *const *taken, size_t count,
                       void *arg)
{
    const struct weir_take_options options = {
        .limit = 3, .wait_ms = 3600000, .fn = take_again};
    const struct weir_settlement how = {.fn = on_settled};

    on_taken(code, taken, count, arg);
    for (size_t i = 0; i < count; i++)
        EXPECT_INT(WEIR_OK, weir_take_settle(taken[i], &how));
    if (code == WEIR_OK)
        EXPECT_INT(WEIR_OK, weir_reactor_take(weir, "orders", &options, NULL));
}

TEST(a_host_takes_again_where_it_was_answered)
{
    host_open(NULL);
    for (int i = 0; i < 20; i++)
        add(NULL);
    take_again(WEIR_OK, NULL, 0, NULL);
    AWAIT(settled_count == 20);
    for (int i = 0; i < 20; i++)
        add(NULL);
    AWAIT(settled_count == 40);
    EXPECT_INT(40, look()->done_total);
    weir_reactor_stop(weir, NULL, NULL);
    AWAIT(answer_code == WEIR_ECANCELED);
}

/* --- kinds --------------------------------------------------------------- */

static void expect_kind(const char *kind, const char *other, bool has_token)
{
    static const char topic[] = "orders";
    char token[WEIR_TAKE_TOKEN];
    const char *const with[] = {kind, other, NULL};

    take_with = with;
    host_open(NULL);
    EXPECT_INT(WEIR_OK,
               weir_reactor_declare(weir, topic, strchr(kind, '=') + 1, NULL));
    for (int i = 0; i < 3; i++)
        add_to(topic, NULL);
    while (take_count < 3) {
        int before = answers;

        EXPECT_INT(WEIR_OK, call_take(weir, topic, 5, 3600000));
        AWAIT(answers > before);
        EXPECT_INT(WEIR_OK, answer_code);
    }
    EXPECT_INT(has_token ? WEIR_OK : WEIR_EKIND,
               weir_take_token(takes[0], token));
    if (!has_token)
        EXPECT_INT(WEIR_EKIND, weir_take_let_go(takes[0]));
    settle(0, WEIR_DONE);
    settle(1, WEIR_DONE);
    give_back(2);
    expect_settled("OK OK OK ");
    take_count = 0;
    EXPECT_INT(WEIR_OK, call_take(weir, topic, 5, 3600000));
    AWAIT(take_count == 1);
    settle(0, WEIR_FAIL);
    expect_settled("OK OK OK OK ");
}

TEST(delay_topics_are_taken_from)
{
    expect_kind("kind=delay", NULL, true);
}

TEST(lists_are_taken_from)
{
    expect_kind("kind=list", NULL, false);
}

TEST(streams_are_taken_from)
{
    expect_kind("kind=stream", NULL, false);
}

TEST(sync_topics_are_taken_from)
{
    expect_kind("kind=sync", "consumers=8", false);
}

TEST(concurrent_topics_are_taken_from)
{
    expect_kind("kind=concurrent", "consumers=8", false);
}

TEST(events_of_a_group_are_told_when_the_last_of_them_is_settled)
{
    host_open(NULL);
    EXPECT_INT(WEIR_OK, weir_reactor_declare(weir, "events", "bounded", NULL));
    add_to("events", NULL);
    add_to("events", NULL);
    EXPECT_INT(WEIR_OK, call_take(weir, "events", 5, 3600000));
    AWAIT(answers == 1);
    EXPECT_INT(2, answer_count);
    EXPECT_INT(WEIR_EKIND, weir_take_let_go(takes[0]));
    settle(0, WEIR_DONE);
    for (int i = 0; i < 5; i++)
        host_turn();
    EXPECT_STR("", settled);
    settle(1, WEIR_RETRY);
    expect_settled("OK OK ");
}

TEST(events_whose_lease_is_lost_are_refused)
{
    host_open(NULL);
    EXPECT_INT(WEIR_OK, weir_reactor_declare(weir, "events", "bounded", NULL));
    add_to("events", NULL);
    add_to("events", NULL);
    EXPECT_INT(WEIR_OK, call_take(weir, "events", 5, 3600000));
    AWAIT(answers == 1);
    (void)redis_text(server, "DEL weir:{events}:out");
    settle(0, WEIR_DONE);
    settle(1, WEIR_DONE);
    expect_settled("WEIR_ENOTFOUND WEIR_ENOTFOUND ");
}

TEST(events_are_retried_on_a_server_that_is_full)
{
    host_open(NULL);
    EXPECT_INT(WEIR_OK, weir_reactor_declare(weir, "events", "bounded", NULL));
    add_to("events", NULL);
    add_to("events", NULL);
    EXPECT_INT(WEIR_OK, call_take(weir, "events", 5, 3600000));
    AWAIT(answers == 1);
    EXPECT_STR("OK", redis_text(server, "CONFIG SET maxmemory 1"));
    settle(0, WEIR_DONE);
    settle(1, WEIR_RETRY);
    expect_settled("OK OK ");
    EXPECT_STR("1", redis_text(server, "HGET weir:{events}:meta waiting"));
}

/* --- pause, purge --------------------------------------------------------- */

static void on_code(int code, const char *text, void *arg)
{
    (void)text;
    EXPECT_INT(WEIR_OK, code);
    *(bool *)arg = true;
}

static void pause(bool is_paused)
{
    bool is_done = false;

    EXPECT_INT(WEIR_OK, weir_reactor_pause(weir, "orders", is_paused, on_code,
                                           &is_done));
    AWAIT(is_done);
}

TEST(from_a_paused_topic_nothing_is_taken_and_takes_are_settled)
{
    host_open(NULL);
    add("a");
    add("b");
    take(1, 1);
    pause(true);
    take(1, 0);
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    settle(0, WEIR_RETRY);
    expect_settled("OK ");
    EXPECT_STR("ready", state_of("b"));
    pause(false);
    AWAIT(take_count == 2);
    EXPECT_STR("a b ", ids);
}

static void on_purged(int code, uint64_t count, void *arg)
{
    EXPECT_INT(WEIR_OK, code);
    *(uint64_t *)arg = count;
}

TEST(takes_of_a_topic_that_was_purged_are_refused)
{
    uint64_t purged = 0;

    host_open(NULL);
    add("a");
    add("b");
    take(2, 2);
    EXPECT_INT(WEIR_OK, weir_reactor_purge(weir, "orders", on_purged, &purged));
    AWAIT(purged == 2);
    settle(0, WEIR_DONE);
    settle(1, WEIR_RETRY);
    AWAIT(settled_count == 2);
    EXPECT_STR("WEIR_ENOTFOUND WEIR_ENOTFOUND ", settled);
    EXPECT_INT(0, look()->scheduled + look()->running);
}

static void on_kept(int code, const char *text, void *arg)
{
    (void)text;
    EXPECT_INT(WEIR_EEXISTS, code);
    *(bool *)arg = true;
}

TEST(a_topic_is_not_deleted_while_a_call_waits)
{
    bool is_told = false;

    host_open(NULL);
    EXPECT_INT(WEIR_OK, weir_reactor_declare(weir, "orders", "delay", NULL));
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    AWAIT(redis_int(server, "ZCARD weir:{orders}:idle") == 1);
    EXPECT_INT(WEIR_OK,
               weir_reactor_delete_topic(weir, "orders", on_kept, &is_told));
    AWAIT(is_told);
    add("a");
    AWAIT(take_count == 1);
}

/* Jobs of one turn share a pack, in which each is due at a time of its own. */
TEST(jobs_of_a_mixed_pack_are_settled_one_by_one)
{
    host_open(NULL);
    for (int i = 0; i < 6; i++) {
        struct weir_new_job job = {.delay_ms = 1 + 20 * i};

        EXPECT_INT(WEIR_OK,
                   weir_reactor_add(weir, "orders", &job, NULL, NULL, NULL));
    }
    AWAIT(look()->ready == 6);
    while (take_count < 6) {
        int before = answers;

        EXPECT_INT(WEIR_OK, call_take(weir, "orders", 6, 3600000));
        AWAIT(answers > before);
    }
    give_back(3);
    settle(0, WEIR_DONE);
    settle(5, WEIR_RETRY);
    settle(2, WEIR_DONE);
    settle(1, WEIR_FAIL);
    expect_settled("OK OK OK OK OK ");
    EXPECT_INT(1, look()->running);
    EXPECT_INT(1, look()->ready);
    EXPECT_INT(1, look()->scheduled);
    EXPECT_INT(1, look()->dead);
    settle(4, WEIR_DONE);
    expect_settled("OK OK OK OK OK OK ");
    EXPECT_INT(3, look()->done_total);
}

/* --- follow-ups ----------------------------------------------------------- */

TEST(follow_ups_come_with_the_verdict_and_not_with_a_job_that_goes_back)
{
    const struct weir_follow here = {.id = "here", .delay_ms = 3600000};
    const struct weir_follow there = {.id = "there"};
    const struct weir_follow never = {.id = "never", .delay_ms = 3600000};

    host_open(NULL);
    add("a");
    add("b");
    take(2, 2);
    EXPECT_INT(WEIR_OK, weir_job_follow(weir_take_job(takes[0]), &here));
    EXPECT_INT(WEIR_OK,
               weir_job_follow_to(weir_take_job(takes[0]), "mails", &there));
    EXPECT_INT(WEIR_OK, weir_job_follow(weir_take_job(takes[1]), &never));
    EXPECT_STR("none", state_of("here"));
    settle(0, WEIR_RETRY);
    give_back(1);
    expect_settled("OK OK ");
    EXPECT_STR("scheduled", state_of("here"));
    EXPECT_STR("none", state_of("never"));
    EXPECT_INT(WEIR_OK, call_take(weir, "mails", 1, 3600000));
    AWAIT(take_count == 3);
    EXPECT_STR("a b there ", ids);
}

/* --- servers -------------------------------------------------------------- */

TEST(a_verdict_waits_for_a_server_that_is_full)
{
    host_open(NULL);
    add("a");
    add("b");
    take(2, 2);
    EXPECT_STR("OK", redis_text(server, "CONFIG SET maxmemory 1"));
    settle(0, WEIR_RETRY);
    settle(1, WEIR_RETRY);
    AWAIT(redis_calls(server, "evalsha") > 0 &&
          strcmp(state_of("a"), "running") == 0);
    for (int i = 0; i < 20; i++)
        host_turn();
    EXPECT_STR("", settled);
    EXPECT_STR("OK", redis_text(server, "CONFIG SET maxmemory 0"));
    expect_settled("OK OK ");
    EXPECT_STR("scheduled", state_of("a"));
    EXPECT_STR("scheduled", state_of("b"));
}

TEST(a_full_server_is_taken_from_all_the_same)
{
    host_open(NULL);
    add("a");
    EXPECT_STR("OK", redis_text(server, "CONFIG SET maxmemory 1"));
    take(1, 1);
    settle(0, WEIR_DONE);
    expect_settled("OK ");
}

TEST(a_server_that_was_killed_knows_of_what_was_taken)
{
    const struct redis_options durable = {
        .appendonly = true,
        .args = (const char *const[]){"--appendfsync", "always", NULL},
    };

    host_open_on(&durable);
    add("a");
    add("b");
    take(2, 2);
    redis_kill(server, SIGKILL);
    settle(0, WEIR_DONE);
    redis_restart(server);
    settle(1, WEIR_RETRY);
    expect_settled("OK OK ");
    EXPECT_STR("none", state_of("a"));
    EXPECT_STR("scheduled", state_of("b"));
}

/* The other one is what is left of a worker that died. */
TEST(what_a_dead_worker_had_is_taken_with_its_crash_and_lost_by_that_one)
{
    struct weir_reactor *other;

    take_with = brief_lease;
    host_open(NULL);
    other = host_reactor(NULL);
    for (int i = 0; i < 3; i++)
        add(NULL);
    EXPECT_INT(WEIR_OK, call_take(other, "orders", 3, 3600000));
    AWAIT(take_count == 3);
    weir_reactor_free(other);
    EXPECT_INT(0, strncmp(strchr(lost, ':'), ":1 ", 3));
    take_count = 0;
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 3, 3600000));
    AWAIT(take_count > 0);
    while (take_count < 3) {
        int before = answers;

        EXPECT_INT(WEIR_OK, call_take(weir, "orders", 3, 3600000));
        AWAIT(answers > before);
    }
    for (size_t i = 0; i < 3; i++) {
        EXPECT_INT(1, weir_job_counters(weir_take_job(takes[i])).crashes);
        settle(i, WEIR_DONE);
    }
    expect_settled("OK OK OK ");
    EXPECT_INT(3, look()->done_total);
}

/* --- suspects ------------------------------------------------------------- */

/* A worker takes both jobs of "orders" and dies with them. */
static void die_with_both(void)
{
    struct weir_reactor *other = host_reactor(NULL);

    take_count = 0;
    while (take_count < 2) {
        int before = answers;

        EXPECT_INT(WEIR_OK, call_take(other, "orders", 2, 3600000));
        AWAIT(answers > before);
    }
    weir_reactor_free(other);
    take_count = 0;
    ids[0] = lost[0] = '\0';
}

/* Each of the two is blamed once: from then on it runs alone. */
static void open_with_blamed(const struct weir_options *options)
{
    take_with = brief_lease;
    host_open(options);
    add("a");
    add("b");
    die_with_both();
    die_with_both();
    take_with = NULL; /* nobody's lease ends any more */
}

TEST(who_was_blamed_comes_alone_and_at_once)
{
    open_with_blamed(NULL);
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 2, 3600000));
    AWAIT(answer_count == 1 && take_count == 1);
    EXPECT_INT(WEIR_OK, answer_code);
    settle(0, WEIR_DONE);
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 2, 3600000));
    AWAIT(take_count == 2);
    settle(1, WEIR_DONE);
    expect_settled("OK OK ");
    EXPECT_STR("", lost);
    EXPECT_INT(2, look()->done_total);
}

TEST(a_call_that_waits_for_no_time_does_not_wait_for_who_runs_alone)
{
    const struct weir_options options = {.request_timeout_ms = 3600000};

    open_with_blamed(&options);
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    AWAIT(take_count == 1);
    take(1, 0);
    settle(0, WEIR_DONE);
    expect_settled("OK ");
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    AWAIT(take_count == 2);
    settle(1, WEIR_DONE);
    expect_settled("OK OK ");
}

TEST(a_call_that_waits_for_who_runs_alone_has_the_next_one_then)
{
    open_with_blamed(NULL);
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    AWAIT(take_count == 1);
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    for (int i = 0; i < 50; i++)
        host_turn();
    EXPECT_INT(1, take_count);
    settle(0, WEIR_DONE);
    AWAIT(take_count == 2);
    settle(1, WEIR_DONE);
    expect_settled("OK OK ");
    EXPECT_STR("", lost);
}

/* --- tokens --------------------------------------------------------------- */

TEST(a_take_that_was_let_go_stays_taken_until_its_lease_ends)
{
    char token[WEIR_TAKE_TOKEN];

    take_with = brief_lease;
    host_open(NULL);
    add("a");
    take(1, 1);
    EXPECT_INT(WEIR_OK, weir_take_token(takes[0], token));
    EXPECT_INT(0, strspn(token, " \t\"'$"));
    EXPECT_INT(WEIR_OK, weir_take_let_go(takes[0]));
    take(1, 0);
    EXPECT_STR("running", state_of("a"));
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    AWAIT(take_count == 2);
    EXPECT_INT(1, weir_job_counters(weir_take_job(takes[1])).crashes);
    EXPECT_STR("", lost);
}
