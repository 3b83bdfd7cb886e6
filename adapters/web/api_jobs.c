/* SPDX-License-Identifier: MIT */

/* Jobs of a topic, a page at a time and without their bodies, and one of them
 * with all that is known. */

#include "adapters/web/api.h"
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

/* Bodies may be large: who wants one asks for its job. */
static struct json_object *row(const char *topic,
                               const struct weir_job_info *job)
{
    struct weir_job_info plain = *job;
    struct json_object *object;

    plain.body = (struct weir_slice){0};
    object = weir__job_json(topic, &plain);
    if (object == NULL)
        return NULL;
    json_object_object_del(object, "body");
    json_object_object_del(object, "topic");
    weir__object_put(&object, weir__field_number("body_bytes", job->body.len));
    return object;
}

static void end_page(struct asked *asked, int code)
{
    struct weir__field next = weir__field_null("next");

    if (code != WEIR_OK) {
        (void)json_object_put(asked->jobs);
        weir__api_refuse(asked->request, code,
                         code == WEIR_EINVAL ? "after is no place in this list"
                                             : NULL);
    } else {
        if (asked->has_more && asked->next[0] != '\0')
            next = weir__field_str("next", asked->next);
        weir__api_answer(asked->request,
                         WEIR__OBJECT(weir__field("jobs", asked->jobs), next));
    }
    weir__mem_free(asked);
}

/* One more than the page has is asked for, to know whether there is. */
static void on_job(int code, const struct weir_job_info *job, void *arg)
{
    struct asked *asked = arg;

    if (job == NULL) {
        end_page(asked, code);
        return;
    }
    if (asked->count == asked->limit) {
        asked->has_more = true;
        return;
    }
    WEIR_ASSERT(asked->count < asked->limit);
    asked->count++;
    asked->jobs = weir__array_with(asked->jobs, row(asked->topic, job));
    (void)snprintf(asked->next, sizeof(asked->next), "%.*s",
                   (int)job->place.len, (const char *)job->place.ptr);
}

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
    rc = weir_reactor_list_from(web->reactor, topic, &list, on_job, asked);
    if (rc != WEIR_OK)
        end_page(asked, rc);
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
