/* SPDX-License-Identifier: MIT */
#include "adapters/cli/new_job.h"

#include "adapters/cli/options.h"
#include "adapters/cli/time.h"
#include "core/error.h"
#include "core/header.h"
#include "core/keys.h"
#include "core/options.h"
#include "core/text.h"
#include "core/utf8.h"

#include <stdio.h>
#include <string.h>

enum { URL_MAX = 2048 };

#define AT_MAX_MS INT64_C(9999999999999)
#define YEARS_MS  (INT64_C(3650) * 24 * 3600 * 1000)

static const char *const names[] = {
    [WEIR__JOB_ID] = "id",         [WEIR__JOB_DELAY] = "delay",
    [WEIR__JOB_AT] = "at",         [WEIR__JOB_RETRY] = "retry",
    [WEIR__JOB_TTL] = "ttl",       [WEIR__JOB_URL] = "url",
    [WEIR__JOB_GROUP] = "group",   [WEIR__JOB_DURABILITY] = "durability",
    [WEIR__JOB_UNIQUE] = "unique", [WEIR__JOB_FOR] = "for",
    [WEIR__JOB_ELSE] = "else",     [WEIR__JOB_MAX_WAIT] = "max_wait",
    [WEIR__JOB_KEY] = "key",       [WEIR__JOB_PRIORITY] = "priority",
};

const char *weir__job_field_name(enum weir__job_field field)
{
    return names[field];
}

/* "--delay" or "delay", as sentences name it. */
struct shown {
    char name[24];
};

static struct shown show(const struct weir__job_texts *texts,
                         enum weir__job_field field)
{
    struct shown shown;

    (void)snprintf(shown.name, sizeof(shown.name), "%s%s", texts->dashes,
                   names[field]); /* fits */
    for (char *at = shown.name; *texts->dashes != '\0' && *at != '\0'; at++)
        if (*at == '_')
            *at = '-';
    return shown;
}

static int read_at(const struct weir__job_texts *texts,
                   struct weir_new_job *job, struct weir_error *err)
{
    const char *text = texts->value[WEIR__JOB_AT];
    struct weir_error why = {0};
    int64_t ms = 0;

    if (text == NULL)
        return WEIR_OK;
    if (texts->value[WEIR__JOB_DELAY] != NULL)
        return weir__error_set(
            err, WEIR_EINVAL, "%s and %s exclude each other; give one",
            show(texts, WEIR__JOB_DELAY).name, show(texts, WEIR__JOB_AT).name);
    if (weir__time_parse(text, &ms, &why) < 0)
        return weir__error_set(err, WEIR_EINVAL, "%s: %s",
                               show(texts, WEIR__JOB_AT).name, why.text);
    if (ms > AT_MAX_MS)
        return weir__error_set(err, WEIR_EINVAL,
                               "%s: %.60s is too late; at most "
                               "2286-11-20T17:46:39Z is kept",
                               show(texts, WEIR__JOB_AT).name, text);
    job->at_ms = ms > 0 ? ms : 1; /* 0 would mean "not given" */
    return WEIR_OK;
}

static int read_url(const struct weir__job_texts *texts,
                    struct weir_new_job *job, struct weir_error *err)
{
    job->url = texts->value[WEIR__JOB_URL];
    if (job->url != NULL && strlen(job->url) > URL_MAX)
        return weir__error_set(err, WEIR_EINVAL,
                               "%s: %zu bytes are more than "
                               "%d",
                               show(texts, WEIR__JOB_URL).name,
                               strlen(job->url), URL_MAX);
    return WEIR_OK;
}

static int read_durability(const struct weir__job_texts *texts,
                           struct weir_new_job *job, struct weir_error *err)
{
    struct weir__option row = weir__topic_options[WEIR__TOPIC_durability];
    struct shown shown;
    int64_t value;

    job->durability = texts->value[WEIR__JOB_DURABILITY];
    if (job->durability == NULL)
        return WEIR_OK;
    shown = show(texts, WEIR__JOB_DURABILITY);
    row.name = shown.name;
    return weir__option_read(&row, job->durability, &value, err);
}

/* Bytes that are no UTF-8 would not come through weir export. */
static int check_key(const char *name, const char *key, struct weir_error *err)
{
    const struct weir_slice bytes = weir__slice_str(key);
    const size_t valid = weir__utf8_valid(bytes);

    if (valid == bytes.len)
        return weir__key_check(name, bytes, err);
    return weir__error_set(err, WEIR_EINVAL, "%s: invalid UTF-8 at byte %zu",
                           name, valid + 1);
}

static int read_unique(const struct weir__job_texts *texts,
                       struct weir_new_job *job, struct weir_error *err)
{
    struct shown own = show(texts, WEIR__JOB_UNIQUE);
    struct shown hold = show(texts, WEIR__JOB_FOR);
    struct shown otherwise = show(texts, WEIR__JOB_ELSE);
    struct shown max_wait = show(texts, WEIR__JOB_MAX_WAIT);
    const struct weir__key_texts said = {
        .hold = texts->value[WEIR__JOB_FOR],
        .otherwise = texts->value[WEIR__JOB_ELSE],
        .max_wait = texts->value[WEIR__JOB_MAX_WAIT],
        .names = {hold.name, otherwise.name, max_wait.name},
    };
    struct weir__key_rule rule;
    int rc;

    job->unique = texts->value[WEIR__JOB_UNIQUE];
    job->unique_for = said.hold;
    job->unique_else = said.otherwise;
    job->max_wait = said.max_wait;
    if (job->unique == NULL) {
        const char *name = said.hold != NULL        ? hold.name
                           : said.otherwise != NULL ? otherwise.name
                                                    : max_wait.name;

        if (said.hold == NULL && said.otherwise == NULL &&
            said.max_wait == NULL)
            return WEIR_OK;
        return weir__error_set(err, WEIR_EINVAL,
                               "%s says something of a key: give %s, too", name,
                               own.name);
    }
    rc = check_key(own.name, job->unique, err);
    return rc == WEIR_OK ? weir__key_rule_read(&said, &rule, err) : rc;
}

static int read_lane(const struct weir__job_texts *texts,
                     struct weir_new_job *job, struct weir_error *err)
{
    uint32_t priority;
    int rc = WEIR_OK;

    job->key = texts->value[WEIR__JOB_KEY];
    job->priority = texts->value[WEIR__JOB_PRIORITY];
    if (job->key != NULL)
        rc = check_key(show(texts, WEIR__JOB_KEY).name, job->key, err);
    return rc < 0 ? rc
                  : weir__priority_read(show(texts, WEIR__JOB_PRIORITY).name,
                                        job->priority, &priority, err);
}

int weir__job_texts_read(const struct weir__job_texts *texts,
                         struct weir_new_job *job, struct weir_error *err)
{
    static const struct weir__bounds delays = {0, YEARS_MS, "0ms to 3650d"};
    static const struct weir__bounds ttls = {1, YEARS_MS, "1ms to 3650d"};
    int rc = read_at(texts, job, err);

    job->id = texts->value[WEIR__JOB_ID];
    job->retry = texts->value[WEIR__JOB_RETRY];
    if (rc == WEIR_OK)
        rc = read_url(texts, job, err);
    job->group = texts->value[WEIR__JOB_GROUP];
    if (rc == WEIR_OK && job->group != NULL)
        rc = weir__group_check(weir__slice_str(job->group), err);
    if (rc == WEIR_OK && job->id != NULL)
        rc = weir__id_check(weir__slice_str(job->id), err);
    if (rc == WEIR_OK)
        rc = weir__value_ladder(show(texts, WEIR__JOB_RETRY).name, job->retry,
                                err);
    if (rc == WEIR_OK)
        rc = read_durability(texts, job, err);
    if (rc == WEIR_OK)
        rc = read_unique(texts, job, err);
    if (rc == WEIR_OK)
        rc = read_lane(texts, job, err);
    if (rc == WEIR_OK)
        rc = weir__value_duration(show(texts, WEIR__JOB_DELAY).name,
                                  texts->value[WEIR__JOB_DELAY], delays,
                                  &job->delay_ms, err);
    if (rc == WEIR_OK)
        rc = weir__value_duration(show(texts, WEIR__JOB_TTL).name,
                                  texts->value[WEIR__JOB_TTL], ttls,
                                  &job->ttl_ms, err);
    return rc;
}

int weir__job_headers_read(const char *const *texts, size_t count,
                           struct weir_header *ret_headers,
                           struct weir_error *err)
{
    struct weir_error why = {0};

    for (size_t i = 0; i < count && i < WEIR_MAX_HEADERS; i++) {
        size_t len = strcspn(texts[i], "=");

        if (texts[i][len] == '\0')
            return weir__error_set(err, WEIR_EINVAL,
                                   "--header: \"%.60s\" has no =; it takes "
                                   "name=value",
                                   texts[i]);
        ret_headers[i] = (struct weir_header){
            weir__slice_of(texts[i], len),
            weir__slice_str(texts[i] + len + 1),
        };
    }
    if (weir__headers_check(ret_headers, count, &why) < 0)
        return weir__error_set(err, WEIR_EINVAL, "--%s", why.text);
    return WEIR_OK;
}

int weir__job_body_check(struct weir_slice body, struct weir_error *err)
{
    if (body.len <= WEIR_BODY_LIMIT)
        return WEIR_OK;
    return weir__error_set(err, WEIR_ETOOBIG,
                           "body of %zu bytes is larger than max_body can be "
                           "(16MiB)",
                           body.len);
}
