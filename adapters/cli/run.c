/* SPDX-License-Identifier: MIT */
#include "adapters/cli/run.h"

#include "adapters/cli/blame.h"
#include "adapters/cli/counters.h"
#include "adapters/cli/crons.h"
#include "adapters/cli/doctor.h"
#include "adapters/cli/signals.h"

#include <inttypes.h>

static const double HURRY_S = 3.0; /* for the server, at the end */
static const double KINDS_S = 3.0; /* for all topics' servers, at the start */

/* --- stopping --------------------------------------------------------- */

static void on_stopped(void *arg)
{
    struct weir__run *run = arg;

    weir__client_finish(&run->client, WEIR_OK);
}

/* The server did not take back what is left. */
static void on_hurry(struct ev_loop *loop, struct ev_timer *timer, int events)
{
    struct weir__run *run = timer->data;

    (void)loop;
    (void)events;
    weir__log(&run->log, WEIR_LEVEL_ERROR,
              "the server did not take back what is left for %.0f s; it runs "
              "again when its lease has ended",
              HURRY_S);
    run->exit_code = WEIR__EXIT_FAILED;
    weir__client_finish(&run->client, WEIR_OK);
}

/* Wait no longer: what is unfinished goes back at once. */
static void hurry(struct weir__run *run)
{
    ev_timer_stop(run->client.loop, &run->drain);
    ev_now_update(run->client.loop);
    ev_timer_start(run->client.loop, &run->hurry);
    weir_reactor_give_back(run->client.reactor);
}

static void on_drained_too_long(struct ev_loop *loop, struct ev_timer *timer,
                                int events)
{
    struct weir__run *run = timer->data;

    (void)loop;
    (void)events;
    weir__log(&run->log, WEIR_LEVEL_WARN,
              "not finished after %.1f s; what is left is given back",
              run->drain_s);
    hurry(run);
}

static void stop(struct weir__run *run, enum weir__exit exit_code)
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
    struct weir__run *run = arg;
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
    struct weir__run *run = arg;
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

static void tell_dead(const struct weir__run *run)
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

static void tell_elsewhere(const struct weir__run *run)
{
    for (size_t i = 0; i < run->watch.count; i++)
        if (run->watch.topics[i].elsewhere > 0)
            weir__log(&run->log, WEIR_LEVEL_INFO,
                      "%s: %" PRIu64 " events are in groups that this worker "
                      "does not serve",
                      run->watch.topics[i].topic,
                      run->watch.topics[i].elsewhere);
}

static void on_empty(const struct weir__watched *left, void *arg)
{
    struct weir__run *run = arg;

    if (run->is_stopping || run->exit_code != WEIR__EXIT_DONE)
        return;
    if (left == NULL) {
        weir__log(&run->log, WEIR_LEVEL_INFO, "nothing is left to run");
        tell_elsewhere(run);
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
static enum weir__exit serve(struct weir__run *run)
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

static void listen_to_signals(struct weir__run *run)
{
    ev_timer_init(&run->drain, on_drained_too_long, run->drain_s, 0.0);
    run->drain.data = run;
    ev_timer_init(&run->hurry, on_hurry, HURRY_S, 0.0);
    run->hurry.data = run;
    weir__signals_open(run->client.loop, on_signal, run);
}

/* Once all kinds are known: of a topic taken for another kind nothing is
 * seen. */
static enum weir__exit watch_topics(struct weir__run *run)
{
    if (!run->until_empty || run->kinds.unknown > 0)
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
    struct weir__run *run = arg;
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
    struct weir__run *run = timer->data;

    (void)loop;
    (void)events;
    weir__client_finish(&run->client, WEIR_OK);
}

/* All are asked at once: what is wrong with one of them is said before any is
 * served, unless its server is away for longer. */
static enum weir__exit know_kinds(struct weir__run *run)
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

static void prepare_reload(struct weir__run *run)
{
    run->serving =
        (struct weir__serving){run->client.reactor, run->said, &run->log};
    run->reload.loop = run->client.loop;
    run->reload.serving = run->serving;
    run->reload.args = run->args;
    run->reload.services = &run->services;
    run->reload.waiting = &run->kinds;
    run->reload.notify = &run->notify;
    run->reload.taken = take_file;
    run->reload.arg = run;
    if (run->until_empty)
        run->reload.never = "with --until-empty the topics stay as they are";
}

/* With an open client. */
static enum weir__exit work(struct weir__run *run)
{
    int code = weir__client_connect(&run->client);
    bool is_cluster = false;
    enum weir__exit rc;

    if (code < 0)
        return weir__client_exit(&run->client, code, "run");
    if (run->is_stopping)
        return run->exit_code;
    rc = weir__gate(&run->client, run->may_evict, &run->log, &is_cluster);
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
    weir__crons_set(run->client.reactor, &run->services, &run->log);
    weir__notify_ready(&run->notify, run->client.loop);
    run->web.unready = NULL;
    weir__reload_ready(&run->reload, is_cluster);
    code = weir__client_wait(&run->client);
    weir__notify_close(&run->notify);
    if (code < 0)
        return weir__client_exit(&run->client, code, "run");
    return run->exit_code;
}

static void log_counters(const struct weir__run *run)
{
    for (size_t i = 0; i < run->services.count; i++)
        weir__counters_log(run->client.reactor, run->services.list[i].topic,
                           &run->log);
}

enum weir__exit weir__run_worker(struct weir__run *run)
{
    enum weir__exit rc =
        weir__client_open(&run->client, run->configured, weir__log_line, 0);

    if (rc != WEIR__EXIT_NONE)
        return rc;
    weir__blame_worker(run->client.reactor);
    prepare_reload(run);
    listen_to_signals(run);
    rc =
        weir__web_worker_open(&run->web, &run->client, run->metrics, &run->log);
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
