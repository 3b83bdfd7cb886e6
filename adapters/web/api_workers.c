/* SPDX-License-Identifier: MIT */

/* Who serves topics, asked once a second for all who look. */

#include "adapters/web/api.h"
#include "core/assert.h"
#include "core/mem.h"

#include <ev.h>
#include <string.h>

enum { WAITING_MAX = 128 }; /* readers of one question */
enum { TOPICS = 16 };       /* of each worker where all are asked for */

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

/* --- which of them, and of which topics ----------------------------------- */

static bool has_text(struct json_object *object, const char *name,
                     const char *text)
{
    struct json_object *value = json_object_object_get(object, name);

    return value != NULL && strcmp(json_object_get_string(value), text) == 0;
}

/* Of the worker's topics the one of that name; NULL: the first `limit`. */
static struct json_object *some_topics(struct json_object *worker,
                                       const char *topic, size_t limit)
{
    struct json_object *all = json_object_object_get(worker, "topics");
    struct json_object *some = json_object_new_array();
    const size_t count = json_object_array_length(all);

    for (size_t i = 0, found = 0; i < count && found < limit; i++) {
        struct json_object *one = json_object_array_get_idx(all, i);

        if (topic != NULL && !has_text(one, "topic", topic))
            continue;
        some = weir__array_with(some, json_object_get(one));
        found++;
    }
    return some;
}

/* The worker with these topics; it shares the rest. */
static struct json_object *with_topics(struct json_object *worker,
                                       struct json_object *topics)
{
    struct json_object *copy = json_object_new_object();
    struct json_object_iterator it = json_object_iter_begin(worker);
    struct json_object_iterator end = json_object_iter_end(worker);

    for (; !json_object_iter_equal(&it, &end); json_object_iter_next(&it)) {
        const char *name = json_object_iter_peek_name(&it);
        const bool is_topics = strcmp(name, "topics") == 0;

        weir__object_put(
            &copy,
            weir__field(
                name, is_topics
                          ? topics
                          : json_object_get(json_object_iter_peek_value(&it))));
    }
    return copy;
}

/* The worker and the topic that a reader asks for; NULL: all. */
struct choice {
    const char *name, *topic;
    size_t offset, limit;
    size_t found; /* so many fit */
    struct json_object *page;
};

/* Topics of a worker are read only where they matter: a page of many workers
 * must not hold the loop. */
static void choose(struct choice *choice, struct json_object *worker)
{
    const bool is_on_page = choice->found >= choice->offset &&
                            choice->found - choice->offset < choice->limit;
    struct json_object *topics = NULL;

    if (choice->name != NULL && !has_text(worker, "name", choice->name))
        return;
    if (choice->topic != NULL || is_on_page)
        topics = some_topics(worker, choice->topic,
                             choice->topic != NULL  ? 1
                             : choice->name != NULL ? SIZE_MAX
                                                    : TOPICS);
    if (choice->topic != NULL && json_object_array_length(topics) == 0) {
        (void)json_object_put(topics);
        return;
    }
    choice->found++;
    if (is_on_page)
        choice->page =
            weir__array_with(choice->page, with_topics(worker, topics));
    else
        (void)json_object_put(topics);
}

/* ?name= has the worker with all of its topics, ?topic= those that serve it
 * with that one alone. False: it is refused. */
static bool chosen(const struct weir__web_workers *workers,
                   struct weir__http_request *request,
                   struct choice *ret_choice)
{
    const size_t count = json_object_array_length(workers->told);

    *ret_choice = (struct choice){
        .name = weir__http_query(request, "name"),
        .topic = weir__http_query(request, "topic"),
    };
    if (!weir__api_number(request, "offset", SIZE_MAX, 0,
                          &ret_choice->offset) ||
        !weir__api_number(request, "limit", WEIR__API_PAGE_MAX, WEIR__API_PAGE,
                          &ret_choice->limit))
        return false;
    ret_choice->page = json_object_new_array();
    for (size_t i = 0; i < count; i++)
        choose(ret_choice, json_object_array_get_idx(workers->told, i));
    return true;
}

/* --- asking --------------------------------------------------------------- */

static void answer(const struct weir__web_workers *workers,
                   struct weir__http_request *request, int code)
{
    struct choice choice;

    if (code != WEIR_OK)
        weir__api_refuse(request, code, NULL);
    else if (chosen(workers, request, &choice))
        weir__api_answer_tagged(
            request, WEIR__OBJECT(weir__field_number("found", choice.found),
                                  weir__field_number("offset", choice.offset),
                                  weir__field("workers", choice.page)));
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
