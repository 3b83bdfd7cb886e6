/* SPDX-License-Identifier: MIT */
#ifndef WEIR_WEB_H
#define WEIR_WEB_H

/* What weir answers over HTTP: a table of routes for each subject, in a file of
 * its own, joined here. `weir web` has all of them. */

#include "adapters/cli/client.h"
#include "adapters/http/http.h"
#include "adapters/web/nodes.h"
#include "adapters/web/sieve.h"
#include "adapters/web/snapshot.h"

#include "core/error.h"

#include <weir/weir.h>

#include <ev.h>

enum { WEIR__WEB_ROUTES = 64, WEIR__READY_WAITING = 8 };

struct weir__metrics;

/* Requests of /readyz that wait for one answer of the server. */
struct weir__readiness {
    struct ev_loop *loop; /* borrowed */
    struct ev_timer limit;
    struct weir__http_request *waiting[WEIR__READY_WAITING];
    size_t count;
    bool is_asked;
};

struct weir__web {
    struct ev_loop *loop;         /* borrowed */
    struct weir_reactor *reactor; /* likewise */
    const char *url;              /* of the server; likewise */
    struct weir__nodes *nodes;
    struct weir__http *http;
    struct weir__http_route routes[WEIR__WEB_ROUTES + 1];
    size_t route_count;
    struct weir__snapshot *snapshot;
    struct weir__web_workers *workers;
    struct weir__sieves sieves; /* filters of readers at work */
    struct weir__metrics *metrics;
    struct weir__http_content *content; /* a worker's metrics; NULL: none yet */
    double made_s;
    struct weir__readiness readiness;
    const char *unready; /* why /readyz refuses; NULL: the server decides */
    struct weir__http_content **files; /* of weir__web_files, in its order */
};

/* Add a route; `arg` of its function is the web. */
void weir__web_route(struct weir__web *web, enum weir__http_method method,
                     enum weir__http_access access, const char *path,
                     weir__http_fn fn);

/* The routes of each subject, before the server is opened. WEIR_ENOMEM. */
void weir__web_health_routes(struct weir__web *web);
int weir__web_page_routes(struct weir__web *web);
void weir__web_api_routes(struct weir__web *web);
int weir__web_workers_open(struct weir__web *web);
int weir__web_metrics_open(struct weir__web *web);

/* Listen. `options` has neither loop nor routes; loop, reactor and url of `web`
 * are set, all else is zero. As weir__http_open; nothing is to be closed when
 * it fails. */
int weir__web_open(struct weir__web *web, struct weir__http_options options,
                   struct weir_error *err);

/* Behind weir_reactor_free, whose last callbacks answer requests. */
void weir__web_close(struct weir__web *web);

/* Answer for metrics and health of a worker at `address`, without a token, to
 * whoever reaches it; NULL: not at all. `web` is zero. WEIR__EXIT_NONE, or what
 * to exit with: the sentence was printed. */
enum weir__exit weir__web_worker_open(struct weir__web *web,
                                      const struct weir__client *client,
                                      const char *address,
                                      const struct weir__log *log);

/* Behind weir_reactor_free. Not opened: fine. */
void weir__web_worker_close(struct weir__web *web);

/* What these keep. Nothing was opened, or not all: fine. */
void weir__web_page_fini(struct weir__web *web);
void weir__web_workers_close(struct weir__web *web);
void weir__web_metrics_close(struct weir__web *web);

#endif
