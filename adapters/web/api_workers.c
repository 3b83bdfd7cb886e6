/* SPDX-License-Identifier: MIT */

/* Who serves topics, asked once a second for all who look. */

#include "adapters/web/api.h"
#include "core/assert.h"
#include "core/mem.h"

#include <ev.h>

enum { WAITING_MAX = 128 }; /* readers of one question */

static const double FRESH_S = 1.0;

struct weir__web_workers {
    struct weir__web *web;
    struct json_object *told;   /* NULL: never, or no memory */
    double at_s;                /* when */
    bool is_asked;              /* an answer is on its way */
    struct json_object *coming; /* NULL: no memory */
    struct weir__http_request *waiting[WAITING_MAX];
    size_t count;
};

static void answer(const struct weir__web_workers *workers,
                   struct weir__http_request *request, int code)
{
    if (code != WEIR_OK)
        weir__api_refuse(request, code, NULL);
    else
        weir__api_answer_tagged(
            request, WEIR__OBJECT(weir__field("workers",
                                              json_object_get(workers->told))));
}

static void on_worker(int code, const struct weir_worker *worker, void *arg)
{
    struct weir__web_workers *workers = arg;

    WEIR_ASSERT(workers->is_asked);
    if (worker != NULL) {
        workers->coming =
            weir__array_with(workers->coming, weir__worker_json(worker));
        return;
    }
    workers->is_asked = false;
    (void)json_object_put(workers->told);
    workers->told = workers->coming;
    workers->coming = NULL;
    if (code == WEIR_OK && workers->told == NULL)
        code = WEIR_ENOMEM;
    workers->at_s = code == WEIR_OK ? ev_now(workers->web->loop) : 0.0;
    for (size_t i = 0; i < workers->count; i++)
        answer(workers, workers->waiting[i], code);
    workers->count = 0;
}

void weir__api_workers(struct weir__http_request *request, void *arg)
{
    struct weir__web *web = arg;
    struct weir__web_workers *workers = web->workers;
    int rc = WEIR_OK;

    if (workers->at_s > 0.0 && ev_now(web->loop) - workers->at_s < FRESH_S) {
        answer(workers, request, WEIR_OK);
        return;
    }
    if (!workers->is_asked) {
        workers->coming = json_object_new_array();
        rc = weir_reactor_workers(web->reactor, on_worker, workers);
        workers->is_asked = rc == WEIR_OK;
    }
    if (rc == WEIR_OK && workers->count == WAITING_MAX)
        rc = WEIR_EFULL;
    if (rc == WEIR_OK)
        workers->waiting[workers->count++] = request;
    else
        weir__api_refuse(request, rc, NULL);
    if (!workers->is_asked) {
        (void)json_object_put(workers->coming);
        workers->coming = NULL;
    }
}

int weir__web_workers_open(struct weir__web *web)
{
    web->workers = weir__mem_new(sizeof(*web->workers));
    if (web->workers == NULL)
        return WEIR_ENOMEM;
    web->workers->web = web;
    return WEIR_OK;
}

void weir__web_workers_close(struct weir__web *web)
{
    if (web->workers != NULL)
        (void)json_object_put(web->workers->told);
    weir__mem_free(web->workers);
    web->workers = NULL;
}
