/* SPDX-License-Identifier: MIT */

/* weir run: a worker. */

#include "adapters/cli/blame.h"
#include "adapters/cli/client.h"
#include "adapters/cli/counters.h"
#include "adapters/cli/doctor.h"
#include "adapters/cli/kind_questions.h"
#include "adapters/cli/notify.h"
#include "adapters/cli/options.h"
#include "adapters/cli/reload.h"
#include "adapters/cli/signals.h"
#include "adapters/cli/until_empty.h"
#include "adapters/web/web.h"
#include "core/error.h"
#include "core/mem.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
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
    ALLOW_EVICTION,
    METRICS
};

enum { TOPIC_FLAGS = 6 };
_Static_assert((int)WEIR__TOPIC_OPTIONS < WEIR_MAX_OPTIONS,
               "what the file says fits");

static const double DRAIN_S = 30.0; /* where no file says otherwise */
static const double HURRY_S = 3.0;  /* for the server, at the end */
static const double KINDS_S = 3.0;  /* for all topics' servers, at the start */

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

struct run {
    struct weir__client client;
    const struct weir__args *args;
    struct weir__services services;
    /* By flags, of every topic: "name=value"; NULL ends them. */
    char *said[TOPIC_FLAGS + 1];
    struct weir__kind_questions kinds; /* of the services, in their order */
    struct ev_timer kinds_limit;
    struct weir__watch watch;
    struct weir__notify notify;
    struct weir__web web; /* of --metrics */
    struct weir__serving serving;
    struct weir__reload reload;
    struct weir__cli *configured; /* with what the file says */
    struct ev_timer drain, hurry;
    double drain_s;
    bool is_serving; /* what is known later is served then */
    bool is_stopping, is_hurrying;
    enum weir__exit exit_code; /* when the wait ends well */
    struct weir__log log;
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

static enum weir__exit read_flags(struct run *run)
{
    enum weir__exit rc = WEIR__EXIT_NONE;
    size_t count = 0;

    for (size_t i = 0; i < TOPIC_FLAGS && rc == WEIR__EXIT_NONE; i++) {
        const char *text = run->args->value[topic_flags[i].flag];

        if (text != NULL)
            rc = read_flag(flags[topic_flags[i].flag].name, text,
                           &weir__topic_options[topic_flags[i].option],
                           &run->said[count++]);
    }
    return rc;
}

/* Everything that can be checked before a server is looked for or started. */
static enum weir__exit read_all(struct run *run)
{
    const struct weir__args *args = run->args;
    enum weir__exit rc;

    if (args->all_count[0] == 0 && args->value[CONFIG] == NULL) {
        weir__complain("run needs --handle TOPIC=PLUGIN or --config F; see "
                       "weir run --help");
        return WEIR__EXIT_USAGE;
    }
    rc = read_flags(run);
    if (rc == WEIR__EXIT_NONE)
        rc = weir__services_read(&run->services, args->value[CONFIG], args);
    return rc == WEIR__EXIT_NONE ? weir__services_check(&run->services) : rc;
}

/* --- stopping --------------------------------------------------------- */

static void on_stopped(void *arg)
{
    struct run *run = arg;

    weir__client_finish(&run->client, WEIR_OK);
}

/* The server did not take back what is left. */
static void on_hurry(struct ev_loop *loop, struct ev_timer *timer, int events)
{
    struct run *run = timer->data;

    (void)loop;
    (void)events;
    weir__log(&run->log, WEIR_LEVEL_ERROR,
              "the server did not answer for %.0f s; what is left runs again "
              "when its lease has ended",
              HURRY_S);
    run->exit_code = WEIR__EXIT_FAILED;
    weir__client_finish(&run->client, WEIR_OK);
}

/* Wait no longer: what is unfinished goes back at once. */
static void hurry(struct run *run)
{
    ev_timer_stop(run->client.loop, &run->drain);
    ev_now_update(run->client.loop);
    ev_timer_start(run->client.loop, &run->hurry);
    weir_reactor_give_back(run->client.reactor);
}

static void on_drained_too_long(struct ev_loop *loop, struct ev_timer *timer,
                                int events)
{
    struct run *run = timer->data;

    (void)loop;
    (void)events;
    weir__log(&run->log, WEIR_LEVEL_WARN,
              "not finished after %.1f s; what is left is given back",
              run->drain_s);
    hurry(run);
}

static void stop(struct run *run, enum weir__exit exit_code)
{
    run->is_stopping = true;
    weir__reload_stop(&run->reload);
    run->exit_code = exit_code;
    weir__notify_stopping(&run->notify);
    run->web.unready = "the worker is stopping";
    ev_now_update(run->client.loop);
    ev_timer_start(run->client.loop, &run->drain);
    weir_reactor_stop(run->client.reactor, on_stopped, run);
}

/* The file was read again; it says this where no flag does. */
static void take_file(void *arg)
{
    struct run *run = arg;
    const struct weir__config *config = run->services.config;

    run->drain_s = (double)config->drain.value / 1000.0;
    ev_timer_set(&run->drain, run->drain_s, 0.0);
    if (!run->configured->has_log_format)
        weir__log_format((enum weir__log_format)config->log_format.value);
    if (run->configured->has_log_level)
        return;
    run->configured->log_level = (enum weir_level)config->log_level.value;
    run->log.level = run->configured->log_level;
    weir_reactor_log_level(run->client.reactor, run->log.level < WEIR_LEVEL_WARN
                                                    ? run->log.level
                                                    : WEIR_LEVEL_WARN);
}

static void on_signal(int number, void *arg)
{
    struct run *run = arg;
    const char *name = weir__signal_name(number);

    if (number == SIGHUP && !weir__signals_lost_terminal()) {
        weir__reload(&run->reload);
        return;
    }
    if (number == SIGHUP && run->is_stopping)
        return; /* the shell and the kernel both tell of a lost terminal */
    if (!run->is_stopping) {
        weir__log(&run->log, WEIR_LEVEL_INFO, "%s: finishing what runs", name);
        stop(run, WEIR__EXIT_DONE);
        return;
    }
    if (run->is_hurrying) {
        weir__log(&run->log, WEIR_LEVEL_WARN, "%s again: ending at once", name);
        run->exit_code = WEIR__EXIT_FAILED;
        weir__client_finish(&run->client, WEIR_OK);
        return;
    }
    run->is_hurrying = true;
    weir__log(&run->log, WEIR_LEVEL_WARN,
              "%s again: giving back what is not finished", name);
    hurry(run);
}

static void tell_dead(const struct run *run)
{
    for (size_t i = 0; i < run->watch.count; i++) {
        const struct weir__watched *watched = &run->watch.topics[i];
        const struct weir_log_field dead = {"count", NULL,
                                            (int64_t)watched->dead};
        const struct weir_log_line about = {
            .level = WEIR_LEVEL_WARN,
            .topic = watched->topic,
            .event = "left_dead",
            .fields = &dead,
            .field_count = 1,
        };

        if (watched->dead > 0)
            weir__log_about(&run->log, &about,
                            "dead jobs: %" PRIu64 "; weir dead list %s has why",
                            watched->dead, watched->topic);
    }
}

static void on_empty(const struct weir__watched *left, void *arg)
{
    struct run *run = arg;

    if (run->is_stopping || run->exit_code != WEIR__EXIT_DONE)
        return;
    if (left == NULL) {
        weir__log(&run->log, WEIR_LEVEL_INFO, "nothing is left to run");
        tell_dead(run);
        stop(run, WEIR__EXIT_DONE);
        return;
    }
    if (left->newer > 0)
        weir__complain("topic \"%s\" holds %" PRIu64
                       " jobs that a newer version of weir wrote, or that are "
                       "behind one or run elsewhere; serve it with that "
                       "version",
                       left->topic, left->newer);
    else
        weir__complain("topic \"%s\" is paused and holds %" PRIu64
                       " jobs back; resume it to have them run",
                       left->topic, left->held_back);
    stop(run, WEIR__EXIT_FAILED);
}

/* --- working ---------------------------------------------------------- */

/* Topics whose server is away are served when it answers. */
static enum weir__exit serve(struct run *run)
{
    enum weir__exit rc = WEIR__EXIT_NONE;

    run->is_serving = true;
    for (size_t i = 0; i < run->services.count && rc == WEIR__EXIT_NONE; i++)
        if (run->kinds.list[i].is_known)
            rc = weir__serve(&run->serving, &run->services.list[i]);
        else
            weir__log(&run->log, WEIR_LEVEL_WARN,
                      "%s is served when its server answers",
                      run->services.list[i].topic);
    return rc;
}

static void listen_to_signals(struct run *run)
{
    ev_timer_init(&run->drain, on_drained_too_long, run->drain_s, 0.0);
    run->drain.data = run;
    ev_timer_init(&run->hurry, on_hurry, HURRY_S, 0.0);
    run->hurry.data = run;
    weir__signals_open(run->client.loop, on_signal, run);
}

/* Once all kinds are known: of a topic taken for another kind nothing is
 * seen. */
static enum weir__exit watch_topics(struct run *run)
{
    if (run->args->value[UNTIL_EMPTY] == NULL || run->kinds.unknown > 0)
        return WEIR__EXIT_NONE;
    if (weir__watch_init(&run->watch, run->services.count) < 0) {
        weir__complain("out of memory");
        return WEIR__EXIT_FAILED;
    }
    run->watch.loop = run->client.loop;
    run->watch.reactor = run->client.reactor;
    run->watch.done = on_empty;
    run->watch.arg = run;
    for (size_t i = 0; i < run->services.count; i++)
        run->watch.topics[i].topic = run->services.list[i].topic;
    weir__watch_start(&run->watch);
    return WEIR__EXIT_NONE;
}

/* --- kinds ------------------------------------------------------------ */

static void on_kind(size_t at, int code, const char *kind, void *arg)
{
    struct run *run = arg;
    const struct weir__service *service = &run->services.list[at];
    enum weir__exit rc = WEIR__EXIT_NONE;

    if (run->is_stopping || run->exit_code != WEIR__EXIT_DONE)
        return; /* it is over */
    if (code != WEIR_OK)
        rc = weir__client_exit(&run->client, code, "kind");
    else if (kind != NULL)
        rc = weir__serving_kind(&run->serving, &run->services, service, kind);
    if (rc == WEIR__EXIT_NONE && run->is_serving)
        rc = weir__serve(&run->serving, service);
    if (rc == WEIR__EXIT_NONE && run->is_serving)
        rc = watch_topics(run);
    if (rc != WEIR__EXIT_NONE && run->is_serving) {
        stop(run, rc);
        return;
    }
    if (rc != WEIR__EXIT_NONE)
        run->exit_code = rc;
    if (!run->is_serving && (rc != WEIR__EXIT_NONE || run->kinds.unknown == 0))
        weir__client_finish(&run->client, WEIR_OK);
}

static void on_kinds_limit(struct ev_loop *loop, struct ev_timer *timer,
                           int events)
{
    struct run *run = timer->data;

    (void)loop;
    (void)events;
    weir__client_finish(&run->client, WEIR_OK);
}

/* All are asked at once: what is wrong with one of them is said before any is
 * served, unless its server is away for longer. */
static enum weir__exit know_kinds(struct run *run)
{
    struct weir__client *client = &run->client;

    if (weir__kind_questions_init(&run->kinds, run->services.count) < 0) {
        weir__complain("out of memory");
        return WEIR__EXIT_FAILED;
    }
    run->kinds.loop = client->loop;
    run->kinds.reactor = client->reactor;
    run->kinds.told = on_kind;
    run->kinds.arg = run;
    for (size_t i = 0; i < run->services.count; i++)
        run->kinds.list[i].topic = run->services.list[i].topic;
    ev_timer_init(&run->kinds_limit, on_kinds_limit, KINDS_S, 0.0);
    run->kinds_limit.data = run;
    ev_now_update(client->loop);
    ev_timer_start(client->loop, &run->kinds_limit);
    weir__kind_questions_ask(&run->kinds);
    (void)weir__client_wait(client); /* or a signal ended it */
    ev_timer_stop(client->loop, &run->kinds_limit);
    return run->exit_code == WEIR__EXIT_DONE ? WEIR__EXIT_NONE : run->exit_code;
}

static bool may_evict(const struct run *run)
{
    const struct weir__config *config = run->services.config;

    return run->args->value[ALLOW_EVICTION] != NULL ||
           (config != NULL && config->allow_eviction.value != 0);
}

static void prepare_reload(struct run *run)
{
    run->serving = (struct weir__serving){
        run->client.reactor, (const char *const *)run->said, &run->log};
    run->reload.loop = run->client.loop;
    run->reload.serving = run->serving;
    run->reload.args = run->args;
    run->reload.services = &run->services;
    run->reload.waiting = &run->kinds;
    run->reload.notify = &run->notify;
    run->reload.taken = take_file;
    run->reload.arg = run;
    if (run->args->value[UNTIL_EMPTY] != NULL)
        run->reload.never = "with --until-empty the topics stay as they are";
}

/* With an open client. */
static enum weir__exit work(struct run *run)
{
    int code = weir__client_connect(&run->client);
    bool is_cluster = false;
    enum weir__exit rc;

    if (code < 0)
        return weir__client_exit(&run->client, code, "run");
    if (run->is_stopping)
        return run->exit_code;
    rc = weir__gate(&run->client, may_evict(run), &run->log, &is_cluster);
    if (rc == WEIR__EXIT_NONE && is_cluster)
        rc = weir__services_check_keys(&run->services);
    if (rc == WEIR__EXIT_NONE)
        rc = know_kinds(run);
    if (run->is_stopping && rc == WEIR__EXIT_NONE)
        return run->exit_code;
    if (rc == WEIR__EXIT_NONE)
        rc = serve(run);
    if (rc == WEIR__EXIT_NONE)
        rc = watch_topics(run);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    weir__notify_ready(&run->notify, run->client.loop);
    run->web.unready = NULL;
    weir__reload_ready(&run->reload, is_cluster);
    code = weir__client_wait(&run->client);
    weir__notify_close(&run->notify);
    if (code < 0)
        return weir__client_exit(&run->client, code, "run");
    return run->exit_code;
}

static void log_counters(const struct run *run)
{
    for (size_t i = 0; i < run->services.count; i++)
        weir__counters_log(run->client.reactor, run->services.list[i].topic,
                           &run->log);
}

static enum weir__exit run_worker(struct run *run, const struct weir__cli *cli)
{
    enum weir__exit rc =
        weir__client_open(&run->client, cli, weir__log_line, 0);

    if (rc != WEIR__EXIT_NONE)
        return rc;
    weir__blame_worker(run->client.reactor);
    prepare_reload(run);
    listen_to_signals(run);
    rc = weir__web_worker_open(&run->web, &run->client,
                               run->args->value[METRICS], &run->log);
    if (rc == WEIR__EXIT_NONE)
        rc = work(run);
    weir__signals_close();
    ev_timer_stop(run->client.loop, &run->drain);
    ev_timer_stop(run->client.loop, &run->hurry);
    log_counters(run);
    weir_reactor_free(run->client.reactor); /* its callbacks use the watch */
    weir__blame_worker(NULL);
    weir__web_worker_close(&run->web);
    run->client.reactor = NULL;
    weir__watch_fini(&run->watch);
    weir__kind_questions_fini(&run->kinds);
    weir__reload_fini(&run->reload);
    weir__client_close(&run->client);
    return rc;
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

static enum weir__exit run(const struct weir__cli *cli,
                           const struct weir__args *args)
{
    struct run run = {
        .args = args, .drain_s = DRAIN_S, .exit_code = WEIR__EXIT_DONE};
    struct weir__cli configured = *cli;
    char from[PATH_MAX];
    enum weir__exit rc;

    keep_freed();
    weir__blame_listen();
    if (cli->json && !cli->has_log_format)
        weir__log_format(WEIR__LOG_JSON);
    configured.has_log_format = cli->has_log_format || cli->json;
    run.configured = &configured;
    rc = read_all(&run);
    if (rc == WEIR__EXIT_NONE) {
        weir__services_configure(&run.services, &configured, from);
        if (run.services.config != NULL)
            run.drain_s = (double)run.services.config->drain.value / 1000.0;
        run.log = (struct weir__log){.line_fn = weir__log_line,
                                     .level = configured.log_level};
        weir__services_warn(&run.services, &run.log);
        rc = run_worker(&run, &configured);
    }
    weir__services_fini(&run.services);
    for (size_t i = 0; i < TOPIC_FLAGS; i++)
        weir__mem_free(run.said[i]);
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
