/* SPDX-License-Identifier: MIT */
#include "core/error.h"
#include "core/text.h"

#include <stdio.h>
#include <string.h>

#include "tests/harness/test.h"

TEST(every_code_has_a_name_and_a_text_of_its_own)
{
    static const int codes[] = {
#define CODE(code, name, text) WEIR_E##name,
        WEIR_ERROR_MAP(CODE)
#undef CODE
    };
    size_t count = sizeof(codes) / sizeof(codes[0]);

    for (size_t i = 0; i < count; i++) {
        EXPECT_INT(-1 - (int)i, codes[i]);
        EXPECT_CONTAINS("WEIR_E", weir_error_name(codes[i]));
        EXPECT_TRUE(strcmp("WEIR_E?", weir_error_name(codes[i])) != 0);
        for (size_t j = 0; j < i; j++)
            EXPECT_TRUE(strcmp(weir_error_text(codes[i]),
                               weir_error_text(codes[j])) != 0);
    }
}

TEST(foreign_codes_have_a_name_too)
{
    EXPECT_STR("WEIR_OK", weir_error_name(WEIR_OK));
    EXPECT_STR("no error", weir_error_text(WEIR_OK));
    EXPECT_STR("WEIR_E?", weir_error_name(-12345));
    EXPECT_STR("unknown error", weir_error_text(1));
}

TEST(setting_an_error_returns_its_code_also_without_an_error)
{
    struct weir_error err = {0};

    EXPECT_INT(WEIR_EFULL, weir__error_set(NULL, WEIR_EFULL, "x"));
    EXPECT_INT(WEIR_EFULL,
               weir__error_set(&err, WEIR_EFULL, "%d of %s", 3, "4"));
    EXPECT_INT(WEIR_EFULL, err.code);
    EXPECT_STR("3 of 4", err.text);
    EXPECT_INT(WEIR_OK, weir__error_code(&err, WEIR_OK));
    EXPECT_STR("3 of 4", err.text);
    EXPECT_INT(WEIR_ENOMEM, weir__error_code(&err, WEIR_ENOMEM));
    EXPECT_STR(weir_error_text(WEIR_ENOMEM), err.text);
}

TEST(a_sentence_that_is_too_long_is_cut)
{
    char long_text[600];
    struct weir_error err = {0};

    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    (void)weir__error_set(&err, WEIR_EINVAL, "%s", long_text);
    EXPECT_INT(sizeof(err.text) - 1, strlen(err.text));
}

struct heard {
    int count;
    enum weir_level level;
    char text[600];
    struct weir_log_line line;
};

static void hear(enum weir_level level, const char *text, void *arg)
{
    struct heard *heard = arg;

    heard->count++;
    heard->level = level;
    (void)snprintf(heard->text, sizeof(heard->text), "%s", text);
}

TEST(only_lines_of_the_wanted_level_are_passed_on)
{
    struct heard heard = {0};
    struct weir__log log = {
        .fn = hear, .arg = &heard, .level = WEIR_LEVEL_WARN};

    weir__log(&log, WEIR_LEVEL_INFO, "not this");
    EXPECT_INT(0, heard.count);
    weir__log(&log, WEIR_LEVEL_WARN, "store: %d left", 7);
    EXPECT_INT(1, heard.count);
    EXPECT_INT(WEIR_LEVEL_WARN, heard.level);
    EXPECT_STR("store: 7 left", heard.text);
    weir__log(&log, WEIR_LEVEL_ERROR, "%*s", 2000, "");
    EXPECT_TRUE(strlen(heard.text) >= 500 && strlen(heard.text) < 520);
}

TEST(one_line_stays_one_line_and_tells_a_terminal_nothing)
{
    struct heard heard = {0};
    struct weir__log log = {
        .fn = hear, .arg = &heard, .level = WEIR_LEVEL_WARN};
    struct weir_error err;

    weir__log(&log, WEIR_LEVEL_WARN, "%s", "a\nb\x1b[31mc\td\x7f\xc3\xa9");
    EXPECT_STR("a\\nb\\x1b[31mc\\td\\x7f\xc3\xa9", heard.text);
    weir__log_job(&log, WEIR_LEVEL_WARN, "t", (struct weir_slice){0}, "%s",
                  "\r\n");
    EXPECT_STR("t: \\r\\n", heard.text);
    (void)weir__error_set(&err, WEIR_EINVAL, "%s", "x\ny");
    EXPECT_STR("x\\ny", err.text);
}

TEST(an_id_that_is_longer_than_a_line_is_cut)
{
    static const size_t lens[] = {506, 507, 508, 509, 510, 2000};
    static char id[2000];
    struct heard heard = {0};
    struct weir__log log = {
        .fn = hear, .arg = &heard, .level = WEIR_LEVEL_WARN};

    memset(id, 'i', sizeof(id));
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        weir__log_job(&log, WEIR_LEVEL_WARN, "t",
                      (struct weir_slice){(const uint8_t *)id, lens[i]}, "%s",
                      "text");
        EXPECT_INT(511, strlen(heard.text));
        EXPECT_CONTAINS("t iii", heard.text);
    }
}

TEST(what_a_line_with_an_id_escapes_is_not_cut_in_half)
{
    char text[600];
    struct heard heard = {0};
    struct weir__log log = {
        .fn = hear, .arg = &heard, .level = WEIR_LEVEL_WARN};
    struct weir_slice id = {(const uint8_t *)"\x1b\xe2\x80\xae", 4};

    for (size_t len = 480; len < 506; len++) {
        memset(text, 'x', len);
        (void)snprintf(text + len, sizeof(text) - len, "\x1b\x1b");
        weir__log_job(&log, WEIR_LEVEL_WARN, "t\n", id, "%s", text);
        EXPECT_CONTAINS("t\\n \\x1b\\u202e: xxx", heard.text);
        EXPECT_TRUE(strchr("xb", heard.text[strlen(heard.text) - 1]) != NULL);
        EXPECT_TRUE(strcmp("\\x", heard.text + strlen(heard.text) - 2) != 0);
    }
}

TEST(what_is_no_level_is_an_error)
{
    struct heard heard = {0};
    struct weir__log log = {
        .fn = hear, .arg = &heard, .level = WEIR_LEVEL_WARN};

    weir__log(&log, (enum weir_level)99, "loud");
    EXPECT_INT(WEIR_LEVEL_ERROR, heard.level);
    weir__log(&log, (enum weir_level) - 1, "wrong");
    EXPECT_INT(2, heard.count);
    EXPECT_INT(WEIR_LEVEL_ERROR, heard.level);
}

static void take(const struct weir_log_line *line, void *arg)
{
    struct heard *heard = arg;

    hear(line->level, line->text, arg);
    heard->line = *line;
}

TEST(a_line_is_passed_on_in_parts_to_who_wants_them)
{
    const struct weir_log_field fields[] = {{"delay_ms", NULL, 10},
                                            {"reason", "a\n", 0}};
    const struct weir_log_line about = {.level = WEIR_LEVEL_WARN,
                                        .topic = "t",
                                        .id = weir__slice_str("42"),
                                        .event = "retry",
                                        .fields = fields,
                                        .field_count = 2};
    struct heard heard = {0};
    struct weir__log log = {.fn = hear, .arg = &heard, .line_fn = take};

    weir__log_about(&log, &about, "%s", "in 10ms: a\n");
    EXPECT_INT(1, heard.count);
    EXPECT_STR("t 42: in 10ms: a\\n", heard.text);
    EXPECT_STR("retry", heard.line.event);
    EXPECT_STR("t", heard.line.topic);
    EXPECT_INT(2, heard.line.id.len);
    EXPECT_TRUE(heard.line.fields == fields && heard.line.field_count == 2);
    weir__log(&log, WEIR_LEVEL_INFO, "of nothing");
    EXPECT_STR("of nothing", heard.text);
    EXPECT_TRUE(heard.line.topic == NULL && heard.line.event == NULL);
    log.line_fn = NULL;
    weir__log_about(&log, &about, "gone");
    EXPECT_STR("t 42: gone", heard.text);
}

TEST(nobody_listening_is_fine)
{
    struct weir__log log = {.fn = NULL, .arg = NULL, .level = WEIR_LEVEL_DEBUG};

    weir__log(&log, WEIR_LEVEL_ERROR, "unheard");
    weir__log(NULL, WEIR_LEVEL_ERROR, "unheard");
}
