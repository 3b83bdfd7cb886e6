/* SPDX-License-Identifier: MIT */
#ifndef WEIR_OPTIONS_H
#define WEIR_OPTIONS_H

/* The options of a topic: the table of them, and their values. A new option is
 * a row here; whoever uses its value finds it in struct weir__options under its
 * name. A host program, the configuration file, flags, `weir topic set` and
 * what is stored on the server all say "name=value", and are read here, one
 * over the other: the file, what is stored, the flags. Pure functions. */

#include <weir/weir.h>

#include "core/ladder.h"
#include "core/option.h"

/* Kinds whose jobs are retried, moved elsewhere, and added with a body. */
#define WEIR__RETRYING (WEIR__DELAY | WEIR__LIST | WEIR__STREAM | WEIR__BOUNDED)
#define WEIR__BURYING  (WEIR__DELAY | WEIR__LIST | WEIR__STREAM)
#define WEIR__EXTERNAL (WEIR__LIST | WEIR__STREAM)
#define WEIR__CLASSIC  (WEIR__SYNC | WEIR__CONCURRENT)

/* In the order in which an error lists them:
 * X(name, form, kinds, min, max, fallback, word, word_value); of texts `max` is
 * the most bytes. */
/* clang-format off */
#define WEIR__TOPIC_OPTION_MAP(X)                                             \
    X(kind, KIND, WEIR__KINDS_ALL, 0, 16, 0, NULL, 0)                         \
    X(retry, LADDER, WEIR__RETRYING, 0, 0, 0, NULL, 0)                        \
    X(retry_jitter, PERCENT, WEIR__RETRYING, 0, 50, 0, NULL, 0)               \
    X(concurrency, COUNT, WEIR__KINDS_ALL, 1, 100000, 256, NULL, 0)           \
    X(prefetch, LIMIT, WEIR__RETRYING, 0, 100000, WEIR__OPTION_AUTO,          \
      "auto", WEIR__OPTION_AUTO)                                              \
    X(weight, COUNT, WEIR__KINDS_ALL, 1, 1000, 1, NULL, 0)                    \
    X(timeout, DURATION, WEIR__KINDS_ALL, 10, 7 * WEIR__DAY_MS,               \
      30 * WEIR__SECOND_MS, NULL, 0)                                          \
    X(lease, DURATION, WEIR__KINDS_ALL, 300, WEIR__HOUR_MS,                   \
      5 * WEIR__SECOND_MS, "none", WEIR__OPTION_NONE)                         \
    X(max_crashes, COUNT, WEIR__RETRYING, 1, 100, 3, NULL, 0)                 \
    X(ttl, DURATION, WEIR__KINDS_ALL & ~WEIR__LIST, 1, 3650 * WEIR__DAY_MS,   \
      WEIR__OPTION_NONE, "none", WEIR__OPTION_NONE)                           \
    X(max_dead, COUNT, WEIR__BURYING, 1, UINT32_MAX, 10000, NULL, 0)          \
    X(on_dead, TOPIC, WEIR__BURYING, 0, WEIR_MAX_TOPIC, 0, "none", 0)         \
    X(max_body, SIZE, WEIR__DELAY | WEIR__CLASSIC, 1, 16 << 20, 1 << 20,      \
      NULL, 0)                                                                \
    X(max_pending, LIMIT, WEIR__DELAY | WEIR__CLASSIC, 1, UINT32_MAX,         \
      WEIR__OPTION_NONE, "none", WEIR__OPTION_NONE)                           \
    X(rate, RATE, WEIR__DELAY, 0, 40, 0, "none", 0)                           \
    X(parallel, LIMIT, WEIR__DELAY, 1, 1000000, WEIR__OPTION_NONE, "none",    \
      WEIR__OPTION_NONE)                                                      \
    X(key_rate, RATE, WEIR__DELAY, 0, 40, 0, "none", 0)                       \
    X(key_parallel, LIMIT, WEIR__DELAY, 1, 1000, WEIR__OPTION_NONE, "none",   \
      WEIR__OPTION_NONE)                                                      \
    X(ageing, DURATION, WEIR__DELAY, 1000, 30 * WEIR__DAY_MS,                 \
      60 * WEIR__SECOND_MS, NULL, 0)                                          \
    X(durability, DURABILITY, WEIR__DELAY | WEIR__BOUNDED, 0, 99,             \
      WEIR__DURABILITY_SERVER, NULL, 0)                                       \
    X(unique, FIELD, WEIR__DELAY, 0, 128, 0, NULL, 0)                         \
    X(unique_for, UNTIL, WEIR__DELAY, 1, 3650 * WEIR__DAY_MS, 0, NULL, 0)     \
    X(unique_else, CHOICE, WEIR__DELAY, 0, 3, WEIR__KEY_REJECT,               \
      "reject|replace|debounce|throttle", 0)                                  \
    X(max_wait, DURATION, WEIR__DELAY, 1, 3650 * WEIR__DAY_MS,                \
      WEIR__OPTION_NONE, "none", WEIR__OPTION_NONE)                           \
    X(delay, DURATION, WEIR__CLASSIC, 0, 365 * WEIR__DAY_MS,                  \
      WEIR__SECOND_MS, NULL, 0)                                               \
    X(consumers, COUNT, WEIR__CLASSIC, 1, 1000, 1, NULL, 0)                   \
    X(lock, SWITCH, WEIR__SYNC, 0, 1, 1, NULL, 0)                             \
    X(auto_ack, SWITCH, WEIR__CONCURRENT | WEIR__LIST, 0, 1, 0, NULL, 0)      \
    X(parking, CHOICE, WEIR__CONCURRENT, 0, 1, 0, "atomic|two-step", 0)       \
    X(key, TEXT, WEIR__EXTERNAL | WEIR__DELAY, 0, 128, 0, NULL, 0)            \
    X(end, CHOICE, WEIR__LIST, 0, 1, 0, "left|right", 0)                      \
    X(body, CHOICE, WEIR__EXTERNAL, 0, 3, 0, "auto|json|text|msgpack", 0)     \
    X(group, TEXT, WEIR__STREAM, 0, 128, 0, NULL, 0)                          \
    X(on_retry, TOPIC, WEIR__EXTERNAL, 0, WEIR_MAX_TOPIC, 0, "none", 0)       \
    X(start, CHOICE, WEIR__STREAM, 0, 1, 0, "0|$", 0)                         \
    X(after, CHOICE, WEIR__STREAM, 0, 1, 0, "keep|delete", 0)                 \
    X(claim_idle, DURATION, WEIR__STREAM, 1, 7 * WEIR__DAY_MS,                \
      60 * WEIR__SECOND_MS, NULL, 0)                                          \
    X(batch, COUNT, WEIR__KINDS_ALL, 1, 1000, 128, NULL, 0)                   \
    X(length, COUNT, WEIR__BOUNDED, 1, 1000000, 1000, NULL, 0)                \
    X(overflow, CHOICE, WEIR__BOUNDED, 0, 2, 0,                               \
      "drop-oldest|drop-new|reject", 0)                                       \
    X(max_age, DURATION, WEIR__BOUNDED, 1, 3650 * WEIR__DAY_MS,               \
      WEIR__OPTION_NONE, "none", WEIR__OPTION_NONE)                           \
    X(group_ttl, DURATION, WEIR__BOUNDED, 1000, 365 * WEIR__DAY_MS,           \
      WEIR__OPTION_NONE, "none", WEIR__OPTION_NONE)                           \
    X(linger, DURATION, WEIR__BOUNDED, 0, WEIR__HOUR_MS, 0, NULL, 0)          \
    X(hot, GROUPS, WEIR__BOUNDED, 0, 500, 0, NULL, 0)                         \
    X(groups, CHOSEN, WEIR__BOUNDED, 0, 500, 0, NULL, 0)
/* clang-format on */

/* Values of `unique_else`. */
enum {
    WEIR__KEY_REJECT,
    WEIR__KEY_REPLACE,
    WEIR__KEY_DEBOUNCE,
    WEIR__KEY_THROTTLE
};

/* Values of `end`. */
enum { WEIR__LEFT, WEIR__RIGHT };

/* Values of `body`. */
enum { WEIR__AUTO, WEIR__JSON, WEIR__TEXT, WEIR__MSGPACK };

/* Values of `overflow`. */
enum { WEIR__DROP_OLDEST, WEIR__DROP_NEW, WEIR__REJECT };

enum weir__topic_option {
#define PLACE(name, form, kinds, min, max, fallback, word, value) \
    WEIR__TOPIC_##name,
    WEIR__TOPIC_OPTION_MAP(PLACE) WEIR__TOPIC_OPTIONS
#undef PLACE
};

/* What holds a value, by its form. */
#define WEIR__HOLD_KIND(name, max)       char name[(max) + 1];
#define WEIR__HOLD_TOPIC(name, max)      char name[(max) + 1];
#define WEIR__HOLD_TEXT(name, max)       char name[(max) + 1];
#define WEIR__HOLD_GROUPS(name, max)     char name[(max) + 1];
#define WEIR__HOLD_CHOSEN(name, max)     char name[(max) + 1];
#define WEIR__HOLD_FIELD(name, max)      char name[(max) + 1];
#define WEIR__HOLD_RATE(name, max)       char name[(max) + 1];
#define WEIR__HOLD_LADDER(name, max)     struct weir__ladder name;
#define WEIR__HOLD_SWITCH(name, max)     bool name;
#define WEIR__HOLD_CHOICE(name, max)     uint32_t name;
#define WEIR__HOLD_COUNT(name, max)      uint32_t name;
#define WEIR__HOLD_PERCENT(name, max)    uint32_t name;
#define WEIR__HOLD_LIMIT(name, max)      int64_t name;
#define WEIR__HOLD_DURATION(name, max)   int64_t name; /* ms */
#define WEIR__HOLD_SIZE(name, max)       int64_t name; /* bytes */
#define WEIR__HOLD_DURABILITY(name, max) uint32_t name;
#define WEIR__HOLD_UNTIL(name, max)      int64_t name; /* ms, or how long */

/* The values of all of them: a member of each option's name. A text that was
 * not given, and "none", is empty. */
struct weir__options {
    uint64_t given;  /* a bit for each that is not the default */
    uint64_t pinned; /* for each that what is stored does not beat */
#define HOLD(name, form, kinds, min, max, fallback, word, value) \
    WEIR__HOLD_##form(name, max)
    WEIR__TOPIC_OPTION_MAP(HOLD)
#undef HOLD
};

/* WEIR__TOPIC_OPTIONS rows. */
extern const struct weir__option weir__topic_options[];

/* All defaults. */
extern const struct weir__options weir__options_default;

/* Its place in the table; WEIR__TOPIC_OPTIONS: there is no such option. */
enum weir__topic_option weir__topic_option_find(struct weir_slice name);

/* Do topics of this kind have the option? WEIR_EINVAL: no, and the sentence
 * says which have. */
int weir__topic_option_fits(enum weir__topic_option option, const char *kind,
                            struct weir_error *err);

/* May it be stored with the topic? WEIR_EINVAL: no, it is each worker's own. */
int weir__topic_option_stores(enum weir__topic_option option,
                              struct weir_error *err);

void weir__options_init(struct weir__options *options);

bool weir__options_has(const struct weir__options *options,
                       enum weir__topic_option option);

/* Of delay topics `key` is a path in bodies, elsewhere a name on the server. */
bool weir__options_key_is_path(const struct weir__options *options);

/* How long a claim lasts; where there are no leases, how often one looks. */
int64_t weir__options_lease_ms(const struct weir__options *options);

/* Read "name=value" texts, ended by NULL, over what is there; an empty value:
 * back to the default. `topic` is whose options they are. WEIR_EINVAL. */
int weir__options_read(struct weir__options *options, const char *topic,
                       const char *const *texts, struct weir_error *err);

/* The same of texts that beat what is stored; NULL: none. */
int weir__options_pin(struct weir__options *options, const char *topic,
                      const char *const *texts, struct weir_error *err);

/* The same with one option's value. */
int weir__options_put(struct weir__options *options, const char *topic,
                      enum weir__topic_option option, const char *value,
                      struct weir_error *err);

/* May a topic of this kind have it with this value, where it was given?
 * WEIR_EINVAL. */
int weir__options_fit_one(const struct weir__options *options,
                          enum weir__topic_option option, const char *kind,
                          struct weir_error *err);

/* The same of all: the first that does not fit. */
int weir__options_fit(const struct weir__options *options, const char *kind,
                      struct weir_error *err);

#endif
