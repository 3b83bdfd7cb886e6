/* SPDX-License-Identifier: MIT */
#include "adapters/web/web.h"

#include "adapters/web/snapshot.h"
#include "core/assert.h"
#include "core/error.h"

void weir__web_route(struct weir__web *web, enum weir__http_method method,
                     enum weir__http_access access, const char *path,
                     weir__http_fn fn)
{
    WEIR_ASSERT(web->route_count < WEIR__WEB_ROUTES);
    web->routes[web->route_count++] =
        (struct weir__http_route){method, access, path, fn, web};
}

static void login_routes(struct weir__web *web)
{
    weir__web_route(web, WEIR__HTTP_POST, WEIR__HTTP_OPEN, "/login",
                    weir__http_login);
    weir__web_route(web, WEIR__HTTP_POST, WEIR__HTTP_OPEN, "/logout",
                    weir__http_logout);
}

static int open_parts(struct weir__web *web)
{
    int rc = weir__snapshot_open(web->loop, web->reactor, &web->snapshot);

    login_routes(web);
    weir__web_health_routes(web);
    web->sieves.loop = web->loop;
    weir__web_api_routes(web);
    if (rc == WEIR_OK)
        rc = weir__web_workers_open(web);
    if (rc == WEIR_OK)
        rc = weir__nodes_open(web->url, &web->nodes);
    if (rc == WEIR_OK)
        rc = weir__web_page_routes(web);
    if (rc == WEIR_OK)
        rc = weir__web_metrics_open(web);
    return rc;
}

/* What waits is answered before the server goes. */
static void close_parts(struct weir__web *web)
{
    weir__web_metrics_close(web);
    weir__sieves_close(&web->sieves);
    weir__http_close(web->http);
    weir__web_workers_close(web);
    weir__snapshot_close(web->snapshot);
    weir__nodes_close(web->nodes);
    weir__web_page_fini(web);
}

int weir__web_open(struct weir__web *web, struct weir__http_options options,
                   struct weir_error *err)
{
    int rc = open_parts(web);

    if (rc < 0) {
        (void)weir__error_code(err, rc);
    } else {
        options.loop = web->loop;
        options.routes = web->routes;
        rc = weir__http_open(&options, &web->http, err);
    }
    if (rc < 0)
        close_parts(web);
    return rc;
}

void weir__web_close(struct weir__web *web)
{
    close_parts(web);
}
