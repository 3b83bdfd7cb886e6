/* SPDX-License-Identifier: MIT */

/* Help texts, put together from the tables of the commands. */

#include "adapters/cli/options.h"
#include "core/options.h"

#include <stdio.h>
#include <string.h>

enum { HELP_COLUMN = 26 };

/* One flag: its name, then its help with every line in the same column. */
static void print_flag(const struct weir__flag *flag)
{
    const char *line = flag->help;
    int width = printf("  --%s%s%s", flag->name, flag->value != NULL ? " " : "",
                       flag->value != NULL ? flag->value : "");

    if (width > HELP_COLUMN - 2) {
        (void)printf("\n");
        width = 0;
    }
    while (*line != '\0') {
        size_t len = strcspn(line, "\n");

        (void)printf("%*s%.*s\n", HELP_COLUMN - width, "", (int)len, line);
        line += len;
        line += *line == '\n' ? 1 : 0;
        width = 0;
    }
}

static void print_flags(const struct weir__flag *flags, size_t count)
{
    for (size_t i = 0; i < count; i++)
        print_flag(&flags[i]);
}

static void print_summary(const struct weir__command *command)
{
    (void)printf("  %-16s %s\n", command->name, command->summary);
}

void weir__help_all(void)
{
    (void)printf("usage: weir COMMAND [operands] [options]\n\n"
                 "weir holds jobs back and lets them through on time.\n\n"
                 "commands (weir COMMAND --help tells more):\n");
    for (size_t i = 0; i < weir__command_count; i++)
        print_summary(weir__commands[i]);
    (void)printf("\noptions of every command:\n");
    print_flags(weir__global_flags, weir__global_flag_count);
    (void)printf(
        "\nexample:\n"
        "  weir add order.close --id 42 --delay 15m --body '{\"order\":42}'\n"
        "\nexit codes:\n"
        "  0 done, 1 failed, 2 wrong usage or configuration, 3 not found,\n"
        "  4 exists already, 5 server unreachable\n");
}

void weir__help_group(const char *group)
{
    size_t len = strlen(group);

    (void)printf("usage: weir %s COMMAND [operands] [options]\n\ncommands:\n",
                 group);
    for (size_t i = 0; i < weir__command_count; i++) {
        const struct weir__command *command = weir__commands[i];

        if (strncmp(command->name, group, len) == 0 &&
            command->name[len] == ' ')
            print_summary(command);
    }
}

/* Those that are stored, each with the kinds of topics that have it. */
static void print_topic_options(void)
{
    (void)printf("\noptions of topics, and which kinds have them:\n");
    for (size_t i = 0; i < WEIR__TOPIC_OPTIONS; i++) {
        const struct weir__option *option = &weir__topic_options[i];
        char kinds[64] = "all";

        if (weir__topic_option_stores((enum weir__topic_option)i, NULL) < 0)
            continue;
        if (option->kinds != WEIR__KINDS_ALL)
            weir__kinds_list(option->kinds, kinds);
        (void)printf("  %-16s %s\n", option->name, kinds);
    }
}

void weir__help_command(const struct weir__command *command)
{
    (void)printf("usage: weir %s%s%s [options]\n\n%s.\n", command->name,
                 command->operands[0] != '\0' ? " " : "", command->operands,
                 command->summary);
    if (command->details != NULL)
        (void)printf("\n%s\n", command->details);
    if (command->lists_options)
        print_topic_options();
    if (command->flag_count > 0)
        (void)printf("\noptions:\n");
    print_flags(command->flags, command->flag_count);
    (void)printf("\noptions of every command:\n");
    print_flags(weir__global_flags, weir__global_flag_count);
    (void)printf("\nexample:\n  %s\n\nexit codes:\n  %s\n", command->example,
                 command->exits);
}

/* --- weir help ------------------------------------------------------------ */

static enum weir__exit run(const struct weir__cli *cli,
                           const struct weir__args *args)
{
    const struct weir__command *command;
    char name[64] = "";

    (void)cli;
    for (size_t i = 0; i < args->operand_count; i++) {
        size_t len = strlen(name);

        (void)snprintf(name + len, sizeof(name) - len, "%s%s", i > 0 ? " " : "",
                       args->operand[i]); /* cut */
    }
    command = weir__command_find(name);
    if (args->operand_count == 0)
        weir__help_all();
    else if (command != NULL)
        weir__help_command(command);
    else if (weir__is_group(name))
        weir__help_group(name);
    else
        return weir__command_refuse(name);
    return WEIR__EXIT_DONE;
}

const struct weir__command weir__cmd_help = {
    .name = "help",
    .operands = "[COMMAND]...",
    .summary = "Tell about a command, or list all",
    .details = "The same as weir COMMAND --help and weir --help. Needs no "
               "server.",
    .example = "weir help dead list",
    .exits = "0 printed, 2 wrong usage, or no such command",
    .run = run,
};
