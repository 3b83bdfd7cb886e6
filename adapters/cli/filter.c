/* SPDX-License-Identifier: MIT */
#include "adapters/cli/filter.h"

#include "adapters/cli/options.h"
#include "adapters/cli/output.h"
#include "adapters/cli/time.h"
#include "adapters/json/json.h"
#include "core/assert.h"
#include "core/buf.h"
#include "core/error.h"
#include "core/text.h"

#include <jq.h>
#include <stdio.h>
#include <string.h>

/* --- the program ---------------------------------------------------------- */

/* The first line of what jq says, without its own name. */
static void take_message(void *arg, jv message)
{
    struct weir_error *err = arg;
    jv text = jq_format_error(message); /* takes the message */
    const char *line = jv_string_value(text);
    size_t len;

    line = weir__text_behind(line, "jq: error: ");
    len = strcspn(line, "\n");
    while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == ':'))
        len--;
    if (err->code == WEIR_OK)
        (void)weir__error_set(err, WEIR_EINVAL, "--where: %.*s", (int)len,
                              line);
    jv_free(text);
}

/* Without these 1.6 ends the process where a program has `import`. */
static void have_no_library(struct jq_state *jq)
{
    jq_set_attr(jq, jv_string("JQ_LIBRARY_PATH"), jv_array());
    jq_set_attr(jq, jv_string("JQ_ORIGIN"), jv_string("."));
    jq_set_attr(jq, jv_string("PROGRAM_ORIGIN"), jv_string("."));
}

static int compile(struct weir__filter *filter, const char *program,
                   struct weir_error *err)
{
    struct weir_error why = {0};

    if (program[strspn(program, " \t\n")] == '\0')
        return weir__error_set(err, WEIR_EINVAL,
                               "--where: there is no program; write one such "
                               "as '.body.order > 40'");
    filter->jq = jq_init();
    if (filter->jq == NULL)
        return weir__error_set(err, WEIR_ENOMEM, "out of memory");
    have_no_library(filter->jq);
    jq_set_error_cb(filter->jq, take_message, &why);
    if (jq_compile(filter->jq, program) == 0)
        return weir__error_set(err, WEIR_EINVAL, "%s",
                               why.code < 0 ? why.text
                                            : "--where: jq refuses it");
    jq_set_error_cb(filter->jq, NULL, NULL);
    return WEIR_OK;
}

/* A job as jq has it, made of the text that is printed. */
static bool read_job(const char *topic, const struct weir_job_info *job,
                     jv *ret_value)
{
    struct json_object *object = weir__job_json(topic, job);
    struct weir__buf escaped = {0};
    struct weir_slice line;
    bool is_good = object != NULL && weir__json_line(object, &escaped, &line);

    if (is_good)
        *ret_value = jv_parse_sized((const char *)line.ptr, (int)line.len);
    weir__buf_fini(&escaped);
    (void)json_object_put(object);
    return is_good;
}

static void say_failure(struct weir__filter *filter, jv message,
                        const struct weir_job_info *job)
{
    struct weir_error why = {0};
    char id[WEIR__TEXT_QUOTE_CAP];

    filter->failed++;
    if (filter->failed > 1) {
        jv_free(message);
        return;
    }
    take_message(&why, message);
    (void)weir__text_quote(job->id, id);
    weir__complain("%s (job \"%s\")", why.text, id);
}

/* Takes `job`. `*ret_last` is what there was instead of a value, to be freed,
 * where it is not taken. */
static bool run_program(struct weir__filter *filter, jv job, jv *ret_last)
{
    bool is_taken = false;
    jv value;

    WEIR_ASSERT(filter->jq != NULL);
    jq_start(filter->jq, job, 0);
    while (!is_taken) {
        value = jq_next(filter->jq);
        if (!jv_is_valid(value)) {
            *ret_last = value;
            return false;
        }
        is_taken = jv_get_kind(value) != JV_KIND_NULL &&
                   jv_get_kind(value) != JV_KIND_FALSE;
        jv_free(value);
    }
    return true;
}

static bool program_takes(struct weir__filter *filter, const char *topic,
                          const struct weir_job_info *job)
{
    jv value, last;

    if (!read_job(topic, job, &value)) {
        filter->is_short_of_memory = true;
        return false;
    }
    if (run_program(filter, value, &last))
        return true;
    if (jv_invalid_has_msg(jv_copy(last)))
        say_failure(filter, jv_invalid_get_msg(last), job);
    else
        jv_free(last);
    return false;
}

char weir__filter_look(struct weir__filter *filter, struct weir_slice json)
{
    jv value = jv_parse_sized((const char *)json.ptr, (int)json.len), last;

    if (!jv_is_valid(value)) {
        jv_free(value);
        return 'f';
    }
    if (run_program(filter, value, &last))
        return 'y';
    return jv_invalid_has_msg(last) ? 'f' : 'n';
}

/* --- times ---------------------------------------------------------------- */

/* A point in time, a day, whose beginning in UTC it is, now, or a duration from
 * now on, with a minus before now. */
static int read_time(const char *name, const char *text, int64_t now_ms,
                     int64_t *ret_ms, struct weir_error *err)
{
    bool is_past = text[0] == '-';
    char midnight[24] = "";
    struct weir_error why = {0};
    int64_t ms = 0;

    if (weir__duration_parse(weir__slice_str(text + is_past), &ms, &why) ==
        WEIR_OK) {
        *ret_ms = is_past ? now_ms - ms : now_ms + ms;
        return WEIR_OK;
    }
    if (strcmp(text, "now") == 0) {
        *ret_ms = now_ms;
        return WEIR_OK;
    }
    if (strlen(text) == sizeof("2026-01-31") - 1)
        (void)snprintf(midnight, sizeof(midnight), "%sT00:00:00Z",
                       text); /* fits */
    if (weir__time_parse(midnight, ret_ms, NULL) == WEIR_OK ||
        weir__time_parse(text, ret_ms, &why) == WEIR_OK)
        return WEIR_OK;
    return weir__error_set(err, WEIR_EINVAL,
                           "%s: %s; or a day, now, 1h from now, or -1h", name,
                           why.text);
}

/* --- reasons -------------------------------------------------------------- */

/* Of jobs that were imported with another one there is --where. */
static int check_reason(const char *reason, struct weir_error *err)
{
    static const char *const reasons[] = {"exhausted", "failed", "crashed",
                                          "malformed"};

    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (strcmp(reason, reasons[i]) == 0)
            return WEIR_OK;
    return weir__error_set(err, WEIR_EINVAL,
                           "--reason: \"%.60s\" is none of exhausted, failed, "
                           "crashed, malformed",
                           reason);
}

/* --- conditions ----------------------------------------------------------- */

int weir__filter_init(struct weir__filter *filter,
                      const struct weir__conditions *conditions, int64_t now_ms,
                      struct weir_error *err)
{
    int rc = WEIR_OK;

    *filter = (struct weir__filter){
        .has_before = conditions->before != NULL,
        .has_after = conditions->after != NULL,
        .reason = conditions->reason,
    };
    if (filter->has_before)
        rc = read_time("--before", conditions->before, now_ms,
                       &filter->before_ms, err);
    if (rc == WEIR_OK && filter->has_after)
        rc = read_time("--after", conditions->after, now_ms, &filter->after_ms,
                       err);
    if (rc == WEIR_OK && conditions->reason != NULL)
        rc = check_reason(conditions->reason, err);
    if (rc == WEIR_OK && conditions->where != NULL)
        rc = compile(filter, conditions->where, err);
    return rc;
}

bool weir__filter_has_any(const struct weir__filter *filter)
{
    return filter->jq != NULL || filter->has_before || filter->has_after ||
           filter->reason != NULL;
}

bool weir__filter_takes(struct weir__filter *filter, const char *topic,
                        const struct weir_job_info *job)
{
    if ((filter->has_before || filter->has_after) && job->due_ms < 0)
        return false; /* it runs */
    if (filter->has_before && job->due_ms >= filter->before_ms)
        return false;
    if (filter->has_after && job->due_ms < filter->after_ms)
        return false;
    if (filter->reason != NULL &&
        !weir__slice_equal(job->reason, weir__slice_str(filter->reason)))
        return false;
    return filter->jq == NULL || program_takes(filter, topic, job);
}

void weir__filter_fini(struct weir__filter *filter)
{
    if (filter->jq != NULL)
        jq_teardown(&filter->jq);
    filter->jq = NULL;
}
