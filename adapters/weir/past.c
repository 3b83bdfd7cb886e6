/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/msgpack/attempts.h"
#include "adapters/weir/facade.h"
#include "core/assert.h"
#include "core/error.h"
#include "core/text.h"

/* --- attempts ------------------------------------------------------------- */

const char *weir_attempt_outcome_name(enum weir_attempt_outcome outcome)
{
    static const char *const names[] = {"retry", "timeout", "fail", "crash"};

    WEIR_ASSERT((size_t)outcome < sizeof(names) / sizeof(names[0]));
    return names[outcome];
}

size_t weir_job_info_attempts(const struct weir_job_info *job,
                              struct weir_attempt *ret_attempts, size_t cap)
{
    struct weir_attempt attempts[WEIR_MAX_ATTEMPTS];
    size_t count = weir__attempts_read(job->attempts, attempts);
    size_t kept = count < cap ? count : cap;

    if (kept > 0)
        memcpy(ret_attempts, attempts + count - kept, kept * sizeof(*attempts));
    return kept;
}

/* --- jobs that come from elsewhere ---------------------------------------- */

enum { TEXT_MAX = 64 * 1024 };

#define AT_MAX_MS INT64_C(9999999999999)

static int check_attempts(const struct weir_old_job *old,
                          struct weir_error *err)
{
    for (size_t i = 0; i < old->attempt_count; i++) {
        const struct weir_attempt *attempt = &old->attempts[i];

        if ((int)attempt->outcome < WEIR_ATTEMPT_RETRY ||
            attempt->outcome > WEIR_ATTEMPT_CRASH)
            return weir__error_set(err, WEIR_EINVAL,
                                   "an attempt has no such outcome");
        if (attempt->ended_ms < 0 || attempt->ended_ms > AT_MAX_MS)
            return weir__error_set(err, WEIR_EINVAL,
                                   "an attempt ended in 1970 to 2286");
    }
    return WEIR_OK;
}

static int check_past(const struct weir_old_job *old, struct weir_error *err)
{
    bool is_dead = old->died_ms != 0;

    if (old->died_ms < 0 || old->died_ms > AT_MAX_MS || old->added_ms < 0 ||
        old->added_ms > AT_MAX_MS)
        return weir__error_set(err, WEIR_EINVAL,
                               "when a job was added or died is in 1970 to "
                               "2286");
    if (old->reason.len > TEXT_MAX || old->error.len > TEXT_MAX)
        return weir__error_set(err, WEIR_ETOOBIG,
                               "reason and error have %d bytes at most",
                               TEXT_MAX);
    if (old->job.unique != NULL)
        return weir__error_set(err, WEIR_EINVAL,
                               "a job with a past takes no key: leave unique "
                               "out");
    if (is_dead && (old->job.delay_ms != 0 || old->job.at_ms != 0))
        return weir__error_set(err, WEIR_EINVAL,
                               "a dead job is not due: leave delay and at out");
    if (is_dead && old->job.id == NULL)
        return weir__error_set(err, WEIR_EINVAL, "a dead job needs its id");
    return check_attempts(old, err);
}

/* But for the id, as of any job. */
static int check_id(const struct weir_old_job *old, struct weir_error *err)
{
    return old->job.id == NULL
               ? WEIR_OK
               : weir__id_check_any(weir__slice_str(old->job.id), err);
}

static int check_kind(const char *topic, const char *kind,
                      const struct weir_old_job *old, struct weir_error *err)
{
    bool is_delay = strcmp(kind, "delay") == 0;

    if (!is_delay && strcmp(kind, "bounded") != 0)
        return weir__error_set(err, WEIR_EINVAL,
                               "topic %s is of kind %s: its jobs have no past",
                               topic, kind);
    if (!is_delay && old->died_ms != 0)
        return weir__error_set(err, WEIR_EINVAL,
                               "topic %s is of kind %s: it keeps no dead jobs",
                               topic, kind);
    return WEIR_OK;
}

int weir_reactor_restore(struct weir_reactor *reactor, const char *topic,
                         const struct weir_old_job *old, weir_added_fn fn,
                         void *arg, struct weir_error *err)
{
    struct weir_new_job job = old->job;
    struct weir__store_topic *handle;
    const char *kind;
    int rc = check_past(old, err);

    job.id = NULL;
    if (rc == WEIR_OK)
        rc = check_id(old, err);
    if (rc == WEIR_OK)
        rc = weir__facade_check_job(&job, err);
    if (rc == WEIR_OK)
        rc = weir__facade_open(reactor, topic, NULL, &handle, err);
    if (rc < 0)
        return rc;
    kind = reactor->store->ops->kind_name(handle);
    rc = check_kind(topic, kind, old, err);
    if (rc == WEIR_OK)
        rc = weir__facade_check_fit(topic, kind, &old->job, err);
    if (rc < 0)
        return rc;
    return weir__error_code(
        err, weir__tally_put(reactor, handle, &old->job, old, fn, arg));
}
