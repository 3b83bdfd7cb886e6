/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "adapters/redis/probe.h"
#include "tests/harness/memory.h"
#include "tests/harness/names.h"
#include "tests/harness/redis_proc.h"
#include "tests/harness/resp_peer.h"
#include "tests/harness/test.h"

/* Blocking questions to peers that answer without measure. The first command
 * is the PING of opening, the second is ours. */

#define HUGE_STRING "$2147483647\r\n"

enum { SOON_MS = 300, LONG_MS = 60000 };

static struct weir__redis_url url_of(const struct resp_peer *peer)
{
    struct weir__redis_url url = {.is_unix = true, .host_count = 1};

    (void)snprintf(url.hosts[0].name, WEIR__REDIS_TEXT_CAP, "%s",
                   resp_peer_socket(peer)); /* fits */
    return url;
}

/* The second question gets no answer, and no later one does. */
static void expect_no_answer(const struct resp_rule *rule, int limit_ms,
                             const char *why)
{
    static const char *const words[] = {"INFO", NULL};
    struct resp_peer *peer = resp_peer_start(rule, 1);
    struct weir__redis_url url = url_of(peer);
    struct weir__probe *probe = NULL;
    struct weir_error err = {0};
    const char *text = NULL;

    EXPECT_INT(WEIR_OK, weir__probe_open(&url, limit_ms, &probe, &err));
    EXPECT_TRUE(weir__probe_lost(probe) == NULL);
    EXPECT_INT(WEIR_ECONN, weir__probe_ask(probe, words, &text));
    EXPECT_CONTAINS(why, text);
    EXPECT_STR(text, weir__probe_lost(probe));
    EXPECT_INT(WEIR_ECONN, weir__probe_ask(probe, words, &text));
    EXPECT_TRUE(weir__probe_command(
                    probe, (struct weir_slice){(const uint8_t *)"*0\r\n", 4}) ==
                NULL);
    weir__probe_close(probe);
    resp_peer_stop(peer);
    expect_memory_below(200);
}

TEST(an_answer_that_does_not_end_in_time_is_none)
{
    struct resp_rule rule = {.command = 2};

    expect_no_answer(&rule, SOON_MS, "no answer within 300 ms");
    rule.bytes = "*2\r\n$1\r\nx\r\n";
    expect_no_answer(&rule, SOON_MS, "no answer within 300 ms");
    rule.bytes = "$60000000\r\n";
    rule.more = "x";
    expect_no_answer(&rule, SOON_MS, "no answer within 300 ms");
    rule.every_ms = 20;
    expect_no_answer(&rule, SOON_MS, "no answer within 300 ms");
}

TEST(an_answer_that_is_too_large_is_none)
{
    static char flood[16 * 1024 + 1];
    struct resp_rule rule = {.command = 2, .more = flood};

    memset(flood, 'x', sizeof(flood) - 1);
    rule.bytes = HUGE_STRING;
    expect_no_answer(&rule, LONG_MS, "an answer of more than 64 MiB");
    rule.bytes = "+";
    expect_no_answer(&rule, LONG_MS, "an answer of more than 64 MiB");
    rule.bytes = "*2147483647\r\n";
    rule.more = NULL;
    expect_no_answer(&rule, LONG_MS, "an answer of more than 64 MiB");
    rule.bytes = "*1000000\r\n*1000000\r\n*1000000\r\n";
    expect_no_answer(&rule, LONG_MS, "an answer of more than 64 MiB");
}

TEST(an_answer_that_is_none_is_an_error)
{
    struct resp_rule rule = {.command = 2, .bytes = "HTTP/1.1 400 No\r\n\r\n"};

    expect_no_answer(&rule, LONG_MS, "Protocol error");
    rule.bytes = "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n";
    expect_no_answer(&rule, LONG_MS, "an answer nested too deep");
    rule.bytes = "$5\r\nhal";
    rule.hangs_up = true;
    expect_no_answer(&rule, LONG_MS, "closed");
}

TEST(who_does_not_answer_at_first_is_not_reached)
{
    static const struct resp_rule rule = {.command = 1, .bytes = "+PON"};
    struct resp_peer *peer = resp_peer_start(&rule, 1);
    struct weir__redis_url url = url_of(peer);
    struct weir__probe *probe = NULL;
    struct weir_error err = {0};

    EXPECT_INT(WEIR_ECONN, weir__probe_open(&url, SOON_MS, &probe, &err));
    EXPECT_STR("no answer within 300 ms", err.text);
}

/* What was asked for its role is the sentinel as well. */
TEST(a_primary_that_is_gone_before_it_told_its_role_leaves_no_probe)
{
    struct resp_peer *peer = resp_peer_prepare();
    char url_text[64], address[64];
    const struct resp_rule rules[] = {
        {.words = "get-master-addr-by-name", .bytes = address},
        {.words = "ROLE", .hangs_up = true}};
    struct weir__redis_url url;
    struct weir__probe *probe = NULL;
    struct weir_error err = {0};

    (void)snprintf(address, sizeof(address),
                   "*2\r\n$9\r\n127.0.0.1\r\n$5\r\n%05d\r\n",
                   resp_peer_port(peer));
    (void)snprintf(url_text, sizeof(url_text),
                   "redis+sentinel://127.0.0.1:%d/orders",
                   resp_peer_port(peer));
    resp_peer_run(peer, rules, 2);
    EXPECT_INT(WEIR_OK, weir__redis_url_parse(url_text, &url, &err));
    EXPECT_INT(WEIR_ECONN, weir__probe_open(&url, LONG_MS, &probe, &err));
    EXPECT_STR("Server closed the connection", err.text);
    EXPECT_TRUE(probe == NULL);
}

/* Answers that came together are there without another read. */
TEST(questions_that_are_put_together_are_answered_in_their_order)
{
    enum { QUESTIONS = 100 };
    struct redis_proc *redis = redis_start(NULL);
    struct weir__redis_url url;
    struct weir__probe *probe = NULL;
    struct weir_error err = {0};
    char number[16];
    const char *words[] = {"ECHO", number, NULL}, *text;
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    redis_address(redis, &url);
    EXPECT_INT(WEIR_OK, weir__probe_open(&url, LONG_MS, &probe, &err));
    for (int i = 0; i < QUESTIONS; i++) {
        (void)snprintf(number, sizeof(number), "%d", i);
        words[0] = i == 7 ? "NONE" : "ECHO";
        weir__probe_put(probe, words);
    }
    for (int i = 0; i < QUESTIONS; i++) {
        (void)snprintf(number, sizeof(number), "%d", i);
        EXPECT_INT(i == 7 ? WEIR_ESERVER : WEIR_OK,
                   weir__probe_take(probe, &text));
        if (i == 7)
            EXPECT_CONTAINS("unknown command", text);
        else
            EXPECT_STR(number, text);
    }
    (void)sigaction(SIGPIPE, &ignore, NULL); /* as main does */
    redis_kill(redis, SIGKILL);
    weir__probe_put(probe, words);
    weir__probe_put(probe, words);
    EXPECT_INT(WEIR_ECONN, weir__probe_take(probe, &text));
    EXPECT_INT(WEIR_ECONN, weir__probe_take(probe, &text));
    EXPECT_STR(text, weir__probe_lost(probe));
    weir__probe_close(probe);
}

/* --- names ---------------------------------------------------------------- */

static int open_at(const char *host, int port, struct weir_error *err)
{
    struct weir__redis_url url = {.host_count = 1};
    struct weir__probe *probe = NULL;
    int rc;

    url.hosts[0].port = (uint16_t)port;
    (void)snprintf(url.hosts[0].name, WEIR__REDIS_TEXT_CAP, "%s", host);
    rc = weir__probe_open(&url, SOON_MS, &probe, err);
    if (rc == WEIR_OK)
        weir__probe_close(probe);
    return rc;
}

TEST(a_probe_tries_the_addresses_of_a_name_in_turn)
{
    const struct redis_options options = {.tcp = true};
    struct redis_proc *redis = redis_start(&options);
    int port = redis_port(redis);
    struct weir_error err = {0};

    names_set("cache 127.0.0.3 127.0.0.4 127.0.0.1\nnowhere\n");
    EXPECT_INT(WEIR_OK, open_at("cache", port, &err));
    EXPECT_INT(WEIR_OK, open_at("localhost", port, &err));
    EXPECT_STR("", err.text);
    EXPECT_INT(WEIR_ECONN, open_at("nowhere", port, &err));
    EXPECT_CONTAINS("no address for host nowhere: ", err.text);
    redis_kill(redis, SIGKILL);
    EXPECT_INT(WEIR_ECONN, open_at("cache", port, &err));
    EXPECT_STR("127.0.0.3: Connection refused; 127.0.0.4: Connection refused; "
               "127.0.0.1: Connection refused",
               err.text);
    EXPECT_INT(WEIR_ECONN, open_at("127.0.0.1", port, &err));
    EXPECT_STR("Connection refused", err.text);
}

TEST(a_probe_waits_for_a_resolver_only_so_long)
{
    struct weir_error err = {0};
    char line[200];

    (void)snprintf(line, sizeof(line), "%s/fifo", names_dir());
    EXPECT_INT(0, mkfifo(line, 0600));
    (void)snprintf(line, sizeof(line), "slow <%s/fifo\n", names_dir());
    names_set(line);
    EXPECT_INT(WEIR_ECONN, open_at("slow", 1, &err));
    EXPECT_STR("no address for host slow: the resolver does not answer",
               err.text);
}
