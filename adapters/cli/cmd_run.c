/* SPDX-License-Identifier: MIT */

/* weir run: a worker. */

#include "adapters/cli/blame.h"
#include "adapters/cli/options.h"
#include "adapters/cli/run.h"
#include "core/mem.h"

#include <limits.h>
#include <malloc.h>

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
    ALLOW_EVICTION,
    METRICS
};

enum { TOPIC_FLAGS = 6 };
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
                     "running, also with other workers"},
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
    [ALLOW_EVICTION] = {"allow-eviction", NULL,
                        "serve also where the server may drop jobs: its\n"
                        "maxmemory-policy is not noeviction"},
    [METRICS] = {"metrics", "ADDRESS:PORT",
                 "answer /metrics, /healthz and /readyz there, to\n"
                 "whoever reaches it; port 0 takes a free one"},
};

struct given {
    struct weir__run run;
    /* By flags, of every topic: "name=value"; NULL ends them. */
    char *said[TOPIC_FLAGS + 1];
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

/* Everything that can be checked before a server is looked for or started. */
static enum weir__exit read_all(struct given *given)
{
    const struct weir__args *args = given->run.args;
    struct weir__services *services = &given->run.services;
    enum weir__exit rc;

    if (args->all_count[0] == 0 && args->value[CONFIG] == NULL) {
        weir__complain("run needs --handle TOPIC=PLUGIN or --config F; see "
                       "weir run --help");
        return WEIR__EXIT_USAGE;
    }
    rc = read_flags(given);
    if (rc == WEIR__EXIT_NONE)
        rc = weir__services_read(services, args->value[CONFIG], args);
    return rc == WEIR__EXIT_NONE ? weir__services_check(services) : rc;
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

/* What the file says of how it runs, where no flag does. */
static void configure(struct weir__run *run, char from[PATH_MAX])
{
    const struct weir__config *config = run->services.config;

    weir__services_configure(&run->services, run->configured, from);
    if (config != NULL)
        run->drain_s = (double)config->drain.value / 1000.0;
    run->may_evict = run->args->value[ALLOW_EVICTION] != NULL ||
                     (config != NULL && config->allow_eviction.value != 0);
    run->log = (struct weir__log){.line_fn = weir__log_line,
                                  .level = run->configured->log_level};
}

static enum weir__exit run(const struct weir__cli *cli,
                           const struct weir__args *args)
{
    struct weir__cli configured = *cli;
    struct given given = {
        .run = {.args = args,
                .configured = &configured,
                .metrics = args->value[METRICS],
                .until_empty = args->value[UNTIL_EMPTY] != NULL,
                .drain_s = DRAIN_S}};
    struct weir__run *run = &given.run;
    char from[PATH_MAX];
    enum weir__exit rc;

    keep_freed();
    weir__blame_listen();
    if (cli->json && !cli->has_log_format)
        weir__log_format(WEIR__LOG_JSON);
    configured.has_log_format = cli->has_log_format || cli->json;
    run->said = (const char *const *)given.said;
    rc = read_all(&given);
    if (rc == WEIR__EXIT_NONE) {
        configure(run, from);
        weir__services_warn(&run->services, &run->log);
        rc = weir__run_worker(run);
    }
    weir__services_fini(&run->services);
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
