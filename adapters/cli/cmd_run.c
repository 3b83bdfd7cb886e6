/* SPDX-License-Identifier: MIT */

/* weir run: a worker. */

#include "adapters/cli/blame.h"
#include "adapters/cli/fleet.h"
#include "adapters/cli/options.h"
#include "adapters/cli/run.h"
#include "core/mem.h"

#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HANDLE,
    CONFIG,
    UNTIL_EMPTY,
    RETRY,
    RETRY_JITTER,
    CONCURRENCY,
    PREFETCH,
    LEASE,
    MAX_DEAD,
    GROUPS,
    ALLOW_EVICTION,
    METRICS,
    WORKERS
};

enum { TOPIC_FLAGS = 7 };
_Static_assert((int)WEIR__TOPIC_OPTIONS < WEIR_MAX_OPTIONS,
               "what the file says fits");

static const double DRAIN_S = 30.0; /* where no file says otherwise */

static const struct weir__flag flags[] = {
    [HANDLE] = {"handle", "TOPIC=PLUGIN[?k=v&...]",
                "serve a topic with a plugin and its options; values\n"
                "are percent-decoded; may be given for many topics"},
    [CONFIG] = {"config", "F",
                "serve the topics of a configuration file; what flags\n"
                "say beats it, and what is stored with a topic"},
    [UNTIL_EMPTY] = {"until-empty", NULL,
                     "end when the topics hold nothing scheduled, ready or\n"
                     "running, also with other workers; with --groups when\n"
                     "these groups do"},
    [RETRY] = {"retry", "LADDER",
               "delays between attempts of jobs without their own\n"
               "(default: 15s 3m 10m 30m 30m 1h 2h 6h 15h)"},
    [RETRY_JITTER] = {"retry-jitter", "PERCENT",
                      "move these delays at random, 0 to 50 (default: 0)"},
    [CONCURRENCY] = {"concurrency", "N",
                     "jobs of a topic running at once, 1 to 100000\n"
                     "(default: 256)"},
    [PREFETCH] = {"prefetch", "N",
                  "jobs of a topic claimed beyond that, 0 to 100000, or\n"
                  "auto (default: auto)"},
    [LEASE] = {"lease", "D",
               "how long a claim lasts without sign of life, 300ms\n"
               "to 1h (default: 5s)"},
    [MAX_DEAD] = {"max-dead", "N",
                  "dead jobs kept in a topic, 1 to 4294967295\n"
                  "(default: 10000)"},
    [GROUPS] = {"groups", "PATTERNS",
                "groups of bounded topics that this worker serves, as\n"
                "in 'vip-* game-7', or leaves to others: '!vip-*'\n"
                "(default: all)"},
    [ALLOW_EVICTION] = {"allow-eviction", NULL,
                        "serve also where the server may drop jobs: its\n"
                        "maxmemory-policy is not noeviction"},
    [METRICS] = {"metrics", "ADDRESS:PORT",
                 "answer /metrics, /healthz and /readyz there, to\n"
                 "whoever reaches it; port 0 takes a free one; the\n"
                 "second of several workers at the next port, ..."},
    [WORKERS] = {"workers", "N",
                 "so many processes, 1 to 256, started again where they\n"
                 "end unexpectedly (default: 1, without a parent)"},
};

enum { NAME_CAP = 64, ADDRESS_CAP = 300, PORT_MAX = 65535 };

struct given {
    struct weir__run run;
    const struct weir__cli *cli;
    struct weir__cli configured; /* with what the file says */
    char from[PATH_MAX];
    /* By flags, of every topic: "name=value"; NULL ends them. */
    char *said[TOPIC_FLAGS + 1];
    /* Of several workers this one's. */
    char number[NAME_CAP], name[NAME_CAP], metrics[ADDRESS_CAP];
};

/* --- what was given --------------------------------------------------- */

/* Flags that are an option of every topic. */
static const struct {
    int flag;
    enum weir__topic_option option;
} topic_flags[] = {
    {RETRY, WEIR__TOPIC_retry},
    {RETRY_JITTER, WEIR__TOPIC_retry_jitter},
    {CONCURRENCY, WEIR__TOPIC_concurrency},
    {PREFETCH, WEIR__TOPIC_prefetch},
    {LEASE, WEIR__TOPIC_lease},
    {MAX_DEAD, WEIR__TOPIC_max_dead},
    {GROUPS, WEIR__TOPIC_groups},
};
_Static_assert(sizeof(topic_flags) / sizeof(topic_flags[0]) == TOPIC_FLAGS,
               "a text has room for each");

/* One of them as "name=value". */
static enum weir__exit read_flag(const char *flag, const char *text,
                                 const struct weir__option *option,
                                 char **ret_said)
{
    struct weir_error err;
    int64_t number;

    if (weir__option_read(option, text, &number, &err) < 0) {
        weir__complain("--%s%s", flag,
                       weir__text_behind(err.text, option->name));
        return WEIR__EXIT_USAGE;
    }
    *ret_said = weir__value_said(option->name, text);
    return *ret_said == NULL ? WEIR__EXIT_FAILED : WEIR__EXIT_NONE;
}

static enum weir__exit read_flags(struct given *given)
{
    enum weir__exit rc = WEIR__EXIT_NONE;
    size_t count = 0;

    for (size_t i = 0; i < TOPIC_FLAGS && rc == WEIR__EXIT_NONE; i++) {
        const char *text = given->run.args->value[topic_flags[i].flag];

        if (text != NULL)
            rc = read_flag(flags[topic_flags[i].flag].name, text,
                           &weir__topic_options[topic_flags[i].option],
                           &given->said[count++]);
    }
    return rc;
}

/* What the file says of how it runs, where no flag does. */
static void configure(struct given *given)
{
    struct weir__run *run = &given->run;
    const struct weir__config *config = run->services.config;

    given->configured = *given->cli;
    given->configured.has_log_format =
        given->cli->has_log_format || given->cli->json;
    weir__services_configure(&run->services, &given->configured, given->from);
    if (config != NULL)
        run->drain_s = (double)config->drain.value / 1000.0;
    run->may_evict = run->args->value[ALLOW_EVICTION] != NULL ||
                     (config != NULL && config->allow_eviction.value != 0);
    run->log = (struct weir__log){.line_fn = weir__log_line,
                                  .level = given->configured.log_level};
}

/* The environment beats the file. */
static enum weir__exit read_block_warn(struct given *given)
{
    static const struct weir__bounds bounds = {1, WEIR__HOUR_MS, "1ms to 1h"};
    const char *text = getenv("WEIR_BLOCK_WARN");
    struct weir_error err = {0};
    int rc = WEIR_OK;

    if (text != NULL && text[0] != '\0')
        rc = weir__value_duration("WEIR_BLOCK_WARN", text, bounds,
                                  &given->configured.block_warn_ms, &err);
    return weir__told(rc, &err) ? WEIR__EXIT_NONE : WEIR__EXIT_USAGE;
}

/* All that loads no plugin and asks no server. */
static enum weir__exit read_file(struct given *given)
{
    const struct weir__args *args = given->run.args;
    enum weir__exit rc;

    weir__services_fini(&given->run.services); /* as read before */
    rc = weir__services_read(&given->run.services, args->value[CONFIG], args);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    configure(given);
    return read_block_warn(given);
}

static enum weir__exit read_all(struct given *given)
{
    const struct weir__args *args = given->run.args;
    enum weir__exit rc;

    if (args->all_count[0] == 0 && args->value[CONFIG] == NULL) {
        weir__complain("run needs --handle TOPIC=PLUGIN or --config F; see "
                       "weir run --help");
        return WEIR__EXIT_USAGE;
    }
    rc = read_flags(given);
    return rc == WEIR__EXIT_NONE ? read_file(given) : rc;
}

/* --- several workers -------------------------------------------------- */

static enum weir__exit read_workers(const struct given *given, int64_t *count)
{
    static const struct weir__bounds bounds = {1, WEIR__FLEET_MAX, "1 to 256"};
    const struct weir__config *config = given->run.services.config;
    const char *text = given->run.args->value[WORKERS];
    struct weir_error err = {0};
    int rc;

    *count = config == NULL ? 1 : config->workers.value;
    rc = weir__value_number("--workers", text, bounds, count, &err);
    return weir__told(rc, &err) ? WEIR__EXIT_NONE : WEIR__EXIT_USAGE;
}

/* ADDRESS:PORT with the worker's own port; what is none stays as it is, and is
 * refused by who listens. Whether there is such a port. */
static bool put_metrics(struct given *given, uint32_t number)
{
    const char *address = given->run.args->value[METRICS];
    const char *colon = address == NULL ? NULL : strrchr(address, ':');
    char *end = NULL;
    long port = colon == NULL ? 0 : strtol(colon + 1, &end, 10);

    if (colon == NULL || *end != '\0' || port < 1 || port > PORT_MAX ||
        strlen(address) + NAME_CAP > ADDRESS_CAP)
        return true;
    port += (long)number - 1;
    (void)snprintf(given->metrics, sizeof(given->metrics), "%.*s:%ld",
                   (int)(colon - address), address, port); /* fits */
    given->run.metrics = given->metrics;
    return port <= PORT_MAX;
}

/* "NAME-2", "2" in lines of the log where it has none. */
static bool put_name(struct given *given, uint32_t number)
{
    const char *name = given->configured.worker;

    (void)snprintf(given->number, sizeof(given->number), "%u",
                   (unsigned)number); /* fits */
    if (name == NULL)
        return true;
    (void)snprintf(given->name, sizeof(given->name), "%s-%u", name,
                   (unsigned)number); /* likewise */
    given->configured.worker = given->name;
    return strlen(given->name) <= WEIR_MAX_TOPIC;
}

/* Of the last worker, which has the most of both. */
static enum weir__exit check_places(struct given *given, uint32_t count)
{
    if (!put_metrics(given, count)) {
        weir__complain("--metrics %s: %u workers need as many ports from there "
                       "on, and the last one is %d",
                       given->run.args->value[METRICS], (unsigned)count,
                       PORT_MAX);
        return WEIR__EXIT_USAGE;
    }
    if (!put_name(given, count)) {
        weir__complain("%s:%d: name: of %u workers the last one would be "
                       "%s: write %d characters at most",
                       given->run.services.path,
                       given->run.services.config->name.line, (unsigned)count,
                       given->name,
                       WEIR_MAX_TOPIC - (int)strlen(given->number) - 1);
        return WEIR__EXIT_USAGE;
    }
    return WEIR__EXIT_NONE;
}

/* WEIR__EXIT_NONE in a worker, which reads the file as it is by then. */
static enum weir__exit divide(struct given *given)
{
    struct weir__run *run = &given->run;
    struct weir__fleet fleet = {.may_end = run->until_empty, .log = &run->log};
    struct weir__berth berth = {0};
    int64_t count;
    enum weir__exit rc = read_workers(given, &count);

    if (rc != WEIR__EXIT_NONE || count == 1)
        return rc;
    fleet.count = (uint32_t)count;
    rc = check_places(given, fleet.count);
    if (rc == WEIR__EXIT_NONE)
        rc = weir__fleet_run(&fleet, &berth);
    if (rc == WEIR__EXIT_NONE)
        rc = read_file(given);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    run->notify.parent = berth.parent;
    run->notify.each_s = berth.watchdog_s;
    (void)put_metrics(given, berth.number); /* the parent saw that they fit */
    (void)put_name(given, berth.number);
    weir__log_worker(given->configured.worker == NULL
                         ? given->number
                         : given->configured.worker);
    return WEIR__EXIT_NONE;
}

/* What a claim brings is freed before the next one; a page that goes back to
 * the system is a fault again. */
static void keep_freed(void)
{
#ifdef M_TRIM_THRESHOLD /* not with musl */
    (void)mallopt(M_MMAP_THRESHOLD, 4 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 32 << 20);
#endif
}

static enum weir__exit work(struct given *given)
{
    struct weir__run *run = &given->run;
    enum weir__exit rc;

    weir__blame_listen();
    rc = weir__services_check(&run->services);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    weir__services_warn(&run->services, &run->log);
    return weir__run_worker(run);
}

static enum weir__exit run(const struct weir__cli *cli,
                           const struct weir__args *args)
{
    struct given given = {.cli = cli};
    enum weir__exit rc;

    given.run = (struct weir__run){
        .args = args,
        .configured = &given.configured,
        .said = (const char *const *)given.said,
        .metrics = args->value[METRICS],
        .until_empty = args->value[UNTIL_EMPTY] != NULL,
        .drain_s = DRAIN_S,
    };
    weir__log_bound();
    keep_freed();
    if (cli->json && !cli->has_log_format)
        weir__log_format(WEIR__LOG_JSON);
    rc = read_all(&given);
    if (rc == WEIR__EXIT_NONE)
        rc = divide(&given);
    if (rc == WEIR__EXIT_NONE)
        rc = work(&given);
    weir__services_fini(&given.run.services);
    for (size_t i = 0; i < TOPIC_FLAGS; i++)
        weir__mem_free(given.said[i]);
    return rc;
}

const struct weir__command weir__cmd_run = {
    .name = "run",
    .operands = "",
    WEIR__FLAGS(flags),
    .repeated_count = 1,
    .summary = "Serve topics with plugins until told to stop",
    .details = "PLUGIN is a path, with a slash or .so at its end, or a name "
               "that is looked up\n"
               "as NAME.so in $WEIR_PLUGIN_PATH (colon-separated), in the "
               "configuration's\n"
               "plugin_path, in plugins/ beside weir and in the installed "
               "directory. SIGHUP:\n"
               "read the file again; topics come, go and change while jobs "
               "run, or nothing\n"
               "where there is a mistake. SIGTERM or SIGINT: claim no more, "
               "finish what runs\n"
               "(up to drain, 30 s), end; a second one: give back what is not "
               "finished and end;\n"
               "a third one: end at once, whatever a handler does. Signals "
               "within 100 ms count\n"
               "as one; SIGUSR1 and SIGUSR2 do nothing. When the server goes "
               "away weir run\n"
               "reconnects for ever; only at the start it gives up after 3 s.",
    .example = "weir run --handle order.close=echo "
               "--handle 'order.notify=flaky?fail=2'",
    .exits = "0 stopped, or with --until-empty nothing is left,\n"
             "  1 ended at once, or what is left is paused or of a newer\n"
             "  version, 2 wrong usage or configuration (plugins), 5 no\n"
             "  server was reached at the start",
    .run = run,
};
