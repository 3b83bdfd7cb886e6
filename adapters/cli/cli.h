/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_H
#define WEIR_CLI_H

/* What the parts of the weir command share: exit codes, what every command is
 * told, how a command describes itself, how to print and how to talk.
 *
 * Data goes to stdout, talk to stderr. A mistake is one sentence that begins
 * with "weir: ", names the thing and says what to do; whoever finds it prints
 * it and returns the exit code, nobody prints it again. */

#include <weir/base.h>

enum weir__exit {
    WEIR__EXIT_DONE = 0,
    WEIR__EXIT_FAILED = 1,
    WEIR__EXIT_USAGE = 2, /* or configuration */
    WEIR__EXIT_NOT_FOUND = 3,
    WEIR__EXIT_EXISTS = 4,
    WEIR__EXIT_UNREACHABLE = 5,
    /* of plugin try */
    WEIR__EXIT_RETRY = 10,
    WEIR__EXIT_FAIL = 11,
    WEIR__EXIT_SNOOZE = 12,
    WEIR__EXIT_TIMED_OUT = 13,
    WEIR__EXIT_NONE = 100 /* not decided: go on; never leaves the program */
};

/* What every command is told. Strings are borrowed from argv and the
 * environment. */
struct weir__cli {
    const char *redis;      /* NULL: the private server */
    char *own_redis;        /* owned copy of what stood in argv; or NULL */
    bool redis_is_flag;     /* --redis */
    const char *redis_from; /* "--redis", "WEIR_REDIS", "FILE:LINE: url" */
    const char *data;       /* data directory as given; NULL: the default one */
    bool json;
    enum weir_level log_level;
    bool has_log_level;    /* --log-level was given */
    bool has_log_format;   /* --log-format was given */
    const char *worker;    /* name of a worker; NULL: made */
    int64_t block_warn_ms; /* of a worker; 0: the default */
    uint32_t threads;      /* likewise */
};

/* A long option of a command. */
struct weir__flag {
    const char *name;  /* without dashes */
    const char *value; /* what stands for its value in help; NULL: a switch */
    const char *help;  /* with unit, bounds and default */
};

enum { WEIR__FLAGS_MAX = 20, WEIR__FLAGS_REPEATED = 3 };

/* What was given to a command. Borrowed from argv, but `all`. */
struct weir__args {
    /* By position in the command's table; NULL: not given; "" for a switch; the
     * last one of a flag that may be repeated. */
    const char *value[WEIR__FLAGS_MAX];
    /* Each value of those that may be repeated, in order; owned. */
    const char **all[WEIR__FLAGS_REPEATED];
    size_t all_count[WEIR__FLAGS_REPEATED];
    const char *const *operand;
    size_t operand_count;
};

/* In a command: the array `list` as its flags. */
#define WEIR__FLAGS(list) \
    .flags = (list), .flag_count = sizeof(list) / sizeof((list)[0])

struct weir__ask;
struct weir_job_info;

struct weir__command {
    const char *name;     /* "add"; in a group two words: "dead list" */
    const char *operands; /* "TOPIC [ID]": an id may be missing; "TOPIC X...":
                             one X or more; "": there are none */
    const struct weir__flag *flags;
    size_t flag_count;
    size_t repeated_count; /* the first flags, which may be repeated */
    const char *summary;   /* one sentence */
    const char *details;   /* further lines of help; may be NULL */
    bool lists_options;    /* those of a topic, in its help */
    const char *example;
    const char *exits; /* its exit codes with their meaning */

    /* One that asks, prints and exits: see ask.h. `check` and `refuse` may be
     * NULL; WEIR__EXIT_NONE of `refuse`: it has no sentence for this code. */
    bool needs_kind; /* what it asks depends on the topic's kind */
    bool (*check)(struct weir__ask *ask);
    int (*ask)(struct weir__ask *ask);
    enum weir__exit (*refuse)(struct weir__ask *ask, int code);
    enum weir__exit (*print)(struct weir__ask *ask);
    void (*print_job)(const struct weir_job_info *job);

    /* Any other. */
    enum weir__exit (*run)(const struct weir__cli *cli,
                           const struct weir__args *args);
};

/* All of them, in the order of the help. */
#define WEIR__COMMANDS(X) \
    X(run)                \
    X(check)              \
    X(doctor)             \
    X(add)                \
    X(show)               \
    X(list)               \
    X(delete)             \
    X(reschedule)         \
    X(take)               \
    X(settle)             \
    X(renew)              \
    X(pause)              \
    X(resume)             \
    X(purge)              \
    X(stats)              \
    X(workers)            \
    X(topics)             \
    X(topic_list)         \
    X(topic_show)         \
    X(topic_set)          \
    X(topic_delete)       \
    X(cron_add)           \
    X(cron_list)          \
    X(cron_show)          \
    X(cron_pause)         \
    X(cron_resume)        \
    X(cron_run)           \
    X(cron_delete)        \
    X(dead_list)          \
    X(dead_requeue)       \
    X(dead_purge)         \
    X(export)             \
    X(import)             \
    X(plugin_list)        \
    X(plugin_info)        \
    X(plugin_try)         \
    X(plugin_new)         \
    X(web)                \
    X(server_status)      \
    X(server_stop)        \
    X(help)

#define WEIR__DECLARE(name) extern const struct weir__command weir__cmd_##name;
WEIR__COMMANDS(WEIR__DECLARE)

extern const struct weir__command *const weir__commands[];
extern const size_t weir__command_count;

/* Find the command in argv, parse its options, run it. Where nobody reads
 * stdout any more the process ends by SIGPIPE, as other programs do. */
enum weir__exit weir__cli_main(int argc, char **argv);

/* Where this process is the first one of its PID namespace: go on in a child.
 * The first process passes signals on, reaps orphans, and exits as the child
 * does. To be called before any thread or descriptor is there. */
void weir__leave_first_process(void);

/* Whether the reader of stdout is gone: what is printed reaches nobody. */
bool weir__is_unread(void);

/* End as a program does that writes to a pipe without a reader. */
_Noreturn void weir__end_unread(void);

/* The command of this name; NULL: there is none. */
const struct weir__command *weir__command_find(const char *name);

/* Whether commands of two words begin with `word`. */
bool weir__is_group(const char *word);

/* Say that there is no such command, and which one is meant. */
enum weir__exit weir__command_refuse(const char *name);

/* The text of `weir --help`, of a group ("dead") and of one command. */
void weir__help_all(void);
void weir__help_group(const char *group);
void weir__help_command(const struct weir__command *command);

/* Data: to stdout. All that stands in it may be foreign, so nothing is a line
 * feed but one at the end of `format`. */
WEIR_PRINTF(1, 2) void weir__print(const char *format, ...);

/* A mistake: "weir: " and the sentence, to stderr, at every log level. */
WEIR_PRINTF(1, 2) void weir__complain(const char *format, ...);

/* Something to know: the same at level info and below. */
WEIR_PRINTF(2, 3)
void weir__note(const struct weir__cli *cli, const char *format, ...);

/* Whether words on this descriptor are coloured: on a terminal that can, where
 * NO_COLOR is not set or empty. */
bool weir__is_coloured(int fd);

/* How lines on stderr look, those of mistakes and notes as well. */
enum weir__log_format {
    WEIR__LOG_TEXT, /* 2026-01-31T07:30:00.250Z level text */
    WEIR__LOG_JSON  /* {"time":...,"level":...,"text":...} and more */
};
void weir__log_format(enum weir__log_format format);

/* Name the worker in each log line from now on; `name` is kept. */
void weir__log_worker(const char *name);

/* Have mistakes and notes look as log lines do, in text as well: they have a
 * time and a level then. */
void weir__log_sentences(bool are_lines);

/* From now on no line waits for long until standard error is read: lines are
 * dropped and counted. */
void weir__log_bound(void);

/* Write to standard error, with that bound; also in handlers of signals. False:
 * it was not written. */
bool weir__write_error(const char *bytes, size_t len);

/* One log line to stderr, with its parts as JSON; a weir_log_line_fn. The level
 * is coloured on a terminal. Where stderr is systemd's journal, which has the
 * time by itself, the level is the prefix <3> to <7> of sd-daemon(3). */
void weir__log_line(const struct weir_log_line *log_line, void *arg);

#endif
