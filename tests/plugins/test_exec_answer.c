/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/exec_stream.h"
#include "tests/harness/test.h"

/* The lines that children of exec answer with. */

/* A copy of its own, so that sanitizers see what is read beyond its end. */
static bool read_line(const char *line, size_t len, struct answer *ret_answer)
{
    char *copy = malloc(len == 0 ? 1 : len);
    bool is_one;

    EXPECT_TRUE(copy != NULL);
    memcpy(copy, line, len);
    is_one = exec_read_answer(copy, len, ret_answer);
    free(copy);
    return is_one;
}

TEST(an_answer_has_run_verdict_delay_and_reason)
{
    static const struct {
        const char *line;
        uint64_t run;
        enum weir_verdict verdict;
        int64_t delay_ms;
        const char *reason;
    } cases[] = {
        {"{\"run\":7,\"verdict\":\"done\"}", 7, WEIR_DONE, 0, ""},
        {" {\t\"verdict\" : \"fail\" , \"reason\":\"a\\\"\\u00e9\" } \r", 0,
         WEIR_FAIL, 0, "a\"\xc3\xa9"},
        {"{\"verdict\":\"retry\",\"run\":9007199254740993}", 9007199254740993,
         WEIR_RETRY, 0, ""},
        {"{\"verdict\":\"retry\",\"delay_ms\":0}", 0, WEIR_RETRY_AFTER, 0, ""},
        {"{\"verdict\":\"snooze\",\"delay_ms\":1500.75}", 0, WEIR_SNOOZE, 1500,
         ""},
        {"{\"run\":null,\"verdict\":\"done\",\"reason\":null}", 0, WEIR_DONE, 0,
         ""},
        {"{\"x\":[1,{\"verdict\":\"}\\\"\"}],\"verdict\":\"done\",\"y\":true}",
         0, WEIR_DONE, 0, ""},
        {"{\"verdict\":\"fail\",\"verdict\":\"done\"}", 0, WEIR_DONE, 0, ""},
        {"{\"verdict\":\"fail\",\"reason\":"
         "\"\\ud83d\\ude00\\ud83d\\udc00\\n\"}",
         0, WEIR_FAIL, 0, "\xf0\x9f\x98\x80\xf0\x9f\x90\x80 "},
        {"{\"verdict\":\"fail\",\"reason\":\"\\udc00\\ud83dx\\ud83d\\u0041\"}",
         0, WEIR_FAIL, 0, "??x?"},
        {"{}", 0, WEIR_RETRY, 0, "exec: an answer without a verdict"},
        {"{\"verdict\":\"snooze\"}", 0, WEIR_RETRY, 0,
         "exec: a snooze without delay_ms"},
        {"{\"verdict\":\"doner\"}", 0, WEIR_RETRY, 0,
         "exec: a verdict that is none of done, retry, snooze, fail"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct answer answer;

        EXPECT_TRUE(read_line(cases[i].line, strlen(cases[i].line), &answer));
        EXPECT_INT(cases[i].run, answer.run);
        EXPECT_INT(cases[i].verdict, answer.verdict);
        EXPECT_INT(cases[i].delay_ms, answer.delay_ms);
        EXPECT_STR(cases[i].reason, answer.reason);
    }
}

TEST(what_is_no_answer_is_none)
{
    static const char *const lines[] = {
        "",
        "done",
        "[]",
        "{",
        "{\"verdict\":\"done\"",
        "{\"verdict\":\"done\"} {}",
        "{\"verdict\":\"done\",}",
        "{\"verdict\":1}",
        "{\"verdict\":\"done}",
        "{\"run\":0,\"verdict\":\"done\"}",
        "{\"run\":-1,\"verdict\":\"done\"}",
        "{\"run\":\"1\",\"verdict\":\"done\"}",
        "{\"run\":99999999999999999999,\"verdict\":\"done\"}",
        "{\"verdict\":\"snooze\",\"delay_ms\":1e3}",
        "{\"verdict\":\"snooze\",\"delay_ms\":-1}",
        "{\"reason\":\"\\x\"}",
        "{\"reason\":\"\\u12g4\"}",
        "{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct answer answer;

        EXPECT_TRUE(!read_line(lines[i], strlen(lines[i]), &answer));
    }
}

TEST(a_long_reason_is_cut_before_a_character)
{
    char line[1000];
    struct answer answer;
    int len =
        snprintf(line, sizeof(line),
                 "{\"verdict\":\"fail\",\"reason\":\"%0199d\xc3\xa9\"}", 7);

    EXPECT_TRUE(read_line(line, (size_t)len, &answer));
    EXPECT_INT(199, strlen(answer.reason));
}

TEST(whatever_the_line_nothing_beyond_its_end_is_read)
{
    static const char whole[] =
        "{\"run\":7,\"verdict\":\"retry\",\"delay_ms\":1.5,\"reason\":"
        "\"\\ud83d\\ude00\\n\",\"other\":[{\"a\":null}]}";
    char line[sizeof(whole)];
    struct answer answer;
    size_t answers = 0;
    uint32_t seed = 1;

    for (size_t len = 0; len < sizeof(whole) - 1; len++)
        EXPECT_TRUE(!read_line(whole, len, &answer));
    for (int i = 0; i < 20000; i++) {
        memcpy(line, whole, sizeof(whole));
        for (int changes = 0; changes < 3; changes++) {
            seed = seed * 1664525 + 1013904223;
            line[seed % (sizeof(whole) - 1)] =
                whole[seed / 7919 % (sizeof(whole) - 1)];
        }
        answers += read_line(line, sizeof(whole) - 1, &answer);
    }
    EXPECT_TRUE(answers > 100);
}
