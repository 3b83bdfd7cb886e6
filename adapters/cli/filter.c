/* SPDX-License-Identifier: MIT */
#include "adapters/cli/filter.h"

#include "adapters/cli/options.h"
#include "adapters/cli/output.h"
#include "adapters/cli/time.h"
#include "adapters/json/json.h"
#include "core/assert.h"
#include "core/buf.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"

#include <stdio.h>
#include <string.h>

/* --- the program ---------------------------------------------------------- */

static int open_program(struct weir__filter *filter, const char *program,
                        struct weir_error *err)
{
    struct weir_error why = {0};
    int rc;

    if (program[strspn(program, " \t\n")] == '\0')
        return weir__error_set(err, WEIR_EINVAL,
                               "--where: there is no program; write one such "
                               "as '.body.order > 40'");
    filter->held = weir__mem_new(WEIR__JQ_JOBS * sizeof(*filter->held));
    if (filter->held == NULL)
        return weir__error_set(err, WEIR_ENOMEM, "out of memory");
    rc = weir__jq_open(&filter->jq, program, &why);
    filter->program = program;
    return rc == WEIR_OK ? WEIR_OK
                         : weir__error_set(err, rc, "--where: %s", why.text);
}

/* --- jobs that the program is to look at ---------------------------------- */

/* A round trip to the child costs as much as looking at some jobs, so jobs are
 * copied and wait for others. */
enum { SLICES = 13, HELD_BYTES = 1024 * 1024 };

static void list_slices(struct weir_job_info *job,
                        struct weir_slice *ret_slices[static SLICES])
{
    struct weir_slice *slices[SLICES] = {
        &job->id,     &job->url,     &job->key,     &job->unique, &job->retry,
        &job->reason, &job->error,   &job->body,    &job->group,  &job->place,
        &job->worker, &job->headers, &job->attempts};

    memcpy(ret_slices, slices, sizeof(slices));
}

static void hold(struct weir__filter *filter, const char *topic,
                 const struct weir_job_info *job)
{
    struct json_object *object = weir__job_json(topic, job);
    struct weir__buf escaped = {0};
    struct weir_slice *slices[SLICES], line;

    if (object != NULL && weir__json_line(object, &escaped, &line)) {
        weir__buf_append(&filter->lines, line.ptr, line.len);
        weir__buf_append(&filter->lines, "", 1);
    } else {
        filter->is_short_of_memory = true;
    }
    weir__buf_fini(&escaped);
    (void)json_object_put(object);
    WEIR_ASSERT(filter->held_count < WEIR__JQ_JOBS);
    filter->held[filter->held_count] = *job;
    list_slices(&filter->held[filter->held_count++], slices);
    for (size_t i = 0; i < SLICES; i++)
        weir__buf_append(&filter->bytes, slices[i]->ptr, slices[i]->len);
    filter->is_short_of_memory |= filter->lines.failed || filter->bytes.failed;
}

/* Slices point to the copies, which are one after the other. */
static void point_to_copies(struct weir__filter *filter)
{
    struct weir_slice *slices[SLICES];
    const uint8_t *at = filter->bytes.ptr;

    for (size_t i = 0; i < filter->held_count; i++) {
        list_slices(&filter->held[i], slices);
        for (size_t k = 0; k < SLICES; k++) {
            slices[k]->ptr = slices[k]->len > 0 ? at : NULL;
            at += slices[k]->len;
        }
    }
}

/* The child has ended: it filters no more jobs. */
static void break_off(struct weir__filter *filter,
                      const struct weir_job_info *job)
{
    const char *why = weir__jq_end(&filter->jq);
    const char *more = strlen(filter->program) > 80 ? "..." : "";
    char id[WEIR__TEXT_QUOTE_CAP];

    filter->is_broken = true;
    (void)weir__error_set(&filter->err, WEIR_EINVAL,
                          "--where: the program '%.80s%s' %s, on job \"%s\"",
                          filter->program, more, why,
                          weir__text_quote(job->id, id));
}

static void say_failure(const struct weir__filter *filter,
                        const struct weir_job_info *job)
{
    char id[WEIR__TEXT_QUOTE_CAP];

    weir__complain("--where: %s (job \"%s\")", filter->jq.answers->why,
                   weir__text_quote(job->id, id));
}

void weir__filter_flush(struct weir__filter *filter)
{
    size_t answered = 0;

    if (filter->held_count > 0 && !filter->is_short_of_memory &&
        !filter->is_broken)
        answered =
            weir__jq_ask(&filter->jq, &filter->lines, filter->held_count);
    point_to_copies(filter);
    for (size_t i = 0; i < answered; i++) {
        char taken = filter->jq.answers->taken[i];

        if (taken == 'f' && ++filter->failed == 1)
            say_failure(filter, &filter->held[i]);
        if (taken == 'y')
            filter->meant(&filter->held[i], filter->arg);
    }
    if (answered < filter->held_count && !filter->is_short_of_memory &&
        !filter->is_broken)
        break_off(filter, &filter->held[answered]);
    filter->held_count = 0;
    weir__buf_reset(&filter->lines);
    weir__buf_reset(&filter->bytes);
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
        .meant = filter->meant,
        .arg = filter->arg,
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
        rc = open_program(filter, conditions->where, err);
    return rc;
}

bool weir__filter_has_any(const struct weir__filter *filter)
{
    return filter->program != NULL || filter->has_before || filter->has_after ||
           filter->reason != NULL;
}

static bool fits(const struct weir__filter *filter,
                 const struct weir_job_info *job)
{
    if ((filter->has_before || filter->has_after) && job->due_ms < 0)
        return false; /* it runs */
    if (filter->has_before && job->due_ms >= filter->before_ms)
        return false;
    if (filter->has_after && job->due_ms < filter->after_ms)
        return false;
    return filter->reason == NULL ||
           weir__slice_equal(job->reason, weir__slice_str(filter->reason));
}

void weir__filter_take(struct weir__filter *filter, const char *topic,
                       const struct weir_job_info *job)
{
    if (!fits(filter, job))
        return;
    if (filter->program == NULL) {
        filter->meant(job, filter->arg);
        return;
    }
    hold(filter, topic, job);
    if (filter->held_count == WEIR__JQ_JOBS || filter->lines.len >= HELD_BYTES)
        weir__filter_flush(filter);
}

void weir__filter_fini(struct weir__filter *filter)
{
    (void)weir__jq_end(&filter->jq); /* no job is asked about any more */
    weir__buf_fini(&filter->lines);
    weir__buf_fini(&filter->bytes);
    weir__mem_free(filter->held);
    filter->held = NULL;
}
