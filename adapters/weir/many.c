/* SPDX-License-Identifier: MIT */
#include "adapters/weir/many.h"

#include <string.h>

#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Adding many jobs in one call, on the loop's thread or from another one. */

enum { MADE_ROOM = 64 }; /* for an id that weir or the server makes */

struct weir__one {
    struct weir__many *many;
    char *id; /* where the job's id is copied to */
    size_t room;
};

/* The id of a job that has the key of one of these, where that has less room.
 */
struct weir__long_id {
    struct weir__long_id *next;
    char text[WEIR_MAX_ID + 1];
};

/* A topic and jobs with all that they point to, in one piece of memory. */
struct weir__copies {
    char topic[WEIR_MAX_TOPIC + 1];
    size_t bytes;
    struct weir_new_job jobs[];
};

/* --- checks --------------------------------------------------------------- */

/* A refusal of one job, with the place of the job in the call. */
static int name_place(size_t i, const struct weir_error *why,
                      struct weir_error *err)
{
    return weir__error_set(err, why->code, "job %zu: %s", i, why->text);
}

static int check_jobs(const struct weir_new_jobs *jobs, struct weir_error *err)
{
    struct weir_error why;

    WEIR_ASSERT(jobs->fn != NULL);
    if (jobs->count == 0)
        return weir__error_set(err, WEIR_EINVAL, "no job to add");
    if (jobs->count > WEIR_MAX_ADD)
        return weir__error_set(err, WEIR_ETOOBIG,
                               "%zu jobs in one call: %d at most", jobs->count,
                               WEIR_MAX_ADD);
    for (size_t i = 0; i < jobs->count; i++)
        if (weir__facade_check_job(&jobs->jobs[i], &why) < 0)
            return name_place(i, &why, err);
    return WEIR_OK;
}

static int check_fits(const struct weir_new_jobs *jobs, const char *kind,
                      struct weir_error *err)
{
    struct weir_error why;

    for (size_t i = 0; i < jobs->count; i++)
        if (weir__facade_check_fit(jobs->topic, kind, &jobs->jobs[i], &why) < 0)
            return name_place(i, &why, err);
    return WEIR_OK;
}

/* --- answers -------------------------------------------------------------- */

static size_t room_of(const struct weir_new_job *job)
{
    return job->id == NULL ? MADE_ROOM : strlen(job->id) + 1;
}

void weir__many_free(struct weir__many *many)
{
    if (many == NULL)
        return;
    while (many->long_ids != NULL) {
        struct weir__long_id *id = many->long_ids;

        many->long_ids = id->next;
        weir__mem_free(id);
    }
    weir__mem_free(many->copies);
    weir__mem_free(many);
}

void weir__many_answer(struct weir__many *many)
{
    many->fn(many->added, many->count, many->arg);
    weir__many_free(many);
}

static struct weir__many *many_new(const struct weir_new_jobs *jobs)
{
    size_t each = sizeof(struct weir_added) + sizeof(struct weir__one);
    size_t count = jobs->count;
    size_t bytes = sizeof(struct weir__many) + count * each;
    struct weir__many *many;
    char *id;

    for (size_t i = 0; i < count; i++)
        bytes += room_of(&jobs->jobs[i]);
    many = weir__mem_new(bytes);
    if (many == NULL)
        return NULL;
    many->fn = jobs->fn;
    many->arg = jobs->arg;
    many->done = weir__many_answer;
    many->bytes = bytes;
    many->count = count;
    many->open = count;
    many->ones = (struct weir__one *)(many + 1);
    many->added = (struct weir_added *)(many->ones + count);
    id = (char *)(many->added + count);
    for (size_t i = 0; i < count; i++) {
        many->ones[i] = (struct weir__one){many, id, room_of(&jobs->jobs[i])};
        many->added[i].id = id;
        if (jobs->jobs[i].id != NULL)
            memcpy(id, jobs->jobs[i].id, many->ones[i].room);
        id += many->ones[i].room;
    }
    return many;
}

/* All have their codes. */
static void finish(struct weir__many *many)
{
    int code = WEIR_OK;

    for (size_t i = 0; i < many->count && code == WEIR_OK; i++)
        if (many->added[i].code != WEIR_EEXISTS)
            code = many->added[i].code;
    weir__tally_leave(many->tally, code);
    many->done(many);
}

/* "" where there is no memory for it. */
static const char *keep_long(struct weir__many *many, const char *id)
{
    struct weir__long_id *kept = weir__mem_new(sizeof(*kept));

    if (kept == NULL)
        return "";
    kept->next = many->long_ids;
    many->long_ids = kept;
    memcpy(kept->text, id, strlen(id) + 1);
    return kept->text;
}

static void on_added(int code, const char *id, void *arg)
{
    struct weir__one *one = arg;
    struct weir__many *many = one->many;
    struct weir_added *added = &many->added[one - many->ones];
    size_t len = strlen(id);

    WEIR_ASSERT(many->open > 0 && len <= WEIR_MAX_ID);
    added->code = code;
    if (len < one->room)
        memcpy(one->id, id, len + 1);
    else
        added->id = keep_long(many, id);
    many->open--;
    if (many->open == 0)
        finish(many);
}

/* Jobs from `first` on were not added. */
static void refuse(struct weir__many *many, size_t first, int code)
{
    for (size_t i = first; i < many->count; i++)
        many->added[i].code = code;
    many->open -= many->count - first;
}

int weir_reactor_add_many(struct weir_reactor *reactor,
                          const struct weir_new_jobs *jobs,
                          struct weir_error *err)
{
    struct weir__store_topic *handle;
    struct weir__many *many;
    int rc = check_jobs(jobs, err);

    if (rc == WEIR_OK)
        rc = weir__facade_open(reactor, jobs->topic, NULL, &handle, err);
    if (rc == WEIR_OK)
        rc = check_fits(jobs, weir__facade_kind_of(reactor, handle), err);
    if (rc < 0)
        return rc;
    many = many_new(jobs);
    if (many == NULL)
        return weir__error_code(err, WEIR_ENOMEM);
    many->tally = weir__tally_join(reactor);
    for (size_t i = 0; i < jobs->count && rc == WEIR_OK; i++) {
        rc = weir__facade_put(reactor, handle, &jobs->jobs[i], NULL, on_added,
                              &many->ones[i]);
        if (rc < 0)
            refuse(many, i, rc);
    }
    if (many->open > 0)
        return WEIR_OK; /* with codes for those that were refused */
    weir__tally_leave(many->tally, WEIR_OK); /* none was added */
    weir__many_free(many);
    return weir__error_code(err, rc);
}

/* --- from other threads --------------------------------------------------- */

static size_t bytes_of(const struct weir_new_job *job)
{
    size_t bytes = job->body.len;

    bytes += job->id == NULL ? 0 : strlen(job->id) + 1;
    bytes += job->retry == NULL ? 0 : strlen(job->retry) + 1;
    bytes += job->url == NULL ? 0 : strlen(job->url) + 1;
    bytes += job->group == NULL ? 0 : strlen(job->group) + 1;
    bytes += job->durability == NULL ? 0 : strlen(job->durability) + 1;
    bytes += job->unique == NULL ? 0 : strlen(job->unique) + 1;
    bytes += job->unique_for == NULL ? 0 : strlen(job->unique_for) + 1;
    bytes += job->unique_else == NULL ? 0 : strlen(job->unique_else) + 1;
    bytes += job->max_wait == NULL ? 0 : strlen(job->max_wait) + 1;
    bytes += job->key == NULL ? 0 : strlen(job->key) + 1;
    bytes += job->priority == NULL ? 0 : strlen(job->priority) + 1;
    for (size_t i = 0; i < job->header_count; i++)
        bytes += sizeof(*job->headers) + job->headers[i].name.len +
                 job->headers[i].value.len;
    return bytes;
}

/* NULL stays NULL. */
static const char *copy_text(char **to, const char *text)
{
    char *copy = *to;
    size_t size;

    if (text == NULL)
        return NULL;
    size = strlen(text) + 1;
    memcpy(copy, text, size);
    *to += size;
    return copy;
}

static struct weir_slice copy_slice(char **to, struct weir_slice slice)
{
    struct weir_slice copy = weir__slice_of(*to, slice.len);

    if (slice.len > 0)
        memcpy(*to, slice.ptr, slice.len);
    *to += slice.len;
    return copy;
}

static struct weir_header *copy_headers(struct weir_header *copy,
                                        const struct weir_new_job *job,
                                        char **to)
{
    for (size_t i = 0; i < job->header_count; i++)
        *copy++ = (struct weir_header){
            copy_slice(to, job->headers[i].name),
            copy_slice(to, job->headers[i].value),
        };
    return copy;
}

static void copy_job(struct weir_new_job *copy, const struct weir_new_job *job,
                     char **to)
{
    *copy = *job;
    copy->id = copy_text(to, job->id);
    copy->retry = copy_text(to, job->retry);
    copy->url = copy_text(to, job->url);
    copy->group = copy_text(to, job->group);
    copy->durability = copy_text(to, job->durability);
    copy->unique = copy_text(to, job->unique);
    copy->unique_for = copy_text(to, job->unique_for);
    copy->unique_else = copy_text(to, job->unique_else);
    copy->max_wait = copy_text(to, job->max_wait);
    copy->key = copy_text(to, job->key);
    copy->priority = copy_text(to, job->priority);
    copy->body = copy_slice(to, job->body);
}

static struct weir__copies *copies_new(const struct weir_new_jobs *jobs)
{
    size_t count = jobs->count;
    size_t bytes = sizeof(struct weir__copies) + count * sizeof(*jobs->jobs);
    size_t header_count = 0;
    struct weir_header *headers;
    struct weir__copies *copies;
    char *to;

    for (size_t i = 0; i < count; i++) {
        bytes += bytes_of(&jobs->jobs[i]);
        header_count += jobs->jobs[i].header_count;
    }
    copies = weir__mem_new(bytes);
    if (copies == NULL)
        return NULL;
    copies->bytes = bytes;
    memcpy(copies->topic, jobs->topic, strlen(jobs->topic));
    headers = (struct weir_header *)(copies->jobs + count);
    to = (char *)(headers + header_count);
    for (size_t i = 0; i < count; i++) {
        copy_job(&copies->jobs[i], &jobs->jobs[i], &to);
        copies->jobs[i].headers = headers;
        headers = copy_headers(headers, &jobs->jobs[i], &to);
    }
    return copies;
}

int weir__many_copy(const struct weir_new_jobs *jobs,
                    struct weir__many **ret_many, struct weir_error *err)
{
    struct weir__many *many;
    int rc = weir__topic_check(weir__slice_str(jobs->topic), err);

    if (rc == WEIR_OK)
        rc = check_jobs(jobs, err);
    if (rc < 0)
        return rc;
    many = many_new(jobs);
    if (many != NULL)
        many->copies = copies_new(jobs);
    if (many == NULL || many->copies == NULL) {
        weir__many_free(many);
        return weir__error_code(err, WEIR_ENOMEM);
    }
    many->bytes += many->copies->bytes;
    *ret_many = many;
    return WEIR_OK;
}

/* A job that cannot be added has its code; the others go on. */
static void add_copy(struct weir__many *many, struct weir__store_topic *handle,
                     size_t i)
{
    const struct weir__copies *copies = many->copies;
    const struct weir_new_job *job = &copies->jobs[i];
    int rc = weir__facade_check_fit(
        copies->topic, weir__facade_kind_of(many->reactor, handle), job, NULL);

    if (rc == WEIR_OK)
        rc = weir__facade_put(many->reactor, handle, job, NULL, on_added,
                              &many->ones[i]);
    if (rc == WEIR_OK)
        return;
    many->added[i].code = rc;
    many->open--;
}

static void add_copies(struct weir__many *many)
{
    struct weir__store_topic *handle;
    int rc = weir__facade_open(many->reactor, many->copies->topic, NULL,
                               &handle, NULL);

    if (rc < 0)
        refuse(many, 0, rc);
    for (size_t i = 0; i < many->count && rc == WEIR_OK; i++)
        add_copy(many, handle, i);
    weir__mem_free(many->copies);
    many->copies = NULL;
}

static void read_many(struct weir__mailbox_message *message, bool is_dropped)
{
    struct weir__many *many = (struct weir__many *)message; /* its first */
    int *depth = &many->reactor->depth;

    (*depth)++;
    if (is_dropped) {
        refuse(many, 0, WEIR_ECANCELED);
    } else {
        many->tally = weir__tally_join(many->reactor);
        add_copies(many);
    }
    if (many->open == 0)
        finish(many);
    (*depth)--;
}

int weir__many_send(struct weir__many *many, struct weir_reactor *reactor)
{
    many->reactor = reactor;
    many->message.read = read_many;
    return weir__mailbox_send(reactor->mailbox, &many->message, many->bytes);
}

int weir_reactor_submit(struct weir_reactor *reactor,
                        const struct weir_new_jobs *jobs,
                        struct weir_error *err)
{
    struct weir__many *many;
    int rc = weir__many_copy(jobs, &many, err);

    if (rc < 0)
        return rc;
    rc = weir__many_send(many, reactor);
    if (rc == WEIR_OK)
        return WEIR_OK;
    weir__many_free(many);
    return weir__error_code(err, rc);
}
