/* SPDX-License-Identifier: MIT */

/* A job as a line of JSON. What is simple is read in one pass; what is not, and
 * every mistake, through json-c. */

#include "adapters/cli/new_job.h"
#include "adapters/cli/options.h"
#include "adapters/json/json.h"
#include "adapters/json/quick.h"
#include "core/error.h"
#include "core/text.h"

#include <json-c/json.h>
#include <string.h>

/* The names of a line: those of a job's texts, then the body. */
enum { BODY = WEIR__JOB_FIELDS, NAMES, NONE };

/* What a line says. */
struct found {
    struct weir_slice text[WEIR__JOB_FIELDS]; /* `ptr` NULL: not given */
    bool has_body;
};

static const char *name_at(const void *unused, size_t i)
{
    (void)unused;
    return i == BODY ? "body" : weir__job_field_name((enum weir__job_field)i);
}

static size_t find_name(struct weir_slice text)
{
    for (size_t i = 0; i < NAMES; i++)
        if (weir__slice_equal(text, weir__slice_str(name_at(NULL, i))))
            return i;
    return NONE;
}

/* --- in one pass -------------------------------------------------------- */

static int quick_member(struct weir__job_line *line,
                        struct weir__json_quick *quick, struct found *found)
{
    struct weir_slice name;
    size_t field;

    if (!weir__json_quick_text(quick, &name) ||
        !weir__json_quick_sign(quick, ':'))
        return WEIR_EINVAL;
    field = find_name(name);
    if (field == BODY && !found->has_body) {
        found->has_body = true;
        return weir__json_quick_value(quick, &line->body);
    }
    if (field >= BODY || found->text[field].ptr != NULL ||
        !weir__json_quick_text(quick, &found->text[field]))
        return WEIR_EINVAL;
    return WEIR_OK;
}

/* WEIR_EINVAL: it is not simple, whatever else it is. */
static int read_quickly(struct weir__job_line *line, struct weir_slice json,
                        struct found *found)
{
    struct weir__json_quick quick = {json.ptr, json.ptr + json.len};
    int rc = WEIR_OK;

    if (!weir__json_quick_sign(&quick, '{'))
        return WEIR_EINVAL;
    if (!weir__json_quick_sign(&quick, '}')) {
        do {
            rc = quick_member(line, &quick, found);
        } while (rc == WEIR_OK && weir__json_quick_sign(&quick, ','));
        if (rc == WEIR_OK && !weir__json_quick_sign(&quick, '}'))
            rc = WEIR_EINVAL;
    }
    return rc == WEIR_OK && !weir__json_quick_is_done(&quick) ? WEIR_EINVAL
                                                              : rc;
}

/* --- with care ---------------------------------------------------------- */

static int refuse_name(const char *name, struct weir_error *err)
{
    const char *near = weir__nearest(name, NULL, NAMES, name_at);
    char quote[WEIR__TEXT_QUOTE_CAP];

    (void)weir__text_quote(weir__slice_str(name), quote);
    if (near != NULL)
        return weir__error_set(err, WEIR_EINVAL,
                               "unknown name \"%s\"; did you mean \"%s\"?",
                               quote, near);
    return weir__error_set(err, WEIR_EINVAL,
                           "unknown name \"%s\"; a job has id, delay, at, "
                           "body, retry, ttl, url and group",
                           quote);
}

static int take_text(struct json_object *value, size_t field,
                     struct found *found, struct weir_error *err)
{
    struct weir_slice text = {0};

    if (json_object_is_type(value, json_type_string))
        text = weir__slice_of(json_object_get_string(value),
                              (size_t)json_object_get_string_len(value));
    if (text.ptr == NULL)
        return weir__error_set(err, WEIR_EINVAL,
                               "%s: it takes a text, in double quotes",
                               name_at(NULL, field));
    if (memchr(text.ptr, '\0', text.len) != NULL)
        return weir__error_set(err, WEIR_EINVAL, "%s: it has a NUL within",
                               name_at(NULL, field));
    found->text[field] = text;
    return WEIR_OK;
}

static int take_member(struct weir__job_line *line, const char *name,
                       struct json_object *value, struct found *found,
                       struct weir_error *err)
{
    size_t field = find_name(weir__slice_str(name));

    if (field == NONE)
        return refuse_name(name, err);
    if (value == NULL)
        return WEIR_OK;
    if (field != BODY)
        return take_text(value, field, found, err);
    found->has_body = true;
    return weir__json_object_to_msgpack(value, &line->body, err);
}

/* `object` is what the texts borrow from. */
static int take_members(struct weir__job_line *line, struct json_object *object,
                        struct found *found, struct weir_error *err)
{
    struct json_object_iterator it, end;
    int rc = WEIR_OK;

    if (!json_object_is_type(object, json_type_object))
        return weir__error_set(err, WEIR_EINVAL,
                               "a job is an object, such as "
                               "{\"id\":\"42\",\"delay\":\"15m\"}");
    it = json_object_iter_begin(object);
    end = json_object_iter_end(object);
    while (rc == WEIR_OK && !json_object_iter_equal(&it, &end)) {
        rc = take_member(line, json_object_iter_peek_name(&it),
                         json_object_iter_peek_value(&it), found, err);
        json_object_iter_next(&it);
    }
    return rc;
}

/* --- a job -------------------------------------------------------------- */

/* The texts, each with its NUL behind it, in the line's own memory. */
static int keep_texts(struct weir__job_line *line, const struct found *found,
                      struct weir__job_texts *texts)
{
    size_t len = 0;

    for (size_t i = 0; i < WEIR__JOB_FIELDS; i++)
        len += found->text[i].len + 1;
    if (weir__buf_reserve(&line->text, len) == NULL)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < WEIR__JOB_FIELDS; i++) {
        if (found->text[i].ptr == NULL)
            continue;
        texts->value[i] = (const char *)line->text.ptr + line->text.len;
        weir__buf_append(&line->text, found->text[i].ptr, found->text[i].len);
        weir__buf_append(&line->text, "", 1);
    }
    return WEIR_OK;
}

static int make_job(struct weir__job_line *line, const struct found *found,
                    struct weir_error *err)
{
    struct weir__job_texts texts = {.dashes = ""};
    int rc = keep_texts(line, found, &texts);

    if (rc < 0)
        return weir__error_set(err, rc, "out of memory");
    rc = weir__job_texts_read(&texts, &line->job, err);
    if (rc < 0)
        return rc;
    line->job.body = weir__buf_slice(&line->body);
    return weir__job_body_check(line->job.body, err);
}

static void reset(struct weir__job_line *line)
{
    line->job = (struct weir_new_job){0};
    weir__buf_reset(&line->text);
    weir__buf_reset(&line->body);
}

static int read_carefully(struct weir__job_line *line, struct weir_slice json,
                          struct weir_error *err)
{
    struct json_object *object = NULL;
    struct found found = {0};
    int rc = weir__json_parse(json, &object, err);

    if (rc < 0)
        return rc;
    rc = take_members(line, object, &found, err);
    if (rc == WEIR_OK)
        rc = make_job(line, &found, err);
    (void)json_object_put(object); /* whether it was the last reference */
    return rc;
}

int weir__job_line_read(struct weir__job_line *line, struct weir_slice json,
                        struct weir_error *err)
{
    struct found found = {0};
    int rc;

    reset(line);
    rc = read_quickly(line, json, &found);
    if (rc == WEIR_OK)
        return make_job(line, &found, err);
    if (rc == WEIR_ENOMEM)
        return weir__error_set(err, rc, "out of memory");
    reset(line);
    return read_carefully(line, json, err);
}

void weir__job_line_fini(struct weir__job_line *line)
{
    weir__buf_fini(&line->text);
    weir__buf_fini(&line->body);
}
