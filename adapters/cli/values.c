/* SPDX-License-Identifier: MIT */

/* Reading the values of options and operands. */

#include "adapters/cli/options.h"

#include "core/error.h"
#include "core/ladder.h"
#include "core/mem.h"
#include "core/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *weir__text_behind(const char *text, const char *prefix)
{
    size_t len = strlen(prefix);

    return strncmp(text, prefix, len) == 0 ? text + len : text;
}

static int refuse_bounds(const char *name, const char *text,
                         struct weir__bounds bounds, struct weir_error *err)
{
    return weir__error_set(err, WEIR_EINVAL,
                           "%s: %.60s is out of bounds; it takes %s", name,
                           text, bounds.words);
}

int weir__value_number(const char *name, const char *text,
                       struct weir__bounds bounds, int64_t *ret_number,
                       struct weir_error *err)
{
    char *end = NULL;
    long long number;

    if (text == NULL)
        return WEIR_OK;
    errno = 0;
    number = strtoll(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0')
        return weir__error_set(err, WEIR_EINVAL,
                               "%s: \"%.60s\" is not a whole number; it takes "
                               "%s",
                               name, text, bounds.words);
    if (errno == ERANGE || number < bounds.min || number > bounds.max)
        return refuse_bounds(name, text, bounds, err);
    *ret_number = number;
    return WEIR_OK;
}

int weir__value_duration(const char *name, const char *text,
                         struct weir__bounds bounds, int64_t *ret_ms,
                         struct weir_error *err)
{
    struct weir_error why = {0};
    int64_t ms = 0;

    if (text == NULL)
        return WEIR_OK;
    if (weir__duration_parse(weir__slice_str(text), &ms, &why) < 0)
        return weir__error_set(err, WEIR_EINVAL, "%s: %s", name, why.text);
    if (ms < bounds.min || ms > bounds.max)
        return refuse_bounds(name, text, bounds, err);
    *ret_ms = ms;
    return WEIR_OK;
}

int weir__value_ladder(const char *name, const char *text,
                       struct weir_error *err)
{
    struct weir__ladder ladder;
    struct weir_error why = {0};

    if (text == NULL ||
        weir__ladder_parse(weir__slice_str(text), &ladder, &why) == WEIR_OK)
        return WEIR_OK;
    return weir__error_set(
        err, WEIR_EINVAL, "%s: %s", name,
        weir__text_behind(weir__text_behind(why.text, "retry ladder, "),
                          "retry ladder: "));
}

bool weir__told(int rc, const struct weir_error *err)
{
    if (rc < 0)
        weir__complain("%s", err->text);
    return rc == WEIR_OK;
}

char *weir__value_said(const char *name, const char *value)
{
    size_t size = strlen(name) + 1 + strlen(value) + 1;
    char *said = weir__mem_new(size);

    if (said == NULL)
        weir__complain("out of memory");
    else
        (void)snprintf(said, size, "%s=%s", name, value); /* fits */
    return said;
}

bool weir__operand_topic(const char *topic)
{
    struct weir_error err = {0};

    return weir__told(weir__topic_check(weir__slice_str(topic), &err), &err);
}

bool weir__operand_id(const char *id, bool is_new)
{
    struct weir_slice slice = weir__slice_str(id);
    struct weir_error err = {0};

    return weir__told(is_new ? weir__id_check(slice, &err)
                             : weir__id_check_any(slice, &err),
                      &err);
}
