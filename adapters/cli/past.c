/* SPDX-License-Identifier: MIT */
#include "adapters/cli/past.h"

#include "adapters/cli/output.h"
#include "adapters/cli/time.h"
#include "adapters/json/json.h"
#include "adapters/msgpack/scan.h"
#include "core/assert.h"
#include "core/error.h"
#include "core/text.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

/* --- the past ------------------------------------------------------------- */

enum form { COUNT, TEXT, TIME };

/* A member of an old job by its name. */
static const struct member {
    const char *name;
    enum form form;
    size_t at;
} members[] = {
    {"attempt", COUNT, offsetof(struct weir_old_job, counters.attempt)},
    {"failures", COUNT, offsetof(struct weir_old_job, counters.failures)},
    {"timeouts", COUNT, offsetof(struct weir_old_job, counters.timeouts)},
    {"crashes", COUNT, offsetof(struct weir_old_job, counters.crashes)},
    {"snoozes", COUNT, offsetof(struct weir_old_job, counters.snoozes)},
    {"reason", TEXT, offsetof(struct weir_old_job, reason)},
    {"error", TEXT, offsetof(struct weir_old_job, error)},
    {"added", TIME, offsetof(struct weir_old_job, added_ms)},
    {"died", TIME, offsetof(struct weir_old_job, died_ms)},
};

enum { MEMBERS = sizeof(members) / sizeof(members[0]) };

static int refuse(const struct member *member, const char *wanted,
                  struct weir_error *err)
{
    return weir__error_set(err, WEIR_EINVAL, "past: %s: it takes %s",
                           member->name, wanted);
}

static int set_time(const struct member *member, struct weir_slice text,
                    int64_t *ret_ms, struct weir_error *err)
{
    struct weir_error why = {0};
    char copy[64];

    if (text.len >= sizeof(copy))
        return refuse(member, "a time", err);
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    if (weir__time_parse(copy, ret_ms, &why) < 0)
        return weir__error_set(err, WEIR_EINVAL, "past: %s: %s", member->name,
                               why.text);
    if (*ret_ms <= 0)
        return refuse(member, "a time after 1970", err);
    return WEIR_OK;
}

static int set_member(const struct member *member, struct weir_value value,
                      struct weir_old_job *old, struct weir_error *err)
{
    void *to = (char *)old + member->at;

    if (member->form == COUNT) {
        bool is_count =
            (value.type == WEIR_TYPE_UINT && value.as.u64 <= UINT32_MAX) ||
            (value.type == WEIR_TYPE_INT && value.as.i64 >= 0 &&
             value.as.i64 <= UINT32_MAX);

        if (!is_count)
            return refuse(member, "a number of 0 to 4294967295", err);
        *(uint32_t *)to = value.type == WEIR_TYPE_UINT ? (uint32_t)value.as.u64
                                                       : (uint32_t)value.as.i64;
        return WEIR_OK;
    }
    if (value.type != WEIR_TYPE_STR)
        return refuse(member, "a text, in double quotes", err);
    if (member->form == TIME)
        return set_time(member, value.as.bytes, to, err);
    *(struct weir_slice *)to = value.as.bytes;
    return WEIR_OK;
}

/* Take one value off. */
static struct weir_value take(struct weir_slice *bytes)
{
    struct weir_value value;
    size_t len = weir__msgpack_head(*bytes, &value);

    WEIR_ASSERT(len > 0 && len <= bytes->len); /* written by us */
    *bytes = weir__slice_of(bytes->ptr + len, bytes->len - len);
    return value;
}

/* --- attempts ------------------------------------------------------------- */

static int refuse_attempt(const char *wanted, struct weir_error *err)
{
    return weir__error_set(err, WEIR_EINVAL, "past: attempts: %s", wanted);
}

static int set_outcome(struct weir_slice text, struct weir_attempt *attempt,
                       struct weir_error *err)
{
    for (int i = WEIR_ATTEMPT_RETRY; i <= WEIR_ATTEMPT_CRASH; i++) {
        const char *name =
            weir_attempt_outcome_name((enum weir_attempt_outcome)i);

        if (weir__slice_equal(text, weir__slice_str(name))) {
            attempt->outcome = (enum weir_attempt_outcome)i;
            return WEIR_OK;
        }
    }
    return refuse_attempt("an outcome is retry, timeout, fail or crash", err);
}

static int set_part(struct weir_slice name, struct weir_slice text,
                    struct weir_attempt *attempt, struct weir_error *err)
{
    static const struct member at = {"attempts: at", TIME, 0};

    if (weir__slice_equal(name, weir__slice_str("at")))
        return set_time(&at, text, &attempt->ended_ms, err);
    if (weir__slice_equal(name, weir__slice_str("outcome")))
        return set_outcome(text, attempt, err);
    if (weir__slice_equal(name, weir__slice_str("error")))
        attempt->error = text;
    else if (weir__slice_equal(name, weir__slice_str("worker")))
        attempt->worker = text;
    else
        return refuse_attempt("one has at, outcome, error and worker", err);
    return WEIR_OK;
}

static int read_attempt(struct weir_slice *bytes, struct weir_attempt *attempt,
                        struct weir_error *err)
{
    struct weir_value head = take(bytes);
    bool has_outcome = false;
    int rc = WEIR_OK;

    *attempt = (struct weir_attempt){0};
    if (head.type != WEIR_TYPE_MAP)
        return refuse_attempt("they are objects", err);
    for (size_t i = 0; i < head.as.count && rc == WEIR_OK; i++) {
        struct weir_value key = take(bytes), value = take(bytes);

        if (value.type != WEIR_TYPE_STR)
            return refuse_attempt("what one has is a text, in double quotes",
                                  err);
        rc = set_part(key.as.bytes, value.as.bytes, attempt, err);
        has_outcome =
            has_outcome ||
            weir__slice_equal(key.as.bytes, weir__slice_str("outcome"));
    }
    if (rc == WEIR_OK && !has_outcome)
        return refuse_attempt("one has an outcome at least", err);
    return rc;
}

/* Their head was taken off. */
static int read_attempts(struct weir_slice *bytes, struct weir_value head,
                         struct weir_attempt attempts[WEIR_MAX_ATTEMPTS],
                         struct weir_old_job *old, struct weir_error *err)
{
    int rc = WEIR_OK;

    if (head.type != WEIR_TYPE_ARRAY || head.as.count > WEIR_MAX_ATTEMPTS)
        return refuse_attempt("they are an array of up to 8", err);
    for (size_t i = 0; i < head.as.count && rc == WEIR_OK; i++)
        rc = read_attempt(bytes, &attempts[i], err);
    old->attempts = attempts;
    old->attempt_count = head.as.count;
    return rc;
}

/* --- all of it ------------------------------------------------------------ */

/* The value of `key`, of which the head was taken off. */
static int read_member(struct weir_slice key, struct weir_value value,
                       struct weir_old_job *old, struct weir_error *err)
{
    char quote[WEIR__TEXT_QUOTE_CAP];

    for (size_t i = 0; i < MEMBERS; i++)
        if (weir__slice_equal(key, weir__slice_str(members[i].name)))
            return set_member(&members[i], value, old, err);
    (void)weir__text_quote(key, quote);
    return weir__error_set(err, WEIR_EINVAL, "past: unknown name \"%s\"",
                           quote);
}

int weir__past_read(struct weir_slice map,
                    struct weir_attempt attempts[WEIR_MAX_ATTEMPTS],
                    struct weir_old_job *old, struct weir_error *err)
{
    struct weir_value head = take(&map);
    int rc = WEIR_OK;

    if (head.type != WEIR_TYPE_MAP)
        return weir__error_set(err, WEIR_EINVAL,
                               "past: it is an object, such as "
                               "{\"attempt\":2}");
    for (size_t i = 0; i < head.as.count && rc == WEIR_OK; i++) {
        struct weir_value key = take(&map), value = take(&map);

        if (weir__slice_equal(key.as.bytes, weir__slice_str("attempts")))
            rc = read_attempts(&map, value, attempts, old, err);
        else
            rc = read_member(key.as.bytes, value, old, err);
    }
    return rc;
}

/* --- base64 --------------------------------------------------------------- */

/* -1: it stands for nothing. */
static int digit_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "abcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c == '\0' ? NULL : strchr(digits, c);

    return at == NULL ? -1 : (int)(at - digits);
}

bool weir__base64_read(const char *text, struct weir__buf *buf)
{
    size_t len = strlen(text);

    if (len % 4 > 0)
        return false;
    for (size_t at = 0; at < len; at += 4) {
        size_t count = text[at + 3] != '=' ? 3 : text[at + 2] != '=' ? 2 : 1;
        uint8_t bytes[3];
        uint32_t bits = 0;

        for (size_t i = 0; i < 4; i++) {
            int digit = i <= count ? digit_of(text[at + i]) : 0;

            if (digit < 0 || (count < 3 && at + 4 < len))
                return false;
            bits = bits << 6 | (uint32_t)digit;
        }
        bytes[0] = (uint8_t)(bits >> 16);
        bytes[1] = (uint8_t)(bits >> 8 & 0xff);
        bytes[2] = (uint8_t)(bits & 0xff);
        weir__buf_append(buf, bytes, count);
    }
    return !buf->failed;
}

/* --- writing -------------------------------------------------------------- */

static struct weir__field time_field(const char *name, int64_t ms)
{
    char text[32];

    if (ms <= 0)
        return (struct weir__field){0};
    weir__time_print(ms, text);
    return weir__field_str(name, text);
}

static struct weir__field count_field(const char *name, uint32_t count)
{
    return count == 0 ? (struct weir__field){0}
                      : weir__field_number(name, count);
}

static struct weir__field text_field(const char *name, struct weir_slice text)
{
    return text.len == 0 ? (struct weir__field){0}
                         : weir__field_text(name, text);
}

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
            WEIR__OBJECT(time_field("at", attempts[i].ended_ms),
                         weir__field_str("outcome", weir_attempt_outcome_name(
                                                        attempts[i].outcome)),
                         text_field("error", attempts[i].error),
                         text_field("worker", attempts[i].worker)));
    return weir__field("attempts", array);
}

static struct weir__field past_field(const struct weir_job_info *job)
{
    bool is_dead = job->state == WEIR_JOB_DEAD;
    struct json_object *past =
        WEIR__OBJECT(time_field("added", job->added_ms),
                     time_field("died", is_dead ? job->due_ms : 0),
                     count_field("attempt", job->counters.attempt),
                     count_field("failures", job->counters.failures),
                     count_field("timeouts", job->counters.timeouts),
                     count_field("crashes", job->counters.crashes),
                     count_field("snoozes", job->counters.snoozes),
                     text_field("reason", job->reason),
                     text_field("error", job->error), attempts_field(job));

    if (past == NULL || json_object_object_length(past) > 0)
        return weir__field("past", past);
    (void)json_object_put(past);
    return (struct weir__field){0};
}

/* Whether the text of it is read as the same bytes. */
static bool is_carried(struct weir_slice body, struct json_object *json)
{
    struct weir__buf escaped = {0}, again = {0};
    struct weir_slice line;
    bool is_same = weir__json_line(json, &escaped, &line) &&
                   weir__json_to_msgpack(line, &again, NULL) == WEIR_OK &&
                   weir__slice_equal(weir__buf_slice(&again), body);

    weir__buf_fini(&escaped);
    weir__buf_fini(&again);
    return is_same;
}

/* Through the one place that writes base64: as a msgpack bin. */
static struct json_object *base64_json(struct weir_slice bytes)
{
    const uint8_t head[] = {0xc6, (uint8_t)(bytes.len >> 24),
                            (uint8_t)(bytes.len >> 16),
                            (uint8_t)(bytes.len >> 8), (uint8_t)bytes.len};
    struct json_object *json = NULL, *text = NULL;
    struct weir__buf buf = {0};

    weir__buf_append(&buf, head, sizeof(head));
    weir__buf_append(&buf, bytes.ptr, bytes.len);
    if (!buf.failed &&
        weir__json_from_msgpack(weir__buf_slice(&buf), &json) == WEIR_OK &&
        json_object_object_get_ex(json, "$bin", &text))
        text = json_object_get(text);
    weir__buf_fini(&buf);
    (void)json_object_put(json);
    return text;
}

static struct weir__field body_field(struct weir_slice body)
{
    struct json_object *json = NULL;

    if (body.len == 0)
        return (struct weir__field){0};
    if (weir__json_from_msgpack(body, &json) == WEIR_OK &&
        is_carried(body, json))
        return json == NULL ? weir__field_null("body")
                            : weir__field("body", json);
    (void)json_object_put(json);
    return weir__field("msgpack", base64_json(body));
}

static struct weir__field ttl_field(int64_t ms)
{
    char text[32];

    if (ms <= 0)
        return (struct weir__field){0};
    (void)snprintf(text, sizeof(text), "%" PRId64 "ms", ms); /* fits */
    return weir__field_str("ttl", text);
}

/* As weir show has them, if it has any. */
static struct weir__field headers_field(const char *topic,
                                        const struct weir_job_info *job)
{
    struct json_object *shown = weir__job_json(topic, job), *headers = NULL;
    struct weir__field field = {0};

    if (shown == NULL)
        return weir__field("headers", NULL);
    if (json_object_object_get_ex(shown, "headers", &headers) &&
        json_object_is_type(headers, json_type_object) &&
        json_object_object_length(headers) > 0)
        field = weir__field("headers", json_object_get(headers));
    (void)json_object_put(shown);
    return field;
}

struct json_object *weir__export_json(const char *topic,
                                      const struct weir_job_info *job)
{
    bool is_waiting =
        job->state == WEIR_JOB_SCHEDULED || job->state == WEIR_JOB_READY;

    return WEIR__OBJECT(
        weir__field_text("id", job->id), text_field("group", job->group),
        time_field("at", is_waiting && job->group.len == 0 ? job->due_ms : 0),
        text_field("retry", job->retry), ttl_field(job->ttl_ms),
        text_field("url", job->url), text_field("key", job->key),
        text_field("priority", weir__slice_str(job->priority)),
        headers_field(topic, job), past_field(job), body_field(job->body));
}
