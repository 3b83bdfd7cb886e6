/* SPDX-License-Identifier: MIT */

/* A job as a line of JSON. */

#include "adapters/cli/new_job.h"
#include "adapters/cli/options.h"
#include "adapters/cli/past.h"
#include "adapters/json/read.h"
#include "adapters/msgpack/headers.h"
#include "adapters/msgpack/scan.h"
#include "core/assert.h"
#include "core/error.h"
#include "core/nearest.h"
#include "core/text.h"

#include <string.h>

/* The names of a line: those of a job's texts, then what is more. */
enum { BODY = WEIR__JOB_FIELDS, HEADERS, PAST, PACKED, NAMES, NONE };

/* Where the texts of a line begin in its memory, plus 1; 0: not given. */
struct found {
    size_t text_at[NAMES];
};

static const char *name_at(const void *unused, size_t i)
{
    (void)unused;
    if (i == HEADERS)
        return "headers";
    if (i == PAST || i == PACKED)
        return i == PAST ? "past" : "msgpack";
    return i == BODY ? "body" : weir__job_field_name((enum weir__job_field)i);
}

/* The body is looked for first: most lines have one. */
static size_t find_name(struct weir_slice text)
{
    if (weir__slice_equal(text, weir__slice_str(name_at(NULL, BODY))))
        return BODY;
    for (size_t i = 0; i < NAMES; i++)
        if (weir__slice_equal(text, weir__slice_str(name_at(NULL, i))))
            return i;
    return NONE;
}

static int refuse_name(const char *name, struct weir_error *err)
{
    const char *near = weir__nearest(name, NULL, NAMES, name_at);
    char quote[WEIR__TEXT_QUOTE_CAP];

    (void)weir__text_quote(weir__slice_str(name), quote);
    if (near != NULL)
        return weir__error_set(err, WEIR_EINVAL,
                               "unknown name \"%s\"; did you mean \"%s\"?",
                               quote, near);
    return weir__error_set(
        err, WEIR_EINVAL,
        "unknown name \"%s\"; a job has id, delay, at, "
        "body, retry, ttl, url, group, durability, unique, "
        "for, else, max_wait, key, priority, headers, past and msgpack",
        quote);
}

/* A text with its NUL behind it; null is none. */
static int take_text(struct weir__job_line *line, struct weir__json_read *read,
                     size_t field, struct found *found)
{
    size_t at = line->text.len;
    int rc;

    if (weir__json_read_peek(read) != '"')
        return weir__error_set(read->err, WEIR_EINVAL,
                               "%s: it takes a text, in double quotes",
                               name_at(NULL, field));
    rc = weir__json_read_text(read, &line->text);
    if (rc < 0)
        return rc;
    if (memchr(line->text.ptr + at, '\0', line->text.len - at) != NULL)
        return weir__error_set(read->err, WEIR_EINVAL,
                               "%s: it has a NUL within", name_at(NULL, field));
    weir__buf_append(&line->text, "", 1);
    found->text_at[field] = at + 1;
    return WEIR_OK;
}

static int take_headers(struct weir__job_line *line,
                        struct weir__json_read *read)
{
    if (weir__json_read_peek(read) != '{')
        return weir__error_set(read->err, WEIR_EINVAL,
                               "headers: they are an object of texts, such as "
                               "{\"traceparent\":\"00-...\"}");
    return weir__json_read_value(read, &line->map);
}

/* The name before a value; the memory it is read into is given back. */
static int take_name(struct weir__job_line *line, struct weir__json_read *read,
                     size_t *ret_field)
{
    size_t at = line->text.len;
    int rc;

    if (weir__buf_reserve(&line->text, 1) == NULL) /* "" has a place, too */
        return weir__error_set(read->err, WEIR_ENOMEM, "out of memory");
    rc = weir__json_read_key(read, &line->text);
    if (rc < 0)
        return rc;
    *ret_field =
        find_name(weir__slice_of(line->text.ptr + at, line->text.len - at));
    weir__buf_append(&line->text, "", 1);
    if (line->text.failed)
        return weir__error_set(read->err, WEIR_ENOMEM, "out of memory");
    if (*ret_field == NONE)
        return refuse_name((const char *)line->text.ptr + at, read->err);
    line->text.len = at;
    return WEIR_OK;
}

static struct weir__buf *buf_of(struct weir__job_line *line, size_t field)
{
    return field == BODY   ? &line->body
           : field == PAST ? &line->past
                           : &line->map;
}

/* Of equal names the last counts, as in any object; null is nothing given. */
static int take_member(struct weir__job_line *line,
                       struct weir__json_read *read, struct found *found)
{
    struct weir__buf unused = {0};
    size_t field = NONE;
    int rc = take_name(line, read, &field);

    if (rc < 0)
        return rc;
    WEIR_ASSERT(field < NAMES);
    found->text_at[field] = 0;
    if (field == BODY || field == PAST || field == HEADERS)
        weir__buf_reset(buf_of(line, field));
    if (weir__json_read_peek(read) == 'n') {
        rc = weir__json_read_scalar(read, &unused);
        weir__buf_fini(&unused);
        return rc;
    }
    if (field == HEADERS)
        return take_headers(line, read);
    if (field == PAST)
        return weir__json_read_value(read, &line->past);
    return field == BODY ? weir__json_read_value(read, &line->body)
                         : take_text(line, read, field, found);
}

static int take_members(struct weir__job_line *line,
                        struct weir__json_read *read, struct found *found)
{
    bool is_last;
    int rc = WEIR_OK;

    if (weir__json_read_peek(read) != 0 && !weir__json_read_sign(read, '{'))
        return weir__error_set(read->err, WEIR_EINVAL,
                               "a job is an object, such as "
                               "{\"id\":\"42\",\"delay\":\"15m\"}");
    is_last = weir__json_read_sign(read, '}');
    while (rc == WEIR_OK && !is_last) {
        rc = take_member(line, read, found);
        if (rc == WEIR_OK)
            rc = weir__json_read_next(read, '}', &is_last);
    }
    return rc == WEIR_OK ? weir__json_read_end(read) : rc;
}

static int make_headers(struct weir__job_line *line, struct weir_error *err)
{
    struct weir_slice map = weir__buf_slice(&line->map);

    line->job.headers = line->headers;
    if (weir__headers_list(map, line->headers, WEIR_MAX_HEADERS,
                           &line->job.header_count) < 0)
        return weir__error_set(err, WEIR_EINVAL,
                               "headers: they are texts, %d at most",
                               WEIR_MAX_HEADERS);
    return weir__headers_check(line->headers, line->job.header_count, err);
}

/* A body that JSON cannot carry. */
static int read_packed(struct weir__job_line *line, const char *text,
                       struct weir_error *err)
{
    if (line->body.len > 0)
        return weir__error_set(err, WEIR_EINVAL,
                               "body and msgpack exclude each other; give one");
    if (weir__base64_read(text, &line->body) &&
        weir__msgpack_check(weir__buf_slice(&line->body)) == WEIR_OK)
        return WEIR_OK;
    return line->body.failed
               ? weir__error_set(err, WEIR_ENOMEM, "out of memory")
               : weir__error_set(err, WEIR_EINVAL,
                                 "msgpack: it is not one value in base64");
}

/* A job with a past may have an id that weir made. */
static int make_old(struct weir__job_line *line, const char *id,
                    struct weir_error *err)
{
    struct weir_old_job *old = &line->old;
    int rc = WEIR_OK;

    line->has_past = line->past.len > 0;
    if (!line->has_past)
        return WEIR_OK;
    if (id != NULL)
        rc = weir__id_check_any(weir__slice_str(id), err);
    if (rc == WEIR_OK)
        rc = weir__past_read(weir__buf_slice(&line->past), line->attempts, old,
                             err);
    line->job.id = id;
    old->job = line->job;
    return rc;
}

static int make_job(struct weir__job_line *line, const struct found *found,
                    struct weir_error *err)
{
    struct weir__job_texts texts = {.dashes = ""};
    const char *given[NAMES] = {0}, *id;
    int rc = WEIR_OK;

    if (line->text.failed)
        return weir__error_set(err, WEIR_ENOMEM, "out of memory");
    for (size_t i = 0; i < NAMES; i++)
        if (found->text_at[i] > 0)
            given[i] = (const char *)line->text.ptr + found->text_at[i] - 1;
    memcpy(texts.value, given, sizeof(texts.value));
    id = texts.value[WEIR__JOB_ID];
    if (line->past.len > 0)
        texts.value[WEIR__JOB_ID] = NULL;
    rc = weir__job_texts_read(&texts, &line->job, err);
    if (rc == WEIR_OK && given[PACKED] != NULL)
        rc = read_packed(line, given[PACKED], err);
    if (rc < 0)
        return rc;
    rc = make_headers(line, err);
    if (rc < 0)
        return rc;
    line->job.body = weir__buf_slice(&line->body);
    rc = weir__job_body_check(line->job.body, err);
    return rc == WEIR_OK ? make_old(line, id, err) : rc;
}

static void reset(struct weir__job_line *line)
{
    line->job = (struct weir_new_job){0};
    line->old = (struct weir_old_job){0};
    weir__buf_reset(&line->past);
    weir__buf_reset(&line->text);
    weir__buf_reset(&line->body);
    weir__buf_reset(&line->map);
}

int weir__job_line_read(struct weir__job_line *line, struct weir_slice json,
                        struct weir_error *err)
{
    struct weir__json_read read;
    struct found found = {0};
    int rc;

    reset(line);
    rc = weir__json_read_init(&read, json, err);
    if (rc == WEIR_OK)
        rc = take_members(line, &read, &found);
    return rc == WEIR_OK ? make_job(line, &found, err) : rc;
}

void weir__job_line_fini(struct weir__job_line *line)
{
    weir__buf_fini(&line->text);
    weir__buf_fini(&line->body);
    weir__buf_fini(&line->map);
    weir__buf_fini(&line->past);
}
