/* SPDX-License-Identifier: MIT */
#ifndef WEIR_OPTION_H
#define WEIR_OPTION_H

/* An option as text: how its value is written, and within which bounds. Pure
 * functions; every error names the option and what to write instead. Which
 * options there are is said elsewhere: those of a topic in core/options.h,
 * those of the program in adapters/config. */

#include <weir/base.h>

/* How a value is written. */
enum weir__option_form {
    WEIR__OPTION_TEXT,       /* anything but nothing */
    WEIR__OPTION_WORKER,     /* a worker's name */
    WEIR__OPTION_KIND,       /* a kind of topic */
    WEIR__OPTION_TOPIC,      /* a topic, or "none" */
    WEIR__OPTION_LADDER,     /* the delays between attempts */
    WEIR__OPTION_PATHS,      /* list of texts */
    WEIR__OPTION_PAIRS,      /* list of key=value */
    WEIR__OPTION_GROUPS,     /* list of patterns of groups, or blanks between */
    WEIR__OPTION_CHOSEN,     /* the same, without weights, some behind a ! */
    WEIR__OPTION_FIELD,      /* a place in the body, as in body.order */
    WEIR__OPTION_RATE,       /* so many in a time, and perhaps a burst */
    WEIR__OPTION_SWITCH,     /* yes or no: 1 or 0 */
    WEIR__OPTION_DURABILITY, /* server, replica or fsync, maybe with :N */
    WEIR__OPTION_UNTIL,      /* a duration, until-start or until-done */
    WEIR__OPTION_CHOICE,     /* one of the words in `word`: its place there */
    WEIR__OPTION_COUNT,      /* digits; within 32 bits */
    WEIR__OPTION_LIMIT,      /* digits, or the option's word */
    WEIR__OPTION_PERCENT,    /* digits, perhaps with % */
    WEIR__OPTION_DURATION,   /* digits and a unit; ms */
    WEIR__OPTION_SIZE        /* digits, perhaps with KiB, MiB, GiB; bytes */
};

enum {
    WEIR__OPTION_NONE = -1, /* "none" where the option allows it */
    WEIR__OPTION_AUTO = -2  /* "auto", prefetch only */
};

/* What has to have a job before its add is answered: an option's value. The
 * number of replicas is added. Never 0. */
enum {
    WEIR__DURABILITY_REPLICAS = 0xff, /* mask of their number */
    WEIR__DURABILITY_SERVER = 0x100,  /* the server */
    WEIR__DURABILITY_FSYNC = 0x200    /* its disk, and theirs */
};

/* How long a job has its unique key where that is no time in ms: an option's
 * value. */
enum { WEIR__UNTIL_DONE = -1, WEIR__UNTIL_START = -2 };

struct weir__option {
    const char *name;
    enum weir__option_form form;
    unsigned kinds;             /* of topics that have it */
    int64_t min, max, fallback; /* of numbers; of texts: most bytes, or 0 */
    /* Stands for `word_value`; NULL: no word. Of a choice: "this|that". */
    const char *word;
    int64_t word_value;
};

#define WEIR__SECOND_MS INT64_C(1000)
#define WEIR__HOUR_MS   (3600 * WEIR__SECOND_MS)
#define WEIR__DAY_MS    (24 * WEIR__HOUR_MS)

/* Kinds of topics, X(its set, name); the first is that of topics of which
 * nothing else is known. */
#define WEIR__KIND_MAP(X)     \
    X(DELAY, delay)           \
    X(LIST, list)             \
    X(SYNC, sync)             \
    X(CONCURRENT, concurrent) \
    X(STREAM, stream)         \
    X(BOUNDED, bounded)

enum {
#define PLACE(set, name) WEIR__PLACE_##set,
    WEIR__KIND_MAP(PLACE) WEIR__KINDS
#undef PLACE
};

/* The same as sets. */
enum {
#define SET(set, name) WEIR__##set = 1 << WEIR__PLACE_##set,
    WEIR__KIND_MAP(SET) WEIR__KINDS_ALL = (1 << WEIR__KINDS) - 1
#undef SET
};

/* The set of this kind alone; 0: there is no such kind. */
unsigned weir__kind_named(const char *name);

/* "one, two or three" */
void weir__kinds_list(unsigned kinds, char buf[64]);

/* Is its value a number, or a word that stands for one? */
bool weir__option_is_number(const struct weir__option *option);

/* Check a text, or one element of a list. */
int weir__option_check(const struct weir__option *option, const char *text,
                       struct weir_error *err);

/* Either of the two, or the option's word; *ret_value is the number, 0 for
 * texts. WEIR_EINVAL. */
int weir__option_read(const struct weir__option *option, const char *text,
                      int64_t *ret_value, struct weir_error *err);

#endif
