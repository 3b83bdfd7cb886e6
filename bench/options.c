/* SPDX-License-Identifier: MIT */
#include "bench/options.h"

#include "adapters/cli/options.h"
#include "adapters/redis/url.h"
#include "bench/body.h"
#include "bench/flags.h"
#include "core/error.h"
#include "core/nearest.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 256 };

static const struct weir__bounds few = {1, 60, "1 to 60"};

/* --- values ----------------------------------------------------------- */

static int choice(const char *name, const char *text, const char *const *words,
                  struct weir_error *err)
{
    char all[64] = "";

    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], text) == 0)
            return i;
        (void)snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
                       i == 0                 ? ""
                       : words[i + 1] == NULL ? " or "
                                              : ", ",
                       words[i]);
    }
    return weir__error_set(err, WEIR_EINVAL, "%s: \"%.60s\" is not %s", name,
                           text, all);
}

static int number(const char *name, struct weir__bounds bounds, int64_t *ret,
                  struct weir_error *err)
{
    return weir__value_number(name, optarg, bounds, ret, err);
}

static int duration(const char *name, int64_t min_ms, int64_t *ret,
                    struct weir_error *err)
{
    return weir__value_duration(
        name, optarg,
        (struct weir__bounds){min_ms, 3600000,
                              min_ms == 0 ? "0ms to 1h" : "1ms to 1h"},
        ret, err);
}

static int read_redis(const char *text, const char *from,
                      struct bench_options *options, struct weir_error *err)
{
    struct weir__redis_url url;
    struct weir_error why;

    if (weir__redis_url_parse(text, &url, &why) < 0)
        return weir__error_set(err, WEIR_EINVAL, "%s: %s", from, why.text);
    options->server.redis = text;
    return WEIR_OK;
}

/* Everybody sees argv. */
static int take_redis(char *text, struct bench_options *options,
                      struct weir_error *err)
{
    free(options->own_redis);
    options->own_redis = strdup(text);
    if (options->own_redis == NULL)
        return weir__error_set(err, WEIR_ENOMEM, "out of memory");
    weir__redis_url_hide(text);
    return read_redis(options->own_redis, "--redis", options, err);
}

/* --- kinds and numbers of consumers ----------------------------------- */

static const char *kind_name(const void *names, size_t i)
{
    (void)names;
    return bench_kinds[i].name;
}

static int find_kind(const char *text, const struct bench_kind **ret_kind,
                     struct weir_error *err)
{
    const char *near = weir__nearest(text, NULL, bench_kind_count, kind_name);

    *ret_kind = bench_kind_find(text);
    if (*ret_kind != NULL)
        return WEIR_OK;
    if (near != NULL)
        return weir__error_set(
            err, WEIR_EINVAL,
            "--kind: \"%.60s\" is not a kind; did you mean %s?", text, near);
    return weir__error_set(err, WEIR_EINVAL,
                           "--kind: \"%.60s\" is not a kind: write delay, "
                           "bounded, list, stream, sync or concurrent",
                           text);
}

/* Take the next word of a list that commas part, which may be empty. False:
 * there is none. A longer word is cut. */
static bool next_word(const char **rest, char word[64])
{
    size_t len;

    if (*rest == NULL)
        return false;
    len = strcspn(*rest, ",");
    (void)snprintf(word, 64, "%.*s", (int)len, *rest);
    *rest = (*rest)[len] == ',' ? *rest + len + 1 : NULL;
    return true;
}

static int twice(const char *name, const char *word, struct weir_error *err)
{
    return weir__error_set(err, WEIR_EINVAL, "%s: %s stands there twice", name,
                           word);
}

static int read_kinds(struct bench_options *options, struct weir_error *err)
{
    const struct bench_kind *kind = NULL;
    const char *rest = optarg;
    char word[64];

    options->kinds = 0;
    while (next_word(&rest, word)) {
        unsigned bit;

        if (find_kind(word, &kind, err) < 0)
            return WEIR_EINVAL;
        bit = 1u << (kind - bench_kinds);
        if ((options->kinds & bit) != 0)
            return twice("--kind", word, err);
        options->kinds |= bit;
    }
    return WEIR_OK;
}

static int read_counts(struct bench_options *options, struct weir_error *err)
{
    const char *rest = optarg;
    size_t count = 0;
    char word[64];

    while (next_word(&rest, word)) {
        int64_t number;

        if (weir__value_number("--consumers", word, few, &number, err) < 0)
            return WEIR_EINVAL;
        for (size_t i = 0; i < count; i++)
            if (options->counts[i] == number)
                return twice("--consumers", word, err);
        if (count == BENCH_COUNTS_MAX)
            return weir__error_set(err, WEIR_EINVAL,
                                   "--consumers: %d numbers at most",
                                   BENCH_COUNTS_MAX);
        options->counts[count++] = number;
    }
    options->counts[count] = 0;
    return WEIR_OK;
}

/* The flags with words for values. */
static int set_words(enum bench_flag flag, struct bench_options *options,
                     struct weir_error *err)
{
    static const char *const whose[] = {"caller", "made", NULL};
    static const char *const ways[] = {"unix", "tcp", "tls", NULL};
    static const char *const syncs[] = {"none", "everysec", "always", NULL};
    int i;

    switch ((int)flag) {
    case IDS:
        i = choice("--ids", optarg, whose, err);
        options->makes_ids = i == 1;
        return i;
    case TRANSPORT:
        i = choice("--transport", optarg, ways, err);
        options->server.tcp = i > 0;
        options->server.tls = i == 2;
        return i;
    case PERSISTENCE:
        i = choice("--persistence", optarg, syncs, err);
        if (i >= 0)
            options->server.persistence = syncs[i];
        return i;
    case HANDLER:
        i = choice("--handler", optarg, bench_handler_names, err);
        if (i >= 0)
            options->handler = (enum bench_handler)i;
        return i;
    case KIND:
        return find_kind(optarg, &options->kind, err);
    default:
        return WEIR_OK;
    }
}

/* The flags with numbers for values. */
static int set_number(enum bench_flag flag, struct bench_options *options,
                      struct weir_error *err)
{
    static const struct weir__bounds jobs = {1, 100000000, "1 to 100000000"};
    static const struct weir__bounds bytes = {BENCH_BODY_MIN, BENCH_BODY_MAX,
                                              "16 to 1048576"};
    static const struct weir__bounds batch = {1, 100000, "1 to 100000"};
    static const struct weir__bounds nodes = {1, BENCH_NODES_MAX, "1 to 64"};
    static const struct weir__bounds times = {1, 100, "1 to 100"};

    switch ((int)flag) {
    case JOBS:
        return number("--jobs", jobs, &options->jobs, err);
    case PAYLOAD:
        return number("--payload", bytes, &options->payload_bytes, err);
    case BATCH:
        return number("--batch", batch, &options->batch, err);
    case CONSUMERS:
        return number("--consumers", few, &options->consumers, err);
    case PRODUCERS:
        return number("--producers", few, &options->producers, err);
    case NODES:
        return number("--nodes", nodes, &options->nodes, err);
    case CONCURRENCY:
        return number("--concurrency", batch, &options->concurrency, err);
    case REPEAT:
        return number("--repeat", times, &options->repeat, err);
    case BACKLOG:
        return number("--backlog", jobs, &options->backlog, err);
    case TOPICS:
        return number("--topics", batch, &options->topics, err);
    case DELAY:
        return duration("--delay", 0, &options->delay_ms, err);
    case WINDOW:
        return duration("--window", 1, &options->window_ms, err);
    case SECONDS:
        return duration("--for", 1, &options->span_ms, err);
    default:
        return set_words(flag, options, err);
    }
}

static int set(enum bench_flag flag, const struct bench_case *which,
               struct bench_options *options, struct weir_error *err)
{
    if (bench_flags[flag].only != 0 &&
        (bench_flags[flag].only & which->flags) == 0)
        return weir__error_set(
            err, WEIR_EINVAL, "%s takes no --%s; see weir-bench %s --help",
            which->name, bench_flags[flag].name, which->name);
    if ((which->flags & BENCH_FLAG_LISTS) != 0 && flag == KIND)
        return read_kinds(options, err);
    if ((which->flags & BENCH_FLAG_LISTS) != 0 && flag == CONSUMERS)
        return read_counts(options, err);
    switch ((int)flag) {
    case REDIS:
        return take_redis(optarg, options, err);
    case DATA:
        options->server.data = optarg;
        return WEIR_OK;
    case REPORT:
        options->report = optarg;
        return WEIR_OK;
    case ONE_PROCESS:
        options->one_process = true;
        return WEIR_OK;
    case JSON:
        options->json = true;
        return WEIR_OK;
    default:
        return set_number(flag, options, err);
    }
}

/* --- the line --------------------------------------------------------- */

static const char *flag_name(const void *names, size_t i)
{
    (void)names;
    return bench_flags[i].name;
}

static const char *case_name(const void *names, size_t i)
{
    (void)names;
    return bench_cases[i]->name;
}

/* getopt_long returned '?' or ':'. */
static int refuse(int result, char **argv)
{
    const char *text = argv[optind - 1];
    const char *near = NULL;

    if (optopt >= FIRST) {
        bench_complain(result == ':' ? "option --%s needs a value"
                                     : "option --%s takes no value",
                       bench_flags[optopt - FIRST].name);
        return BENCH_USAGE_CODE;
    }
    if (strncmp(text, "--", 2) == 0)
        near = weir__nearest(text + 2, NULL, FLAG_COUNT, flag_name);
    if (near != NULL)
        bench_complain("unknown option %.60s; did you mean --%s?", text, near);
    else
        bench_complain("unknown option %.60s; see weir-bench --help", text);
    return BENCH_USAGE_CODE;
}

static int find_case(const char *text, const struct bench_case **ret_case)
{
    const char *near;

    for (size_t i = 0; i < bench_case_count; i++) {
        if (strcmp(bench_cases[i]->name, text) == 0) {
            *ret_case = bench_cases[i];
            return BENCH_NO_CODE;
        }
    }
    near = weir__nearest(text, NULL, bench_case_count, case_name);
    if (near != NULL)
        bench_complain("unknown case \"%.60s\"; did you mean %s?", text, near);
    else
        bench_complain("unknown case \"%.60s\"; see weir-bench --help", text);
    return BENCH_USAGE_CODE;
}

/* One result of getopt_long. */
static int take(int result, char **argv, const struct bench_case *which,
                struct bench_options *options)
{
    struct weir_error err;

    if (result == '?' || result == ':')
        return refuse(result, argv);
    if (result == 'h' || result == FIRST + HELP) {
        if (which != NULL)
            bench_help_case(which);
        else
            bench_help_all();
        return BENCH_DONE_CODE;
    }
    if (result == FIRST + VERSION) {
        (void)printf("weir-bench %s\n", WEIR_VERSION);
        return BENCH_DONE_CODE;
    }
    if (which == NULL) {
        bench_complain("the case comes first; see weir-bench --help");
        return BENCH_USAGE_CODE;
    }
    if (set((enum bench_flag)(result - FIRST), which, options, &err) >= 0)
        return BENCH_NO_CODE;
    bench_complain("%s", err.text);
    return BENCH_USAGE_CODE;
}

static int scan(int argc, char **argv, const struct bench_case *which,
                struct bench_options *options)
{
    struct option table[FLAG_COUNT + 1];
    int rc = BENCH_NO_CODE, result;

    memset(table, 0, sizeof(table));
    for (int i = 0; i < FLAG_COUNT; i++) {
        table[i].name = bench_flags[i].name;
        table[i].has_arg =
            bench_flags[i].value != NULL ? required_argument : no_argument;
        table[i].val = FIRST + i;
    }
    optind = 0; /* glibc: forget the previous scan */
    opterr = 0;
    while (rc == BENCH_NO_CODE &&
           (result = getopt_long(argc, argv, "+:h", table, NULL)) != -1)
        rc = take(result, argv, which, options);
    if (rc == BENCH_NO_CODE && which != NULL && optind < argc) {
        bench_complain("%s does not know what to do with \"%.60s\"; see "
                       "weir-bench %s --help",
                       which->name, argv[optind], which->name);
        return BENCH_USAGE_CODE;
    }
    return rc;
}

static bool check_cluster(const struct bench_options *options)
{
    if (!options->server.tcp || options->server.tls)
        bench_complain("--transport: nodes of the private cluster are reached "
                       "over tcp; leave it out");
    else if (options->topics > BENCH_SPREAD_MAX)
        bench_complain("--topics: %d at most are spread over nodes",
                       BENCH_SPREAD_MAX);
    else if (options->consumers + options->producers > BENCH_MEMBERS_MAX)
        bench_complain("--producers and --consumers: %d at most together",
                       BENCH_MEMBERS_MAX);
    else
        return true;
    return false;
}

/* What must fit together. */
static int check(const struct bench_case *which,
                 const struct bench_options *options)
{
    if (options->consumers != which->fallback.consumers &&
        (which->flags & BENCH_FLAG_CONSUMERS) == 0) {
        bench_complain("%s says itself how many consumers there are; leave out "
                       "--consumers",
                       which->name);
        return BENCH_USAGE_CODE;
    }
    if (options->kind->delay == BENCH_DELAY_NONE && options->delay_ms > 0 &&
        (which->flags & BENCH_FLAG_KIND) != 0) {
        bench_complain("--delay: jobs of kind %s have no delay",
                       options->kind->name);
        return BENCH_USAGE_CODE;
    }
    if (options->kind->delay != BENCH_DELAY_OF_JOB && options->window_ms > 0) {
        bench_complain("--kind: jobs of kind %s have no due times of their own",
                       options->kind->name);
        return BENCH_USAGE_CODE;
    }
    if ((which->flags & BENCH_FLAG_NODES) != 0 && !check_cluster(options))
        return BENCH_USAGE_CODE;
    if (!options->one_process || options->consumers == 1)
        return BENCH_NO_CODE;
    bench_complain("--one-process has one consumer; leave out --consumers");
    return BENCH_USAGE_CODE;
}

int bench_options_read(int argc, char **argv,
                       const struct bench_case **ret_case,
                       struct bench_options *ret_options)
{
    const char *redis = getenv("WEIR_REDIS");
    struct weir_error err;
    int rc = scan(argc, argv, NULL, NULL);

    if (rc != BENCH_NO_CODE)
        return rc;
    if (optind >= argc) {
        bench_complain("a case is missing; see weir-bench --help");
        return BENCH_USAGE_CODE;
    }
    argc -= optind;
    argv += optind;
    rc = find_case(argv[0], ret_case);
    if (rc != BENCH_NO_CODE)
        return rc;
    *ret_options = (*ret_case)->fallback;
    ret_options->kind = &bench_kinds[0];
    ret_options->server.persistence = "none";
    if (redis != NULL && redis[0] != '\0' &&
        read_redis(redis, "WEIR_REDIS", ret_options, &err) < 0) {
        bench_complain("%s", err.text);
        return BENCH_USAGE_CODE;
    }
    rc = scan(argc, argv, *ret_case, ret_options);
    return rc == BENCH_NO_CODE ? check(*ret_case, ret_options) : rc;
}
