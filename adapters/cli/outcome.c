/* SPDX-License-Identifier: MIT */
#include "adapters/cli/outcome.h"

#include "adapters/cli/output.h"
#include "adapters/json/json.h"
#include "core/text.h"

#include <inttypes.h>

/* --- JSON ------------------------------------------------------------- */

static struct json_object *lines_json(const struct weir_trial *trial)
{
    static const char *const levels[] = {"debug", "info", "warn", "error"};
    struct json_object *array = json_object_new_array();
    size_t count = trial == NULL ? 0 : weir_trial_line_count(trial);

    for (size_t i = 0; i < count; i++) {
        const struct weir_trial_line *line = weir_trial_line_at(trial, i);

        array = weir__array_with(
            array, WEIR__OBJECT(weir__field_str("level", levels[line->level]),
                                weir__field_str("text", line->text)));
    }
    return array;
}

static struct weir__field body_field(const char *json)
{
    struct json_object *body = NULL;
    struct weir__buf value = {0};
    int rc = weir__json_to_msgpack(weir__slice_str(json), &value, NULL);

    if (rc == WEIR_OK)
        rc = weir__json_from_msgpack(weir__buf_slice(&value), &body);
    weir__buf_fini(&value);
    return rc == WEIR_OK && body == NULL ? weir__field_null("body")
                                         : weir__field("body", body);
}

static size_t count_follows(const struct weir_trial *trial)
{
    return trial == NULL ? 0 : weir_trial_follow_count(trial);
}

static struct json_object *follows_json(const struct weir_trial *trial)
{
    struct json_object *array = json_object_new_array();

    for (size_t i = 0; i < count_follows(trial); i++) {
        const struct weir_trial_follow *follow = weir_trial_follow_at(trial, i);

        array = weir__array_with(
            array,
            WEIR__OBJECT(weir__field_str("topic", follow->topic),
                         weir__field_text("id", weir__slice_str(follow->id)),
                         weir__field_int("delay_ms", follow->delay_ms),
                         body_field(follow->json)));
    }
    return array;
}

static void put_counter(const char *name, uint64_t value, void *arg)
{
    if (name != NULL)
        weir__object_put(arg, weir__field_number(name, value));
}

static struct json_object *counters_json(const struct weir_trial *trial)
{
    struct json_object *object = json_object_new_object();

    if (trial != NULL)
        weir_trial_each_counter(trial, put_counter, &object);
    return object;
}

/* With three digits; as a double it would show its binary nature. */
static struct json_object *time_json(double time_ms)
{
    char text[40];

    (void)snprintf(text, sizeof(text), "%.3f", time_ms); /* fits */
    return json_object_new_double_s(time_ms, text);
}

static struct json_object *job_json(const struct weir__job_outcome *job)
{
    return WEIR__OBJECT(
        weir__field_str("verdict", job->verdict),
        weir__field_int("attempt", job->attempt),
        weir__field_int("delay_ms", job->delay_ms),
        weir__field_text("reason", weir__slice_str(job->reason)),
        weir__field_text("dead", weir__slice_str(job->dead)));
}

static struct json_object *jobs_json(const struct weir__outcome *outcome)
{
    struct json_object *array = json_object_new_array(), *job;

    for (size_t i = 0; i < outcome->job_count; i++) {
        job = job_json(&outcome->jobs[i]);
        weir__object_put(&job, weir__field_str("id", outcome->jobs[i].id));
        array = weir__array_with(array, job);
    }
    return array;
}

/* That of the only job, or one with all of them. */
static enum weir__exit print_json(const struct weir__outcome *outcome)
{
    struct json_object *object =
        outcome->job_count == 1
            ? job_json(&outcome->jobs[0])
            : WEIR__OBJECT(weir__field("jobs", jobs_json(outcome)));

    weir__object_put(&object,
                     weir__field("time_ms", time_json(outcome->time_ms)));
    weir__object_put(&object,
                     weir__field("counters", counters_json(outcome->trial)));
    weir__object_put(&object,
                     weir__field("follows", follows_json(outcome->trial)));
    weir__object_put(&object, weir__field("log", lines_json(outcome->trial)));
    return weir__print_object(object);
}

/* --- text ------------------------------------------------------------- */

/* A line for each: "adds     TOPIC ID in 15s: BODY". */
static void print_follows(const struct weir_trial *trial)
{
    for (size_t i = 0; i < count_follows(trial); i++) {
        const struct weir_trial_follow *follow = weir_trial_follow_at(trial, i);
        char delay[24];

        (void)weir__duration_format(follow->delay_ms, delay);
        weir__print("adds     %s %s in %s: ", follow->topic,
                    follow->id[0] == '\0' ? "(made id)" : follow->id, delay);
        weir__print_text(weir__slice_str(follow->json));
        (void)printf("\n");
    }
}

static void print_counter(const char *name, uint64_t value, void *arg)
{
    bool *has_any = arg;

    if (name != NULL)
        weir__print("%s%s=%" PRIu64, *has_any ? " " : "counters ", name, value);
    else if (*has_any)
        (void)printf("\n");
    *has_any = true;
}

static void print_job(const struct weir__job_outcome *job)
{
    char delay[24];

    weir__print("verdict  %s\n", job->verdict);
    if (job->delay_ms >= 0) {
        (void)weir__duration_format(job->delay_ms, delay);
        weir__print("delay    %s\n", delay);
    }
    if (*job->reason != '\0') {
        (void)printf("reason   ");
        weir__print_text(weir__slice_str(job->reason));
        (void)printf("\n");
    }
    if (*job->dead != '\0')
        weir__print("dead     %s\n", job->dead);
}

enum weir__exit weir__outcome_print(const struct weir__cli *cli,
                                    const struct weir__outcome *outcome)
{
    bool has_any = false;

    if (cli->json)
        return print_json(outcome);
    for (size_t i = 0; i < outcome->job_count; i++) {
        if (outcome->job_count > 1)
            weir__print("job      %s\n", outcome->jobs[i].id);
        print_job(&outcome->jobs[i]);
    }
    (void)printf("time     %.3f ms\n", outcome->time_ms);
    print_follows(outcome->trial);
    if (outcome->trial != NULL)
        weir_trial_each_counter(outcome->trial, print_counter, &has_any);
    return WEIR__EXIT_DONE;
}
