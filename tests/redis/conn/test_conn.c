/* SPDX-License-Identifier: MIT */
#include "adapters/redis/conn/conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "adapters/redis/conn/private.h"
#include "adapters/redis/resp.h"
#include "tests/harness/redis_proc.h"
#include "tests/redis/conn/conn_fixture.h"

/* Each test has a server and a connection to it that is not open yet. */
static struct redis_proc *redis;
static struct fixture *f;

static void begin(void)
{
    redis = redis_start(NULL);
    f = fixture_new(redis_socket(redis));
}
TEST_SETUP(begin)

/* --- commands ------------------------------------------------------------ */

TEST(commands_queued_before_the_connection_stands_arrive_in_order)
{
    fixture_open(f);
    for (int i = 1; i <= 100; i++)
        fixture_send(f, WEIR__SEND_ONCE, i, "INCR", "n", NULL);
    EXPECT_TRUE(!weir__conn_is_ready(f->conn));
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 100);
    for (int i = 1; i <= 100; i++) {
        char text[8];

        (void)snprintf(text, sizeof(text), "%d", i);
        fixture_expect(f, (size_t)i - 1, i, WEIR_OK, text);
    }
    EXPECT_TRUE(weir__conn_is_ready(f->conn));
    EXPECT_INT(1, f->readies);
    EXPECT_CONTAINS("redis: connected to unix:///", f->log_text);
}

TEST(an_error_reply_goes_to_the_one_who_asked)
{
    fixture_open(f);
    fixture_send(f, WEIR__SEND_ONCE, 1, "SET", "k", "v", NULL);
    fixture_send(f, WEIR__SEND_ONCE, 2, "LPUSH", "k", "v", NULL);
    fixture_send(f, WEIR__SEND_ONCE, 3, "GET", "k", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 3);
    fixture_expect(f, 0, 1, WEIR_OK, "OK");
    EXPECT_INT(WEIR_ESERVER, f->reply[1].code);
    EXPECT_CONTAINS("WRONGTYPE", f->reply[1].text);
    fixture_expect(f, 2, 3, WEIR_OK, "v");
    EXPECT_INT(0, f->losses);
}

TEST(flush_writes_without_a_turn_of_the_loop)
{
    const char *got = NULL;

    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    fixture_send(f, WEIR__SEND_ONCE, 1, "SET", "k", "v", NULL);
    EXPECT_TRUE(redis_text(redis, "GET k") == NULL);
    weir__conn_flush(f->conn);
    for (int i = 0; i < 10000 && got == NULL; i++)
        got = redis_text(redis, "GET k");
    EXPECT_STR("v", got);
    FIXTURE_WAIT(f, f->replies == 1);
}

struct sequence {
    long long next;
    bool is_broken;
};

static void in_sequence(int code, const struct redisReply *reply, void *arg)
{
    struct sequence *sequence = arg;

    sequence->next++;
    if (code != WEIR_OK || reply->integer != sequence->next)
        sequence->is_broken = true;
}

TEST(a_hundred_thousand_pipelined_commands_are_answered_in_order)
{
    struct sequence sequence = {0};

    fixture_open(f);
    for (int i = 0; i < 100000; i++) {
        struct weir__buf bytes = {0};

        weir__resp_command(&bytes, 2);
        weir__resp_str(&bytes, "INCR");
        weir__resp_str(&bytes, "n");
        EXPECT_INT(WEIR_OK,
                   weir__conn_send(f->conn, &bytes, NULL, WEIR__SEND_ONCE,
                                   in_sequence, &sequence));
    }
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, sequence.next == 100000);
    EXPECT_TRUE(!sequence.is_broken);
    EXPECT_INT(100000, redis_int(redis, "INCRBY n 0"));
}

TEST(commands_larger_than_the_socket_takes_go_through)
{
    enum { SIZE = 8 * 1024 * 1024 };
    char *value = calloc(1, SIZE + 1);

    EXPECT_TRUE(value != NULL);
    memset(value, 'x', SIZE);
    fixture_open(f);
    for (int i = 1; i <= 3; i++)
        fixture_send(f, WEIR__SEND_ONCE, i, "SET", "k", value, NULL);
    fixture_send(f, WEIR__SEND_ONCE, 4, "STRLEN", "k", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 4);
    fixture_expect(f, 3, 4, WEIR_OK, "8388608");
    free(value);
}

TEST(a_full_queue_refuses_and_takes_again_when_answers_came)
{
    struct weir__buf bytes = {0};
    int rc = WEIR_OK, sent = 0;

    f->options.max_queued = 4096;
    fixture_open(f);
    for (; rc == WEIR_OK; sent++) {
        weir__resp_command(&bytes, 1);
        weir__resp_str(&bytes, "PING");
        rc = weir__conn_send(f->conn, &bytes, NULL, 0, NULL, NULL);
        EXPECT_TRUE(bytes.ptr == NULL);
    }
    EXPECT_INT(WEIR_EFULL, rc);
    EXPECT_TRUE(sent > 10 && sent < 100);
    weir__conn_flush(f->conn);
    /* the handshake's PING, and all but the refused one */
    FIXTURE_WAIT(f, weir__conn_sent(f->conn) == (uint64_t)sent);
    FIXTURE_WAIT(f,
                 (weir__resp_command(&bytes, 1), weir__resp_str(&bytes, "PING"),
                  rc = weir__conn_send(f->conn, &bytes, NULL, 0, NULL, NULL)) ==
                     WEIR_OK);
}

TEST(bytes_that_failed_to_be_written_are_refused)
{
    struct weir__buf bytes = {.failed = true};

    fixture_open(f);
    EXPECT_INT(WEIR_ENOMEM,
               weir__conn_send(f->conn, &bytes, NULL, 0, NULL, NULL));
    EXPECT_TRUE(!bytes.failed);
}

static void send_next(int code, const struct redisReply *reply, void *arg)
{
    (void)arg;
    EXPECT_INT(WEIR_OK, code);
    EXPECT_INT(1, reply->integer);
    fixture_send(f, WEIR__SEND_ONCE, 2, "INCR", "n", NULL);
    weir__conn_flush(f->conn);
}

TEST(a_reply_callback_may_send_and_flush)
{
    struct weir__buf bytes = {0};

    fixture_open(f);
    weir__resp_command(&bytes, 2);
    weir__resp_str(&bytes, "INCR");
    weir__resp_str(&bytes, "n");
    EXPECT_INT(WEIR_OK,
               weir__conn_send(f->conn, &bytes, NULL, 0, send_next, f));
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 1);
    fixture_expect(f, 0, 2, WEIR_OK, "2");
}

/* --- closing ------------------------------------------------------------- */

TEST(closing_cancels_what_is_pending_in_order)
{
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    for (int i = 1; i <= 5; i++)
        fixture_send(f, i % 2 == 0 ? WEIR__SEND_AGAIN : WEIR__SEND_ONCE, i,
                     "PING", NULL);
    weir__conn_flush(f->conn);
    fixture_send(f, WEIR__SEND_ONCE, 6, "PING", NULL);
    fixture_close(f);
    EXPECT_INT(6, f->replies);
    for (int i = 1; i <= 6; i++)
        fixture_expect(f, (size_t)i - 1, i, WEIR_ECANCELED, "");
    EXPECT_INT(0, f->losses);
}

TEST(a_reply_callback_may_close_the_connection)
{
    f->closes_on_id = 2;
    fixture_open(f);
    for (int i = 1; i <= 4; i++)
        fixture_send(f, WEIR__SEND_ONCE, i, "PING", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->conn == NULL);
    EXPECT_INT(4, f->replies);
    fixture_expect(f, 0, 1, WEIR_OK, "PONG");
    fixture_expect(f, 1, 2, WEIR_OK, "PONG");
    fixture_expect(f, 2, 3, WEIR_ECANCELED, "");
    fixture_expect(f, 3, 4, WEIR_ECANCELED, "");
}

TEST(the_state_callback_may_close_a_ready_connection)
{
    f->closes_on_state = true;
    fixture_open(f);
    fixture_send(f, WEIR__SEND_ONCE, 1, "PING", NULL);
    FIXTURE_WAIT(f, f->conn == NULL);
    EXPECT_INT(1, f->readies);
    fixture_expect(f, 0, 1, WEIR_ECANCELED, "");
}

TEST(a_connection_may_be_closed_at_once)
{
    fixture_open(f);
    fixture_close(f);
    weir__conn_close(NULL);
    EXPECT_INT(0, f->readies + f->losses);
}

/* What stands behind others at the server says nothing of the way there. */
TEST(of_answers_the_fastest_to_a_command_sent_alone_is_noted)
{
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    EXPECT_TRUE(f->conn->answer_ns > 0);
    f->conn->answer_ns = INT64_MAX;
    fixture_send(f, WEIR__SEND_ONCE, 1, "PING", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 1);
    EXPECT_TRUE(f->conn->answer_ns < INT64_MAX);
    f->conn->answer_ns = 1;
    fixture_send(f, WEIR__SEND_ONCE, 2, "PING", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 2);
    EXPECT_INT(1, f->conn->answer_ns);
    redis_restart(redis);
    FIXTURE_WAIT(f, f->readies == 2);
    EXPECT_TRUE(f->conn->answer_ns > 1);
}

static int64_t work_on_ping(int64_t way_ns)
{
    size_t before = f->replies;

    fixture_send(f, WEIR__SEND_ONCE, 1, "PING", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == before + 1);
    f->conn->answer_ns = way_ns;
    return weir__conn_take_work_ns(f->conn);
}

/* Without the way there and back, which has to be known. */
TEST(how_long_a_server_worked_is_told_once)
{
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    EXPECT_TRUE(work_on_ping(1) > 0);
    EXPECT_INT(-1, weir__conn_take_work_ns(f->conn));
    EXPECT_INT(0, work_on_ping(INT64_MAX));
    EXPECT_INT(-1, work_on_ping(0));
}

/* --- subscribing --------------------------------------------------------- */

TEST(a_subscriber_gets_messages_also_after_a_restart)
{
    f->options.channel = "wake";
    f->options.name = "listener";
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    EXPECT_INT(1, redis_int(redis, "PUBLISH wake one"));
    FIXTURE_WAIT(f, f->messages == 1);
    EXPECT_STR("one", f->message);
    redis_restart(redis);
    FIXTURE_WAIT(f, f->readies == 2);
    EXPECT_INT(1, redis_int(redis, "PUBLISH wake two"));
    EXPECT_INT(0, redis_int(redis, "PUBLISH other three"));
    FIXTURE_WAIT(f, f->messages == 2);
    EXPECT_STR("two", f->message);
    EXPECT_INT(1, f->losses);
}

TEST(a_subscriber_that_may_not_listen_is_told)
{
    f->options.channel = "wake";
    EXPECT_STR("OK", redis_text(redis, "ACL SETUSER default resetchannels"));
    fixture_open(f);
    FIXTURE_WAIT(f, f->losses == 1);
    EXPECT_INT(WEIR_ESERVER, f->lost_code);
    EXPECT_CONTAINS("NOPERM", f->lost_text);
}
