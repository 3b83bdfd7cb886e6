/* SPDX-License-Identifier: MIT */
#include "adapters/dl/option.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/assert.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"

enum { OPTIONS_MAX = 256, OPTION_ALIGN = _Alignof(struct weir_option) };

/* What a declaration had in the first version of the ABI; fields that came
 * later may be absent. */
#define OPTION_SIZE_MIN \
    (offsetof(struct weir_option, help) + sizeof(const char *))

/* The declaration at `index`, with absent fields zeroed. */
static struct weir_option option_at(const struct weir_plugin *plugin,
                                    size_t index)
{
    const uint8_t *base = (const void *)plugin->options;
    struct weir_option option = {0};
    size_t size = plugin->option_size;

    WEIR_ASSERT(plugin->options != NULL && size >= OPTION_SIZE_MIN);
    WEIR_ASSERT(index < plugin->option_count);
    memcpy(&option, base + index * size,
           size < sizeof(option) ? size : sizeof(option));
    return option;
}

static bool is_bounded(const struct weir_option *option)
{
    return option->min != 0 || option->max != 0;
}

static bool is_within(const struct weir_option *option, int64_t number)
{
    return !is_bounded(option) ||
           (number >= option->min && number <= option->max);
}

static bool read_int(const char *text, int64_t *ret_number)
{
    char *end = NULL;
    long long number;

    /* strtoll would take blanks and a plus sign */
    if (*text != '-' && (*text < '0' || *text > '9'))
        return false;
    errno = 0;
    number = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0')
        return false;
    *ret_number = number;
    return true;
}

static bool read_bool(const char *text, int64_t *ret_number)
{
    bool is_yes = strcmp(text, "yes") == 0 || strcmp(text, "true") == 0;

    if (!is_yes && strcmp(text, "no") != 0 && strcmp(text, "false") != 0)
        return false;
    *ret_number = is_yes;
    return true;
}

static bool is_choice(const char *choices, const char *text)
{
    size_t len = strlen(text);

    for (const char *choice = choices;;) {
        size_t choice_len = strcspn(choice, "|");

        if (choice_len == len && memcmp(choice, text, len) == 0)
            return true;
        if (choice[choice_len] == '\0')
            return false;
        choice += choice_len + 1;
    }
}

/* True when `text` is a value of the option; only numbers are written. */
static bool read_value(const struct weir_option *option, const char *text,
                       int64_t *ret_number)
{
    struct weir_slice slice = weir__slice_str(text);
    int64_t number = 0;
    bool is_read = true;

    switch (option->type) {
    case WEIR_OPTION_TEXT:
        return true;
    case WEIR_OPTION_CHOICE:
        return is_choice(option->choices, text);
    case WEIR_OPTION_BOOL:
        return read_bool(text, ret_number);
    case WEIR_OPTION_INT:
        is_read = read_int(text, &number);
        break;
    case WEIR_OPTION_DURATION:
        is_read = weir__duration_parse(slice, &number, NULL) == WEIR_OK;
        break;
    case WEIR_OPTION_SIZE:
        is_read = weir__size_parse(slice, &number, NULL) == WEIR_OK;
        break;
    }
    if (!is_read || !is_within(option, number))
        return false;
    *ret_number = number;
    return true;
}

struct wish {
    char text[100];
};

/* "a whole number from 0 to 9": what the option wants, for a sentence. */
static struct wish wish_of(const struct weir_option *option)
{
    const char *what = "a whole number", *unit = "";
    char low[24], high[24];
    struct wish wish;

    (void)snprintf(low, sizeof(low), "%" PRId64, option->min);   /* fits */
    (void)snprintf(high, sizeof(high), "%" PRId64, option->max); /* fits */
    if (option->type == WEIR_OPTION_DURATION) {
        what = "a duration such as 15s";
        (void)weir__duration_format(option->min, low);
        (void)weir__duration_format(option->max, high);
    } else if (option->type == WEIR_OPTION_SIZE) {
        what = "a size such as 64KiB";
        unit = " bytes";
    } else if (option->type == WEIR_OPTION_BOOL) {
        (void)snprintf(wish.text, sizeof(wish.text), "yes or no"); /* fits */
        return wish;
    } else if (option->type == WEIR_OPTION_CHOICE) {
        (void)snprintf(wish.text, sizeof(wish.text), "one of %s",
                       option->choices); /* cut */
        return wish;
    }
    if (is_bounded(option))
        (void)snprintf(wish.text, sizeof(wish.text), "%s from %s to %s%s", what,
                       low, high, unit); /* fits */
    else
        (void)snprintf(wish.text, sizeof(wish.text), "%s", what); /* fits */
    return wish;
}

static bool is_name(const char *name)
{
    return name != NULL && *name != '\0' &&
           name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

/* At least one choice, and none of them empty. */
static bool are_choices(const char *choices)
{
    return choices != NULL && !is_choice(choices, "");
}

/* What is wrong with a declaration, as the end of a sentence; NULL: nothing. */
static const char *fault_of(const struct weir_option *option)
{
    int64_t number;

    switch (option->type) {
    case WEIR_OPTION_TEXT:
    case WEIR_OPTION_INT:
    case WEIR_OPTION_BOOL:
    case WEIR_OPTION_DURATION:
    case WEIR_OPTION_SIZE:
        if (option->choices != NULL)
            return "has choices, but its type has none";
        break;
    case WEIR_OPTION_CHOICE:
        if (!are_choices(option->choices))
            return "has no choices, or an empty one";
        break;
    default:
        return "has a type that this weir does not know";
    }
    if (option->min > option->max)
        return "has a least value above its largest";
    if ((option->flags & ~(uint32_t)WEIR_OPTION_SECRET) != 0)
        return "has a flag that this weir does not know";
    if (option->fallback != NULL &&
        !read_value(option, option->fallback, &number))
        return "has a fallback that is not one of its values";
    return NULL;
}

/* The index of the declaration called so, or option_count. */
static size_t find(const struct weir_plugin *plugin, struct weir_slice name)
{
    size_t i = 0;

    for (; i < plugin->option_count; i++)
        if (weir__slice_equal(name, weir__slice_str(option_at(plugin, i).name)))
            break;
    return i;
}

int weir__option_table_check(const struct weir_plugin *plugin, const char *path,
                             struct weir_error *err)
{
    if (plugin->option_count == 0)
        return WEIR_OK;
    if (plugin->options == NULL || plugin->option_count > OPTIONS_MAX)
        return weir__error_set(err, WEIR_EINVAL,
                               "plugin %s: its table of %" PRIu32
                               " options is absent or has more than %d",
                               path, plugin->option_count, OPTIONS_MAX);
    if (plugin->option_size < OPTION_SIZE_MIN ||
        plugin->option_size % OPTION_ALIGN != 0)
        return weir__error_set(err, WEIR_EABI,
                               "plugin %s: its options claim %" PRIu32
                               " bytes each; that cannot be",
                               path, plugin->option_size);
    for (size_t i = 0; i < plugin->option_count; i++) {
        struct weir_option option = option_at(plugin, i);
        const char *fault;

        if (!is_name(option.name))
            return weir__error_set(
                err, WEIR_EINVAL,
                "plugin %s: option %zu has no name of a-z, 0-9 and _", path,
                i + 1);
        fault = find(plugin, weir__slice_str(option.name)) < i
                    ? "is declared twice"
                    : fault_of(&option);
        if (fault != NULL)
            return weir__error_set(err, WEIR_EINVAL,
                                   "plugin %s: option \"%s\" %s", path,
                                   option.name, fault);
    }
    return WEIR_OK;
}

static int refuse_unknown(const struct weir_plugin *plugin,
                          struct weir_slice name, struct weir_error *err)
{
    char quote[WEIR__TEXT_QUOTE_CAP], known[160] = "";
    size_t len = 0;

    for (size_t i = 0; i < plugin->option_count && len < sizeof(known); i++) {
        int more = snprintf(known + len, sizeof(known) - len, "%s%s",
                            i == 0 ? "" : ", ", option_at(plugin, i).name);

        len += more > 0 ? (size_t)more : 0;
    }
    return weir__error_set(
        err, WEIR_EINVAL, "plugin %s: unknown option \"%s\"; it %s%s",
        plugin->name, weir__text_quote(name, quote),
        plugin->option_count == 0 ? "has none" : "knows: ", known);
}

/* Read one "key=value" into its place. */
static int read_given(const struct weir_plugin *plugin, const char *given,
                      struct weir_option_value *values, struct weir_error *err)
{
    char quote[WEIR__TEXT_QUOTE_CAP];
    struct weir_slice name = weir__slice_of(given, strcspn(given, "="));
    size_t index = find(plugin, name);
    const char *value = given + name.len + 1;
    struct weir_option option;

    if (given[name.len] == '\0')
        return weir__error_set(err, WEIR_EINVAL,
                               "plugin %s: option \"%s\" has no value: write "
                               "name=value",
                               plugin->name, weir__text_quote(name, quote));
    if (index == plugin->option_count)
        return refuse_unknown(plugin, name, err);
    option = option_at(plugin, index);
    if (values[index].text != NULL)
        return weir__error_set(err, WEIR_EINVAL,
                               "plugin %s: option \"%s\" is given twice",
                               plugin->name, option.name);
    if (read_value(&option, value, &values[index].number)) {
        values[index].text = value;
        return WEIR_OK;
    }
    if ((option.flags & WEIR_OPTION_SECRET) != 0)
        return weir__error_set(err, WEIR_EINVAL,
                               "plugin %s: option \"%s\" wants %s, got what is "
                               "not shown",
                               plugin->name, option.name,
                               wish_of(&option).text);
    return weir__error_set(err, WEIR_EINVAL,
                           "plugin %s: option \"%s\" wants %s, got \"%s\"",
                           plugin->name, option.name, wish_of(&option).text,
                           weir__text_quote(weir__slice_str(value), quote));
}

bool weir__option_is_secret(const struct weir_plugin *plugin, const char *given)
{
    struct weir_slice name = weir__slice_of(given, strcspn(given, "="));
    size_t index = find(plugin, name);

    return index < plugin->option_count && given[name.len] == '=' &&
           given[name.len + 1] != '\0' &&
           (option_at(plugin, index).flags & WEIR_OPTION_SECRET) != 0;
}

static int fill_in(const struct weir_plugin *plugin,
                   struct weir_option_value *values, struct weir_error *err)
{
    for (size_t i = 0; i < plugin->option_count; i++) {
        struct weir_option option = option_at(plugin, i);
        bool is_read;

        if (values[i].text != NULL)
            continue;
        if (option.fallback == NULL)
            return weir__error_set(err, WEIR_EINVAL,
                                   "plugin %s: option \"%s\" is required",
                                   plugin->name, option.name);
        is_read = read_value(&option, option.fallback, &values[i].number);
        WEIR_ASSERT(is_read); /* the table was checked */
        values[i].text = option.fallback;
    }
    return WEIR_OK;
}

int weir__option_values(const struct weir_plugin *plugin,
                        const char *const *options, size_t count,
                        struct weir_option_value **ret_values,
                        struct weir_error *err)
{
    struct weir_option_value *values =
        weir__mem_new(plugin->option_count * sizeof(*values));
    int rc = WEIR_OK;

    if (values == NULL)
        return weir__error_set(err, WEIR_ENOMEM, "plugin %s: out of memory",
                               plugin->name);
    for (size_t i = 0; i < count && rc == WEIR_OK; i++)
        rc = read_given(plugin, options[i], values, err);
    if (rc == WEIR_OK)
        rc = fill_in(plugin, values, err);
    if (rc < 0) {
        weir__mem_free(values);
        return rc;
    }
    *ret_values = values;
    return WEIR_OK;
}
