/* SPDX-License-Identifier: MIT */
#include "tests/model/topic.h"

#include <stdlib.h>
#include <string.h>

#include "tests/model/tree.h"
#include "tests/sim/server/store.h"

/* Unique keys: of the jobs that come with one, one at a time has it. */

/* Who took a key last. */
struct unique {
    char *key;
    struct job *holder;
    enum unique_form form;
    int64_t till_ms;  /* FOR */
    int64_t first_ms; /* when the first of those came that took each other's
                         place */
    int64_t due_ms, added_ms;
};

static int by_key(const void *one, const void *other)
{
    return strcmp(((const struct unique *)one)->key,
                  ((const struct unique *)other)->key);
}

static struct unique *find(struct topic *topic, const char *key)
{
    struct unique wanted = {.key = (char *)(uintptr_t)key};

    return tree_find(&topic->unique, &wanted, by_key);
}

static struct unique *find_or_make(struct topic *topic, const char *key)
{
    struct unique *unique = find(topic, key);

    if (unique != NULL)
        return unique;
    unique = calloc(1, sizeof(*unique));
    if (unique == NULL)
        server_fail("the model has no memory for a key");
    unique->key = topic_text(key, strlen(key));
    tree_add(&topic->unique, unique, by_key);
    return unique;
}

static void free_unique(void *node)
{
    struct unique *unique = node;

    free(unique->key);
    free(unique);
}

void unique_free(struct topic *topic)
{
    tree_free(&topic->unique, free_unique);
}

static int64_t later(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

/* The clock was ahead when the key was taken: its times count from now. */
static void set_right(struct unique *unique, int64_t now_ms)
{
    int64_t ahead_ms = unique->added_ms - now_ms;

    if (ahead_ms < 1000)
        return;
    if (unique->first_ms > now_ms)
        unique->first_ms = now_ms;
    unique->due_ms = later(unique->due_ms - ahead_ms, 0);
    unique->till_ms = later(unique->till_ms - ahead_ms, 0);
    unique->added_ms = now_ms;
}

static bool is_held(const struct unique *unique, int64_t now_ms)
{
    enum job_state state = unique->holder->state;

    if (unique->form == FOR)
        return now_ms < unique->till_ms;
    return state == WAITS || (state == RUNS && unique->form == UNTIL_DONE);
}

/* A window behind the holder, unless it takes that one's place. */
static int64_t throttle(const struct unique *unique,
                        const struct unique_rule *rule, int64_t now_ms,
                        int64_t due_ms, struct job **ret_before)
{
    struct job *waiter = unique->holder->state == WAITS ? unique->holder : NULL;
    int64_t at_ms =
        waiter != NULL && !waiter->has_moved ? waiter->due_ms : unique->due_ms;

    if (now_ms < at_ms && waiter == NULL)
        return later(due_ms, at_ms);
    if (now_ms < at_ms && due_ms <= at_ms) {
        *ret_before = waiter;
        return at_ms;
    }
    return later(due_ms, at_ms + rule->ms);
}

/* When it is due; -1: it is refused. *ret_before: whose place it takes.
 * `unique` is NULL where the key is free. */
static int64_t decide(const struct unique *unique,
                      const struct unique_rule *rule, int64_t now_ms,
                      int64_t due_ms, struct job **ret_before)
{
    struct job *waiter = unique != NULL && unique->holder->state == WAITS
                             ? unique->holder
                             : NULL;
    int64_t first_ms = waiter != NULL ? unique->first_ms : now_ms;

    if (rule->mode == THROTTLE)
        return unique == NULL
                   ? due_ms
                   : throttle(unique, rule, now_ms, due_ms, ret_before);
    if (unique != NULL && (rule->mode == REJECT || waiter == NULL))
        return -1;
    *ret_before = waiter;
    if (rule->mode == DEBOUNCE && rule->most_ms >= 0 &&
        due_ms > first_ms + rule->most_ms)
        due_ms = later(first_ms + rule->most_ms, now_ms);
    return due_ms;
}

enum add_outcome topic_add_unique(struct topic *topic, const char *id,
                                  const char *lane, int64_t due_ms,
                                  const struct unique_rule *rule,
                                  struct job **ret_job)
{
    struct unique *unique = find(topic, rule->key);
    int64_t now_ms = topic->now_ms, first_ms = now_ms;
    struct job *before = NULL;

    if (topic_find(topic, id) != NULL)
        return EXISTS;
    if (unique != NULL)
        set_right(unique, now_ms);
    if (unique != NULL && !is_held(unique, now_ms))
        unique = NULL;
    due_ms = decide(unique, rule, now_ms, later(due_ms, now_ms), &before);
    if (due_ms < 0 && unique != NULL) {
        *ret_job = unique->holder;
        return HELD;
    }
    if (before == NULL && topic_is_full(topic))
        return FULL;
    if (before != NULL && unique != NULL) {
        first_ms = unique->first_ms;
        topic_delete(topic, before);
    }
    *ret_job = topic_enter(topic, id, lane, due_ms);
    unique = find_or_make(topic, rule->key);
    unique->holder = *ret_job;
    unique->form = rule->form;
    unique->first_ms = first_ms;
    unique->due_ms = due_ms;
    unique->added_ms = now_ms;
    unique->till_ms =
        rule->form != FOR
            ? 0
            : rule->ms + (rule->mode == THROTTLE ? due_ms : now_ms);
    return ADDED;
}
