/* SPDX-License-Identifier: MIT */
#include "core/assert.h"
#include "core/lane.h"
#include "core/mem.h"
#include "core/schedule.h"
#include "core/text.h"

/* Ticks of schedules: jobs that no handler sees. A tick adds what is due as
 * follow-ups and is put off to just before the next time; the store writes both
 * in one step, or neither. So it may run twice, or not at all for a while, and
 * each time has one job. It never waits for room among the handler's jobs, is
 * no suspect and cannot die.
 *
 *   arrived --> plan --(a job before may be there)--> look --+
 *                 |                                          |
 *                 +------------------------------------------+--> settled */

/* Where its zone is not known here. Far less than what `missed = skip` takes
 * for late: a worker that knows the zone may have it next. */
enum { PUT_OFF_MS = 5000 };

/* Whether a job that a tick made is still there is being asked. */
struct weir__tick_look {
    struct weir__tick_look *next; /* of the lane */
    struct weir__lane *lane;
    struct weir__run *run; /* NULL: it is settled by now */
};

static int64_t now_ms_of(const struct weir__run *run)
{
    return run->due_ms +
           weir__run_late_us(run, run->lane->reactor->now_ns) / 1000;
}

static void settle(struct weir__run *run, enum weir__outcome outcome)
{
    struct weir__lane *lane = run->lane;

    run->outcome = outcome;
    weir__lane_settle(lane, run);
    weir__lane_list_push(lane, WEIR__LANES_HUNGRY);
}

/* It comes again then. What is counted of jobs is not counted of ticks. */
static void put_off(struct weir__run *run, int64_t at_ms)
{
    run->record.counters = (struct weir_counters){0};
    run->at_ms = at_ms;
    settle(run, WEIR__OUTCOME_SNOOZE);
}

/* False: not here. */
static bool find_zone(const struct weir__run *run,
                      const struct weir__schedule *schedule,
                      const struct weir__zone **ret_zone)
{
    struct weir__zone_source *zones = run->lane->reactor->options.zones;

    *ret_zone = NULL;
    return schedule->zone.len == 0 ||
           (zones != NULL && zones->find(zones, schedule->zone, ret_zone));
}

/* What the tick has to do now; false: nobody here can tell, and it is put
 * off. */
static bool plan(struct weir__run *run, struct weir__schedule *schedule,
                 struct weir__tick_plan *ret_plan)
{
    const struct weir__zone *zone = NULL;
    const char *why = NULL;

    if (weir__schedule_read(run->record.cron, schedule) < 0)
        why = "cannot be read here, it may be of a newer weir";
    else if (!find_zone(run, schedule, &zone))
        why = "is in a time zone that is not known here";
    if (why != NULL) {
        weir__log_job(run->lane->reactor->options.log, WEIR_LEVEL_ERROR,
                      run->lane->name, run->id,
                      "the schedule %s; it waits for seconds", why);
        put_off(run, now_ms_of(run) + PUT_OFF_MS);
        return false;
    }
    weir__schedule_plan(schedule, zone, now_ms_of(run), ret_plan);
    return true;
}

/* The jobs of these times, like the tick's record. False: no memory. */
static bool add_jobs(struct weir__run *run,
                     const struct weir__schedule *schedule,
                     const struct weir__tick_plan *planned)
{
    struct weir_slice name = weir__tick_name(run->id);
    char id[WEIR__OCCURRENCE_CAP];

    for (size_t i = 0; i < planned->count; i++) {
        const struct weir__follow job = {
            .id = weir__occurrence_id(name, planned->times[i], id),
            .at_ms = weir__schedule_due_ms(schedule, name, planned->times[i]),
            .record = {.retry = run->record.retry,
                       .ttl_ms = run->record.ttl_ms,
                       .url = run->record.url,
                       .headers = run->record.headers,
                       .body = run->record.body},
        };

        if (weir__follow_put(&run->follows, &job) < 0)
            return false;
    }
    return true;
}

/* `is_there`: the job before is not over, and none is to be beside it. */
static void end(struct weir__run *run, bool is_there)
{
    struct weir__schedule schedule;
    struct weir__tick_plan planned;
    struct weir__buf text = {0};

    if (!plan(run, &schedule, &planned))
        return;
    if (planned.has_missed || (is_there && planned.count > 0))
        weir__log_job(run->lane->reactor->options.log, WEIR_LEVEL_INFO,
                      run->lane->name, run->id,
                      planned.has_missed
                          ? "times passed without a worker to see them"
                          : "the job of the time before is not over, this "
                            "time has none");
    if (is_there)
        planned.count = 0;
    schedule.last_ms = planned.last_ms;
    schedule.after_ms = planned.after_ms;
    schedule.before_ms = planned.before_ms;
    if (planned.count > 0)
        schedule.made_ms = planned.times[planned.count - 1];
    weir__schedule_write(&text, &schedule);
    if (text.failed || !add_jobs(run, &schedule, &planned)) {
        settle(run, WEIR__OUTCOME_TAKEN); /* its lease runs out */
    } else {
        run->record.cron = weir__buf_slice(&text);
        put_off(run, planned.next_ms < 0 ? now_ms_of(run) + WEIR__FAR_MS
                                         : planned.next_ms);
    }
    weir__buf_fini(&text);
}

/* --- overlap -------------------------------------------------------------- */

static void forget(struct weir__tick_look *look)
{
    struct weir__tick_look **at = &look->lane->looks;

    while (*at != look)
        at = &(*at)->next;
    *at = look->next;
    weir__mem_free(look);
}

static void leave(struct weir__tick_look *look, enum weir__outcome outcome)
{
    struct weir__run *run = look->run;

    look->run = NULL;
    look->lane->looking--;
    settle(run, outcome);
}

static void on_shown(int code, const struct weir_job_info *job, void *arg)
{
    struct weir__tick_look *look = arg;
    struct weir__run *run = look->run;
    struct weir__lane *lane = look->lane;

    forget(look);
    if (run == NULL || code == WEIR_ECANCELED)
        return; /* it is settled, or goes with the store */
    lane->looking--;
    if (code == WEIR_OK || code == WEIR_ENOTFOUND)
        end(run, code == WEIR_OK && job->state != WEIR_JOB_DEAD);
    else
        settle(run, WEIR__OUTCOME_TAKEN); /* its lease runs out */
}

static void look_for(struct weir__run *run, int64_t made_ms)
{
    struct weir__tick_look *look = weir__mem_new(sizeof(*look));
    struct weir__lane *lane = run->lane;
    char buf[WEIR__OCCURRENCE_CAP];
    struct weir_slice id =
        weir__occurrence_id(weir__tick_name(run->id), made_ms, buf);

    if (look != NULL) {
        look->lane = lane;
        look->run = run;
        look->next = lane->looks;
        lane->looks = look;
        lane->looking++;
        if (lane->store->ops->show(lane->topic, id, on_shown, look) == WEIR_OK)
            return;
        lane->looking--;
        forget(look);
    }
    settle(run, WEIR__OUTCOME_TAKEN);
}

/* --- the lane's side ------------------------------------------------------ */

bool weir__tick_take(struct weir__run *run)
{
    const struct weir__lane *lane = run->lane;
    const struct weir__store_ops *ops = lane->store->ops;
    struct weir__schedule schedule;
    struct weir__tick_plan planned;

    if (weir__tick_name(run->id).len == 0 ||
        (ops->takes_follows != NULL && !ops->takes_follows(lane->topic))) {
        run->is_malformed = true; /* none that weir wrote */
        return false;
    }
    if (lane->reactor->is_stopping || lane->is_leaving) {
        settle(run, WEIR__OUTCOME_RETURN);
        return true;
    }
    if (!plan(run, &schedule, &planned))
        return true;
    if (schedule.skips_overlap && schedule.made_ms > 0 && planned.count > 0)
        look_for(run, schedule.made_ms);
    else
        end(run, false);
    return true;
}

void weir__ticks_give_back(struct weir__lane *lane)
{
    for (struct weir__tick_look *look = lane->looks; look != NULL;
         look = look->next)
        if (look->run != NULL)
            leave(look, WEIR__OUTCOME_RETURN);
}

void weir__ticks_lost(struct weir__lane *lane, uint64_t token)
{
    for (struct weir__tick_look *look = lane->looks; look != NULL;
         look = look->next)
        if (look->run != NULL && look->run->token == token)
            leave(look, WEIR__OUTCOME_TAKEN);
}
