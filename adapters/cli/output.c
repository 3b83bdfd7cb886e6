/* SPDX-License-Identifier: MIT */
#include "adapters/cli/output.h"

#include "adapters/cli/time.h"
#include "adapters/json/json.h"
#include "core/buf.h"

#include <inttypes.h>
#include <string.h>

/* --- JSON ------------------------------------------------------------- */

bool weir__json_put(struct json_object *object, const char *name,
                    struct json_object *value)
{
    if (value == NULL)
        return false;
    if (json_object_object_add(object, name, value) == 0)
        return true;
    (void)json_object_put(value);
    return false;
}

bool weir__json_put_null(struct json_object *object, const char *name)
{
    return json_object_object_add(object, name, NULL) == 0;
}

/* Through the one place that makes JSON strings of foreign bytes: as a msgpack
 * str with a 32 bit length. */
struct json_object *weir__text_json(struct weir_slice text)
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

static bool put_text(struct json_object *object, const char *name,
                     struct weir_slice text)
{
    if (text.len == 0)
        return weir__json_put_null(object, name);
    return weir__json_put(object, name, weir__text_json(text));
}

static bool put_number(struct json_object *object, const char *name,
                       uint64_t number)
{
    return weir__json_put(object, name, json_object_new_uint64(number));
}

static bool put_body(struct json_object *object, struct weir_slice body)
{
    struct json_object *json = NULL;

    if (body.len > 0 && weir__json_from_msgpack(body, &json) < 0)
        return false;
    if (json == NULL)
        return weir__json_put_null(object, "body");
    return weir__json_put(object, "body", json);
}

static bool put_times(struct json_object *object,
                      const struct weir_job_info *job)
{
    bool is_good = job->due_ms < 0
                       ? weir__json_put_null(object, "due_ms")
                       : weir__json_put(object, "due_ms",
                                        json_object_new_int64(job->due_ms));

    if (job->ttl_ms == 0)
        return is_good && weir__json_put_null(object, "ttl_ms");
    return is_good &&
           weir__json_put(object, "ttl_ms", json_object_new_int64(job->ttl_ms));
}

struct json_object *weir__job_json(const char *topic,
                                   const struct weir_job_info *job)
{
    struct json_object *object = json_object_new_object();

    if (object == NULL)
        return NULL;
    if (weir__json_put(object, "topic", json_object_new_string(topic)) &&
        put_text(object, "id", job->id) &&
        weir__json_put(
            object, "state",
            json_object_new_string(weir_job_state_name(job->state))) &&
        put_number(object, "attempt", job->counters.attempt) &&
        put_number(object, "failures", job->counters.failures) &&
        put_number(object, "timeouts", job->counters.timeouts) &&
        put_number(object, "crashes", job->counters.crashes) &&
        put_number(object, "snoozes", job->counters.snoozes) &&
        put_times(object, job) && put_text(object, "url", job->url) &&
        put_text(object, "retry", job->retry) &&
        put_text(object, "reason", job->reason) &&
        put_text(object, "error", job->error) && put_body(object, job->body) &&
        (job->group.len == 0 || put_text(object, "group", job->group)))
        return object;
    (void)json_object_put(object);
    return NULL;
}

/* Microseconds as milliseconds with all digits; null when there is no data. */
static bool put_ms(struct json_object *object, const char *name, int64_t us)
{
    char text[32];

    if (us < 0)
        return weir__json_put_null(object, name);
    (void)snprintf(text, sizeof(text), "%" PRId64 ".%03d", us / 1000,
                   (int)(us % 1000));
    return weir__json_put(object, name,
                          json_object_new_double_s((double)us / 1000.0, text));
}

static bool put_lateness(struct json_object *object,
                         const struct weir_stats *stats)
{
    struct json_object *late = json_object_new_object();

    if (late == NULL)
        return false;
    if (put_ms(late, "p50", stats->lateness_p50_us) &&
        put_ms(late, "p99", stats->lateness_p99_us) &&
        put_ms(late, "max", stats->lateness_max_us))
        return weir__json_put(object, "lateness_ms", late);
    (void)json_object_put(late);
    return false;
}

static bool put_counts(struct json_object *object,
                       const struct weir_stats *stats)
{
    return put_number(object, "scheduled", stats->scheduled) &&
           put_number(object, "ready", stats->ready) &&
           weir__json_put(object, "ready_is_exact",
                          json_object_new_boolean(stats->ready_is_exact)) &&
           put_number(object, "running", stats->running) &&
           put_number(object, "dead", stats->dead) &&
           put_number(object, "added_total", stats->added_total) &&
           put_number(object, "done_total", stats->done_total) &&
           put_number(object, "retried_total", stats->retried_total) &&
           put_number(object, "failed_total", stats->failed_total) &&
           put_number(object, "expired_total", stats->expired_total) &&
           put_number(object, "crashed_total", stats->crashed_total) &&
           put_number(object, "dropped_total", stats->dropped_total);
}

/* Of a bounded topic: what it dropped, by reason. */
static bool put_drops(struct json_object *object,
                      const struct weir_stats *stats)
{
    struct json_object *drops = json_object_new_object();

    return weir__json_put(object, "dropped", drops) &&
           weir__json_put(drops, "overflow",
                          json_object_new_uint64(stats->dropped_overflow)) &&
           weir__json_put(drops, "age",
                          json_object_new_uint64(stats->dropped_age)) &&
           weir__json_put(drops, "ttl",
                          json_object_new_uint64(stats->dropped_ttl));
}

struct json_object *weir__stats_json(const struct weir_stats *stats)
{
    struct json_object *object = json_object_new_object();

    if (object == NULL)
        return NULL;
    if (weir__json_put(object, "topic", json_object_new_string(stats->topic)) &&
        weir__json_put(object, "kind", json_object_new_string(stats->kind)) &&
        weir__json_put(object, "paused",
                       json_object_new_boolean(stats->paused)) &&
        put_counts(object, stats) && put_lateness(object, stats) &&
        (strcmp(stats->kind, "bounded") != 0 || put_drops(object, stats)))
        return object;
    (void)json_object_put(object);
    return NULL;
}

bool weir__json_print_line(struct json_object *object)
{
    bool is_good = object != NULL && weir__print_json("", object);

    if (is_good)
        (void)printf("\n");
    else
        weir__complain("out of memory");
    (void)json_object_put(object);
    return is_good;
}

bool weir__print_count(const struct weir__cli *cli, const char *topic,
                       const char *word, uint64_t count)
{
    struct json_object *object;

    if (!cli->json) {
        weir__print("%s %" PRIu64 "\n", word, count);
        return true;
    }
    object = json_object_new_object();
    if (object != NULL &&
        weir__json_put(object, "topic", json_object_new_string(topic)) &&
        put_number(object, word, count))
        return weir__json_print_line(object);
    (void)json_object_put(object);
    return weir__json_print_line(NULL);
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

static void print_due(const struct weir_job_info *job)
{
    char due[32];

    if (job->due_ms < 0)
        return;
    weir__time_print(job->due_ms, due);
    weir__print("%-10s%s\n", job->state == WEIR_JOB_DEAD ? "died" : "due", due);
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

void weir__job_print(const char *topic, const struct weir_job_info *job)
{
    weir__print("%-10s%s\n", "topic", topic);
    print_slice("id", job->id);
    weir__print("%-10s%s\n", "state", weir_job_state_name(job->state));
    print_due(job);
    weir__print("%-10s%u (failures %u, timeouts %u, crashes %u, snoozes %u)\n",
                "attempt", job->counters.attempt, job->counters.failures,
                job->counters.timeouts, job->counters.crashes,
                job->counters.snoozes);
    print_slice("reason", job->reason);
    print_slice("error", job->error);
    print_slice("retry", job->retry);
    print_slice("url", job->url);
    if (job->ttl_ms > 0)
        weir__print("%-10s%" PRId64 "ms\n", "ttl", job->ttl_ms);
    print_body(job->body);
}
