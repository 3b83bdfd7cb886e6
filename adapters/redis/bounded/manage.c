/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/bounded/private.h"
#include "core/mem.h"
#include "core/text.h"

/* Counts of a topic, and deleting what is in it. */

enum { PURGE_GROUPS = 200 }; /* of one list, named by one call */

/* --- statistics --------------------------------------------------------- */

static int read_stats(struct weir__stats_request *request,
                      const struct redisReply *reply)
{
    int rc = weir__stats_read(request, reply);

    return rc == WEIR_OK && strcmp(request->kind, "bounded") != 0 ? WEIR_EKIND
                                                                  : rc;
}

int weir__bounded_stats(struct weir__store_topic *topic, weir_stats_fn fn,
                        void *arg)
{
    struct weir__buf bytes = {0};
    struct weir__stats_request *stats;
    int rc = weir__stats_new(topic, read_stats, fn, arg, &stats);

    if (rc != WEIR_OK)
        return rc;
    weir__resp_eval(&bytes, &weir__script_bounded_stats, 1, 0);
    weir__prefix_key(&bytes, &topic->prefix, "meta");
    weir__redis_send(topic->store, &bytes, &weir__script_bounded_stats,
                     WEIR__SEND_AGAIN, &stats->request);
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

    weir__resp_eval(&bytes, &weir__script_bounded_purge, 6 + 2 * count,
                    2 + count);
    weir__prefix_keys(&bytes, &topic->base.prefix,
                      "rot hot lease out meta ttl");
    for (size_t i = 1; i <= count && weir__reply_str(names, i, &group); i++) {
        weir__bounded_group_key(&bytes, topic, 'g', group);
        weir__bounded_group_key(&bytes, topic, 'l', group);
    }
    weir__resp_str(&bytes, "bounded");
    weir__resp_int(&bytes, PURGE_GROUPS);
    for (size_t i = 1; i <= count && weir__reply_str(names, i, &group); i++)
        weir__resp_bytes(&bytes, group);
    weir__redis_send(topic->base.store, &bytes, &weir__script_bounded_purge,
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
            weir__conn_flush(purge->topic->base.store->commands);
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
    if (topic->base.store->is_closed)
        return WEIR_ECANCELED;
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
