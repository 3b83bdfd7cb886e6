/* SPDX-License-Identifier: MIT */

/* /healthz: this process turns its loop; a supervisor that restarts processes
 * asks here. /readyz: the server answers a question now, and a worker has begun
 * to serve and not to stop; load balancers ask this. Both without a token: they
 * tell nothing else. While the server is silent, few requests wait for /readyz
 * and none for long, so that connections are left for /healthz. */

#include "adapters/web/web.h"

#include "core/assert.h"
#include "core/error.h"

#include <ev.h>

/* Longer than weir web waits for the server (PATIENCE_MS), which says more. */
static const double LIMIT_S = 5.0;

static void answer(struct weir__http_request *request, unsigned int status,
                   const char *text)
{
    struct weir__buf buf = {0};

    for (const char *c = text; *c != '\0'; c++)
        weir__buf_append(&buf, c, 1);
    weir__buf_append(&buf, "\n", 1);
    weir__http_answer(request, status, "text/plain; charset=utf-8", &buf);
}

static void healthz(struct weir__http_request *request, void *arg)
{
    (void)arg;
    answer(request, 200, "ok");
}

static void answer_all(struct weir__readiness *readiness, unsigned int status,
                       const char *text)
{
    ev_timer_stop(readiness->loop, &readiness->limit);
    while (readiness->count > 0)
        answer(readiness->waiting[--readiness->count], status, text);
}

static void on_limit(struct ev_loop *loop, struct ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    answer_all(timer->data, 503, "the server does not answer");
}

static void on_kind(int code, const char *kind, void *arg)
{
    struct weir__readiness *readiness = arg;

    (void)kind;
    readiness->is_asked = false;
    if (code == WEIR_OK || code == WEIR_ENOTFOUND)
        answer_all(readiness, 200, "ok");
    else
        answer_all(readiness, 503, weir_error_text(code));
}

static void wait_for_answer(struct weir__readiness *readiness,
                            struct weir__http_request *request)
{
    if (readiness->count == WEIR__READY_WAITING) {
        answer(request, 503, "too many requests wait for the server");
        return;
    }
    if (readiness->count == 0)
        ev_timer_start(readiness->loop, &readiness->limit);
    readiness->waiting[readiness->count++] = request;
}

/* Any question that names no job will do. Requests share it. */
static void readyz(struct weir__http_request *request, void *arg)
{
    struct weir__web *web = arg;
    struct weir__readiness *readiness = &web->readiness;
    int rc = WEIR_OK;

    if (web->unready != NULL) {
        answer(request, 503, web->unready);
        return;
    }
    if (!readiness->is_asked)
        rc = weir_reactor_kind(web->reactor, "readyz", on_kind, readiness);
    if (rc < 0) {
        answer(request, 503, weir_error_text(rc));
        return;
    }
    readiness->is_asked = true;
    wait_for_answer(readiness, request);
}

void weir__web_health_routes(struct weir__web *web)
{
    WEIR_ASSERT(web->loop != NULL);
    web->readiness.loop = web->loop;
    ev_timer_init(&web->readiness.limit, on_limit, LIMIT_S, 0.0);
    web->readiness.limit.data = &web->readiness;
    weir__web_route(web, WEIR__HTTP_GET, WEIR__HTTP_OPEN, "/healthz", healthz);
    weir__web_route(web, WEIR__HTTP_GET, WEIR__HTTP_OPEN, "/readyz", readyz);
}
