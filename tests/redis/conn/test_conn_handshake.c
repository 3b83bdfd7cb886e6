/* SPDX-License-Identifier: MIT */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/harness/redis_proc.h"
#include "tests/harness/resp_peer.h"
#include "tests/redis/conn/conn_fixture.h"

#define LOAD(len, text) \
    "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$" len "\r\n" text "\r\n"
#define ANSWER  "return 42"
#define COUNTER "return redis.call(\"INCR\", \"n\")"

static const struct weir__script answer = {
    "answer",
    ANSWER,
    9,
    "1fa00e76656cc152ad327c13fe365858fd7be306",
    LOAD("9", ANSWER),
    sizeof(LOAD("9", ANSWER)) - 1};
static const struct weir__script counter = {
    "counter",
    COUNTER,
    30,
    "51b60b2ef99e290b0d415a16c8ecb03cfdda09f8",
    LOAD("30", COUNTER),
    sizeof(LOAD("30", COUNTER)) - 1};

/* A server and a connection to it that is not open yet. */
static struct fixture *fixture_for(struct redis_proc *redis)
{
    return fixture_new(redis_socket(redis));
}

/* --- handshake ------------------------------------------------------------ */

TEST(a_password_is_given_before_anything_else)
{
    const struct redis_options options = {.password = "s e'cret"};
    struct redis_proc *redis = redis_start(&options);
    struct fixture *f = fixture_for(redis);

    (void)snprintf(f->url.password, sizeof(f->url.password), "s e'cret");
    fixture_open(f);
    fixture_send(f, WEIR__SEND_ONCE, 1, "PING", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 1);
    fixture_expect(f, 0, 1, WEIR_OK, "PONG");
}

TEST(a_user_of_the_server_logs_in_over_tcp)
{
    const struct redis_options options = {.tcp = true};
    struct redis_proc *redis = redis_start(&options);
    struct fixture *f = fixture_for(redis);
    char url[128];

    EXPECT_STR("OK", redis_text(redis, "ACL SETUSER ann on >pw ~* +@all"));
    (void)snprintf(url, sizeof(url), "redis://ann:pw@localhost:%d/2",
                   redis_port(redis));
    EXPECT_INT(WEIR_OK, weir__redis_url_parse(url, &f->url, NULL));
    fixture_open(f);
    fixture_send(f, WEIR__SEND_ONCE, 1, "ACL", "WHOAMI", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 1);
    fixture_expect(f, 0, 1, WEIR_OK, "ann");
}

TEST(a_wrong_password_is_reported_and_tried_again_much_later)
{
    const struct redis_options options = {.password = "right"};
    struct redis_proc *redis = redis_start(&options);
    struct fixture *f = fixture_for(redis);

    (void)snprintf(f->url.password, sizeof(f->url.password), "wrong");
    f->options.wait_ms = 200;
    fixture_open(f);
    fixture_send(f, WEIR__SEND_ONCE, 1, "PING", NULL);
    FIXTURE_WAIT(f, f->losses == 1 && f->replies == 1);
    EXPECT_TRUE(fixture_retry_ms(f) >= 5000);
    EXPECT_INT(WEIR_ESERVER, f->lost_code);
    EXPECT_CONTAINS("WRONGPASS", f->lost_text);
    EXPECT_TRUE(strstr(f->log_text, "wrong") == NULL);
    fixture_expect(f, 0, 1, WEIR_ECONN, "");
    EXPECT_INT(0, f->readies);
}

TEST(a_server_without_room_for_clients_is_reported)
{
    const char *const args[] = {"--maxclients", "1", NULL};
    const struct redis_options options = {.args = args};
    struct redis_proc *redis = redis_start(&options); /* takes the place */
    struct fixture *f = fixture_for(redis);

    fixture_open(f);
    FIXTURE_WAIT(f, f->losses == 1);
    EXPECT_INT(WEIR_ESERVER, f->lost_code);
    EXPECT_CONTAINS("max number of clients", f->lost_text);
}

TEST(database_and_name_of_the_connection_are_set)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = fixture_for(redis);

    f->url.db = 3;
    f->options.name = "worker-7";
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    EXPECT_CONTAINS("name=worker-7", redis_text(redis, "CLIENT LIST"));
    fixture_send(f, WEIR__SEND_ONCE, 1, "SET", "k", "v", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 1);
    EXPECT_STR("OK", redis_text(redis, "SELECT 3"));
    EXPECT_STR("v", redis_text(redis, "GET k"));
}

/* --- who answers ---------------------------------------------------------- */

static void expect_identity(struct redis_proc *redis, const struct fixture *f)
{
    char line[64], run_id[64];
    int64_t ms = weir__conn_server_ms(f->conn);

    (void)snprintf(line, sizeof(line), "id=%lld ",
                   (long long)weir__conn_client_id(f->conn));
    EXPECT_CONTAINS(line, redis_text(redis, "CLIENT LIST"));
    EXPECT_INT(WEIR__IDENTITY_LEN, strlen(weir__conn_identity(f->conn)));
    (void)snprintf(run_id, sizeof(run_id), "run_id:%s",
                   weir__conn_identity(f->conn));
    EXPECT_CONTAINS(run_id, redis_text(redis, "INFO server"));
    EXPECT_TRUE(ms > 0 && redis_int(redis, "EVAL %s 0",
                                    "return tonumber(redis.call('TIME')[1])") <=
                              ms / 1000 + 60);
}

TEST(who_asks_for_it_is_told_which_run_of_which_server_answers)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = fixture_for(redis);
    char before[WEIR__IDENTITY_LEN + 1];

    f->options.wants_identity = true;
    fixture_open(f);
    EXPECT_STR("", weir__conn_identity(f->conn));
    FIXTURE_WAIT(f, f->readies == 1);
    EXPECT_INT(4, weir__conn_sent(f->conn)); /* PING and three questions */
    expect_identity(redis, f);
    memcpy(before, weir__conn_identity(f->conn), sizeof(before));
    EXPECT_TRUE(redis_int(redis, "CLIENT KILL TYPE normal") >= 1);
    FIXTURE_WAIT(f, f->readies == 2);
    expect_identity(redis, f);
    EXPECT_STR(before, weir__conn_identity(f->conn));
    redis_restart(redis);
    FIXTURE_WAIT(f, f->readies == 3);
    expect_identity(redis, f);
    EXPECT_TRUE(strcmp(before, weir__conn_identity(f->conn)) != 0);
}

/* What is logged where the server behind the first one tells a clock that is so
 * many seconds ahead of the other's. */
static const char *log_of_clocks(int ahead_s)
{
    char other[40];
    const struct resp_rule rules[] = {
        {.connection = 1,
         .command = 2,
         .bytes = "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n"},
        {.connection = 1,
         .command = 3,
         .bytes = "$23\r\nrun_id:aaaaaaaaaaaaaaaa\r\n"},
        {.connection = 1, .command = 5, .hangs_up = true},
        {.command = 2, .bytes = other},
        {.command = 3, .bytes = "$23\r\nrun_id:bbbbbbbbbbbbbbbb\r\n"},
    };
    struct resp_peer *peer;
    struct fixture *f;

    (void)snprintf(other, sizeof(other), "*2\r\n$10\r\n%d\r\n$1\r\n0\r\n",
                   1700000000 + ahead_s);
    peer = resp_peer_start(rules, 5);
    f = fixture_new(resp_peer_socket(peer));
    f->options.wants_identity = true;
    fixture_open(f);
    fixture_send(f, WEIR__SEND_AGAIN, 1, "GET", "k", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 1);
    EXPECT_INT(2, f->readies);
    return f->log_text;
}

TEST(a_server_whose_clock_differs_from_that_of_the_one_before_is_a_warning)
{
    EXPECT_CONTAINS("ms ahead of that of the server before", log_of_clocks(99));
    EXPECT_CONTAINS("ms behind that of the server before", log_of_clocks(-99));
    EXPECT_CONTAINS(" is 99", log_of_clocks(-99));
}

/* However long its answer takes, or is left lying. */
TEST(a_server_whose_clock_goes_on_where_the_one_before_was_is_no_warning)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = fixture_for(redis);

    f->options.wants_identity = true;
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    redis_restart(redis);
    redis_kill(redis, SIGSTOP);
    fixture_turns(f, 60);
    redis_kill(redis, SIGCONT);
    FIXTURE_WAIT(f, f->readies == 2);
    redis_restart(redis);
    FIXTURE_WAIT(f, weir__conn_sent(f->conn) == 3 * 4); /* questions */
    (void)poll(NULL, 0, 100); /* twice what makes clocks differ */
    FIXTURE_WAIT(f, f->readies == 3);
    EXPECT_TRUE(strstr(f->log_text, "clock") == NULL);
}

TEST(a_server_that_tells_nothing_of_itself_is_good_enough)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = fixture_for(redis);

    EXPECT_STR("OK",
               redis_text(redis, "ACL SETUSER default -info -client -time"));
    f->options.wants_identity = true;
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    EXPECT_STR("", weir__conn_identity(f->conn));
    EXPECT_INT(0, weir__conn_client_id(f->conn));
    EXPECT_INT(0, weir__conn_server_ms(f->conn));
}

TEST(who_does_not_ask_is_told_nothing_of_the_server)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = fixture_for(redis);

    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    EXPECT_INT(1, weir__conn_sent(f->conn));
    EXPECT_STR("", weir__conn_identity(f->conn));
}

/* --- scripts -------------------------------------------------------------- */

TEST(a_script_is_loaded_ahead_of_its_first_call_on_each_connection)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = fixture_for(redis);

    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    EXPECT_STR("0 0", redis_text(redis, "SCRIPT EXISTS %s %s", answer.sha1,
                                 counter.sha1));
    EXPECT_INT(1, weir__conn_sent(f->conn)); /* PING */
    for (int i = 1; i <= 3; i++)
        fixture_send_script(f, &counter, i);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 3);
    EXPECT_STR("0 1", redis_text(redis, "SCRIPT EXISTS %s %s", answer.sha1,
                                 counter.sha1));
    EXPECT_INT(1 + 1 + 3, weir__conn_sent(f->conn));
    EXPECT_TRUE(redis_int(redis, "CLIENT KILL TYPE normal") >= 1);
    FIXTURE_WAIT(f, f->readies == 2);
    fixture_send_script(f, &counter, 4);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 4);
    EXPECT_INT(1 + 1 + 3 + 1 + 1 + 1, weir__conn_sent(f->conn));
}

TEST(scripts_that_the_server_forgot_are_loaded_again)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = fixture_for(redis);

    fixture_open(f);
    fixture_send_script(f, &counter, 1);
    fixture_send_script(f, &answer, 2);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 2);
    EXPECT_STR("OK", redis_text(redis, "SCRIPT FLUSH"));
    for (int i = 3; i <= 7; i++)
        fixture_send_script(f, &counter, i);
    fixture_send_script(f, &answer, 8);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 8);
    fixture_expect(f, 2, 3, WEIR_OK, "2");
    fixture_expect(f, 6, 7, WEIR_OK, "6");
    fixture_expect(f, 7, 8, WEIR_OK, "42");
    EXPECT_INT(0, f->losses);
    /* PING, 2 scripts, 2 calls; 6 calls; 2 scripts; 6 calls again */
    EXPECT_INT(5 + 6 + 2 + 6, weir__conn_sent(f->conn));
}

TEST(an_unknown_script_of_a_plain_command_is_an_error_reply)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = fixture_for(redis);

    fixture_open(f);
    fixture_send(f, WEIR__SEND_ONCE, 1, "EVALSHA", answer.sha1, "0", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 1);
    EXPECT_INT(WEIR_ESERVER, f->reply[0].code);
    EXPECT_CONTAINS("NOSCRIPT", f->reply[0].text);
}
