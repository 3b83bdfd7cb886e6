/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "tests/config/files.h"

static void expect_number(int line, int64_t value,
                          struct weir__config_number got)
{
    EXPECT_INT(value, got.value);
    EXPECT_INT(line, got.line);
}

/* A topic's option, as the file says it. */
static void expect_said(int line, const char *said,
                        const struct weir__config_topic *topic,
                        enum weir__topic_option option)
{
    const struct weir__config_text *got = &topic->said[option];

    EXPECT_STR(said, got->value == NULL ? "(none)" : got->value);
    EXPECT_INT(line, got->line);
    EXPECT_TRUE(weir__options_has(&topic->values, option) == (line > 0));
}

static void expect_text(int line, const char *value,
                        struct weir__config_text got)
{
    EXPECT_STR(value == NULL ? "(none)" : value,
               got.value == NULL ? "(none)" : got.value);
    EXPECT_INT(line, got.line);
}

TEST(every_option_is_read_with_its_line)
{
    struct weir__config *config = config_of("redis {\n"
                                            "  url = \"redis://h:1/2\"\n"
                                            "  data = /var/lib/weir\n"
                                            "}\n"
                                            "worker {\n"
                                            "  plugin_path = { \"/a\",\n"
                                            "    \"/b c\" }\n"
                                            "  name = box-1\n"
                                            "  log_level = warn\n"
                                            "  drain = 1m\n"
                                            "  block_warn = 250ms\n"
                                            "}\n");

    expect_text(2, "redis://h:1/2", config->url);
    expect_text(3, "/var/lib/weir", config->data);
    EXPECT_INT(6, config->plugin_path.line);
    EXPECT_INT(2, config->plugin_path.count);
    EXPECT_STR("/a", config->plugin_path.items[0]);
    EXPECT_STR("/b c", config->plugin_path.items[1]);
    expect_text(8, "box-1", config->name);
    expect_number(9, WEIR_LEVEL_WARN, config->log_level);
    expect_number(10, 60000, config->drain);
    expect_number(11, 250, config->block_warn);
    EXPECT_INT(0, config->topic_count);
    weir__config_free(config);
}

TEST(every_option_of_a_topic_is_read_with_its_line)
{
    struct weir__config *config = config_of("topic \"order.close\" {\n"
                                            "  kind = delay\n"
                                            "  handler = ./notify.so\n"
                                            "  options = { \"timeout=5s\" }\n"
                                            "  retry = \"15s 3m ...\"\n"
                                            "  retry_jitter = 10%\n"
                                            "  concurrency = 100\n"
                                            "  prefetch = 7\n"
                                            "  weight = 3\n"
                                            "  timeout = 2m\n"
                                            "  lease = 10s\n"
                                            "  max_crashes = 5\n"
                                            "  ttl = 1h\n"
                                            "  max_dead = 99\n"
                                            "  on_dead = graveyard\n"
                                            "  max_body = 64KiB\n"
                                            "  max_pending = 5000\n"
                                            "}\n");
    const struct weir__config_topic *topic = config->topics;

    EXPECT_INT(1, config->topic_count);
    EXPECT_STR("order.close", topic->name);
    EXPECT_INT(1, topic->line);
    expect_text(3, "./notify.so", topic->handler);
    EXPECT_INT(4, topic->options.line);
    EXPECT_INT(1, topic->options.count);
    EXPECT_STR("timeout=5s", topic->options.items[0]);
    expect_said(2, "kind=delay", topic, WEIR__TOPIC_kind);
    expect_said(5, "retry=15s 3m ...", topic, WEIR__TOPIC_retry);
    expect_said(6, "retry_jitter=10%", topic, WEIR__TOPIC_retry_jitter);
    expect_said(15, "on_dead=graveyard", topic, WEIR__TOPIC_on_dead);
    expect_said(17, "max_pending=5000", topic, WEIR__TOPIC_max_pending);
    EXPECT_INT(2, topic->values.retry.count);
    EXPECT_INT(10, topic->values.retry_jitter);
    EXPECT_INT(100, topic->values.concurrency);
    EXPECT_INT(7, topic->values.prefetch);
    EXPECT_INT(3, topic->values.weight);
    EXPECT_INT(120000, topic->values.timeout);
    EXPECT_INT(10000, topic->values.lease);
    EXPECT_INT(5, topic->values.max_crashes);
    EXPECT_INT(3600000, topic->values.ttl);
    EXPECT_INT(99, topic->values.max_dead);
    EXPECT_STR("graveyard", topic->values.on_dead);
    EXPECT_INT(65536, topic->values.max_body);
    EXPECT_INT(5000, topic->values.max_pending);
    weir__config_free(config);
}

TEST(what_is_not_given_has_no_line_and_its_default)
{
    struct weir__config *config = config_of("topic a { }");
    const struct weir__config_topic *topic = config->topics;

    expect_text(0, NULL, config->url);
    expect_text(0, NULL, config->data);
    expect_text(0, NULL, config->name);
    EXPECT_INT(0, config->plugin_path.line);
    EXPECT_INT(0, config->plugin_path.count);
    expect_number(0, WEIR_LEVEL_INFO, config->log_level);
    expect_number(0, 30000, config->drain);
    expect_number(0, 100, config->block_warn);
    expect_number(0, 8, config->threads);
    expect_number(0, 1, config->workers);
    EXPECT_INT(1, topic->line);
    expect_text(0, NULL, topic->handler);
    EXPECT_INT(0, topic->options.line);
    for (size_t i = 0; i < WEIR__TOPIC_OPTIONS; i++)
        expect_said(0, "(none)", topic, (enum weir__topic_option)i);
    EXPECT_INT(256, topic->values.concurrency);
    EXPECT_INT(WEIR__OPTION_AUTO, topic->values.prefetch);
    weir__config_free(config);
}

TEST(none_and_auto_are_given_values)
{
    struct weir__config *config = config_of("topic a {\n"
                                            "  retry = none\n"
                                            "  prefetch = auto\n"
                                            "  ttl = none\n"
                                            "  on_dead = none\n"
                                            "  max_pending = none\n"
                                            "}\n");
    const struct weir__config_topic *topic = config->topics;

    expect_said(2, "retry=none", topic, WEIR__TOPIC_retry);
    expect_said(3, "prefetch=auto", topic, WEIR__TOPIC_prefetch);
    expect_said(4, "ttl=none", topic, WEIR__TOPIC_ttl);
    expect_said(5, "on_dead=none", topic, WEIR__TOPIC_on_dead);
    expect_said(6, "max_pending=none", topic, WEIR__TOPIC_max_pending);
    EXPECT_INT(0, topic->values.retry.count);
    EXPECT_INT(WEIR__OPTION_AUTO, topic->values.prefetch);
    EXPECT_INT(WEIR__OPTION_NONE, topic->values.ttl);
    EXPECT_STR("", topic->values.on_dead);
    EXPECT_INT(WEIR__OPTION_NONE, topic->values.max_pending);
    weir__config_free(config);
}

TEST(topics_keep_the_order_of_the_file)
{
    struct weir__config *config =
        config_of("topic z { weight = 1 } topic a { weight = 2 }\n"
                  "worker { drain = 1s }\n"
                  "topic 'm' { weight = 3 }\n");

    EXPECT_INT(3, config->topic_count);
    EXPECT_STR("z", config->topics[0].name);
    EXPECT_STR("a", config->topics[1].name);
    EXPECT_STR("m", config->topics[2].name);
    EXPECT_INT(1, config->topics[1].line);
    EXPECT_INT(3, config->topics[2].line);
    expect_said(3, "weight=3", &config->topics[2], WEIR__TOPIC_weight);
    weir__config_free(config);
}

TEST(many_topics_are_read)
{
    static char text[300 * 40];
    struct weir__config *config;
    size_t len = 0;

    for (int i = 0; i < 300; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len,
                                "topic t%d { weight = %d }\n", i, i + 1);
    config = config_of(text);
    EXPECT_INT(300, config->topic_count);
    EXPECT_STR("t299", config->topics[299].name);
    expect_said(300, "weight=300", &config->topics[299], WEIR__TOPIC_weight);
    weir__config_free(config);
}

TEST(comments_count_as_blanks_and_do_not_move_lines)
{
    struct weir__config *config =
        config_of("# one { \" '\n"
                  "// two\n"
                  "/* three\n"
                  "   four } */ redis { /**/ url /* x */ = # y\n"
                  "  redis://h#z\n"
                  "}\n"
                  "worker { plugin_path = { a, # first\n"
                  "  /* then */ b /***/ }\n"
                  "  name = w\n"
                  "} // end");

    expect_text(5, "redis://h", config->url);
    EXPECT_INT(7, config->plugin_path.line);
    EXPECT_INT(2, config->plugin_path.count);
    expect_text(9, "w", config->name);
    weir__config_free(config);
}

TEST(an_empty_file_gives_nothing)
{
    static const char *const texts[] = {"",
                                        "\n",
                                        " \t\r\n",
                                        "# only this",
                                        "\xEF\xBB\xBF",
                                        "redis {} worker {}"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct weir__config *config = config_of(texts[i]);

        EXPECT_INT(0, config->topic_count);
        EXPECT_INT(0, config->url.line);
        weir__config_free(config);
    }
}

TEST(lines_may_end_as_on_windows)
{
    struct weir__config *config =
        config_of("\xEF\xBB\xBFredis {\r\n url = u\r\n}\r\n");

    expect_text(2, "u", config->url);
    weir__config_free(config);
}

TEST(strings_keep_what_stands_in_them)
{
    struct weir__config *config =
        config_of("topic a {\n"
                  "  handler = \"\\\"q\\\" \\\\ $x # // /* {},=' \xC3\xA9\"\n"
                  "  options = { 'a=\\'q\\' \\\\ \\n ${HOME} \"#', 'b=1' }\n"
                  "}\n");

    expect_text(2, "\"q\" \\ $x # // /* {},=' \xC3\xA9",
                config->topics[0].handler);
    EXPECT_INT(2, config->topics[0].options.count);
    EXPECT_STR("a='q' \\ \\n ${HOME} \"#", config->topics[0].options.items[0]);
    weir__config_free(config);
}

TEST(a_list_may_be_one_text_empty_or_end_with_a_comma)
{
    struct weir__config *config =
        config_of("topic a { options = 'x=1' }\n"
                  "topic b { options = { } }\n"
                  "topic c { options = { 'x=', } }\n");

    EXPECT_STR("x=1", config->topics[0].options.items[0]);
    EXPECT_INT(1, config->topics[0].options.line);
    EXPECT_INT(0, config->topics[1].options.count);
    EXPECT_INT(0, config->topics[1].options.line);
    EXPECT_INT(1, config->topics[2].options.count);
    EXPECT_STR("x=", config->topics[2].options.items[0]);
    weir__config_free(config);
}

TEST(percent_is_written_in_three_ways)
{
    struct weir__config *config =
        config_of("topic a { retry_jitter = 10 }\n"
                  "topic b { retry_jitter = 10% }\n"
                  "topic c { retry_jitter = \"10 %\" }\n");

    for (size_t i = 0; i < 3; i++)
        EXPECT_INT(10, config->topics[i].values.retry_jitter);
    weir__config_free(config);
}

TEST(a_long_list_and_a_long_string_are_read)
{
    enum { ITEMS = 5000, LONG = 500 * 1000 };
    static char text[ITEMS * 20 + LONG];
    struct weir__config *config;
    size_t len =
        (size_t)snprintf(text, sizeof(text), "worker { plugin_path = { ");

    for (int i = 0; i < ITEMS; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "'/p%d',\n", i);
    text[len++] = '"';
    memset(text + len, 'x', LONG);
    len += LONG;
    memcpy(text + len, "\" } drain = 1s }", 17);
    config = config_of(text);
    EXPECT_INT(ITEMS + 1, config->plugin_path.count);
    EXPECT_STR("/p4999", config->plugin_path.items[ITEMS - 1]);
    EXPECT_INT(LONG, strlen(config->plugin_path.items[ITEMS]));
    expect_number(ITEMS + 1, 1000, config->drain);
    weir__config_free(config);
}

TEST(a_config_that_is_not_there_is_freed)
{
    weir__config_free(NULL);
}

TEST(words_of_an_option_are_numbers_afterwards)
{
    struct weir__config *config = config_of("topic a {\n"
                                            "  lock = no\n"
                                            "  auto_ack = yes\n"
                                            "  parking = two-step\n"
                                            "  delay = 2s\n"
                                            "}\n");
    const struct weir__config_topic *topic = config->topics;

    EXPECT_TRUE(!topic->values.lock);
    EXPECT_TRUE(topic->values.auto_ack);
    EXPECT_INT(1, topic->values.parking);
    EXPECT_INT(2000, topic->values.delay);
    weir__config_free(config);
}

TEST(patterns_of_groups_are_one_option_with_blanks_between)
{
    struct weir__config *config =
        config_of("topic a { hot = { 'game-1',\n 'vip-*:4' } }\n"
                  "topic b { hot = 'a b' }\n"
                  "topic c { hot = { } groups = { '!vip-*', '!a' } }\n");

    expect_said(1, "hot=game-1 vip-*:4", &config->topics[0], WEIR__TOPIC_hot);
    EXPECT_STR("game-1 vip-*:4", config->topics[0].values.hot);
    expect_said(3, "hot=a b", &config->topics[1], WEIR__TOPIC_hot);
    expect_said(0, "(none)", &config->topics[2], WEIR__TOPIC_hot);
    EXPECT_STR("!vip-* !a", config->topics[2].values.groups);
    weir__config_free(config);
}
