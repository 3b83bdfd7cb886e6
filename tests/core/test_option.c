/* SPDX-License-Identifier: MIT */
#include "core/option.h"

#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "tests/harness/test.h"

static const struct weir__option *option_of(const char *name)
{
    enum weir__topic_option at = weir__topic_option_find(weir__slice_str(name));

    EXPECT_TRUE(at < WEIR__TOPIC_OPTIONS);
    return &weir__topic_options[at];
}

static void accepts(const char *name, const char *text, int64_t value)
{
    struct weir_error err = {0};
    int64_t got = -42;
    int rc = weir__option_read(option_of(name), text, &got, &err);

    if (rc != WEIR_OK)
        printf("  %s=%s: %s\n", name, text, err.text);
    EXPECT_INT(WEIR_OK, rc);
    EXPECT_INT(value, got);
}

static void refuses(const char *name, const char *text, const char *sentence)
{
    struct weir_error err = {0};
    int64_t got;

    EXPECT_INT(WEIR_EINVAL,
               weir__option_read(option_of(name), text, &got, &err));
    EXPECT_STR(sentence, err.text);
}

TEST(options_are_found_by_their_whole_name)
{
    EXPECT_INT(WEIR__TOPIC_kind,
               weir__topic_option_find(weir__slice_str("kind")));
    EXPECT_INT(WEIR__TOPIC_max_pending,
               weir__topic_option_find(weir__slice_str("max_pending")));
    EXPECT_INT(WEIR__TOPIC_OPTIONS,
               weir__topic_option_find(weir__slice_str("max")));
    EXPECT_INT(WEIR__TOPIC_OPTIONS,
               weir__topic_option_find(weir__slice_str("Kind")));
    EXPECT_INT(WEIR__TOPIC_OPTIONS,
               weir__topic_option_find(weir__slice_str("")));
}

TEST(numbers_are_accepted_from_bound_to_bound)
{
    for (size_t i = 0; i < WEIR__TOPIC_OPTIONS; i++) {
        const struct weir__option *option = &weir__topic_options[i];
        const char *unit = option->form == WEIR__OPTION_DURATION ? "ms" : "";
        struct weir_error err = {0};
        char text[32];
        int64_t value;

        if (!weir__option_is_number(option) ||
            option->form == WEIR__OPTION_SWITCH ||
            option->form == WEIR__OPTION_CHOICE)
            continue;
        (void)snprintf(text, sizeof(text), "%lld%s", (long long)option->min,
                       unit);
        accepts(option->name, text, option->min);
        (void)snprintf(text, sizeof(text), "%lld%s", (long long)option->max,
                       unit);
        accepts(option->name, text, option->max);
        (void)snprintf(text, sizeof(text), "%lld%s", (long long)option->max + 1,
                       unit);
        EXPECT_INT(WEIR_EINVAL, weir__option_read(option, text, &value, &err));
        EXPECT_CONTAINS("is out of bounds: write ", err.text);
        EXPECT_TRUE(strncmp(err.text, option->name, strlen(option->name)) == 0);
    }
}

TEST(quantities_are_written_with_their_unit)
{
    accepts("retry_jitter", "10", 10);
    accepts("retry_jitter", "10%", 10);
    accepts("retry_jitter", "10 %", 10);
    accepts("timeout", "2m", 120000);
    accepts("max_body", "64KiB", 65536);
    accepts("max_body", "2MiB", 2 << 20);
    accepts("max_body", "1", 1);
    refuses("retry_jitter", "10%%",
            "retry_jitter: \"10%%\" is not a percentage: write 0% to 50%");
    refuses("timeout", "30",
            "timeout: \"30\" has no unit (ms, s, m, h, d): write 10ms to 7d");
    refuses("timeout", "soon",
            "timeout: \"soon\" is not a duration (digits and ms, s, m, h or "
            "d): write 10ms to 7d");
    refuses("max_body", "1MB",
            "max_body: \"1MB\" is not a size: write 1 to 16MiB");
    refuses("weight", "-1",
            "weight: \"-1\" is not a number of decimal digits: write 1 to "
            "1000");
    refuses("weight", "99999999999999999999999",
            "weight: \"99999999999999999999999\" is out of bounds: write 1 to "
            "1000");
}

TEST(a_word_stands_for_a_number_where_there_is_one)
{
    accepts("prefetch", "auto", WEIR__OPTION_AUTO);
    accepts("ttl", "none", WEIR__OPTION_NONE);
    accepts("max_pending", "none", WEIR__OPTION_NONE);
    accepts("on_dead", "none", 0);
    refuses("max_pending", "auto",
            "max_pending: \"auto\" is not a number of decimal digits: write 1 "
            "to 4294967295, or none");
    refuses("weight", "none",
            "weight: \"none\" is not a number of decimal digits: write 1 to "
            "1000");
}

TEST(only_kinds_that_there_are_can_be_chosen)
{
    accepts("kind", "delay", 0);
    accepts("kind", "stream", 0);
    refuses("kind", "heap",
            "kind: \"heap\" is not a kind: write delay, list, sync, "
            "concurrent, stream or bounded");
    refuses("kind", "lisp",
            "kind: \"lisp\" is not a kind: write delay, list, sync, "
            "concurrent, stream or bounded");
    refuses("kind", "Delay",
            "kind: \"Delay\" is not a kind: write delay, list, sync, "
            "concurrent, stream or bounded");
}

TEST(texts_are_checked_by_their_form)
{
    accepts("handler", "./echo.so", 0);
    accepts("options", "key=", 0);
    accepts("retry", "15s 3m ...", 0);
    accepts("on_dead", "graves", 0);
    refuses("handler", "",
            "handler: \"\" says nothing: write a value, or leave the option "
            "out");
    refuses("options", "key",
            "options: \"key\" has no =: write key=value, as in \"timeout=5s\"");
    refuses("options", "=5",
            "options: \"=5\" has no key before the =: write key=value, as in "
            "\"timeout=5s\"");
    refuses("retry", "15s 3x",
            "retry ladder, step 2: \"3x\" is not a duration: write digits and "
            "one of ms, s, m, h, d, for example 15s");
    refuses("on_dead", "a b",
            "on_dead: topic \"a b\" is not allowed at byte 2: use letters, "
            "digits and . _ : -");
}

TEST(levels_and_names_of_workers_are_checked_too)
{
    static const struct weir__option level = {
        .name = "log_level", .form = WEIR__OPTION_LEVEL, .max = 3};
    static const struct weir__option worker = {.name = "name",
                                               .form = WEIR__OPTION_WORKER};
    struct weir_error err = {0};
    int64_t value = -1;

    EXPECT_INT(WEIR_OK, weir__option_read(&level, "warn", &value, &err));
    EXPECT_INT(WEIR_LEVEL_WARN, value);
    EXPECT_INT(WEIR_EINVAL, weir__option_read(&level, "loud", &value, &err));
    EXPECT_STR("log_level: \"loud\" is not a level: write debug, info, warn or "
               "error",
               err.text);
    EXPECT_INT(WEIR_OK, weir__option_check(&worker, "w-1.b_2", &err));
    EXPECT_INT(WEIR_EINVAL, weir__option_check(&worker, "w 1", &err));
    EXPECT_STR("name: \"w 1\" does not name a worker: write 1 to 40 letters, "
               "digits and . _ -",
               err.text);
}
