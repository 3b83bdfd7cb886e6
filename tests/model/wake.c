/* SPDX-License-Identifier: MIT */
#include "tests/model/topic.h"

#include <stdlib.h>
#include <string.h>

/* Who sleeps, who is woken, and who is handed a job. */

static struct sleeper *find(const struct topic *topic, const char *name)
{
    for (size_t i = 0; i < topic->sleeper_count; i++)
        if (strcmp(topic->sleepers[i].name, name) == 0)
            return &topic->sleepers[i];
    return NULL;
}

void topic_awake(struct topic *topic, const char *name)
{
    struct sleeper *sleeper = find(topic, name);

    if (sleeper == NULL)
        return;
    free(sleeper->name);
    *sleeper = topic->sleepers[--topic->sleeper_count];
}

void topic_sleep(struct topic *topic, const char *name, int64_t wake_ms,
                 bool is_busy)
{
    topic_awake(topic, name);
    topic->sleepers =
        topic_grow(topic->sleepers, topic->sleeper_count, &topic->sleeper_cap,
                   sizeof(topic->sleepers[0]));
    topic->sleepers[topic->sleeper_count++] =
        (struct sleeper){topic_text(name, strlen(name)), wake_ms, is_busy};
}

/* Of those that would come too late who is woken first: one with nothing in
 * hand, and of these who would come last. NULL: each comes in time. */
static const struct sleeper *first_of(const struct topic *topic, int64_t due_ms)
{
    const struct sleeper *first = NULL;

    for (size_t i = 0; i < topic->sleeper_count; i++) {
        const struct sleeper *one = &topic->sleepers[i];

        if (one->wake_ms > due_ms &&
            (first == NULL || (first->is_busy && !one->is_busy) ||
             (first->is_busy == one->is_busy && first->wake_ms < one->wake_ms)))
            first = one;
    }
    return first;
}

void topic_tell(struct topic *topic, const char *name, bool is_heard)
{
    topic->told = topic_grow(topic->told, topic->told_count, &topic->told_cap,
                             sizeof(topic->told[0]));
    topic->told[topic->told_count++] =
        (struct told){topic_text(name, strlen(name)), is_heard};
}

void topic_untell(struct topic *topic, const char *name)
{
    for (size_t i = 0; i < topic->told_count; i++)
        if (strcmp(topic->told[i].name, name) == 0) {
            free(topic->told[i].name);
            topic->told[i] = topic->told[--topic->told_count];
            return;
        }
}

/* Messages of this call go one by one to who has to be woken, until one of them
 * hears it. */
static void judge(struct topic *topic, int64_t due_ms)
{
    bool is_over = false;

    for (size_t i = 0; i < topic->told_count; i++) {
        const struct told *told = &topic->told[i];
        const struct sleeper *first = first_of(topic, due_ms);
        const struct sleeper *one = find(topic, told->name);

        if (one != NULL && one->wake_ms == INT64_MIN)
            continue; /* a token came back for it */
        if (is_over || one == NULL || one->wake_ms <= due_ms)
            topic_problem(topic,
                          "%s was woken for what is due at %lld, and comes at "
                          "%lld",
                          told->name, (long long)due_ms,
                          one == NULL ? -1LL : (long long)one->wake_ms);
        else if (one->is_busy != first->is_busy ||
                 one->wake_ms != first->wake_ms)
            topic_problem(topic, "%s was woken before %s", told->name,
                          first->name);
        is_over = told->is_heard;
        topic_awake(topic, told->name);
    }
    if (!is_over && first_of(topic, due_ms) != NULL)
        topic_problem(topic,
                      "nobody was woken for what is due at %lld, and %s comes "
                      "at %lld",
                      (long long)due_ms, first_of(topic, due_ms)->name,
                      (long long)first_of(topic, due_ms)->wake_ms);
}

void topic_judge_wakes(struct topic *topic, int64_t due_ms)
{
    if (due_ms < INT64_MAX)
        judge(topic, due_ms);
    else if (topic->told_count > 0)
        topic_problem(topic, "%s was woken for nothing", topic->told[0].name);
}

/* --- offers -------------------------------------------------------------- */

void topic_withdraw(struct topic *topic, const char *worker)
{
    struct offer *offer = &topic->offer;

    if (offer->worker == NULL ||
        (worker != NULL && strcmp(worker, offer->worker) != 0))
        return;
    free(offer->worker);
    offer->worker = NULL;
}

void topic_offer(struct topic *topic, const char *worker, long long number,
                 int64_t now_us)
{
    topic_withdraw(topic, NULL);
    topic->offer =
        (struct offer){topic_text(worker, strlen(worker)), number, now_us};
}

bool topic_is_handed(const struct topic *topic, const struct job *job)
{
    if (topic->offer.worker == NULL || topic->is_paused ||
        job->due_ms > topic->now_ms)
        return false;
    for (size_t i = 0; i < topic->live_count; i++)
        if (topic->live[i] != job && topic->live[i]->state == WAITS &&
            topic->live[i]->due_ms <= topic->now_ms)
            return false;
    return true;
}

/* --- life ---------------------------------------------------------------- */

void topic_end_call(struct topic *topic)
{
    for (size_t i = 0; i < topic->told_count; i++) {
        topic_awake(topic, topic->told[i].name);
        free(topic->told[i].name);
    }
    topic->told_count = 0;
    topic->entered_ms = INT64_MAX;
    topic->entered = 0;
}

void wake_free(struct topic *topic)
{
    topic_end_call(topic);
    topic_withdraw(topic, NULL);
    while (topic->sleeper_count > 0)
        topic_awake(topic, topic->sleepers[0].name);
    free(topic->sleepers);
    free(topic->told);
}
