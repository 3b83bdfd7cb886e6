/* SPDX-License-Identifier: MIT */
#include "adapters/redis/conn/error.h"
#include "tests/harness/redis_proc.h"
#include "tests/harness/resp_peer.h"
#include "tests/redis/conn/conn_fixture.h"

#define OLD "ERR Error running script (call to f_ab12): @user_script:1: "

TEST(the_code_of_an_error_is_found_within_a_scripts)
{
    EXPECT_STR("READONLY You can't",
               weir__error_core("ERR Error running script (call to f_1): "
                                "@user_script:1: -READONLY You can't"));
    EXPECT_STR("ERR Error running script: x: -1",
               weir__error_core("ERR Error running script: x: -1"));
    EXPECT_STR("ERR x: -READONLY", weir__error_core("ERR x: -READONLY"));
}

TEST(an_error_is_known_by_its_code)
{
    EXPECT_INT(WEIR__ERROR_DENIED,
               weir__error_classify("ERR ACL failure in script: User w has"));
    EXPECT_INT(WEIR__ERROR_NOSCRIPT, weir__error_classify("NOSCRIPT No"));
    EXPECT_INT(WEIR__ERROR_TURNED_AWAY, weir__error_classify("READONLY You"));
    EXPECT_INT(WEIR__ERROR_TURNED_AWAY, weir__error_classify("UNBLOCKED f"));
    EXPECT_INT(WEIR__ERROR_NOAUTH, weir__error_classify("NOAUTH"));
    EXPECT_INT(WEIR__ERROR_FULL, weir__error_classify("OOM command"));
    EXPECT_INT(WEIR__ERROR_REFUSED, weir__error_classify("MISCONF Redis"));
    EXPECT_INT(WEIR__ERROR_REFUSED, weir__error_classify("NOREPLICAS Not"));
    EXPECT_INT(WEIR__ERROR_NOAUTH, weir__error_classify("WRONGPASS x"));
    EXPECT_INT(WEIR__ERROR_DENIED, weir__error_classify("NOPERM x"));
    EXPECT_INT(WEIR__ERROR_DENIED, weir__error_classify("NOPROTO x"));
    EXPECT_INT(WEIR__ERROR_DENIED, weir__error_classify("DENIED Redis is"));
    EXPECT_INT(WEIR__ERROR_MISTAKE, weir__error_classify("CROSSSLOT Keys"));
    EXPECT_INT(WEIR__ERROR_MISTAKE, weir__error_classify("WRONGTYPE Op"));
    EXPECT_INT(WEIR__ERROR_OTHER, weir__error_classify("BUSYKEY Target"));
    EXPECT_INT(WEIR__ERROR_OTHER, weir__error_classify("ERR READONLY"));
    EXPECT_INT(WEIR__ERROR_OTHER, weir__error_classify("ERR x: -OOM"));
    EXPECT_INT(WEIR__ERROR_OTHER, weir__error_classify(""));
}

TEST(the_code_of_an_error_in_a_script_of_6_2_is_found)
{
    EXPECT_INT(WEIR__ERROR_TURNED_AWAY,
               weir__error_classify(OLD "@user_script: 1: -READONLY You"));
    EXPECT_INT(WEIR__ERROR_FULL,
               weir__error_classify(OLD "@user_script: 1: -OOM command"));
    EXPECT_INT(WEIR__ERROR_REFUSED,
               weir__error_classify(OLD "x: -1 y: -NOREPLICAS Not"));
    EXPECT_INT(WEIR__ERROR_MISTAKE, weir__error_classify(OLD "-WRONGTYPE"));
    EXPECT_INT(WEIR__ERROR_DENIED,
               weir__error_classify(OLD "The user executing the script can't "
                                        "run this command or subcommand"));
    EXPECT_INT(WEIR__ERROR_MISTAKE,
               weir__error_classify(OLD "Script attempted to access a non "
                                        "local key in a cluster node"));
    EXPECT_INT(WEIR__ERROR_OTHER, weir__error_classify(OLD "attempt to index"));
}

/* The handshake is PING, the first command of a connection. */
static void expect_long_wait_after(const char *bytes, const char *text)
{
    const struct resp_rule rule = {
        .connection = 0, .command = 1, .bytes = bytes};
    struct resp_peer *peer = resp_peer_start(&rule, 1);
    struct fixture *f = fixture_new(resp_peer_socket(peer));

    fixture_open(f);
    FIXTURE_WAIT(f, f->losses == 1);
    EXPECT_INT(WEIR_ESERVER, f->lost_code);
    EXPECT_CONTAINS(text, f->log_text);
    EXPECT_TRUE(fixture_retry_ms(f) >= 5000);
    EXPECT_TRUE(fixture_retry_ms(f) <= 10000);
}

static void expect_denied_after(const char *bytes)
{
    expect_long_wait_after(bytes, "denies us access");
}

TEST(a_server_that_denies_access_is_tried_again_much_later)
{
    expect_denied_after("-WRONGPASS invalid username-password pair\r\n");
    expect_denied_after("-NOAUTH Authentication required.\r\n");
    expect_denied_after("-NOPERM this user has no permissions\r\n");
    expect_denied_after("-NOPROTO unsupported protocol version\r\n");
}

TEST(a_subscriber_that_may_not_listen_is_tried_again_much_later)
{
    static const struct resp_rule rule = {.command = 2,
                                          .bytes = "-NOPERM no channel\r\n"};
    struct resp_peer *peer = resp_peer_start(&rule, 1);
    struct fixture *f = fixture_new(resp_peer_socket(peer));

    f->options.channel = "c";
    fixture_open(f);
    FIXTURE_WAIT(f, f->losses == 1);
    EXPECT_INT(WEIR_ESERVER, f->lost_code);
    EXPECT_STR("NOPERM no channel", f->lost_text);
    EXPECT_TRUE(fixture_retry_ms(f) >= 5000);
}

static int retry_ms_after_a_cut(int64_t stable_ms, uint64_t seed)
{
    struct redis_proc *redis = redis_start(NULL);
    struct fixture *f = fixture_new(redis_socket(redis));
    int retry_ms;

    f->options.stable_ms = stable_ms;
    f->options.seed = seed;
    f->options.channel = "c";
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    for (int turn = 0; turn < 3; turn++)
        fixture_turn(f); /* each up to 5 ms */
    EXPECT_INT(1, redis_int(redis, "CLIENT KILL TYPE pubsub"));
    FIXTURE_WAIT(f, f->readies == 2);
    retry_ms = fixture_retry_ms(f);
    return retry_ms;
}

TEST(a_connection_that_was_stable_comes_back_at_once)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        int retry_ms = retry_ms_after_a_cut(1, seed);

        EXPECT_TRUE(retry_ms >= 0);
        EXPECT_TRUE(retry_ms <= 50);
    }
}

TEST(a_connection_that_was_not_stable_waits)
{
    EXPECT_TRUE(retry_ms_after_a_cut(60000, 1) >= 50);
}
