/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/exec.h"
#include "tests/harness/test.h"

/* The texts of exec under a host that checks nothing of a job. */

struct letter {
    struct weir_job job; /* first: what handlers hold */
    struct weir_slice id, url;
    size_t body_len;
};

static const struct letter *letter_of(const struct weir_job *job)
{
    return (const void *)job;
}

static struct weir_slice letter_id(const struct weir_job *job)
{
    return letter_of(job)->id;
}

static struct weir_slice letter_topic(const struct weir_job *job)
{
    return letter_of(job)->id;
}

static struct weir_slice letter_url(const struct weir_job *job)
{
    return letter_of(job)->url;
}

static struct weir_slice letter_group(const struct weir_job *job)
{
    return letter_of(job)->url; /* as long, and none where there is no url */
}

static void letter_counters(const struct weir_job *job,
                            struct weir_counters *ret_counters)
{
    (void)job;
    memset(ret_counters, 0xff, sizeof(*ret_counters));
}

static uint64_t letter_token(const struct weir_job *job)
{
    (void)job;
    return (uint64_t)1 << 63;
}

static int64_t letter_due_ms(const struct weir_job *job)
{
    (void)job;
    return INT64_MIN;
}

static int64_t letter_added_ms(const struct weir_job *job)
{
    (void)job;
    return INT64_MAX;
}

static size_t letter_headers(const struct weir_job *job,
                             struct weir_header *ret_headers, size_t cap)
{
    (void)job;
    EXPECT_TRUE(cap >= 2);
    ret_headers[0] = (struct weir_header){{(const uint8_t *)"a", 1},
                                          {(const uint8_t *)"1", 1}};
    ret_headers[1] = (struct weir_header){{(const uint8_t *)"b", 1},
                                          {(const uint8_t *)"\"", 1}};
    return 2;
}

static size_t letter_json(const struct weir_job *job, char *buf, size_t cap)
{
    size_t len = letter_of(job)->body_len;

    for (size_t i = 0; i < len && i + 1 < cap; i++)
        buf[i] = '7';
    if (cap > 0)
        buf[len < cap ? len : cap - 1] = '\0';
    return len;
}

static const struct weir_host host = {
    .size = sizeof(host),
    .job_id = letter_id,
    .job_topic = letter_topic,
    .job_url = letter_url,
    .job_group = letter_group,
    .job_counters = letter_counters,
    .job_token = letter_token,
    .job_due_ms = letter_due_ms,
    .job_body_json = letter_json,
    .job_added_ms = letter_added_ms,
    .job_headers = letter_headers,
};

/* `len` bytes that take six each. */
static char *escaped(char *to, size_t len)
{
    for (size_t i = 0; i < len; i++)
        to += snprintf(to, 7, "\\u0001");
    return to;
}

static void expect_json(size_t id_len, size_t body_len)
{
    static uint8_t bytes[1000];
    static char wanted[6 * 4 * 1000 + 4000];
    struct letter letter = {.job = {&host},
                            .id = {bytes, id_len},
                            .url = {bytes, id_len},
                            .body_len = body_len};
    char *to = wanted;
    struct text text = {0};

    memset(bytes, 1, sizeof(bytes));
    to = escaped(to + snprintf(to, 300, "{\"topic\":\""), id_len);
    to = escaped(to + snprintf(to, 300, "\",\"id\":\""), id_len);
    to += snprintf(to, 300,
                   "\",\"attempt\":4294967295,\"failures\":4294967295,"
                   "\"timeouts\":4294967295,\"crashes\":4294967295,"
                   "\"snoozes\":4294967295,\"token\":-9223372036854775808,"
                   "\"due_ms\":-9223372036854775808,"
                   "\"added_ms\":9223372036854775807");
    if (id_len > 0)
        to = escaped(to + snprintf(to, 300, ",\"url\":\""), id_len);
    if (id_len > 0)
        to = escaped(to + snprintf(to, 300, "\",\"group\":\""), id_len);
    to += snprintf(to, 300,
                   "%s,\"headers\":{\"a\":\"1\",\"b\":\"\\\"\"},\"body\":",
                   id_len > 0 ? "\"" : ",\"url\":null");
    memset(to, '7', body_len);
    (void)snprintf(to + body_len, 3, "}\n");
    EXPECT_TRUE(exec_put_job(&text, &letter.job, 0));
    EXPECT_MEM(wanted, strlen(wanted), text.bytes, text.len);
    free(text.bytes);
}

TEST(a_job_is_json_whatever_the_length_of_its_parts)
{
    static const size_t lens[] = {0, 1, 128, 129, 255, 1000};

    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
        expect_json(lens[i], 1);
    /* What is reserved at first ends somewhere in here. */
    for (size_t len = 200; len < 1100; len++)
        expect_json(1, len);
}

TEST(what_a_log_would_escape_becomes_question_marks)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        {"", ""},
        {"a~\\\xc2\xa0\xc3\xa9", "a~\\\xc2\xa0\xc3\xa9"},
        {"\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf",
         "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"},
        {"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf",
         "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"},
        {"\t\x1b[1m\n\x7f.", "  [1m  ."},
        {"\xff\x80x\xbf\xfe", "??x??"},
        {"\xc3", "?"},
        {"\xe6\x97x\xf0\x9f\x91", "??x???"},
        {"\xc0\x80\xc1\xbf\xe0\x9f\xbf\xf0\x8f\xbf\xbf", "???????????"},
        {"\xed\xa0\x80\xed\xbf\xbf\xf4\x90\x80\x80", "??????????"},
        {"\xf8\x90\x80\x80\xf8\x88\x80\x80\x80", "?????????"},
        {"\xc2\x80 \xc2\x9b \xc2\x9f", "?? ?? ??"},
        {"\xd8\x9b\xd8\x9c\xd8\x9d", "\xd8\x9b??\xd8\x9d"},
        {"\xe2\x80\x8d\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\x90",
         "\xe2\x80\x8d??????\xe2\x80\x90"},
        {"\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xae\xe2\x80\xaf",
         "\xe2\x80\xa7??????\xe2\x80\xaf"},
        {"\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa",
         "\xe2\x81\xa5??????\xe2\x81\xaa"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[40];

        (void)snprintf(text, sizeof(text), "%s", cases[i].text);
        exec_clean(text, strlen(text));
        EXPECT_STR(cases[i].wanted, text);
    }
}

TEST(what_ends_within_a_character_ends_before_it)
{
    static const char text[] = "a\xc3\xa9\xe6\x97\xa5\xf0\x9f\x91\x8d";
    static const size_t wholes[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};

    for (size_t len = 0; len <= 10; len++)
        EXPECT_INT(wholes[len], exec_whole(text, len));
    /* What begins none is left where it is. */
    EXPECT_INT(4, exec_whole("a\x80\x80\x80", 4));
    EXPECT_INT(2, exec_whole("\x80\x80", 2));
    EXPECT_INT(2, exec_whole("a\xff", 2));
    EXPECT_INT(3, exec_whole("\xc3\xa9\x80", 3));
}

TEST(words_of_any_length_are_split)
{
    static char text[3000];
    const char *fault = NULL;

    for (size_t len = 1; len < sizeof(text); len = len * 3 / 2 + 1) {
        char **words;

        memset(text, 'a', len);
        text[len] = '\0';
        text[len / 2] = len > 2 ? ' ' : 'a';
        words = exec_split(text, &fault);
        EXPECT_TRUE(words != NULL);
        EXPECT_INT(len > 2 ? len / 2 : len, strlen(words[0]));
        free(words);
    }
}
