/* SPDX-License-Identifier: MIT */
#include "tests/redis/scripts/script_fixture.h"

#include <stdio.h>
#include <string.h>

/* One job by one call of a client that makes neither names nor packs, and jobs
 * whose record comes with their verdict. */

static const char keys[] = "wait ids meta idle options absent";
static const char *body; /* one byte or more, without NUL */

static void begin(const char *id, const char *when)
{
    script_begin(&weir__script_delay_push, keys);
    script_arg("t");
    script_arg(id);
    script_arg(body == NULL ? "\x07" : body);
    script_arg(when);
}

static const char *push(const char *id, const char *when)
{
    begin(id, when);
    return script_call();
}

/* The bytes of the only pack, in hexadecimal. */
static const char *pack_hex(void)
{
    return script_text("EVAL "
                       "return(redis.call('GET',redis.call('KEYS','*:p:*')[1])"
                       ":gsub('.',function(c)return(string.format('%%02x',c:"
                       "byte()))end)) 0");
}

TEST(a_pushed_job_waits_in_a_pack_that_the_server_makes)
{
    EXPECT_STR("added x", push("x", "r0"));
    EXPECT_STR("57310000010b000091a1780000000009000000"
               "9801000000"
               "0000c007",
               pack_hex());
    EXPECT_STR("delay", script_text("HGET weir:{t}:meta kind"));
    EXPECT_INT(-1, redis_int(script_proc, "EVAL %s 0",
                             "return redis.call('TTL', redis.call('KEYS', "
                             "'*:p:*')[1])"));
    EXPECT_INT(1, script_stat("added"));
    EXPECT_INT(1, script_stat("waiting"));
}

TEST(a_pushed_job_without_an_id_has_the_one_of_its_place)
{
    char id[16] = {0}, node[40];

    (void)push("", "a2000009999999");
    EXPECT_STR("added", script_reply->element[0]->str);
    EXPECT_INT(15, (long long)script_reply->element[1]->len);
    memcpy(id, script_reply->element[1]->str, sizeof(id) - 1);
    EXPECT_STR("00", id + 13);
    (void)snprintf(node, sizeof(node), "%.12s0000 2000009999999", id + 1);
    EXPECT_STR(node, script_text("ZPOPMAX weir:{t}:wait"));
    EXPECT_INT(1, redis_int(script_proc, "HLEN weir:{t}:ids"));
}

TEST(a_pushed_job_with_a_long_id_keeps_it)
{
    char id[129] = {0}, answer[140];

    memset(id, 'a', 128);
    (void)snprintf(answer, sizeof(answer), "added %s", id);
    EXPECT_STR(answer, push(id, "r0"));
    EXPECT_TRUE(strncmp("57310000018b000091d98061", pack_hex(), 24) == 0);
    id[31] = '\0';
    (void)script_text("FLUSHALL");
    (void)push(id, "r0");
    EXPECT_TRUE(strncmp("573100000129000091bf61", pack_hex(), 22) == 0);
}

TEST(names_of_pushed_jobs_differ_and_grow)
{
    char last[16] = "";

    for (int i = 0; i < 200; i++) {
        (void)push("", "r0");
        EXPECT_STR("added", script_reply->element[0]->str);
        EXPECT_TRUE(strcmp(last, script_reply->element[1]->str) < 0);
        (void)snprintf(last, sizeof(last), "%s", script_reply->element[1]->str);
    }
    EXPECT_INT(200, script_stat("waiting"));
}

TEST(a_count_that_is_none_makes_no_name_that_is_none)
{
    static const char *const counts[] = {"inf", "nan", "0.5", "-1e300", "x"};

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        (void)push("", "r0");
        (void)redis_int(script_proc, "HSET weir:{t}:meta added %s", counts[i]);
        (void)push("", "r0");
        EXPECT_STR("added", script_reply->element[0]->str);
        EXPECT_INT(15, strspn(script_reply->element[1]->str,
                              "@-_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "abcdefghijklmnopqrstuvwxyz"));
    }
}

TEST(a_count_that_becomes_too_large_begins_again)
{
    (void)push("", "r0");
    (void)script_text("HSET weir:{t}:meta added 35184372088831");
    (void)push("", "r0");
    EXPECT_STR("added", script_reply->element[0]->str);
    EXPECT_STR("1", script_text("HGET weir:{t}:meta added"));
}

TEST(pushes_of_one_transaction_have_names_of_their_own)
{
    redisContext *server = redisConnectUnix(redis_socket(script_proc));
    redisReply *reply;

    (void)push("", "r0"); /* the script is there */
    reply = redisCommand(server, "MULTI");
    freeReplyObject(reply);
    for (int i = 0; i < 50; i++) {
        reply = redisCommand(
            server,
            "EVALSHA %s 6 weir:{t}:wait weir:{t}:ids weir:{t}:meta "
            "weir:{t}:idle weir:{t}:options weir:{t}:absent t %b %s r0",
            weir__script_delay_push.sha1, "", (size_t)0, "\x07");
        freeReplyObject(reply);
    }
    reply = redisCommand(server, "EXEC");
    EXPECT_INT(50, (long long)reply->elements);
    freeReplyObject(reply);
    redisFree(server);
    EXPECT_INT(51, redis_int(script_proc, "ZCARD weir:{t}:wait"));
}

TEST(a_repeat_of_a_push_with_an_id_changes_nothing)
{
    EXPECT_STR("added x", push("x", "r0"));
    EXPECT_STR("exists x", push("x", "r0"));
    EXPECT_INT(1, script_stat("added"));
    EXPECT_INT(1, redis_int(script_proc, "ZCARD weir:{t}:wait"));
}

TEST(a_full_topic_takes_no_push)
{
    EXPECT_STR("added x", push("x", "r0"));
    (void)script_text("HSET weir:{t}:meta max_pending 1");
    EXPECT_STR("full ", push("y", "r0"));
    EXPECT_STR("full ", push("", "r0"));
    EXPECT_STR("exists x", push("x", "r0"));
    EXPECT_INT(0, redis_int(script_proc, "HEXISTS weir:{t}:ids y"));
}

TEST(a_topic_of_another_kind_takes_no_push)
{
    (void)script_text("HSET weir:{t}:meta kind list");
    EXPECT_STR("kind list", push("x", "r0"));
    EXPECT_INT(1, redis_int(script_proc, "DBSIZE"));
}

TEST(a_push_writes_the_options_of_its_job)
{
    begin("x", "r0");
    script_arg("ttl_ms");
    script_arg("60000");
    EXPECT_STR("added x", script_call());
    EXPECT_TRUE(strstr(pack_hex(), "9801000000000081a674746c5f6d73cdea6007") !=
                NULL);
    (void)script_text("FLUSHALL");
    begin("x", "r0");
    script_arg("header:a");
    script_arg("b");
    EXPECT_STR("added x", script_call());
    EXPECT_TRUE(strstr(pack_hex(),
                       "9801000000000081a76865616465727381a161a16207") != NULL);
}

static void expect_refused(const char *what)
{
    EXPECT_TRUE(strstr(script_reply->str, what) != NULL);
    EXPECT_INT(REDIS_REPLY_ERROR, script_reply->type);
    EXPECT_INT(0, redis_int(script_proc, "DBSIZE"));
}

TEST(a_push_that_is_none_does_nothing)
{
    static const char *const ids[] = {"@x", "!x", "a b", "a{", "}", "\x7f"};
    static const char *const times[] = {"", "0", "r", "r1.5", "p0", "r0 "};
    static const char *const bodies[] = {"{\"a\":1}", "\x92\x01", "\xa3xy",
                                         "text", ""};

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        (void)push(ids[i], "r0");
        expect_refused("the id is not");
    }
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        (void)push("x", times[i]);
        expect_refused("the time is not");
    }
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        body = bodies[i];
        (void)push("x", "r0");
        expect_refused("the body is not");
    }
}

TEST(a_long_text_that_is_no_msgpack_is_refused)
{
    static char text[400];

    memset(text, ' ', sizeof(text) - 1);
    body = text;
    (void)push("x", "r0");
    expect_refused("the body is not");
    text[0] = '\xdc'; /* an array; of what follows nothing is known */
    EXPECT_STR("added x", push("x", "r0"));
}

TEST(a_body_may_be_of_a_type_that_lua_does_not_know)
{
    body = "\xd4\x05\x06";
    EXPECT_STR("added x", push("x", "r0"));
}

TEST(a_push_minds_the_most_bytes_of_a_body)
{
    body = "\xa4"
           "abcd";
    (void)script_text("HSET weir:{t}:meta revision 1 kind delay");
    (void)script_text("HSET weir:{t}:options max_body 4");
    (void)push("x", "r0");
    EXPECT_STR("ERR the body has more than 4 bytes", script_reply->str);
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:wait weir:{t}:ids"));
    (void)script_text("HSET weir:{t}:options max_body 1KiB");
    EXPECT_STR("added x", push("x", "r0"));
}

TEST(options_that_are_none_are_refused)
{
    static const char *const odd[][2] = {{"ttl", "1"},    {"ttl_ms", "1s"},
                                         {"ttl_ms", ""},  {"header:", "x"},
                                         {"retry", NULL}, {"error", "x"}};

    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        begin("x", "r0");
        script_arg(odd[i][0]);
        if (odd[i][1] != NULL)
            script_arg(odd[i][1]);
        (void)script_call();
        expect_refused("an option is not");
    }
}

static const char *push_x(void)
{
    return push("x", "r0");
}

static void make_topic(void)
{
    (void)script_text("HSET weir:{t}:meta kind delay");
}

static const char *push_unnamed(void)
{
    return push("", "r0");
}

static void make_no_topic(void)
{
}

TEST(a_push_that_ends_with_an_error_leaves_no_job)
{
    script_expect_untouched("wait ids meta", make_topic, push_x);
    script_expect_untouched("wait meta", make_topic, push_unnamed);
    script_expect_untouched("wait meta", make_no_topic, push_x);
}

TEST(a_push_wakes_whoever_would_sleep_longest)
{
    redisContext *heard = redisConnectUnix(redis_socket(script_proc));
    char told[32];
    void *reply;

    EXPECT_TRUE(heard != NULL && heard->err == 0);
    freeReplyObject(redisCommand(heard, "SUBSCRIBE weir:wake:w1"));
    (void)script_text("ZADD weir:{t}:idle 1 w0 2000000000000 w1");
    (void)push("", "r0");
    (void)snprintf(told, sizeof(told), "t %.12s",
                   script_reply->element[1]->str + 1);
    EXPECT_INT(REDIS_OK, redisGetReply(heard, &reply));
    EXPECT_STR(told, ((redisReply *)reply)->element[2]->str);
    EXPECT_STR("w0", script_text("ZRANGE weir:{t}:idle 0 -1"));
    freeReplyObject(reply);
    redisFree(heard);
}

/* --- records that come with a verdict ------------------------------------- */

static void settle_y(void)
{
    script_settle_begin();
    script_settle_node("a0001", "", 0);
    script_settle_close();
    script_settle_record(1, "y", "a2000000000000", "r2");
}

TEST(a_job_whose_record_comes_with_its_verdict_runs_again)
{
    EXPECT_STR("2", script_add('a', "x y", "r0"));
    EXPECT_STR("a0001+0", script_claim("9", "9000"));
    settle_y();
    EXPECT_STR("2", script_settle('a', '\0', "9"));
    EXPECT_STR("57310000010b000091a179000000000200000072"
               "32",
               pack_hex());
    EXPECT_INT(-1, redis_int(script_proc, "EVAL %s 0",
                             "return redis.call('TTL', redis.call('KEYS', "
                             "'*:p:*')[1])"));
    EXPECT_INT(1, script_stat("retried"));
    EXPECT_INT(1, script_stat("done"));
    EXPECT_INT(1, script_stat("waiting"));
    EXPECT_STR("2000000000000",
               script_text("EVAL return(redis.call('ZRANGE','weir:{t}:wait',0,"
                           "-1,'WITHSCORES')[2]) 0"));
}

TEST(a_verdict_that_is_refused_brings_no_record)
{
    EXPECT_STR("2", script_add('a', "x y", "r0"));
    EXPECT_STR("a0001+0", script_claim("9", "9000"));
    settle_y();
    EXPECT_STR("2", script_settle('a', '\0', "9"));
    EXPECT_STR("0 0 0 0 1", script_settle('a', '\0', "9"));
    EXPECT_INT(1, redis_int(script_proc, "EVAL %s 0",
                            "return #redis.call('KEYS', '*:p:*')"));
    EXPECT_INT(1, script_stat("waiting"));
    EXPECT_INT(1, script_stat("retried"));
}

TEST(a_record_without_an_id_is_refused_and_nothing_is_done)
{
    EXPECT_STR("2", script_add('a', "x y", "r0"));
    EXPECT_STR("a0001+0", script_claim("9", "9000"));
    script_settle_begin();
    script_settle_node("a0001", "", 0);
    script_settle_record(1, "", "r0", "r2");
    EXPECT_STR(
        "ERR a move is not key, jobs, header length, when, form, sources "
        "and target",
        script_settle('a', '\0', "9"));
    EXPECT_INT(2, script_stat("running"));
}

/* --- under a key ---------------------------------------------------------- */

static const char *push_key(const char *id, const char *const *pairs)
{
    begin(id, "r0");
    for (; *pairs != NULL; pairs++)
        script_arg(*pairs);
    return script_call();
}
#define PUSH_KEY(id, ...) push_key(id, (const char *const[]){__VA_ARGS__, NULL})

TEST(a_push_may_have_a_key)
{
    char holder[32];

    EXPECT_TRUE(strncmp("added @", PUSH_KEY("", "unique", "k"), 7) == 0);
    (void)snprintf(holder, sizeof(holder), "held %s",
                   script_reply->element[1]->str);
    EXPECT_STR(holder, PUSH_KEY("", "unique", "k"));
    EXPECT_STR(holder, PUSH_KEY("x", "unique", "k"));
    EXPECT_STR("added x", PUSH_KEY("x", "unique", "other"));
    EXPECT_STR("exists x", PUSH_KEY("x", "unique", "k"));
    EXPECT_INT(2, script_stat("waiting"));
    EXPECT_STR("added y", PUSH_KEY("y", "unique", "z", "for", "1h30m", "else",
                                   "throttle"));
    EXPECT_STR("added w", PUSH_KEY("w", "unique", "z", "for", "1h30m", "else",
                                   "throttle"));
    EXPECT_STR("added v", PUSH_KEY("v", "unique", "d", "else", "debounce",
                                   "max_wait", "1s"));
    EXPECT_STR("added u", PUSH_KEY("u", "unique", "d", "else", "debounce",
                                   "max_wait", "1s"));
    EXPECT_INT(5, script_stat("waiting"));
    EXPECT_INT(5400000,
               redis_int(script_proc, "EVAL %s 1 weir:{t}:unique",
                         "local entry = redis.call('HGET', KEYS[1], 'z') "
                         "return entry:sub(16, 31) - entry:sub(50, 65)"));
    (void)script_text("HSET weir:{t}:meta max_pending 5");
    EXPECT_STR("full ", PUSH_KEY("s", "unique", "s"));
    EXPECT_STR("added t", PUSH_KEY("t", "unique", "d", "else", "replace"));
}

TEST(a_key_that_is_none_is_refused)
{
    static const char *const odd[][4] = {{"unique", ""},
                                         {"unique", "k", "for", "soon"},
                                         {"unique", "k", "for", "10"},
                                         {"unique", "k", "for", "1x"},
                                         {"unique", "k", "for", "until-x"},
                                         {"unique", "k", "else", "throttle"},
                                         {"unique", "k", "else", "other"},
                                         {"unique", "k", "max_wait", "1s"}};

    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        begin("x", "r0");
        for (size_t j = 0; j < 4 && odd[i][j] != NULL; j++)
            script_arg(odd[i][j]);
        (void)script_call();
        expect_refused("the key is not 1 to 2,048 bytes");
    }
    (void)PUSH_KEY("x", "for", "10m");
    expect_refused("give unique, too");
}

/* Pushes a body and returns its key. */
static const char *key_of(const void *bytes, size_t len)
{
    static char key[64];
    redisReply *all;
    redisContext *server = redisConnectUnix(redis_socket(script_proc));

    freeReplyObject(redisCommand(server, "DEL weir:{t}:unique"));
    script_begin(&weir__script_delay_push, keys);
    script_arg("t");
    script_arg("");
    script_arg_bytes(bytes, len);
    script_arg("r0");
    EXPECT_CONTAINS("added", script_call());
    all = redisCommand(server, "HKEYS weir:{t}:unique");
    (void)snprintf(key, sizeof(key), "%s",
                   all->elements == 0 ? "none" : all->element[0]->str);
    freeReplyObject(all);
    redisFree(server);
    return key;
}
#define KEY_OF(bytes) key_of(bytes, sizeof(bytes) - 1)

static void set_path(const char *path)
{
    EXPECT_TRUE(redis_int(script_proc, "HSET weir:{t}:meta revision 1 kind "
                                       "delay") >= 0);
    EXPECT_TRUE(
        redis_int(script_proc, "HSET weir:{t}:options unique %s", path) >= 0);
}

TEST(the_key_of_a_push_is_where_the_topic_says)
{
    set_path("body.order");
    EXPECT_STR("x", KEY_OF("\x81\xa5order\xa1x"));
    EXPECT_STR("x", KEY_OF("\xde\x00\x02\xa1"
                           "a\x90\xa5order\xc4\x01x"));
    EXPECT_STR("7", KEY_OF("\x82\xa1"
                           "a\x81\xa1x\x90\xa5order\x07"));
    EXPECT_STR("-32768", KEY_OF("\x81\xa5order\xd1\x80\x00"));
    EXPECT_STR("4294967295", KEY_OF("\x81\xa5order\xce\xff\xff\xff\xff"));
    EXPECT_STR("18446744073709551615",
               KEY_OF("\x81\xa5order\xcf\xff\xff\xff\xff\xff\xff\xff\xff"));
    EXPECT_STR("1234567890123456789",
               KEY_OF("\x81\xa5order\xcf\x11\x22\x10\xf4\x7d\xe9\x81\x15"));
    EXPECT_STR("-9223372036854775808",
               KEY_OF("\x81\xa5order\xd3\x80\x00\x00\x00\x00\x00\x00\x00"));
    EXPECT_STR("-1",
               KEY_OF("\x81\xa5order\xd3\xff\xff\xff\xff\xff\xff\xff\xff"));
    EXPECT_STR("none", KEY_OF("\x81\xa5order\xc0"));
    EXPECT_STR("none", KEY_OF("\x81\xa5order\xc3"));
    EXPECT_STR("none", KEY_OF("\x81\xa5order\xa0"));
    EXPECT_STR("none", KEY_OF("\x81\xa5order\x81\xa1"
                              "a\x01"));
    EXPECT_STR("none", KEY_OF("\x81\xa5other\x01"));
    EXPECT_STR("none", KEY_OF("\x07"));
    set_path("body.items.1.sku");
    EXPECT_STR("s2", KEY_OF("\x81\xa5items\x92\x81\xa3sku\xa2s1\x81\xa3sku"
                            "\xa2s2"));
    EXPECT_STR("none", KEY_OF("\x81\xa5items\x91\x81\xa3sku\xa2s1"));
    set_path("body");
    EXPECT_STR("whole", KEY_OF("\xa5whole"));
}

TEST(a_push_is_held_to_what_the_topic_says_of_keys)
{
    set_path("body");
    body = "\xa1k";
    EXPECT_STR("added x", push("x", "r0"));
    EXPECT_STR("held x", push("y", "r0"));
    EXPECT_STR("added z", PUSH_KEY("z", "unique", "other"));
    (void)script_text("HSET weir:{t}:options unique_else replace");
    EXPECT_STR("added y", push("y", "r0"));
    EXPECT_INT(2, script_stat("waiting"));
}

TEST(a_body_in_which_the_key_cannot_be_read_is_refused)
{
    set_path("body.order");
    body = "\x82\xa1"
           "a\xd4\x05\x06\xa5order\x07";
    (void)push("x", "r0");
    EXPECT_STR("ERR the key cannot be read: the body has a type without "
               "one",
               script_reply->str);
}

/* The script that makes a name of the milliseconds since 2020 and a serial. */
static void read_lone_name(char *text, size_t cap)
{
    FILE *file = fopen(SCRIPT_LIB "/lone_name.lua", "rb");
    int head = snprintf(text, cap,
                        "local now, serial, seq = ARGV[1] + 1577836800000, "
                        "tonumber(ARGV[2])\n");

    EXPECT_TRUE(file != NULL);
    head += (int)fread(text + head, 1, cap - (size_t)head, file);
    (void)fclose(file); /* only read from */
    (void)snprintf(text + head, cap - (size_t)head, "return seq");
}

/* 41 bits of the time and a one are seven characters, 23 of the serial four. */
TEST(a_name_of_the_server_has_each_character_at_each_place)
{
    static const char alphabet[] = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_"
                                   "abcdefghijklmnopqrstuvwxyz";
    static char text[4096];

    read_lone_name(text, sizeof(text));
    for (int value = 0; value < 64; value++) {
        char ms[24], serial[24], wanted[16];
        int64_t high = 0, low = value % 32;

        for (int i = 0; i < 7; i++)
            high = high * 64 + value;
        for (int i = 0; i < 3; i++)
            low = low * 64 + value;
        (void)snprintf(ms, sizeof(ms), "%lld", (long long)(high / 2));
        (void)snprintf(serial, sizeof(serial), "%lld", (long long)low);
        memset(wanted, alphabet[value], 12);
        wanted[6] = alphabet[value | 1];
        wanted[7] = 'z';
        wanted[8] = alphabet[value % 32];
        wanted[12] = '\0';
        EXPECT_STR(wanted, redis_text(script_proc, "EVAL %s 0 %s %s", text, ms,
                                      serial));
    }
}
