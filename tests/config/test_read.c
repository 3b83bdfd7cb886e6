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
    expect_text(2, "delay", topic->kind);
    expect_text(3, "./notify.so", topic->handler);
    EXPECT_INT(4, topic->options.line);
    EXPECT_INT(1, topic->options.count);
    EXPECT_STR("timeout=5s", topic->options.items[0]);
    expect_text(5, "15s 3m ...", topic->retry);
    expect_number(6, 10, topic->retry_jitter);
    expect_number(7, 100, topic->concurrency);
    expect_number(8, 7, topic->prefetch);
    expect_number(9, 3, topic->weight);
    expect_number(10, 120000, topic->timeout);
    expect_number(11, 10000, topic->lease);
    expect_number(12, 5, topic->max_crashes);
    expect_number(13, 3600000, topic->ttl);
    expect_number(14, 99, topic->max_dead);
    expect_text(15, "graveyard", topic->on_dead);
    expect_number(16, 65536, topic->max_body);
    expect_number(17, 5000, topic->max_pending);
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
    EXPECT_INT(1, topic->line);
    expect_text(0, NULL, topic->kind);
    expect_text(0, NULL, topic->handler);
    EXPECT_INT(0, topic->options.line);
    expect_text(0, NULL, topic->retry);
    expect_number(0, 0, topic->retry_jitter);
    expect_number(0, 256, topic->concurrency);
    expect_number(0, WEIR__CONFIG_AUTO, topic->prefetch);
    expect_number(0, 1, topic->weight);
    expect_number(0, 30000, topic->timeout);
    expect_number(0, 5000, topic->lease);
    expect_number(0, 3, topic->max_crashes);
    expect_number(0, WEIR__CONFIG_NONE, topic->ttl);
    expect_number(0, 10000, topic->max_dead);
    expect_text(0, NULL, topic->on_dead);
    expect_number(0, 1048576, topic->max_body);
    expect_number(0, WEIR__CONFIG_NONE, topic->max_pending);
    expect_number(0, 1000, topic->delay);
    expect_number(0, 1, topic->consumers);
    expect_number(0, 1, topic->lock);
    expect_number(0, 0, topic->auto_ack);
    expect_number(0, 0, topic->parking);
    expect_number(0, 128, topic->batch);
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

    expect_text(2, "none", topic->retry);
    expect_number(3, WEIR__CONFIG_AUTO, topic->prefetch);
    expect_number(4, WEIR__CONFIG_NONE, topic->ttl);
    expect_text(5, NULL, topic->on_dead);
    expect_number(6, WEIR__CONFIG_NONE, topic->max_pending);
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
    expect_number(3, 3, config->topics[2].weight);
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
    expect_number(300, 300, config->topics[299].weight);
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
        expect_number((int)i + 1, 10, config->topics[i].retry_jitter);
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

    expect_number(2, 0, topic->lock);
    expect_number(3, 1, topic->auto_ack);
    expect_number(4, 1, topic->parking);
    expect_number(5, 2000, topic->delay);
    EXPECT_INT(3, weir__config_topic_line(topic, WEIR__TOPIC_auto_ack));
    EXPECT_INT(0, weir__config_topic_line(topic, WEIR__TOPIC_retry));
    weir__config_free(config);
}
