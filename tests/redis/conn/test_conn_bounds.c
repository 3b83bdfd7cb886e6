/* SPDX-License-Identifier: MIT */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "adapters/redis/conn/private.h"
#include "tests/harness/memory.h"
#include "tests/harness/resp_peer.h"
#include "tests/redis/conn/conn_fixture.h"

/* Peers that answer without measure: too much, too slowly, or unasked. The
 * handshake is PING, so the first command of a user is number 2. */

#define CONFIRMED "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
#define PUSHED    "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n"
#define HUGE      "$2147483647\r\n"

enum { MIB = 1024 * 1024, SOON_MS = 300, LONG_MS = 300000, HOLD_MS = 100 };

/* `head`, then `len` bytes, CR LF. */
static char *text_of(const char *head, size_t len)
{
    size_t head_len = strlen(head);
    char *text = malloc(head_len + len + 3);

    EXPECT_TRUE(text != NULL);
    memcpy(text, head, head_len);
    memset(text + head_len, 'x', len);
    memcpy(text + head_len + len, "\r\n", 3);
    return text;
}

static const char *flood(void)
{
    static char text[16 * 1024 + 1];

    memset(text, '1', sizeof(text) - 1);
    return text;
}

static struct resp_peer *peer;
static struct fixture *f;

/* Large answers may take long under sanitizers. */
static void start(const struct resp_rule *rule)
{
    peer = resp_peer_start(rule, 1);
    f = fixture_new(resp_peer_socket(peer));
    f->options.reply_ms = LONG_MS;
}

/* --- too much ------------------------------------------------------------- */

static void expect_too_large(const char *bytes, const char *more)
{
    const struct resp_rule rule = {
        .connection = 1, .command = 2, .bytes = bytes, .more = more};

    start(&rule);
    fixture_open(f);
    fixture_send(f, WEIR__SEND_AGAIN, 1, "GET", "k", NULL);
    fixture_send(f, WEIR__SEND_AGAIN, 2, "GET", "l", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 2);
    EXPECT_STR("an answer of more than 64 MiB", f->lost_text);
    EXPECT_INT(1, f->losses);
    fixture_expect(f, 0, 1, WEIR_EUNKNOWN, ""); /* it is not asked again */
    fixture_expect(f, 1, 2, WEIR_OK, "OK");
    expect_memory_below(200);
}

TEST(an_answer_that_is_too_large_closes_the_connection)
{
    expect_too_large("*2147483647\r\n", NULL);
    expect_too_large("*1000000\r\n*1000000\r\n*1000000\r\n*1000000\r\n", NULL);
    expect_too_large("*1000000\r\n", "*2\r\n*-1\r\n$8\r\nxxxxxxxx\r\n");
    expect_too_large(HUGE, flood());
    expect_too_large("*2\r\n$2\r\nxx\r\n" HUGE, flood());
}

TEST(a_line_without_end_closes_the_connection)
{
    expect_too_large("+", flood());
    expect_too_large("-ERR ", flood());
    expect_too_large(":", flood());
    expect_too_large("$", flood());
    expect_too_large("*", flood());
}

static void expect_of_one_body(size_t mib, int code)
{
    char head[32];
    char *text;
    const struct resp_rule *rule;

    (void)snprintf(head, sizeof(head), "$%zu\r\n", mib * MIB);
    text = text_of(head, mib * MIB);
    rule = &(struct resp_rule){.connection = 1, .command = 2, .bytes = text};
    start(rule);
    fixture_open(f);
    fixture_send(f, WEIR__SEND_AGAIN | weir__send_bodies(1), 1, "GET", "k",
                 NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 1);
    EXPECT_INT(code, f->reply[0].code);
    EXPECT_INT(code == WEIR_OK ? 0 : 1, f->losses);
    free(text);
}

TEST(an_answer_may_have_what_was_asked_for)
{
    expect_of_one_body(79, WEIR_OK);
    expect_of_one_body(81, WEIR_ETOOBIG);
}

TEST(many_answers_may_have_more_than_one)
{
    char *text = text_of("$1048576\r\n", MIB);
    const struct resp_rule rule = {.bytes = text};

    start(&rule);
    fixture_open(f);
    for (int i = 0; i < 100; i++)
        fixture_send(f, WEIR__SEND_ONCE, i + 1, "GET", "k", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 100);
    EXPECT_INT(0, f->losses);
    free(text);
}

/* --- unasked -------------------------------------------------------------- */

static void expect_unasked(const char *channel, const char *bytes)
{
    const struct resp_rule rule = {.connection = 1,
                                   .command = channel == NULL ? 1 : 2,
                                   .bytes = bytes,
                                   .more = flood()};

    start(&rule);
    f->options.channel = channel;
    fixture_open(f);
    FIXTURE_WAIT(f, f->losses == 1);
    EXPECT_STR("the server sent what nobody asked for", f->lost_text);
    EXPECT_CONTAINS("connection lost", f->log_text);
    expect_memory_below(64);
}

TEST(a_flood_that_nobody_asked_for_closes_the_connection)
{
    expect_unasked(NULL, "+PONG\r\n" HUGE);
    expect_unasked(NULL, "+PONG\r\n-");
    expect_unasked("c", CONFIRMED PUSHED HUGE);
    expect_unasked("c", CONFIRMED HUGE);
    expect_unasked("c", CONFIRMED "+");
}

TEST(messages_without_end_are_taken_and_take_no_memory)
{
    const struct resp_rule rule = {
        .command = 2, .bytes = CONFIRMED, .more = PUSHED "$1\r\nx\r\n"};

    start(&rule);
    f->options.channel = "c";
    f->options.reply_ms = SOON_MS;
    fixture_open(f);
    FIXTURE_WAIT(f, f->messages > 300000);
    EXPECT_INT(0, f->losses);
    expect_memory_below(64);
}

TEST(who_floods_each_connection_is_tried_again_later_each_time)
{
    const struct resp_rule rule = {
        .command = 1, .bytes = "+PONG\r\n" HUGE, .more = flood()};

    start(&rule);
    fixture_open(f);
    for (size_t losses = 1; losses <= 4; losses++) {
        FIXTURE_WAIT(f, f->losses == losses);
        EXPECT_TRUE(fixture_retry_ms(f) >= 50);
    }
}

/* --- too slowly ----------------------------------------------------------- */

static void expect_given_up(const char *channel, const struct resp_rule *rule,
                            const char *text)
{
    start(rule);
    f->options.channel = channel;
    f->options.reply_ms = SOON_MS;
    fixture_open(f);
    if (rule->command == 2 && channel == NULL)
        fixture_send(f, WEIR__SEND_ONCE, 1, "GET", "k", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->losses == 1);
    EXPECT_STR(text, f->lost_text);
}

TEST(an_answer_that_trickles_is_given_up)
{
    struct resp_rule rule = {
        .command = 2, .bytes = HUGE, .more = "x", .every_ms = 20};

    expect_given_up(NULL, &rule, "no reply within 300 ms");
    rule.bytes = "*500000\r\n";
    rule.more = ":1\r\n";
    expect_given_up(NULL, &rule, "no reply within 300 ms");
}

/* There always is a byte to read. */
TEST(an_answer_that_flows_thinly_is_given_up)
{
    const struct resp_rule rule = {.command = 2, .bytes = HUGE, .more = "x"};

    expect_given_up(NULL, &rule, "no reply within 300 ms");
}

TEST(a_message_that_does_not_end_is_given_up)
{
    static const char *const begun[] = {
        CONFIRMED "*", CONFIRMED "*3", CONFIRMED "*3\r\n$7\r\nmess",
        CONFIRMED PUSHED "$100\r\n", CONFIRMED PUSHED "$1\r\nx\r\n$"};
    struct resp_rule rule = {.command = 2};

    for (size_t i = 0; i < sizeof(begun) / sizeof(begun[0]); i++) {
        rule.bytes = begun[i];
        expect_given_up("c", &rule, "no end of a message within 300 ms");
    }
    rule.bytes = CONFIRMED PUSHED "$60000\r\n";
    rule.more = "x";
    rule.every_ms = 20;
    expect_given_up("c", &rule, "no end of a message within 300 ms");
}

TEST(half_an_answer_that_nobody_asked_for_is_given_up)
{
    const struct resp_rule rule = {.command = 1, .bytes = "+PONG\r\n-ERR "};

    expect_given_up(NULL, &rule, "no end of a message within 300 ms");
}

/* --- in large parts ------------------------------------------------------- */

static void await_in_socket(int bytes)
{
    struct patience patience = patience_start(60.);
    int there = 0;

    while (there < bytes) {
        EXPECT_TRUE(!patience_ended(&patience));
        (void)poll(NULL, 0, 1);
        EXPECT_INT(0, ioctl(f->conn->context->c.fd, FIONREAD, &there));
    }
}

/* 16 KiB twice, then 128 KiB of what is known to be large, then the rest. */
TEST(a_large_answer_that_is_there_is_read_in_few_turns)
{
    char *text = text_of("$196608\r\n", 196608);
    const struct resp_rule rule = {.command = 2, .bytes = text};
    uint64_t before;

    start(&rule);
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    before = f->conn->reads;
    fixture_send(f, WEIR__SEND_ONCE, 1, "GET", "k", NULL);
    weir__conn_flush(f->conn);
    await_in_socket((int)strlen(text));
    FIXTURE_WAIT(f, f->replies == 1);
    EXPECT_INT(WEIR_OK, f->reply[0].code);
    EXPECT_INT(4, f->conn->reads - before);
    free(text);
}

/* --- in time, but read late ----------------------------------------------- */

/* As a handler that holds the loop, or a stop of the process. */
static void hold_the_loop(void)
{
    f->conn->options.reply_ms = HOLD_MS / 2;
    (void)poll(NULL, 0, HOLD_MS);
}

TEST(an_answer_that_waits_in_the_socket_is_read_after_its_deadline)
{
    char *text = text_of("$196608\r\n", 196608);
    const struct resp_rule rule = {.command = 2, .bytes = text};

    start(&rule);
    f->options.reply_ms = SOON_MS;
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    fixture_send(f, WEIR__SEND_ONCE, 1, "GET", "k", NULL);
    weir__conn_flush(f->conn);
    await_in_socket((int)strlen(text));
    hold_the_loop();
    FIXTURE_WAIT(f, f->replies == 1);
    EXPECT_INT(WEIR_OK, f->reply[0].code);
    EXPECT_INT(0, f->losses);
    free(text);
}

TEST(a_message_that_waits_in_the_socket_is_read_after_its_deadline)
{
    char *text = text_of(CONFIRMED PUSHED "$60000\r\n", 60000);
    const struct resp_rule rule = {.command = 2, .bytes = text};

    start(&rule);
    f->options.channel = "c";
    f->options.reply_ms = SOON_MS;
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1); /* one read took a part of it */
    hold_the_loop();
    FIXTURE_WAIT(f, f->messages == 1);
    EXPECT_INT(0, f->losses);
    free(text);
}
