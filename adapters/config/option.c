/* SPDX-License-Identifier: MIT */
#include "adapters/config/option.h"

#include <string.h>

#include "adapters/config/config.h"
#include "adapters/config/value.h"
#include "core/assert.h"
#include "core/mem.h"

#define GLOBAL(field) offsetof(struct weir__config, field)

#define TOPIC_ROW(name, form, min, max, fallback, word, value) \
    {"topic",                                                  \
     #name,                                                    \
     WEIR__OPTION_##form,                                      \
     offsetof(struct weir__config_topic, name),                \
     min,                                                      \
     max,                                                      \
     fallback,                                                 \
     word,                                                     \
     value},

/* clang-format off */
const struct weir__config_option weir__config_options[] = {
    {"redis", "url", WEIR__OPTION_TEXT, GLOBAL(url), 0, 0, 0, NULL, 0},
    {"redis", "data", WEIR__OPTION_TEXT, GLOBAL(data), 0, 0, 0, NULL, 0},
    {"worker", "plugin_path", WEIR__OPTION_PATHS, GLOBAL(plugin_path),
     0, 0, 0, NULL, 0},
    {"worker", "name", WEIR__OPTION_WORKER, GLOBAL(name), 0, 0, 0, NULL, 0},
    {"worker", "log_level", WEIR__OPTION_LEVEL, GLOBAL(log_level),
     WEIR_LEVEL_DEBUG, WEIR_LEVEL_ERROR, WEIR_LEVEL_INFO, NULL, 0},
    {"worker", "drain", WEIR__OPTION_DURATION, GLOBAL(drain),
     0, 7 * WEIR__DAY_MS, 30 * WEIR__SECOND_MS, NULL, 0},
    {"worker", "block_warn", WEIR__OPTION_DURATION, GLOBAL(block_warn),
     1, WEIR__HOUR_MS, 100, NULL, 0},
    {"worker", "threads", WEIR__OPTION_COUNT, GLOBAL(threads),
     1, 256, 8, NULL, 0},
    {"worker", "allow_eviction", WEIR__OPTION_SWITCH, GLOBAL(allow_eviction),
     0, 1, 0, NULL, 0},
    WEIR__TOPIC_OPTION_MAP(TOPIC_ROW)
    {NULL, NULL, WEIR__OPTION_TEXT, 0, 0, 0, 0, NULL, 0},
};
/* clang-format on */

_Static_assert(sizeof(weir__config_options) / sizeof(weir__config_options[0]) ==
                   WEIR__CONFIG_OPTION_COUNT + 1,
               "the table has one row for each option and one that ends it");

const struct weir__config_option *weir__config_option_find(const char *section,
                                                           const char *name)
{
    const struct weir__config_option *option = weir__config_options;

    for (; option->name != NULL; option++)
        if (strcmp(option->section, section) == 0 &&
            strcmp(option->name, name) == 0)
            return option;
    return NULL;
}

bool weir__config_option_is_list(const struct weir__config_option *option)
{
    return option->form == WEIR__OPTION_PATHS ||
           option->form == WEIR__OPTION_PAIRS ||
           option->form == WEIR__OPTION_GROUPS;
}

static bool is_text(const struct weir__config_option *option)
{
    return option->form <= WEIR__OPTION_LADDER;
}

static bool is_number(const struct weir__config_option *option)
{
    return option->form >= WEIR__OPTION_LEVEL;
}

/* Where the option is kept; the first member is its line. */
static void *slot_of(const struct weir__config_option *option, void *base)
{
    return (char *)base + option->offset;
}

void weir__config_option_defaults(const char *section, void *base)
{
    const struct weir__config_option *option = weir__config_options;

    for (; option->name != NULL; option++) {
        struct weir__config_number *number = slot_of(option, base);

        if (strcmp(option->section, section) == 0 && is_number(option))
            number->value = option->fallback;
    }
}

static int no_memory(const struct weir__config_place *place)
{
    return weir__config_fail(place, WEIR_ENOMEM, "out of memory");
}

char *weir__config_text_copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = weir__mem_new(size);

    if (copy != NULL)
        memcpy(copy, text, size);
    return copy;
}

static int take_text(struct weir__config_text *slot, const char *text,
                     const struct weir__config_place *place)
{
    char *copy = weir__config_text_copy(text);

    if (copy == NULL)
        return no_memory(place);
    slot->value = copy;
    return WEIR_OK;
}

static int take_item(struct weir__config_list *slot, const char *text,
                     const struct weir__config_place *place)
{
    char *copy = weir__config_text_copy(text);
    char **items;

    if (copy == NULL)
        return no_memory(place);
    items = weir__mem_grow(slot->items, slot->count + 1, sizeof(*items));
    if (items == NULL) {
        weir__mem_free(copy);
        return no_memory(place);
    }
    items[slot->count] = copy;
    slot->items = items;
    slot->count++;
    return WEIR_OK;
}

static int take(const struct weir__config_option *option, void *slot,
                const char *text, const struct weir__config_place *place)
{
    struct weir__config_number *number = slot;
    bool is_word = option->word != NULL &&
                   option->form != WEIR__OPTION_CHOICE &&
                   strcmp(text, option->word) == 0;
    int rc;

    if (is_number(option)) {
        if (!is_word)
            return weir__config_number_read(option, text, &number->value,
                                            place);
        number->value = option->word_value;
        return WEIR_OK;
    }
    if (is_word)
        return WEIR_OK;
    rc = weir__config_text_check(option, text, place);
    if (rc < 0)
        return rc;
    return is_text(option) ? take_text(slot, text, place)
                           : take_item(slot, text, place);
}

int weir__config_option_take(const struct weir__config_option *option,
                             void *base, const char *text, bool is_more,
                             const struct weir__config_place *place)
{
    void *slot = slot_of(option, base);
    int *line = slot;
    int rc;

    WEIR_ASSERT(place->line > 0);
    if (*line > 0 && !is_more)
        return weir__config_fail(place, WEIR_EINVAL,
                                 "%s was given on line %d already: write it "
                                 "once",
                                 option->name, *line);
    rc = take(option, slot, text, place);
    if (rc == WEIR_OK && *line == 0)
        *line = place->line;
    return rc;
}

static void release_list(struct weir__config_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        weir__mem_free(list->items[i]);
    weir__mem_free(list->items);
}

void weir__config_option_release(const char *section, void *base)
{
    const struct weir__config_option *option = weir__config_options;

    for (; option->name != NULL; option++) {
        void *slot = slot_of(option, base);

        if (strcmp(option->section, section) != 0)
            continue;
        if (is_text(option))
            weir__mem_free(((struct weir__config_text *)slot)->value);
        else if (weir__config_option_is_list(option))
            release_list(slot);
    }
}

int weir__config_topic_line(const struct weir__config_topic *topic,
                            enum weir__topic_option option)
{
    static const size_t offsets[] = {
#define OFFSET(name, form, min, max, fallback, word, value) \
    offsetof(struct weir__config_topic, name),
        WEIR__TOPIC_OPTION_MAP(OFFSET)
#undef OFFSET
    };

    WEIR_ASSERT(option < WEIR__TOPIC_OPTIONS);
    /* The first member of each. */
    return *(const int *)(const void *)((const char *)topic + offsets[option]);
}
