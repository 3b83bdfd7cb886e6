/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "adapters/redis/bounded/private.h"
#include "core/mem.h"
#include "core/text.h"

/* Looking at events, a page of them after the other, group by group in the
 * order of their turns, and deleting them. A script declares its keys, so each
 * call has groups that an earlier one named. */

enum {
    HEAD_KEYS = 4,
    HEAD_ARGS = 5,
    PAGE = 200, /* events of one call */
    NAMES_MAX = 100,
    PURGE_GROUPS = 200, /* of one list, named by one call */
    DONE = 1,
    SKIP,
    NAMED,
    NAMES,
    LISTS
};

struct list_request {
    struct weir__request request;
    struct weir__bounded_topic *topic;
    enum weir_job_state state;
    size_t left; /* most events to show */
    weir_show_fn fn;
    void *arg;
    int64_t named, skip; /* as the script says */
    uint64_t number;     /* of the event that is shown, in its state */
    bool has_named;      /* some in the last answer */
    size_t count;
    char names[NAMES_MAX][WEIR_MAX_ID + 1]; /* of groups to be read */
};

/* --- places ------------------------------------------------------------- */

enum { PLACE_CAP = 32, DIGITS_MAX = 15 };

/* STATE:NUMBER, STATE being a digit, NUMBER of events up to this one. */
static struct weir_slice put_place(struct list_request *list,
                                   char place[static PLACE_CAP])
{
    int len = snprintf(place, PLACE_CAP, "%d:%" PRIu64, (int)list->state,
                       ++list->number); /* fits */

    return weir__slice_of(place, (size_t)len);
}

static bool read_place(struct list_request *list, struct weir_slice text)
{
    size_t at = 2;

    if (text.len == 0)
        return true;
    if (text.len < 3 || text.len > 2 + DIGITS_MAX ||
        text.ptr[0] != '0' + (int)list->state || text.ptr[1] != ':')
        return false;
    for (; at < text.len; at++) {
        if (text.ptr[at] < '0' || text.ptr[at] > '9')
            return false;
        list->skip = list->skip * 10 + (text.ptr[at] - '0');
    }
    list->number = (uint64_t)list->skip;
    return true;
}

/* --- showing ------------------------------------------------------------ */

static void show(struct list_request *list, struct weir_slice group,
                 struct weir_slice event)
{
    char made_id[WEIR__MADE_ID_LEN + 1], place[PLACE_CAP];
    struct weir__run run = {0};
    struct weir_job_info info = {.state = list->state, .group = group};

    info.due_ms = -1;
    if (weir__event_read(event, &run, made_id) < 0) {
        info.reason = weir__slice_str("malformed");
    } else {
        info.counters = run.record.counters;
        info.added_ms = run.record.added_ms;
        info.headers = run.record.headers;
        info.attempts = run.record.attempts;
        info.ttl_ms = run.record.ttl_ms;
        info.error = run.record.error;
        info.body = run.record.body;
        if (list->state == WEIR_JOB_READY)
            info.due_ms = run.due_ms;
    }
    info.id = run.id;
    info.place = put_place(list, place);
    list->left--;
    list->fn(WEIR_OK, &info, list->arg);
}

static void show_lists(struct list_request *list,
                       const struct redisReply *reply)
{
    struct weir_slice group, event;

    for (size_t i = LISTS;
         weir__reply_str(reply, i, &group) && i + 1 < (size_t)reply->elements;
         i += 2)
        for (size_t k = 0; list->left > 0 &&
                           weir__reply_str(reply->element[i + 1], k, &event);
             k++)
            show(list, group, event);
}

/* --- asking ------------------------------------------------------------- */

static void send_page(struct list_request *list)
{
    const struct weir__bounded_topic *topic = list->topic;
    bool is_running = list->state == WEIR_JOB_RUNNING;
    struct weir__buf bytes = {0};

    weir__resp_eval(&bytes, &weir__script_bounded_list, HEAD_KEYS + list->count,
                    HEAD_ARGS + list->count);
    weir__prefix_keys(&bytes, &topic->base.prefix, "meta rot hot lease");
    for (size_t i = 0; i < list->count; i++)
        weir__bounded_group_key(&bytes, topic, is_running ? 'l' : 'g',
                                weir__slice_str(list->names[i]));
    weir__resp_str(&bytes, "bounded");
    weir__resp_int(&bytes, list->left < PAGE ? (int64_t)list->left : PAGE);
    weir__resp_int(&bytes, list->named);
    weir__resp_int(&bytes, list->skip);
    weir__resp_int(&bytes, is_running);
    for (size_t i = 0; i < list->count; i++)
        weir__resp_str(&bytes, list->names[i]);
    weir__place_send(topic->base.place, &bytes, &weir__script_bounded_list,
                     WEIR__SEND_AGAIN | weir__send_bodies(list->left),
                     &list->request);
}

/* What is left of the groups, or the next ones, but for those whose name is
 * none. False: not an answer. */
static bool read_names(struct list_request *list,
                       const struct redisReply *reply)
{
    struct weir_slice group;
    int64_t done;

    if (!weir__reply_int(reply, DONE, &done) || done < 0 ||
        (size_t)done > list->count ||
        !weir__reply_int(reply, SKIP, &list->skip) ||
        !weir__reply_int(reply, NAMED, &list->named) ||
        reply->elements <= NAMES ||
        reply->element[NAMES]->type != REDIS_REPLY_ARRAY)
        return false;
    list->count -= (size_t)done;
    memmove(list->names[0], list->names[done],
            list->count * sizeof(list->names[0]));
    list->has_named = false;
    for (size_t i = 0; weir__reply_str(reply->element[NAMES], i, &group); i++) {
        char *name = list->names[list->count];

        list->has_named = true;
        if (list->count == NAMES_MAX)
            return false;
        if (!weir__group_is_sound(group))
            continue;
        memcpy(name, group.ptr, group.len);
        name[group.len] = '\0';
        list->count++;
    }
    return true;
}

static int read_page(struct list_request *list, const struct redisReply *reply)
{
    int64_t is_there;

    if (!weir__reply_int(reply, 0, &is_there))
        return WEIR_ESERVER;
    if (is_there < 0)
        return is_there == -1 ? WEIR_ENOTFOUND : WEIR_EKIND;
    if (!read_names(list, reply))
        return WEIR_ESERVER;
    show_lists(list, reply);
    return WEIR_OK;
}

static void on_listed(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct list_request *list =
        (struct list_request *)request; /* its first member */

    weir__topic_log_error(&list->topic->base, "list", code, reply);
    if (code == WEIR_OK)
        code = read_page(list, reply);
    if (code == WEIR_OK && (list->count > 0 || list->has_named) &&
        list->left > 0 && list->state != WEIR_JOB_SCHEDULED) {
        send_page(list);
        weir__place_flush(list->topic->base.place);
        return;
    }
    list->fn(code, NULL, list->arg);
    weir__mem_free(list);
}

/* No event is scheduled: those of a group that waits are ready. */
int weir__bounded_list(struct weir__store_topic *base,
                       const struct weir__list *what, weir_show_fn fn,
                       void *arg)
{
    struct weir__bounded_topic *topic = weir__bounded_topic_of(base);
    struct list_request *list;

    list = weir__mem_new(sizeof(*list));
    if (list == NULL)
        return WEIR_ENOMEM;
    list->request.done = on_listed;
    list->topic = topic;
    list->state = what->state;
    list->left = what->limit;
    list->fn = fn;
    list->arg = arg;
    if (!read_place(list, what->after)) {
        weir__mem_free(list);
        return WEIR_EINVAL;
    }
    send_page(list);
    return WEIR_OK;
}

/* --- deleting ----------------------------------------------------------- */

struct purge_request {
    struct weir__request request;
    struct weir__bounded_topic *topic;
    weir_count_fn fn;
    void *arg;
    uint64_t deleted;
};

/* How many groups are named behind the number of those deleted. */
static size_t count_names(const struct redisReply *reply)
{
    struct weir_slice group;
    size_t count = 0;

    while (weir__reply_str(reply, count + 1, &group))
        count++;
    return count;
}

static void send_purge(struct purge_request *purge,
                       const struct redisReply *names)
{
    struct weir__bounded_topic *topic = purge->topic;
    size_t count = names == NULL ? 0 : count_names(names);
    struct weir__buf bytes = {0};
    struct weir_slice group;

    weir__resp_eval(&bytes, &weir__script_bounded_purge, 7 + 2 * count,
                    2 + count);
    weir__prefix_keys(&bytes, &topic->base.prefix,
                      "rot hot lease out meta ttl");
    for (size_t i = 1; i <= count && weir__reply_str(names, i, &group); i++) {
        weir__bounded_group_key(&bytes, topic, 'g', group);
        weir__bounded_group_key(&bytes, topic, 'l', group);
    }
    weir__prefix_key(&bytes, &topic->base.prefix, "absent");
    weir__resp_str(&bytes, "bounded");
    weir__resp_int(&bytes, PURGE_GROUPS);
    for (size_t i = 1; i <= count && weir__reply_str(names, i, &group); i++)
        weir__resp_bytes(&bytes, group);
    weir__place_send(topic->base.place, &bytes, &weir__script_bounded_purge,
                     WEIR__SEND_AGAIN, &purge->request);
}

static void on_purged(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct purge_request *purge =
        (struct purge_request *)request; /* its first member */
    int64_t deleted = 0;

    weir__topic_log_error(&purge->topic->base, "purge", code, reply);
    if (code == WEIR_OK && !weir__reply_int(reply, 0, &deleted))
        code = WEIR_ESERVER;
    else if (code == WEIR_OK && deleted < 0)
        code = deleted == -1 ? WEIR_ENOTFOUND : WEIR_EKIND;
    if (code == WEIR_OK) {
        purge->deleted += (uint64_t)deleted;
        weir__topic_log_aside(&purge->topic->base, reply, 1);
        if (reply->elements > 1) {
            send_purge(purge, reply);
            weir__place_flush(purge->topic->base.place);
            return;
        }
    }
    purge->fn(code, purge->deleted, purge->arg);
    weir__mem_free(purge);
}

int weir__bounded_purge(struct weir__store_topic *base, enum weir__purge what,
                        weir_count_fn fn, void *arg)
{
    struct weir__bounded_topic *topic = weir__bounded_topic_of(base);
    struct purge_request *purge;

    if (what == WEIR__PURGE_DEAD)
        return WEIR_EKIND; /* none are kept */
    purge = weir__mem_new(sizeof(*purge));
    if (purge == NULL)
        return WEIR_ENOMEM;
    purge->request.done = on_purged;
    purge->topic = topic;
    purge->fn = fn;
    purge->arg = arg;
    send_purge(purge, NULL);
    return WEIR_OK;
}
