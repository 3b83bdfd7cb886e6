/* SPDX-License-Identifier: MIT */

/* From argv to a command. */

#include "adapters/cli/ask.h"
#include "adapters/cli/options.h"
#include "core/mem.h"
#include "core/nearest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct table {
    const struct weir__command *const *commands;
    size_t count;
};

/* Length of a command's first word, "dead" of "dead list". */
static size_t first_word(const char *name)
{
    return strcspn(name, " ");
}

static bool is_group(struct table table, const char *word)
{
    size_t len = strlen(word);

    for (size_t i = 0; i < table.count; i++) {
        const char *name = table.commands[i]->name;

        if (name[first_word(name)] == ' ' && first_word(name) == len &&
            strncmp(name, word, len) == 0)
            return true;
    }
    return false;
}

static const struct weir__command *find(struct table table, const char *group,
                                        const char *word)
{
    char name[64];

    (void)snprintf(name, sizeof(name), "%s%s%s", group,
                   group[0] != '\0' ? " " : "", word); /* a cut one fails */
    for (size_t i = 0; i < table.count; i++) {
        if (strcmp(table.commands[i]->name, name) == 0)
            return table.commands[i];
    }
    return NULL;
}

/* Whole names: "add", "dead list". */
static const char *command_name(const void *names, size_t i)
{
    return ((const struct weir__command *const *)names)[i]->name;
}

static enum weir__exit refuse_command(struct table table, const char *text)
{
    const char *near =
        weir__nearest(text, table.commands, table.count, command_name);

    if (near != NULL)
        weir__complain("unknown command \"%s\"; did you mean %s?", text, near);
    else
        weir__complain("unknown command \"%s\"; see weir --help", text);
    return WEIR__EXIT_USAGE;
}

/* A group without a command that is one of its own. */
static enum weir__exit group_only(struct table table, const char *group,
                                  const char *word)
{
    char text[64];

    if (word != NULL &&
        (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
        weir__help_group(table.commands, table.count, group);
        return WEIR__EXIT_DONE;
    }
    if (word == NULL || word[0] == '-') {
        weir__complain("%s needs a command; see weir %s --help", group, group);
        return WEIR__EXIT_USAGE;
    }
    (void)snprintf(text, sizeof(text), "%s %s", group, word); /* cut */
    return refuse_command(table, text);
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

static enum weir__exit dispatch(struct table table, int argc, char **argv,
                                struct weir__cli *cli)
{
    struct weir__line line = {NULL, argc, argv};
    const char *word = argv[0];

    if (is_group(table, word)) {
        line.command = argc > 1 ? find(table, word, argv[1]) : NULL;
        if (line.command == NULL)
            return group_only(table, word, argc > 1 ? argv[1] : NULL);
        line.argc--;
        line.argv++;
        return run_command(&line, cli);
    }
    line.command = find(table, "", word);
    if (line.command == NULL)
        return refuse_command(table, word);
    return run_command(&line, cli);
}

static enum weir__exit choose(struct table table, int argc, char **argv,
                              struct weir__cli *cli)
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
        weir__help_all(table.commands, table.count);
        return WEIR__EXIT_DONE;
    }
    if (early.next >= argc) {
        weir__complain("a command is missing; see weir --help");
        return WEIR__EXIT_USAGE;
    }
    return dispatch(table, argc - early.next, argv + early.next, cli);
}

enum weir__exit weir__cli_main(const struct weir__command *const *commands,
                               size_t count, int argc, char **argv)
{
    struct weir__cli cli = {0};
    enum weir__exit rc =
        choose((struct table){commands, count}, argc, argv, &cli);

    weir__mem_free(cli.own_redis);
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        weir__complain("cannot write to stdout: %s", strerror(errno));
        return rc == WEIR__EXIT_DONE ? WEIR__EXIT_FAILED : rc;
    }
    return rc;
}
