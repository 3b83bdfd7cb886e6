/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "adapters/redis/conn/private.h"
#include "adapters/redis/resp.h"
#include "tests/harness/redis_proc.h"
#include "tests/harness/resp_peer.h"
#include "tests/redis/conn/conn_fixture.h"

/* A server without a file forgets all when it starts anew, so what is there
 * afterwards was said again, in this order. */

static const unsigned REPLAY = WEIR__SEND_AGAIN | WEIR__SEND_REPLAY;

static struct fixture *connected_to(const char *socket)
{
    struct fixture *f = fixture_new(socket);

    f->options.wants_identity = true;
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    return f;
}

/* Have `count` numbers from 1 on pushed to the list l, and wait for it. */
static void push(struct fixture *f, int count)
{
    for (int i = 1; i <= count; i++) {
        char number[16];

        (void)snprintf(number, sizeof(number), "%d", i); /* fits */
        fixture_send(f, REPLAY, i, "RPUSH", "l", number, NULL);
    }
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == (size_t)count);
}

/* A command behind everything else, and wait for it. */
static void catch_up(struct fixture *f)
{
    enum { LAST = 1000 };

    fixture_send(f, WEIR__SEND_AGAIN, LAST, "PING", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies > 0 && f->reply[f->replies - 1].id == LAST);
    f->replies--;
}

/* --- to whom ------------------------------------------------------------- */

TEST(what_was_acknowledged_is_said_again_to_a_server_that_started_anew)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = connected_to(redis_socket(redis));

    push(f, 3);
    redis_restart(redis);
    catch_up(f);
    EXPECT_STR("1 2 3", redis_text(redis, "LRANGE l 0 -1"));
    EXPECT_INT(3, f->replies); /* nobody heard of it */
    redis_restart(redis);
    catch_up(f);
    EXPECT_STR("1 2 3", redis_text(redis, "LRANGE l 0 -1"));
}

TEST(a_server_that_was_only_cut_off_is_told_nothing_twice)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = connected_to(redis_socket(redis));

    push(f, 3);
    EXPECT_TRUE(redis_int(redis, "CLIENT KILL TYPE normal") >= 1);
    FIXTURE_WAIT(f, f->readies == 2);
    catch_up(f);
    EXPECT_STR("1 2 3", redis_text(redis, "LRANGE l 0 -1"));
    redis_restart(redis);
    catch_up(f);
    EXPECT_STR("1 2 3", redis_text(redis, "LRANGE l 0 -1"));
}

TEST(a_server_that_does_not_say_who_it_is_is_told_again)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f;

    EXPECT_STR("OK", redis_text(redis, "ACL SETUSER default -info"));
    f = connected_to(redis_socket(redis));
    push(f, 3);
    EXPECT_TRUE(redis_int(redis, "CLIENT KILL TYPE normal") >= 1);
    FIXTURE_WAIT(f, f->readies == 2);
    catch_up(f);
    EXPECT_STR("1 2 3 1 2 3", redis_text(redis, "LRANGE l 0 -1"));
}

/* --- what, and when ------------------------------------------------------ */

TEST(what_is_said_again_goes_ahead_of_what_was_not_answered_and_what_is_new)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = connected_to(redis_socket(redis));

    push(f, 2);
    redis_kill(redis, SIGSTOP);
    fixture_send(f, REPLAY, 3, "RPUSH", "l", "3", NULL);
    weir__conn_flush(f->conn);
    redis_kill(redis, SIGKILL);
    FIXTURE_WAIT(f, f->losses == 1);
    fixture_send(f, REPLAY, 4, "RPUSH", "l", "4", NULL);
    redis_restart(redis);
    FIXTURE_WAIT(f, f->replies == 4);
    EXPECT_STR("1 2 3 4", redis_text(redis, "LRANGE l 0 -1"));
    fixture_expect(f, 2, 3, WEIR_OK, "3");
    fixture_expect(f, 3, 4, WEIR_OK, "4");
}

TEST(what_was_refused_or_must_not_be_repeated_is_not_said_again)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = connected_to(redis_socket(redis));

    EXPECT_STR("OK", redis_text(redis, "SET k v"));
    fixture_send(f, REPLAY, 1, "RPUSH", "k", "1", NULL);
    fixture_send(f, WEIR__SEND_AGAIN, 2, "RPUSH", "l", "2", NULL);
    fixture_send(f, WEIR__SEND_REPLAY, 3, "RPUSH", "l", "3", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 3);
    EXPECT_INT(WEIR_ESERVER, f->reply[0].code);
    redis_restart(redis);
    catch_up(f);
    EXPECT_STR("3", redis_text(redis, "LRANGE l 0 -1"));
    EXPECT_INT(0, redis_int(redis, "EXISTS k"));
}

TEST(sixteen_mebibytes_are_kept_and_the_oldest_go_first)
{
    enum { LARGE = 6 * 1024 * 1024, TOO_LARGE = 17 * 1024 * 1024 };
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = connected_to(redis_socket(redis));
    char *body = calloc(1, TOO_LARGE + 1);

    EXPECT_TRUE(body != NULL);
    memset(body, 'b', LARGE);
    for (int i = 1; i <= 3; i++)
        fixture_send(f, REPLAY, i, "SET", &"1\0002\0003"[2 * i - 2], body,
                     NULL);
    catch_up(f);
    redis_restart(redis);
    catch_up(f);
    EXPECT_INT(0, redis_int(redis, "EXISTS 1"));
    EXPECT_INT(2, redis_int(redis, "EXISTS 2 3"));

    memset(body, 'b', TOO_LARGE);
    fixture_send(f, REPLAY, 4, "SET", "4", body, NULL);
    fixture_send(f, REPLAY, 5, "SET", "5", "", NULL);
    catch_up(f);
    redis_restart(redis);
    catch_up(f);
    EXPECT_INT(0, redis_int(redis, "EXISTS 1 2 3 4"));
    EXPECT_INT(1, redis_int(redis, "EXISTS 5"));
    free(body);
}

TEST(what_was_acknowledged_long_before_the_loss_is_not_said_again)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = fixture_new(redis_socket(redis));

    f->options.wants_identity = true;
    f->options.replay_ms = 1;
    fixture_open(f);
    push(f, 2);
    redis_restart(redis); /* takes longer */
    catch_up(f);
    EXPECT_INT(0, redis_int(redis, "EXISTS l"));
}

TEST(an_outage_does_not_make_what_was_acknowledged_older)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = fixture_new(redis_socket(redis));
    double lost_at;

    f->options.wants_identity = true;
    f->options.replay_ms = 60000; /* the loss may be seen late */
    fixture_open(f);
    push(f, 2);
    redis_kill(redis, SIGKILL);
    FIXTURE_WAIT(f, f->losses == 1);
    f->conn->options.replay_ms = 300;
    lost_at = ev_time();
    FIXTURE_WAIT(f, f->losses > 3 && ev_time() > lost_at + .5);
    redis_restart(redis);
    catch_up(f);
    EXPECT_STR("1 2", redis_text(redis, "LRANGE l 0 -1"));
}

/* --- interrupted --------------------------------------------------------- */

#define RUN_A "$23\r\nrun_id:aaaaaaaaaaaaaaaa\r\n"
#define RUN_B "$23\r\nrun_id:bbbbbbbbbbbbbbbb\r\n"
#define RUN_C "$23\r\nrun_id:cccccccccccccccc\r\n"

enum { QUESTION = 3, FIRST = 5 }; /* commands of each connection */

/* A peer with these rules, to which two commands were said that it
 * acknowledged. */
static struct fixture *two_said_to(const struct resp_rule *rules, size_t count)
{
    struct resp_peer *peer = resp_peer_start(rules, count);
    struct fixture *f = connected_to(resp_peer_socket(peer));

    push(f, 2);
    fixture_send(f, WEIR__SEND_AGAIN, 3, "GET", "k", NULL);
    weir__conn_flush(f->conn);
    return f;
}

/* How many commands went out beside handshakes. */
static uint64_t said(const struct fixture *f)
{
    return weir__conn_sent(f->conn) - f->readies * (FIRST - 1);
}

TEST(the_time_ends_with_the_last_sign_of_the_server)
{
    static const struct resp_rule rules[] = {
        {.connection = 1, .command = QUESTION, .bytes = RUN_A},
        {.connection = 1, .command = FIRST + 2, .bytes = NULL},
        {.command = QUESTION, .bytes = RUN_B},
    };
    struct resp_peer *peer = resp_peer_start(rules, 3);
    struct fixture *f = fixture_new(resp_peer_socket(peer));

    f->options.wants_identity = true;
    f->options.reply_ms = 300;
    f->options.replay_ms = 100;
    fixture_open(f);
    for (int i = 1; i <= 3; i++) /* at once: the third is not answered */
        fixture_send(f, REPLAY, i, "RPUSH", "l", "1", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 3);
    EXPECT_CONTAINS("no reply within", f->lost_text);
    EXPECT_INT(3 + 3, said(f));
}

TEST(what_was_said_again_is_not_said_a_third_time_to_the_same_server)
{
    static const struct resp_rule rules[] = {
        {.connection = 1, .command = QUESTION, .bytes = RUN_A},
        {.connection = 1, .command = FIRST + 2, .hangs_up = true},
        {.connection = 2, .command = FIRST + 1, .hangs_up = true},
        {.command = QUESTION, .bytes = RUN_B},
    };
    struct fixture *f = two_said_to(rules, 4);

    FIXTURE_WAIT(f, f->replies == 3);
    EXPECT_INT(3, f->readies);
    EXPECT_INT(3 + 2 + 2, said(f)); /* 1 2 3, 1 2, 2 3 */
}

TEST(what_was_said_again_is_said_a_third_time_to_a_third_server)
{
    static const struct resp_rule rules[] = {
        {.connection = 1, .command = QUESTION, .bytes = RUN_A},
        {.connection = 1, .command = FIRST + 2, .hangs_up = true},
        {.connection = 2, .command = FIRST + 1, .hangs_up = true},
        {.connection = 2, .command = QUESTION, .bytes = RUN_B},
        {.command = QUESTION, .bytes = RUN_C},
    };
    struct fixture *f = two_said_to(rules, 5);

    FIXTURE_WAIT(f, f->replies == 3);
    EXPECT_INT(3, f->readies);
    EXPECT_INT(3 + 2 + 3, said(f)); /* 1 2 3, 1 2, 1 2 3 */
}

TEST(a_server_that_takes_no_writes_yet_is_told_until_it_does)
{
    static const struct resp_rule rules[] = {
        {.connection = 1, .command = QUESTION, .bytes = RUN_A},
        {.connection = 1, .command = FIRST + 2, .hangs_up = true},
        {.connection = 2,
         .command = FIRST,
         .bytes = "-NOREPLICAS Not enough good replicas to write.\r\n"},
        {.command = QUESTION, .bytes = RUN_B},
    };
    struct fixture *f = two_said_to(rules, 4);

    FIXTURE_WAIT(f, f->replies == 3);
    EXPECT_CONTAINS("NOREPLICAS", f->lost_text);
    EXPECT_INT(2, f->losses);
    EXPECT_INT(3 + 1 + 3, said(f)); /* 1 2 3, 1, 1 2 3 */
}

TEST(closing_ends_what_is_to_be_said_again)
{
    static const struct resp_rule rules[] = {
        {.connection = 1, .command = QUESTION, .bytes = RUN_A},
        {.connection = 1, .command = FIRST + 2, .hangs_up = true},
        {.connection = 2, .command = FIRST, .bytes = NULL},
        {.command = QUESTION, .bytes = RUN_B},
    };
    struct fixture *f = two_said_to(rules, 4);

    FIXTURE_WAIT(f, f->readies == 2);
    FIXTURE_WAIT(f, said(f) == 3 + 1); /* 1 2 3, 1 */
    fixture_close(f);
    EXPECT_INT(3, f->replies);
    fixture_expect(f, 2, 3, WEIR_ECANCELED, "");
}

/* --- what is logged ------------------------------------------------------ */

static enum weir__replayed judge(const struct weir__script *script,
                                 const struct redisReply *reply,
                                 size_t elements)
{
    EXPECT_TRUE(script != NULL);
    EXPECT_INT(0, elements);
    if (reply->type != REDIS_REPLY_INTEGER || reply->integer == 0)
        return WEIR__REPLAYED_HEARD;
    return reply->integer > 0 ? WEIR__REPLAYED_LOST : WEIR__REPLAYED_REFUSED;
}

/* Three calls of a script, of which the first one is answered so the second
 * time; 0: a call is known for a minute. Returns the log. */
static const char *log_of(const char *answer, int64_t again_ms)
{
    static struct resp_rule rules[] = {
        {.connection = 1, .command = QUESTION, .bytes = RUN_A},
        {.connection = 1, .command = FIRST + 4, .hangs_up = true},
        {.connection = 2, .command = QUESTION, .bytes = RUN_B},
        {.connection = 2, .command = FIRST + 1},
    };
    struct resp_peer *peer;
    struct fixture *f;

    rules[3].bytes = answer;
    peer = resp_peer_start(rules, 4);
    f = fixture_new(resp_peer_socket(peer));
    f->options.wants_identity = true;
    f->options.judge = judge;
    f->options.again_ms = again_ms;
    fixture_open(f);
    for (int i = 1; i <= 3; i++) {
        struct weir__buf bytes = {0};

        weir__resp_command(&bytes, 1);
        weir__resp_str(&bytes, "EVALSHA");
        EXPECT_INT(WEIR_OK,
                   weir__conn_send(f->conn, &bytes, &weir__script_delay_renew,
                                   REPLAY, NULL, NULL));
    }
    fixture_send(f, WEIR__SEND_ONCE, 4, "GET", "k", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->readies == 2);
    catch_up(f);
    return f->log_text;
}

TEST(calls_that_are_said_again_are_counted_in_the_log)
{
    EXPECT_CONTAINS("redis: replayed 3 calls, 1 had been lost",
                    log_of(":1\r\n", 0));
    EXPECT_CONTAINS("redis: replayed 3 calls, 0 had been lost",
                    log_of(":0\r\n", 0));
}

TEST(calls_that_are_not_taken_again_are_a_warning)
{
    const char *log = log_of(":-1\r\n", 0);

    EXPECT_CONTAINS("redis: replayed 2 calls, 0 had been lost", log);
    EXPECT_CONTAINS("redis: 1 calls that had been acknowledged were not "
                    "replayed and may be lost: the topic is full or of another "
                    "kind by now, or somebody took the ids of their jobs",
                    log);
}

TEST(calls_that_cannot_be_said_again_are_a_warning)
{
    const char *log = log_of("-OOM command not allowed\r\n", 0);

    EXPECT_CONTAINS("redis: replayed 2 calls, 0 had been lost", log);
    EXPECT_CONTAINS("redis: 1 calls that had been acknowledged were not "
                    "replayed and may be lost: OOM command not allowed",
                    log);
}

TEST(beyond_the_time_in_which_repeats_are_known_nothing_is_said_again)
{
    const char *log = log_of(":1\r\n", 1);

    EXPECT_TRUE(strstr(log, "redis: replayed") == NULL);
    EXPECT_CONTAINS("redis: 3 calls that had been acknowledged were not "
                    "replayed and may be lost: the outage took too long",
                    log);
}
