/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/config/option.h"
#include "tests/config/files.h"

static char page[64 * 1024];

static void read_page(void)
{
    FILE *file = fopen(WEIR_DOCS "/configuration.md", "rb");
    size_t len;

    EXPECT_TRUE(file != NULL);
    len = fread(page, 1, sizeof(page) - 1, file);
    EXPECT_INT(0, fclose(file));
    EXPECT_TRUE(len > 0 && len < sizeof(page) - 1);
    page[len] = '\0';
}

/* Cuts the block of the page that begins with ```conf out of it. */
static const char *example(void)
{
    char *start;
    char *end;

    read_page();
    start = strstr(page, "```conf\n");
    EXPECT_TRUE(start != NULL);
    start += strlen("```conf\n");
    end = strstr(start, "```");
    EXPECT_TRUE(end != NULL);
    *end = '\0';
    return start;
}

TEST(the_documented_example_is_read)
{
    struct weir__config *config = config_of(example());
    const struct weir__config_topic *topic;

    EXPECT_STR("redis://127.0.0.1:6379", config->url.value);
    EXPECT_STR("/opt/weir/plugins", config->plugin_path.items[0]);
    EXPECT_INT(30000, config->drain.value);
    EXPECT_TRUE(config->drain.line > 0);
    EXPECT_INT(2, config->topic_count);
    topic = &config->topics[0];
    EXPECT_STR("order.close", topic->name);
    EXPECT_STR("notify", topic->handler.value);
    EXPECT_STR("timeout=5s", topic->options.items[0]);
    EXPECT_INT(3, topic->values.retry.count);
    EXPECT_INT(100, topic->values.concurrency);
    EXPECT_STR("order.dead", topic->values.on_dead);
    EXPECT_STR("order.dead", config->topics[1].name);
    EXPECT_STR("archive", config->topics[1].handler.value);
    weir__config_free(config);
}

static void expect_row(const char *section, const char *name, const char *kinds)
{
    char row[160];

    (void)snprintf(row, sizeof(row), "\n| `%s` | `%s` | %s | ", section, name,
                   kinds);
    EXPECT_CONTAINS(row, page);
}

TEST(every_option_has_its_row_in_the_page)
{
    const struct weir__config_option *option = weir__config_options;
    char kinds[64];

    read_page();
    for (; option->section != NULL; option++)
        expect_row(option->section, option->row.name,
                   strcmp(option->section, "topic") == 0 ? "all" : "–");
    for (size_t i = 0; i < WEIR__TOPIC_OPTIONS; i++) {
        const struct weir__option *row = &weir__topic_options[i];

        weir__kinds_list(row->kinds, kinds);
        expect_row("topic", row->name,
                   row->kinds == WEIR__KINDS_ALL ? "all" : kinds);
    }
}
