/* SPDX-License-Identifier: MIT */
#include "adapters/redis/cluster/redirect.h"

#include <stdio.h>
#include <string.h>

#include "core/random.h"
#include "tests/harness/test.h"

static const struct weir__redis_host asked = {"seed.example", 7000};
static const struct weir__redis_host a_socket = {"/run/redis.sock", 0};

static struct weir__redirect read_error(const char *text)
{
    return weir__redirect_read(text, &asked);
}

static void expect_target(int slot, const char *host, int port,
                          const char *text)
{
    struct weir__redirect redirect = read_error(text);

    EXPECT_TRUE(redirect.has_target);
    EXPECT_INT(slot, redirect.slot);
    EXPECT_STR(host, redirect.host.name);
    EXPECT_INT(port, redirect.host.port);
}

static void expect_none(const char *text)
{
    struct weir__redirect redirect = read_error(text);

    EXPECT_INT(WEIR__REDIRECT_MOVED, redirect.kind);
    EXPECT_TRUE(!redirect.has_target);
}

TEST(each_error_of_a_cluster_is_known_by_its_code)
{
    EXPECT_INT(WEIR__REDIRECT_MOVED, read_error("MOVED 1 a:1").kind);
    EXPECT_INT(WEIR__REDIRECT_ASK, read_error("ASK 1 a:1").kind);
    EXPECT_INT(WEIR__REDIRECT_TRYAGAIN,
               read_error("TRYAGAIN Multiple keys request during rehashing of "
                          "slot")
                   .kind);
    EXPECT_INT(WEIR__REDIRECT_DOWN,
               read_error("CLUSTERDOWN Hash slot not served").kind);
    EXPECT_INT(WEIR__REDIRECT_CROSSSLOT,
               read_error("CROSSSLOT Keys in request don't hash to the same "
                          "slot")
                   .kind);
}

TEST(other_errors_are_none)
{
    static const char *const texts[] = {
        "",
        " ",
        "ERR MOVED 1 a:1",
        "MOVE 1 a:1",
        "moved 1 a:1",
        "MOVEDX 1 a",
        " MOVED 1",
        "LOADING Redis",
        "ASKING",
        "-MOVED 1 a:1",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        EXPECT_INT(WEIR__REDIRECT_NONE, read_error(texts[i]).kind);
}

TEST(moved_and_ask_tell_slot_and_address)
{
    expect_target(3999, "127.0.0.1", 6381, "MOVED 3999 127.0.0.1:6381");
    expect_target(0, "node-1.example", 1, "MOVED 0 node-1.example:1");
    expect_target(16383, "10.0.0.7", 65535, "ASK 16383 10.0.0.7:65535");
}

TEST(an_ip_v6_address_has_its_port_behind_the_last_colon)
{
    expect_target(7, "::1", 6381, "MOVED 7 ::1:6381");
    expect_target(7, "fe80::1:2", 80, "ASK 7 fe80::1:2:80");
}

TEST(no_host_is_the_one_that_was_asked)
{
    expect_target(3999, "seed.example", 6381, "MOVED 3999 :6381");
}

/* It has no other port. */
TEST(no_host_is_the_socket_that_was_asked)
{
    struct weir__redirect redirect =
        weir__redirect_read("MOVED 3999 :6381", &a_socket);

    EXPECT_TRUE(redirect.has_target);
    EXPECT_STR("/run/redis.sock", redirect.host.name);
    EXPECT_INT(0, redirect.host.port);
}

TEST(a_host_that_the_node_does_not_know_is_no_target)
{
    expect_none("MOVED 3999 ?:6381");
    expect_none("MOVED 3999 10.0.0.7:0");
}

/* As 6.2 has it. */
TEST(an_error_inside_a_script_is_the_same)
{
    expect_target(3999, "127.0.0.1", 6381,
                  "ERR Error running script (call to f_0): @user_script:1: "
                  "-MOVED 3999 127.0.0.1:6381");
}

TEST(a_text_that_says_no_address_is_no_target)
{
    static const char *const texts[] = {
        "MOVED",
        "MOVED ",
        "MOVED 3999",
        "MOVED 3999 ",
        "MOVED 3999 host",
        "MOVED 3999 host:",
        "MOVED 3999 host:x",
        "MOVED 3999 host:65536",
        "MOVED 3999 host:-1",
        "MOVED 3999 host:+1",
        "MOVED 3999 host:99999999999999999999",
        "MOVED 3999 host:1 more",
        "MOVED 3999  host:1",
        "MOVED 3999 ho st:1",
        "MOVED 3999 h\tost:1",
        "MOVED 3999 h\x80ost:1",
        "MOVED 16384 host:1",
        "MOVED -1 host:1",
        "MOVED x host:1",
        "MOVED 39:9 host:1",
        "MOVED 99999999999999999999 host:1",
        "MOVED  host:1",
        "MOVED host:1",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        expect_none(texts[i]);
}

TEST(a_host_has_255_bytes_at_most)
{
    char text[300] = "MOVED 1 ";

    memset(text + 8, 'h', 256);
    (void)snprintf(text + 8 + 256, 4, ":1");
    expect_none(text);
    (void)snprintf(text + 8 + 255, 4, ":1");
    EXPECT_INT(255, strlen(read_error(text).host.name));
}

/* A right text with some bytes changed: what is a target can be one. */
TEST(no_text_is_taken_for_an_address_that_cannot_be)
{
    static const char good[] = "MOVED 3999 127.0.0.1:6381";
    uint64_t random = 1;

    for (int i = 0; i < 20000; i++) {
        struct weir__redirect redirect;
        char text[sizeof(good)];

        memcpy(text, good, sizeof(good));
        for (uint64_t n = weir__random_next(&random) % 3 + 1; n > 0; n--)
            text[weir__random_next(&random) % (sizeof(good) - 1)] =
                (char)(weir__random_next(&random) % 255 + 1);
        redirect = read_error(text);
        if (!redirect.has_target)
            continue;
        EXPECT_TRUE(redirect.slot < 16384 && redirect.host.port > 0);
        EXPECT_TRUE(redirect.host.name[0] != '\0' &&
                    strpbrk(redirect.host.name, " \r\n\t") == NULL);
    }
}
