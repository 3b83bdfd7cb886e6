/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CONFIG_OPTION_H
#define WEIR_CONFIG_OPTION_H

/* What a configuration file says beside the options of topics
 * (core/options.h), and where adapters/config/config.h holds that. */

#include "core/option.h"

/* Of the sections redis and worker: X(section, name, holder, form, min, max,
 * fallback, word); of topic: what is no option that could be stored; of cron:
 * all of a schedule, whose meaning is not looked at here. */
/* clang-format off */
#define WEIR__CONFIG_MAP(X)                                                   \
    X(redis, url, text, TEXT, 0, 0, 0, NULL)                                  \
    X(redis, data, text, TEXT, 0, 0, 0, NULL)                                 \
    X(worker, plugin_path, list, PATHS, 0, 0, 0, NULL)                        \
    X(worker, name, text, WORKER, 0, 0, 0, NULL)                              \
    X(worker, workers, number, COUNT, 1, 256, 1, NULL)                        \
    X(worker, log_level, number, CHOICE, 0, 3, WEIR_LEVEL_INFO,               \
      "debug|info|warn|error")                                                \
    X(worker, log_format, number, CHOICE, 0, 1, 0, "text|json")               \
    X(worker, drain, number, DURATION, 0, 7 * WEIR__DAY_MS,                   \
      30 * WEIR__SECOND_MS, NULL)                                             \
    X(worker, block_warn, number, DURATION, 1, WEIR__HOUR_MS, 100, NULL)      \
    X(worker, threads, number, COUNT, 1, 256, 8, NULL)                        \
    X(worker, allow_eviction, number, SWITCH, 0, 1, 0, NULL)
#define WEIR__CONFIG_TOPIC_MAP(X)                                             \
    X(topic, handler, text, TEXT, 0, 0, 0, NULL)                              \
    X(topic, options, list, PAIRS, 0, 0, 0, NULL)
#define WEIR__CONFIG_CRON_MAP(X)                                              \
    X(cron, to, text, TEXT, 0, 0, 0, NULL)                                    \
    X(cron, at, text, TEXT, 0, 0, 0, NULL)                                    \
    X(cron, every, text, TEXT, 0, 0, 0, NULL)                                 \
    X(cron, zone, text, TEXT, 0, 0, 0, NULL)                                  \
    X(cron, body, text, TEXT, 0, 0, 0, NULL)                                  \
    X(cron, missed, text, TEXT, 0, 0, 0, NULL)                                \
    X(cron, overlap, text, TEXT, 0, 0, 0, NULL)                               \
    X(cron, jitter, text, TEXT, 0, 0, 0, NULL)                                \
    X(cron, retry, text, TEXT, 0, 0, 0, NULL)                                 \
    X(cron, ttl, text, TEXT, 0, 0, 0, NULL)                                   \
    X(cron, url, text, TEXT, 0, 0, 0, NULL)
/* clang-format on */

struct weir__config_option {
    const char *section;
    struct weir__option row;
    size_t offset; /* in struct weir__config, or weir__config_topic, _cron */
};

/* A NULL section ends the table. */
extern const struct weir__config_option weir__config_options[];

enum { WEIR__CONFIG_SECTIONS = 4 };
extern const char *const weir__config_sections[];

/* NULL: none is called that. */
const char *weir__config_section(const char *name);

bool weir__config_is_list(const struct weir__option *row);

/* A struct weir__config_number, _text or _list in its struct. */
void *weir__config_holder(const struct weir__config_option *option, void *base);

/* Free the texts and lists of a section. */
void weir__config_release(const char *section, void *base);

/* What to write instead of a name that is no section (`section` is NULL) or no
 * option of `section`. WEIR_EINVAL. */
int weir__config_unknown(const char *section, const char *name,
                         struct weir_error *ret_why);

#endif
