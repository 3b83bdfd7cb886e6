/* SPDX-License-Identifier: MIT */
#include "adapters/cli/output.h"

#include "adapters/cli/time.h"
#include "adapters/json/json.h"
#include "core/buf.h"
#include "core/text.h"

#include <inttypes.h>
#include <string.h>
#include <weir/past.h>

/* --- JSON ------------------------------------------------------------- */

struct weir__field weir__field(const char *name, struct json_object *value)
{
    return (struct weir__field){.name = name, .value = value};
}

struct weir__field weir__field_null(const char *name)
{
    return (struct weir__field){.name = name, .is_null = true};
}

/* Through the one place that makes JSON strings of foreign bytes: as a msgpack
 * str with a 32 bit length. */
static struct json_object *text_json(struct weir_slice text)
{
    const uint8_t head[] = {0xdb, (uint8_t)(text.len >> 24),
                            (uint8_t)(text.len >> 16), (uint8_t)(text.len >> 8),
                            (uint8_t)text.len};
    struct json_object *json = NULL;
    struct weir__buf buf = {0};

    weir__buf_append(&buf, head, sizeof(head));
    weir__buf_append(&buf, text.ptr, text.len);
    if (buf.failed || weir__json_from_msgpack(weir__buf_slice(&buf), &json) < 0)
        json = NULL;
    weir__buf_fini(&buf);
    return json;
}

struct weir__field weir__field_text(const char *name, struct weir_slice text)
{
    return text.len == 0 ? weir__field_null(name)
                         : weir__field(name, text_json(text));
}

struct weir__field weir__field_str(const char *name, const char *text)
{
    return text == NULL ? weir__field_null(name)
                        : weir__field(name, text_json(weir__slice_str(text)));
}

struct weir__field weir__field_number(const char *name, uint64_t number)
{
    return weir__field(name, json_object_new_uint64(number));
}

struct weir__field weir__field_int(const char *name, int64_t number)
{
    return number < 0 ? weir__field_null(name)
                      : weir__field(name, json_object_new_int64(number));
}

struct weir__field weir__field_bool(const char *name, bool is_true)
{
    return weir__field(name, json_object_new_boolean(is_true));
}

void weir__object_put(struct json_object **object, struct weir__field field)
{
    if (field.name == NULL)
        return;
    if (*object != NULL && (field.value != NULL || field.is_null) &&
        json_object_object_add(*object, field.name, field.value) == 0)
        return;
    (void)json_object_put(field.value);
    (void)json_object_put(*object);
    *object = NULL;
}

struct json_object *weir__object(const struct weir__field *fields)
{
    struct json_object *object = json_object_new_object();

    for (; !fields->is_end; fields++)
        weir__object_put(&object, *fields);
    return object;
}

struct json_object *weir__array_with(struct json_object *array,
                                     struct json_object *value)
{
    if (array != NULL && value != NULL &&
        json_object_array_add(array, value) == 0)
        return array;
    (void)json_object_put(value);
    (void)json_object_put(array);
    return NULL;
}

static struct weir__field body_field(struct weir_slice body)
{
    struct json_object *json = NULL;

    if (weir__json_from_msgpack(body, &json) < 0)
        return weir__field("body", NULL);
    return json == NULL ? weir__field_null("body") : weir__field("body", json);
}

static struct weir__field headers_field(const struct weir_job_info *job)
{
    struct weir_header headers[WEIR_MAX_HEADERS];
    size_t count = weir_job_info_headers(job, headers, WEIR_MAX_HEADERS);
    struct json_object *object = count > 0 ? json_object_new_object() : NULL;

    if (count == 0)
        return weir__field_null("headers");
    for (size_t i = 0; i < count; i++) {
        char name[WEIR_MAX_HEADER + 1] = "";

        memcpy(name, headers[i].name.ptr, headers[i].name.len);
        weir__object_put(&object, weir__field_text(name, headers[i].value));
    }
    return weir__field("headers", object);
}

/* Of most jobs there is none. */
static struct weir__field attempts_field(const struct weir_job_info *job)
{
    struct weir_attempt attempts[WEIR_MAX_ATTEMPTS];
    size_t count = weir_job_info_attempts(job, attempts, WEIR_MAX_ATTEMPTS);
    struct json_object *array = count > 0 ? json_object_new_array() : NULL;

    if (count == 0)
        return (struct weir__field){0};
    for (size_t i = 0; i < count; i++)
        array = weir__array_with(
            array,
            WEIR__OBJECT(weir__field_int("ended_ms", attempts[i].ended_ms),
                         weir__field_str("outcome", weir_attempt_outcome_name(
                                                        attempts[i].outcome)),
                         weir__field_text("error", attempts[i].error),
                         weir__field_text("worker", attempts[i].worker)));
    return weir__field("attempts", array);
}

struct json_object *weir__job_json(const char *topic,
                                   const struct weir_job_info *job)
{
    struct weir__field group = {0}, worker = {0}, claimed = {0}, left = {0};
    struct weir__field key = {0}, priority = {0}, unique = {0};

    if (job->group.len > 0)
        group = weir__field_text("group", job->group);
    if (job->key.len > 0)
        key = weir__field_text("key", job->key);
    if (job->priority != NULL)
        priority = weir__field_str("priority", job->priority);
    if (job->unique.len > 0)
        unique = weir__field_text("unique", job->unique);
    if (job->worker.len > 0) {
        worker = weir__field_text("worker", job->worker);
        claimed = weir__field_int("claimed_ms", job->claimed_ms);
        if (job->lease_left_ms >= 0)
            left = weir__field_int("lease_left_ms", job->lease_left_ms);
    }
    return WEIR__OBJECT(
        weir__field_str("topic", topic), weir__field_text("id", job->id),
        weir__field_str("state", weir_job_state_name(job->state)),
        weir__field_number("attempt", job->counters.attempt),
        weir__field_number("failures", job->counters.failures),
        weir__field_number("timeouts", job->counters.timeouts),
        weir__field_number("crashes", job->counters.crashes),
        weir__field_number("snoozes", job->counters.snoozes),
        weir__field_int("due_ms", job->due_ms),
        weir__field_int("added_ms", job->added_ms > 0 ? job->added_ms : -1),
        weir__field_int("ttl_ms", job->ttl_ms > 0 ? job->ttl_ms : -1),
        weir__field_text("url", job->url), key, priority, unique,
        weir__field_text("retry", job->retry),
        weir__field_text("reason", job->reason),
        weir__field_text("error", job->error), headers_field(job),
        body_field(job->body), group, worker, claimed, left,
        attempts_field(job));
}

enum weir__exit weir__print_object(struct json_object *object)
{
    bool is_good = object != NULL && weir__print_json("", object);

    if (is_good)
        (void)printf("\n");
    else
        weir__complain("out of memory");
    (void)json_object_put(object);
    return is_good ? WEIR__EXIT_DONE : WEIR__EXIT_FAILED;
}

enum weir__exit weir__print_count(const struct weir__cli *cli,
                                  const char *topic, const char *word,
                                  uint64_t count)
{
    if (cli->json)
        return weir__print_object(WEIR__OBJECT(
            weir__field_str("topic", topic), weir__field_number(word, count)));
    weir__print("%s %" PRIu64 "\n", word, count);
    return WEIR__EXIT_DONE;
}

/* --- text ------------------------------------------------------------- */

static void print_slice(const char *name, struct weir_slice text)
{
    if (text.len == 0)
        return;
    weir__print("%-10s", name);
    weir__print_text(text);
    (void)printf("\n");
}

static void print_headers(const struct weir_job_info *job)
{
    struct weir_header headers[WEIR_MAX_HEADERS];
    size_t count = weir_job_info_headers(job, headers, WEIR_MAX_HEADERS);

    for (size_t i = 0; i < count; i++) {
        weir__print("%-10s", i == 0 ? count == 1 ? "header" : "headers" : "");
        weir__print_text(headers[i].name);
        (void)printf(": ");
        weir__print_text(headers[i].value);
        (void)printf("\n");
    }
}

static void print_attempts(const struct weir_job_info *job)
{
    struct weir_attempt attempts[WEIR_MAX_ATTEMPTS];
    size_t count = weir_job_info_attempts(job, attempts, WEIR_MAX_ATTEMPTS);

    for (size_t i = 0; i < count; i++) {
        const char *outcome = weir_attempt_outcome_name(attempts[i].outcome);
        char ended[32];

        weir__time_print(attempts[i].ended_ms, ended);
        weir__print("%-10s%s  %s", i == 0 ? "attempts" : "", ended, outcome);
        if (attempts[i].worker.len > 0 || attempts[i].error.len > 0)
            weir__print("%*s", (int)(7 - strlen(outcome)), "");
        if (attempts[i].worker.len > 0)
            (void)printf("  ");
        weir__print_text(attempts[i].worker);
        if (attempts[i].error.len > 0)
            (void)printf("  ");
        weir__print_text(attempts[i].error);
        (void)printf("\n");
    }
}

static void print_time(const char *name, int64_t ms)
{
    char text[32];

    weir__time_print(ms, text);
    weir__print("%-10s%s\n", name, text);
}

static void print_span(const char *name, int64_t ms, const char *more)
{
    char text[64];

    weir__span_print(ms, SIZE_MAX, text);
    weir__print("%-10s%s%s\n", name, text, more);
}

static void print_worker(const struct weir_job_info *job)
{
    if (job->worker.len == 0)
        return;
    print_slice("worker", job->worker);
    print_time("since", job->claimed_ms);
    if (job->lease_left_ms > 0)
        print_span("lease", job->lease_left_ms, " left");
    else
        weir__print("%-10sended; runs again when a worker serves the topic\n",
                    "lease");
}

static void print_body(struct weir_slice body)
{
    struct json_object *json = NULL;

    if (body.len > 0 && weir__json_from_msgpack(body, &json) < 0) {
        weir__print("%-10s(%zu bytes that cannot be shown)\n", "body",
                    body.len);
        return;
    }
    if (!weir__print_json("body      ", json))
        (void)printf("body      ?");
    (void)printf("\n");
    (void)json_object_put(json);
}

void weir__job_print_added(const struct weir_job_info *job)
{
    char added[32];

    if (job->added_ms <= 0)
        return;
    weir__time_print(job->added_ms, added);
    weir__print("  added %s", added);
}

void weir__job_print(const char *topic, const struct weir_job_info *job)
{
    weir__print("%-10s%s\n", "topic", topic);
    print_slice("id", job->id);
    weir__print("%-10s%s\n", "state", weir_job_state_name(job->state));
    if (job->added_ms > 0)
        print_time("added", job->added_ms);
    if (job->due_ms >= 0)
        print_time(job->state == WEIR_JOB_DEAD ? "died" : "due", job->due_ms);
    print_worker(job);
    weir__print("%-10s%u (failures %u, timeouts %u, crashes %u, snoozes %u)\n",
                "attempt", job->counters.attempt, job->counters.failures,
                job->counters.timeouts, job->counters.crashes,
                job->counters.snoozes);
    print_slice("reason", job->reason);
    print_slice("error", job->error);
    print_attempts(job);
    print_slice("retry", job->retry);
    print_slice("url", job->url);
    print_slice("key", job->key);
    print_slice("priority", weir__slice_str(job->priority));
    print_slice("unique", job->unique);
    print_headers(job);
    if (job->ttl_ms > 0)
        print_span("ttl", job->ttl_ms, "");
    print_body(job->body);
}
