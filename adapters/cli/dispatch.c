/* SPDX-License-Identifier: MIT */

/* From argv to a command. */

#include "adapters/cli/ask.h"
#include "adapters/cli/options.h"
#include "core/mem.h"
#include "core/nearest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define POINT_TO(name) &weir__cmd_##name,
const struct weir__command *const weir__commands[] = {WEIR__COMMANDS(POINT_TO)};
const size_t weir__command_count =
    sizeof(weir__commands) / sizeof(weir__commands[0]);

/* Length of a command's first word, "dead" of "dead list". */
static size_t first_word(const char *name)
{
    return strcspn(name, " ");
}

bool weir__is_group(const char *word)
{
    size_t len = strlen(word);

    for (size_t i = 0; i < weir__command_count; i++) {
        const char *name = weir__commands[i]->name;

        if (name[first_word(name)] == ' ' && first_word(name) == len &&
            strncmp(name, word, len) == 0)
            return true;
    }
    return false;
}

const struct weir__command *weir__command_find(const char *name)
{
    for (size_t i = 0; i < weir__command_count; i++) {
        if (strcmp(weir__commands[i]->name, name) == 0)
            return weir__commands[i];
    }
    return NULL;
}

/* Whole names: "add", "dead list". */
static const char *command_name(const void *names, size_t i)
{
    return ((const struct weir__command *const *)names)[i]->name;
}

enum weir__exit weir__command_refuse(const char *name)
{
    const char *near =
        weir__nearest(name, weir__commands, weir__command_count, command_name);

    if (near != NULL)
        weir__complain("unknown command \"%s\"; did you mean %s?", name, near);
    else
        weir__complain("unknown command \"%s\"; see weir --help", name);
    return WEIR__EXIT_USAGE;
}

/* A group without a command that is one of its own: `name` has its words. */
static enum weir__exit group_only(const char *group, const char *word,
                                  const char *name)
{
    if (word != NULL &&
        (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
        weir__help_group(group);
        return WEIR__EXIT_DONE;
    }
    if (word == NULL || word[0] == '-') {
        weir__complain("%s needs a command; see weir %s --help", group, group);
        return WEIR__EXIT_USAGE;
    }
    return weir__command_refuse(name);
}

static enum weir__exit print_version(void)
{
    weir__print("weir %s\n", WEIR_VERSION);
    return WEIR__EXIT_DONE;
}

static enum weir__exit run_command(const struct weir__line *line,
                                   struct weir__cli *cli)
{
    struct weir__early early;
    struct weir__args args;
    enum weir__exit rc;

    rc = weir__options_command(line, cli, &args, &early);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    if (early.help) {
        weir__help_command(line->command);
        rc = WEIR__EXIT_DONE;
    } else if (early.version) {
        rc = print_version();
    } else {
        rc = line->command->run != NULL ? line->command->run(cli, &args)
                                        : weir__ask(line->command, cli, &args);
    }
    weir__args_fini(&args);
    return rc;
}

static enum weir__exit dispatch(int argc, char **argv, struct weir__cli *cli)
{
    struct weir__line line = {NULL, argc, argv};
    const char *word = argv[0];
    char name[64];

    if (weir__is_group(word)) {
        (void)snprintf(name, sizeof(name), "%s %s", word,
                       argc > 1 ? argv[1] : ""); /* a cut one is none */
        line.command = weir__command_find(name);
        if (line.command == NULL)
            return group_only(word, argc > 1 ? argv[1] : NULL, name);
        line.argc--;
        line.argv++;
        return run_command(&line, cli);
    }
    line.command = strchr(word, ' ') == NULL ? weir__command_find(word) : NULL;
    if (line.command == NULL)
        return weir__command_refuse(word);
    return run_command(&line, cli);
}

static enum weir__exit choose(int argc, char **argv, struct weir__cli *cli)
{
    struct weir__early early;
    enum weir__exit rc;

    weir__options_environment(cli);
    rc = weir__options_global(argc, argv, cli, &early);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    if (early.version)
        return print_version();
    if (early.help) {
        weir__help_all();
        return WEIR__EXIT_DONE;
    }
    if (early.next >= argc) {
        weir__complain("a command is missing; see weir --help");
        return WEIR__EXIT_USAGE;
    }
    return dispatch(argc - early.next, argv + early.next, cli);
}

enum weir__exit weir__cli_main(int argc, char **argv)
{
    struct weir__cli cli = {0};
    enum weir__exit rc = choose(argc, argv, &cli);

    weir__mem_free(cli.own_redis);
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return rc;
    if (weir__is_unread())
        weir__end_unread();
    weir__complain("cannot write to stdout: %s", strerror(errno));
    return rc == WEIR__EXIT_DONE ? WEIR__EXIT_FAILED : rc;
}
