/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/conn/command.h"
#include "adapters/redis/resp.h"
#include "tests/harness/resp_peer.h"
#include "tests/redis/conn/conn_fixture.h"

/* Commands of sequences, and how they get from one connection to another. */

static struct weir__sequence one, other;
static char back[64]; /* letters that were answered by an error for us */
static struct weir__command_list redirected;
static int drained;

static void on_redirect(struct weir__sequence *sequence,
                        struct weir__command *command, const char *text,
                        void *arg)
{
    (void)arg; /* there is one fixture */
    EXPECT_TRUE(sequence == &one || sequence == &other);
    EXPECT_CONTAINS("MOVED", text);
    (void)strncat(back, command == NULL ? "-" : "+", 1);
    if (command != NULL)
        weir__request_append(&redirected, command);
}

static void on_drained(struct weir__sequence *sequence, void *arg)
{
    (void)arg;
    EXPECT_TRUE(sequence->is_watched && sequence->on_way == 0);
    drained++;
}

/* Not connected yet. */
static struct fixture *fixture_at(const char *socket)
{
    struct fixture *f = fixture_new(socket);

    f->options.on_redirect = on_redirect;
    f->options.on_drained = on_drained;
    fixture_open(f);
    return f;
}

struct call {
    struct fixture *fixture;
    int id;
};

static void on_reply(int code, const struct redisReply *reply, void *arg)
{
    struct call *call = arg;
    struct fixture *f = call->fixture;

    (void)reply;
    EXPECT_TRUE(f->replies < FIXTURE_REPLIES_MAX);
    f->reply[f->replies++] = (struct fixture_reply){call->id, code, ""};
    free(call);
}

/* One letter; answered under its code, at whatever connection. */
static struct weir__sending sending_of(struct fixture *f, char letter,
                                       unsigned flags, struct weir__buf *bytes)
{
    const char text[] = {letter, '\0'};
    struct call *call = calloc(1, sizeof(*call));

    EXPECT_TRUE(call != NULL);
    *call = (struct call){f, letter};
    weir__resp_command(bytes, 2);
    weir__resp_str(bytes, "SAY");
    weir__resp_str(bytes, text);
    return (struct weir__sending){bytes, NULL, flags, on_reply, call};
}

static void say(struct fixture *f, struct weir__sequence *sequence,
                const char *letters, unsigned flags)
{
    for (; *letters != '\0'; letters++) {
        struct weir__buf bytes = {0};
        const struct weir__sending sending =
            sending_of(f, *letters, flags, &bytes);

        EXPECT_INT(WEIR_OK, weir__conn_send_in(f->conn, sequence, &sending));
    }
}

static const char *letters_of(const struct weir__command_list *list)
{
    static char text[64];
    size_t len = 0;
    uint64_t number = 0;

    for (const struct weir__command *at = list->first; at != NULL;
         at = at->next) {
        EXPECT_TRUE(at == list->first || at->number > number);
        number = at->number;
        text[len++] = (char)at->bytes.ptr[at->bytes.len - 3];
    }
    text[len] = '\0';
    return text;
}

static const char *said(struct resp_peer *peer)
{
    static char text[64];
    const char *at = resp_peer_heard(peer);
    size_t len = 0;

    for (; (at = strstr(at, "SAY ")) != NULL; at++)
        text[len++] = at[4];
    text[len] = '\0';
    return text;
}

static struct weir__command *made(struct fixture *f, char letter)
{
    struct weir__buf bytes = {0};
    const struct weir__sending sending = sending_of(f, letter, 0, &bytes);
    struct weir__command *command;

    EXPECT_INT(WEIR_OK, weir__conn_make(f->conn, &one, &sending, &command));
    return command;
}

/* --- lists ---------------------------------------------------------------- */

TEST(lists_are_merged_by_the_numbers_of_their_commands)
{
    struct fixture *f = fixture_at("/nowhere");
    struct weir__command_list left = {0}, right = {0};

    for (const char *at = "abcdef"; *at != '\0'; at++)
        weir__request_append(strchr("acd", *at) != NULL ? &left : &right,
                             made(f, *at));
    weir__commands_merge(&left, &right);
    EXPECT_TRUE(right.first == NULL);
    EXPECT_STR("abcdef", letters_of(&left));
    weir__commands_merge(&left, &right);
    EXPECT_STR("abcdef", letters_of(&left));
    weir__commands_merge(&right, &left);
    EXPECT_TRUE(left.first == NULL);
    EXPECT_STR("abcdef", letters_of(&right));
    EXPECT_INT(0, weir__conn_queued(f->conn)); /* until they are given */
    weir__conn_give(f->conn, &right);
    EXPECT_TRUE(right.first == NULL);
    EXPECT_TRUE(weir__conn_queued(f->conn) > 0);
}

TEST(what_is_withdrawn_is_of_the_sequence_and_counts_no_longer)
{
    struct fixture *f = fixture_at("/nowhere");
    struct weir__command_list list;
    size_t queued;

    say(f, &other, "xy", 0);
    queued = weir__conn_queued(f->conn);
    say(f, &one, "ab", 0);
    say(f, NULL, "n", 0);
    say(f, &one, "c", WEIR__SEND_AGAIN);
    weir__conn_withdraw(f->conn, &one, &list);
    EXPECT_STR("abc", letters_of(&list));
    EXPECT_INT(queued / 2 * 3, weir__conn_queued(f->conn));
    weir__conn_give(f->conn, &list);
    EXPECT_INT(queued * 3, weir__conn_queued(f->conn));
    fixture_close(f);
    EXPECT_INT(6, f->replies);
    for (size_t i = 0; i < 6; i++)
        fixture_expect(f, i, "abcxyn"[i], WEIR_ECANCELED, "");
}

TEST(what_is_given_goes_ahead_of_what_is_sent_later)
{
    struct resp_peer *peer = resp_peer_start(NULL, 0);
    struct fixture *f = fixture_at(resp_peer_socket(peer));
    struct fixture *away = fixture_at("/nowhere");
    struct weir__command_list list;

    say(away, &one, "abc", WEIR__SEND_ONCE);
    weir__conn_withdraw(away->conn, &one, &list);
    FIXTURE_WAIT(f, f->readies == 1);
    say(f, NULL, "x", 0);
    weir__conn_give(f->conn, &list);
    say(f, &one, "d", 0);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 2 && away->replies == 3);
    EXPECT_STR("abcxd", said(peer));
    EXPECT_INT(0, weir__conn_queued(f->conn));
    EXPECT_INT(0, one.on_way);
}

TEST(what_fails_has_the_code_of_what_may_have_become_of_it)
{
    struct fixture *f = fixture_at("/nowhere");
    struct weir__command_list list = {0};

    weir__request_append(&list, made(f, 'a'));
    weir__request_append(&list, made(f, 'b'));
    list.last->may_have_run = true;
    weir__request_append(&list, made(f, 'c'));
    weir__conn_fail(f->conn, &list);
    EXPECT_TRUE(list.first == NULL);
    EXPECT_INT(3, f->replies);
    fixture_expect(f, 0, 'a', WEIR_ECONN, "");
    fixture_expect(f, 1, 'b', WEIR_EUNKNOWN, "");
    fixture_expect(f, 2, 'c', WEIR_ECONN, "");
    EXPECT_INT(0, weir__conn_queued(f->conn));
}

/* --- on their way --------------------------------------------------------- */

#define MOVED "-MOVED 7 127.0.0.1:1\r\n"

TEST(a_sequence_counts_what_is_on_its_way_until_it_is_answered_or_lost)
{
    static const struct resp_rule rules[] = {
        {.words = "SAY b", .hangs_up = true}};
    struct resp_peer *peer = resp_peer_start(rules, 1);
    struct fixture *f = fixture_at(resp_peer_socket(peer));

    FIXTURE_WAIT(f, f->readies == 1);
    one.is_watched = true;
    say(f, &one, "ab", 0);
    say(f, &other, "x", 0);
    EXPECT_INT(0, one.on_way);
    weir__conn_flush(f->conn);
    EXPECT_INT(2, one.on_way);
    EXPECT_INT(1, other.on_way);
    FIXTURE_WAIT(f, f->losses == 1);
    EXPECT_INT(0, one.on_way + other.on_way);
    EXPECT_INT(0, drained); /* who was lost is told otherwise */
    EXPECT_INT(3, f->replies);
    fixture_expect(f, 1, 'b', WEIR_EUNKNOWN, "");
}

TEST(a_redirected_command_is_the_callees_and_the_last_answer_drains)
{
    static const struct resp_rule rules[] = {
        {.words = "SAY b", .bytes = MOVED}, {.words = "SAY c", .bytes = MOVED}};
    struct resp_peer *peer = resp_peer_start(rules, 2);
    struct fixture *f = fixture_at(resp_peer_socket(peer));

    FIXTURE_WAIT(f, f->readies == 1);
    one.is_watched = true;
    say(f, &one, "ab", 0);
    say(f, &one, "c", WEIR__SEND_HERE);
    say(f, NULL, "b", 0);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 3);
    EXPECT_STR("+-", back);
    EXPECT_INT(1, drained);
    fixture_expect(f, 0, 'a', WEIR_OK, "");
    fixture_expect(f, 1, 'c', WEIR_ECONN, ""); /* by this one or not at all */
    fixture_expect(f, 2, 'b', WEIR_ECONN, ""); /* of no sequence */
    EXPECT_STR("b", letters_of(&redirected));
    EXPECT_INT(0, weir__conn_queued(f->conn));
    EXPECT_INT(0, f->losses);
    weir__conn_fail(f->conn, &redirected);
    fixture_expect(f, 3, 'b', WEIR_ECONN, "");
}

TEST(what_is_bound_to_a_connection_goes_on_without_the_sequence)
{
    static const struct resp_rule rules[] = {{.words = "SAY", .bytes = MOVED}};
    struct resp_peer *peer = resp_peer_start(rules, 1);
    struct fixture *f = fixture_at(resp_peer_socket(peer));
    struct weir__command_list list;

    FIXTURE_WAIT(f, f->readies == 1);
    say(f, &one, "a", WEIR__SEND_HERE);
    say(f, &one, "b", 0);
    weir__conn_withdraw(f->conn, &one, &list);
    EXPECT_STR("b", letters_of(&list));
    weir__conn_flush(f->conn);
    EXPECT_INT(0, one.on_way);
    FIXTURE_WAIT(f, f->replies == 1);
    fixture_expect(f, 0, 'a', WEIR_ECONN, "");
    EXPECT_STR("", back);
    weir__conn_fail(f->conn, &list);
}

/* --- acknowledged --------------------------------------------------------- */

TEST(what_was_acknowledged_is_withdrawn_for_another_server_alone)
{
    struct resp_peer *peer = resp_peer_start(NULL, 0);
    struct resp_peer *next = resp_peer_start(NULL, 0);
    struct fixture *f = fixture_at(resp_peer_socket(peer));
    struct fixture *to = fixture_at(resp_peer_socket(next));
    struct weir__command_list list, acked;

    FIXTURE_WAIT(f, f->readies == 1);
    say(f, &one, "a", WEIR__SEND_REPLAY);
    say(f, &other, "x", WEIR__SEND_REPLAY);
    say(f, &one, "b", WEIR__SEND_HERE | WEIR__SEND_REPLAY);
    say(f, &one, "c", WEIR__SEND_AGAIN);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 4);
    weir__conn_withdraw(f->conn, &one, &list);
    EXPECT_TRUE(list.first == NULL);
    weir__conn_withdraw_acked(f->conn, &one, &acked);
    EXPECT_STR("ab", letters_of(&acked));
    FIXTURE_WAIT(to, to->readies == 1);
    weir__conn_give(to->conn, &acked);
    EXPECT_INT(0, weir__conn_queued(to->conn)); /* nobody waits for them */
    say(to, &one, "d", 0);
    weir__conn_flush(to->conn);
    FIXTURE_WAIT(to, to->replies == 1);
    EXPECT_STR("abd", said(next));
    weir__conn_withdraw_acked(to->conn, &one, &acked);
    EXPECT_STR("ab", letters_of(&acked)); /* the time begins anew */
    weir__conn_give(to->conn, &acked);
    EXPECT_INT(4, f->replies);
}

TEST(what_was_acknowledged_too_long_ago_is_given_and_not_said_again)
{
    struct resp_peer *peer = resp_peer_start(NULL, 0);
    struct resp_peer *next = resp_peer_start(NULL, 0);
    struct fixture *f = fixture_at(resp_peer_socket(peer));
    struct fixture *to = fixture_new(resp_peer_socket(next));
    struct weir__command_list acked;
    double answered_at;

    FIXTURE_WAIT(f, f->readies == 1);
    say(f, &one, "a", WEIR__SEND_REPLAY);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 1);
    answered_at = ev_time();
    FIXTURE_WAIT(f, ev_time() > answered_at + .05);
    weir__conn_withdraw_acked(f->conn, &one, &acked);
    to->options.again_ms = 1;
    fixture_open(to);
    weir__conn_give(to->conn, &acked);
    say(to, &one, "b", 0);
    FIXTURE_WAIT(to, to->replies == 1);
    EXPECT_STR("b", said(next));
}
