/* SPDX-License-Identifier: MIT */
#include "adapters/web/api.h"

#include "adapters/json/json.h"
#include "adapters/web/snapshot.h"
#include "core/assert.h"
#include "core/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BODY_DEPTH = 8 }; /* of what is posted */

static const char content_type[] = "application/json";

/* --- answers -------------------------------------------------------------- */

/* Into `ret_buf`, with a line feed behind. */
static void print(struct json_object *object, struct weir__buf *ret_buf)
{
    struct weir__buf escaped = {0};
    struct weir_slice line;

    *ret_buf = (struct weir__buf){0};
    if (object != NULL && weir__json_line(object, &escaped, &line)) {
        weir__buf_append(ret_buf, line.ptr, line.len);
        weir__buf_append(ret_buf, "\n", 1);
    } else {
        ret_buf->failed = true;
    }
    weir__buf_fini(&escaped);
    (void)json_object_put(object);
}

void weir__api_answer(struct weir__http_request *request,
                      struct json_object *object)
{
    struct weir__buf buf;

    print(object, &buf);
    weir__http_answer(request, 200, content_type, &buf);
}

void weir__api_answer_tagged(struct weir__http_request *request,
                             struct json_object *object)
{
    struct weir__http_content *content = NULL;
    struct weir__buf buf;

    print(object, &buf);
    if (!buf.failed)
        content = weir__http_content_new(content_type, &buf);
    if (content == NULL) {
        weir__buf_fini(&buf);
        weir__api_refuse(request, WEIR_ENOMEM, NULL);
        return;
    }
    weir__http_answer_shared(request, content);
    weir__http_content_free(content);
}

void weir__api_refuse(struct weir__http_request *request, int code,
                      const char *text)
{
    static const struct {
        int code;
        unsigned int status;
    } table[] = {
        {WEIR_EINVAL, 400},  {WEIR_EMALFORMED, 400}, {WEIR_ENOTFOUND, 404},
        {WEIR_EEXISTS, 409}, {WEIR_EKIND, 409},      {WEIR_EFULL, 503},
        {WEIR_ECONN, 503},   {WEIR_EUNKNOWN, 503},   {WEIR_ECANCELED, 503},
        {WEIR_ESERVER, 502},
    };
    unsigned int status = 500;

    WEIR_ASSERT(code != WEIR_OK);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].code == code)
            status = table[i].status;
    weir__http_refuse(request, status, "%s",
                      text != NULL && text[0] != '\0' ? text
                                                      : weir_error_text(code));
}

/* --- questions ------------------------------------------------------------ */

bool weir__api_number(struct weir__http_request *request, const char *name,
                      size_t max, size_t otherwise, size_t *ret_number)
{
    const char *text = weir__http_query(request, name);
    unsigned long long number;
    char *end;

    WEIR_ASSERT(otherwise <= max);
    *ret_number = otherwise;
    if (text == NULL)
        return true;
    errno = 0;
    number = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 &&
        number <= max) {
        *ret_number = (size_t)number;
        return true;
    }
    weir__http_refuse(request, 400, "%s takes a number, 0 to %zu", name, max);
    return false;
}

/* The first member that is none of `known`; NULL: there is none. */
static const char *unknown_member(struct json_object *object,
                                  const char *const *known)
{
    struct json_object_iterator it = json_object_iter_begin(object);
    struct json_object_iterator end = json_object_iter_end(object);

    for (; !json_object_iter_equal(&it, &end); json_object_iter_next(&it)) {
        const char *name = json_object_iter_peek_name(&it);
        size_t i = 0;

        while (known[i] != NULL && strcmp(known[i], name) != 0)
            i++;
        if (known[i] == NULL)
            return name;
    }
    return NULL;
}

struct json_object *weir__api_body(struct weir__http_request *request,
                                   const char *const *known)
{
    struct weir_slice body = weir__http_body(request);
    struct json_tokener *reader = json_tokener_new_ex(BODY_DEPTH);
    struct json_object *object = NULL;
    const char *unknown = NULL;

    if (reader == NULL) {
        weir__api_refuse(request, WEIR_ENOMEM, NULL);
        return NULL;
    }
    json_tokener_set_flags(reader, JSON_TOKENER_STRICT);
    if (body.len == 0)
        object = json_object_new_object();
    else if (body.len <= WEIR__HTTP_BODY_MAX)
        object = json_tokener_parse_ex(reader, (const char *)body.ptr,
                                       (int)body.len);
    json_tokener_free(reader);
    if (!json_object_is_type(object, json_type_object)) {
        weir__http_refuse(request, 400, "the body is to be a JSON object");
    } else {
        if (known != NULL)
            unknown = unknown_member(object, known);
        if (unknown == NULL)
            return object;
        weir__http_refuse(request, 400, "nothing is known of \"%s\"", unknown);
    }
    (void)json_object_put(object);
    return NULL;
}

const char *weir__api_text(struct json_object *object, const char *name)
{
    struct json_object *value;

    if (!json_object_object_get_ex(object, name, &value) ||
        !json_object_is_type(value, json_type_string) ||
        strlen(json_object_get_string(value)) !=
            (size_t)json_object_get_string_len(value))
        return NULL;
    return json_object_get_string(value);
}

/* --- what is asked for ---------------------------------------------------- */

/* Behind /api/topics/NAME: a word, and where it `has_more` what that is about.
 * The empty word is the topic itself. */
struct place {
    const char *word;
    bool has_more;
    weir__api_fn *fn;
};

static const struct place readable[] = {
    {"", false, weir__api_topic},        {"options", false, weir__api_options},
    {"jobs", false, weir__api_jobs},     {"jobs", true, weir__api_job},
    {"groups", false, weir__api_groups},
};

static const struct place doable[] = {
    {"pause", false, weir__api_pause}, {"resume", false, weir__api_resume},
    {"options", false, weir__api_set}, {"jobs", true, weir__api_job_act},
    {"dead", true, weir__api_bulk},
};

/* The reactor has to know the kind of a topic before it is asked about it: the
 * snapshot tells it. */
static bool is_known(struct weir__web *web, struct weir__http_request *request,
                     const char *topic)
{
    const struct weir__topic_view *view =
        weir__snapshot_find(web->snapshot, topic);

    weir__snapshot_look(web->snapshot);
    if (view != NULL && view->row.is_shown && view->row.kind[0] != '\0' &&
        !view->is_of_new_kind)
        return true;
    if (view != NULL && view->is_of_new_kind)
        weir__http_refuse(request, 409,
                          "the topic is of kind \"%s\", which this version of "
                          "weir does not know",
                          view->row.kind);
    else if (weir__snapshot_rounds(web->snapshot) == 0)
        weir__http_refuse(request, 503, "the topics were not read yet");
    else
        weir__http_refuse(request, 404, "there is no topic \"%s\"", topic);
    return false;
}

static void dispatch(struct weir__web *web, struct weir__http_request *request,
                     const struct place *places, size_t count)
{
    const char *topic = weir__http_part(request, 0);
    const char *word = weir__http_part(request, 1);
    const bool has_more = weir__http_part(request, 2) != NULL;

    WEIR_ASSERT(web->snapshot != NULL && web->reactor != NULL);
    for (size_t i = 0; topic != NULL && i < count; i++) {
        if (strcmp(places[i].word, word != NULL ? word : "") != 0 ||
            places[i].has_more != has_more)
            continue;
        if (is_known(web, request, topic))
            places[i].fn(web, request, topic);
        return;
    }
    weir__http_refuse(request, 404, "there is nothing at this address");
}

static void read_topic(struct weir__http_request *request, void *arg)
{
    if (weir__http_part(request, 0) == NULL)
        weir__api_topics(request, arg);
    else
        dispatch(arg, request, readable,
                 sizeof(readable) / sizeof(readable[0]));
}

static void act_on_topic(struct weir__http_request *request, void *arg)
{
    dispatch(arg, request, doable, sizeof(doable) / sizeof(doable[0]));
}

/* Open to all, so that a browser need not be refused to know that it is to ask
 * for the token. */
static void session(struct weir__http_request *request, void *arg)
{
    (void)arg;
    weir__api_answer(
        request,
        WEIR__OBJECT(
            weir__field_bool("may_act", weir__http_may_act(request)),
            weir__field_bool("may_read", weir__http_may_read(request))));
}

void weir__web_api_routes(struct weir__web *web)
{
    weir__web_route(web, WEIR__HTTP_GET, WEIR__HTTP_OPEN, "/api/session",
                    session);
    weir__web_route(web, WEIR__HTTP_GET, WEIR__HTTP_READ, "/api/history",
                    weir__api_history);
    weir__web_route(web, WEIR__HTTP_GET, WEIR__HTTP_READ, "/api/workers",
                    weir__api_workers);
    weir__web_route(web, WEIR__HTTP_GET, WEIR__HTTP_READ, "/api/nodes",
                    weir__api_nodes);
    weir__web_route(web, WEIR__HTTP_GET, WEIR__HTTP_READ, "/api/topics/",
                    read_topic);
    weir__web_route(web, WEIR__HTTP_POST, WEIR__HTTP_ACT, "/api/topics/",
                    act_on_topic);
}
