/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/weir/take_fixture.h"

/* Takes of a host while the server, or the host itself, stands still for longer
 * than a lease. */

TEST_TOGETHER(4)

/* Whatever was renewed until now is over. */
static void outlast_lease(void)
{
    host_pass(320); /* time is the subject */
}

/* --- the server ----------------------------------------------------------- */

static struct weir_reactor *other; /* a second host, connected */

static void close_other(void)
{
    weir_reactor_free(other);
    other = NULL;
}

/* The first host has the only job. */
static void open_with_take(const struct weir_options *options)
{
    take_with = brief_lease;
    host_open(options);
    other = host_reactor(NULL);
    test_at_end(close_other);
    EXPECT_INT(WEIR_OK, call_take(other, "orders", 1, 0));
    AWAIT(answers == 1);
    add("a");
    take(1, 1);
}

/* The job is done by who had it, or comes to the other one, and that is told.
 * What comes next is another job. */
static void expect_once(void)
{
    bool is_settled;

    AWAIT(settled_count == 1);
    is_settled = strcmp(settled, "OK ") == 0;
    if (is_settled)
        add("z");
    else
        EXPECT_STR("WEIR_ENOTFOUND ", settled);
    AWAIT(take_count == 2);
    EXPECT_STR(is_settled ? "a z " : "a a ", ids);
    EXPECT_INT(is_settled ? 0 : 1,
               weir_job_counters(weir_take_job(takes[1])).crashes);
    settle(1, WEIR_DONE);
    expect_settled(is_settled ? "OK OK " : "WEIR_ENOTFOUND OK ");
    EXPECT_INT(is_settled ? 2 : 1, look()->done_total);
    EXPECT_INT(0, look()->running + look()->ready + look()->scheduled);
}

TEST(a_take_outlives_a_server_that_stands_still_where_nobody_else_asks)
{
    open_with_take(NULL);
    stand_still();
    outlast_lease();
    go_on();
    settle(0, WEIR_DONE);
    expect_settled("OK ");
    EXPECT_STR("", lost);
    EXPECT_INT(1, look()->done_total);
}

/* Of another kind. */
static void outlive(const char *kind, const char *topic)
{
    take_with = brief_lease;
    host_open(NULL);
    EXPECT_INT(WEIR_OK, weir_reactor_declare(weir, topic, kind, NULL));
    add_to(topic, NULL);
    EXPECT_INT(WEIR_OK, call_take(weir, topic, 1, 3600000));
    AWAIT(take_count == 1);
    stand_still();
    outlast_lease();
    go_on();
    settle(0, WEIR_DONE);
    expect_settled("OK ");
    EXPECT_STR("", lost);
}

TEST(an_entry_of_a_list_outlives_a_server_that_stands_still)
{
    outlive("list", "orders");
}

TEST(an_entry_of_a_stream_outlives_a_server_that_stands_still)
{
    outlive("stream", "orders");
}

TEST(a_parked_message_outlives_a_server_that_stands_still)
{
    outlive("concurrent", "orders");
}

TEST(an_event_outlives_a_server_that_stands_still)
{
    outlive("bounded", "events");
}

TEST(a_verdict_that_a_server_has_when_it_goes_on_counts_once)
{
    open_with_take(NULL);
    stand_still();
    settle(0, WEIR_DONE);
    outlast_lease();
    EXPECT_INT(WEIR_OK, call_take(other, "orders", 1, 3600000));
    send_all();
    EXPECT_STR("", settled);
    go_on();
    expect_once();
}

TEST(a_verdict_behind_the_call_of_another_host_counts_once)
{
    open_with_take(NULL);
    stand_still();
    EXPECT_INT(WEIR_OK, call_take(other, "orders", 1, 3600000));
    outlast_lease();
    settle(0, WEIR_DONE);
    send_all();
    go_on();
    expect_once();
}

/* Its renewals are read before what it asks for. */
TEST(a_call_does_not_bring_what_the_host_has)
{
    open_with_take(NULL);
    stand_still();
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    outlast_lease();
    go_on();
    add("b");
    AWAIT(take_count == 2);
    EXPECT_STR("a b ", ids);
    settle(0, WEIR_DONE);
    settle(1, WEIR_DONE);
    expect_settled("OK OK ");
    EXPECT_STR("", lost);
    EXPECT_INT(2, look()->done_total);
}

/* It may have been read, or never be: here it was, in the end. */
TEST(a_verdict_without_an_answer_says_that_nobody_knows)
{
    const struct weir_options options = {.request_timeout_ms = 2000};

    open_with_take(&options);
    stand_still();
    settle(0, WEIR_DONE);
    expect_settled("WEIR_EUNKNOWN ");
    go_on();
    EXPECT_INT(WEIR_OK, call_take(other, "orders", 1, 3600000));
    AWAIT(take_count == 2 || look()->done_total == 1);
    if (take_count == 2) {
        settle(1, WEIR_DONE);
        expect_settled("WEIR_EUNKNOWN OK ");
    }
    EXPECT_INT(1, look()->done_total);
}

TEST(a_call_that_a_server_does_not_answer_says_so)
{
    const struct weir_options options = {.request_timeout_ms = 2000};

    open_with_take(&options);
    add("b");
    stand_still();
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 100));
    AWAIT(answers == 3);
    EXPECT_INT(WEIR_ECONN, answer_code);
    EXPECT_INT(0, answer_count);
    go_on();
    settle(0, WEIR_DONE);
    expect_settled("OK ");
    EXPECT_INT(WEIR_OK, call_take(other, "orders", 1, 3600000));
    AWAIT(take_count == 2); /* what came for nobody went back */
    EXPECT_STR("a b ", ids);
    EXPECT_INT(0, weir_job_counters(weir_take_job(takes[1])).crashes);
}

/* --- the host ------------------------------------------------------------- */

/* A host in a process of its own: it takes a job and says "t", does as a letter
 * says, and tells what it was told. */
static struct {
    pid_t pid;
    int orders[2], words[2];
} child;

static const char *kind = "delay", *topic = "orders";

static bool is_told(int fd, char *ret_letter)
{
    return read(fd, ret_letter, 1) == 1;
}

/* s: settle, l: the same when it was told that the lease is lost, g: give back,
 * h: let the loop stand until the next letter, which is then done. */
static void obey(char letter)
{
    struct pollfd pipe = {.fd = child.orders[0], .events = POLLIN};

    if (letter == 'h') {
        EXPECT_INT(1, poll(&pipe, 1, -1));
        EXPECT_TRUE(is_told(child.orders[0], &letter));
    }
    if (letter == 'l')
        AWAIT(lost[0] != '\0');
    if (letter == 'g')
        give_back(0);
    else
        settle(0, WEIR_DONE);
}

static _Noreturn void be_host(void)
{
    char letter = '\0';

    host_open_at(server, NULL);
    EXPECT_INT(WEIR_OK, weir_reactor_declare(weir, topic, kind, NULL));
    take_with = brief_lease;
    EXPECT_INT(WEIR_OK, call_take(weir, topic, 1, 3600000));
    AWAIT(take_count == 1);
    EXPECT_TRUE(write(child.words[1], "t", 1) == 1);
    AWAIT(is_told(child.orders[0], &letter));
    obey(letter);
    AWAIT(settled_count == 1);
    EXPECT_TRUE(dprintf(child.words[1], "%s;%s\n", letter == 'l' ? lost : "",
                        settled) > 0);
    host_close();
    _exit(0); /* the server is the other process's */
}

static void order(char letter)
{
    EXPECT_TRUE(write(child.orders[1], &letter, 1) == 1);
}

static void await_word(const char *wanted, char last)
{
    char text[100];
    size_t len = 0;

    do {
        AWAIT(is_told(child.words[0], &text[len]));
        len++;
    } while (text[len - 1] != last && len < sizeof(text) - 1);
    text[len] = '\0';
    EXPECT_STR(wanted, text);
}

/* This process has a host as well, and the other one the only job. */
static void open_with_child(void)
{
    take_with = brief_lease;
    server = redis_start(NULL);
    for (int i = 0; i < 2; i++) {
        int *ends = i == 0 ? child.orders : child.words;

        EXPECT_INT(0, pipe(ends));
        EXPECT_INT(0, fcntl(ends[0], F_SETFL, O_NONBLOCK));
    }
    child.pid = fork();
    if (child.pid == 0)
        be_host();
    EXPECT_TRUE(child.pid > 0);
    host_open_at(server, NULL);
    EXPECT_INT(WEIR_OK, weir_reactor_declare(weir, topic, kind, NULL));
    add_to(topic, NULL);
    await_word("t", 't');
}

static void stop_child(void)
{
    EXPECT_INT(0, kill(child.pid, SIGSTOP));
    EXPECT_INT(child.pid, waitpid(child.pid, NULL, WUNTRACED));
}

static void continue_child(void)
{
    EXPECT_INT(0, kill(child.pid, SIGCONT));
}

/* The lease ends, and this process has the job. Then the other one goes on. */
static void take_from_child(char letter)
{
    stop_child();
    EXPECT_INT(WEIR_OK, call_take(weir, topic, 1, 3600000));
    AWAIT(take_count == 1);
    order(letter);
    continue_child();
}

static void expect_mine(void)
{
    settle(0, WEIR_DONE);
    expect_settled("OK ");
}

TEST(a_host_that_goes_on_and_settles_at_once_is_told_that_it_is_too_late)
{
    open_with_child();
    take_from_child('s');
    await_word(";WEIR_ENOTFOUND \n", '\n');
    EXPECT_INT(1, weir_job_counters(weir_take_job(takes[0])).crashes);
    expect_mine();
    EXPECT_INT(1, look()->done_total);
}

TEST(a_host_that_goes_on_is_told_that_its_take_is_lost)
{
    char told[200];

    open_with_child();
    take_from_child('l');
    (void)snprintf(told, sizeof(told), "%.*s:2 ;WEIR_ENOTFOUND \n",
                   (int)strlen(ids) - 1, ids);
    await_word(told, '\n');
    expect_mine();
    EXPECT_INT(1, look()->done_total);
}

TEST(what_a_host_gives_back_too_late_stays_where_it_is)
{
    open_with_child();
    take_from_child('g');
    await_word(";OK \n", '\n');
    EXPECT_STR("", lost);
    expect_mine();
    EXPECT_INT(1, look()->done_total);
}

TEST(a_host_that_goes_on_settles_what_nobody_took)
{
    open_with_child();
    stop_child();
    outlast_lease();
    order('s');
    continue_child();
    await_word(";OK \n", '\n');
    EXPECT_INT(1, look()->done_total);
}

static double lease_end(void)
{
    return strtod(redis_text(server, "EVAL %s 1 weir:{orders}:lease",
                             "return redis.call('ZRANGE', KEYS[1], 0, 0, "
                             "'WITHSCORES')[2] or ''"),
                  NULL);
}

TEST(a_lease_is_renewed_while_a_host_lets_its_loop_stand)
{
    double end;

    open_with_child();
    order('h');
    end = lease_end();
    EXPECT_TRUE(end > 0.);
    AWAIT(lease_end() > end + 600.); /* two leases later */
    order('s');
    await_word(";OK \n", '\n');
    EXPECT_INT(1, look()->done_total);
}

/* The same of another kind. */
static void expect_too_late(const char *of_kind, const char *of_topic)
{
    kind = of_kind;
    topic = of_topic;
    open_with_child();
    take_from_child('s');
    await_word(";WEIR_ENOTFOUND \n", '\n');
    expect_mine();
}

TEST(an_entry_of_a_list_that_is_settled_too_late_is_told)
{
    expect_too_late("list", "orders");
}

TEST(an_entry_of_a_stream_that_is_settled_too_late_is_told)
{
    expect_too_late("stream", "orders");
}

TEST(a_parked_message_that_is_settled_too_late_is_told)
{
    expect_too_late("concurrent", "orders");
}

TEST(an_event_that_is_settled_too_late_is_told)
{
    expect_too_late("bounded", "events");
}
