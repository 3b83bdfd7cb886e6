/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "plugins/notify.h"
#include "tests/harness/test.h"

static char fault[200];

/* May `address` of "host.example" be connected to? */
static bool has(const char *option, const char *host, const char *address)
{
    struct allow *allow = allow_new(option, fault, sizeof(fault));
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    const void *to = &v4;
    bool answer;

    EXPECT_TRUE(allow != NULL);
    if (inet_pton(AF_INET, address, &v4.sin_addr) != 1) {
        EXPECT_INT(1, inet_pton(AF_INET6, address, &v6.sin6_addr));
        to = &v6;
    }
    answer = allow_has(allow, host, to);
    allow_free(allow);
    return answer;
}

static const char *fault_of(const char *option)
{
    EXPECT_TRUE(allow_new(option, fault, sizeof(fault)) == NULL);
    return fault;
}

TEST(nothing_given_allows_all_that_is_not_link_local)
{
    static const char *const open[] = {
        "127.0.0.1",     "10.1.2.3",    "192.0.2.1",         "169.253.255.255",
        "169.255.0.0",   "::1",         "fe7f::1",           "fec0::1",
        "fd00:ec2::253", "2001:db8::1", "::ffff:169.255.0.0"};
    static const char *const closed[] = {"169.254.0.0",
                                         "169.254.169.254",
                                         "169.254.255.255",
                                         "fe80::",
                                         "fe80::1",
                                         "febf:ffff::1",
                                         "::ffff:169.254.169.254",
                                         "64:ff9b::a9fe:a9fe",
                                         "fd00:ec2::254"};

    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
        EXPECT_TRUE(has("", "host.example", open[i]));
    for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
        EXPECT_TRUE(!has(" \t\n", "host.example", closed[i]));
}

TEST(a_network_allows_what_is_in_it)
{
    const char *two = "10.0.0.0/8 2001:db8::/33";

    EXPECT_TRUE(has(two, "h", "10.255.255.255"));
    EXPECT_TRUE(has(two, "h", "::ffff:10.0.0.1"));
    EXPECT_TRUE(!has(two, "h", "11.0.0.0"));
    EXPECT_TRUE(!has(two, "h", "9.255.255.255"));
    EXPECT_TRUE(has(two, "h", "2001:db8:7fff::1"));
    EXPECT_TRUE(!has(two, "h", "2001:db8:8000::1"));
    EXPECT_TRUE(has("192.0.2.1", "h", "192.0.2.1"));
    EXPECT_TRUE(!has("192.0.2.1", "h", "192.0.2.0"));
    EXPECT_TRUE(has("192.0.2.8/29", "h", "192.0.2.15"));
    EXPECT_TRUE(!has("192.0.2.8/29", "h", "192.0.2.16"));
    EXPECT_TRUE(has("::1", "h", "::1"));
    EXPECT_TRUE(has("0.0.0.0/0", "h", "203.0.113.7"));
    EXPECT_TRUE(!has("0.0.0.0/0", "h", "2001:db8::1"));
    EXPECT_TRUE(has("::/0", "h", "2001:db8::1"));
    EXPECT_TRUE(!has("::/0", "h", "203.0.113.7"));
    EXPECT_TRUE(!has("::/0", "h", "::ffff:203.0.113.7"));
}

TEST(link_local_addresses_want_a_network_of_their_own)
{
    EXPECT_TRUE(!has("0.0.0.0/0 ::/0", "h", "169.254.1.1"));
    EXPECT_TRUE(!has("0.0.0.0/0 ::/0", "h", "fe80::1"));
    EXPECT_TRUE(!has("h", "h", "169.254.1.1"));
    EXPECT_TRUE(has("169.254.1.0/24", "h", "169.254.1.1"));
    EXPECT_TRUE(!has("169.254.1.0/24", "h", "169.254.2.1"));
    EXPECT_TRUE(has("fe80::/10", "h", "fe80::1"));
}

TEST(a_host_allows_its_addresses_by_its_name)
{
    EXPECT_TRUE(has("hooks.example", "hooks.example", "10.0.0.1"));
    EXPECT_TRUE(has("Hooks.Example", "hookS.example.", "10.0.0.1"));
    EXPECT_TRUE(!has("hooks.example", "xhooks.example", "10.0.0.1"));
    EXPECT_TRUE(!has("hooks.example", "hooks.example.evil", "10.0.0.1"));
    EXPECT_TRUE(!has("hooks.example", "hooks.exampl", "10.0.0.1"));
    EXPECT_TRUE(!has("hooks.example", "", "10.0.0.1"));
    EXPECT_TRUE(has("*.example", "hooks.example", "10.0.0.1"));
    EXPECT_TRUE(has("*.example", "a.b.EXAMPLE.", "10.0.0.1"));
    EXPECT_TRUE(!has("*.example", "example", "10.0.0.1"));
    EXPECT_TRUE(!has("*.example", ".example", "10.0.0.1"));
    EXPECT_TRUE(!has("*.example", "hooksexample", "10.0.0.1"));
    EXPECT_TRUE(has("a.example 10.0.0.0/8", "b.example", "10.0.0.1"));
    EXPECT_TRUE(has("a.example 10.0.0.0/8", "a.example", "11.0.0.1"));
    EXPECT_TRUE(!has("a.example 10.0.0.0/8", "b.example", "11.0.0.1"));
}

TEST(public_is_what_the_internet_has)
{
    static const char *const open[] = {
        "1.1.1.1",     "9.255.255.255",  "11.0.0.0",        "100.63.255.255",
        "100.128.0.0", "172.15.255.255", "172.32.0.0",      "192.167.0.1",
        "198.17.0.1",  "198.20.0.1",     "223.255.255.255", "2001:200::1",
        "2a00::1",     "2003::1",        "64:ff9b::101:101"};
    static const char *const closed[] = {"0.0.0.0",
                                         "10.0.0.1",
                                         "100.64.0.1",
                                         "127.0.0.1",
                                         "169.254.169.254",
                                         "172.16.0.1",
                                         "172.31.255.255",
                                         "192.0.0.192",
                                         "192.168.1.1",
                                         "198.18.0.1",
                                         "198.19.255.255",
                                         "224.0.0.1",
                                         "255.255.255.255",
                                         "::",
                                         "::1",
                                         "::127.0.0.1",
                                         "::ffff:127.0.0.1",
                                         "64:ff9b::7f00:1",
                                         "fc00::1",
                                         "fd00:ec2::254",
                                         "fe80::1",
                                         "ff02::1",
                                         "2002:7f00:1::",
                                         "2001::1",
                                         "2001:db8::1",
                                         "3fff:fff::1",
                                         "4000::1"};

    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
        EXPECT_TRUE(has("public", "h", open[i]));
    for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
        EXPECT_TRUE(!has("public", "h", closed[i]));
    EXPECT_TRUE(has("public 10.0.0.0/8", "h", "10.0.0.1"));
}

TEST(what_is_neither_host_nor_network_is_named)
{
    static const char *const bad[] = {"10.0.0.0/33",
                                      "10.0.0.0/",
                                      "10.0.0.0/-1",
                                      "10.0.0.0/8x",
                                      "10.0.0.0/0008",
                                      "10.0.0/8",
                                      "10.0.0",
                                      "256.0.0.1",
                                      "::/129",
                                      "[::1]",
                                      "fe80::1%lo",
                                      "*",
                                      "*.",
                                      "a.*",
                                      "*.*",
                                      ".a",
                                      "a.",
                                      "http://h/",
                                      "h:80",
                                      "a/24",
                                      "1",
                                      "a@b",
                                      "\"h\""};
    char wanted[100], option[100];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        (void)snprintf(option, sizeof(option), "good.example %s public",
                       bad[i]);
        (void)snprintf(
            wanted, sizeof(wanted),
            "option \"allow\": \"%s\" is no host, address or network", bad[i]);
        EXPECT_STR(wanted, fault_of(option));
    }
}

TEST(a_word_of_any_length_is_read)
{
    static char word[6000];

    for (size_t len = 1; len < sizeof(word) - 4; len = len * 2 + 1) {
        memset(word, '1', len);
        (void)snprintf(word + len, 4, "/8");
        EXPECT_CONTAINS("is no host, address", fault_of(word));
        memset(word, 'a', len);
        (void)snprintf(word + len, 4, ".b");
        EXPECT_TRUE(has(word, word, "10.0.0.1"));
    }
    memset(word, '0', 39);
    for (size_t len = 39; len <= 60; len++) {
        (void)snprintf(word + len, 2, "0");
        EXPECT_CONTAINS("is no host, address", fault_of(word));
    }
    EXPECT_TRUE(has("1111:1111:1111:1111:1111:1111:255.255.255.255/128", "h",
                    "1111:1111:1111:1111:1111:1111:ffff:ffff"));
}
