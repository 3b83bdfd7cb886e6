/* SPDX-License-Identifier: MIT */

/* Tests of several clients of one server. */

#include <hiredis/hiredis.h>
#include <stdio.h>

#include "tests/harness/test.h"
#include "tests/sim/server/local.h"
#include "tests/sim/server/server.h"

static struct server *server;
static struct local *first, *second, *third;

static void open_server(void)
{
    server = server_new(INT64_C(1800000000000000), 1);
    first = local_open(server);
    second = local_open(server);
    third = local_open(server);
}

static void close_server(void)
{
    local_close(first);
    local_close(second);
    local_close(third);
    server_free(server);
}

#define SAY(local, ...) \
    local_say(local, (const char *const[]){__VA_ARGS__, NULL})

/* The text of the reply, or of its last element; "" for none that is nil. */
static const char *take(struct local *local)
{
    static char text[64];
    redisReply *reply = local_take(local), *last = reply;

    EXPECT_TRUE(reply != NULL);
    while (last->type == REDIS_REPLY_ARRAY)
        last = last->element[last->elements - 1];
    (void)snprintf(text, sizeof(text), "%s",
                   last->type == REDIS_REPLY_NIL ? "" : last->str); /* cut */
    freeReplyObject(reply);
    return text;
}

TEST(who_waits_longest_is_served_first)
{
    open_server();
    SAY(first, "BLMOVE", "from", "to", "LEFT", "LEFT", "5");
    SAY(second, "BLMOVE", "from", "to", "LEFT", "LEFT", "5");
    EXPECT_TRUE(local_take(first) == NULL && local_take(second) == NULL);
    SAY(third, "RPUSH", "from", "a");
    EXPECT_STR("a", take(first));
    EXPECT_TRUE(local_take(second) == NULL);
    SAY(third, "RPUSH", "from", "b");
    EXPECT_STR("b", take(second));
    EXPECT_INT(INT64_MAX, server_next_us(server));
    close_server();
}

TEST(a_wait_ends_with_its_time_and_what_was_asked_since_then_follows)
{
    int64_t begin_us;

    open_server();
    begin_us = server_time(server);
    SAY(first, "XREAD", "BLOCK", "2000", "STREAMS", "stream", "0-0");
    SAY(first, "ECHO", "behind");
    SAY(second, "XREAD", "BLOCK", "3000", "STREAMS", "stream", "0-0");
    EXPECT_INT(begin_us + 2000000, server_next_us(server));
    server_set_time(server, begin_us + 1999999);
    EXPECT_TRUE(local_take(first) == NULL);
    server_set_time(server, begin_us + 2000000);
    EXPECT_STR("", take(first));
    EXPECT_STR("behind", take(first));
    SAY(third, "XADD", "stream", "*", "body", "x");
    EXPECT_STR("x", take(second));
    close_server();
}

TEST(a_client_that_is_gone_waits_no_more)
{
    open_server();
    SAY(first, "BLMOVE", "from", "to", "LEFT", "LEFT", "0");
    local_close(first);
    first = local_open(server);
    SAY(third, "RPUSH", "from", "a");
    SAY(third, "LINDEX", "from", "0");
    freeReplyObject(local_take(third));
    EXPECT_STR("a", take(third));
    close_server();
}

TEST(a_message_goes_to_those_who_listen)
{
    open_server();
    SAY(first, "SUBSCRIBE", "news");
    freeReplyObject(local_take(first));
    SAY(second, "PUBLISH", "news", "hello");
    EXPECT_STR("hello", take(first));
    SAY(second, "PUBLISH", "other", "hello");
    EXPECT_TRUE(local_take(first) == NULL);
    close_server();
}

TEST(a_key_is_gone_when_its_time_is_over)
{
    open_server();
    SAY(first, "SET", "key", "value", "PX", "1000");
    freeReplyObject(local_take(first));
    server_set_time(server, server_time(server) + 999999);
    SAY(first, "GET", "key");
    EXPECT_STR("value", take(first));
    server_set_time(server, server_time(server) + 1);
    SAY(first, "GET", "key");
    EXPECT_STR("", take(first));
    close_server();
}

TEST(a_lost_key_is_gone_and_a_restart_forgets_scripts)
{
    char key[16], sha[64];

    open_server();
    EXPECT_TRUE(!server_any_key(server, key, sizeof(key)));
    SAY(first, "SET", "key", "value");
    freeReplyObject(local_take(first));
    EXPECT_TRUE(server_any_key(server, key, sizeof(key)));
    EXPECT_STR("key", key);
    EXPECT_TRUE(server_lose(server, key));
    EXPECT_TRUE(!server_lose(server, key));
    SAY(first, "SCRIPT", "LOAD", "return 'one'");
    (void)snprintf(sha, sizeof(sha), "%s", take(first)); /* fits */
    SAY(first, "EVALSHA", sha, "0");
    EXPECT_STR("one", take(first));
    server_restart(server);
    SAY(first, "EVALSHA", sha, "0");
    EXPECT_STR("NOSCRIPT No matching script. Please use EVAL.", take(first));
    close_server();
}
