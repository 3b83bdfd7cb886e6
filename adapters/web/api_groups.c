/* SPDX-License-Identifier: MIT */

/* Dead jobs by why they died, and events of a bounded topic by their group. */

#include "adapters/web/groups.h"

#include "adapters/web/api.h"
#include "adapters/web/scan.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Jobs that are looked at for one answer, and groups in it. */
enum { LOOKED_AT_MAX = 10000, GROUPS_MAX = 200 };

/* --- what makes a group --------------------------------------------------- */

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

size_t weir__group_text(struct weir_slice error, char buf[WEIR__GROUP_TEXT_CAP])
{
    size_t len = 0;

    for (size_t i = 0; i < error.len && len < WEIR__GROUP_TEXT_CAP - 1; i++) {
        if (!is_digit(error.ptr[i]))
            buf[len++] = (char)error.ptr[i];
        else if (i == 0 || !is_digit(error.ptr[i - 1]))
            buf[len++] = '#';
    }
    buf[len] = '\0';
    return len;
}

void weir__group_key(const struct weir_job_info *job, char buf[WEIR__KEY_CAP])
{
    char text[WEIR__GROUP_TEXT_CAP];
    const size_t len = weir__group_text(job->error, text);
    const size_t reason = weir__slice_hash(job->reason);
    const size_t error = weir__slice_hash(weir__slice_of(text, len));
    const size_t group = weir__slice_hash(job->group);

    WEIR_ASSERT(len < sizeof(text));
    (void)snprintf(buf, WEIR__KEY_CAP, "%zx.%zx", reason * 31 + group,
                   error); /* fits */
}

/* --- counting ------------------------------------------------------------- */

struct group {
    char key[WEIR__KEY_CAP];
    char reason[48];
    char error[WEIR__GROUP_TEXT_CAP]; /* digits as '#' */
    char group[WEIR_MAX_ID + 1];
    char id[WEIR_MAX_ID + 1]; /* of one of them */
    uint64_t count;
    int64_t first_ms, last_ms;
};

struct groups {
    struct weir__http_request *request;
    struct group list[GROUPS_MAX];
    size_t count;
    size_t looked_at;
    uint64_t others; /* jobs of groups that have no place */
    uint64_t failed; /* jobs on which the filter did */
    bool is_by_group;
};

static void copy(char *to, size_t cap, struct weir_slice text)
{
    (void)snprintf(to, cap, "%.*s", (int)(text.len < cap ? text.len : cap),
                   (const char *)text.ptr); /* cut */
}

static struct group *add(struct groups *groups, const struct weir_job_info *job,
                         const char *key)
{
    struct group *group;

    for (size_t i = 0; i < groups->count; i++)
        if (strcmp(groups->list[i].key, key) == 0)
            return &groups->list[i];
    if (groups->count == GROUPS_MAX)
        return NULL;
    group = &groups->list[groups->count++];
    group->first_ms = job->due_ms;
    copy(group->key, sizeof(group->key), weir__slice_str(key));
    copy(group->reason, sizeof(group->reason), job->reason);
    copy(group->group, sizeof(group->group), job->group);
    copy(group->id, sizeof(group->id), job->id);
    (void)weir__group_text(job->error, group->error);
    return group;
}

static void count_job(struct groups *groups, const struct weir_job_info *job,
                      const char *key)
{
    struct group *group = add(groups, job, key);

    if (group == NULL) {
        groups->others++;
        return;
    }
    group->count++;
    if (job->due_ms < group->first_ms)
        group->first_ms = job->due_ms;
    if (job->due_ms > group->last_ms)
        group->last_ms = job->due_ms;
}

/* --- the answer ----------------------------------------------------------- */

static int compare(const void *one_group, const void *other_group)
{
    const struct group *one = one_group, *other = other_group;

    if (one->count != other->count)
        return one->count > other->count ? -1 : 1;
    return strcmp(one->key, other->key);
}

static struct json_object *group_json(const struct groups *groups,
                                      const struct group *group)
{
    struct json_object *object = WEIR__OBJECT(
        weir__field_str("key", group->key), weir__field_str("id", group->id),
        weir__field_number("count", group->count),
        weir__field_int("first_ms", group->first_ms),
        weir__field_int("last_ms", group->last_ms));

    if (groups->is_by_group) {
        weir__object_put(&object, weir__field_str("group", group->group));
    } else {
        weir__object_put(&object, weir__field_str("reason", group->reason));
        weir__object_put(&object, weir__field_str("error", group->error));
    }
    return object;
}

static void answer(struct groups *groups)
{
    struct json_object *array = json_object_new_array();

    WEIR_ASSERT(groups->count <= GROUPS_MAX);
    qsort(groups->list, groups->count, sizeof(groups->list[0]), compare);
    for (size_t i = 0; i < groups->count; i++)
        array = weir__array_with(array, group_json(groups, &groups->list[i]));
    weir__api_answer(
        groups->request,
        WEIR__OBJECT(
            weir__field("groups", array),
            weir__field_number("others", groups->others),
            weir__field_number("failed", groups->failed),
            weir__field_number("looked_at", groups->looked_at < LOOKED_AT_MAX
                                                ? groups->looked_at
                                                : LOOKED_AT_MAX),
            weir__field_bool("complete", groups->looked_at <= LOOKED_AT_MAX)));
}

static void end(struct groups *groups, int code, const char *text)
{
    if (code == WEIR_OK)
        answer(groups);
    else
        weir__api_refuse(groups->request, code, text);
    weir__mem_free(groups);
}

static void on_job(int code, const struct weir_job_info *job, void *arg)
{
    struct groups *groups = arg;
    char key[WEIR__KEY_CAP];

    if (job == NULL) {
        end(groups, code, NULL);
    } else if (groups->looked_at++ < LOOKED_AT_MAX) {
        weir__group_key(job, key);
        count_job(groups, job, key);
    }
}

/* --- of those that a filter takes ----------------------------------------- */

static struct weir_slice text_of(struct json_object *row, const char *name)
{
    const char *text = weir__api_text(row, name);

    return weir__slice_str(text != NULL ? text : "");
}

static bool note_job(const struct weir_job_info *job, void *arg)
{
    struct groups *groups = arg;

    (void)job;
    groups->looked_at++;
    return true;
}

static bool on_found(const struct weir__scanned *found, void *arg)
{
    struct json_object *due = NULL;
    struct weir_job_info job = {
        .id = weir__slice_str(found->id),
        .reason = text_of(found->row, "reason"),
        .error = text_of(found->row, "error"),
        .group = text_of(found->row, "group"),
    };

    (void)json_object_object_get_ex(found->row, "due_ms", &due);
    job.due_ms = json_object_get_int64(due);
    count_job(arg, &job, found->key);
    return true;
}

static void on_end(int code, const char *text, const char *next,
                   uint64_t failed, void *arg)
{
    struct groups *groups = arg;

    groups->failed = failed;
    if (next != NULL && next[0] != '\0')
        groups->looked_at = LOOKED_AT_MAX + 1; /* there are more */
    end(groups, code, text);
}

static int ask_filtered(struct weir__web *web, struct groups *groups,
                        const char *topic, const char *where)
{
    const struct weir__scan_options options = {
        .topic = topic,
        .program = where,
        .state = groups->is_by_group ? WEIR_JOB_READY : WEIR_JOB_DEAD,
        .most = LOOKED_AT_MAX,
        .wants_rows = true,
        .precondition = note_job,
        .found = on_found,
        .end = on_end,
        .arg = groups,
    };

    return weir__scan(web, &options);
}

/* ?by=group: of a bounded topic its events; else dead jobs by reason. ?where=:
 * of those that the program takes. */
void weir__api_groups(struct weir__web *web, struct weir__http_request *request,
                      const char *topic)
{
    const char *by = weir__http_query(request, "by");
    const char *where = weir__http_query(request, "where");
    const bool is_by_group = by != NULL && strcmp(by, "group") == 0;
    const struct weir_list list = {
        .state = is_by_group ? WEIR_JOB_READY : WEIR_JOB_DEAD,
        .limit = LOOKED_AT_MAX + 1,
    };
    struct groups *groups = weir__mem_new(sizeof(*groups));
    int rc = WEIR_ENOMEM;

    if (groups != NULL) {
        groups->request = request;
        groups->is_by_group = is_by_group;
        rc = where != NULL && where[0] != '\0'
                 ? ask_filtered(web, groups, topic, where)
                 : weir_reactor_list_from(web->reactor, topic, &list, on_job,
                                          groups);
    }
    if (rc == WEIR_OK)
        return;
    weir__mem_free(groups);
    weir__api_refuse(request, rc, NULL);
}
