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
    const char *event, *plural;
    enum weir_level level;
} kinds[] = {
    [RETRY] = {"retry", "retries", WEIR_LEVEL_INFO},
    [TIMEOUT] = {"timeout", "timeouts", WEIR_LEVEL_INFO},
    [EXPIRY] = {"expired", "expired jobs", WEIR_LEVEL_INFO},
    [DEATH] = {"dead", "deaths", WEIR_LEVEL_WARN},
    [CRASH] = {"crash", "crashes", WEIR_LEVEL_WARN},
    [DROP] = {"dropped", "dropped events", WEIR_LEVEL_INFO},
    [EVICTION] = {"evicted", "evicted dead jobs", WEIR_LEVEL_WARN},
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

/* --- lines ---------------------------------------------------------------- */

enum { FIELDS_MAX = 6 };

/* What a line says, as text and in parts. */
struct line {
    char text[2 * WEIR_MAX_TOPIC + 128];
    struct weir_log_field fields[FIELDS_MAX];
    size_t field_count;
};

WEIR_PRINTF(2, 3)
static void write_line(struct line *line, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line->text, sizeof(line->text), format, args); /* fits */
    va_end(args);
}

static void put_field(struct line *line, const char *name, const char *text,
                      int64_t number)
{
    WEIR_ASSERT(line->field_count < FIELDS_MAX);
    line->fields[line->field_count++] =
        (struct weir_log_field){name, text, number};
}

static void put_text(struct line *line, const char *name, const char *text)
{
    if (text != NULL)
        put_field(line, name, text, 0);
}

static void put_number(struct line *line, const char *name, int64_t number)
{
    put_field(line, name, NULL, number);
}

/* `id` is empty where it is of the topic; `reason` may be NULL. */
static void tell(const struct weir__lane *lane, enum kind kind,
                 struct weir_slice id, struct line *line, const char *reason)
{
    struct weir_log_line about = {
        .level = kinds[kind].level,
        .topic = lane->name,
        .id = id,
        .event = kinds[kind].event,
        .fields = line->fields,
    };

    put_text(line, "reason", reason);
    about.field_count = line->field_count;
    weir__log_about(log_of(lane, kind), &about, "%s%s%s", line->text,
                    reason == NULL ? "" : ": ", reason == NULL ? "" : reason);
}

void weir__lane_log_rest(struct weir__lane *lane)
{
    struct weir__outcome_log *outcomes = lane->outcomes;

    for (int kind = 0; outcomes != NULL && kind < KINDS; kind++) {
        struct line line = {.field_count = 0};

        if (outcomes->rest[kind] > 0) {
            write_line(&line, "%llu more %s within a second",
                       (unsigned long long)outcomes->rest[kind],
                       kinds[kind].plural);
            put_number(&line, "more", (int64_t)outcomes->rest[kind]);
            tell(lane, (enum kind)kind, (struct weir_slice){0}, &line, NULL);
        }
        outcomes->lines[kind] = 0;
        outcomes->rest[kind] = 0;
    }
}

/* --- what became of a run ------------------------------------------------- */

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

    put_number(line, "attempt", run->record.counters.attempt);
    put_number(line, "retry", weir__run_retries(run));
    if (!has_option(lane, WEIR__TOPIC_retry)) {
        write_line(line, "retry %u", weir__run_retries(run));
        return;
    }
    put_number(line, "delay_ms", run->delay_ms);
    if (!ladder->repeats) {
        put_number(line, "retries", ladder->count);
        (void)snprintf(total, sizeof(total), " of %u",
                       ladder->count); /* fits */
    }
    if (options->on_retry[0] != '\0')
        put_text(line, "to", options->on_retry);
    (void)weir__duration_format(run->delay_ms, delay);
    write_line(line, "retry %u%s in %s%s%s", weir__run_retries(run), total,
               delay, options->on_retry[0] == '\0' ? "" : " in topic ",
               options->on_retry);
}

/* The job's end, but where it expired. */
static void write_death(const struct weir__lane *lane,
                        const struct weir__run *run, struct line *line)
{
    const char *on_dead = lane->options->on_dead;
    const char *cause = (const char *)run->record.reason.ptr; /* of ours */
    char where[WEIR_MAX_TOPIC + 16] = "dead";
    const bool is_kept = has_option(lane, WEIR__TOPIC_max_dead);
    /* A run that its worker did not survive is not counted. */
    const uint32_t attempt = run->record.counters.attempt + run->is_crashed;

    if (!is_kept)
        (void)snprintf(where, sizeof(where), "dropped"); /* fits */
    else if (on_dead[0] != '\0')
        (void)snprintf(where, sizeof(where), "dead, goes to %s",
                       on_dead); /* fits */
    put_text(line, "cause", cause);
    put_number(line, "attempt", attempt);
    if (is_kept && on_dead[0] != '\0')
        put_text(line, "to", on_dead);
    if (run->is_crashed) {
        put_number(line, "crashes", run->blamed);
        write_line(line, "%s: %u workers ended or stalled while it ran", where,
                   run->blamed);
    } else if (run->is_malformed) {
        write_line(line,
                   run->lost_due ? "%s: its due time was lost"
                                 : "%s: its record cannot be read",
                   where);
    } else {
        write_line(line, "%s: %s at attempt %u", where, cause, attempt);
    }
}

static void write_expiry(const struct weir__run *run, struct line *line)
{
    const long long late_ms = run->start_late_us / 1000;

    put_number(line, "late_ms", late_ms);
    write_line(line, "expired, %lld ms late", late_ms);
}

static enum kind kind_of(const struct weir__run *run)
{
    if (run->outcome == WEIR__OUTCOME_RETRY)
        return run->is_timed_out ? TIMEOUT : RETRY;
    return run->is_expired ? EXPIRY : DEATH;
}

void weir__lane_log_outcome(struct weir__lane *lane,
                            const struct weir__run *run)
{
    const enum kind kind = kind_of(run);
    struct line line = {.field_count = 0};

    WEIR_ASSERT(run->lane == lane);
    WEIR_ASSERT(run->outcome == WEIR__OUTCOME_RETRY ||
                run->outcome == WEIR__OUTCOME_DEAD);
    if (log_of(lane, kind) == NULL || !counts_in(lane, kind, 1))
        return;
    if (run->outcome == WEIR__OUTCOME_RETRY)
        write_retry(lane, run, &line);
    else if (run->is_expired)
        write_expiry(run, &line);
    else
        write_death(lane, run, &line);
    tell(lane, kind, run->id, &line, run->reason);
}

void weir__lane_log_crash(struct weir__lane *lane, const struct weir__run *run)
{
    struct line line = {.field_count = 0};

    if (log_of(lane, CRASH) == NULL || !counts_in(lane, CRASH, 1))
        return;
    put_number(&line, "crashes", run->blamed);
    put_number(&line, "max_crashes", lane->options->max_crashes);
    write_line(&line, "a worker ended or stalled while it ran (%u of %u)",
               run->blamed, lane->options->max_crashes);
    tell(lane, CRASH, run->id, &line, NULL);
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
    const char *cause = weir_drop_name(dropped->reason);
    struct line line = {.field_count = 0};
    char group[WEIR_MAX_ID + 1];

    if (dropped->reason == WEIR_DROP_AGE)
        return; /* each of them expired, and was a line */
    if (log_of(lane, DROP) == NULL || !counts_in(lane, DROP, dropped->count))
        return;
    (void)snprintf(group, sizeof(group), "%.*s", (int)dropped->group.len,
                   (const char *)dropped->group.ptr); /* fits */
    put_text(&line, "cause", cause);
    put_text(&line, "group", group);
    put_number(&line, "count", (int64_t)dropped->count);
    write_line(&line, "group %s: %llu dropped: %s", group,
               (unsigned long long)dropped->count, cause);
    tell(lane, DROP, (struct weir_slice){0}, &line, NULL);
}

void weir__lane_log_evicted(struct weir__lane *lane, size_t count)
{
    const long long max_dead = lane->options->max_dead;
    struct line line = {.field_count = 0};

    if (log_of(lane, EVICTION) == NULL || !counts_in(lane, EVICTION, count))
        return;
    put_number(&line, "count", (int64_t)count);
    put_number(&line, "max_dead", max_dead);
    write_line(&line, "%zu dead evicted: no more than max_dead (%lld) are kept",
               count, max_dead);
    tell(lane, EVICTION, (struct weir_slice){0}, &line, NULL);
}
