/* SPDX-License-Identifier: MIT */
#include "core/outcome_log.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/assert.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"
#include "core/verdict.h"

enum { LINES_MAX = 10 }; /* of a kind, between two numbers */

#define WINDOW_NS (1000 * WEIR__MS_NS)

enum kind { RETRY, TIMEOUT, EXPIRY, DEATH, CRASH, DROP, EVICTION, KINDS };

static const struct {
    const char *plural;
    enum weir_level level;
} kinds[] = {
    [RETRY] = {"retries", WEIR_LEVEL_INFO},
    [TIMEOUT] = {"timeouts", WEIR_LEVEL_INFO},
    [EXPIRY] = {"expired jobs", WEIR_LEVEL_INFO},
    [DEATH] = {"deaths", WEIR_LEVEL_WARN},
    [CRASH] = {"crashes", WEIR_LEVEL_WARN},
    [DROP] = {"dropped events", WEIR_LEVEL_INFO},
    [EVICTION] = {"evicted dead jobs", WEIR_LEVEL_WARN},
};

struct weir__outcome_log {
    struct weir__lane_deadline rest_at; /* in the heap while counts are kept */
    unsigned lines[KINDS];
    uint64_t rest[KINDS]; /* jobs that no line told of */
};

/* NULL: nobody reads such lines. */
static const struct weir__log *log_of(const struct weir__lane *lane,
                                      enum kind kind)
{
    const struct weir__log *log = lane->reactor->options.outcome_log;

    return weir__log_wants(log, kinds[kind].level) ? log : NULL;
}

/* May one more line of the kind be logged, about `count` jobs? Without memory:
 * yes. */
static bool counts_in(struct weir__lane *lane, enum kind kind, uint64_t count)
{
    struct weir__outcome_log *outcomes = lane->outcomes;

    if (outcomes == NULL) {
        outcomes = weir__mem_new(sizeof(*outcomes));
        if (outcomes == NULL)
            return true;
        outcomes->rest_at.lane = lane;
        lane->outcomes = outcomes;
    }
    if (!weir__heap_has(&outcomes->rest_at.node))
        weir__lane_arm(&outcomes->rest_at, lane->reactor->now_ns + WINDOW_NS);
    if (outcomes->lines[kind] == LINES_MAX) {
        outcomes->rest[kind] += count;
        return false;
    }
    outcomes->lines[kind]++;
    return true;
}

void weir__lane_log_rest(struct weir__lane *lane)
{
    struct weir__outcome_log *outcomes = lane->outcomes;

    for (int kind = 0; outcomes != NULL && kind < KINDS; kind++) {
        if (outcomes->rest[kind] > 0)
            weir__log(log_of(lane, (enum kind)kind), kinds[kind].level,
                      "%s: %llu more %s within a second", lane->name,
                      (unsigned long long)outcomes->rest[kind],
                      kinds[kind].plural);
        outcomes->lines[kind] = 0;
        outcomes->rest[kind] = 0;
    }
}

/* --- lines ---------------------------------------------------------------- */

struct line {
    char text[2 * WEIR_MAX_TOPIC + 128];
};

WEIR_PRINTF(2, 3)
static void write_line(struct line *line, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line->text, sizeof(line->text), format, args); /* fits */
    va_end(args);
}

static bool has_option(const struct weir__lane *lane,
                       enum weir__topic_option option)
{
    const struct weir__store_ops *ops = lane->store->ops;

    return ops->kind_name == NULL ||
           weir__topic_option_fits(option, ops->kind_name(lane->topic), NULL) ==
               WEIR_OK;
}

/* "retry 2 of 9 in 3m". Kinds without ladders retry for ever, in their own
 * time. */
static void write_retry(const struct weir__lane *lane,
                        const struct weir__run *run, struct line *line)
{
    const struct weir__options *options = lane->options;
    struct weir__ladder own;
    const struct weir__ladder *ladder =
        weir__run_ladder(run, &options->retry, &own);
    char total[24] = "", delay[24];

    if (!has_option(lane, WEIR__TOPIC_retry)) {
        write_line(line, "retry %u", weir__run_retries(run));
        return;
    }
    if (!ladder->repeats)
        (void)snprintf(total, sizeof(total), " of %u",
                       ladder->count); /* fits */
    (void)weir__duration_format(run->delay_ms, delay);
    write_line(line, "retry %u%s in %s%s%s", weir__run_retries(run), total,
               delay, options->on_retry[0] == '\0' ? "" : " in topic ",
               options->on_retry);
}

/* What a run that ends its job has as record.reason. */
static void write_end(const struct weir__lane *lane,
                      const struct weir__run *run, struct line *line)
{
    const char *on_dead = lane->options->on_dead;
    char where[WEIR_MAX_TOPIC + 16] = "dead";

    if (run->is_expired) {
        write_line(line, "expired, %lld ms late",
                   (long long)(run->start_late_us / 1000));
        return;
    }
    if (!has_option(lane, WEIR__TOPIC_max_dead))
        (void)snprintf(where, sizeof(where), "dropped"); /* fits */
    else if (on_dead[0] != '\0')
        (void)snprintf(where, sizeof(where), "dead, goes to %s",
                       on_dead); /* fits */
    if (run->is_crashed)
        write_line(line, "%s: %u workers ended while it ran", where,
                   run->blamed);
    else if (run->is_malformed)
        write_line(line, "%s: its record cannot be read", where);
    else
        write_line(
            line, "%s: %.*s at attempt %u", where, (int)run->record.reason.len,
            (const char *)run->record.reason.ptr, run->record.counters.attempt);
}

static enum kind kind_of(const struct weir__run *run)
{
    if (run->outcome == WEIR__OUTCOME_RETRY)
        return run->is_timed_out ? TIMEOUT : RETRY;
    if (run->is_expired)
        return EXPIRY;
    return run->is_crashed ? CRASH : DEATH;
}

void weir__lane_log_outcome(struct weir__lane *lane,
                            const struct weir__run *run)
{
    const enum kind kind = kind_of(run);
    const struct weir__log *log = log_of(lane, kind);
    struct line line;

    WEIR_ASSERT(run->lane == lane);
    WEIR_ASSERT(run->outcome == WEIR__OUTCOME_RETRY ||
                run->outcome == WEIR__OUTCOME_DEAD);
    if (log == NULL || !counts_in(lane, kind, 1))
        return;
    if (run->outcome == WEIR__OUTCOME_RETRY)
        write_retry(lane, run, &line);
    else
        write_end(lane, run, &line);
    weir__log_job(log, kinds[kind].level, lane->name, run->id, "%s%s%s",
                  line.text, run->reason == NULL ? "" : ": ",
                  run->reason == NULL ? "" : run->reason);
}

void weir__lane_log_crash(struct weir__lane *lane, const struct weir__run *run)
{
    const struct weir__log *log = log_of(lane, CRASH);

    if (log != NULL && counts_in(lane, CRASH, 1))
        weir__log_job(log, kinds[CRASH].level, lane->name, run->id,
                      "a worker ended while it ran (%u of %u)", run->blamed,
                      lane->options->max_crashes);
}

const char *weir_drop_name(enum weir_drop reason)
{
    static const char *const names[] = {"overflow", "age", "ttl"};

    WEIR_ASSERT((unsigned)reason < sizeof(names) / sizeof(names[0]));
    return names[reason];
}

void weir__lane_log_drop(struct weir__lane *lane,
                         const struct weir__dropped *dropped)
{
    const struct weir__log *log = log_of(lane, DROP);

    if (dropped->reason == WEIR_DROP_AGE)
        return; /* each of them expired, and was a line */
    if (log != NULL && counts_in(lane, DROP, dropped->count))
        weir__log(log, kinds[DROP].level, "%s: group %.*s: %llu dropped: %s",
                  lane->name, (int)dropped->group.len,
                  (const char *)dropped->group.ptr,
                  (unsigned long long)dropped->count,
                  weir_drop_name(dropped->reason));
}

void weir__lane_log_evicted(struct weir__lane *lane, size_t count)
{
    const struct weir__log *log = log_of(lane, EVICTION);

    if (log != NULL && counts_in(lane, EVICTION, count))
        weir__log(log, kinds[EVICTION].level,
                  "%s: %zu dead evicted: no more than max_dead (%lld) are kept",
                  lane->name, count, (long long)lane->options->max_dead);
}
