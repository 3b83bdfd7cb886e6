/* SPDX-License-Identifier: MIT */

#include "core/text.h"
#include "tests/redis/store/lease_fixture.h"

/* What any program writes into a list, as bodies of jobs. */

static bool body_is(const struct weir__run *run, const char *bytes)
{
    return weir__slice_equal(run->record.body, weir__slice_str(bytes));
}

static const struct {
    const char *entry,
        *body[4]; /* auto, json, text, msgpack; NULL: malformed */
} forms[] = {
    {"apple",
     {"\xa5"
      "apple",
      NULL,
      "\xa5"
      "apple",
      NULL}},
    {"x", {"\xa1x", NULL, "\xa1x", "x"}},
    {"", {"\xa0", NULL, "\xa0", NULL}},
    {"12",
     {"\x0c", "\x0c",
      "\xa2"
      "12",
      NULL}},
    {"{oops", {"\xa5{oops", NULL, "\xa5{oops", NULL}},
    {"[1]", {"\x91\x01", "\x91\x01", "\xa3[1]", NULL}},
    {"\"a\"",
     {"\xa1"
      "a",
      "\xa1"
      "a",
      "\xa3\"a\"", NULL}},
    {"\xc3\xa4", {"\xa2\xc3\xa4", NULL, "\xa2\xc3\xa4", NULL}},
    {"\x81\xa1n\x04", {"\x81\xa1n\x04", NULL, NULL, "\x81\xa1n\x04"}},
    {"\xff\xfe", {NULL, NULL, NULL, NULL}},
    /* A text, and a number or an extension of msgpack: int8, int16, uint32,
     * float32, and five letters of Hebrew in 8 bytes of an extension. */
    {"\xd0\x96", {"\xa2\xd0\x96", NULL, "\xa2\xd0\x96", "\xd0\x96"}},
    {"\xd1\x80\x31",
     {"\xa3\xd1\x80\x31", NULL, "\xa3\xd1\x80\x31", "\xd1\x80\x31"}},
    {"\xce\xb1\xce\xb2\x31",
     {"\xa5\xce\xb1\xce\xb2\x31", NULL, "\xa5\xce\xb1\xce\xb2\x31",
      "\xce\xb1\xce\xb2\x31"}},
    {"\xca\xbboha",
     {"\xa5\xca\xbboha", NULL, "\xa5\xca\xbboha", "\xca\xbboha"}},
    {"\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d\xd7\x99",
     {"\xaa\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d\xd7\x99", NULL,
      "\xaa\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d\xd7\x99",
      "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d\xd7\x99"}},
    /* Numbers that are no text: 129, and -106 in three bytes. */
    {"\xcc\x81", {"\xcc\x81", NULL, "\xa2\xcc\x81", "\xcc\x81"}},
    {"\xd1\xff\x96", {"\xd1\xff\x96", NULL, NULL, "\xd1\xff\x96"}},
};

TEST(the_option_body_says_how_entries_are_read)
{
    static const char *const options[] = {"body=auto", "body=json", "body=text",
                                          "body=msgpack"};
    struct host *host = host_open_kind("w1", "list");

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        for (size_t form = 0; form < 4; form++) {
            struct weir__run *run;

            host_serve(host, options[form]);
            EXPECT_INT(1, redis_int(proc, "RPUSH t %s", forms[i].entry));
            EXPECT_INT(1, host_claim(host, 10, 60000));
            run = host_take(host);
            EXPECT_INT(forms[i].body[form] == NULL, run->is_malformed);
            if (forms[i].body[form] != NULL)
                EXPECT_TRUE(body_is(run, forms[i].body[form]));
            host_settle(host, run, WEIR__OUTCOME_DONE);
            host_await_settled(host);
        }
}

TEST(fields_are_the_body_again_after_a_death_whatever_body_says)
{
    static const char *const options[] = {"body=auto", "body=json", "body=text",
                                          "body=msgpack"};
    struct host *host = host_open_kind("w1", "stream");

    for (size_t form = 0; form < 4; form++) {
        host_serve(host, options[form]);
        EXPECT_TRUE(redis_text(proc, "XADD t * n 7") != NULL);
        EXPECT_INT(1, host_claim(host, 10, 60000));
        EXPECT_TRUE(body_is(host->runs, "\x81\xa1n\xa1"
                                        "7"));
        host_settle_all(host, WEIR__OUTCOME_DEAD);
        host_await_settled(host);
        EXPECT_INT(1, host_dead(host, 10));
        EXPECT_STR("\x81\xa1n\xa1"
                   "7",
                   host->text[3]);
        EXPECT_INT(WEIR_OK, host_requeue(host, ""));
        EXPECT_INT(1, host_claim(host, 10, 60000));
        EXPECT_TRUE(!host->runs->is_malformed);
        EXPECT_TRUE(body_is(host->runs, "\x81\xa1n\xa1"
                                        "7"));
        host_settle_all(host, WEIR__OUTCOME_DONE);
        host_await_settled(host);
    }
}

TEST(fields_that_another_topic_refused_are_the_body_again)
{
    struct host *host = host_open_kind("w1", "stream");

    EXPECT_INT(1, redis_int(proc, "HSET weir:{later}:meta kind bounded"));
    host_serve(host, "body=text", "on_dead=later");
    EXPECT_TRUE(redis_text(proc, "XADD t * n 7") != NULL);
    EXPECT_INT(1, host_claim(host, 10, 60000));
    host_settle_all(host, WEIR__OUTCOME_DEAD);
    host_await_settled(host);
    AWAIT(redis_int(proc, "ZCARD weir:{t}:dead") == 1);
    EXPECT_INT(WEIR_OK, host_requeue(host, ""));
    EXPECT_INT(1, host_claim(host, 10, 60000));
    EXPECT_TRUE(body_is(host->runs, "\x81\xa1n\xa1"
                                    "7"));
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
}
