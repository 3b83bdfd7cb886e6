/* SPDX-License-Identifier: MIT */

/* weir run --metrics: what this worker did and has, no request to the server.
 * Who asks within a second of another gets the same bytes. */

#include "adapters/web/exposition.h"
#include "adapters/web/web.h"

#include "adapters/weir/facade.h"

#include "core/assert.h"

#include <weir/worker.h>

enum { CONNECTIONS = 32 };

static const double FRESH_S = 1.0;

/* What a family over topics needs. */
struct over_topics {
    struct weir__exposition *text;
    const struct weir_reactor *reactor;
    const char *topic;
};

static void put(struct weir__exposition *text, const char *name,
                const char *type, const char *help, uint64_t value)
{
    weir__family(text, name, type, help);
    weir__sample(text, value);
}

static void put_outcomes(struct weir__exposition *text,
                         const struct weir_totals *totals)
{
    const struct {
        const char *name;
        uint64_t count;
    } outcomes[] = {
        {"done", totals->done},           {"retried", totals->retried},
        {"snoozed", totals->snoozed},     {"dead", totals->dead},
        {"expired", totals->expired},     {"returned", totals->returned},
        {"timed_out", totals->timed_out},
    };

    weir__family(text, "weir_worker_outcomes_total", "counter",
                 "What became of jobs here; timed_out ones are retried or dead "
                 "as well.");
    for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
        weir__label(text, 0, "outcome", outcomes[i].name);
        weir__sample(text, outcomes[i].count);
    }
}

static void put_totals(struct weir__exposition *text,
                       const struct weir_totals *totals)
{
    put(text, "weir_worker_connections_total", "counter",
        "Times that the connection to the server came up.",
        totals->connections);
    put(text, "weir_worker_claims_total", "counter",
        "Answers of the server to the wish for jobs.", totals->claims);
    put(text, "weir_worker_claimed_total", "counter",
        "Jobs that came with them.", totals->claimed);
    put(text, "weir_worker_started_total", "counter", "Calls of handlers.",
        totals->started);
    put_outcomes(text, totals);
    put(text, "weir_worker_refused_total", "counter",
        "Verdicts that the server did not take any more.", totals->refused);
    put(text, "weir_worker_leases_lost_total", "counter",
        "Leases that ended under their runs.", totals->lost);
    put(text, "weir_worker_late_total", "counter",
        "Completions of runs that were over.", totals->late);
    put(text, "weir_worker_held", "gauge", "Jobs under leases of this worker.",
        totals->held);
    put(text, "weir_worker_pending", "gauge",
        "Jobs of these that handlers finish later.", totals->pending);
    put(text, "weir_worker_unanswered", "gauge",
        "Verdicts on their way to the server.", totals->unanswered);
}

static void put_lag(struct weir__exposition *text,
                    const struct weir_reactor *reactor)
{
    struct weir_worker worker;

    weir_reactor_worker(reactor, &worker);
    weir__family(text, "weir_worker_loop_lag_seconds", "gauge",
                 "How late its loop was at worst lately.");
    weir__sample_us(text, worker.lag_us);
}

static void put_lateness(const char *topic, const struct weir__times *times,
                         void *arg)
{
    struct over_topics *over = arg;

    weir__label(over->text, 0, "topic", topic);
    weir__histogram(over->text, times->late, times->late_sum_us);
}

static void put_took(const char *topic, const struct weir__times *times,
                     void *arg)
{
    struct over_topics *over = arg;

    weir__label(over->text, 0, "topic", topic);
    weir__histogram(over->text, times->took, times->took_sum_us);
}

static void put_counter(const char *name, uint64_t value, void *arg)
{
    struct over_topics *over = arg;

    if (name == NULL)
        return; /* that was all */
    weir__label(over->text, 0, "topic", over->topic);
    weir__label(over->text, 1, "counter", name);
    weir__sample(over->text, value);
}

static void put_counters(const char *topic, const struct weir__times *times,
                         void *arg)
{
    struct over_topics *over = arg;

    (void)times;
    over->topic = topic;
    if (weir_reactor_counters(over->reactor, topic, put_counter, over) < 0)
        return; /* it is left in this turn */
}

static void put_all(struct weir__exposition *text,
                    const struct weir_reactor *reactor)
{
    struct over_topics over = {text, reactor, NULL};
    struct weir_totals totals;

    weir__family(text, "weir_build_info", "gauge", "The version of weir.");
    weir__label(text, 0, "version", WEIR_VERSION);
    weir__sample(text, 1);
    weir_reactor_totals(reactor, &totals);
    put_totals(text, &totals);
    put_lag(text, reactor);
    weir__family(text, "weir_worker_run_seconds", "histogram",
                 "How long runs took, up to their verdict.");
    weir__facade_times(reactor, put_took, &over);
    weir__family(text, "weir_worker_lateness_seconds", "histogram",
                 "How late runs started.");
    weir__facade_times(reactor, put_lateness, &over);
    weir__family(text, "weir_worker_counter_total", "counter",
                 "What handlers count with weir_job_count.");
    weir__facade_times(reactor, put_counters, &over);
}

static void scrape(struct weir__http_request *request, void *arg)
{
    struct weir__web *web = arg;
    struct weir__exposition text = {0};

    if (web->content == NULL || ev_now(web->loop) - web->made_s >= FRESH_S) {
        put_all(&text, web->reactor);
        weir__http_content_free(web->content);
        web->content = weir__http_content_new(WEIR__EXPOSITION_TYPE, &text.buf);
        web->made_s = ev_now(web->loop);
    }
    if (web->content != NULL)
        weir__http_answer_shared(request, web->content);
    else
        weir__http_refuse(request, 503, "out of memory");
}

enum weir__exit weir__web_worker_open(struct weir__web *web,
                                      const struct weir__client *client,
                                      const char *address,
                                      const struct weir__log *log)
{
    const struct weir__http_options options = {
        .loop = client->loop,
        .listen = address,
        .allows_remote = true,
        .what = "--metrics",
        .connections = CONNECTIONS,
        .routes = web->routes,
    };
    struct weir_error err = {0};
    int rc;

    if (address == NULL)
        return WEIR__EXIT_NONE;
    WEIR_ASSERT(web->http == NULL && web->content == NULL);
    WEIR_ASSERT(client->loop != NULL && client->reactor != NULL);
    web->loop = client->loop;
    web->reactor = client->reactor;
    web->unready = "the worker is starting";
    weir__facade_measure(web->reactor);
    weir__web_health_routes(web);
    weir__web_route(web, WEIR__HTTP_GET, WEIR__HTTP_READ, "/metrics", scrape);
    rc = weir__http_open(&options, &web->http, &err);
    if (rc == WEIR_OK) {
        weir__log(log, WEIR_LEVEL_INFO, "metrics at http://%s/metrics",
                  weir__http_address(web->http));
        return WEIR__EXIT_NONE;
    }
    weir__complain("%s", err.text);
    return rc == WEIR_EINVAL ? WEIR__EXIT_USAGE : WEIR__EXIT_FAILED;
}

void weir__web_worker_close(struct weir__web *web)
{
    weir__http_close(web->http);
    weir__http_content_free(web->content);
    web->http = NULL;
    web->content = NULL;
}
