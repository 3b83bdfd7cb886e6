/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CRON_H
#define WEIR_CRON_H

/* Recurring jobs: a schedule of a delay topic adds a job at each of its times.
 *
 * There is no leader. A schedule is kept with its topic, and its tick is a job
 * of that, with the id NAME@next: any worker that serves the topic and meets
 * the tick adds the job of this time, with the id NAME@TIME, and puts the tick
 * off to just before the next time, both in one step. docs/recurring.md says
 * more. */

#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What becomes of times that passed without a worker to see them. */
enum weir_cron_missed {
    WEIR_CRON_ONCE, /* one job stands for them: that of the last one */
    WEIR_CRON_SKIP, /* they are left out when they are a minute late, or the
                       next one is due */
    WEIR_CRON_ALL   /* each has its job */
};

#define WEIR_MAX_SCHEDULES     1024        /* of a topic */
#define WEIR_MAX_SCHEDULE_BODY (16 * 1024) /* bytes, with headers */

/* A schedule: when, and what its jobs are. Zeroed but for `name`, and one of
 * `at` and `every_ms`, it is complete. */
struct weir_cron {
    const char *name; /* as of a topic: [A-Za-z0-9._:-]{1,40} */
    const char *at;   /* "0 3 * * 1-5", "@daily": docs/recurring.md */
    int64_t every_ms; /* from when it was set on; 1 s to 365 d */
    const char *zone; /* of `at`: Europe/Berlin; NULL: UTC */
    enum weir_cron_missed missed;
    bool skips_overlap; /* no job while the one before is not over; not with
                           WEIR_CRON_ALL */
    int64_t jitter_ms;  /* each is due up to so much later, up to 1 d; the same
                           time of a schedule always by the same */
    struct weir_slice body; /* msgpack; empty: null */
    const char *retry;      /* as of any job, with what follows */
    int64_t ttl_ms;
    const char *url;
    const struct weir_header *headers;
    size_t header_count;
};

/* Is it one? WEIR_EINVAL with a sentence; also where this machine does not know
 * the zone. BLOCKS on the zone's file. */
WEIR_API WEIR_MUST_CHECK int weir_cron_check(const struct weir_cron *cron,
                                             struct weir_error *err);

/* Its first `count` times after `after_ms`, server time; those of `every_ms`
 * count from `from_ms`. Returns how many there are, or as weir_cron_check.
 * BLOCKS likewise. */
WEIR_API WEIR_MUST_CHECK int weir_cron_next(const struct weir_cron *cron,
                                            int64_t from_ms, int64_t after_ms,
                                            int64_t *ret_ms, int count);

/* Set a schedule of a topic of kind delay. One of that name is replaced, unless
 * it is the same: then nothing changes, so that every worker may set what its
 * configuration says. One that is paused stays so. In `fn`: WEIR_OK: it is new,
 * or another one now; WEIR_EEXISTS: it was the same already; WEIR_EFULL: the
 * topic has WEIR_MAX_SCHEDULES; WEIR_EINVAL: a job that somebody added has the
 * id NAME@next. */
WEIR_API WEIR_MUST_CHECK int weir_reactor_cron_set(struct weir_reactor *reactor,
                                                   const char *topic,
                                                   const struct weir_cron *cron,
                                                   weir_code_fn fn, void *arg,
                                                   struct weir_error *err);

/* Delete it, stop adding its jobs, or go on with the next time. Jobs that are
 * there stay. In `fn`: WEIR_ENOTFOUND; WEIR_EINVAL: it cannot go on, a job that
 * somebody added has the id NAME@next. */
enum weir_cron_verb { WEIR_CRON_DELETE, WEIR_CRON_PAUSE, WEIR_CRON_RESUME };
WEIR_API WEIR_MUST_CHECK int weir_reactor_cron(struct weir_reactor *reactor,
                                               const char *topic,
                                               const char *name,
                                               enum weir_cron_verb verb,
                                               weir_code_fn fn, void *arg);

/* A schedule as it is stored; borrowed until the callback returns. */
struct weir_cron_info {
    struct weir_cron cron;
    const char *why; /* NULL; else why it cannot be read: of `cron` only the
                        name is here, which may be none that can be given */
    bool is_paused;
    bool has_tick;   /* false: it is paused, or a job that a client added has
                        the id NAME@next; no job comes before that ends */
    int64_t from_ms; /* since when its times count */
    int64_t now_ms;  /* server time */
    int64_t next_ms; /* 0: it has no tick, or no time any more, or its zone is
                        not known here */
};

/* Schedules of a topic in byte order, one call of `fn` for each, then one with
 * `cron` NULL and the final code. A tick that was lost is made anew. */
typedef void (*weir_cron_fn)(int code, const struct weir_cron_info *cron,
                             void *arg);
WEIR_API WEIR_MUST_CHECK int
weir_reactor_cron_list(struct weir_reactor *reactor, const char *topic,
                       weir_cron_fn fn, void *arg);

#ifdef __cplusplus
}
#endif

#endif
