/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/assert.h"
#include "core/lane.h"
#include "core/mem.h"
#include "core/text.h"

/* Who serves a lane, from when on and until when. A lane stays when its topic
 * is left: the next one who serves the topic has it. */

/* --- lanes by name -------------------------------------------------------- */

static size_t bucket_of(struct weir_slice name)
{
    return weir__slice_hash(name) & (WEIR__NAME_BUCKETS - 1);
}

struct weir__lane *weir__lane_find(const struct weir__reactor *reactor,
                                   struct weir_slice name)
{
    struct weir__lane *lane = reactor->names[bucket_of(name)];

    while (lane != NULL &&
           !weir__slice_equal(weir__slice_str(lane->name), name))
        lane = lane->in_name;
    return lane;
}

static void link_lane(struct weir__lane *lane)
{
    struct weir__reactor *reactor = lane->reactor;
    size_t bucket = bucket_of(weir__slice_str(lane->name));

    WEIR_ASSERT(weir__lane_find(reactor, weir__slice_str(lane->name)) == NULL);
    lane->next = reactor->lanes;
    reactor->lanes = lane;
    reactor->lane_count++;
    lane->in_name = reactor->names[bucket];
    reactor->names[bucket] = lane;
}

/* --- handlers ------------------------------------------------------------- */

static struct weir__handler *
handler_new(const struct weir__lane_options *options, bool has_threads)
{
    struct weir__handler *handler = weir__mem_new(sizeof(*handler));

    if (handler == NULL)
        return NULL;
    *handler = (struct weir__handler){
        .refs = 1,
        .name = options->handler,
        .run = options->run,
        .run_batch = options->run_batch,
        .flush = options->flush,
        .self = options->self,
        .owner = options->owner,
        .blocks = options->blocks && has_threads,
        .limit = options->limit,
    };
    return handler;
}

/* What it was measured to do says nothing of the next one. */
static void replace(struct weir__lane *lane, struct weir__handler *by)
{
    struct weir__reactor *reactor = lane->reactor;
    struct weir__handler *handler = lane->handler;

    if (handler != NULL) {
        handler->refs--;
        handler->next = reactor->replaced;
        reactor->replaced = handler;
        reactor->served_count--;
    }
    lane->handler = by;
    if (by != NULL) {
        by->lane = lane;
        reactor->served_count++;
    }
    lane->per_run_ns = 0;
    lane->hold_ns = 0;
    lane->is_dry = false;
    lane->is_async = lane->pending.count > 0;
    lane->window_ns = reactor->now_ns;
    lane->window_count = 0;
}

/* --- serving -------------------------------------------------------------- */

struct weir__plan {
    struct weir__lane *lane;
    bool is_new;                   /* the lane is the plan's */
    struct weir__handler *handler; /* NULL: the one it has */
    struct weir__lane_shared *own;
};

/* Not linked yet. */
static struct weir__lane *lane_new(struct weir__reactor *reactor,
                                   const struct weir__lane_options *options)
{
    const struct weir__store_topic_options topic = {.name = options->name};
    struct weir__lane *lane = weir__mem_new(sizeof(*lane));

    if (lane == NULL)
        return NULL;
    lane->reactor = reactor;
    lane->store = reactor->store;
    lane->claim_at.lane = lane;
    lane->renew_at.lane = lane;
    lane->timeout_at.lane = lane;
    lane->late_max_us = -1;
    memcpy(lane->name, options->name.ptr, options->name.len);
    if (lane->store->ops->topic_open(lane->store, &topic, &lane->topic) < 0) {
        weir__mem_free(lane);
        return NULL;
    }
    return lane;
}

void weir__plan_drop(struct weir__plan *plan)
{
    if (plan == NULL)
        return;
    if (plan->lane != NULL)
        plan->lane->reactor->planned_count--;
    weir__lane_unshare(plan->own);
    weir__mem_free(plan->handler);
    if (plan->is_new)
        weir__mem_free(plan->lane);
    weir__mem_free(plan);
}

int weir__reactor_plan(struct weir__reactor *reactor,
                       const struct weir__lane_options *options,
                       struct weir__plan **ret_plan)
{
    struct weir__lane *lane = weir__lane_find(reactor, options->name);
    bool has_handler = options->run != NULL || options->run_batch != NULL;
    size_t lanes = reactor->lane_count + reactor->planned_count + 1;
    struct weir__plan *plan;

    WEIR_ASSERT(options->name.len <= WEIR_MAX_TOPIC);
    if (reactor->is_stopping)
        return WEIR_ECANCELED;
    if (!has_handler && !weir__reactor_serves(reactor, options->name))
        return WEIR_ENOTFOUND;
    /* Four deadlines a lane: with room for them arming cannot fail. */
    if (weir__heap_reserve(&reactor->deadlines, 4 * lanes) < 0)
        return WEIR_ENOMEM;
    plan = weir__mem_new(sizeof(*plan));
    if (plan == NULL)
        return WEIR_ENOMEM;
    plan->is_new = lane == NULL;
    plan->lane = lane != NULL ? lane : lane_new(reactor, options);
    reactor->planned_count += plan->lane != NULL;
    plan->own = weir__lane_share(reactor, &options->options);
    plan->handler = has_handler
                        ? handler_new(options, reactor->options.pool != NULL)
                        : NULL;
    if (plan->lane == NULL || plan->own == NULL ||
        (has_handler && plan->handler == NULL)) {
        weir__plan_drop(plan);
        return WEIR_ENOMEM;
    }
    *ret_plan = plan;
    return WEIR_OK;
}

int weir__plan_check_on_dead(const struct weir__plan *plan,
                             weir__planned_fn planned, void *arg,
                             struct weir_error *err)
{
    return weir__reactor_check_on_dead(plan->lane->reactor, plan->lane->name,
                                       plan->own->options.on_dead, planned, arg,
                                       err);
}

const char *weir__plan_on_dead(const struct weir__plan *plan)
{
    const struct weir__options *own = &plan->own->options;
    const bool is_pinned = (own->pinned >> WEIR__TOPIC_on_dead & 1) != 0;

    return !is_pinned && weir__lane_stores(plan->lane, WEIR__TOPIC_on_dead)
               ? plan->lane->options->on_dead
               : own->on_dead;
}

void weir__plan_want(struct weir__plan *plan, const size_t *wanted)
{
    WEIR_ASSERT(plan->handler != NULL);
    plan->handler->wanted = wanted;
}

static void stay(struct weir__lane *lane)
{
    struct weir__lane **at = &lane->reactor->leaving;

    while (*at != lane)
        at = &(*at)->next_leaving;
    *at = lane->next_leaving;
    lane->is_leaving = false;
}

/* One lane alone offers to take jobs that are handed over; now there are two,
 * and each claims. */
static void end_solitude(struct weir__reactor *reactor)
{
    if (reactor->served_count != 1)
        return;
    for (struct weir__lane *lane = reactor->lanes; lane != NULL;
         lane = lane->next)
        if (lane->handler != NULL)
            weir__lane_come(lane);
}

static void listen(struct weir__lane *lane)
{
    if (lane->is_leaving)
        stay(lane);
    lane->store->ops->topic_listen(lane->topic, lane);
}

void weir__plan_adopt(struct weir__plan *plan)
{
    struct weir__lane *lane = plan->lane;

    WEIR_ASSERT(plan->own != NULL);
    weir__lane_unshare(lane->own);
    lane->own = plan->own;
    plan->own = NULL;
    weir__lane_merge(lane);
}

void weir__plan_commit(struct weir__plan *plan)
{
    struct weir__lane *lane = plan->lane;
    bool is_served = lane->handler != NULL && !lane->is_leaving;

    WEIR_ASSERT(plan->handler != NULL || is_served);
    if (plan->own != NULL)
        weir__plan_adopt(plan);
    if (lane->handler == NULL)
        end_solitude(lane->reactor);
    if (plan->handler != NULL)
        replace(lane, plan->handler);
    lane->is_refused = false; /* it may be of another kind by now */
    weir__lane_apply(lane);
    if (!is_served)
        listen(lane);
    if (plan->is_new)
        link_lane(lane);
    else
        weir__lane_come(lane);
    lane->reactor->planned_count--;
    weir__mem_free(plan);
}

int weir__reactor_serve(struct weir__reactor *reactor,
                        const struct weir__lane_options *options)
{
    struct weir__plan *plan;
    int rc;

    if (!reactor->is_stopping && weir__reactor_serves(reactor, options->name))
        return WEIR_EEXISTS;
    rc = weir__reactor_plan(reactor, options, &plan);
    if (rc == WEIR_OK)
        weir__plan_commit(plan);
    return rc;
}

/* --- leaving -------------------------------------------------------------- */

bool weir__reactor_serves(const struct weir__reactor *reactor,
                          struct weir_slice topic)
{
    const struct weir__lane *lane = weir__lane_find(reactor, topic);

    return lane != NULL && lane->handler != NULL && !lane->is_leaving;
}

bool weir__reactor_holds(const struct weir__reactor *reactor,
                         struct weir_slice topic)
{
    const struct weir__lane *lane = weir__lane_find(reactor, topic);

    return lane != NULL && lane->handler != NULL;
}

int weir__reactor_claiming(const struct weir__reactor *reactor,
                           struct weir_slice topic)
{
    const struct weir__lane *lane = weir__lane_find(reactor, topic);

    WEIR_ASSERT(lane != NULL);
    if (lane->is_refused)
        return WEIR_EKIND;
    if (!lane->is_claiming && weir__suspect_blocks(lane))
        return lane->claim_code;
    if (!(lane->is_sleeping || lane->is_resting) || !lane->store->is_up ||
        reactor->is_noting || lane->has_suspect ||
        lane->coming + lane->ready.count > 0)
        return 1;
    return lane->claim_code;
}

void weir__reactor_unserve(struct weir__reactor *reactor,
                           struct weir_slice topic)
{
    struct weir__lane *lane = weir__lane_find(reactor, topic);

    WEIR_ASSERT(weir__reactor_serves(reactor, topic));
    lane->is_leaving = true;
    lane->next_leaving = reactor->leaving;
    reactor->leaving = lane;
    weir__lane_give_back(lane);
    if (!reactor->is_stopping && lane->store->ops->stop != NULL)
        lane->store->ops->stop(lane->topic);
}

void weir__reactor_on_ended(struct weir__reactor *reactor, weir__ended_fn fn,
                            void *arg)
{
    reactor->ended_fn = fn;
    reactor->ended_arg = arg;
}

/* Lanes that nothing is left of; a thread may be in their handlers still. */
static void leave(struct weir__reactor *reactor)
{
    struct weir__lane **at = &reactor->leaving;

    while (*at != NULL) {
        struct weir__lane *lane = *at;

        if (!weir__lane_is_quiet(lane)) {
            at = &lane->next_leaving;
            continue;
        }
        *at = lane->next_leaving;
        lane->is_leaving = false;
        lane->is_refused = false;
        weir__lane_rest(lane);
        lane->store->ops->topic_listen(lane->topic, NULL);
        replace(lane, NULL);
    }
}

static struct weir__handler *take_ended(struct weir__reactor *reactor)
{
    struct weir__handler **at = &reactor->replaced, *handler;

    while (*at != NULL && (*at)->refs > 0)
        at = &(*at)->next;
    handler = *at;
    if (handler != NULL)
        *at = handler->next;
    return handler;
}

/* The callbacks may serve and leave topics, and free the reactor. */
void weir__reactor_end_handlers(struct weir__reactor *reactor)
{
    struct weir__handler *handler;

    leave(reactor);
    while (!reactor->is_halted) {
        handler = take_ended(reactor);
        if (handler == NULL)
            return;
        if (reactor->ended_fn != NULL)
            reactor->ended_fn(handler->lane->name, handler->self,
                              handler->owner, reactor->ended_arg);
        weir__mem_free(handler);
    }
}

void weir__handlers_free(struct weir__reactor *reactor)
{
    while (reactor->replaced != NULL) {
        struct weir__handler *handler = reactor->replaced;

        reactor->replaced = handler->next;
        weir__mem_free(handler);
    }
    for (struct weir__lane *lane = reactor->lanes; lane != NULL;
         lane = lane->next)
        weir__mem_free(lane->handler);
}
