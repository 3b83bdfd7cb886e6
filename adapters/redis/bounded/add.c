/* SPDX-License-Identifier: MIT */
#include "adapters/redis/bounded/private.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Collecting events, by group, until a flush sends them. */

enum {
    COLLECTED_MAX = 64 << 20, /* bytes that wait to be sent */
    COLLECT_BYTES = 4 << 20,  /* that are sorted into calls, about */
    INDEX_MIN = 64
};

static uint32_t hash_of(struct weir_slice name)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ name.ptr[i]) * 16777619u;
    return hash;
}

static struct weir__bounded_adds *adds_new(struct weir__bounded_topic *topic)
{
    struct weir__bounded_adds *adds = weir__mem_new(sizeof(*adds));

    if (adds == NULL)
        return NULL;
    adds->topic = topic;
    *topic->adds_end = adds;
    topic->adds_end = &adds->next;
    topic->last_adds = adds;
    return adds;
}

static struct weir__bounded_adds *adds_of(struct weir__bounded_topic *topic,
                                          size_t len)
{
    struct weir__bounded_adds *adds =
        topic->adds == NULL ? NULL : topic->last_adds;

    if (adds == NULL || adds->count == WEIR__BOUND_COLLECT ||
        (adds->count > 0 && adds->bytes.len + len > COLLECT_BYTES))
        return adds_new(topic);
    return adds;
}

/* At most half of the places are used. False: out of memory. */
static bool make_room(struct weir__bounded_adds *adds)
{
    size_t size = adds->index_size == 0 ? INDEX_MIN : adds->index_size * 2;
    struct weir__event_group *groups;
    uint16_t *index;

    if (adds->group_count * 2 < adds->index_size)
        return true;
    groups = weir__mem_grow(adds->groups, size / 2, sizeof(*groups));
    if (groups == NULL)
        return false;
    adds->groups = groups;
    index = weir__mem_new(size * sizeof(*index));
    if (index == NULL)
        return false;
    weir__mem_free(adds->index);
    adds->index = index;
    adds->index_size = size;
    for (size_t i = 0; i < adds->group_count; i++) {
        size_t place = adds->groups[i].hash & (size - 1);

        while (index[place] != 0)
            place = (place + 1) & (size - 1);
        index[place] = (uint16_t)(i + 1);
    }
    return true;
}

/* The group of that name, which is made if need be; NULL: out of memory. */
static struct weir__event_group *group_of(struct weir__bounded_adds *adds,
                                          struct weir_slice name)
{
    uint32_t hash = hash_of(name);
    struct weir__event_group *group;
    size_t place;

    if (!make_room(adds))
        return NULL;
    place = hash & (adds->index_size - 1);
    while (adds->index[place] != 0) {
        struct weir_slice known;

        group = &adds->groups[adds->index[place] - 1];
        known =
            weir__slice_of(adds->bytes.ptr + group->name_at, group->name_len);
        if (group->hash == hash && weir__slice_equal(known, name))
            return group;
        place = (place + 1) & (adds->index_size - 1);
    }
    group = &adds->groups[adds->group_count];
    *group = (struct weir__event_group){.name_at = adds->bytes.len,
                                        .name_len = (uint32_t)name.len,
                                        .hash = hash};
    weir__buf_append(&adds->bytes, name.ptr, name.len);
    if (adds->bytes.failed)
        return NULL;
    adds->group_count++;
    adds->index[place] = (uint16_t)adds->group_count;
    return group;
}

/* A group with as many events as fit into one call is full. */
static struct weir__event_group *group_in(struct weir__bounded_topic *topic,
                                          const struct weir__new_job *job,
                                          struct weir__bounded_adds **ret_adds)
{
    size_t len = job->record->body.len;
    struct weir__bounded_adds *adds = adds_of(topic, len);
    struct weir__event_group *group =
        adds == NULL ? NULL : group_of(adds, job->group);

    if (group != NULL &&
        (group->count == WEIR__BOUND_EVENTS ||
         (group->count > 0 && group->len + len > WEIR__BOUND_BYTES))) {
        adds = adds_new(topic);
        group = adds == NULL ? NULL : group_of(adds, job->group);
    }
    *ret_adds = adds;
    return group;
}

static struct weir__event *event_new(struct weir__bounded_adds *adds)
{
    if (adds->count == adds->cap) {
        size_t cap = adds->cap * 2 + 16;
        struct weir__event *events =
            weir__mem_grow(adds->events, cap, sizeof(*events));

        if (events == NULL)
            return NULL;
        adds->events = events;
        adds->cap = cap;
    }
    return &adds->events[adds->count];
}

static void link(struct weir__bounded_adds *adds,
                 struct weir__event_group *group)
{
    uint32_t number = (uint32_t)++adds->count;

    if (group->count == 0)
        group->first = number;
    else
        adds->events[group->last - 1].next = number;
    group->last = number;
    group->count++;
    group->len += adds->events[number - 1].len;
}

int weir__bounded_add(struct weir__store_topic *base,
                      const struct weir__new_job *job, weir_added_fn fn,
                      void *arg)
{
    struct weir__bounded_topic *topic = weir__bounded_topic_of(base);
    struct weir__bounded *shared = topic->shared;
    struct weir__event_group *group;
    struct weir__event *event;
    struct weir__bounded_adds *adds;
    size_t at;

    WEIR_ASSERT(job->group.len > 0 && job->group.len <= WEIR_MAX_ID);
    if (shared->store->is_closed)
        return WEIR_ECANCELED;
    if (job->record->body.len > WEIR_MAX_BODY)
        return WEIR_ETOOBIG;
    if (shared->collected > COLLECTED_MAX)
        return WEIR_EFULL;
    group = group_in(topic, job, &adds);
    event = group == NULL ? NULL : event_new(adds);
    if (event == NULL) {
        if (adds != NULL)
            adds->bytes.failed = false;
        return WEIR_ENOMEM;
    }
    at = adds->bytes.len;
    weir__event_write(&adds->bytes, job->id, job->record);
    if (adds->bytes.failed) {
        adds->bytes.len = at;
        adds->bytes.failed = false;
        return WEIR_ENOMEM;
    }
    *event = (struct weir__event){.fn = fn,
                                  .arg = arg,
                                  .at = at,
                                  .len = (uint32_t)(adds->bytes.len - at),
                                  .id_len = (uint32_t)job->id.len};
    link(adds, group);
    shared->collected += event->len;
    weir__topic_mark(&topic->base);
    return WEIR_OK;
}

/* --- leaving ------------------------------------------------------------ */

static struct weir__bounded_adds *take(struct weir__bounded_topic *topic)
{
    struct weir__bounded_adds *adds = topic->adds;

    topic->adds = NULL;
    topic->adds_end = &topic->adds;
    for (struct weir__bounded_adds *one = adds; one != NULL; one = one->next)
        for (size_t i = 0; i < one->count; i++)
            topic->shared->collected -= one->events[i].len;
    return adds;
}

void weir__bounded_flush_adds(struct weir__bounded_topic *topic)
{
    struct weir__bounded_adds *adds;

    if (topic->adds == NULL || topic->base.store->is_closed)
        return;
    if (!topic->base.store->has_number) {
        weir__redis_request_number(
            topic->base.store); /* its answer flushes them */
        return;
    }
    adds = take(topic);
    while (adds != NULL) {
        struct weir__bounded_adds *next = adds->next;

        weir__bounded_adds_send(adds);
        adds = next;
    }
}

void weir__bounded_fail_adds(struct weir__bounded_topic *topic, int code)
{
    struct weir__bounded_adds *adds = take(topic);

    while (adds != NULL) {
        struct weir__bounded_adds *next = adds->next;

        weir__bounded_adds_answer(adds, code);
        adds = next;
    }
}
