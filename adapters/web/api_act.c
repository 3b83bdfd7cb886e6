/* SPDX-License-Identifier: MIT */

/* What a reader does to a topic or to one job. The answer has the topic as it
 * is then, so that the page shows it at once. */

#include "adapters/web/act.h"

#include "adapters/cli/new_job.h"
#include "adapters/web/snapshot.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/schedule.h"
#include "core/text.h"

#include <stdio.h>
#include <string.h>

/* --- the frame ------------------------------------------------------------ */

struct weir__act *weir__act_new(struct weir__web *web,
                                struct weir__http_request *request,
                                const char *topic)
{
    struct weir__act *act = weir__mem_new(sizeof(*act));

    if (act == NULL) {
        weir__api_refuse(request, WEIR_ENOMEM, NULL);
        return NULL;
    }
    WEIR_ASSERT(strlen(topic) < sizeof(act->topic));
    act->web = web;
    act->request = request;
    (void)snprintf(act->topic, sizeof(act->topic), "%s", topic); /* fits */
    return act;
}

void weir__act_fail(struct weir__act *act, int code, const char *text)
{
    WEIR_ASSERT(act->result == NULL);
    weir__api_refuse(act->request, code, text);
    weir__mem_free(act);
}

/* What was done is told, whatever becomes of this question. */
static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    struct weir__act *act = arg;

    (void)code;
    if (stats != NULL)
        weir__snapshot_take(act->web->snapshot, act->topic, stats);
    weir__api_answer(act->request, act->result);
    weir__mem_free(act);
}

void weir__act_end(struct weir__act *act, struct json_object *result)
{
    WEIR_ASSERT(act->result == NULL);
    act->result = result;
    if (weir_reactor_stats(act->web->reactor, act->topic, on_stats, act) !=
        WEIR_OK)
        on_stats(WEIR_ENOMEM, NULL, act);
}

static const char *const no_members[] = {NULL};

/* --- topics --------------------------------------------------------------- */

static void on_code(int code, const char *text, void *arg)
{
    struct weir__act *act = arg;

    if (code == WEIR_OK)
        weir__act_end(act, WEIR__OBJECT(weir__field_str("topic", act->topic)));
    else
        weir__act_fail(act, code, text);
}

static void pause_topic(struct weir__web *web,
                        struct weir__http_request *request, const char *topic,
                        bool is_paused)
{
    struct json_object *body = weir__api_body(request, no_members);
    struct weir__act *act =
        body == NULL ? NULL : weir__act_new(web, request, topic);
    int rc;

    (void)json_object_put(body);
    if (act == NULL)
        return;
    rc = weir_reactor_pause(web->reactor, topic, is_paused, on_code, act);
    if (rc != WEIR_OK)
        weir__act_fail(act, rc, NULL);
}

void weir__api_pause(struct weir__web *web, struct weir__http_request *request,
                     const char *topic)
{
    pause_topic(web, request, topic, true);
}

void weir__api_resume(struct weir__web *web, struct weir__http_request *request,
                      const char *topic)
{
    pause_topic(web, request, topic, false);
}

/* "name=value" into `texts`; false: it has no room, or is no text. */
static bool take_setting(struct weir__buf *texts, const char *name,
                         struct json_object *value)
{
    if (!json_object_is_type(value, json_type_string))
        return false;
    weir__buf_append(texts, name, strlen(name));
    weir__buf_append(texts, "=", 1);
    weir__buf_append(texts, json_object_get_string(value),
                     strlen(json_object_get_string(value)) + 1);
    return true;
}

/* The members of `object` as weir_reactor_set takes them, in `texts`. */
static bool read_settings(struct json_object *object, struct weir__buf *texts,
                          const char *settings[WEIR_MAX_OPTIONS + 1])
{
    struct json_object_iterator it = json_object_iter_begin(object);
    struct json_object_iterator end = json_object_iter_end(object);
    const int count = json_object_object_length(object);
    size_t at = 0;

    if (count < 1 || count > WEIR_MAX_OPTIONS)
        return false;
    for (; !json_object_iter_equal(&it, &end); json_object_iter_next(&it))
        if (!take_setting(texts, json_object_iter_peek_name(&it),
                          json_object_iter_peek_value(&it)))
            return false;
    for (int i = 0; i < count && !texts->failed; i++) {
        settings[i] = (const char *)texts->ptr + at;
        at += strlen(settings[i]) + 1;
    }
    settings[count] = NULL;
    return true;
}

static void set(struct weir__web *web, struct weir__http_request *request,
                const char *topic, const char *const *settings)
{
    struct weir__act *act = weir__act_new(web, request, topic);
    struct weir_error err = {0};
    int rc;

    if (act == NULL)
        return;
    rc = weir_reactor_set(web->reactor, topic, settings, on_code, act, &err);
    if (rc != WEIR_OK)
        weir__act_fail(act, rc, err.text);
}

void weir__api_set(struct weir__web *web, struct weir__http_request *request,
                   const char *topic)
{
    const char *settings[WEIR_MAX_OPTIONS + 1];
    struct json_object *body = weir__api_body(request, NULL);
    struct weir__buf texts = {0};

    if (body == NULL)
        return;
    if (!read_settings(body, &texts, settings))
        weir__http_refuse(request, 400,
                          "the body is to have options, each a text, such as "
                          "{\"concurrency\":\"10\"}");
    else if (texts.failed)
        weir__api_refuse(request, WEIR_ENOMEM, NULL);
    else
        set(web, request, topic, settings);
    weir__buf_fini(&texts);
    (void)json_object_put(body);
}

/* --- a job ---------------------------------------------------------------- */

/* Whether the job of the request has the id of a schedule's tick. */
static bool is_tick(const struct weir__act *act)
{
    return weir__tick_name(weir__slice_str(weir__http_part(act->request, 2)))
               .len > 0;
}

static void fail_tick(struct weir__act *act)
{
    char text[WEIR_MAX_ID + 100];

    (void)snprintf(text, sizeof(text),
                   "job \"%s\" is the tick of a schedule; see weir cron delete "
                   "and weir cron pause",
                   weir__http_part(act->request, 2)); /* fits: it was checked */
    weir__act_fail(act, WEIR_EINVAL, text);
}

static void on_deleted(int code, enum weir_job_state was, void *arg)
{
    struct weir__act *act = arg;

    if (code == WEIR_OK)
        weir__act_end(act, WEIR__OBJECT(weir__field_str(
                               "was", weir_job_state_name(was))));
    else if (code == WEIR_EINVAL && is_tick(act))
        fail_tick(act);
    else
        weir__act_fail(act, code, NULL);
}

static void delete_job(struct weir__act *act, const char *id,
                       struct json_object *body)
{
    int rc =
        weir_reactor_delete(act->web->reactor, act->topic, id, on_deleted, act);

    (void)body; /* it is empty */
    if (rc != WEIR_OK)
        weir__act_fail(act, rc, NULL);
}

static void on_requeued(int code, uint64_t count, void *arg)
{
    struct weir__act *act = arg;

    if (code == WEIR_OK && count == 0)
        code = WEIR_ENOTFOUND;
    if (code == WEIR_OK)
        weir__act_end(act, WEIR__OBJECT(weir__field_number("requeued", count)));
    else
        weir__act_fail(act, code,
                       code == WEIR_ENOTFOUND ? "there is no dead job of this "
                                                "id in the topic"
                                              : NULL);
}

static void requeue_job(struct weir__act *act, const char *id,
                        struct json_object *body)
{
    int rc = weir_reactor_requeue(act->web->reactor, act->topic, id,
                                  on_requeued, act);

    (void)body; /* it is empty */
    if (rc != WEIR_OK)
        weir__act_fail(act, rc, NULL);
}

static void on_due(int code, enum weir_job_state was, int64_t due_ms, void *arg)
{
    struct weir__act *act = arg;
    char text[96] = "";

    if (code == WEIR_OK) {
        weir__act_end(act, WEIR__OBJECT(weir__field_int("due_ms", due_ms)));
        return;
    }
    if (code == WEIR_EINVAL && was <= WEIR_JOB_READY && is_tick(act)) {
        fail_tick(act);
        return;
    }
    if (code == WEIR_EINVAL)
        (void)snprintf(text, sizeof(text),
                       "the job is %s; only what is scheduled or ready can be "
                       "given another time",
                       weir_job_state_name(was));
    weir__act_fail(act, code, text);
}

/* {"delay": DURATION} or {"at": RFC3339}. */
static void reschedule_job(struct weir__act *act, const char *id,
                           struct json_object *body)
{
    struct weir__job_texts texts = {.dashes = ""};
    struct weir_new_job job = {0};
    struct weir_error err = {0};
    struct weir_due due;
    int rc = WEIR_EINVAL;

    texts.value[WEIR__JOB_DELAY] = weir__api_text(body, "delay");
    texts.value[WEIR__JOB_AT] = weir__api_text(body, "at");
    if (texts.value[WEIR__JOB_DELAY] == NULL &&
        texts.value[WEIR__JOB_AT] == NULL)
        (void)snprintf(err.text, sizeof(err.text),
                       "give \"delay\", such as \"15m\", or \"at\", such as "
                       "\"2026-01-31T08:30:00Z\"");
    else
        rc = weir__job_texts_read(&texts, &job, &err);
    due = (struct weir_due){job.delay_ms, job.at_ms};
    if (rc == WEIR_OK)
        rc = weir_reactor_reschedule(act->web->reactor, act->topic, id, &due,
                                     on_due, act);
    if (rc != WEIR_OK)
        weir__act_fail(act, rc, err.text);
}

/* POST /api/topics/TOPIC/jobs/ID/WHAT. */
void weir__api_job_act(struct weir__web *web,
                       struct weir__http_request *request, const char *topic)
{
    static const char *const times[] = {"delay", "at", NULL};
    static const struct {
        const char *word;
        const char *const *known; /* members of the body, which is borrowed */
        void (*fn)(struct weir__act *act, const char *id,
                   struct json_object *body);
    } acts[] = {
        {"delete", no_members, delete_job},
        {"requeue", no_members, requeue_job},
        {"reschedule", times, reschedule_job},
    };
    const char *id = weir__http_part(request, 2);
    const char *word = weir__http_part(request, 3);
    struct weir_error err = {0};

    if (weir__id_check_any(weir__slice_str(id), &err) < 0) {
        weir__http_refuse(request, 400, "%s", err.text);
        return;
    }
    for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
        struct json_object *body;
        struct weir__act *act;

        if (word == NULL || strcmp(word, acts[i].word) != 0 ||
            weir__http_part(request, 4) != NULL)
            continue;
        body = weir__api_body(request, acts[i].known);
        act = body == NULL ? NULL : weir__act_new(web, request, topic);
        if (act != NULL)
            acts[i].fn(act, id, body);
        (void)json_object_put(body);
        return;
    }
    weir__http_refuse(request, 404, "there is nothing at this address");
}
