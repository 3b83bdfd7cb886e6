/* SPDX-License-Identifier: MIT */
#include "bench/ask.h"

#include "bench/team.h"
#include "core/error.h"

#include <ev.h>
#include <stdio.h>

struct request {
    struct ev_loop *loop;
    struct weir_reactor *weir;
    int code;
    char text[200]; /* what it says to a code below 0 */
    struct bench_counts counts;
};

static int begin(struct request *request, const struct bench_topic *topic,
                 struct weir_error *err)
{
    struct weir_options options = {
        .redis_url = topic->url,
        .request_timeout_ms = BENCH_REQUEST_LIMIT_MS,
    };
    int rc;

    *request = (struct request){.loop = ev_loop_new(EVFLAG_AUTO)};
    if (request->loop == NULL)
        return weir__error_set(err, WEIR_ESYSTEM, "cannot make a loop");
    options.loop = request->loop;
    rc = weir_reactor_open(&options, &request->weir, err);
    if (rc == WEIR_OK)
        rc = weir_reactor_declare(request->weir, topic->name, topic->kind, err);
    if (rc < 0) {
        weir_reactor_free(request->weir);
        ev_loop_destroy(request->loop);
    }
    return rc;
}

static void finish(struct request *request, int code, const char *text)
{
    request->code = code;
    (void)snprintf(request->text, sizeof(request->text), "%s",
                   text != NULL ? text : weir_error_text(code));
    ev_break(request->loop, EVBREAK_ALL);
}

/* `rc` is what the call returned that asked. */
static int await(struct request *request, int rc, struct weir_error *err)
{
    if (rc == WEIR_OK) {
        ev_run(request->loop, 0);
        rc = request->code;
        if (rc < 0)
            (void)weir__error_set(err, rc, "%s", request->text);
    }
    weir_reactor_free(request->weir);
    ev_loop_destroy(request->loop);
    return rc;
}

static void on_set(int code, const char *text, void *arg)
{
    finish(arg, code, text);
}

int bench_topic_set(const struct bench_topic *topic,
                    const char *const *settings, struct weir_error *err)
{
    struct request request;
    int rc = begin(&request, topic, err);

    if (rc < 0)
        return rc;
    return await(&request,
                 weir_reactor_set(request.weir, topic->name, settings, on_set,
                                  &request, err),
                 err);
}

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    struct request *request = arg;

    if (stats != NULL)
        request->counts = (struct bench_counts){
            .left = (int64_t)(stats->scheduled + stats->ready + stats->running),
            .added = (int64_t)stats->added_total,
            .done = (int64_t)stats->done_total,
            .dropped_overflow = (int64_t)stats->dropped_overflow,
            .dropped_age = (int64_t)stats->dropped_age,
            .dropped_ttl = (int64_t)stats->dropped_ttl,
        };
    finish(request, code == WEIR_ENOTFOUND ? WEIR_OK : code, NULL);
}

int bench_topic_counts(const struct bench_topic *topic,
                       struct bench_counts *ret_counts, struct weir_error *err)
{
    struct request request;
    int rc = begin(&request, topic, err);

    if (rc < 0)
        return rc;
    rc = weir_reactor_stats(request.weir, topic->name, on_stats, &request);
    if (rc < 0)
        (void)weir__error_set(err, rc, "%s", weir_error_text(rc));
    rc = await(&request, rc, err);
    if (rc == WEIR_OK)
        *ret_counts = request.counts;
    return rc;
}
