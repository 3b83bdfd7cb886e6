/* SPDX-License-Identifier: MIT */
#include "adapters/config/value.h"

static struct weir__option plain(const struct weir__config_option *option)
{
    return (struct weir__option){
        .name = option->name,
        .form = option->form,
        .min = option->min,
        .max = option->max,
        .fallback = option->fallback,
        .word = option->word,
        .word_value = option->word_value,
    };
}

static int fail(const struct weir__config_place *place, int rc,
                const struct weir_error *err)
{
    return rc < 0 ? weir__config_fail(place, rc, "%s", err->text) : rc;
}

int weir__config_number_read(const struct weir__config_option *option,
                             const char *text, int64_t *ret_value,
                             const struct weir__config_place *place)
{
    struct weir__option one = plain(option);
    struct weir_error err;

    return fail(place, weir__option_number(&one, text, ret_value, &err), &err);
}

int weir__config_text_check(const struct weir__config_option *option,
                            const char *text,
                            const struct weir__config_place *place)
{
    struct weir__option one = plain(option);
    struct weir_error err;

    return fail(place, weir__option_check(&one, text, &err), &err);
}
