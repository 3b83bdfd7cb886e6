/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/msgpack/attempts.h"
#include "adapters/msgpack/headers.h"
#include "adapters/msgpack/scan.h"
#include "adapters/weir/facade.h"
#include "core/assert.h"
#include "core/ladder.h"
#include "core/mem.h"
#include "core/options.h"
#include "core/text.h"

/* Adding a job: what a host gives is checked here, the rest is the store's. */

#define DELAY_MAX_MS (INT64_C(3650) * 24 * 3600 * 1000)

/* In November 2286: what is left until then still fits into 64 bits of ns. */
#define AT_MAX_MS INT64_C(9999999999999)

enum { URL_MAX = 2048 };

static int check_body(struct weir_slice body, struct weir_error *err)
{
    if (body.len > WEIR_BODY_LIMIT)
        return weir__error_set(err, WEIR_ETOOBIG,
                               "body of %zu bytes is larger than max_body "
                               "can be (%d bytes)",
                               body.len, WEIR_BODY_LIMIT);
    if (body.len > 0 && weir__msgpack_check(body) < 0)
        return weir__error_set(err, WEIR_EMALFORMED,
                               "the body is not one msgpack value of at most "
                               "%d levels",
                               WEIR__DEPTH_MAX);
    return WEIR_OK;
}

int weir__facade_check_due(int64_t delay_ms, int64_t at_ms,
                           struct weir_error *err)
{
    if (delay_ms < 0 || delay_ms > DELAY_MAX_MS)
        return weir__error_set(err, WEIR_EINVAL,
                               "delay of %lld ms: wanted 0 to 3,650 days",
                               (long long)delay_ms);
    if (at_ms < 0 || (at_ms != 0 && delay_ms != 0))
        return weir__error_set(err, WEIR_EINVAL,
                               "give a delay or a time after 1970, not both");
    if (at_ms > AT_MAX_MS)
        return weir__error_set(err, WEIR_EINVAL,
                               "time of %lld ms: wanted at most %lld, which is "
                               "in 2286",
                               (long long)at_ms, (long long)AT_MAX_MS);
    return WEIR_OK;
}

static int check_times(const struct weir_new_job *job, struct weir_error *err)
{
    int rc = weir__facade_check_due(job->delay_ms, job->at_ms, err);

    if (rc < 0)
        return rc;
    if (job->ttl_ms < 0 || job->ttl_ms > DELAY_MAX_MS)
        return weir__error_set(err, WEIR_EINVAL,
                               "ttl of %lld ms: wanted 0 to 3,650 days",
                               (long long)job->ttl_ms);
    return WEIR_OK;
}

static int read_durability(const struct weir_new_job *job, int64_t *ret_value,
                           struct weir_error *err)
{
    return weir__option_read(&weir__topic_options[WEIR__TOPIC_durability],
                             job->durability, ret_value, err);
}

static int read_rule(const struct weir_new_job *job,
                     struct weir__key_rule *ret_rule, struct weir_error *err)
{
    const struct weir__key_texts texts = {
        .hold = job->unique_for,
        .otherwise = job->unique_else,
        .max_wait = job->max_wait,
        .names = {"unique_for", "unique_else", "max_wait"},
    };

    return weir__key_rule_read(&texts, ret_rule, err);
}

static int check_key(const struct weir_new_job *job, struct weir_error *err)
{
    struct weir__key_rule rule;
    int rc;

    if (job->unique == NULL)
        return job->unique_for == NULL && job->unique_else == NULL &&
                       job->max_wait == NULL
                   ? WEIR_OK
                   : weir__error_set(err, WEIR_EINVAL,
                                     "unique_for, unique_else and max_wait say "
                                     "something of a key: give unique, too");
    rc = weir__key_check("unique", weir__slice_str(job->unique), err);
    return rc == WEIR_OK ? read_rule(job, &rule, err) : rc;
}

static int check_lane(const struct weir_new_job *job, struct weir_error *err)
{
    uint32_t priority;
    int rc = job->key == NULL
                 ? WEIR_OK
                 : weir__key_check("key", weir__slice_str(job->key), err);

    return rc == WEIR_OK
               ? weir__priority_read("priority", job->priority, &priority, err)
               : rc;
}

int weir__facade_check_job(const struct weir_new_job *job,
                           struct weir_error *err)
{
    struct weir__ladder ladder;
    int64_t durability;
    int rc = check_body(job->body, err);

    if (rc == WEIR_OK)
        rc = check_times(job, err);
    if (rc == WEIR_OK && job->id != NULL)
        rc = weir__id_check(weir__slice_str(job->id), err);
    if (rc == WEIR_OK && job->retry != NULL)
        rc = weir__ladder_parse(weir__slice_str(job->retry), &ladder, err);
    if (rc == WEIR_OK && job->durability != NULL)
        rc = read_durability(job, &durability, err);
    if (rc == WEIR_OK && job->url != NULL && strlen(job->url) > URL_MAX)
        rc = weir__error_set(err, WEIR_ETOOBIG,
                             "url of %zu bytes is larger than %d bytes",
                             strlen(job->url), URL_MAX);
    if (rc == WEIR_OK)
        rc = check_key(job, err);
    if (rc == WEIR_OK && (job->key != NULL || job->priority != NULL))
        rc = check_lane(job, err);
    if (rc == WEIR_OK && job->header_count > 0)
        rc = weir__headers_check(job->headers, job->header_count, err);
    return rc;
}

const char *weir__facade_kind_of(const struct weir_reactor *reactor,
                                 const struct weir__store_topic *handle)
{
    return reactor->store->ops->kind_name(handle);
}

static int check_event(const char *topic, const struct weir_new_job *job,
                       struct weir_error *err)
{
    if (job->group == NULL)
        return weir__error_set(err, WEIR_EINVAL,
                               "topic %s is of kind bounded: name the group "
                               "of the event",
                               topic);
    if (job->delay_ms != 0 || job->at_ms != 0)
        return weir__error_set(err, WEIR_EINVAL,
                               "topic %s is of kind bounded: its events have "
                               "no delay",
                               topic);
    return weir__group_check(weir__slice_str(job->group), err);
}

int weir__facade_check_fit(const char *topic, const char *kind,
                           const struct weir_new_job *job,
                           struct weir_error *err)
{
    bool has_time = job->delay_ms != 0 || job->at_ms != 0;

    if (strcmp(kind, "delay") == 0 && job->group == NULL)
        return WEIR_OK; /* it takes whatever a job may have */
    if (job->durability != NULL &&
        weir__topic_option_fits(WEIR__TOPIC_durability, kind, NULL) < 0)
        return weir__error_set(err, WEIR_EINVAL,
                               "topic %s is of kind %s: its jobs have no "
                               "durability, leave it out",
                               topic, kind);
    if (job->unique != NULL)
        return weir__error_set(err, WEIR_EINVAL,
                               "topic %s is of kind %s: its jobs have no "
                               "unique keys, leave unique out",
                               topic, kind);
    if (job->key != NULL || job->priority != NULL)
        return weir__error_set(err, WEIR_EINVAL,
                               "topic %s is of kind %s: its jobs have no key "
                               "and no priority, leave %s out",
                               topic, kind,
                               job->key != NULL ? "key" : "priority");
    if ((has_time || job->id != NULL || job->retry != NULL ||
         job->ttl_ms != 0 || job->url != NULL || job->header_count > 0) &&
        weir__topic_option_fits(WEIR__TOPIC_on_retry, kind, NULL) == WEIR_OK)
        return weir__error_set(err, WEIR_EINVAL,
                               "topic %s is of kind %s: its entries are plain, "
                               "give a body and nothing else",
                               topic, kind);
    if (has_time &&
        weir__topic_option_fits(WEIR__TOPIC_delay, kind, NULL) == WEIR_OK)
        return weir__error_set(err, WEIR_EINVAL,
                               "topic %s is of kind %s: all its jobs have the "
                               "topic's delay, a job has none of its own",
                               topic, kind);
    if (strcmp(kind, "bounded") == 0)
        return check_event(topic, job, err);
    if (job->group != NULL)
        return weir__error_set(err, WEIR_EINVAL,
                               "topic %s is of kind %s: only events of a "
                               "bounded topic are in groups",
                               topic, kind);
    if (job->retry != NULL &&
        weir__topic_option_fits(WEIR__TOPIC_retry, kind, NULL) < 0)
        return weir__error_set(err, WEIR_EINVAL,
                               "topic %s is of kind %s: its jobs have no "
                               "ladder, leave retry out",
                               topic, kind);
    return WEIR_OK;
}

static int put_with_headers(const struct weir_reactor *reactor,
                            struct weir__store_topic *handle,
                            const struct weir__new_job *new_job,
                            const struct weir_new_job *job, weir_added_fn fn,
                            void *arg)
{
    struct weir__new_job own = *new_job;
    struct weir__record record = *own.record;
    struct weir__buf headers = {0};
    int rc = WEIR_ENOMEM;

    weir__headers_write(&headers, job->headers, job->header_count);
    record.headers = weir__buf_slice(&headers);
    own.record = &record;
    if (!headers.failed)
        rc = reactor->store->ops->add(handle, &own, fn, arg);
    weir__buf_fini(&headers);
    return rc;
}

/* `attempts` keeps what is borrowed; false when out of memory. */
static bool put_past(struct weir__new_job *job, struct weir__record *record,
                     const struct weir_old_job *old, struct weir__buf *attempts)
{
    job->died_ms = old->died_ms;
    record->counters = old->counters;
    record->reason = old->reason;
    record->error = old->error;
    record->added_ms = old->added_ms;
    if (old->attempt_count > 0)
        weir__attempts_write(attempts, old->attempts, old->attempt_count);
    record->attempts = weir__buf_slice(attempts);
    return !attempts->failed;
}

int weir__facade_put(const struct weir_reactor *reactor,
                     struct weir__store_topic *handle,
                     const struct weir_new_job *job,
                     const struct weir_old_job *old, weir_added_fn fn,
                     void *arg)
{
    struct weir__record record = {
        .retry = weir__slice_str(job->retry),
        .url = weir__slice_str(job->url),
        .ttl_ms = job->ttl_ms,
        .body = job->body,
        .key = weir__slice_str(job->key),
        .unique = weir__slice_str(job->unique),
    };
    struct weir__new_job new_job = {
        .id = weir__slice_str(job->id),
        .group = weir__slice_str(job->group),
        .record = &record,
        .delay_ms = job->delay_ms,
        .at_ms = job->at_ms,
        .is_restored = old != NULL,
    };
    struct weir__buf attempts = {0};
    int64_t durability;
    int rc = WEIR_OK;

    if (job->durability != NULL &&
        read_durability(job, &durability, NULL) == WEIR_OK) /* was checked */
        new_job.durability = (uint32_t)durability;
    if (job->unique != NULL)
        (void)read_rule(job, &new_job.rule, NULL); /* was checked */
    if (job->priority != NULL)
        (void)weir__priority_read("", job->priority, &record.priority,
                                  NULL); /* the same */
    if (old != NULL && !put_past(&new_job, &record, old, &attempts))
        rc = WEIR_ENOMEM;
    else if (job->header_count > 0)
        rc = put_with_headers(reactor, handle, &new_job, job, fn, arg);
    else
        rc = reactor->store->ops->add(handle, &new_job, fn, arg);
    if (old != NULL)
        weir__buf_fini(&attempts);
    return rc;
}

int weir_reactor_add(struct weir_reactor *reactor, const char *topic,
                     const struct weir_new_job *job, weir_added_fn fn,
                     void *arg, struct weir_error *err)
{
    struct weir__store_topic *handle;
    int rc = weir__facade_check_job(job, err);

    if (rc == WEIR_OK)
        rc = weir__facade_open(reactor, topic, NULL, &handle, err);
    if (rc == WEIR_OK)
        rc = weir__facade_check_fit(
            topic, weir__facade_kind_of(reactor, handle), job, err);
    if (rc < 0)
        return rc;
    return weir__error_code(
        err, weir__tally_put(reactor, handle, job, NULL, fn, arg));
}
