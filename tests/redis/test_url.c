/* SPDX-License-Identifier: MIT */
#include "adapters/redis/url.h"

#include <stdio.h>
#include <string.h>

#include "tests/harness/test.h"

static struct weir__redis_url parsed(const char *text)
{
    struct weir__redis_url url;
    struct weir_error err = {0};
    int rc = weir__redis_url_parse(text, &url, &err);

    EXPECT_STR("", err.text);
    EXPECT_INT(WEIR_OK, rc);
    return url;
}

static void expect_refused(const char *text, const char *sentence)
{
    struct weir__redis_url url;
    struct weir_error err = {0};

    EXPECT_INT(WEIR_EINVAL, weir__redis_url_parse(text, &url, &err));
    EXPECT_CONTAINS(sentence, err.text);
    EXPECT_INT(WEIR_EINVAL, weir__redis_url_parse(text, &url, NULL));
}

static void expect_printed(const char *wanted, const char *text)
{
    struct weir__redis_url url = parsed(text);
    char buf[512];

    weir__redis_url_print(&url, buf, sizeof(buf));
    EXPECT_STR(wanted, buf);
}

TEST(a_tcp_address_has_defaults_for_port_and_database)
{
    struct weir__redis_url url = parsed("redis://10.0.0.7");

    EXPECT_STR("10.0.0.7", url.host);
    EXPECT_INT(6379, url.port);
    EXPECT_INT(0, url.db);
    EXPECT_STR("", url.user);
    EXPECT_STR("", url.password);
    EXPECT_TRUE(!url.is_unix);
}

TEST(a_tcp_address_carries_login_port_and_database)
{
    struct weir__redis_url url =
        parsed("redis://us%65r:p%40ss:w@rd@localhost:7000/12");

    EXPECT_STR("localhost", url.host);
    EXPECT_INT(7000, url.port);
    EXPECT_INT(12, url.db);
    EXPECT_STR("user", url.user);
    EXPECT_STR("p@ss:w@rd", url.password);
}

TEST(a_password_needs_no_user)
{
    struct weir__redis_url url = parsed("redis://:secret@127.0.0.1/");

    EXPECT_STR("", url.user);
    EXPECT_STR("secret", url.password);
}

TEST(an_ip_v6_address_stands_in_brackets)
{
    struct weir__redis_url url = parsed("redis://[::1]:7001/2");

    EXPECT_STR("::1", url.host);
    EXPECT_INT(7001, url.port);
    EXPECT_INT(6379, parsed("redis://[fe80::2]").port);
}

TEST(a_socket_address_is_a_path_and_perhaps_a_database)
{
    struct weir__redis_url url = parsed("unix:///run/redis/a b.sock?db=3");

    EXPECT_TRUE(url.is_unix);
    EXPECT_STR("/run/redis/a b.sock", url.host);
    EXPECT_INT(3, url.db);
    EXPECT_INT(0, url.port);
}

TEST(a_socket_path_may_have_107_bytes_and_no_more)
{
    char text[160] = "unix:///";

    memset(text + 8, 'x', 106);
    EXPECT_INT(107, strlen(parsed(text).host));
    text[8 + 106] = 'x';
    expect_refused(text, "longer than 107 bytes");
}

TEST(addresses_that_are_not_understood_are_refused_with_a_sentence)
{
    expect_refused("", "must begin with redis:// or unix://");
    expect_refused("http://localhost", "must begin with redis://");
    expect_refused("rediss://localhost", "no TLS");
    expect_refused("redis://", "numeric address or localhost");
    expect_refused("redis://example.org", "\"example.org\"");
    expect_refused("redis://localhost:", "the port");
    expect_refused("redis://localhost:0", "must not be 0");
    expect_refused("redis://localhost:65536", "the port");
    expect_refused("redis://localhost:12345678901", "the port");
    expect_refused("redis://localhost/x", "the database");
    expect_refused("redis://localhost/-1", "the database");
    expect_refused("redis://[::1", "'[' without ']'");
    expect_refused("redis://[::1]x", "text after ']'");
    expect_refused("redis://[localhost.x]", "numeric");
    expect_refused("unix://relative.sock", "absolute path");
    expect_refused("unix:///", "absolute path");
    expect_refused("unix:///s?tls=1", "only db=N");
    expect_refused("unix:///s?db=", "the database");
}

TEST(a_login_that_is_not_understood_is_refused)
{
    expect_refused("redis://user@localhost", "user:password");
    expect_refused("redis://user:@localhost", "user:password");
    expect_refused("redis://u:%zz@localhost", "%-sequence in the password");
    expect_refused("redis://u:%4@localhost", "%-sequence");
    expect_refused("redis://%00:p@localhost", "%-sequence in the user");
}

TEST(no_sentence_shows_the_password)
{
    static const char *const texts[] = {
        "redis://u:hunter2@bad.host",    "redis://u:hunter2%@localhost",
        "redis://u:hunter2@localhost:x", "redis://u:hunter2@[::1",
        "redis://u:hunter2@localhost/x", "rediss://u:hunter2@localhost"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct weir__redis_url url;
        struct weir_error err = {0};

        EXPECT_INT(WEIR_EINVAL, weir__redis_url_parse(texts[i], &url, &err));
        EXPECT_TRUE(strstr(err.text, "hunter2") == NULL);
    }
}

TEST(what_is_too_long_is_refused)
{
    char text[512];

    (void)snprintf(text, sizeof(text), "redis://%0200d:p@localhost", 1);
    expect_refused(text, "user longer than 127 bytes");
    (void)snprintf(text, sizeof(text), "redis://:%0300d@localhost", 1);
    expect_refused(text, "password longer than 255 bytes");
    (void)snprintf(text, sizeof(text), "redis://%0300d", 1);
    expect_refused(text, "longer than 255 bytes");
}

TEST(an_address_prints_without_its_password)
{
    expect_printed("redis://u@127.0.0.1:6379/4",
                   "redis://u:hunter2@127.0.0.1/4");
    expect_printed("redis://localhost:6379", "redis://:hunter2@localhost");
    expect_printed("redis://[::1]:6379", "redis://[::1]");
    expect_printed("unix:///run/s?db=2", "unix:///run/s?db=2");
}

TEST(a_printed_address_is_cut_to_fit)
{
    struct weir__redis_url url = parsed("unix:///run/redis.sock");
    char buf[8];

    weir__redis_url_print(&url, buf, sizeof(buf));
    EXPECT_STR("unix://", buf);
}
