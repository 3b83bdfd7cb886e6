/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/msgpack/headers.h"
#include "adapters/weir/facade.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/schedule.h"
#include "core/text.h"
#include "core/visible.h"

/* Schedules as a host sees them: <weir/cron.h>. What it gives is checked here,
 * the rest is the store's. */

#define DAY_MS (INT64_C(24) * 3600 * 1000)

/* --- checking ------------------------------------------------------------- */

static int check_name(const char *name, struct weir_error *err)
{
    char quote[WEIR__TEXT_QUOTE_CAP];

    if (name != NULL &&
        weir__topic_check(weir__slice_str(name), NULL) == WEIR_OK)
        return WEIR_OK;
    return weir__error_set(
        err, WEIR_EINVAL,
        "\"%s\" is no name of a schedule: wanted 1 to %d letters, digits and "
        ". _ : -",
        weir__text_quote(weir__slice_str(name), quote), WEIR_MAX_TOPIC);
}

/* What may be said of the times besides the expression itself. */
static int check_times(const struct weir_cron *cron, struct weir_error *err)
{
    if ((cron->at != NULL) == (cron->every_ms != 0))
        return weir__error_set(err, WEIR_EINVAL,
                               "a schedule has a time or an interval: give "
                               "one of at and every");
    if (cron->at == NULL &&
        (cron->every_ms < 1000 || cron->every_ms > 365 * DAY_MS))
        return weir__error_set(err, WEIR_EINVAL, "every is 1s to 365d");
    if (cron->at == NULL && cron->zone != NULL)
        return weir__error_set(err, WEIR_EINVAL,
                               "a zone belongs to at, not to every");
    if (cron->jitter_ms < 0 || cron->jitter_ms > DAY_MS)
        return weir__error_set(err, WEIR_EINVAL, "jitter is 0ms to 1d");
    if ((size_t)cron->missed > WEIR_CRON_ALL)
        return weir__error_set(err, WEIR_EINVAL, "missed is once, skip or all");
    if (cron->missed == WEIR_CRON_ALL && cron->skips_overlap)
        return weir__error_set(err, WEIR_EINVAL,
                               "missed = all makes jobs that overlap: give "
                               "overlap = allow, or missed = once");
    return WEIR_OK;
}

/* What its jobs are. */
static int check_job(const struct weir_cron *cron, struct weir_error *err)
{
    const struct weir_new_job job = {
        .body = cron->body,
        .retry = cron->retry,
        .ttl_ms = cron->ttl_ms,
        .url = cron->url,
        .headers = cron->headers,
        .header_count = cron->header_count,
    };

    if (cron->body.len > WEIR_MAX_SCHEDULE_BODY)
        return weir__error_set(err, WEIR_ETOOBIG,
                               "body of %zu bytes: a schedule's has %d at most",
                               cron->body.len, WEIR_MAX_SCHEDULE_BODY);
    return weir__facade_check_job(&job, err);
}

/* `*ret_zone` is the caller's to free; NULL: UTC. */
static int read_schedule(const struct weir_cron *cron,
                         struct weir__schedule *ret_schedule,
                         struct weir__zone **ret_zone, struct weir_error *err)
{
    struct weir__schedule schedule = {
        .every_ms = cron->every_ms,
        .jitter_ms = cron->jitter_ms,
        .missed = cron->missed,
        .skips_overlap = cron->skips_overlap,
        .zone = weir__slice_str(cron->zone),
        .at = weir__slice_str(cron->at),
    };
    int rc = check_times(cron, err);

    *ret_zone = NULL;
    if (rc == WEIR_OK && cron->at != NULL)
        rc = weir__cron_parse(schedule.at, &schedule.cron, err);
    if (rc == WEIR_OK && cron->zone != NULL)
        rc = weir__zone_load(cron->zone, ret_zone, err);
    *ret_schedule = schedule;
    return rc;
}

static int check(const struct weir_cron *cron,
                 struct weir__schedule *ret_schedule, struct weir_error *err)
{
    struct weir__zone *zone = NULL;
    int rc = check_name(cron->name, err);

    if (rc == WEIR_OK)
        rc = read_schedule(cron, ret_schedule, &zone, err);
    if (rc == WEIR_OK)
        rc = check_job(cron, err);
    weir__zone_free(zone);
    return rc == WEIR_ENOMEM ? weir__error_code(err, rc) : rc;
}

int weir_cron_check(const struct weir_cron *cron, struct weir_error *err)
{
    struct weir__schedule schedule;

    return check(cron, &schedule, err);
}

int weir_cron_next(const struct weir_cron *cron, int64_t from_ms,
                   int64_t after_ms, int64_t *ret_ms, int count)
{
    struct weir__schedule schedule;
    struct weir__zone *zone;
    int rc = read_schedule(cron, &schedule, &zone, NULL), found = 0;

    schedule.from_ms = from_ms;
    while (rc == WEIR_OK && after_ms >= 0 && found < count) {
        after_ms = weir__schedule_next(&schedule, zone, after_ms);
        if (after_ms >= 0)
            ret_ms[found++] = after_ms;
    }
    weir__zone_free(zone);
    return rc < 0 ? rc : found;
}

/* --- changing ------------------------------------------------------------- */

static int put(struct weir__store_topic *handle, const struct weir_cron *cron,
               const struct weir__schedule *schedule, weir_code_fn fn,
               void *arg, const struct weir__store_ops *ops)
{
    struct weir__buf text = {0}, headers = {0};
    struct weir__record record = {
        .retry = weir__slice_str(cron->retry),
        .ttl_ms = cron->ttl_ms,
        .url = weir__slice_str(cron->url),
        .body = cron->body,
    };
    const struct weir__cron_change what = {.name = weir__slice_str(cron->name),
                                           .record = &record};
    int rc = WEIR_ENOMEM;

    weir__schedule_write(&text, schedule);
    if (cron->header_count > 0)
        weir__headers_write(&headers, cron->headers, cron->header_count);
    record.cron = weir__buf_slice(&text);
    record.headers = weir__buf_slice(&headers);
    if (!text.failed && !headers.failed)
        rc = ops->cron == NULL ? WEIR_EKIND : ops->cron(handle, &what, fn, arg);
    weir__buf_fini(&headers);
    weir__buf_fini(&text);
    return rc;
}

int weir_reactor_cron_set(struct weir_reactor *reactor, const char *topic,
                          const struct weir_cron *cron, weir_code_fn fn,
                          void *arg, struct weir_error *err)
{
    struct weir__schedule schedule;
    struct weir__store_topic *handle;
    int rc = check(cron, &schedule, err);

    if (rc == WEIR_OK)
        rc = weir__facade_open(reactor, topic, NULL, &handle, err);
    if (rc == WEIR_OK)
        rc = put(handle, cron, &schedule, fn, arg, reactor->store->ops);
    if (rc == WEIR_EKIND)
        return weir__error_set(err, rc,
                               "topic %s is of kind %s: only topics of kind "
                               "delay have schedules",
                               topic, weir__facade_kind_of(reactor, handle));
    return rc == WEIR_ENOMEM || rc == WEIR_ECANCELED ? weir__error_code(err, rc)
                                                     : rc;
}

int weir_reactor_cron(struct weir_reactor *reactor, const char *topic,
                      const char *name, enum weir_cron_verb verb,
                      weir_code_fn fn, void *arg)
{
    const struct weir__cron_change what = {.name = weir__slice_str(name),
                                           .verb = verb};
    struct weir__store_topic *handle;
    int rc = check_name(name, NULL);

    if (rc == WEIR_OK && (size_t)verb > WEIR_CRON_RESUME)
        rc = WEIR_EINVAL;
    if (rc == WEIR_OK)
        rc = weir__facade_open(reactor, topic, NULL, &handle, NULL);
    if (rc < 0)
        return rc;
    return reactor->store->ops->cron(handle, &what, fn, arg);
}

/* --- listing -------------------------------------------------------------- */

struct listing {
    struct weir_reactor *reactor;
    weir_cron_fn fn;
    void *arg;
};

/* The texts of a schedule as C strings, one behind the other. */
struct texts {
    char *next, *end;
};

static const char *keep(struct texts *texts, struct weir_slice text)
{
    char *kept = texts->next;

    if (text.len == 0)
        return NULL;
    WEIR_ASSERT((size_t)(texts->end - kept) > text.len);
    memcpy(kept, text.ptr, text.len);
    kept[text.len] = '\0';
    texts->next += text.len + 1;
    return kept;
}

static size_t size_of(const struct weir__cron_entry *entry)
{
    return entry->name.len + entry->record.cron.len + entry->record.retry.len +
           entry->record.url.len + 5;
}

/* When it comes next; 0: nobody here can tell, or it does not. */
static int64_t next_of(struct weir__zone_source *zones,
                       const struct weir__schedule *schedule, int64_t now_ms)
{
    const struct weir__zone *zone = NULL;
    int64_t next;

    if (schedule->zone.len > 0 && !zones->find(zones, schedule->zone, &zone))
        return 0;
    next = weir__schedule_next(schedule, zone, now_ms);
    return next < 0 ? 0 : next;
}

static void tell(const struct listing *listing,
                 const struct weir__cron_entry *entry,
                 struct weir__schedule *schedule, char *memory)
{
    const struct weir__record *record = &entry->record;
    struct texts texts = {memory, memory + size_of(entry)};
    struct weir_header headers[WEIR_MAX_HEADERS];
    /* A schedule that was set while the clock was ahead has begun. */
    int64_t from_ms =
        entry->from_ms < entry->now_ms ? entry->from_ms : entry->now_ms;
    struct weir_cron_info info = {
        .is_paused = entry->is_paused,
        .has_tick = entry->has_tick,
        .from_ms = from_ms,
        .now_ms = entry->now_ms,
        .cron = {.every_ms = schedule->every_ms,
                 .missed = schedule->missed,
                 .skips_overlap = schedule->skips_overlap,
                 .jitter_ms = schedule->jitter_ms,
                 .body = record->body,
                 .ttl_ms = record->ttl_ms,
                 .headers = headers},
    };

    info.cron.name = keep(&texts, entry->name);
    info.cron.at = keep(&texts, schedule->at);
    info.cron.zone = keep(&texts, schedule->zone);
    info.cron.retry = keep(&texts, record->retry);
    info.cron.url = keep(&texts, record->url);
    info.cron.header_count = weir__headers_read(record->headers, headers);
    schedule->from_ms = from_ms;
    if (entry->has_tick)
        info.next_ms =
            next_of(&listing->reactor->zones.port, schedule, entry->now_ms);
    listing->fn(WEIR_OK, &info, listing->arg);
}

/* A name that is too long is cut. */
static void tell_unreadable(const struct listing *listing,
                            const struct weir__cron_entry *entry,
                            const char *why)
{
    struct weir_slice left = entry->name;
    char name[2 * WEIR_MAX_TOPIC];
    const struct weir_cron_info info = {
        .cron = {.name = name},
        .why = why,
        .is_paused = entry->is_paused,
        .has_tick = entry->has_tick,
        .from_ms = entry->from_ms,
        .now_ms = entry->now_ms,
    };

    (void)weir__visible_take(&left, name, sizeof(name));
    listing->fn(WEIR_OK, &info, listing->arg);
}

static void on_entry(int code, const struct weir__cron_entry *entry, void *arg)
{
    struct listing *listing = arg;
    const char *why = entry != NULL ? entry->why : NULL;
    struct weir__schedule schedule;
    char *memory;

    if (entry == NULL) {
        listing->fn(code, NULL, listing->arg);
        weir__mem_free(listing);
        return;
    }
    if (why == NULL && weir__schedule_read(entry->record.cron, &schedule) < 0)
        why = "its times cannot be read; a newer weir may have written them";
    if (why != NULL) {
        tell_unreadable(listing, entry, why);
        return;
    }
    memory = weir__mem_new(size_of(entry));
    if (memory != NULL)
        tell(listing, entry, &schedule, memory);
    weir__mem_free(memory);
}

int weir_reactor_cron_list(struct weir_reactor *reactor, const char *topic,
                           weir_cron_fn fn, void *arg)
{
    struct weir__store_topic *handle;
    struct listing *listing;
    int rc = weir__facade_open(reactor, topic, NULL, &handle, NULL);

    if (rc < 0)
        return rc;
    listing = weir__mem_new(sizeof(*listing));
    if (listing == NULL)
        return WEIR_ENOMEM;
    *listing = (struct listing){reactor, fn, arg};
    rc = reactor->store->ops->crons(handle, on_entry, listing);
    if (rc < 0)
        weir__mem_free(listing);
    return rc;
}
