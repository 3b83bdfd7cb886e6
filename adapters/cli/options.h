/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_OPTIONS_H
#define WEIR_CLI_OPTIONS_H

/* Options of the weir command: table-driven over getopt_long, and the typed
 * reading of their values. Every function that refuses something, and has no
 * `err` to put it in, has printed the sentence. */

#include "adapters/cli/cli.h"

/* The options of every command, for help. */
extern const struct weir__flag weir__global_flags[];
extern const size_t weir__global_flag_count;

/* Fill `cli` from the environment: WEIR_REDIS, WEIR_DATA. */
void weir__options_environment(struct weir__cli *cli);

/* What stood before the command. */
struct weir__early {
    bool help, version;
    int next; /* position of the command in argv, or argc */
};

/* Parse the options before the command. WEIR__EXIT_NONE, or what to exit
 * with. */
enum weir__exit weir__options_global(int argc, char **argv,
                                     struct weir__cli *cli,
                                     struct weir__early *ret_early);

/* A command and what follows it: argv[0] is the last word of its name. */
struct weir__line {
    const struct weir__command *command;
    int argc;
    char **argv;
};

/* Parse the rest of a line. After --help or --version nothing more is checked.
 * On WEIR__EXIT_NONE the caller releases with weir__args_fini. */
enum weir__exit weir__options_command(const struct weir__line *line,
                                      struct weir__cli *cli,
                                      struct weir__args *ret_args,
                                      struct weir__early *ret_early);

void weir__args_fini(struct weir__args *args);

/* Values. `text` NULL (not given) is accepted and leaves `ret_` alone.
 * WEIR_EINVAL with a sentence that begins with `name`. */
struct weir__bounds {
    int64_t min, max;
    const char *words; /* "300ms to 1h", for the sentence */
};
int weir__value_number(const char *name, const char *text,
                       struct weir__bounds bounds, int64_t *ret_number,
                       struct weir_error *err);
int weir__value_duration(const char *name, const char *text,
                         struct weir__bounds bounds, int64_t *ret_ms,
                         struct weir_error *err);
int weir__value_ladder(const char *name, const char *text,
                       struct weir_error *err);

/* Whether `rc` is WEIR_OK; otherwise its sentence is printed. */
bool weir__told(int rc, const struct weir_error *err);

/* "name=value", to be freed; NULL: out of memory, which has been printed. */
char *weir__value_said(const char *name, const char *value);

/* A library's sentence without the subject that the flag's name tells. */
const char *weir__text_behind(const char *text, const char *prefix);

/* Check a topic or an id from the command line. `is_new`: one to be added,
 * which must not look like an id made by weir. */
bool weir__operand_topic(const char *topic);
bool weir__operand_id(const char *id, bool is_new);

#endif
