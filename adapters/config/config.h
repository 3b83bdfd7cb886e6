/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CONFIG_CONFIG_H
#define WEIR_CONFIG_CONFIG_H

/* The configuration file of the weir program, as written: what each option
 * says, that it was given at all, and on which line. Read with libConfuse.
 *
 * Has no side effects, so that `weir check` can call it: opens the named file
 * and nothing else, reads no environment. Knows neither flags nor what is
 * stored with a topic; who wins is decided by the caller, which is why every
 * option says whether it was given. Does not look into redis urls and does not
 * open plugins.
 *
 * libConfuse keeps the state of its scanner in globals: one thread at a time
 * may read a configuration. When its own allocations fail it may end the
 * process; ours are returned as WEIR_ENOMEM. */

#include "core/option.h"

enum {
    WEIR__CONFIG_NONE = WEIR__OPTION_NONE, /* where it is allowed */
    WEIR__CONFIG_AUTO = WEIR__OPTION_AUTO  /* prefetch only */
};

/* In all three, `line` is where the option stands, from 1; 0: not given. It is
 * the first member of each. */

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

struct weir__config_topic {
    int line; /* of its opening brace */
    char *name;
    struct weir__config_text kind;    /* a kind's name; default "delay" */
    struct weir__config_text handler; /* plugin name or path */
    struct weir__config_list options; /* each "key=value" */
    struct weir__config_text retry;   /* a ladder that parses */
    struct weir__config_text on_dead; /* NULL and given: none */
    struct weir__config_number retry_jitter; /* percent */
    struct weir__config_number concurrency;  /* jobs */
    struct weir__config_number prefetch;     /* jobs, or AUTO */
    struct weir__config_number weight;
    struct weir__config_number timeout; /* ms */
    struct weir__config_number lease;   /* ms */
    struct weir__config_number max_crashes;
    struct weir__config_number ttl;         /* ms, or NONE */
    struct weir__config_number max_dead;    /* jobs */
    struct weir__config_number max_body;    /* bytes */
    struct weir__config_number max_pending; /* jobs, or NONE */
    struct weir__config_number delay;       /* ms */
    struct weir__config_number consumers;
    struct weir__config_number lock;     /* 0 or 1, and the next one */
    struct weir__config_number auto_ack; /* 0: no */
    struct weir__config_number parking;  /* 0: atomic, 1: two-step */
    struct weir__config_text key;
    struct weir__config_text group;
    struct weir__config_text on_retry;
    struct weir__config_number start;      /* 1: $ */
    struct weir__config_number after;      /* 1: delete */
    struct weir__config_number claim_idle; /* ms */
    struct weir__config_number batch;
    struct weir__config_number length;    /* events */
    struct weir__config_number overflow;  /* enum weir__overflow */
    struct weir__config_number max_age;   /* ms, or NONE, and the next one */
    struct weir__config_number group_ttl; /* ms, or NONE */
    struct weir__config_number linger;    /* ms */
    struct weir__config_list hot;         /* each a pattern of groups */
};

struct weir__config {
    struct weir__config_text url;          /* not looked into */
    struct weir__config_text data;         /* directory of a private server */
    struct weir__config_list plugin_path;  /* directories */
    struct weir__config_text name;         /* of the worker */
    struct weir__config_number log_level;  /* enum weir_level */
    struct weir__config_number drain;      /* ms */
    struct weir__config_number block_warn; /* ms */
    struct weir__config_number threads;
    struct weir__config_number allow_eviction; /* 0, 1 */
    struct weir__config_topic *topics;         /* in the order of the file */
    size_t topic_count;
};

/* Read the file at `path`; the caller frees `*ret_config`. WEIR_EINVAL with
 * the sentence "FILE:LINE: what is wrong: what to write instead"; WEIR_ESYSTEM
 * (it cannot be read), WEIR_ETOOBIG (more than 1 MiB), both "FILE: ...";
 * WEIR_ENOMEM. A long path keeps its end only. `err` may be NULL. BLOCKS on
 * the file. */
int weir__config_read(const char *path, struct weir__config **ret_config,
                      struct weir_error *err);

/* Where a topic's option stands; 0: it was not given. */
int weir__config_topic_line(const struct weir__config_topic *topic,
                            enum weir__topic_option option);

/* NULL is fine. */
void weir__config_free(struct weir__config *config);

#endif
