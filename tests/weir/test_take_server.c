/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/weir/take_fixture.h"

/* Takes while their server is killed, replaced, full or gone. */

TEST_TOGETHER(4)

/* --- killed and started anew ---------------------------------------------- */

static const struct redis_options durable = {
    .appendonly = true,
    .args = (const char *const[]){"--appendfsync", "always", NULL},
};
static const struct weir_options patient = {.request_timeout_ms = 60000};

static void open_durable(void)
{
    host_open_at(redis_start(&durable), &patient);
}

static void take_two(void)
{
    add("a");
    add("b");
    take(2, 2);
}

static bool is_asleep(void)
{
    return redis_int(server, "ZCARD weir:{orders}:idle") == 1;
}

TEST(a_call_that_waits_outlives_the_server)
{
    open_durable();
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    AWAIT(is_asleep());
    redis_restart(server);
    add("a");
    AWAIT(take_count == 1);
    settle(0, WEIR_DONE);
    expect_settled("OK ");
    EXPECT_INT(1, look()->done_total);
}

TEST(a_call_that_was_on_its_way_to_a_killed_server_is_made_again)
{
    open_durable();
    add("a");
    stand_still();
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    send_all();
    redis_restart(server);
    AWAIT(take_count == 1);
    EXPECT_INT(0, weir_job_counters(weir_take_job(takes[0])).crashes);
    settle(0, WEIR_DONE);
    expect_settled("OK ");
    EXPECT_INT(1, look()->done_total);
}

/* It waits as long as any request. */
TEST(a_call_without_a_wait_waits_for_the_server)
{
    open_durable();
    add("a");
    redis_kill(server, SIGKILL);
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 0));
    send_all();
    EXPECT_INT(0, answers);
    redis_restart(server);
    AWAIT(answers == 1);
    EXPECT_INT(WEIR_OK, answer_code);
    EXPECT_STR("a ", ids);
}

TEST(verdicts_on_their_way_to_a_killed_server_are_sent_again)
{
    open_durable();
    add("a");
    add("b");
    add("c");
    take(3, 3);
    stand_still();
    settle(0, WEIR_DONE);
    settle(1, WEIR_RETRY);
    give_back(2);
    send_all();
    EXPECT_STR("", settled);
    redis_restart(server);
    expect_settled("OK OK OK ");
    EXPECT_STR("none", state_of("a"));
    EXPECT_STR("scheduled", state_of("b"));
    EXPECT_STR("ready", state_of("c"));
    EXPECT_INT(1, look()->done_total);
}

TEST(a_verdict_that_was_acknowledged_outlives_the_server)
{
    open_durable();
    take_two();
    settle(0, WEIR_DONE);
    settle(1, WEIR_FAIL);
    expect_settled("OK OK ");
    redis_restart(server);
    take(2, 0);
    EXPECT_STR("none", state_of("a"));
    EXPECT_STR("dead", state_of("b"));
    EXPECT_INT(1, look()->done_total);
}

/* A command for each connection of weir, as a terminal sends it. */
static void write_kills(char *text, size_t cap)
{
    const char *line = redis_text(server, "CLIENT LIST");
    size_t len = 0;

    for (; line != NULL; line = strchr(line, '\n')) {
        long long id = 0;
        const char *name;

        line += *line == '\n';
        name = strstr(line, " name=");
        if (sscanf(line, "id=%lld", &id) == 1 && name != NULL &&
            name[strlen(" name=")] != ' ')
            len += (size_t)snprintf(text + len, cap - len,
                                    "CLIENT KILL ID %lld\r\n", id);
    }
}

static int connect_plainly(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s",
                   redis_socket(server)); /* it was made to fit */
    EXPECT_INT(0, connect(fd, (struct sockaddr *)&address, sizeof(address)));
    EXPECT_TRUE(write(fd, "PING\r\n", 6) == 6);
    EXPECT_TRUE(read(fd, (char[16]){0}, 16) > 0);
    return fd;
}

/* The server has the verdict, and hangs up before it says so. */
TEST(a_verdict_whose_answer_is_lost_counts_once)
{
    char kills[1024] = "";
    int fd;

    open_durable();
    add("a");
    take(1, 1);
    fd = connect_plainly();
    write_kills(kills, sizeof(kills));
    EXPECT_CONTAINS("CLIENT KILL", kills);
    stand_still();
    settle(0, WEIR_DONE);
    send_all();
    EXPECT_INT(strlen(kills), write(fd, kills, strlen(kills)));
    go_on();
    AWAIT(settled_count == 1);
    if (strcmp(settled, "OK ") != 0)
        EXPECT_STR("WEIR_ENOTFOUND ", settled);
    EXPECT_STR("none", state_of("a"));
    EXPECT_INT(1, look()->done_total);
    EXPECT_INT(0, close(fd));
}

static bool is_up;

static void on_connection(int code, const char *text, void *arg)
{
    (void)text;
    (void)arg;
    is_up = code == WEIR_OK;
}

/* What it asks waits for 100 ms where there is no connection; now is one. */
/* A busy machine answers within this; a request without a server ends then. */
static void open_impatient(void)
{
    const struct weir_options options = {.request_timeout_ms = 10000,
                                         .on_connection = on_connection};

    host_open_at(redis_start(&durable), &options);
    AWAIT(is_up);
}

TEST(a_verdict_that_finds_no_server_in_time_says_so_and_the_job_comes_back)
{
    take_with = brief_lease;
    open_impatient();
    add("a");
    take(1, 1);
    redis_kill(server, SIGKILL);
    AWAIT(!is_up);
    settle(0, WEIR_DONE);
    expect_settled("WEIR_ECONN ");
    redis_restart(server);
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    AWAIT(take_count == 2);
    EXPECT_STR("a a ", ids);
    settle(1, WEIR_DONE);
    expect_settled("WEIR_ECONN OK ");
    EXPECT_INT(1, look()->done_total);
}

/* Of one job, whose verdict a killed server never read. */
static void settle_over_a_kill(const char *kind, const char *topic)
{
    open_durable();
    EXPECT_INT(WEIR_OK, weir_reactor_declare(weir, topic, kind, NULL));
    add_to(topic, NULL);
    EXPECT_INT(WEIR_OK, call_take(weir, topic, 1, 3600000));
    AWAIT(take_count == 1);
    stand_still();
    settle(0, WEIR_DONE);
    send_all();
    redis_restart(server);
    expect_settled("OK ");
    add_to(topic, NULL);
    EXPECT_INT(WEIR_OK, call_take(weir, topic, 2, 3600000));
    AWAIT(take_count == 2);
    settle(1, WEIR_DONE);
    expect_settled("OK OK ");
    EXPECT_STR("", lost);
}

TEST(a_verdict_on_an_entry_of_a_list_outlives_the_server)
{
    settle_over_a_kill("list", "orders");
}

TEST(a_verdict_on_an_entry_of_a_stream_outlives_the_server)
{
    settle_over_a_kill("stream", "orders");
}

TEST(a_verdict_on_a_parked_message_outlives_the_server)
{
    settle_over_a_kill("concurrent", "orders");
}

TEST(a_verdict_on_an_event_outlives_the_server)
{
    settle_over_a_kill("bounded", "events");
}

/* Its messages are done when they are taken, unless a verdict says otherwise,
 * which comes to nothing here. */
TEST(a_message_of_a_sync_topic_does_not_come_back)
{
    open_impatient();
    EXPECT_INT(WEIR_OK, weir_reactor_declare(weir, "orders", "sync", NULL));
    add(NULL);
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    AWAIT(take_count == 1);
    redis_kill(server, SIGKILL);
    settle(0, WEIR_RETRY);
    AWAIT(settled_count == 1);
    if (strcmp(settled, "WEIR_ECONN ") != 0)
        EXPECT_STR("WEIR_EUNKNOWN ", settled);
    redis_restart(server);
    AWAIT(look()->done_total == 1);
    EXPECT_INT(0, look()->ready + look()->scheduled + look()->running);
}

TEST(a_server_that_forgot_everything_refuses_what_is_out)
{
    host_open_at(redis_start(NULL), &patient);
    add("a");
    take(1, 1);
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    redis_restart(server);
    settle(0, WEIR_DONE);
    expect_settled("WEIR_ENOTFOUND ");
    add("b");
    AWAIT(take_count == 2);
    settle(1, WEIR_DONE);
    expect_settled("WEIR_ENOTFOUND OK ");
}

/* --- replaced by its replica ---------------------------------------------- */

static struct redis_proc *replica;

static const struct redis_options primary = {
    .tcp = true,
    .args = (const char *const[]){"--repl-diskless-sync-delay", "0", NULL},
};

static void open_with_replica(void)
{
    host_open_at(redis_start(&primary), &patient);
    replica = redis_start(NULL);
    EXPECT_STR("OK", redis_text(replica, "REPLICAOF 127.0.0.1 %d",
                                redis_port(server)));
    AWAIT(strstr(redis_text(replica, "INFO replication"),
                 "master_link_status:up") != NULL);
}

/* It has heard all until now, and hears nothing more. */
static void cut_off(void)
{
    EXPECT_TRUE(redis_int(server, "INCR cut") > 0);
    EXPECT_INT(1, redis_int(server, "WAIT 1 0"));
    EXPECT_STR("OK", redis_text(replica, "REPLICAOF NO ONE"));
}

/* Whoever connects from now on finds the replica. */
static void take_over(void)
{
    redis_kill(server, SIGKILL);
    EXPECT_INT(0, rename(redis_socket(replica), redis_socket(server)));
    server = replica;
}

TEST(a_call_that_waits_has_the_jobs_of_the_server_that_takes_over)
{
    open_with_replica();
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    AWAIT(is_asleep());
    cut_off();
    take_over();
    add("a");
    AWAIT(take_count == 1);
    settle(0, WEIR_DONE);
    expect_settled("OK ");
    EXPECT_INT(1, look()->done_total);
}

TEST(a_take_is_settled_at_the_server_that_takes_over)
{
    open_with_replica();
    add("a");
    add("b");
    add("c");
    take(3, 3);
    cut_off();
    settle(1, WEIR_RETRY);
    take_over();
    settle(0, WEIR_DONE);
    give_back(2);
    expect_settled("OK OK OK ");
    EXPECT_STR("none", state_of("a"));
    EXPECT_STR("scheduled", state_of("b"));
    EXPECT_STR("ready", state_of("c"));
    EXPECT_STR("", lost);
    EXPECT_INT(1, look()->done_total);
}

TEST(a_take_that_the_replica_had_not_heard_of_is_refused_and_comes_again)
{
    open_with_replica();
    add("a");
    cut_off();
    take(1, 1);
    take_over();
    settle(0, WEIR_DONE);
    expect_settled("WEIR_ENOTFOUND ");
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    AWAIT(take_count == 2);
    EXPECT_STR("a a ", ids);
    EXPECT_INT(0, weir_job_counters(weir_take_job(takes[1])).crashes);
    settle(1, WEIR_DONE);
    expect_settled("WEIR_ENOTFOUND OK ");
    EXPECT_INT(1, look()->done_total);
}

TEST(a_verdict_that_the_replica_had_not_heard_of_counts_there)
{
    open_with_replica();
    take_two();
    cut_off();
    settle(0, WEIR_DONE);
    settle(1, WEIR_RETRY);
    expect_settled("OK OK ");
    take_over();
    EXPECT_STR("none", state_of("a"));
    EXPECT_STR("scheduled", state_of("b"));
    EXPECT_INT(1, counters.failures);
    EXPECT_INT(1, look()->done_total);
}

/* --- full ----------------------------------------------------------------- */

static void fill(bool is_full)
{
    EXPECT_STR("OK",
               redis_text(server, "CONFIG SET maxmemory %d", (int)is_full));
}

TEST(what_is_given_back_to_a_full_server_goes_back)
{
    host_open(NULL);
    add("a");
    take(1, 1);
    fill(true);
    give_back(0);
    expect_settled("OK ");
    EXPECT_STR("ready", state_of("a"));
}

TEST(a_verdict_with_a_follow_up_waits_for_a_full_server)
{
    const struct weir_follow next = {.id = "next", .delay_ms = 3600000};

    host_open(NULL);
    add("a");
    take(1, 1);
    EXPECT_INT(WEIR_OK, weir_job_follow(weir_take_job(takes[0]), &next));
    fill(true);
    settle(0, WEIR_DONE);
    AWAIT(redis_calls(server, "evalsha") > 3);
    send_all();
    EXPECT_STR("", settled);
    EXPECT_STR("running", state_of("a"));
    fill(false);
    expect_settled("OK ");
    EXPECT_STR("none", state_of("a"));
    EXPECT_STR("scheduled", state_of("next"));
}

/* Of what a full server has no room for, or all the same. */
static void retry_when_full(const char *kind, const char *option,
                            const char *wanted)
{
    /* time is the subject */
    const char *const with[] = {kind, option, "lease=3s", NULL};

    take_with = with;
    host_open(NULL);
    EXPECT_INT(WEIR_OK, weir_reactor_declare(weir, "orders",
                                             strchr(kind, '=') + 1, NULL));
    add(NULL);
    take(1, 1);
    fill(true);
    settle(0, WEIR_RETRY);
    expect_settled(wanted);
    fill(false);
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    AWAIT(take_count == 2);
    settle(1, WEIR_DONE);
    AWAIT(settled_count == 2);
    EXPECT_INT(1, look()->done_total);
    EXPECT_INT(0, look()->ready + look()->scheduled + look()->running);
}

TEST(an_entry_of_a_list_is_retried_on_a_full_server)
{
    retry_when_full("kind=list", "retry=1ms ...", "OK ");
}

TEST(an_entry_of_a_stream_is_retried_on_a_full_server)
{
    retry_when_full("kind=stream", "retry=1ms ...", "OK ");
}

TEST(a_parked_message_is_retried_on_a_full_server)
{
    retry_when_full("kind=concurrent", "delay=0ms", "OK ");
}

TEST(an_entry_that_a_full_server_cannot_hand_over_says_so_and_comes_back)
{
    retry_when_full("kind=list", "on_retry=later", "WEIR_ESERVER ");
}

/* --- gone ----------------------------------------------------------------- */

static int stops;

static void on_stopped(void *arg)
{
    (void)arg;
    stops++;
}

TEST(a_reactor_without_a_server_stops_while_a_call_waits)
{
    host_open(NULL);
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    AWAIT(is_asleep());
    redis_kill(server, SIGKILL);
    send_all();
    weir_reactor_stop(weir, on_stopped, NULL);
    AWAIT(stops == 1);
    EXPECT_INT(1, answers);
    EXPECT_INT(WEIR_ECANCELED, answer_code);
    EXPECT_INT(WEIR_ECANCELED, call_take(weir, "orders", 1, 0));
}

TEST(a_call_on_its_way_to_a_server_that_stands_still_is_answered_at_a_stop)
{
    host_open(NULL);
    add("a");
    stand_still();
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    send_all();
    weir_reactor_stop(weir, on_stopped, NULL);
    AWAIT(answers == 1);
    EXPECT_INT(WEIR_ECANCELED, answer_code);
    EXPECT_INT(0, stops);
    go_on();
    AWAIT(stops == 1);
    host_close();
    host_open_at(server, NULL); /* what came goes back before the end */
    EXPECT_STR("ready", state_of("a"));
    EXPECT_INT(0, counters.crashes);
}

TEST(a_reactor_that_stops_waits_for_a_server_that_has_its_takes)
{
    host_open_at(redis_start(&durable), &patient);
    take_two();
    redis_kill(server, SIGKILL);
    settle(0, WEIR_DONE);
    weir_reactor_stop(weir, on_stopped, NULL);
    weir_reactor_give_back(weir);
    EXPECT_STR("b:1 ", lost);
    send_all();
    EXPECT_INT(0, stops);
    EXPECT_STR("", settled);
    redis_restart(server);
    AWAIT(stops == 1);
    expect_settled("OK ");
    EXPECT_STR("none", state_of("a"));
    EXPECT_STR("ready", state_of("b"));
}

/* Their answers are that, and nothing else is waited for. */
TEST(a_reactor_whose_verdicts_find_no_server_in_time_stops)
{
    open_impatient();
    take_two();
    redis_kill(server, SIGKILL);
    weir_reactor_stop(weir, on_stopped, NULL);
    settle(0, WEIR_DONE);
    give_back(1);
    AWAIT(stops == 1);
    AWAIT(settled_count == 2);
    EXPECT_TRUE(strstr(settled, "OK") == NULL);
    EXPECT_STR("", lost);
}

TEST(a_reactor_is_freed_without_its_server_and_all_is_told)
{
    take_with = brief_lease;
    host_open_at(redis_start(&durable), NULL);
    take_two();
    redis_kill(server, SIGKILL);
    settle(0, WEIR_DONE);
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    send_all();
    host_close();
    EXPECT_INT(2, answers);
    EXPECT_INT(WEIR_ECANCELED, answer_code);
    EXPECT_STR("b:1 ", lost);
    EXPECT_STR("WEIR_ECANCELED ", settled);
    redis_restart(server);
    take_count = 0;
    ids[0] = '\0';
    host_open_at(server, NULL);
    for (size_t i = 0; i < 2; i++) {
        EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
        AWAIT(take_count == i + 1);
        settle(i, WEIR_DONE);
        AWAIT(settled_count == (int)i + 2);
    }
    EXPECT_CONTAINS("a ", ids);
    EXPECT_CONTAINS("b ", ids);
    EXPECT_INT(2, look()->done_total);
}

TEST(a_reactor_stops_and_is_freed_while_a_verdict_waits_for_room)
{
    take_with = brief_lease;
    host_open(NULL);
    add("a");
    take(1, 1);
    fill(true);
    settle(0, WEIR_RETRY);
    weir_reactor_stop(weir, on_stopped, NULL);
    send_all();
    EXPECT_INT(0, stops);
    host_close();
    EXPECT_STR("WEIR_ECANCELED ", settled);
    fill(false);
    host_open_at(server, NULL);
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    AWAIT(take_count == 2);
    settle(1, WEIR_DONE);
    expect_settled("WEIR_ECANCELED OK ");
}
