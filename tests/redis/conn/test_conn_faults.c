/* SPDX-License-Identifier: MIT */
#include <signal.h>

#include "adapters/redis/conn/private.h"
#include "tests/harness/descriptors.h"
#include "tests/harness/redis_proc.h"
#include "tests/redis/conn/conn_fixture.h"

static const struct redis_options durable = {.appendonly = true};

static struct fixture *ready_fixture(struct redis_proc *redis)
{
    struct fixture *f = fixture_new(redis_socket(redis));

    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    return f;
}

/* --- servers that come and go -------------------------------------------- */

TEST(commands_in_flight_are_sent_again_or_called_unknown_after_a_kill)
{
    struct redis_proc *redis = redis_start(&durable);
    struct fixture *f = ready_fixture(redis);

    redis_kill(redis, SIGSTOP); /* so that nothing is answered */
    for (int i = 1; i <= 6; i++)
        fixture_send(f, i % 2 == 0 ? WEIR__SEND_AGAIN : WEIR__SEND_ONCE, i,
                     "INCR", "n", NULL);
    weir__conn_flush(f->conn);
    fixture_send(f, WEIR__SEND_ONCE, 7, "INCR", "n", NULL); /* not flushed */
    redis_kill(redis, SIGKILL);
    FIXTURE_WAIT(f, f->losses == 1);
    EXPECT_INT(WEIR_ECONN, f->lost_code);
    EXPECT_INT(3, f->replies);
    for (int i = 0; i < 3; i++)
        fixture_expect(f, (size_t)i, 2 * i + 1, WEIR_EUNKNOWN, "");
    redis_restart(redis);
    FIXTURE_WAIT(f, f->replies == 7);
    fixture_expect(f, 3, 2, WEIR_OK, "1");
    fixture_expect(f, 4, 4, WEIR_OK, "2");
    fixture_expect(f, 5, 6, WEIR_OK, "3");
    fixture_expect(f, 6, 7, WEIR_OK, "4");
    EXPECT_CONTAINS("redis: connection lost (", f->log_text);
    EXPECT_CONTAINS(", retry in ", f->log_text);
}

TEST(order_survives_several_losses)
{
    struct redis_proc *redis = redis_start(&durable);
    struct fixture *f = ready_fixture(redis);

    redis_kill(redis, SIGSTOP);
    for (int round = 0; round < 3; round++) {
        for (int i = 1; i <= 20; i++)
            fixture_send(f, WEIR__SEND_AGAIN, round * 20 + i, "INCR", "n",
                         NULL);
        weir__conn_flush(f->conn);
        redis_kill(redis, SIGKILL);
        FIXTURE_WAIT(f, f->losses == (size_t)round + 1);
        redis_restart(redis);
        if (round < 2)
            redis_kill(redis, SIGSTOP);
    }
    FIXTURE_WAIT(f, f->replies == 60);
    for (int i = 0; i < 60; i++)
        EXPECT_INT(i + 1, f->reply[i].id);
}

TEST(a_missing_server_is_reported_and_found_when_it_appears)
{
    struct redis_proc *redis = redis_prepare(NULL);
    struct fixture *f = fixture_new(redis_socket(redis));

    fixture_open(f);
    EXPECT_INT(0, f->losses); /* never inside a call */
    fixture_send(f, WEIR__SEND_ONCE, 1, "PING", NULL);
    FIXTURE_WAIT(f, f->losses >= 2);
    EXPECT_INT(WEIR_ECONN, f->lost_code);
    EXPECT_CONTAINS("No such file", f->lost_text);
    redis_restart(redis);
    FIXTURE_WAIT(f, f->replies == 1);
    fixture_expect(f, 0, 1, WEIR_OK, "PONG");
    EXPECT_INT(1, f->readies);
}

TEST(a_refused_tcp_connection_is_reported)
{
    const struct redis_options options = {.tcp = true};
    struct redis_proc *redis = redis_prepare(&options);
    struct fixture *f = fixture_new("");

    f->url = (struct weir__redis_url){
        .host_count = 1, .hosts = {{"127.0.0.1", (uint16_t)redis_port(redis)}}};
    fixture_open(f);
    fixture_send(f, WEIR__SEND_ONCE, 1, "PING", NULL);
    FIXTURE_WAIT(f, f->losses == 2);
    EXPECT_CONTAINS("refused", f->lost_text);
    redis_restart(redis);
    FIXTURE_WAIT(f, f->replies == 1);
    fixture_expect(f, 0, 1, WEIR_OK, "PONG");
}

TEST(commands_wait_for_a_connection_only_so_long)
{
    struct redis_proc *redis = redis_prepare(NULL);
    struct fixture *f = fixture_new(redis_socket(redis));

    f->options.wait_ms = 100;
    fixture_open(f);
    fixture_send(f, WEIR__SEND_ONCE, 1, "PING", NULL);
    fixture_send(f, WEIR__SEND_AGAIN, 2, "PING", NULL);
    FIXTURE_WAIT(f, f->replies == 2);
    fixture_expect(f, 0, 1, WEIR_ECONN, "");
    fixture_expect(f, 1, 2, WEIR_ECONN, "");
    fixture_send(f, WEIR__SEND_ONCE, 3, "PING", NULL);
    FIXTURE_WAIT(f, f->replies == 3);
    fixture_expect(f, 2, 3, WEIR_ECONN, "");
}

TEST(what_may_have_run_ends_as_unknown_when_the_server_stays_away)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = fixture_new(redis_socket(redis));

    f->options.wait_ms = 200;
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    redis_kill(redis, SIGSTOP);
    fixture_send(f, WEIR__SEND_AGAIN, 1, "INCR", "n", NULL);
    weir__conn_flush(f->conn);
    fixture_send(f, WEIR__SEND_AGAIN, 2, "INCR", "n", NULL); /* not sent */
    redis_kill(redis, SIGKILL);
    FIXTURE_WAIT(f, f->replies == 2);
    fixture_expect(f, 0, 1, WEIR_EUNKNOWN, "");
    fixture_expect(f, 1, 2, WEIR_ECONN, "");
}

TEST(a_connection_cut_by_the_server_comes_back)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = ready_fixture(redis);

    EXPECT_INT(1, redis_int(redis, "CLIENT KILL TYPE normal SKIPME yes"));
    FIXTURE_WAIT(f, f->losses == 1 && f->readies == 2);
    EXPECT_CONTAINS("closed the connection", f->lost_text);
}

TEST(a_lack_of_descriptors_is_one_warning)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = ready_fixture(redis);
    struct descriptors all;
    size_t before = f->warnings;

    EXPECT_INT(1, redis_int(redis, "CLIENT KILL TYPE normal SKIPME yes"));
    FIXTURE_WAIT(f, f->losses == 1);
    descriptors_take(&all);
    FIXTURE_WAIT(f, f->losses == 4);
    descriptors_give_back(&all);
    EXPECT_INT((int64_t)before + 2, f->warnings);
    EXPECT_CONTAINS("(Too many open files), retry in ", f->log_text);
    FIXTURE_WAIT(f, f->readies == 2);
}

TEST(the_state_callback_may_close_a_lost_connection)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = ready_fixture(redis);

    redis_kill(redis, SIGSTOP);
    f->closes_on_state = true;
    fixture_send(f, WEIR__SEND_ONCE, 1, "PING", NULL);
    fixture_send(f, WEIR__SEND_AGAIN, 2, "PING", NULL);
    weir__conn_flush(f->conn);
    redis_kill(redis, SIGKILL);
    FIXTURE_WAIT(f, f->conn == NULL);
    EXPECT_INT(2, f->replies);
    fixture_expect(f, 0, 1, WEIR_EUNKNOWN, "");
    fixture_expect(f, 1, 2, WEIR_ECANCELED, "");
}

TEST(the_callback_of_a_lost_command_may_close_the_connection)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = ready_fixture(redis);

    redis_kill(redis, SIGSTOP);
    f->closes_on_id = 1;
    for (int i = 1; i <= 3; i++)
        fixture_send(f, WEIR__SEND_ONCE, i, "PING", NULL);
    weir__conn_flush(f->conn);
    redis_kill(redis, SIGKILL);
    FIXTURE_WAIT(f, f->conn == NULL);
    EXPECT_INT(3, f->replies);
    fixture_expect(f, 0, 1, WEIR_EUNKNOWN, "");
    fixture_expect(f, 1, 2, WEIR_ECANCELED, "");
    EXPECT_INT(0, f->losses);
}

/* --- servers that are silent --------------------------------------------- */

TEST(a_server_that_does_not_answer_is_left_after_the_deadline)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = fixture_new(redis_socket(redis));
    size_t before;

    f->options.reply_ms = 300;
    f->options.handshake_ms = 300;
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    before = f->losses;
    redis_kill(redis, SIGSTOP);
    fixture_send(f, WEIR__SEND_ONCE, 1, "PING", NULL);
    fixture_send(f, WEIR__SEND_AGAIN, 2, "PING", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->losses == before + 1);
    EXPECT_CONTAINS("no reply within 300 ms", f->lost_text);
    fixture_expect(f, 0, 1, WEIR_EUNKNOWN, "");
    FIXTURE_WAIT(f, f->losses == before + 2); /* the kernel accepts for it */
    EXPECT_CONTAINS("no answer to the handshake within 300 ms", f->lost_text);
    redis_kill(redis, SIGCONT);
    FIXTURE_WAIT(f, f->replies == 2);
    fixture_expect(f, 1, 2, WEIR_OK, "PONG");
}

TEST(what_may_have_run_is_not_sent_again_after_a_long_time)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = fixture_new(redis_socket(redis));

    f->options.reply_ms = 300;
    f->options.again_ms = 200;
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    redis_kill(redis, SIGSTOP);
    fixture_send(f, WEIR__SEND_AGAIN, 1, "INCR", "n", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->losses == 1);
    fixture_send(f, WEIR__SEND_AGAIN, 2, "INCR", "m", NULL); /* not sent yet */
    f->conn->options.reply_ms = 30000;
    redis_kill(redis, SIGCONT);
    FIXTURE_WAIT(f, f->replies == 2);
    fixture_expect(f, 0, 1, WEIR_EUNKNOWN, "");
    fixture_expect(f, 1, 2, WEIR_OK, "1");
    EXPECT_STR("1", redis_text(redis, "GET n")); /* once */
}

TEST(an_idle_connection_has_no_reply_deadline)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = fixture_new(redis_socket(redis));
    size_t losses;

    f->options.reply_ms = 50;
    fixture_open(f);
    for (int i = 1; i == 1 || f->reply[i - 2].code != WEIR_OK; i++) {
        fixture_send(f, WEIR__SEND_ONCE, i, "PING", NULL);
        weir__conn_flush(f->conn);
        FIXTURE_WAIT(f, f->replies == (size_t)i);
    }
    losses = f->losses;
    fixture_turns(f, 60);
    EXPECT_INT(losses, f->losses);
}
