/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "adapters/redis/resp.h"
#include "tests/harness/resp_peer.h"
#include "tests/redis/conn/conn_fixture.h"

/* --- servers that say odd things ----------------------------------------- */

/* A peer with `rule`, and an open connection to it. The handshake is PING, so
 * the first command of a user is number 2. */
static struct fixture *peer_fixture(struct resp_peer **ret_peer,
                                    const struct resp_rule *rule)
{
    struct fixture *f;

    *ret_peer = resp_peer_start(rule, 1);
    f = fixture_new(resp_peer_socket(*ret_peer));
    fixture_open(f);
    return f;
}

TEST(a_server_that_is_loading_is_tried_again_later)
{
    static const struct resp_rule rule = {
        .connection = 1, .bytes = "-LOADING Redis is loading\r\n"};
    struct resp_peer *peer;
    struct fixture *f = peer_fixture(&peer, &rule);

    fixture_send(f, WEIR__SEND_ONCE, 1, "GET", "k", NULL);
    FIXTURE_WAIT(f, f->replies == 1);
    EXPECT_INT(1, f->losses);
    EXPECT_INT(WEIR_ESERVER, f->lost_code);
    EXPECT_STR("LOADING Redis is loading", f->lost_text);
    fixture_expect(f, 0, 1, WEIR_OK, "OK");
}

static struct fixture *told(const char *bytes)
{
    const struct resp_rule rule = {.command = 3, .bytes = bytes};
    struct resp_peer *peer = resp_peer_start(&rule, 1);
    struct fixture *f = fixture_new(resp_peer_socket(peer));

    f->options.wants_identity = true;
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    EXPECT_INT(0, weir__conn_client_id(f->conn));
    return f;
}

TEST(what_is_no_identity_is_taken_for_none)
{
    EXPECT_STR("", weir__conn_identity(told("$-1\r\n")->conn));
    EXPECT_STR("", weir__conn_identity(told("$7\r\nrun_id:\r\n")->conn));
    EXPECT_STR("", weir__conn_identity(
                       told("$23\r\nrun_id:0123456789abcdeX\r\n")->conn));
    EXPECT_STR(
        "0123456789abcdef",
        weir__conn_identity(told("$23\r\nrun_id:0123456789abcdef\r\n")->conn));
    EXPECT_INT(0, weir__conn_server_ms(told("*1\r\n:7\r\n")->conn));
    (void)told(":-5\r\n");
    (void)told(":0\r\n");
}

TEST(what_is_for_one_connection_goes_by_no_other)
{
    static const struct resp_rule rule = {.connection = 1,
                                          .command = 2,
                                          .bytes =
                                              "-READONLY You can't write.\r\n"};
    struct resp_peer *peer;
    struct fixture *f = peer_fixture(&peer, &rule);
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, 1);
    weir__resp_str(&bytes, "PING");
    EXPECT_INT(WEIR_ECONN, weir__conn_send(f->conn, &bytes, NULL,
                                           WEIR__SEND_HERE, NULL, NULL));
    FIXTURE_WAIT(f, f->readies == 1);
    fixture_send(f, WEIR__SEND_HERE, 1, "GET", "k", NULL);
    fixture_send(f, WEIR__SEND_ONCE, 2, "GET", "k", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 2);
    EXPECT_INT(1, f->losses);
    fixture_expect(f, 0, 2, WEIR_OK, "OK"); /* before the connection went */
    fixture_expect(f, 1, 1, WEIR_EUNKNOWN, "");
}

static void expect_sent_again_after(const char *bytes)
{
    const struct resp_rule rule = {
        .connection = 1, .command = 2, .bytes = bytes};
    struct resp_peer *peer;
    struct fixture *f = peer_fixture(&peer, &rule);

    fixture_send(f, WEIR__SEND_ONCE, 1, "INCR", "k", NULL);
    fixture_send(f, WEIR__SEND_ONCE, 2, "GET", "k", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 2);
    EXPECT_INT(1, f->losses);
    EXPECT_INT(WEIR_ESERVER, f->lost_code);
    EXPECT_INT(WEIR_OK, f->reply[0].code);
    EXPECT_INT(WEIR_OK, f->reply[1].code);
}

TEST(what_a_server_refused_for_a_while_is_sent_again_whatever_its_flags)
{
    expect_sent_again_after("-LOADING Redis is loading the dataset\r\n");
    expect_sent_again_after("-MASTERDOWN Link with MASTER is down\r\n");
    expect_sent_again_after("-READONLY You can't write. script: ab12\r\n");
    expect_sent_again_after("-BUSY Redis is busy running a script\r\n");
    expect_sent_again_after("-UNBLOCKED force unblock, now a replica\r\n");
    expect_sent_again_after("-NOAUTH Authentication required.\r\n");
    expect_sent_again_after("-ERR Error running script (call to f_ab12): "
                            "@user_script:1: @user_script: 1: -READONLY You "
                            "can't write against a read only replica.\r\n");
}

static void expect_told_after(const char *bytes)
{
    const struct resp_rule rule = {
        .connection = 1, .command = 2, .bytes = bytes};
    struct resp_peer *peer;
    struct fixture *f = peer_fixture(&peer, &rule);

    fixture_send(f, WEIR__SEND_ONCE, 1, "INCR", "k", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 1);
    EXPECT_INT(WEIR_ESERVER, f->reply[0].code);
    EXPECT_INT(0, f->losses);
}

TEST(other_refusals_are_for_the_one_who_asked)
{
    expect_told_after("-OOM command not allowed\r\n");
    expect_told_after("-MISCONF Redis is configured to save snapshots\r\n");
    expect_told_after("-NOREPLICAS Not enough good replicas\r\n");
    expect_told_after("-NOPERM this user has no permissions\r\n");
    expect_told_after("-WRONGTYPE Operation against a key\r\n");
    expect_told_after("-CROSSSLOT Keys in request don't hash\r\n");
    expect_told_after("-BUSYKEY Target key name already exists.\r\n");
    expect_told_after("-BUSYGROUP Consumer Group name already exists\r\n");
    expect_told_after("-ERR Error running script (call to f_ab12): "
                      "@user_script:1: -OOM command not allowed\r\n");
    expect_told_after("-ERR something about READONLY\r\n");
}

TEST(half_a_reply_and_a_hang_up_is_an_unknown_outcome)
{
    static const struct resp_rule rule = {
        .connection = 1, .command = 2, .bytes = "$10\r\nhal", .hangs_up = true};
    struct resp_peer *peer;
    struct fixture *f = peer_fixture(&peer, &rule);

    fixture_send(f, WEIR__SEND_ONCE, 1, "GET", "k", NULL);
    fixture_send(f, WEIR__SEND_AGAIN, 2, "GET", "k", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 2);
    fixture_expect(f, 0, 1, WEIR_EUNKNOWN, "");
    fixture_expect(f, 1, 2, WEIR_OK, "OK");
}

TEST(a_reply_that_never_comes_closes_the_connection)
{
    static const struct resp_rule rule = {
        .connection = 1, .command = 2, .bytes = NULL};
    struct resp_peer *peer = resp_peer_start(&rule, 1);
    struct fixture *f = fixture_new(resp_peer_socket(peer));

    f->options.reply_ms = 300;
    fixture_open(f);
    fixture_send(f, WEIR__SEND_AGAIN, 1, "GET", "k", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 1);
    EXPECT_CONTAINS("no reply within", f->lost_text);
    fixture_expect(f, 0, 1, WEIR_OK, "OK");
}

static void expect_cut_after(const char *bytes)
{
    const struct resp_rule rule = {
        .connection = 1, .command = 2, .bytes = bytes};
    struct resp_peer *peer;
    struct fixture *f = peer_fixture(&peer, &rule);

    fixture_send(f, WEIR__SEND_ONCE, 1, "GET", "k", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->losses == 1 && f->readies == 2);
    EXPECT_INT(WEIR_ECONN, f->lost_code);
    EXPECT_STR("the server sent what nobody asked for", f->lost_text);
    fixture_expect(f, 0, 1, WEIR_OK, "OK");
}

TEST(a_reply_that_nobody_asked_for_closes_the_connection)
{
    expect_cut_after("+OK\r\n+MORE\r\n");
    expect_cut_after("+OK\r\n:1\r\n");
    expect_cut_after("+OK\r\n$-1\r\n");
    expect_cut_after("+OK\r\n$1\r\nx\r\n");
    expect_cut_after("+OK\r\n*0\r\n");
    expect_cut_after("+OK\r\n*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n");
}

TEST(an_error_that_nobody_asked_for_is_the_reason_of_the_loss)
{
    static const struct resp_rule rule = {.connection = 1,
                                          .command = 2,
                                          .bytes = "+OK\r\n-ERR shut down\r\n",
                                          .hangs_up = true};
    struct resp_peer *peer;
    struct fixture *f = peer_fixture(&peer, &rule);

    fixture_send(f, WEIR__SEND_ONCE, 1, "GET", "k", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->losses == 1);
    EXPECT_INT(WEIR_ESERVER, f->lost_code);
    EXPECT_STR("ERR shut down", f->lost_text);
}

TEST(a_server_that_speaks_another_protocol_is_left)
{
    static const struct resp_rule rule = {
        .command = 1, .bytes = "HTTP/1.1 400 No\r\n\r\n", .hangs_up = true};
    struct resp_peer *peer;
    struct fixture *f = peer_fixture(&peer, &rule);

    FIXTURE_WAIT(f, f->losses == 2);
    EXPECT_CONTAINS("Protocol error", f->lost_text);
    EXPECT_INT(0, f->readies);
}

#define CONFIRMED "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
#define MESSAGE   "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n"

/* What no server pushes to who subscribed to c alone. */
static const char *const malformed[] = {
    ":1\r\n",
    "$-1\r\n",
    "$1\r\nx\r\n",
    "*-1\r\n",
    "*0\r\n",
    "*1\r\n$7\r\nmessage\r\n",
    "*2\r\n$7\r\nmessage\r\n$1\r\nc\r\n",
    "*4\r\n$8\r\npmessage\r\n$1\r\nc\r\n$1\r\nc\r\n$1\r\nx\r\n",
    "*3\r\n:1\r\n$1\r\nc\r\n:1\r\n",
    "*3\r\n$-1\r\n$1\r\nc\r\n$1\r\nx\r\n",
    "*3\r\n*-1\r\n$1\r\nc\r\n$1\r\nx\r\n",
    "*3\r\n*1\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n",
    "*3\r\n+message\r\n$1\r\nc\r\n$1\r\nx\r\n",
    "*3\r\n-message\r\n$1\r\nc\r\n$1\r\nx\r\n",
    "*3\r\n$0\r\n\r\n$1\r\nc\r\n$1\r\nx\r\n",
    "*3\r\n$7\r\nmessage\r\n:1\r\n$1\r\nx\r\n",
    "*3\r\n$7\r\nmessage\r\n$-1\r\n$1\r\nx\r\n",
    "*3\r\n$7\r\nmessage\r\n*0\r\n$1\r\nx\r\n",
    "*3\r\n$7\r\nmessage\r\n$1\r\nd\r\n$1\r\nx\r\n",
    "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n:1\r\n",
    "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$-1\r\n",
    "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n*1\r\n$1\r\nx\r\n",
    "*3\r\n$9\r\nsubscribe\r\n$1\r\nd\r\n:1\r\n",
    "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n$1\r\n1\r\n",
    "*3\r\n$9\r\nsubscribe\r\n$-1\r\n:1\r\n",
    "*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n",
    "*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n$1\r\n0\r\n",
    "*3\r\n$11\r\nunsubscribe\r\n$1\r\nd\r\n:0\r\n",
    "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n",
    "*3\r\n$12\r\npunsubscribe\r\n$1\r\nc\r\n:0\r\n",
    "*3\r\n$10\r\npsubscribe\r\n$1\r\nc\r\n:1\r\n",
    "*3\r\n$10\r\nssubscribe\r\n$1\r\nc\r\n:1\r\n",
};

enum { MALFORMED = sizeof(malformed) / sizeof(malformed[0]) };

/* The handshake of a subscriber is PING and SUBSCRIBE. */
static void expect_subscriber_cut(int command, const char *before,
                                  const char *bytes, const char *after)
{
    char text[256];
    const struct resp_rule rules[] = {
        {.connection = 1, .command = command, .bytes = text},
        {.command = 2, .bytes = CONFIRMED},
    };
    struct resp_peer *peer;
    struct fixture *f;

    (void)snprintf(text, sizeof(text), "%s%s%s", before, bytes, after);
    peer = resp_peer_start(rules, 2);
    f = fixture_new(resp_peer_socket(peer));
    f->options.channel = "c";
    fixture_open(f);
    FIXTURE_WAIT(f, f->losses == 1);
    EXPECT_STR("the server sent what nobody asked for", f->lost_text);
    EXPECT_INT(0, f->messages);
}

TEST(malformed_messages_before_a_subscription_close_the_connection)
{
    for (size_t i = 0; i < MALFORMED; i++) {
        expect_subscriber_cut(1, "", malformed[i], "+PONG\r\n");
        expect_subscriber_cut(1, "+PONG\r\n", malformed[i], "");
    }
}

TEST(malformed_messages_instead_of_a_subscription_close_the_connection)
{
    expect_subscriber_cut(2, "", MESSAGE, CONFIRMED);
    expect_subscriber_cut(2, "", "+OK\r\n", CONFIRMED);
    for (size_t i = 0; i < MALFORMED; i++)
        expect_subscriber_cut(2, "", malformed[i], CONFIRMED);
}

TEST(malformed_messages_to_a_subscriber_close_its_connection)
{
    expect_subscriber_cut(2, CONFIRMED, CONFIRMED, "");
    expect_subscriber_cut(2, CONFIRMED, "+OK\r\n", "");
    for (size_t i = 0; i < MALFORMED; i++)
        expect_subscriber_cut(2, CONFIRMED, malformed[i], "");
}

/* --- signals ------------------------------------------------------------- */

static bool pipe_signal_pends(void)
{
    sigset_t pending;

    EXPECT_INT(0, sigpending(&pending));
    return sigismember(&pending, SIGPIPE) == 1;
}

/* The peer is gone and we have not noticed: the write raises SIGPIPE. */
static void write_to_a_dead_peer(void)
{
    static const struct resp_rule rule = {
        .connection = 9, .command = 9, .bytes = NULL};
    struct resp_peer *peer;
    struct fixture *f = peer_fixture(&peer, &rule);

    FIXTURE_WAIT(f, f->readies == 1);
    resp_peer_stop(peer);
    fixture_send(f, WEIR__SEND_ONCE, 1, "PING", NULL);
    weir__conn_flush(f->conn);
    EXPECT_INT(0, f->replies); /* never inside a call */
    FIXTURE_WAIT(f, f->losses >= 1);
    fixture_expect(f, 0, 1, WEIR_EUNKNOWN, "");
}

TEST(a_write_to_a_dead_peer_raises_no_signal)
{
    sigset_t mask;

    write_to_a_dead_peer();
    EXPECT_TRUE(!pipe_signal_pends());
    EXPECT_INT(0, pthread_sigmask(SIG_BLOCK, NULL, &mask));
    EXPECT_INT(0, sigismember(&mask, SIGPIPE));
}

TEST(a_signal_that_the_host_blocks_stays_as_it_was)
{
    sigset_t mask;

    (void)sigemptyset(&mask); /* cannot fail */
    (void)sigaddset(&mask, SIGPIPE);
    EXPECT_INT(0, pthread_sigmask(SIG_BLOCK, &mask, NULL));
    write_to_a_dead_peer();
    EXPECT_TRUE(!pipe_signal_pends());
    EXPECT_INT(0, raise(SIGPIPE)); /* the host's own */
    write_to_a_dead_peer();
    EXPECT_TRUE(pipe_signal_pends());
}
