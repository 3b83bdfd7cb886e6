/* SPDX-License-Identifier: MIT */
#include "adapters/weir/facade.h"

#include <string.h>

#include "adapters/msgpack/scan.h"
#include "core/ladder.h"
#include "core/options.h"
#include "core/text.h"

/* Jobs of a host program: what it gives is checked here, then the store's. */

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

int weir__facade_check_job(const struct weir_new_job *job,
                           struct weir_error *err)
{
    struct weir__ladder ladder;
    int rc = check_body(job->body, err);

    if (rc == WEIR_OK)
        rc = check_times(job, err);
    if (rc == WEIR_OK && job->id != NULL)
        rc = weir__id_check(weir__slice_str(job->id), err);
    if (rc == WEIR_OK && job->retry != NULL)
        rc = weir__ladder_parse(weir__slice_str(job->retry), &ladder, err);
    if (rc == WEIR_OK && job->url != NULL && strlen(job->url) > URL_MAX)
        rc = weir__error_set(err, WEIR_ETOOBIG,
                             "url of %zu bytes is larger than %d bytes",
                             strlen(job->url), URL_MAX);
    return rc;
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

static int check_fit(const char *topic, const char *kind,
                     const struct weir_new_job *job, struct weir_error *err)
{
    bool has_time = job->delay_ms != 0 || job->at_ms != 0;

    if (strcmp(kind, "delay") == 0 && job->group == NULL)
        return WEIR_OK; /* it takes whatever a job may have */
    if ((has_time || job->id != NULL || job->retry != NULL ||
         job->ttl_ms != 0 || job->url != NULL) &&
        weir__topic_option_fits(WEIR__TOPIC_key, kind, NULL) == WEIR_OK)
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

int weir__facade_check_fit(const struct weir__place *place, const char *topic,
                           const struct weir_new_job *job,
                           struct weir_error *err)
{
    return check_fit(topic, place->store->ops->kind_name(place->topic), job,
                     err);
}

int weir__facade_put(const struct weir__place *place,
                     const struct weir_new_job *job, weir_added_fn fn,
                     void *arg)
{
    struct weir__record record = {
        .retry = weir__slice_str(job->retry),
        .url = weir__slice_str(job->url),
        .ttl_ms = job->ttl_ms,
        .body = job->body,
    };
    struct weir__new_job new_job = {
        .id = weir__slice_str(job->id),
        .group = weir__slice_str(job->group),
        .record = &record,
        .delay_ms = job->delay_ms,
        .at_ms = job->at_ms,
    };

    return place->store->ops->add(place->topic, &new_job, fn, arg);
}

int weir_reactor_add(struct weir_reactor *reactor, const char *topic,
                     const struct weir_new_job *job, weir_added_fn fn,
                     void *arg, struct weir_error *err)
{
    struct weir__place place;
    int rc = weir__facade_check_job(job, err);

    if (rc == WEIR_OK)
        rc = weir__facade_open(reactor, topic, NULL, &place, err);
    if (rc == WEIR_OK)
        rc = weir__facade_check_fit(&place, topic, job, err);
    if (rc < 0)
        return rc;
    rc = weir__facade_put(&place, job, fn, arg);
    if (rc < 0)
        return weir__error_set(err, rc, "%s", weir_error_text(rc));
    return WEIR_OK;
}

static int topic_and_id(struct weir_reactor *reactor, const char *topic,
                        const char *id, struct weir__place *ret_place)
{
    int rc = weir__id_check_any(weir__slice_str(id), NULL);

    if (rc < 0)
        return rc;
    return weir__facade_open(reactor, topic, NULL, ret_place, NULL);
}

int weir_reactor_show(struct weir_reactor *reactor, const char *topic,
                      const char *id, weir_show_fn fn, void *arg)
{
    struct weir__place place;
    int rc = topic_and_id(reactor, topic, id, &place);

    if (rc < 0)
        return rc;
    return place.store->ops->show(place.topic, weir__slice_str(id), fn, arg);
}

/* A store takes the callback that is given for what is asked. */
static void nobody_asked(int code, enum weir_job_state was, void *arg)
{
    (void)code;
    (void)was;
    (void)arg;
}

int weir_reactor_delete(struct weir_reactor *reactor, const char *topic,
                        const char *id, weir_delete_fn fn, void *arg)
{
    struct weir__place place;
    int rc = topic_and_id(reactor, topic, id, &place);

    if (rc < 0)
        return rc;
    return place.store->ops->remove(place.topic, weir__slice_str(id),
                                    fn == NULL ? nobody_asked : fn, arg);
}

int weir_reactor_dead(struct weir_reactor *reactor, const char *topic,
                      size_t limit, weir_show_fn fn, void *arg)
{
    struct weir__place place;
    int rc = weir__facade_open(reactor, topic, NULL, &place, NULL);

    if (rc < 0)
        return rc;
    return place.store->ops->dead(place.topic, limit, fn, arg);
}

int weir_reactor_stats(struct weir_reactor *reactor, const char *topic,
                       weir_stats_fn fn, void *arg)
{
    struct weir__place place;
    int rc = weir__facade_open(reactor, topic, NULL, &place, NULL);

    if (rc < 0)
        return rc;
    return place.store->ops->stats(place.topic, fn, arg);
}

int weir_reactor_topics(struct weir_reactor *reactor, weir_topics_fn fn,
                        void *arg)
{
    if (reactor->is_freed)
        return WEIR_ECANCELED;
    return reactor->store->ops->topics(reactor->store, fn, arg);
}
