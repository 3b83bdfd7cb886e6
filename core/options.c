/* SPDX-License-Identifier: MIT */
#include "core/options.h"

#include <string.h>

#include "core/assert.h"
#include "core/error.h"
#include "core/nearest.h"
#include "core/text.h"

#define ROW(name, form, kinds, min, max, fallback, word, value) \
    {#name, WEIR__OPTION_##form, kinds, min, max, fallback, word, value},
const struct weir__option weir__topic_options[] = {WEIR__TOPIC_OPTION_MAP(ROW)};
#undef ROW

/* Where each value is. */
static const struct {
    size_t offset, size;
} slots[] = {
#define SLOT(name, form, kinds, min, max, fallback, word, value) \
    {offsetof(struct weir__options, name),                       \
     sizeof(((struct weir__options *)NULL)->name)},
    WEIR__TOPIC_OPTION_MAP(SLOT)
#undef SLOT
};

/* Texts are empty, but for the ladder. */
#define FALLBACK_KIND(fallback)       ""
#define FALLBACK_TOPIC(fallback)      ""
#define FALLBACK_TEXT(fallback)       ""
#define FALLBACK_GROUPS(fallback)     ""
#define FALLBACK_CHOSEN(fallback)     ""
#define FALLBACK_FIELD(fallback)      ""
#define FALLBACK_RATE(fallback)       ""
#define FALLBACK_LADDER(fallback)     WEIR__LADDER_DEFAULT
#define FALLBACK_SWITCH(fallback)     fallback
#define FALLBACK_CHOICE(fallback)     fallback
#define FALLBACK_COUNT(fallback)      fallback
#define FALLBACK_PERCENT(fallback)    fallback
#define FALLBACK_LIMIT(fallback)      fallback
#define FALLBACK_DURATION(fallback)   fallback
#define FALLBACK_SIZE(fallback)       fallback
#define FALLBACK_DURABILITY(fallback) fallback
#define FALLBACK_UNTIL(fallback)      fallback

const struct weir__options weir__options_default = {
#define FALLBACK(name, form, kinds, min, max, fallback, word, value) \
    .name = FALLBACK_##form(fallback),
    WEIR__TOPIC_OPTION_MAP(FALLBACK)
#undef FALLBACK
};

_Static_assert(WEIR__TOPIC_OPTIONS <= 64, "each option has a bit");

enum weir__topic_option weir__topic_option_find(struct weir_slice name)
{
    size_t at = 0;

    while (
        at < WEIR__TOPIC_OPTIONS &&
        !weir__slice_equal(weir__slice_str(weir__topic_options[at].name), name))
        at++;
    return (enum weir__topic_option)at;
}

int weir__topic_option_fits(enum weir__topic_option option, const char *kind,
                            struct weir_error *err)
{
    const struct weir__option *row = &weir__topic_options[option];
    char list[64];

    WEIR_ASSERT(option < WEIR__TOPIC_OPTIONS);
    if ((row->kinds & weir__kind_named(kind)) != 0)
        return WEIR_OK;
    if (err == NULL)
        return WEIR_EINVAL; /* each add asks this way */
    weir__kinds_list(row->kinds, list);
    return weir__error_set(err, WEIR_EINVAL,
                           "%s: a topic of kind %s has no such option: only "
                           "one of kind %s has",
                           row->name, kind, list);
}

int weir__topic_option_stores(enum weir__topic_option option,
                              struct weir_error *err)
{
    if (option != WEIR__TOPIC_groups)
        return WEIR_OK;
    return weir__error_set(err, WEIR_EINVAL,
                           "groups: it is each worker's own and not stored for "
                           "all of them: write it in the worker's file, or "
                           "run the worker with --groups");
}

/* --- values --------------------------------------------------------------- */

static void hold(struct weir__options *options, enum weir__topic_option option,
                 int64_t value)
{
    void *slot = (char *)options + slots[option].offset;

    switch (weir__topic_options[option].form) {
    case WEIR__OPTION_SWITCH:
        *(bool *)slot = value != 0;
        break;
    case WEIR__OPTION_CHOICE:
    case WEIR__OPTION_DURABILITY:
    case WEIR__OPTION_COUNT:
    case WEIR__OPTION_PERCENT:
        *(uint32_t *)slot = (uint32_t)value;
        break;
    case WEIR__OPTION_LIMIT:
    case WEIR__OPTION_DURATION:
    case WEIR__OPTION_SIZE:
    case WEIR__OPTION_UNTIL:
        *(int64_t *)slot = value;
        break;
    case WEIR__OPTION_TEXT:
    case WEIR__OPTION_WORKER:
    case WEIR__OPTION_KIND:
    case WEIR__OPTION_TOPIC:
    case WEIR__OPTION_LADDER:
    case WEIR__OPTION_PATHS:
    case WEIR__OPTION_PAIRS:
    case WEIR__OPTION_GROUPS:
    case WEIR__OPTION_CHOSEN:
    case WEIR__OPTION_FIELD:
    case WEIR__OPTION_RATE:
        WEIR_UNREACHABLE("these are no numbers");
    }
}

/* The text was checked: it fits. */
static void hold_text(struct weir__options *options,
                      enum weir__topic_option option, const char *text)
{
    const struct weir__option *row = &weir__topic_options[option];
    char *slot = (char *)options + slots[option].offset;

    if (row->form == WEIR__OPTION_LADDER) {
        if (weir__ladder_parse(weir__slice_str(text), (void *)slot, NULL) < 0)
            WEIR_UNREACHABLE("a ladder that was checked");
        return;
    }
    WEIR_ASSERT(strlen(text) <= (size_t)row->max);
    memset(slot, 0, slots[option].size);
    if (row->word == NULL || strcmp(text, row->word) != 0)
        memcpy(slot, text, strlen(text));
}

static void reset(struct weir__options *options, enum weir__topic_option option)
{
    size_t offset = slots[option].offset;

    options->given &= ~(UINT64_C(1) << option);
    memcpy((char *)options + offset,
           (const char *)&weir__options_default + offset, slots[option].size);
}

void weir__options_init(struct weir__options *options)
{
    memcpy(options, &weir__options_default, sizeof(*options));
}

bool weir__options_has(const struct weir__options *options,
                       enum weir__topic_option option)
{
    return (options->given >> option & 1) != 0;
}

bool weir__options_key_is_path(const struct weir__options *options)
{
    return options->kind[0] == '\0' || strcmp(options->kind, "delay") == 0;
}

int64_t weir__options_lease_ms(const struct weir__options *options)
{
    return options->lease == WEIR__OPTION_NONE
               ? weir__topic_options[WEIR__TOPIC_lease].fallback
               : options->lease;
}

/* --- reading ------------------------------------------------------------- */

static const char *name_at(const void *names, size_t i)
{
    return ((const struct weir__option *)names)[i].name;
}

static int refuse_name(struct weir_slice text, struct weir_error *err)
{
    char quote[WEIR__TEXT_QUOTE_CAP];
    const char *near;

    (void)weir__text_quote(text, quote);
    near =
        weir__nearest(quote, weir__topic_options, WEIR__TOPIC_OPTIONS, name_at);
    return weir__error_set(
        err, WEIR_EINVAL, "a topic has no option \"%s\": %s%s", quote,
        near != NULL ? "write " : "docs/configuration.md has all of them",
        near != NULL ? near : "");
}

/* One "name=value", in its parts. */
static int split(const char *text, enum weir__topic_option *ret_option,
                 const char **ret_value, struct weir_error *err)
{
    char quote[WEIR__TEXT_QUOTE_CAP];
    const char *equals = strchr(text, '=');
    enum weir__topic_option option;
    struct weir_slice name;

    if (equals == NULL)
        return weir__error_set(err, WEIR_EINVAL,
                               "\"%s\" has no =: write option=value",
                               weir__text_quote(weir__slice_str(text), quote));
    name = weir__slice_of(text, (size_t)(equals - text));
    option = weir__topic_option_find(name);
    if (option == WEIR__TOPIC_OPTIONS)
        return refuse_name(name, err);
    *ret_option = option;
    *ret_value = equals + 1;
    return WEIR_OK;
}

int weir__options_put(struct weir__options *options, const char *topic,
                      enum weir__topic_option option, const char *value,
                      struct weir_error *err)
{
    const struct weir__option *row = &weir__topic_options[option];
    int64_t number;
    int rc = weir__option_read(row, value, &number, err);

    if (rc < 0)
        return rc;
    if (row->form == WEIR__OPTION_TOPIC && strcmp(value, topic) == 0)
        return weir__error_set(err, WEIR_EINVAL,
                               "%s: \"%s\" is this topic itself: write another "
                               "one",
                               row->name, topic);
    options->given |= UINT64_C(1) << option;
    if (weir__option_is_number(row))
        hold(options, option, number);
    else
        hold_text(options, option, value);
    return WEIR_OK;
}

/* One "name=value"; sets *ret_option unless there is no such option. */
static int take(struct weir__options *options, const char *topic,
                const char *text, enum weir__topic_option *ret_option,
                struct weir_error *err)
{
    const char *value = "";
    int rc = split(text, ret_option, &value, err);

    if (rc < 0)
        return rc;
    if (*value != '\0')
        return weir__options_put(options, topic, *ret_option, value, err);
    reset(options, *ret_option);
    return WEIR_OK;
}

int weir__options_read(struct weir__options *options, const char *topic,
                       const char *const *texts, struct weir_error *err)
{
    enum weir__topic_option option = WEIR__TOPIC_OPTIONS;
    int rc = WEIR_OK;

    for (; *texts != NULL && rc == WEIR_OK; texts++)
        rc = take(options, topic, *texts, &option, err);
    return rc;
}

int weir__options_pin(struct weir__options *options, const char *topic,
                      const char *const *texts, struct weir_error *err)
{
    enum weir__topic_option option = WEIR__TOPIC_OPTIONS;
    int rc = WEIR_OK;

    for (; texts != NULL && *texts != NULL && rc == WEIR_OK; texts++) {
        rc = take(options, topic, *texts, &option, err);
        if (rc == WEIR_OK)
            options->pinned |= UINT64_C(1) << option;
    }
    return rc;
}

int weir__options_fit_one(const struct weir__options *options,
                          enum weir__topic_option option, const char *kind,
                          struct weir_error *err)
{
    if (!weir__options_has(options, option))
        return WEIR_OK;
    if (option == WEIR__TOPIC_lease && options->lease == WEIR__OPTION_NONE &&
        strcmp(kind, "bounded") != 0)
        return weir__error_set(err, WEIR_EINVAL,
                               "lease: a topic of kind %s needs one: only one "
                               "of kind bounded may have none",
                               kind);
    if (option == WEIR__TOPIC_key && strcmp(kind, "delay") == 0) {
        struct weir__option row = weir__topic_options[WEIR__TOPIC_unique];

        row.name = "key"; /* elsewhere it is one of the server */
        return weir__option_check(&row, options->key, err);
    }
    return weir__topic_option_fits(option, kind, err);
}

int weir__options_fit(const struct weir__options *options, const char *kind,
                      struct weir_error *err)
{
    int rc = WEIR_OK;

    for (int i = 0; i < WEIR__TOPIC_OPTIONS && rc == WEIR_OK; i++)
        rc = weir__options_fit_one(options, (enum weir__topic_option)i, kind,
                                   err);
    return rc;
}
