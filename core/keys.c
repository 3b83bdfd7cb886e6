/* SPDX-License-Identifier: MIT */
#include "core/keys.h"

#include <string.h>

#include "core/error.h"
#include "core/options.h"
#include "core/record.h"

enum { HOLD, OTHERWISE, MAX_WAIT };

int weir__key_rule_fit(struct weir__key_rule *rule, const char *const names[3],
                       struct weir_error *err)
{
    if (rule->otherwise == WEIR__KEY_THROTTLE && rule->hold <= 0)
        return weir__error_set(err, WEIR_EINVAL,
                               "%s: throttle needs a duration, the window in "
                               "which one job starts: give %s, as in 10m",
                               names[OTHERWISE], names[HOLD]);
    if (rule->otherwise != WEIR__KEY_DEBOUNCE &&
        rule->max_wait != WEIR__OPTION_NONE)
        return weir__error_set(err, WEIR_EINVAL,
                               "%s: only debounce has it: give %s debounce, or "
                               "leave it out",
                               names[MAX_WAIT], names[OTHERWISE]);
    if (rule->hold == 0)
        rule->hold = rule->otherwise == WEIR__KEY_REJECT ? WEIR__UNTIL_DONE
                                                         : WEIR__UNTIL_START;
    return WEIR_OK;
}

/* NULL: the value stays as it is. */
static int read_text(enum weir__topic_option option, const char *name,
                     const char *text, int64_t *value, struct weir_error *err)
{
    struct weir__option row = weir__topic_options[option];

    row.name = name;
    return text == NULL ? WEIR_OK : weir__option_read(&row, text, value, err);
}

int weir__key_rule_read(const struct weir__key_texts *texts,
                        struct weir__key_rule *ret_rule, struct weir_error *err)
{
    struct weir__key_rule rule = {.max_wait = WEIR__OPTION_NONE};
    int64_t otherwise = WEIR__KEY_REJECT;
    int rc = read_text(WEIR__TOPIC_unique_for, texts->names[HOLD], texts->hold,
                       &rule.hold, err);

    if (rc == WEIR_OK)
        rc = read_text(WEIR__TOPIC_unique_else, texts->names[OTHERWISE],
                       texts->otherwise, &otherwise, err);
    if (rc == WEIR_OK)
        rc = read_text(WEIR__TOPIC_max_wait, texts->names[MAX_WAIT],
                       texts->max_wait, &rule.max_wait, err);
    rule.otherwise = (uint32_t)otherwise;
    if (rc == WEIR_OK)
        rc = weir__key_rule_fit(&rule, texts->names, err);
    if (rc == WEIR_OK)
        *ret_rule = rule;
    return rc;
}

int weir__key_check(const char *name, struct weir_slice key,
                    struct weir_error *err)
{
    if (key.len > 0 && key.len <= WEIR__UNIQUE_MAX)
        return WEIR_OK;
    return weir__error_set(err, WEIR_EINVAL,
                           "%s: a key of %zu bytes: wanted 1 to %d", name,
                           key.len, WEIR__UNIQUE_MAX);
}

static const char *const levels[WEIR__LEVELS] = {"urgent", "high", "normal",
                                                 "low"};

const char *weir__priority_name(uint32_t priority)
{
    return priority == 0 || priority > WEIR__LEVELS ? NULL
                                                    : levels[priority - 1];
}

int weir__priority_read(const char *name, const char *text,
                        uint32_t *ret_priority, struct weir_error *err)
{
    uint32_t level = 0;

    *ret_priority = 0;
    while (text != NULL && level < WEIR__LEVELS &&
           strcmp(text, levels[level]) != 0)
        level++;
    if (level == WEIR__LEVELS)
        return weir__error_set(err, WEIR_EINVAL,
                               "%s: \"%.40s\" is not urgent, high, normal or "
                               "low",
                               name, text);
    if (text != NULL && level != WEIR__LEVEL_NORMAL)
        *ret_priority = level + 1;
    return WEIR_OK;
}
