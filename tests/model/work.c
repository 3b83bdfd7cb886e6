/* SPDX-License-Identifier: MIT */
#include "tests/model/topic.h"

#include <stdlib.h>
#include <string.h>

/* Claims, leases and verdicts. */

enum { MOST_CRASHES = 126, ORDER_MS = 1000, A_CALL = 30 };

/* --- leases -------------------------------------------------------------- */

struct lease *topic_lease(struct topic *topic, uint64_t token)
{
    for (size_t i = 0; i < topic->lease_count; i++)
        if (topic->leases[i].token == token)
            return &topic->leases[i];
    return NULL;
}

static void lease_new(struct topic *topic, uint64_t token, int64_t lease_ms)
{
    if (token <= topic->last_token)
        topic_problem(topic, "token %llu is not above %llu",
                      (unsigned long long)token,
                      (unsigned long long)topic->last_token);
    topic->last_token = token;
    topic->leases = topic_grow(topic->leases, topic->lease_count,
                               &topic->lease_cap, sizeof(topic->leases[0]));
    topic->leases[topic->lease_count++] =
        (struct lease){token, topic->now_ms + lease_ms, lease_ms};
}

bool topic_runs_under(const struct topic *topic, uint64_t token)
{
    for (size_t i = 0; i < topic->live_count; i++)
        if (job_runs(topic->live[i], token))
            return true;
    return false;
}

void topic_close(struct topic *topic, uint64_t token)
{
    struct lease *lease = topic_lease(topic, token);

    if (lease != NULL && !topic_runs_under(topic, token))
        *lease = topic->leases[--topic->lease_count];
}

/* The clock may have been set back since it was claimed. */
static void wait_again(struct topic *topic, struct job *job, int64_t due_ms)
{
    bool is_started = job->is_started;

    topic_wait(topic, job, due_ms);
    if (due_ms <= topic->now_ms)
        job->due_ms = due_ms;
    if (job->due_ms < topic->entered_ms)
        topic->entered_ms = job->due_ms;
    job->is_due_loose = due_ms > topic->now_ms;
    job->is_started = is_started;
    topic->count.returned++;
}

void topic_expire(struct topic *topic, struct job *job)
{
    const struct lease *lease = topic_lease(topic, job->token);

    if (lease == NULL || lease->deadline_ms >= topic->now_ms)
        topic_problem(topic, "%s is given back, and its lease is not over",
                      job->id);
    if (job->crashes == 0 || job->is_started) {
        job->crashes += job->crashes < MOST_CRASHES;
        topic->count.crashed++;
    }
    wait_again(topic, job, job->due_ms);
    job->is_started = false;
}

/* --- claims -------------------------------------------------------------- */

static void run(struct topic *topic, struct job *job, uint64_t token)
{
    topic->waiting -= job->state == WAITS;
    job->state = RUNS;
    job->token = token;
    job->is_started = false;
}

void topic_take(struct topic *topic, struct claim *claim, struct job *job,
                int64_t due_ms, unsigned crashes)
{
    if (job->state != WAITS) {
        topic_problem(topic, "%s was claimed and does not wait", job->id);
        return;
    }
    if (job->is_due_loose && due_ms <= job->due_ms)
        job->due_ms = due_ms;
    if (due_ms > topic->now_ms)
        topic_problem(topic, "%s was claimed %lld ms early", job->id,
                      (long long)(due_ms - topic->now_ms));
    if (due_ms != job->due_ms)
        topic_problem(topic, "%s is due at %lld, and a claim says %lld",
                      job->id, (long long)job->due_ms, (long long)due_ms);
    if (crashes != job->crashes)
        topic_problem(topic, "%s crashed %u times, and a claim says %u",
                      job->id, job->crashes, crashes);
    if (topic->is_paused)
        topic_problem(topic, "%s was claimed in a pause", job->id);
    run(topic, job, claim->token);
    if (job->lane == NULL && due_ms > claim->last_ms)
        claim->last_ms = due_ms;
    if (claim->jobs++ == 0 || due_ms < claim->first_ms)
        claim->first_ms = due_ms;
}

int64_t topic_first_due_ms(const struct topic *topic)
{
    int64_t first_ms = INT64_MAX;

    for (size_t i = 0; i < topic->live_count; i++)
        if (topic->live[i]->state == WAITS && topic->live[i]->due_ms < first_ms)
            first_ms = topic->live[i]->due_ms;
    return first_ms;
}

/* No job is overtaken by one that is less than half as late, but for what is
 * late by less than a second. Keys take turns. */
static void check_order(struct topic *topic, const struct claim *claim)
{
    int64_t late_ms = topic->now_ms - claim->last_ms;

    for (size_t i = 0; i < topic->live_count; i++) {
        const struct job *job = topic->live[i];
        int64_t left_ms = topic->now_ms - job->due_ms;

        if (job->state == WAITS && job->lane == NULL && left_ms > ORDER_MS &&
            left_ms > 2 * late_ms + 1) {
            topic_problem(topic,
                          "%s is %lld ms late and was left, one that is "
                          "%lld ms late was taken",
                          job->id, (long long)left_ms, (long long)late_ms);
            return;
        }
    }
}

int64_t topic_next_ms(const struct topic *topic)
{
    int64_t at_ms = topic->is_paused ? INT64_MAX : topic_first_due_ms(topic);

    for (size_t i = 0; i < topic->lease_count && !topic->is_paused; i++)
        if (topic->leases[i].deadline_ms + 1 < at_ms)
            at_ms = topic->leases[i].deadline_ms + 1;
    return at_ms;
}

/* The worker comes then, or up to MOST_BEHIND ms later where another one is
 * before it. */
static void check_next(struct topic *topic, const struct claim *claim)
{
    enum { MOST_BEHIND_MS = 6000 };
    int64_t at_ms = topic_next_ms(topic);
    int64_t left_ms = at_ms > topic->now_ms ? at_ms - topic->now_ms : 0;

    if (at_ms == INT64_MAX) {
        if (claim->next_us >= 0)
            topic_problem(topic, "nothing waits, and a claim says %lld us",
                          (long long)claim->next_us);
        return;
    }
    if (claim->next_us < 0 || claim->next_us / 1000 > left_ms + MOST_BEHIND_MS)
        topic_problem(topic,
                      "there is something to do in %lld ms, and a claim says "
                      "%lld us",
                      (long long)left_ms, (long long)claim->next_us);
    else if (left_ms > 1 && claim->next_us / 1000 < left_ms - 1)
        topic_problem(topic,
                      "there is nothing to do for %lld ms, and a claim says "
                      "%lld us",
                      (long long)left_ms, (long long)claim->next_us);
}

/* Jobs that it could have taken as well. One that is less than half as late as
 * another one of its pack waits for the next claim, as what is due behind it
 * does. */
static size_t left_behind(const struct topic *topic, const struct claim *claim)
{
    int64_t last_ms = topic->now_ms;
    size_t left = 0;

    if (claim->jobs > 0 && last_ms - claim->first_ms > ORDER_MS)
        last_ms -= (last_ms - claim->first_ms) / 2;
    for (size_t i = 0; i < topic->live_count; i++)
        left +=
            topic->live[i]->state == WAITS && topic->live[i]->due_ms <= last_ms;
    return left;
}

void topic_end_claim(struct topic *topic, const struct claim *claim)
{
    size_t left = left_behind(topic, claim);

    if (claim->token != 0)
        lease_new(topic, claim->token, claim->lease_ms);
    if (claim->jobs > claim->room)
        topic_problem(topic, "a claim with room for %u got %u jobs",
                      claim->room, claim->jobs);
    if (claim->last_ms > 0)
        check_order(topic, claim);
    if (claim->is_bounded)
        return;
    /* A piece that is larger than what is left of the room stays whole, and one
     * call does only so much. */
    if (left > 0 && claim->jobs * 2 < claim->room &&
        claim->nodes < claim->most_nodes && claim->nodes < A_CALL &&
        !topic->is_paused)
        topic_problem(topic,
                      "%zu due jobs were left, and %u of %u were taken, in "
                      "%zu of %u nodes",
                      left, claim->jobs, claim->room, claim->nodes,
                      claim->most_nodes);
    check_next(topic, claim);
}

void topic_hand_over(struct topic *topic, struct job *job, uint64_t token,
                     int64_t lease_ms)
{
    lease_new(topic, token, lease_ms);
    topic->entered_ms = INT64_MAX; /* it does not wait */
    if (job->due_ms > topic->now_ms || topic->is_paused)
        topic_problem(topic, "%s was handed over too early", job->id);
    run(topic, job, token);
    if (topic_first_due_ms(topic) <= topic->now_ms)
        topic_problem(topic, "%s was handed over before one that was due",
                      job->id);
}

/* --- verdicts ------------------------------------------------------------ */

void topic_end(struct topic *topic, struct job *job)
{
    topic_leave(topic, job, GONE);
}

void topic_again(struct topic *topic, struct job *job, int64_t due_ms)
{
    topic_wait(topic, job, due_ms);
    job->crashes = 0;
    job->has_moved = true;
}

void topic_die(struct topic *topic, struct job *job)
{
    topic_leave(topic, job, DEAD);
    topic->count.failed++;
}

void topic_return(struct topic *topic, struct job *job, int64_t due_ms)
{
    wait_again(topic, job, due_ms);
    job->is_started = false;
}
