/* SPDX-License-Identifier: MIT */
#ifndef WEIR_SCHEDULE_H
#define WEIR_SCHEDULE_H

/* When a schedule adds jobs, and how that is stored: a text in the record of
 * its tick, which is a job with the id NAME@next,
 *
 *     FROM LAST MADE AFTER BEFORE EVERY JITTER MISSED OVERLAP ZONE AT
 *
 * of which the first five change. They are times in ms since 1970, of 13 digits
 * each, so that a script can set them: since when it counts, up to when its
 * times are over, and the time of the last job it made, or 0. Between AFTER and
 * BEFORE no job was made, since no worker saw these times or the clock was
 * ahead. If the clock stands before BEFORE later, times from then to BEFORE are
 * not over: a clock that was ahead for a moment stops no schedule, and no time
 * comes twice. EVERY and JITTER are ms, MISSED is once, skip or all, OVERLAP
 * allow or skip, ZONE - for UTC; AT is an expression (core/crontab.h), or -
 * where EVERY is not 0. Pure functions. */

#include <weir/cron.h>

#include "core/buf.h"
#include "core/crontab.h"

struct weir__zone;

enum {
    WEIR__STATE_LEN = 70,  /* of the first five, with their blanks */
    WEIR__TICK_TIMES = 60, /* jobs that one tick makes at most */
    /* A tick comes before the time whose job it makes, by at most this and at
     * least half of it: many ticks come together, and the job starts as
     * punctually as others. To a new tick, times of the next WEIR__AHEAD_MS are
     * over: the tick before it may have made their jobs (lib/tick.lua). */
    WEIR__AHEAD_MS = 40
};

struct weir__schedule {
    int64_t from_ms, last_ms, made_ms, after_ms, before_ms;
    int64_t every_ms, jitter_ms;
    enum weir_cron_missed missed;
    bool skips_overlap;
    struct weir_slice zone, at; /* borrowed; empty: none */
    struct weir__cron cron;     /* what `at` says */
};

/* "once", "skip", "all"; and back: -1: none of them. */
const char *weir__missed_name(enum weir_cron_missed missed);
int weir__missed_find(struct weir_slice name);

/* WEIR_EINVAL: it is none. */
int weir__schedule_read(struct weir_slice text,
                        struct weir__schedule *ret_schedule);
void weir__schedule_write(struct weir__buf *buf,
                          const struct weir__schedule *schedule);

/* The first time after `after_ms`; -1: none. */
int64_t weir__schedule_next(const struct weir__schedule *schedule,
                            const struct weir__zone *zone, int64_t after_ms);

/* What a tick does. */
struct weir__tick_plan {
    size_t count; /* of jobs to be made */
    int64_t times[WEIR__TICK_TIMES];
    int64_t last_ms; /* up to this all are over then; may be ahead */
    int64_t after_ms, before_ms; /* but those in between */
    int64_t next_ms;             /* when it comes again; -1: never */
    bool has_missed;             /* times for which no job is made */
};
void weir__schedule_plan(const struct weir__schedule *schedule,
                         const struct weir__zone *zone, int64_t now_ms,
                         struct weir__tick_plan *ret_plan);

/* When the job of one of its times is due: up to the jitter later. */
int64_t weir__schedule_due_ms(const struct weir__schedule *schedule,
                              struct weir_slice name, int64_t ms);

/* Its job's id: NAME@2026-11-26T03:00:00Z, with .250 where there are ms. */
enum { WEIR__OCCURRENCE_CAP = WEIR_MAX_TOPIC + 32 };
struct weir_slice weir__occurrence_id(struct weir_slice name, int64_t ms,
                                      char buf[WEIR__OCCURRENCE_CAP]);

#define WEIR__TICK_SUFFIX "@next"

/* The schedule's name in the id of a tick; empty: the id is none. */
struct weir_slice weir__tick_name(struct weir_slice id);

#endif
