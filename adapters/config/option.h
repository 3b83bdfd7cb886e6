/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CONFIG_OPTION_H
#define WEIR_CONFIG_OPTION_H

/* The options that a configuration file knows: those of topics (core/option.h)
 * and its own, and how a value's text becomes what adapters/config/config.h
 * holds. Knows nothing of libConfuse. */

#include "adapters/config/place.h"
#include "core/option.h"

struct weir__config_option {
    const char *section; /* redis, worker, topic */
    const char *name;
    enum weir__option_form form;
    /* Of its struct in struct weir__config, or weir__config_topic where the
     * section is topic. */
    size_t offset;
    int64_t min, max, fallback; /* of numbers */
    const char *word;           /* stands for `word_value`; NULL: no word */
    int64_t word_value;
};

/* Every option there is; a NULL name ends the table. The order is the one in
 * which an error lists them. */
extern const struct weir__config_option weir__config_options[];

enum { WEIR__CONFIG_OPTION_COUNT = 43 };

/* NULL: `section` has no such option. */
const struct weir__config_option *weir__config_option_find(const char *section,
                                                           const char *name);

/* Is its value a list of texts? */
bool weir__config_option_is_list(const struct weir__config_option *option);

/* Give every number of `section` its default. `base` is what the table's
 * offsets count from, here and below. */
void weir__config_option_defaults(const char *section, void *base);

/* Read one value, or one more element of a list (`is_more`), and note the
 * place's line. WEIR_EINVAL: not a value of this option, or it was given
 * before; WEIR_ENOMEM. */
int weir__config_option_take(const struct weir__config_option *option,
                             void *base, const char *text, bool is_more,
                             const struct weir__config_place *place);

/* Free the texts and lists of `section`. */
void weir__config_option_release(const char *section, void *base);

/* A copy to be freed with weir__mem_free; NULL when out of memory. */
char *weir__config_text_copy(const char *text);

/* Refuse a name that is no section ("root" as `section`) or no option of
 * `section`, and say what was probably meant. Returns WEIR_EINVAL. */
int weir__config_option_unknown(const char *section, const char *name,
                                const struct weir__config_place *place);

#endif
