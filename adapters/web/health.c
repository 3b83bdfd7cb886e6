/* SPDX-License-Identifier: MIT */

/* /healthz: this process turns its loop; whoever restarts processes asks here.
 * /readyz: the server answers a question now, and a worker has begun to serve
 * and not to stop; whoever sends people or scrapes here asks this. Both without
 * a token: they tell nothing else. */

#include "adapters/web/web.h"

#include "core/error.h"

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

static void on_kind(int code, const char *kind, void *arg)
{
    (void)kind;
    if (code == WEIR_OK || code == WEIR_ENOTFOUND)
        answer(arg, 200, "ok");
    else
        answer(arg, 503, weir_error_text(code));
}

/* Any question that names no job will do. */
static void readyz(struct weir__http_request *request, void *arg)
{
    struct weir__web *web = arg;
    int rc;

    if (web->unready != NULL) {
        answer(request, 503, web->unready);
        return;
    }
    rc = weir_reactor_kind(web->reactor, "readyz", on_kind, request);

    if (rc < 0)
        answer(request, 503, weir_error_text(rc));
}

void weir__web_health_routes(struct weir__web *web)
{
    weir__web_route(web, WEIR__HTTP_GET, WEIR__HTTP_OPEN, "/healthz", healthz);
    weir__web_route(web, WEIR__HTTP_GET, WEIR__HTTP_OPEN, "/readyz", readyz);
}
