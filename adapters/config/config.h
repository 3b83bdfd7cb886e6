/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CONFIG_CONFIG_H
#define WEIR_CONFIG_CONFIG_H

/* The configuration file of the weir program, as written: what each option
 * says, that it was given at all, and on which line.
 *
 * Has no side effects, so that `weir check` can call it: opens the named file
 * and nothing else, reads no environment. Knows neither flags nor what is
 * stored with a topic; who wins is decided by the caller, which is why every
 * option says whether it was given. Does not look into redis urls and does not
 * open plugins. */

#include "adapters/config/option.h"
#include "core/options.h"

/* In all three, `line` is where the option stands, from 1; 0: not given. */

struct weir__config_number {
    int line;
    int64_t value; /* the option's default when not given */
};

struct weir__config_text {
    int line;
    char *value; /* NULL when not given */
};

struct weir__config_list {
    int line;
    char **items;
    size_t count;
};

#define WEIR__CONFIG_MEMBER(section, name, holder, form, min, max, fallback, \
                            word)                                            \
    struct weir__config_##holder name;

struct weir__config_topic {
    int line; /* of its opening brace */
    char *name;
    bool is_partial; /* behind a mistake some of it was passed over */
    /* The plugin, by name or path, and its options as "key=value". */
    WEIR__CONFIG_TOPIC_MAP(WEIR__CONFIG_MEMBER)
    /* Each "name=value", as weir_topic_options takes them. */
    struct weir__config_text said[WEIR__TOPIC_OPTIONS];
    struct weir__options values; /* what these say */
};

/* A schedule, by the name that stands behind `cron`. */
struct weir__config_cron {
    int line;
    char *name;
    bool is_partial;
    WEIR__CONFIG_CRON_MAP(WEIR__CONFIG_MEMBER)
};

struct weir__config {
    WEIR__CONFIG_MAP(WEIR__CONFIG_MEMBER)
    struct weir__config_topic *topics; /* in the order of the file */
    size_t topic_count;
    struct weir__config_cron *crons; /* likewise */
    size_t cron_count;
    bool is_partial; /* the same of what stands in neither */
};

/* Told of each mistake: "FILE:LINE: what is wrong: what to write instead". A
 * long path keeps its end only. */
typedef void (*weir__config_tell_fn)(const char *sentence, void *arg);

/* Read the file at `path` to its end, also behind a mistake; the caller frees
 * `*ret_config`. WEIR_EINVAL: there were mistakes; then `*ret_config` is what
 * the rest says. WEIR_ESYSTEM (it cannot be
 * read) and WEIR_ETOOBIG (more than 1 MiB), both "FILE: ..."; WEIR_ENOMEM.
 * BLOCKS on the file. */
int weir__config_read(const char *path, weir__config_tell_fn tell, void *arg,
                      struct weir__config **ret_config);

/* NULL is fine. */
void weir__config_free(struct weir__config *config);

#endif
