/* SPDX-License-Identifier: MIT */

/* What to write instead of a name that nobody knows. */

#include <stdio.h>
#include <string.h>

#include "adapters/config/option.h"
#include "core/text.h"

enum { NAME_MAX_LEN = 24, LIST_CAP = 440 };

static const char *const sections[] = {"redis", "worker", "topic"};

enum { SECTION_COUNT = sizeof(sections) / sizeof(sections[0]) };

static size_t least(size_t one, size_t two, size_t three)
{
    size_t less = one < two ? one : two;

    return less < three ? less : three;
}

/* How many bytes to insert, remove or replace to turn one name into the
 * other (Levenshtein's distance). */
static size_t distance(const char *one, const char *other)
{
    size_t row[NAME_MAX_LEN + 1];
    size_t other_len = strlen(other);

    if (strlen(one) > NAME_MAX_LEN || other_len > NAME_MAX_LEN)
        return SIZE_MAX;
    for (size_t i = 0; i <= other_len; i++)
        row[i] = i;
    for (; *one != '\0'; one++) {
        size_t diagonal = row[0];

        row[0]++;
        for (size_t i = 0; i < other_len; i++) {
            size_t above = row[i + 1];

            row[i + 1] = least(above + 1, row[i] + 1,
                               diagonal + (*one != other[i] ? 1 : 0));
            diagonal = above;
        }
    }
    return row[other_len];
}

/* Names that may stand in `section`, one after the other; NULL at the end. */
static const char *known(const char *section, size_t *at)
{
    if (strcmp(section, "root") == 0)
        return *at < SECTION_COUNT ? sections[(*at)++] : NULL;
    while (*at < WEIR__CONFIG_OPTION_COUNT) {
        const struct weir__config_option *option = &weir__config_options[*at];

        (*at)++;
        if (strcmp(option->section, section) == 0)
            return option->name;
    }
    return NULL;
}

/* The known name that looks most like `name`; NULL when none does. */
static const char *nearest(const char *section, const char *name)
{
    size_t limit = (strlen(name) + 2) / 3;
    size_t at = 0;
    const char *best = NULL;

    for (;;) {
        const char *candidate = known(section, &at);
        size_t steps;

        if (candidate == NULL)
            return best;
        steps = distance(name, candidate);
        if (steps <= limit) {
            best = candidate;
            limit = steps - 1; /* the first of equals stays */
        }
        if (steps == 0)
            return best;
    }
}

/* "a, b, c" */
static const char *list(const char *section, char buf[LIST_CAP])
{
    size_t at = 0;
    size_t len = 0;

    for (;;) {
        const char *name = known(section, &at);

        if (name == NULL || len >= LIST_CAP)
            return buf;
        len += (size_t)snprintf(buf + len, LIST_CAP - len, "%s%s",
                                len == 0 ? "" : ", ", name);
    }
}

/* The section that has an option called `name`; NULL when none has. */
static const char *home_of(const char *name)
{
    for (size_t i = 0; i < SECTION_COUNT; i++)
        if (weir__config_option_find(sections[i], name) != NULL)
            return sections[i];
    return NULL;
}

static bool is_section(const char *name)
{
    for (size_t i = 0; i < SECTION_COUNT; i++)
        if (strcmp(sections[i], name) == 0)
            return true;
    return false;
}

static bool is_name(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyz_") == strlen(text);
}

int weir__config_option_unknown(const char *section, const char *name,
                                const struct weir__config_place *place)
{
    char quote[WEIR__TEXT_QUOTE_CAP];
    char names[LIST_CAP] = "";
    bool is_root = strcmp(section, "root") == 0;
    const char *near = nearest(section, name);
    const char *home = home_of(name);

    (void)weir__text_quote(weir__slice_str(name), quote);
    if (strlen(quote) > NAME_MAX_LEN + 3) /* leave room for what is known */
        memcpy(quote + NAME_MAX_LEN, "...", sizeof("..."));
    if (is_section(name))
        return weir__config_fail(place, WEIR_EINVAL,
                                 "%s is a section and cannot stand here: write "
                                 "%s on its own, with its options in { and }",
                                 quote, quote);
    if (home != NULL)
        return weir__config_fail(place, WEIR_EINVAL,
                                 "%s is an option of %s: write it in that "
                                 "section",
                                 quote, home);
    if (near != NULL)
        return weir__config_fail(place, WEIR_EINVAL, "%s \"%s\"%s: write %s",
                                 is_root ? "no section is called"
                                         : "there is no option",
                                 quote, is_root ? "" : " here", near);
    if (!is_name(name))
        return weir__config_fail(place, WEIR_EINVAL,
                                 "\"%s\" stands where a name should: write a "
                                 "value of several words in quotes",
                                 quote);
    return weir__config_fail(
        place, WEIR_EINVAL, "%s knows no \"%s\": write one of %s",
        is_root ? "weir" : section, quote, list(section, names));
}
