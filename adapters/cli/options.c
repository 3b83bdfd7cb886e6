/* SPDX-License-Identifier: MIT */
#include "adapters/cli/options.h"

#include "adapters/redis/url.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/nearest.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

/* Global flags come behind the command's own in one getopt_long table; what it
 * returns is FIRST plus the position, so that no option looks like a letter. */
enum { FIRST = 256, GLOBAL_COUNT = 7 };
enum global { REDIS, DATA, JSON, LOG_LEVEL, LOG_FORMAT, HELP, VERSION };

const struct weir__flag weir__global_flags[] = {
    [REDIS] = {"redis", "URL",
               "redis://[user:pass@]host[:port][/db], of a cluster\n"
               "one node or several: redis://host,host:7000,\n"
               "redis+sentinel://host[:port],.../NAME[/db] or\n"
               "unix:///path.sock[?db=N] (default: $WEIR_REDIS,\n"
               "else the private server)"},
    [DATA] = {"data", "DIR",
              "data directory of the private server (default:\n"
              "$WEIR_DATA, else $XDG_STATE_HOME/weir, else\n"
              "~/.local/state/weir)"},
    [JSON] = {"json", NULL, "print JSON on stdout, nothing else"},
    [LOG_LEVEL] = {"log-level", "LEVEL",
                   "least level that is told on stderr: debug, info,\n"
                   "warn or error (default: info)"},
    [LOG_FORMAT] = {"log-format", "FORMAT",
                    "what is told on stderr: text, or json, an object a\n"
                    "line (default: text; json of run --json)"},
    [HELP] = {"help", NULL, "print this help; -h for short"},
    [VERSION] = {"version", NULL, "print the version; -v for short"},
};
const size_t weir__global_flag_count = GLOBAL_COUNT;

_Static_assert(sizeof(weir__global_flags) / sizeof(weir__global_flags[0]) ==
                   GLOBAL_COUNT,
               "GLOBAL_COUNT counts weir__global_flags");

/* One parse: the merged table and what is known about it. */
struct parse {
    struct option table[WEIR__FLAGS_MAX + GLOBAL_COUNT + 1];
    size_t own_count; /* flags of the command, in front */
    const char *word; /* "" or the command's name */
    bool is_given[WEIR__FLAGS_MAX + GLOBAL_COUNT]; /* by place in the table */
};

static const char *environment(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

void weir__options_environment(struct weir__cli *cli)
{
    cli->redis = environment("WEIR_REDIS");
    cli->redis_from = "WEIR_REDIS";
    cli->data = environment("WEIR_DATA");
    cli->log_level = WEIR_LEVEL_INFO;
}

static void add_flags(struct option *table, const struct weir__flag *flags,
                      size_t count, int first)
{
    for (size_t i = 0; i < count; i++) {
        table[i].name = flags[i].name;
        table[i].has_arg =
            flags[i].value != NULL ? required_argument : no_argument;
        table[i].val = first + (int)i;
    }
}

static void parse_init(struct parse *parse, const struct weir__command *command)
{
    memset(parse, 0, sizeof(*parse));
    parse->word = command != NULL ? command->name : "";
    if (command != NULL) {
        WEIR_ASSERT(command->flag_count <= WEIR__FLAGS_MAX);
        WEIR_ASSERT(command->repeated_count <= WEIR__FLAGS_REPEATED);
        parse->own_count = command->flag_count;
        add_flags(parse->table, command->flags, command->flag_count, FIRST);
    }
    add_flags(parse->table + parse->own_count, weir__global_flags, GLOBAL_COUNT,
              FIRST + (int)parse->own_count);
    optind = 0; /* glibc: forget the previous scan */
    opterr = 0;
}

static const char *table_name(const void *names, size_t i)
{
    return ((const struct option *)names)[i].name;
}

static enum weir__exit refuse_unknown(const struct parse *parse,
                                      const char *text)
{
    const char *blank = parse->word[0] != '\0' ? " " : "";
    const char *near = NULL;
    char name[64];
    size_t len;

    if (strncmp(text, "--", 2) != 0) {
        weir__complain("unknown option %s; see weir %s%s--help", text,
                       parse->word, blank);
        return WEIR__EXIT_USAGE;
    }
    len = strcspn(text + 2, "=");
    if (len < sizeof(name)) {
        memcpy(name, text + 2, len);
        name[len] = '\0';
        near = weir__nearest(name, parse->table,
                             parse->own_count + GLOBAL_COUNT, table_name);
    }
    if (near != NULL)
        weir__complain("unknown option %.*s; did you mean --%s?", (int)len + 2,
                       text, near);
    else
        weir__complain("unknown option %.*s; see weir %s%s--help", (int)len + 2,
                       text, parse->word, blank);
    return WEIR__EXIT_USAGE;
}

/* getopt_long returned '?' or ':'. */
static enum weir__exit refuse(const struct parse *parse, int result,
                              char **argv)
{
    char letter[3] = {'-', (char)optopt, '\0'};

    if (optopt >= FIRST) {
        const char *name = parse->table[optopt - FIRST].name;

        if (result == ':')
            weir__complain("option --%s needs a value", name);
        else
            weir__complain("option --%s takes no value", name);
        return WEIR__EXIT_USAGE;
    }
    return refuse_unknown(parse, optopt == 0 ? argv[optind - 1] : letter);
}

static enum weir__exit set_log_level(const char *text, struct weir__cli *cli)
{
    static const char *const names[] = {
        [WEIR_LEVEL_DEBUG] = "debug",
        [WEIR_LEVEL_INFO] = "info",
        [WEIR_LEVEL_WARN] = "warn",
        [WEIR_LEVEL_ERROR] = "error",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            cli->log_level = (enum weir_level)i;
            cli->has_log_level = true;
            return WEIR__EXIT_NONE;
        }
    }
    weir__complain("--log-level: \"%s\" is none of debug, info, warn, error",
                   text);
    return WEIR__EXIT_USAGE;
}

static enum weir__exit set_log_format(const char *text, struct weir__cli *cli)
{
    const bool is_json = strcmp(text, "json") == 0;

    if (!is_json && strcmp(text, "text") != 0) {
        weir__complain("--log-format: \"%s\" is none of text, json", text);
        return WEIR__EXIT_USAGE;
    }
    weir__log_format(is_json ? WEIR__LOG_JSON : WEIR__LOG_TEXT);
    cli->has_log_format = true;
    return WEIR__EXIT_NONE;
}

/* Everybody sees argv. */
static enum weir__exit set_redis(char *text, struct weir__cli *cli)
{
    char *copy = weir__mem_new(strlen(text) + 1);

    if (copy == NULL) {
        weir__complain("out of memory");
        return WEIR__EXIT_FAILED;
    }
    memcpy(copy, text, strlen(text));
    weir__redis_url_hide(text);
    weir__mem_free(cli->own_redis);
    cli->own_redis = copy;
    cli->redis = copy;
    cli->redis_is_flag = true;
    cli->redis_from = "--redis";
    return WEIR__EXIT_NONE;
}

static enum weir__exit set_global(enum global flag, struct weir__cli *cli,
                                  struct weir__early *early)
{
    switch (flag) {
    case REDIS:
        return set_redis(optarg, cli);
    case DATA:
        if (optarg[0] == '\0') {
            weir__complain("--data: a directory cannot have an empty name");
            return WEIR__EXIT_USAGE;
        }
        cli->data = optarg;
        return WEIR__EXIT_NONE;
    case JSON:
        cli->json = true;
        return WEIR__EXIT_NONE;
    case LOG_LEVEL:
        return set_log_level(optarg, cli);
    case LOG_FORMAT:
        return set_log_format(optarg, cli);
    case HELP:
        early->help = true;
        return WEIR__EXIT_NONE;
    case VERSION:
        early->version = true;
        return WEIR__EXIT_NONE;
    }
    return WEIR__EXIT_NONE;
}

/* How many operands the usage line wants. */
static void count_operands(const char *line, size_t *ret_min, size_t *ret_max)
{
    size_t len = strlen(line), min = 0, max = 0;

    for (const char *at = line; *at != '\0'; at++) {
        bool is_start = at == line || at[-1] == ' ';

        max += is_start ? 1 : 0;
        min += is_start && *at != '[' ? 1 : 0;
    }
    if (len > 3 && strcmp(line + len - 3, "...") == 0)
        max = SIZE_MAX;
    *ret_min = min;
    *ret_max = max;
}

static enum weir__exit check_operands(const struct weir__command *command,
                                      const struct weir__args *args)
{
    size_t min, max;

    count_operands(command->operands, &min, &max);
    if (args->operand_count < min) {
        const char *line = command->operands, *rest = strstr(line, " [");

        weir__complain("%s needs %.*s; see weir %s --help", command->name,
                       rest == NULL ? (int)strlen(line) : (int)(rest - line),
                       line, command->name);
        return WEIR__EXIT_USAGE;
    }
    if (args->operand_count > max) {
        weir__complain("%s does not know what to do with \"%s\"; see weir %s "
                       "--help",
                       command->name, args->operand[max], command->name);
        return WEIR__EXIT_USAGE;
    }
    return WEIR__EXIT_NONE;
}

static void take(const struct weir__command *command, size_t flag,
                 struct weir__args *args)
{
    args->value[flag] = command->flags[flag].value == NULL ? "" : optarg;
    if (flag < command->repeated_count)
        args->all[flag][args->all_count[flag]++] = optarg;
}

/* Of two values one would be dropped in silence. A switch says the same twice,
 * and what stands before the command is beaten by what stands behind it. */
static enum weir__exit note_given(struct parse *parse,
                                  const struct weir__command *command, int flag)
{
    bool is_repeated = command != NULL && flag < (int)command->repeated_count;

    if (parse->is_given[flag] && !is_repeated &&
        parse->table[flag].has_arg == required_argument) {
        weir__complain("option --%s is given twice; give it once",
                       parse->table[flag].name);
        return WEIR__EXIT_USAGE;
    }
    parse->is_given[flag] = true;
    return WEIR__EXIT_NONE;
}

/* `letters` as getopt has them. After --help nothing more is looked at. */
static enum weir__exit scan(const struct weir__line *line, const char *letters,
                            struct weir__cli *cli, struct weir__args *args,
                            struct weir__early *early)
{
    enum weir__exit rc = WEIR__EXIT_NONE;
    struct parse parse;

    parse_init(&parse, line->command);
    while (rc == WEIR__EXIT_NONE && !early->help) {
        int result =
            getopt_long(line->argc, line->argv, letters, parse.table, NULL);
        int flag = result - FIRST;

        if (result == -1)
            break;
        if (result == 'h')
            early->help = true;
        else if (result == 'v')
            early->version = true;
        else if (result == '?' || result == ':')
            rc = refuse(&parse, result, line->argv);
        else
            rc = note_given(&parse, line->command, flag);
        if (rc != WEIR__EXIT_NONE || flag < 0)
            continue;
        if (flag < (int)parse.own_count)
            take(line->command, (size_t)flag, args);
        else
            rc = set_global((enum global)(flag - (int)parse.own_count), cli,
                            early);
    }
    early->next = optind;
    return rc;
}

enum weir__exit weir__options_global(int argc, char **argv,
                                     struct weir__cli *cli,
                                     struct weir__early *ret_early)
{
    const struct weir__line line = {NULL, argc, argv};

    *ret_early = (struct weir__early){false, false, argc};
    return scan(&line, "+:hv", cli, NULL, ret_early);
}

enum weir__exit weir__options_command(const struct weir__line *line,
                                      struct weir__cli *cli,
                                      struct weir__args *ret_args,
                                      struct weir__early *ret_early)
{
    struct weir__args args = {.operand_count = 0};
    size_t room = (size_t)line->argc;
    struct weir__early early = {false, false, 0};
    enum weir__exit rc;

    args.all[0] =
        weir__mem_new(WEIR__FLAGS_REPEATED * room * sizeof(*args.all[0]));
    if (args.all[0] == NULL) {
        weir__complain("out of memory");
        return WEIR__EXIT_FAILED;
    }
    for (size_t i = 1; i < WEIR__FLAGS_REPEATED; i++)
        args.all[i] = args.all[0] + i * room;
    rc = scan(line, ":hv", cli, &args, &early);
    args.operand = (const char *const *)(line->argv + optind);
    args.operand_count = (size_t)(line->argc - optind);
    if (rc == WEIR__EXIT_NONE && !early.help && !early.version)
        rc = check_operands(line->command, &args);
    if (rc != WEIR__EXIT_NONE) {
        weir__args_fini(&args);
        return rc;
    }
    *ret_args = args;
    *ret_early = early;
    return WEIR__EXIT_NONE;
}

void weir__args_fini(struct weir__args *args)
{
    weir__mem_free(args->all[0]);
    args->all[0] = NULL;
}
