/* SPDX-License-Identifier: MIT */
#ifndef WEIR_OPTION_H
#define WEIR_OPTION_H

/* Options as text: how their values are written, and which of them a topic
 * has, with bounds and defaults. The configuration file and what is stored
 * with a topic share this table. Pure functions; every error names the option
 * and what to write instead. */

#include <weir/base.h>

/* How a value is written. */
enum weir__option_form {
    WEIR__OPTION_TEXT,     /* anything but nothing */
    WEIR__OPTION_WORKER,   /* a worker's name */
    WEIR__OPTION_KIND,     /* a kind of topic */
    WEIR__OPTION_TOPIC,    /* a topic, or "none" */
    WEIR__OPTION_LADDER,   /* the delays between attempts */
    WEIR__OPTION_PATHS,    /* list of texts */
    WEIR__OPTION_PAIRS,    /* list of key=value */
    WEIR__OPTION_GROUPS,   /* list of patterns of groups, or blanks between */
    WEIR__OPTION_LEVEL,    /* enum weir_level by name */
    WEIR__OPTION_SWITCH,   /* yes or no: 1 or 0 */
    WEIR__OPTION_CHOICE,   /* one of the words in `word`: its place there */
    WEIR__OPTION_COUNT,    /* digits */
    WEIR__OPTION_PERCENT,  /* digits, perhaps with % */
    WEIR__OPTION_DURATION, /* digits and a unit; ms */
    WEIR__OPTION_SIZE      /* digits, perhaps with KiB, MiB, GiB; bytes */
};

enum {
    WEIR__OPTION_NONE = -1, /* "none" where the option allows it */
    WEIR__OPTION_AUTO = -2  /* "auto", prefetch only */
};

struct weir__option {
    const char *name;
    enum weir__option_form form;
    int64_t min, max, fallback; /* of numbers; of texts: most bytes, or 0 */
    /* Stands for `word_value`; NULL: no word. Of a choice: "this|that". */
    const char *word;
    int64_t word_value;
};

#define WEIR__SECOND_MS INT64_C(1000)
#define WEIR__HOUR_MS   (3600 * WEIR__SECOND_MS)
#define WEIR__DAY_MS    (24 * WEIR__HOUR_MS)

/* Every option of a topic, in the order in which an error lists them:
 * X(name, form, min, max, fallback, word, word_value) */
/* clang-format off */
#define WEIR__TOPIC_OPTION_MAP(X)                                             \
    X(kind, KIND, 0, 0, 0, NULL, 0)                                           \
    X(handler, TEXT, 0, 0, 0, NULL, 0)                                        \
    X(options, PAIRS, 0, 0, 0, NULL, 0)                                       \
    X(retry, LADDER, 0, 0, 0, NULL, 0)                                        \
    X(retry_jitter, PERCENT, 0, 50, 0, NULL, 0)                               \
    X(concurrency, COUNT, 1, 100000, 256, NULL, 0)                            \
    X(prefetch, COUNT, 0, 100000, WEIR__OPTION_AUTO, "auto",                  \
      WEIR__OPTION_AUTO)                                                      \
    X(weight, COUNT, 1, 1000, 1, NULL, 0)                                     \
    X(timeout, DURATION, 10, 7 * WEIR__DAY_MS, 30 * WEIR__SECOND_MS, NULL, 0) \
    X(lease, DURATION, 300, WEIR__HOUR_MS, 5 * WEIR__SECOND_MS, "none",       \
      WEIR__OPTION_NONE)                                                      \
    X(max_crashes, COUNT, 1, 100, 3, NULL, 0)                                 \
    X(ttl, DURATION, 1, 3650 * WEIR__DAY_MS, WEIR__OPTION_NONE, "none",       \
      WEIR__OPTION_NONE)                                                      \
    X(max_dead, COUNT, 1, UINT32_MAX, 10000, NULL, 0)                         \
    X(on_dead, TOPIC, 0, 0, 0, "none", 0)                                     \
    X(max_body, SIZE, 1, 16 << 20, 1 << 20, NULL, 0)                          \
    X(max_pending, COUNT, 1, UINT32_MAX, WEIR__OPTION_NONE, "none",           \
      WEIR__OPTION_NONE)                                                      \
    X(delay, DURATION, 0, 365 * WEIR__DAY_MS, WEIR__SECOND_MS, NULL, 0)       \
    X(consumers, COUNT, 1, 1000, 1, NULL, 0)                                  \
    X(lock, SWITCH, 0, 1, 1, NULL, 0)                                         \
    X(auto_ack, SWITCH, 0, 1, 0, NULL, 0)                                     \
    X(parking, CHOICE, 0, 1, 0, "atomic|two-step", 0)                         \
    X(key, TEXT, 0, 128, 0, NULL, 0)                                          \
    X(group, TEXT, 0, 128, 0, NULL, 0)                                        \
    X(on_retry, TOPIC, 0, 0, 0, "none", 0)                                    \
    X(start, CHOICE, 0, 1, 0, "0|$", 0)                                       \
    X(after, CHOICE, 0, 1, 0, "keep|delete", 0)                               \
    X(claim_idle, DURATION, 1, 7 * WEIR__DAY_MS, 60 * WEIR__SECOND_MS, NULL,  \
      0)                                                                      \
    X(batch, COUNT, 1, 1000, 128, NULL, 0)                                    \
    X(length, COUNT, 1, 1000000, 1000, NULL, 0)                               \
    X(overflow, CHOICE, 0, 2, 0, "drop-oldest|drop-new|reject", 0)            \
    X(max_age, DURATION, 1, 3650 * WEIR__DAY_MS, WEIR__OPTION_NONE, "none",   \
      WEIR__OPTION_NONE)                                                      \
    X(group_ttl, DURATION, 1000, 365 * WEIR__DAY_MS, WEIR__OPTION_NONE,       \
      "none", WEIR__OPTION_NONE)                                              \
    X(linger, DURATION, 0, WEIR__HOUR_MS, 0, NULL, 0)                         \
    X(hot, GROUPS, 0, 0, 0, NULL, 0)
/* clang-format on */

#define WEIR__TOPIC_OPTION_NAME(name, form, min, max, fallback, word, value) \
    WEIR__TOPIC_##name,
enum weir__topic_option {
    WEIR__TOPIC_OPTION_MAP(WEIR__TOPIC_OPTION_NAME) WEIR__TOPIC_OPTIONS
};
#undef WEIR__TOPIC_OPTION_NAME

/* WEIR__TOPIC_OPTIONS rows. */
extern const struct weir__option weir__topic_options[];

/* Its place in the table; WEIR__TOPIC_OPTIONS: there is no such option. */
enum weir__topic_option weir__topic_option_find(struct weir_slice name);

/* Do topics of this kind have the option? WEIR_EINVAL: no, and the sentence
 * says which have. */
int weir__topic_option_fits(enum weir__topic_option option, const char *kind,
                            struct weir_error *err);

/* May topics of this kind be without leases? WEIR_EINVAL. */
int weir__topic_unleased_fits(const char *kind, struct weir_error *err);

/* Is its value a number, or a word that stands for one? */
bool weir__option_is_number(const struct weir__option *option);

/* Read a number in the option's form. */
int weir__option_number(const struct weir__option *option, const char *text,
                        int64_t *ret_value, struct weir_error *err);

/* Check a text, or one element of a list. */
int weir__option_check(const struct weir__option *option, const char *text,
                       struct weir_error *err);

/* Either of the two, or the option's word; *ret_value is the number, 0 for
 * texts. WEIR_EINVAL. */
int weir__option_read(const struct weir__option *option, const char *text,
                      int64_t *ret_value, struct weir_error *err);

#endif
