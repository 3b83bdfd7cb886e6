/* SPDX-License-Identifier: MIT */
#include "adapters/dl/loader.h"
#include "adapters/dl/option.h"

#include <stdio.h>

#include "tests/dl/load.h"
#include "tests/harness/oom.h"
#include "tests/harness/test.h"
#include "tests/plugins/good.h"

/* The sentence with which good.so's options are refused. */
static const char *refusal(const char *one, const char *two)
{
    static struct weir_error err;
    struct weir__plugin_file file = load("good");
    struct weir__instance instance = {0};
    const char *const options[4] = {one, two};

    EXPECT_INT(WEIR_EINVAL, open_with(&file, options, &instance, &err));
    EXPECT_TRUE(instance.file == NULL);
    EXPECT_INT(WEIR_EINVAL, err.code);
    EXPECT_INT(WEIR_EINVAL, open_with(&file, options, &instance, NULL));
    return err.text;
}

TEST(an_instance_is_told_its_topic_its_host_and_its_options)
{
    struct weir__plugin_file file = load("good");
    struct weir__instance instance = {0};
    const char *const options[4] = {"text=a=b", "number=-5", "wait=2m",
                                    "mode=fast"};
    const struct good *good;

    EXPECT_INT(WEIR_OK, open_with(&file, options, &instance, NULL));
    EXPECT_TRUE(instance.file == &file);
    good = instance.self;
    EXPECT_TRUE(good->host == &test_host);
    EXPECT_STR("mail", good->topic);
    EXPECT_STR("a=b", good->texts[0]);
    EXPECT_INT(-5, good->numbers[1]);
    EXPECT_STR("2m", good->texts[3]);
    EXPECT_INT(120000, good->numbers[3]);
    EXPECT_STR("fast", good->texts[5]);
    EXPECT_INT(GOOD_LIMIT, instance.limit);
    weir__instance_close(&instance);
}

TEST(options_that_are_not_given_have_their_fallback)
{
    struct weir__plugin_file file = load("good");
    struct weir__instance instance = {0};
    const char *const options[4] = {"text="};
    const struct good *good;

    EXPECT_INT(WEIR_OK, open_with(&file, options, &instance, NULL));
    good = instance.self;
    EXPECT_STR("", good->texts[0]);
    EXPECT_INT(3, good->numbers[1]);
    EXPECT_INT(0, good->numbers[2]);
    EXPECT_STR("no", good->texts[2]);
    EXPECT_INT(15000, good->numbers[3]);
    EXPECT_INT(65536, good->numbers[4]);
    EXPECT_STR("slow", good->texts[5]);
    weir__instance_close(&instance);
}

TEST(yes_and_true_are_one)
{
    struct weir__plugin_file file = load("good");
    const char *const written[] = {"flag=yes", "flag=true", "flag=no",
                                   "flag=false"};

    for (size_t i = 0; i < 4; i++) {
        struct weir__instance instance = {0};
        const char *const options[4] = {"text=", written[i]};

        EXPECT_INT(WEIR_OK, open_with(&file, options, &instance, NULL));
        EXPECT_INT(i < 2, ((const struct good *)instance.self)->numbers[2]);
        weir__instance_close(&instance);
    }
}

TEST(each_instance_is_closed_once)
{
    struct weir__plugin_file file = load("good");
    struct weir__instance one = {0}, two = {0};
    const char *const options[4] = {"text="};
    const struct good *good;

    EXPECT_INT(WEIR_OK, open_with(&file, options, &one, NULL));
    EXPECT_INT(WEIR_OK, open_with(&file, options, &two, NULL));
    good = one.self;
    EXPECT_INT(2, good->opens);
    weir__instance_close(&one);
    weir__instance_close(&one);
    EXPECT_INT(1, good->closes);
    weir__instance_close(&two);
    EXPECT_INT(2, good->closes);
}

TEST(options_that_are_not_accepted_are_refused_with_a_sentence)
{
    EXPECT_STR("plugin good: unknown option \"txt\"; it knows: text, number, "
               "flag, wait, room, mode",
               refusal("txt=1", NULL));
    EXPECT_STR("plugin good: unknown option \"\"; it knows: text, number, "
               "flag, wait, room, mode",
               refusal("=1", NULL));
    EXPECT_STR("plugin good: option \"text\" has no value: write name=value",
               refusal("text", NULL));
    EXPECT_STR("plugin good: option \"text\" is required",
               refusal("number=1", NULL));
    EXPECT_STR("plugin good: option \"text\" is given twice",
               refusal("text=1", "text=1"));
    EXPECT_STR("plugin good: option \"flag\" wants yes or no, got \"1\"",
               refusal("flag=1", NULL));
    EXPECT_STR("plugin good: option \"mode\" wants one of fast|slow, got "
               "\"fast|slow\"",
               refusal("mode=fast|slow", NULL));
    EXPECT_STR("plugin good: option \"mode\" wants one of fast|slow, got \"\"",
               refusal("mode=", NULL));
    EXPECT_STR("plugin good: option \"room\" wants a size such as 64KiB, got "
               "\"1kb\"",
               refusal("room=1kb", NULL));
}

TEST(numbers_that_are_none_or_out_of_bounds_are_refused)
{
    static const char *const bad[] = {
        "x",  "",   "6",   "-6", "1.5", " 1",
        "+1", "1 ", "0x1", "-",  "1e0", "99999999999999999999"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char given[40], wanted[160];

        (void)snprintf(given, sizeof(given), "number=%s", bad[i]);
        (void)snprintf(wanted, sizeof(wanted),
                       "plugin good: option \"number\" wants a whole number "
                       "from -5 to 5, got \"%s\"",
                       bad[i]);
        EXPECT_STR(wanted, refusal(given, NULL));
    }
}

TEST(durations_that_are_none_or_out_of_bounds_are_refused)
{
    EXPECT_STR("plugin good: option \"wait\" wants a duration such as 15s "
               "from 1ms to 1h, got \"15\"",
               refusal("wait=15", NULL));
    EXPECT_STR("plugin good: option \"wait\" wants a duration such as 15s "
               "from 1ms to 1h, got \"0ms\"",
               refusal("wait=0ms", NULL));
    EXPECT_STR("plugin good: option \"wait\" wants a duration such as 15s "
               "from 1ms to 1h, got \"2h\"",
               refusal("wait=2h", NULL));
}

TEST(a_plugin_without_options_says_so)
{
    struct weir__plugin_file file = load("minimal");
    struct weir__instance instance;
    const char *const options[4] = {"fail=1"};
    struct weir_error err;

    EXPECT_INT(WEIR_EINVAL, open_with(&file, options, &instance, &err));
    EXPECT_STR("plugin minimal: unknown option \"fail\"; it has none",
               err.text);
}

TEST(a_secret_that_is_refused_is_not_shown)
{
    static const struct weir_option option = {
        .name = "pin", .type = WEIR_OPTION_INT, .flags = WEIR_OPTION_SECRET};
    static const struct weir_plugin plugin = {.name = "safe",
                                              .options = &option,
                                              .option_count = 1,
                                              .option_size = sizeof(option)};
    const char *const given = "pin=12x4";
    struct weir_option_value *values = NULL;
    struct weir_error err;

    EXPECT_INT(WEIR_EINVAL,
               weir__option_values(&plugin, &given, 1, &values, &err));
    EXPECT_STR("plugin safe: option \"pin\" wants a whole number, got what is "
               "not shown",
               err.text);
}

static void expect_open_fails(const char *how, int code, const char *sentence)
{
    struct weir__plugin_file file = load("open_fails");
    struct weir__instance instance = {0};
    const char *const options[4] = {how};
    struct weir_error err = {0};

    EXPECT_INT(code, open_with(&file, options, &instance, &err));
    EXPECT_INT(code, err.code);
    EXPECT_TRUE(instance.file == NULL);
    EXPECT_CONTAINS(sentence, err.text);
}

TEST(what_open_says_is_passed_on)
{
    expect_open_fails("how=sentence", WEIR_ECONN,
                      "plugin open_fails: the moon is not full");
    expect_open_fails("how=at_length", WEIR_ECONN, "plugin open_fails: xxx");
}

TEST(an_open_that_fails_silently_is_spoken_for)
{
    expect_open_fails("how=silently", WEIR_ESYSTEM,
                      "plugin open_fails: cannot be opened for topic mail "
                      "(the operating system refused)");
    expect_open_fails("how=positive", WEIR_EINVAL,
                      "plugin open_fails: cannot be opened for topic mail "
                      "(argument not accepted)");
}

TEST(opening_an_instance_survives_any_allocation_failure)
{
    struct weir__plugin_file file = load("good");
    struct weir__instance instance = {0};
    const char *const options[4] = {"text="};
    int rc = WEIR_ENOMEM, failures = -1;

    for (int n = 0; rc == WEIR_ENOMEM; n++) {
        oom_after(n);
        rc = open_with(&file, options, &instance, NULL);
        failures++;
    }
    oom_off();
    EXPECT_INT(WEIR_OK, rc);
    EXPECT_TRUE(failures >= 1);
    EXPECT_INT(1, ((const struct good *)instance.self)->opens);
    weir__instance_close(&instance);
}
