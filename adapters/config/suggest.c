/* SPDX-License-Identifier: MIT */

/* What to write instead of a name that nobody knows. */

#include <stdio.h>
#include <string.h>

#include "adapters/config/option.h"
#include "core/nearest.h"
#include "core/text.h"

enum { NAME_MAX_LEN = 24, LIST_CAP = 440 };

static const char *const sections[] = {"redis", "worker", "topic"};

enum { SECTION_COUNT = sizeof(sections) / sizeof(sections[0]) };

/* Names that may stand in `section`. */
struct known {
    const char *names[WEIR__CONFIG_OPTION_COUNT];
    size_t count;
};

_Static_assert((int)SECTION_COUNT <= (int)WEIR__CONFIG_OPTION_COUNT,
               "there is room for the names of sections");

static struct known known_in(const char *section)
{
    struct known known = {.count = 0};

    if (strcmp(section, "root") == 0)
        while (known.count < SECTION_COUNT) {
            known.names[known.count] = sections[known.count];
            known.count++;
        }
    for (size_t i = 0; i < WEIR__CONFIG_OPTION_COUNT; i++)
        if (strcmp(weir__config_options[i].section, section) == 0)
            known.names[known.count++] = weir__config_options[i].name;
    return known;
}

static const char *name_at(const void *known, size_t i)
{
    return ((const struct known *)known)->names[i];
}

/* "a, b, c" */
static const char *list(const struct known *known, char buf[LIST_CAP])
{
    size_t len = 0;

    for (size_t i = 0; i < known->count && len < LIST_CAP; i++)
        len += (size_t)snprintf(buf + len, LIST_CAP - len, "%s%s",
                                i == 0 ? "" : ", ", known->names[i]);
    return buf;
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
    struct known known = known_in(section);
    const char *near = weir__nearest(name, &known, known.count, name_at);
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
        is_root ? "weir" : section, quote, list(&known, names));
}
