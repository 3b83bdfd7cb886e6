/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

#include "adapters/redis/conn/tls.h"
#include "adapters/redis/probe.h"
#include "tests/harness/cut_proxy.h"
#include "tests/harness/redis_proc.h"
#include "tests/redis/conn/conn_fixture.h"

/* Connections over TLS to a server that has a port for that and a socket. */

enum { LARGE = 8 * 1024 * 1024, SOON_MS = 300, LONG_MS = 30000 };

static struct redis_proc *redis;
static struct fixture *f;
static struct weir__tls *tls; /* of the fixture's address, which goes first */

static void release(void)
{
    weir__tls_free(tls);
    tls = NULL;
}

/* `port` 0: the server's own. */
static void use_port(int port)
{
    struct weir_error err = {0};
    char url[256];

    (void)snprintf(url, sizeof(url), "%s", redis_tls_url(redis)); /* fits */
    if (port != 0)
        (void)snprintf(url, sizeof(url), "rediss://127.0.0.1:%d?ca=%s/ca.pem",
                       port, redis_dir(redis)); /* fits */
    EXPECT_INT(WEIR_OK, weir__redis_url_parse(url, &f->url, &err));
    EXPECT_INT(WEIR_OK, weir__tls_new(&f->url, &tls, &err));
    f->url.tls = tls;
}

static void begin(void)
{
    const struct redis_options options = {.tls = true};

    redis = redis_start(&options);
    test_at_end(release);
    f = fixture_new(redis_socket(redis));
    use_port(0);
}
TEST_SETUP(begin)

static int proxy(struct cut_proxy_options options)
{
    int port;

    options.port = redis_tls_port(redis);
    port = cut_proxy_start(&options);
    release();
    use_port(port);
    return port;
}

/* --- as without ----------------------------------------------------------- */

TEST(commands_are_answered_in_order)
{
    fixture_open(f);
    for (int i = 1; i <= 100; i++)
        fixture_send(f, WEIR__SEND_ONCE, i, "INCR", "n", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 100);
    fixture_expect(f, 99, 100, WEIR_OK, "100");
    EXPECT_CONTAINS("redis: connected to rediss://127.0.0.1:", f->log_text);
    EXPECT_STR("100", redis_text(redis, "GET n"));
}

TEST(more_than_a_socket_takes_goes_out_and_comes_back)
{
    char *value = malloc(LARGE + 1);

    EXPECT_TRUE(value != NULL);
    memset(value, 'x', LARGE);
    value[LARGE] = '\0';
    fixture_open(f);
    for (int i = 1; i <= 3; i++)
        fixture_send(f, WEIR__SEND_ONCE, i, "APPEND", "k", value, NULL);
    for (int i = 4; i <= 6; i++)
        fixture_send(f, WEIR__SEND_ONCE, i, "GET", "k", NULL);
    free(value);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 6);
    fixture_expect(f, 2, 3, WEIR_OK, "25165824");
    for (size_t i = 3; i < 6; i++)
        EXPECT_CONTAINS("xxxxxxxx", f->reply[i].text);
    EXPECT_INT(0, f->losses);
}

TEST(a_message_arrives)
{
    f->options.channel = "here";
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    EXPECT_INT(1, redis_int(redis, "PUBLISH here hello"));
    FIXTURE_WAIT(f, f->messages == 1);
    EXPECT_STR("hello", f->message);
}

TEST(a_server_that_comes_back_is_reached_again)
{
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    redis_restart(redis);
    FIXTURE_WAIT(f, f->readies == 2);
    EXPECT_CONTAINS("closed", f->lost_text);
}

/* OpenSSL judges an operation that has to wait by what is left of others on the
 * thread. Byte by byte, nearly all have to. */
TEST(errors_that_others_left_behind_are_not_ours)
{
    proxy((struct cut_proxy_options){.byte_every_ms = 1});
    f->options.handshake_ms = LONG_MS;
    fixture_open(f);
    fixture_send(f, WEIR__SEND_ONCE, 1, "PING", NULL);
    weir__conn_flush(f->conn);
    f->patience = patience_start(30.);
    while (f->replies == 0 && f->losses == 0) {
        ERR_put_error(ERR_LIB_USER, 0, 1, __FILE__, __LINE__);
        fixture_turn(f);
    }
    fixture_expect(f, 0, 1, WEIR_OK, "PONG");
    EXPECT_INT(0, f->losses);
}

/* --- what goes wrong ------------------------------------------------------ */

/* Each connection is cut one byte later, until one lives to be answered. */
static void expect_cuts(bool counts_sent, size_t least)
{
    const char *answer = "";
    size_t cuts = 0;

    proxy((struct cut_proxy_options){.counts_sent = counts_sent});
    while (strcmp(answer, "PONG") != 0) {
        f->losses = f->replies = 0;
        fixture_open(f);
        fixture_send(f, WEIR__SEND_ONCE, 1, "PING", NULL);
        weir__conn_flush(f->conn);
        FIXTURE_WAIT(f, f->losses > 0 || f->replies > 0);
        answer = f->replies > 0 ? f->reply[0].text : "";
        if (strcmp(answer, "PONG") != 0) {
            cuts++;
            EXPECT_INT(WEIR_ECONN, f->lost_code);
            EXPECT_TRUE(strlen(f->lost_text) > 5);
            EXPECT_TRUE(strstr(f->lost_text, "Success") == NULL);
        }
        f->log_text[0] = '\0';
        fixture_close(f);
    }
    EXPECT_TRUE(cuts >= least);
}

TEST(a_cut_at_any_byte_of_the_answers_is_a_loss_with_a_reason)
{
    expect_cuts(false, 500);
}

TEST(a_cut_at_any_byte_of_what_is_sent_is_a_loss_with_a_reason)
{
    expect_cuts(true, 300);
}

/* A peer that hung up would raise SIGPIPE: nothing here ignores it. */
TEST(a_blocking_question_that_is_cut_at_any_byte_has_no_answer)
{
    static const char *const words[] = {"PING", NULL};
    struct weir__probe *probe = NULL;
    struct weir_error err = {0};
    const char *text = "";
    size_t cuts = 0;
    int rc;

    proxy((struct cut_proxy_options){0});
    do {
        probe = NULL;
        rc = weir__probe_open(&f->url, LONG_MS, &probe, &err);
        text = err.text;
        if (rc == WEIR_OK)
            rc = weir__probe_ask(probe, words, &text);
        EXPECT_TRUE(rc == WEIR_OK || rc == WEIR_ECONN);
        EXPECT_TRUE(strlen(text) >= 4 && strstr(text, "Success") == NULL);
        cuts += rc != WEIR_OK;
        weir__probe_close(probe);
    } while (rc != WEIR_OK);
    EXPECT_TRUE(cuts >= 500);
}

TEST(a_blocking_question_is_not_prolonged_by_a_slow_handshake)
{
    struct weir__probe *probe = NULL;
    struct weir_error err = {0};

    proxy((struct cut_proxy_options){.byte_every_ms = 20});
    EXPECT_INT(WEIR_ECONN, weir__probe_open(&f->url, SOON_MS, &probe, &err));
    EXPECT_STR("no end of the TLS handshake within 300 ms", err.text);
}

TEST(a_question_without_a_context_of_its_own_makes_one)
{
    static const char *const words[] = {"PING", NULL};
    struct weir__redis_url url = f->url;
    struct weir__probe *probe = NULL;
    const char *text = "";

    url.tls = NULL;
    EXPECT_INT(WEIR_OK, weir__probe_open(&url, LONG_MS, &probe, NULL));
    EXPECT_INT(WEIR_OK, weir__probe_ask(probe, words, &text));
    EXPECT_STR("PONG", text);
    weir__probe_close(probe);
}
