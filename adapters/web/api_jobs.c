/* SPDX-License-Identifier: MIT */

/* Jobs of a topic, a page at a time and without their bodies, and one of them
 * with all that is known. */

#include "adapters/web/api.h"
#include "adapters/web/scan.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

#include <stdio.h>
#include <string.h>

/* What waits for an answer. */
struct asked {
    struct weir__http_request *request;
    struct json_object *jobs; /* NULL: no memory */
    size_t count, limit;
    bool has_more;
    uint64_t failed; /* jobs on which the filter did */
    char topic[WEIR_MAX_TOPIC + 1];
    char next[WEIR_MAX_PLACE + 1]; /* behind the last job; "": none */
};

static struct asked *make(struct weir__http_request *request, const char *topic,
                          size_t limit)
{
    struct asked *asked = weir__mem_new(sizeof(*asked));

    if (asked == NULL) {
        weir__api_refuse(request, WEIR_ENOMEM, NULL);
        return NULL;
    }
    asked->request = request;
    asked->limit = limit;
    (void)snprintf(asked->topic, sizeof(asked->topic), "%s", topic); /* fits */
    return asked;
}

/* --- a page --------------------------------------------------------------- */

static void end_page(struct asked *asked, int code, const char *text)
{
    struct weir__field next = weir__field_null("next");

    if (code != WEIR_OK) {
        (void)json_object_put(asked->jobs);
        weir__api_refuse(asked->request, code, text);
    } else {
        if (asked->has_more && asked->next[0] != '\0')
            next = weir__field_str("next", asked->next);
        weir__api_answer(
            asked->request,
            WEIR__OBJECT(weir__field("jobs", asked->jobs), next,
                         weir__field_number("failed", asked->failed)));
    }
    weir__mem_free(asked);
}

/* One more than the page has is asked for, to know whether there is. */
static void on_job(int code, const struct weir_job_info *job, void *arg)
{
    struct asked *asked = arg;

    if (job == NULL) {
        end_page(asked, code,
                 code == WEIR_EINVAL ? "after is no place in this list" : NULL);
        return;
    }
    if (asked->count == asked->limit) {
        asked->has_more = true;
        return;
    }
    WEIR_ASSERT(asked->count < asked->limit);
    asked->count++;
    asked->jobs =
        weir__array_with(asked->jobs, weir__scan_row(asked->topic, job));
    (void)snprintf(asked->next, sizeof(asked->next), "%.*s",
                   (int)job->place.len, (const char *)job->place.ptr);
}

/* --- a page of those that a program takes --------------------------------- */

enum { LOOKED_AT_MAX = 20000 }; /* for one page; then it is cut there */

static bool on_found(const struct weir__scanned *job, void *arg)
{
    struct asked *asked = arg;

    asked->jobs = weir__array_with(asked->jobs, json_object_get(job->row));
    return ++asked->count < asked->limit;
}

static void on_end(int code, const char *text, const char *next,
                   uint64_t failed, void *arg)
{
    struct asked *asked = arg;

    asked->failed = failed;
    asked->has_more = next[0] != '\0';
    (void)snprintf(asked->next, sizeof(asked->next), "%s", next); /* fits */
    end_page(asked, code, text);
}

static int ask_filtered(struct weir__web *web, struct asked *asked,
                        const struct weir_list *list, const char *where)
{
    const struct weir__scan_options options = {
        .topic = asked->topic,
        .program = where,
        .state = list->state,
        .after = list->after,
        .most = LOOKED_AT_MAX,
        .wanted = asked->limit,
        .wants_rows = true,
        .found = on_found,
        .end = on_end,
        .arg = asked,
    };

    return weir__scan(web, &options);
}

/* --- which page ----------------------------------------------------------- */

static bool read_state(struct weir__http_request *request, int *ret_state)
{
    const char *text = weir__http_query(request, "state");

    *ret_state = -1;
    if (text == NULL || text[0] == '\0')
        return true;
    for (int i = WEIR_JOB_SCHEDULED; i <= WEIR_JOB_DEAD; i++)
        if (strcmp(text, weir_job_state_name((enum weir_job_state)i)) == 0)
            *ret_state = i;
    if (*ret_state < 0)
        weir__http_refuse(request, 400, "there is no such state");
    return *ret_state >= 0;
}

void weir__api_jobs(struct weir__web *web, struct weir__http_request *request,
                    const char *topic)
{
    struct weir_list list = {.after = weir__http_query(request, "after")};
    const char *where = weir__http_query(request, "where");
    struct asked *asked;
    size_t limit;
    int rc;

    if (!read_state(request, &list.state) ||
        !weir__api_number(request, "limit", WEIR__API_PAGE_MAX, WEIR__API_PAGE,
                          &limit))
        return;
    asked = make(request, topic, limit);
    if (asked == NULL)
        return;
    list.limit = limit + 1;
    asked->jobs = json_object_new_array();
    rc =
        where != NULL && where[0] != '\0'
            ? ask_filtered(web, asked, &list, where)
            : weir_reactor_list_from(web->reactor, topic, &list, on_job, asked);
    if (rc != WEIR_OK)
        end_page(asked, rc, NULL);
}

/* --- one job -------------------------------------------------------------- */

static void on_show(int code, const struct weir_job_info *job, void *arg)
{
    struct asked *asked = arg;

    if (code == WEIR_OK && job != NULL)
        weir__api_answer(asked->request, weir__job_json(asked->topic, job));
    else
        weir__api_refuse(asked->request, code,
                         code == WEIR_ENOTFOUND
                             ? "there is no job of this id in the topic; jobs "
                               "that are done are not kept"
                             : NULL);
    weir__mem_free(asked);
}

void weir__api_job(struct weir__web *web, struct weir__http_request *request,
                   const char *topic)
{
    const char *id = weir__http_part(request, 2);
    struct weir_error err = {0};
    struct asked *asked;
    int rc;

    WEIR_ASSERT(id != NULL);
    if (weir__http_part(request, 3) != NULL) {
        weir__http_refuse(request, 404, "there is nothing at this address");
        return;
    }
    if (weir__id_check_any(weir__slice_str(id), &err) < 0) {
        weir__http_refuse(request, 400, "%s", err.text);
        return;
    }
    asked = make(request, topic, 0);
    if (asked == NULL)
        return;
    rc = weir_reactor_show(web->reactor, topic, id, on_show, asked);
    if (rc != WEIR_OK)
        on_show(rc, NULL, asked);
}
