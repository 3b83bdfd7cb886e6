/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "tests/config/files.h"

/* Values at an option's bounds and one step beyond them. */
struct bounds {
    const char *option;
    const char *below; /* NULL: nothing is */
    const char *min;
    const char *max;
    const char *above;
    const char *sentence; /* its end, for both */
};

static const struct bounds table[] = {
    {"drain", NULL, "0ms", "7d", "604800001ms", "0ms to 7d"},
    {"block_warn", "0ms", "1ms", "1h", "3600001ms", "1ms to 1h"},
    {"workers", "0", "1", "256", "257", "1 to 256"},
    {"threads", "0", "1", "256", "257", "1 to 256"},
    {"retry_jitter", NULL, "0", "50", "51", "0% to 50%"},
    {"concurrency", "0", "1", "100000", "100001", "1 to 100000"},
    {"prefetch", NULL, "0", "100000", "100001", "0 to 100000, or auto"},
    {"weight", "0", "1", "1000", "1001", "1 to 1000"},
    {"timeout", "9ms", "10ms", "7d", "604800001ms", "10ms to 7d"},
    {"lease", "299ms", "300ms", "1h", "3600001ms", "300ms to 1h, or none"},
    {"max_crashes", "0", "1", "100", "101", "1 to 100"},
    {"ttl", "0ms", "1ms", "3650d", "3651d", "1ms to 3650d, or none"},
    {"max_dead", "0", "1", "4294967295", "4294967296", "1 to 4294967295"},
    {"max_body", "0", "1", "16MiB", "16777217", "1 to 16MiB"},
    {"max_pending", "0", "1", "4294967295", "4294967296",
     "1 to 4294967295, or none"},
    {"max_wait", "0ms", "1ms", "3650d", "3651d", "1ms to 3650d, or none"},
    {"parallel", "0", "1", "1000000", "1000001", "1 to 1000000, or none"},
    {"key_parallel", "0", "1", "1000", "1001", "1 to 1000, or none"},
    {"ageing", "999ms", "1s", "30d", "31d", "1s to 30d"},
    {"delay", NULL, "0ms", "365d", "366d", "0ms to 365d"},
    {"consumers", "0", "1", "1000", "1001", "1 to 1000"},
    {"claim_idle", "0ms", "1ms", "7d", "604800001ms", "1ms to 7d"},
    {"batch", "0", "1", "1000", "1001", "1 to 1000"},
    {"length", "0", "1", "1000000", "1000001", "1 to 1000000"},
    {"max_age", "0ms", "1ms", "3650d", "3651d", "1ms to 3650d, or none"},
    {"group_ttl", "999ms", "1s", "365d", "366d", "1s to 365d, or none"},
    {"linger", NULL, "0ms", "1h", "2h", "0ms to 1h"},
};

enum { TABLE_COUNT = sizeof(table) / sizeof(table[0]) };

/* NULL: it is one of a topic. */
static const struct weir__config_option *own_option(const char *name)
{
    const struct weir__config_option *option = weir__config_options;

    while (option->section != NULL && (strcmp(option->row.name, name) != 0 ||
                                       strcmp(option->section, "cron") == 0))
        option++;
    return option->section == NULL ? NULL : option;
}

static const struct weir__option *option_of(const char *name)
{
    const struct weir__config_option *own = own_option(name);
    enum weir__topic_option option =
        weir__topic_option_find(weir__slice_str(name));

    EXPECT_TRUE(own != NULL || option != WEIR__TOPIC_OPTIONS);
    return own != NULL ? &own->row : &weir__topic_options[option];
}

static void file_of(const char *name, const char *value, char text[200])
{
    (void)snprintf(text, 200, "%s { %s = %s }",
                   own_option(name) == NULL ? "topic a" : "worker", name,
                   value);
}

static void expect_accepted(const char *name, const char *value, int64_t wanted)
{
    const struct weir__config_option *own = own_option(name);
    const struct weir__config_number *number;
    struct weir__config *config;
    int64_t got;
    char text[200];

    file_of(name, value, text);
    config = config_of(text);
    EXPECT_INT(WEIR_OK, weir__option_read(option_of(name), value, &got, NULL));
    EXPECT_INT(wanted, got);
    if (own != NULL) {
        number = weir__config_holder(own, config);
        EXPECT_INT(1, number->line);
        EXPECT_INT(wanted, number->value);
    }
    weir__config_free(config);
}

static void expect_beyond(const struct bounds *bounds, const char *value)
{
    struct refusal refusal;
    char text[200];
    char sentence[200];

    file_of(bounds->option, value, text);
    (void)snprintf(sentence, sizeof(sentence),
                   "w.conf:1: %s: \"%s\" is out of bounds: write %s",
                   bounds->option, value, bounds->sentence);
    refusal = (struct refusal){text, sentence};
    expect_refused(&refusal, 1);
}

TEST(a_value_at_its_bound_is_accepted)
{
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        const struct weir__option *option = option_of(table[i].option);

        expect_accepted(table[i].option, table[i].min, option->min);
        expect_accepted(table[i].option, table[i].max, option->max);
    }
}

TEST(a_value_beyond_its_bound_is_refused_with_the_bounds)
{
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        if (table[i].below != NULL)
            expect_beyond(&table[i], table[i].below);
        expect_beyond(&table[i], table[i].above);
    }
}

TEST(every_option_with_bounds_is_in_the_table)
{
    const struct weir__config_option *own = weir__config_options;
    size_t count = 0;

    for (; own->section != NULL; own++)
        count += own->row.form > WEIR__OPTION_CHOICE;
    for (size_t i = 0; i < WEIR__TOPIC_OPTIONS; i++)
        count += weir__topic_options[i].form > WEIR__OPTION_CHOICE;
    EXPECT_INT(TABLE_COUNT, count);
}

TEST(every_kind_and_level_is_accepted)
{
    static const char *const kinds[] = {"delay", "sync", "concurrent"};
    static const char *const levels[] = {"debug", "info", "warn", "error"};
    struct weir__config *config;
    char text[200];

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        file_of("kind", kinds[i], text);
        config = config_of(text);
        EXPECT_STR(kinds[i], config->topics[0].values.kind);
        weir__config_free(config);
    }
    for (int i = 0; i < 4; i++)
        expect_accepted("log_level", levels[i], i);
    expect_accepted("allow_eviction", "no", 0);
    expect_accepted("allow_eviction", "yes", 1);
}

TEST(a_name_at_its_longest_is_accepted)
{
    struct weir__config *config =
        config_of("worker { name = a234567890123456789012345678901234567890 }"
                  "topic a234567890123456789012345678901234567890 { }");

    EXPECT_INT(40, strlen(config->name.value));
    EXPECT_INT(40, strlen(config->topics[0].name));
    weir__config_free(config);
}

TEST(a_ladder_at_its_bounds_is_accepted)
{
    char text[400] = "topic a { retry = \"1ms 365d";
    struct weir__config *config;

    for (int i = 2; i < 64; i++)
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), " 1s");
    (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "\" }");
    config = config_of(text);
    EXPECT_INT(64, config->topics[0].values.retry.count);
    weir__config_free(config);
}
