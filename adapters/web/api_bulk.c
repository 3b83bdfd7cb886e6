/* SPDX-License-Identifier: MIT */

/* Requeue or delete dead jobs: some by their ids, all that match, or all. What
 * matches is found first and then done by id, so that what died meanwhile stays
 * and what is not dead any more is not touched. */

#include "adapters/web/act.h"
#include "adapters/web/groups.h"
#include "adapters/web/scan.h"
#include "core/assert.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"

#include <stdio.h>
#include <string.h>

/* Jobs that one action takes, and how many are on their way. */
enum { JOBS_MAX = 1000000, WINDOW = 200 };

typedef int request_fn(struct weir_reactor *reactor, const char *topic,
                       const char *id, weir_count_fn fn, void *arg);

struct bulk {
    struct weir__act *act;
    request_fn *request; /* NULL: nothing is done, what matches is counted */
    const char *word;    /* for what was done */
    char key[WEIR__KEY_CAP];      /* of a group; "": all */
    int64_t since_ms, until_ms;   /* of death; since included, until not */
    struct weir__buf ids;         /* each with its NUL */
    size_t next, waiting;         /* in `ids`; for answers */
    uint64_t found, done, failed; /* the last: jobs on which `where` did */
    int code;
};

static void end(struct bulk *bulk)
{
    WEIR_ASSERT(bulk->waiting == 0);
    if (bulk->code != WEIR_OK)
        weir__act_fail(bulk->act, bulk->code, NULL);
    else
        weir__act_end(bulk->act,
                      WEIR__OBJECT(weir__field_number("found", bulk->found),
                                   weir__field_number("failed", bulk->failed),
                                   weir__field_number(bulk->word, bulk->done)));
    weir__buf_fini(&bulk->ids);
    weir__mem_free(bulk);
}

/* --- doing ---------------------------------------------------------------- */

static void do_more(struct bulk *bulk);

/* One that is not dead any more is not counted. */
static void on_done(int code, uint64_t count, void *arg)
{
    struct bulk *bulk = arg;

    WEIR_ASSERT(bulk->waiting > 0 && bulk->waiting <= WINDOW);
    bulk->waiting--;
    if (code == WEIR_OK)
        bulk->done += count;
    else if (code != WEIR_ENOTFOUND)
        bulk->code = code;
    do_more(bulk);
}

static void do_more(struct bulk *bulk)
{
    while (bulk->code == WEIR_OK && bulk->waiting < WINDOW &&
           bulk->next < bulk->ids.len) {
        const char *id = (const char *)bulk->ids.ptr + bulk->next;
        int rc = bulk->request(bulk->act->web->reactor, bulk->act->topic, id,
                               on_done, bulk);

        bulk->next += strlen(id) + 1;
        if (rc == WEIR_OK)
            bulk->waiting++;
        else
            bulk->code = rc;
    }
    if (bulk->waiting == 0)
        end(bulk);
}

static void on_all_done(int code, uint64_t count, void *arg)
{
    struct bulk *bulk = arg;

    bulk->code = code == WEIR_ENOTFOUND ? WEIR_OK : code;
    bulk->found = bulk->done = count;
    end(bulk);
}

/* --- finding -------------------------------------------------------------- */

static void take_id(struct bulk *bulk, struct weir_slice id)
{
    bulk->found++;
    if (bulk->request == NULL)
        return;
    weir__buf_append(&bulk->ids, id.ptr, id.len);
    weir__buf_append(&bulk->ids, "", 1);
}

static bool matches(const struct bulk *bulk, const struct weir_job_info *job)
{
    char key[WEIR__KEY_CAP];

    if (job->due_ms < bulk->since_ms ||
        (bulk->until_ms > 0 && job->due_ms >= bulk->until_ms))
        return false;
    if (bulk->key[0] == '\0')
        return true;
    weir__group_key(job, key);
    return strcmp(key, bulk->key) == 0;
}

static void on_dead(int code, const struct weir_job_info *job, void *arg)
{
    struct bulk *bulk = arg;

    if (job != NULL) {
        if (matches(bulk, job))
            take_id(bulk, job->id);
        return;
    }
    WEIR_ASSERT(bulk->next == 0 && bulk->waiting == 0);
    bulk->code = bulk->ids.failed ? WEIR_ENOMEM : code;
    do_more(bulk);
}

static bool matches_too(const struct weir_job_info *job, void *arg)
{
    return matches(arg, job);
}

static bool on_found(const struct weir__scanned *job, void *arg)
{
    take_id(arg, weir__slice_str(job->id));
    return true;
}

static void on_end(int code, const char *text, const char *next,
                   uint64_t failed, void *arg)
{
    struct bulk *bulk = arg;
    struct weir_error err = {0};

    (void)next;
    bulk->failed = failed;
    if (code != WEIR_OK) {
        if (text != NULL)
            (void)weir__error_set(&err, code, "%s; nothing was changed", text);
        weir__act_fail(bulk->act, code, err.text);
        weir__buf_fini(&bulk->ids);
        weir__mem_free(bulk);
        return;
    }
    bulk->code = bulk->ids.failed ? WEIR_ENOMEM : WEIR_OK;
    do_more(bulk);
}

static int find_filtered(struct bulk *bulk, const char *where)
{
    const struct weir__scan_options options = {
        .topic = bulk->act->topic,
        .program = where,
        .state = WEIR_JOB_DEAD,
        .most = JOBS_MAX,
        .precondition = matches_too,
        .found = on_found,
        .end = on_end,
        .arg = bulk,
    };

    return weir__scan(bulk->act->web, &options);
}

/* --- what is wanted ------------------------------------------------------- */

static int refuse(struct weir_error *err, const char *text)
{
    (void)snprintf(err->text, sizeof(err->text), "%s", text); /* fits */
    return WEIR_EINVAL;
}

/* "all": whether it is true. */
static int read_all(struct json_object *body, bool *ret_is_all,
                    struct weir_error *err)
{
    struct json_object *value;

    *ret_is_all = false;
    if (!json_object_object_get_ex(body, "all", &value))
        return WEIR_OK;
    if (!json_object_is_type(value, json_type_boolean))
        return refuse(err, "all is to be true or false");
    *ret_is_all = json_object_get_boolean(value);
    return WEIR_OK;
}

/* A moment of which this is the name; none leaves it as it is. */
static int read_moment(struct json_object *body, const char *name,
                       int64_t *ret_ms, struct weir_error *err)
{
    struct json_object *value;

    if (!json_object_object_get_ex(body, name, &value))
        return WEIR_OK;
    *ret_ms = json_object_get_int64(value);
    if (json_object_is_type(value, json_type_int) && *ret_ms > 0)
        return WEIR_OK;
    return weir__error_set(err, WEIR_EINVAL,
                           "%s is to be a number of milliseconds since 1970",
                           name);
}

/* "ids": the jobs. */
static int read_ids(struct bulk *bulk, struct json_object *ids,
                    struct weir_error *err)
{
    if (!json_object_is_type(ids, json_type_array))
        return refuse(err, "ids is to be an array of texts");
    for (size_t i = 0; i < json_object_array_length(ids); i++) {
        struct json_object *id = json_object_array_get_idx(ids, i);
        int rc;

        if (!json_object_is_type(id, json_type_string))
            return refuse(err, "ids is to be an array of texts");
        rc = weir__id_check_any(
            weir__slice_of(json_object_get_string(id),
                           (size_t)json_object_get_string_len(id)),
            err);
        if (rc < 0)
            return rc;
        take_id(bulk, weir__slice_str(json_object_get_string(id)));
    }
    return bulk->ids.failed ? WEIR_ENOMEM : WEIR_OK;
}

/* "group", "since_ms", "until_ms": which ones match. */
static int read_match(struct bulk *bulk, struct json_object *body,
                      struct weir_error *err)
{
    const char *key = weir__api_text(body, "group");
    int rc;

    if (json_object_object_get_ex(body, "group", NULL) &&
        (key == NULL || strlen(key) >= sizeof(bulk->key) || key[0] == '\0'))
        return refuse(err, "group is to be the key of a group");
    if (key != NULL)
        (void)snprintf(bulk->key, sizeof(bulk->key), "%s", key); /* fits */
    rc = read_moment(body, "since_ms", &bulk->since_ms, err);
    if (rc == WEIR_OK)
        rc = read_moment(body, "until_ms", &bulk->until_ms, err);
    return rc;
}

/* Begin; only when it fails the caller still owns `bulk`. */
static int begin(struct bulk *bulk, struct json_object *body,
                 struct weir_error *err)
{
    struct weir_reactor *reactor = bulk->act->web->reactor;
    const char *topic = bulk->act->topic;
    struct json_object *ids;
    const char *where = weir__api_text(body, "where");
    const bool is_alone = json_object_object_length(body) == 1;
    bool is_all = false;
    int rc = read_all(body, &is_all, err);

    if (rc != WEIR_OK)
        return rc;
    if (!is_alone && (is_all || json_object_object_get_ex(body, "ids", NULL)))
        return refuse(err, "\"ids\" and \"all\" stand alone");
    if (where == NULL && json_object_object_get_ex(body, "where", NULL))
        return refuse(err, "where is to be a text, a jq program");

    if (json_object_object_get_ex(body, "ids", &ids)) {
        rc = read_ids(bulk, ids, err);
        if (rc == WEIR_OK && (bulk->ids.len == 0 || bulk->request == NULL))
            rc = refuse(err, "ids has no id, or nothing is to be done");
        if (rc == WEIR_OK)
            do_more(bulk);
        return rc;
    }
    if (is_all && bulk->request != NULL)
        return bulk->request(reactor, topic, NULL, on_all_done, bulk);
    rc = read_match(bulk, body, err);
    if (rc == WEIR_OK && !is_all && where == NULL && bulk->key[0] == '\0' &&
        bulk->since_ms == 0 && bulk->until_ms == 0)
        rc = refuse(err, "say which: \"ids\", \"group\", \"since_ms\", "
                         "\"until_ms\", \"where\", or \"all\": true");
    if (rc == WEIR_OK && where != NULL)
        rc = find_filtered(bulk, where);
    else if (rc == WEIR_OK)
        rc = weir_reactor_dead(reactor, topic, JOBS_MAX, on_dead, bulk);
    return rc;
}

static struct bulk *make(struct weir__web *web,
                         struct weir__http_request *request, const char *topic)
{
    struct weir__act *act = weir__act_new(web, request, topic);
    struct bulk *bulk;

    if (act == NULL)
        return NULL;
    bulk = weir__mem_new(sizeof(*bulk));
    if (bulk == NULL)
        weir__act_fail(act, WEIR_ENOMEM, NULL);
    else
        bulk->act = act;
    return bulk;
}

/* POST /api/topics/TOPIC/dead/requeue, delete or count. */
void weir__api_bulk(struct weir__web *web, struct weir__http_request *request,
                    const char *topic)
{
    static const struct {
        const char *word, *done;
        request_fn *request;
    } acts[] = {
        {"requeue", "requeued", weir_reactor_requeue},
        {"delete", "deleted", weir_reactor_purge_dead},
        {"count", "done", NULL},
    };
    static const char *const known[] = {
        "ids", "all", "group", "since_ms", "until_ms", "where", NULL};
    const char *word = weir__http_part(request, 2);
    struct weir_error err = {0};
    struct json_object *body;
    struct bulk *bulk;
    size_t i = 0;
    int rc;

    while (i < sizeof(acts) / sizeof(acts[0]) &&
           strcmp(acts[i].word, word) != 0)
        i++;
    if (i == sizeof(acts) / sizeof(acts[0])) {
        weir__http_refuse(request, 404, "there is nothing at this address");
        return;
    }
    body = weir__api_body(request, known);
    bulk = body == NULL ? NULL : make(web, request, topic);
    if (bulk != NULL) {
        bulk->request = acts[i].request;
        bulk->word = acts[i].done;
        rc = begin(bulk, body, &err);
        if (rc != WEIR_OK) {
            weir__act_fail(bulk->act, rc, err.text);
            weir__buf_fini(&bulk->ids);
            weir__mem_free(bulk);
        }
    }
    (void)json_object_put(body);
}
