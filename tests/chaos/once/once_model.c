/* SPDX-License-Identifier: MIT */
#include "tests/chaos/once/once.h"

#include <stdlib.h>

void once_drop(struct once *once, struct once_job *job)
{
    if (job->user > 0)
        once->users[job->user - 1] = NULL;
    once->waiting -= job->state == WAITS;
    job->state = GONE;
    once->list[job->at] = once->list[--once->count];
    once->list[job->at]->at = job->at;
}

void once_enter(struct once *once, struct once_job *job, int64_t due_ms)
{
    if (job->state == GONE) {
        if (once->count == once->cap) {
            once->cap = once->cap == 0 ? 1024 : once->cap * 2;
            once->list = realloc(once->list, once->cap * sizeof(once->list[0]));
            if (once->list == NULL)
                abort();
        }
        job->at = once->count;
        once->list[once->count++] = job;
        if (job->user > 0)
            once->users[job->user - 1] = job;
    }
    job->state = WAITS;
    job->due_ms = due_ms > once->now_ms ? due_ms : once->now_ms;
    once->waiting++;
}

static bool is_held(const struct once *once, const struct once_key *key)
{
    if (key->holder == NULL)
        return false;
    if (key->form == FOR)
        return once->now_ms < key->till;
    if (key->form == UNTIL_START)
        return key->holder->state == WAITS;
    return key->holder->state == WAITS || key->holder->state == RUNS;
}

static int64_t later(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

/* A window behind the holder, unless it takes that one's place. */
static int64_t throttle(const struct once *once, const struct once_key *key,
                        const struct once_rule *rule, int64_t due_ms,
                        struct once_job **ret_old)
{
    struct once_job *waiter = key->holder->state == WAITS ? key->holder : NULL;
    int64_t at =
        waiter != NULL && !waiter->has_moved ? waiter->due_ms : key->due;

    if (once->now_ms < at && waiter == NULL)
        return later(due_ms, at);
    if (once->now_ms < at && due_ms <= at) {
        *ret_old = waiter;
        return at;
    }
    return later(due_ms, at + rule->ms);
}

/* When it is due; -1: it is refused. `*ret_old`: whose place it takes. */
static int64_t decide(const struct once *once, const struct once_key *key,
                      const struct once_rule *rule, int64_t due_ms,
                      struct once_job **ret_old)
{
    bool has_holder = is_held(once, key);
    struct once_job *waiter =
        has_holder && key->holder->state == WAITS ? key->holder : NULL;
    int64_t first = once->now_ms;

    if (rule->mode == THROTTLE && has_holder)
        return throttle(once, key, rule, due_ms, ret_old);
    if (rule->mode == THROTTLE)
        return due_ms;
    if (has_holder && (rule->mode == REJECT || waiter == NULL))
        return -1;
    *ret_old = waiter;
    if (waiter != NULL)
        first = key->first;
    if (rule->mode == DEBOUNCE && rule->most >= 0 &&
        due_ms > first + rule->most)
        due_ms = later(first + rule->most, once->now_ms);
    return due_ms;
}

/* What is told of it; -1: it was added. */
static int add_one(struct once *once, const struct once_add *add,
                   const char **ret_holder)
{
    struct once_key *key = &once->keys[add->key];
    struct once_job *job = add->job, *old = NULL;
    int64_t due = add->when_ms + (add->is_absolute ? 0 : once->now_ms);
    int64_t first = once->now_ms;

    if (job->user > 0 && once->users[job->user - 1] != NULL)
        return 0;
    due = decide(once, key, &add->rule, later(due, once->now_ms), &old);
    if (due < 0) {
        *ret_holder = key->holder->id;
        return 512;
    }
    if (old == NULL && once->max_pending > 0 &&
        once->waiting >= once->max_pending)
        return 256;
    if (old != NULL) {
        first = key->first;
        once_drop(once, old);
    }
    once_enter(once, job, due);
    *key = (struct once_key){job, add->rule.form, 0, first, due};
    if (key->form == FOR)
        key->till =
            add->rule.ms + (add->rule.mode == THROTTLE ? due : once->now_ms);
    return -1;
}

long long once_add(struct once *once, struct once_call *call,
                   struct text *ret_told)
{
    long long added = 0;

    for (size_t i = 0; i < call->count; i++) {
        const char *holder = "''";
        int what = add_one(once, &call->adds[i], &holder);

        call->is_added[i] = what < 0;
        if (what < 0)
            added++;
        else
            text_format(ret_told, " %zu %d %s", i, what, holder);
    }
    once->added += added;
    return added;
}
