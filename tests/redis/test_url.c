/* SPDX-License-Identifier: MIT */
#include "adapters/redis/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/tempdir.h"
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

/* Also what this build cannot use. */
static struct weir__redis_url grammar(const char *text)
{
    struct weir__redis_url url;
    struct weir_error err = {0};
    int rc = weir__redis_url_read(text, &url, &err);

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
    struct weir__redis_url url = grammar(text);
    char buf[512];

    weir__redis_url_print(&url, buf, sizeof(buf));
    EXPECT_STR(wanted, buf);
}

TEST(a_tcp_address_has_defaults_for_port_and_database)
{
    struct weir__redis_url url = parsed("redis://10.0.0.7");

    EXPECT_STR("10.0.0.7", url.hosts[0].name);
    EXPECT_INT(6379, url.hosts[0].port);
    EXPECT_INT(0, url.db);
    EXPECT_STR("", url.user);
    EXPECT_STR("", url.password);
    EXPECT_TRUE(!url.is_unix);
}

TEST(a_tcp_address_carries_login_port_and_database)
{
    struct weir__redis_url url =
        parsed("redis://us%65r:p%40ss:w@rd@localhost:7000/12");

    EXPECT_STR("localhost", url.hosts[0].name);
    EXPECT_INT(7000, url.hosts[0].port);
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

    EXPECT_STR("::1", url.hosts[0].name);
    EXPECT_INT(7001, url.hosts[0].port);
    EXPECT_INT(6379, parsed("redis://[fe80::2]").hosts[0].port);
}

TEST(a_socket_address_is_a_path_and_perhaps_a_database)
{
    struct weir__redis_url url = parsed("unix:///run/redis/a b.sock?db=3");

    EXPECT_TRUE(url.is_unix);
    EXPECT_STR("/run/redis/a b.sock", url.hosts[0].name);
    EXPECT_INT(3, url.db);
    EXPECT_INT(0, url.hosts[0].port);
}

TEST(a_socket_path_may_have_107_bytes_and_no_more)
{
    char text[160] = "unix:///";

    memset(text + 8, 'x', 106);
    EXPECT_INT(107, strlen(parsed(text).hosts[0].name));
    text[8 + 106] = 'x';
    expect_refused(text, "longer than 107 bytes");
}

TEST(addresses_that_are_not_understood_are_refused_with_a_sentence)
{
    expect_refused("", "must begin with redis:// or unix://");
    expect_refused("http://localhost", "must begin with redis://");
    expect_refused("redis://", "a host is missing");
    expect_refused("redis://:6379", "a host is missing");
    expect_refused("redis://exa mple.org", "\"exa mple.org\"");
    expect_refused("redis://::1", "brackets, as in [::1]");
    expect_refused("redis://[fe80::1%eth0]", "a zone");
    expect_refused("redis://localhost:", "the port");
    expect_refused("redis://localhost:0", "must not be 0");
    expect_refused("redis://localhost:65536", "the port");
    expect_refused("redis://localhost:12345678901", "the port");
    expect_refused("redis://localhost/x", "the database");
    expect_refused("redis://localhost/-1", "the database");
    expect_refused("redis://[::1", "'[' without ']'");
    expect_refused("redis://[::1]x", "text after ']'");
    expect_refused("redis://[localhost.x]", "an IPv6 address");
    expect_refused("unix://relative.sock", "absolute path");
    expect_refused("unix:///", "absolute path");
    expect_refused("unix:///s?tls=1", "unknown parameter \"tls\"");
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
        "redis://u:hunter2@bad host",
        "redis://u:hunter2%@localhost",
        "redis://u:hunter2@localhost:x",
        "redis://u:hunter2@[::1",
        "redis://u:hunter2@localhost/x",
        "redis://u:a?hunter2@localhost",
        "redis://u:a?b&hunter2=@localhost",
        "redis://u:hunter2@localhost?prefix=?",
        "redis+sentinel://h/n?sentinel_password=hunter2%",
        "redis+sentinel://h/n?sentinel_password=a&hunter2",
        "redis+sentinel://h/n?sentinel_password=hunter2&db=1"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct weir__redis_url url;
        struct weir_error err = {0};

        EXPECT_INT(WEIR_EINVAL, weir__redis_url_parse(texts[i], &url, &err));
        EXPECT_TRUE(strstr(err.text, "hunter2") == NULL);
    }
}

TEST(what_is_too_long_is_refused)
{
    char text[2200];

    (void)snprintf(text, sizeof(text), "redis://%0200d:p@localhost", 1);
    expect_refused(text, "the user is longer than 127 bytes");
    (void)snprintf(text, sizeof(text), "redis://:%02048d@localhost", 1);
    expect_refused(text, "the password is longer than 2047 bytes");
    (void)snprintf(text, sizeof(text), "redis://%0300d", 1);
    expect_refused(text, "a host is longer than 255 bytes");
    (void)snprintf(text, sizeof(text), "redis://h?prefix=%033d", 1);
    expect_refused(text, "prefix is longer than 32 bytes");
}

TEST(an_address_prints_without_its_password)
{
    expect_printed("redis://u@127.0.0.1:6379/4",
                   "redis://u:hunter2@127.0.0.1/4");
    expect_printed("redis://localhost:6379", "redis://:hunter2@localhost");
    expect_printed("redis://[::1]:6379", "redis://[::1]");
    expect_printed("unix:///run/s?db=2", "unix:///run/s?db=2");
    expect_printed("unix:///run/s?db=2&prefix=shop",
                   "unix:///run/s?prefix=shop&db=2");
    expect_printed("rediss://a:1,b:6379",
                   "rediss://:hunter2@a:1,b?verify=none");
    expect_printed("redis+sentinel://u@a:26379,[::2]:7/main/3",
                   "redis+sentinel://u:hunter2@a,[::2]:7/main/3"
                   "?sentinel_password=hunter2");
}

TEST(a_printed_address_is_cut_to_fit)
{
    struct weir__redis_url url = parsed("unix:///run/redis.sock");
    char buf[8];

    weir__redis_url_print(&url, buf, sizeof(buf));
    EXPECT_STR("unix://", buf);
}

/* --- hosts ---------------------------------------------------------------- */

TEST(several_hosts_each_have_a_port)
{
    struct weir__redis_url url = parsed("redis://a.example,b_2:7000,[::1]:1");

    EXPECT_INT(3, url.host_count);
    EXPECT_STR("a.example", url.hosts[0].name);
    EXPECT_INT(6379, url.hosts[0].port);
    EXPECT_STR("b_2", url.hosts[1].name);
    EXPECT_INT(7000, url.hosts[1].port);
    EXPECT_STR("::1", url.hosts[2].name);
    EXPECT_INT(1, url.hosts[2].port);
}

TEST(sixteen_hosts_and_no_more_are_taken)
{
    EXPECT_INT(16,
               grammar("redis://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p").host_count);
    expect_refused("redis://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q",
                   "more than 16 hosts");
    expect_refused("redis://a,", "a host is missing");
    expect_refused("redis://a,b/1", "no databases");
}

TEST(sentinels_come_with_the_name_of_what_they_watch)
{
    struct weir__redis_url url =
        grammar("redis+sentinel://u:p@a,b:7/my-master/2"
                "?sentinel_user=s&sentinel_password=%26x%3d");

    EXPECT_TRUE(url.is_sentinel && !url.is_tls);
    EXPECT_INT(26379, url.hosts[0].port);
    EXPECT_INT(7, url.hosts[1].port);
    EXPECT_STR("my-master", url.service);
    EXPECT_INT(2, url.db);
    EXPECT_STR("u", url.user);
    EXPECT_STR("p", url.password);
    EXPECT_STR("s", url.sentinel_user);
    EXPECT_STR("&x=", url.sentinel_password);
    expect_refused("redis+sentinel://a,b", "the name");
    expect_refused("redis+sentinel://a,b/", "the name");
    expect_refused("redis+sentinel://a,b/x y", "the name");
    expect_refused("redis+sentinel://a/n/x", "the database");
    expect_refused("redis+sentinel://a/n?sentinel_user=x",
                   "sentinel_user needs sentinel_password");
}

/* --- parameters ----------------------------------------------------------- */

TEST(parameters_are_decoded)
{
    struct weir__redis_url url =
        grammar("rediss://h?ca=/dev/zero&cert=%2fdev/zero&key=/dev/%7aero"
                "&server_name=s%2Bx&verify=none&prefix=shop:eu-1");

    EXPECT_TRUE(url.is_tls && url.no_verify);
    EXPECT_STR("/dev/zero", url.ca);
    EXPECT_STR("/dev/zero", url.cert);
    EXPECT_STR("/dev/zero", url.key);
    EXPECT_STR("s+x", url.server_name);
    EXPECT_STR("shop:eu-1", url.prefix);
    EXPECT_STR("weir", grammar("rediss://h?").prefix);
    EXPECT_TRUE(!grammar("rediss://h").no_verify);
}

TEST(parameters_that_do_not_fit_are_refused_by_name)
{
    expect_refused("redis://h?tls=1", "unknown parameter \"tls\"");
    expect_refused("redis://h?prefix=a&&", "unknown parameter \"\"");
    expect_refused("redis://h?ca=/x", "ca is for rediss://");
    expect_refused("redis+sentinel://h/n?verify=none", "verify is for");
    expect_refused("rediss://h?sentinel_user=x", "sentinel_user is for");
    expect_refused("redis://h?db=1", "db is for unix://");
    expect_refused("redis://h?prefix=a&prefix=a", "prefix is given twice");
    expect_refused("redis://h?prefix=", "prefix needs a value");
    expect_refused("redis://h?prefix=a/b", "prefix must be");
    expect_refused("redis://h?prefix=%7ba", "prefix must be");
    expect_refused("rediss://h?verify=no", "verify can only be none");
    expect_refused("rediss://h?ca=%0", "%-sequence in ca");
    expect_refused("rediss://h?cert=/dev/zero", "cert and key");
    expect_refused("rediss://h?ca=/no/ca.pem", "ca=/no/ca.pem: No such file");
    expect_refused("rediss://h?ca=/tmp", "ca=/tmp: Is a directory");
    expect_refused("rediss://h?cert=/no/1&key=/dev/zero", "cert=/no/1: No");
    expect_refused("rediss://h?cert=/dev/zero&key=/no/1", "key=/no/1: No");
}

/* --- where the password comes from ---------------------------------------- */

static void write_file(const char *path, const char *text, size_t len)
{
    FILE *file = fopen(path, "w");

    EXPECT_TRUE(file != NULL && fwrite(text, 1, len, file) == len);
    EXPECT_INT(0, fclose(file));
}

static void expect_password(const char *wanted,
                            const struct weir__redis_url *url)
{
    char password[WEIR__REDIS_PASSWORD_CAP];

    EXPECT_INT(WEIR_OK, weir__redis_url_password(url, password, NULL));
    EXPECT_STR(wanted, password);
}

TEST(the_password_in_a_file_is_read_anew_each_time)
{
    struct tempdir dir;
    struct weir__redis_url url;
    struct weir_error err = {0};
    char path[128], text[200], password[WEIR__REDIS_PASSWORD_CAP];

    EXPECT_TRUE(tempdir_make(&dir));
    (void)snprintf(path, sizeof(path), "%s/password", dir.path);
    (void)snprintf(text, sizeof(text), "redis://u@localhost?password_file=%s",
                   path);
    expect_refused(text, "No such file");
    write_file(path, "hunter2\n", 8);
    url = parsed(text);
    EXPECT_STR("", url.password);
    expect_password("hunter2", &url);
    write_file(path, "rotated\r\n", 9);
    expect_password("rotated", &url);
    EXPECT_INT(0, remove(path));
    EXPECT_INT(WEIR_EINVAL, weir__redis_url_password(&url, password, &err));
    EXPECT_CONTAINS("password_file=", err.text);
    tempdir_remove(&dir);
}

TEST(a_file_without_a_password_is_refused)
{
    struct tempdir dir;
    char path[128], text[200], much[WEIR__REDIS_PASSWORD_CAP];

    memset(much, 'x', sizeof(much));
    EXPECT_TRUE(tempdir_make(&dir));
    (void)snprintf(path, sizeof(path), "%s/password", dir.path);
    (void)snprintf(text, sizeof(text), "unix:///s?password_file=%s", path);
    write_file(path, "\n", 1);
    expect_refused(text, "is empty");
    write_file(path, "a\0b", 3);
    expect_refused(text, "zero byte");
    write_file(path, much, sizeof(much));
    expect_refused(text, "more than a password of 2,047 bytes");
    write_file(path, much, sizeof(much) - 1);
    EXPECT_STR("", parsed(text).password);
    (void)snprintf(text, sizeof(text), "redis://:p@localhost?password_file=%s",
                   path);
    expect_refused(text, "one is enough");
    tempdir_remove(&dir);
}

TEST(the_environment_has_the_password_where_the_address_has_none)
{
    struct weir__redis_url url;

    EXPECT_INT(0, setenv("WEIR_REDIS_PASSWORD", "hunter2", 1));
    url = parsed("redis://u@localhost");
    EXPECT_STR("", url.password);
    expect_password("hunter2", &url);
    url = parsed("redis://:other@localhost");
    expect_password("other", &url);
    url = parsed("unix:///run/s"); /* the private server's has none */
    expect_password("", &url);
    EXPECT_INT(0, setenv("WEIR_REDIS_PASSWORD", "", 1));
    url = parsed("redis://localhost");
    expect_password("", &url);
    EXPECT_INT(0, unsetenv("WEIR_REDIS_PASSWORD"));
}

/* --- what others see of us ------------------------------------------------ */

static void expect_hidden(const char *wanted, const char *given)
{
    char text[256], zeros[256] = "";
    size_t len = strlen(given), left = strlen(wanted);

    (void)snprintf(text, sizeof(text), "%s", given); /* fits */
    weir__redis_url_hide(text);
    EXPECT_STR(wanted, text);
    EXPECT_INT(0, memcmp(text + left, zeros, len - left));
}

TEST(an_argument_is_left_without_its_secrets)
{
    expect_hidden("redis://u:***@h:1/2", "redis://u:hunter2@h:1/2");
    expect_hidden("redis://:*@h", "redis://:p@h");
    expect_hidden("redis://:***@h", "redis://:a@b?c@h");
    expect_hidden("redis://h:1", "redis://h:1");
    expect_hidden("redis+sentinel://:***@h/n?sentinel_password=***&prefix=a",
                  "redis+sentinel://:hunter2@h/n"
                  "?sentinel_password=hunter2&prefix=a");
    expect_hidden("nonsense", "nonsense");
    expect_hidden("http://x:***@y", "http://x:hunter2@y");
}
