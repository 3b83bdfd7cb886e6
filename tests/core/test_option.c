/* SPDX-License-Identifier: MIT */
#include "core/options.h"

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
            option->form == WEIR__OPTION_DURABILITY ||
            option->form == WEIR__OPTION_UNTIL ||
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

TEST(how_long_a_key_is_held_is_a_duration_or_a_word)
{
    accepts("unique_for", "10m", 600000);
    accepts("unique_for", "until-done", WEIR__UNTIL_DONE);
    accepts("unique_for", "until-start", WEIR__UNTIL_START);
    refuses("unique_for", "until",
            "unique_for: \"until\" is not a duration (digits and ms, s, m, h, "
            "d or w): write 1ms to 3650d, or until-start or until-done");
    refuses("unique_for", "4000d",
            "unique_for: \"4000d\" is out of bounds: write 1ms to 3650d, or "
            "until-start or until-done");
}

TEST(a_field_is_a_place_in_the_body)
{
    static const char *const odd[] = {"order",     "body.",   "body..a",
                                      "bodyorder", "body.a.", ".a"};

    accepts("unique", "body", 0);
    accepts("unique", "body.items.0.sku", 0);
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        struct weir_error err = {0};
        int64_t got;

        EXPECT_INT(WEIR_EINVAL,
                   weir__option_read(option_of("unique"), odd[i], &got, &err));
        EXPECT_CONTAINS("is no place in the body: write ", err.text);
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
    refuses(
        "timeout", "30",
        "timeout: \"30\" has no unit (ms, s, m, h, d, w): write 10ms to 7d");
    refuses("timeout", "soon",
            "timeout: \"soon\" is not a duration (digits and ms, s, m, h, "
            "d or w): write 10ms to 7d");
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
    accepts("key", "a key", 0);
    accepts("retry", "15s 3m ...", 0);
    accepts("on_dead", "graves", 0);
    refuses("key", "",
            "key: \"\" says nothing: write a value, or leave the option out");
    refuses("retry", "15s 3x",
            "retry ladder, step 2: \"3x\" is not a duration: write digits and "
            "one of ms, s, m, h, d, w, for example 15s or 1h30m");
    refuses("on_dead", "a b",
            "on_dead: topic \"a b\" is not allowed at byte 2: use letters, "
            "digits and . _ : -");
}

TEST(pairs_and_names_of_workers_are_checked_too)
{
    static const struct weir__option pairs = {.name = "options",
                                              .form = WEIR__OPTION_PAIRS};
    static const struct weir__option worker = {.name = "name",
                                               .form = WEIR__OPTION_WORKER};
    struct weir_error err = {0};

    EXPECT_INT(WEIR_OK, weir__option_check(&pairs, "key=", &err));
    EXPECT_INT(WEIR_EINVAL, weir__option_check(&pairs, "key", &err));
    EXPECT_STR("options: \"key\" has no =: write key=value, as in "
               "\"timeout=5s\"",
               err.text);
    EXPECT_INT(WEIR_EINVAL, weir__option_check(&pairs, "=5", &err));
    EXPECT_STR("options: \"=5\" has no key before the =: write key=value, as "
               "in \"timeout=5s\"",
               err.text);
    EXPECT_INT(WEIR_OK, weir__option_check(&worker, "w-1.b_2", &err));
    EXPECT_INT(WEIR_EINVAL, weir__option_check(&worker, "w 1", &err));
    EXPECT_STR("name: \"w 1\" does not name a worker: write 1 to 40 letters, "
               "digits and . _ -",
               err.text);
}

/* --- all options of a topic ---------------------------------------------- */

static struct weir__options options;

static int reads(const char *const *texts, struct weir_error *err)
{
    weir__options_init(&options);
    return weir__options_read(&options, "t", texts, err);
}

TEST(options_that_are_not_given_have_their_defaults)
{
    weir__options_init(&options);
    EXPECT_INT(9, options.retry.count);
    EXPECT_INT(256, options.concurrency);
    EXPECT_INT(WEIR__OPTION_AUTO, options.prefetch);
    EXPECT_INT(30000, options.timeout);
    EXPECT_INT(WEIR__OPTION_NONE, options.ttl);
    EXPECT_INT(1000, options.delay);
    EXPECT_TRUE(options.lock && !options.auto_ack);
    EXPECT_STR("", options.key);
    for (size_t i = 0; i < WEIR__TOPIC_OPTIONS; i++)
        EXPECT_TRUE(!weir__options_has(&options, (enum weir__topic_option)i));
}

TEST(what_is_said_last_counts_and_nothing_is_the_default)
{
    EXPECT_INT(
        WEIR_OK,
        reads((const char *const[]){"weight=2", "weight=3", "key=a b",
                                    "lease=1s", "lease=", "hot=x y:2",
                                    "groups=!a a* b:4", "on_dead=none", NULL},
              NULL));
    EXPECT_INT(3, options.weight);
    EXPECT_STR("a b", options.key);
    EXPECT_STR("x y:2", options.hot);
    EXPECT_STR("!a a* b:4", options.groups);
    EXPECT_STR("", options.on_dead);
    EXPECT_INT(5000, options.lease);
    EXPECT_TRUE(!weir__options_has(&options, WEIR__TOPIC_lease));
    EXPECT_TRUE(weir__options_has(&options, WEIR__TOPIC_on_dead));
}

TEST(a_text_that_is_no_option_is_refused)
{
    static const struct {
        const char *text, *sentence;
    } table[] = {
        {"weight", "\"weight\" has no =: write option=value"},
        {"rety=1s", "a topic has no option \"rety\": write retry"},
        {"colour=red", "a topic has no option \"colour\": "
                       "docs/configuration.md has all of them"},
        {"=1", "a topic has no option \"\": docs/configuration.md has all of "
               "them"},
        {"weight=0", "weight: \"0\" is out of bounds: write 1 to 1000"},
        {"groups=a*b", "groups: \"a*b\" is no pattern of groups: write a group "
                       "or its beginning and *, and ! in front of those that "
                       "are left to other workers, as in \"vip-*\" or "
                       "\"!vip-*\""},
        {"groups=a !", "groups: \"!\" is no pattern of groups: write a group "
                       "or its beginning and *, and ! in front of those that "
                       "are left to other workers, as in \"vip-*\" or "
                       "\"!vip-*\""},
        {"groups=!ab* ab1 abc*",
         "groups: \"!ab* ab1 abc*\" leaves out every group that it names: "
         "write another pattern"},
        {"groups=!a !*", "groups: \"!a !*\" leaves out every group that it "
                         "names: write another pattern"},
        {"on_dead=t", "on_dead: \"t\" is this topic itself: write another "
                      "one"},
        {"on_retry=t", "on_retry: \"t\" is this topic itself: write another "
                       "one"},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct weir_error err = {0};

        EXPECT_INT(WEIR_EINVAL,
                   reads((const char *const[]){table[i].text, NULL}, &err));
        EXPECT_STR(table[i].sentence, err.text);
    }
}

TEST(what_is_given_has_to_fit_the_kind)
{
    struct weir_error err = {0};

    EXPECT_INT(WEIR_OK, reads((const char *const[]){"lease=none", "linger=1s",
                                                    "weight=2", NULL},
                              NULL));
    EXPECT_INT(WEIR_OK, weir__options_fit(&options, "bounded", &err));
    EXPECT_INT(WEIR_EINVAL, weir__options_fit(&options, "delay", &err));
    EXPECT_STR("lease: a topic of kind delay needs one: only one of kind "
               "bounded may have none",
               err.text);
    EXPECT_INT(WEIR_OK,
               reads((const char *const[]){"retry_jitter=5", NULL}, NULL));
    EXPECT_INT(WEIR_EINVAL, weir__options_fit(&options, "sync", &err));
    EXPECT_STR("retry_jitter: a topic of kind sync has no such option: only "
               "one of kind delay, list, stream or bounded has",
               err.text);
}

TEST(a_durability_says_how_many_replicas_have_the_job)
{
    accepts("durability", "server", WEIR__DURABILITY_SERVER);
    accepts("durability", "replica", WEIR__DURABILITY_SERVER + 1);
    accepts("durability", "replica:1", WEIR__DURABILITY_SERVER + 1);
    accepts("durability", "replica:99", WEIR__DURABILITY_SERVER + 99);
    accepts("durability", "fsync", WEIR__DURABILITY_FSYNC);
    accepts("durability", "fsync:0", WEIR__DURABILITY_FSYNC);
    accepts("durability", "fsync:99", WEIR__DURABILITY_FSYNC + 99);
}

TEST(what_is_no_durability_is_refused_with_all_that_is)
{
    static const char *const texts[] = {
        "",           "replica:0", "replica:100",
        "replica:x",  "replica:",  "replica:-1",
        "fsync:-1",   "fsync:100", "fsync:1000000000000000000000",
        "server:1",   "Server",    "replicas",
        "replica: 1", "none"};
    char sentence[200];

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        (void)snprintf(sentence, sizeof(sentence),
                       "durability: \"%s\" is none of these: write server, "
                       "replica, replica:1 to replica:99, fsync, or fsync:0 to "
                       "fsync:99",
                       texts[i]);
        refuses("durability", texts[i], sentence);
    }
}

TEST(a_rate_is_a_number_a_time_and_perhaps_a_burst)
{
    static const char *const good[] = {"1/s",
                                       "100/s",
                                       "6/10s",
                                       "100/s burst 20",
                                       "1000000/ms burst 1000000",
                                       "1/1m",
                                       "5/h",
                                       "1/d",
                                       "2/w",
                                       "none"};
    static const char *const bad[] = {"100",
                                      "/s",
                                      "0/s",
                                      "-1/s",
                                      "1/",
                                      "1/0s",
                                      "1/x",
                                      "1/sec",
                                      "1/s burst",
                                      "1/s burst 0",
                                      "1/s burst 1 ",
                                      "1/s  burst 1",
                                      "1/s burst 1000001",
                                      "1000001/s",
                                      "1/1000001s",
                                      "1 /s",
                                      "1/s,burst 1"};
    struct weir_error err;
    int64_t value;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        accepts("rate", good[i], 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        EXPECT_INT(WEIR_EINVAL,
                   weir__option_read(option_of("rate"), bad[i], &value, &err));
        EXPECT_CONTAINS(bad[i], err.text);
        EXPECT_CONTAINS("\"100/s burst 20\"", err.text);
    }
}
