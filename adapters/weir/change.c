/* SPDX-License-Identifier: MIT */
#include "adapters/weir/facade.h"

#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/text.h"

/* Changes of what is served, all or none. */

static int check_leaving(const struct weir_reactor *reactor, const char *topic,
                         struct weir_error *err)
{
    int rc = weir__topic_check(weir__slice_str(topic), err);

    if (rc < 0 || weir__reactor_serves(reactor->core, weir__slice_str(topic)))
        return rc;
    return weir__error_set(err, WEIR_ENOTFOUND, "topic %s is not served",
                           topic);
}

struct planned {
    const struct weir_change *change;
    struct weir__prepared prepared;
};

struct plans {
    struct planned *list; /* as the changes were given */
    const struct planned **by_topic;
    size_t count;
};

static int in_order(const void *one, const void *other)
{
    const struct planned *first = *(const struct planned *const *)one;
    const struct planned *second = *(const struct planned *const *)other;
    int order = strcmp(first->change->topic, second->change->topic);

    return order != 0 ? order : (first > second) - (first < second);
}

/* NULL: no change is about the topic. */
static const struct planned *find(const struct plans *plans, const char *topic)
{
    size_t from = 0, to = plans->count;

    while (from < to) {
        size_t at = from + (to - from) / 2;
        int order = strcmp(plans->by_topic[at]->change->topic, topic);

        if (order == 0)
            return plans->by_topic[at];
        if (order < 0)
            from = at + 1;
        else
            to = at;
    }
    return NULL;
}

/* *ret_at is the first change of a topic that one before is about. */
static int check_once(const struct plans *plans, size_t *ret_at,
                      struct weir_error *err)
{
    const struct planned *wrong = NULL;

    for (size_t i = 1; i < plans->count; i++) {
        const struct planned *one = plans->by_topic[i - 1];
        const struct planned *next = plans->by_topic[i];

        if (strcmp(one->change->topic, next->change->topic) == 0 &&
            (wrong == NULL || next < wrong))
            wrong = next;
    }
    if (wrong == NULL)
        return WEIR_OK;
    *ret_at = (size_t)(wrong - plans->list);
    return weir__error_set(err, WEIR_EINVAL,
                           "topic %s is given twice: change it once",
                           wrong->change->topic);
}

static int prepare(struct weir_reactor *reactor, struct planned *planned,
                   struct weir_error *err)
{
    const struct weir_change *change = planned->change;
    int rc = weir__takes_check(reactor, change->topic, err);

    if (rc < 0)
        return rc;
    if (change->options == NULL)
        return check_leaving(reactor, change->topic, err);
    return weir__facade_prepare(reactor, change->topic, change->options, true,
                                &planned->prepared, err);
}

/* weir__planned_fn */
static const char *on_dead_of(const char *topic, void *arg)
{
    const struct planned *planned = find(arg, topic);

    if (planned == NULL)
        return NULL;
    return planned->prepared.plan == NULL
               ? ""
               : weir__plan_on_dead(planned->prepared.plan);
}

static int check_on_dead(struct plans *plans, const struct planned *planned,
                         struct weir_error *err)
{
    const struct weir__plan *plan = planned->prepared.plan;

    return plan == NULL
               ? WEIR_OK
               : weir__plan_check_on_dead(plan, on_dead_of, plans, err);
}

static int prepare_all(struct weir_reactor *reactor, struct plans *plans,
                       size_t *ret_at, struct weir_error *err)
{
    int rc = check_once(plans, ret_at, err);

    for (size_t i = 0; rc == WEIR_OK && i < plans->count; i++) {
        *ret_at = i;
        rc = prepare(reactor, &plans->list[i], err);
    }
    for (size_t i = 0; rc == WEIR_OK && i < plans->count; i++) {
        *ret_at = i;
        rc = check_on_dead(plans, &plans->list[i], err);
    }
    return rc;
}

static void commit_all(struct weir_reactor *reactor, const struct plans *plans)
{
    for (size_t i = 0; i < plans->count; i++) {
        const struct planned *planned = &plans->list[i];

        if (planned->change->options == NULL)
            weir__reactor_unserve(reactor->core,
                                  weir__slice_str(planned->change->topic));
        else
            weir__plan_adopt(planned->prepared.plan);
    }
    for (size_t i = 0; i < plans->count; i++)
        if (plans->list[i].change->options != NULL)
            weir__facade_commit(reactor, &plans->list[i].prepared);
}

static int plans_init(struct plans *plans, const struct weir_change *changes,
                      size_t count)
{
    plans->list = weir__mem_new((count + 1) * sizeof(*plans->list));
    plans->by_topic = weir__mem_new((count + 1) * sizeof(*plans->by_topic));
    if (plans->list == NULL || plans->by_topic == NULL)
        return WEIR_ENOMEM;
    plans->count = count;
    for (size_t i = 0; i < count; i++) {
        plans->list[i].change = &changes[i];
        plans->by_topic[i] = &plans->list[i];
    }
    qsort(plans->by_topic, count, sizeof(*plans->by_topic), in_order);
    return WEIR_OK;
}

static void plans_fini(struct plans *plans)
{
    weir__mem_free(plans->list);
    weir__mem_free(plans->by_topic);
}

int weir_reactor_change(struct weir_reactor *reactor,
                        const struct weir_change *changes, size_t count,
                        size_t *ret_at, struct weir_error *err)
{
    struct plans plans = {0};
    int rc = weir__facade_check_thread(reactor, err);

    *ret_at = count;
    if (rc < 0)
        return rc;
    if (reactor->is_freed)
        return weir__error_code(err, WEIR_ECANCELED);
    if (plans_init(&plans, changes, count) < 0) {
        plans_fini(&plans);
        return weir__error_code(err, WEIR_ENOMEM);
    }
    rc = prepare_all(reactor, &plans, ret_at, err);
    if (rc == WEIR_OK) {
        commit_all(reactor, &plans);
        *ret_at = count;
    }
    for (size_t i = 0; rc < 0 && i < count; i++)
        weir__facade_cancel(reactor, &plans.list[i].prepared);
    plans_fini(&plans);
    return rc;
}

/* --- what has ended ------------------------------------------------------- */

static void unlink_plugin(struct weir_reactor *reactor,
                          const struct weir__bound_plugin *bound)
{
    struct weir__bound_plugin **at = &reactor->plugins;

    while (*at != bound)
        at = &(*at)->next;
    *at = bound->next;
}

void weir__facade_ended(const char *topic, void *self, void *owner, void *arg)
{
    struct weir_reactor *reactor = arg;

    if (weir__takes_has(reactor, self))
        return;
    if (owner != NULL) {
        unlink_plugin(reactor, owner);
        weir__facade_close_plugin(reactor, owner);
    }
    if (reactor->ended_fn != NULL)
        reactor->ended_fn(topic, owner == NULL ? self : NULL,
                          reactor->ended_arg);
}

void weir_reactor_on_ended(struct weir_reactor *reactor, weir_ended_fn fn,
                           void *arg)
{
    reactor->ended_fn = fn;
    reactor->ended_arg = arg;
}
