/* SPDX-License-Identifier: MIT */
#include "adapters/redis/delay/private.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Deleting in steps that each hold the server for a moment only: what waits,
 * what runs, what is dead. What waits or runs is found by reading names of
 * nodes; the script that deletes them is told their packs. */

enum {
    DEAD_STEP = 200,
    NODES = 32,         /* read at a time; as many packs at most */
    ADDED_MAX = 100000, /* deleted beyond what there was at the beginning */
    IDLE_STEPS = 1000   /* without any effect, before giving up */
};

struct purge {
    struct weir__request request;
    struct weir__delay_topic *topic;
    weir_count_fn fn;
    void *arg;
    int code;          /* of what is done */
    bool has_ticks;    /* of schedules */
    uint64_t count;    /* deleted so far */
    uint64_t most;     /* of them */
    bool is_running;   /* looking at what runs */
    int empty;         /* reads in a row that found nothing */
    int idle;          /* steps in a row that did nothing */
    int64_t latest_ms; /* who died later stays; 0: not known yet */
};

static void request_nodes(struct purge *purge);
static void request_dead(struct purge *purge);

static void end(struct purge *purge)
{
    purge->fn(purge->code, purge->count, purge->arg);
    weir__mem_free(purge);
}

static void on_mended(int code, uint64_t ticks, void *arg)
{
    struct purge *purge = arg;

    if (purge->code == WEIR_OK)
        purge->code = code;
    purge->count -= ticks < purge->count ? ticks : purge->count;
    end(purge);
}

/* Schedules go on: their ticks were no jobs that somebody added. */
static void finish(struct purge *purge, int code)
{
    purge->code = code;
    if (!purge->has_ticks || code == WEIR_ECANCELED ||
        weir__delay_mend_ticks(purge->topic, "odd", on_mended, purge) < 0)
        end(purge);
}

/* --- dead jobs ---------------------------------------------------------- */

static void on_dead(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    struct purge *purge = (struct purge *)request; /* its first member */
    int64_t count, has_more;

    weir__topic_log_error(&purge->topic->base, "purge", code, reply);
    if (code == WEIR_OK && !weir__reply_int(reply, 0, &count))
        code = WEIR_ESERVER;
    else if (code == WEIR_OK && count < 0)
        code = WEIR_ENOTFOUND;
    if (code == WEIR_OK && (!weir__reply_int(reply, 1, &has_more) ||
                            !weir__reply_int(reply, 2, &purge->latest_ms)))
        code = WEIR_ESERVER;
    if (code != WEIR_OK) {
        finish(purge, code);
        return;
    }
    purge->count += (uint64_t)count;
    if (has_more != 0)
        request_dead(purge);
    else
        finish(purge, WEIR_OK);
}

static void request_dead(struct purge *purge)
{
    struct weir__buf bytes = {0};

    purge->request.done = on_dead;
    weir__resp_eval(&bytes, &weir__script_delay_forget, 4, 2);
    weir__prefix_keys(&bytes, &purge->topic->base.prefix, "ids meta dead rec");
    if (purge->latest_ms == 0)
        weir__resp_str(&bytes, "");
    else
        weir__resp_int(&bytes, purge->latest_ms);
    weir__resp_int(&bytes, DEAD_STEP);
    weir__place_send(purge->topic->base.place, &bytes,
                     &weir__script_delay_forget, WEIR__SEND_AGAIN,
                     &purge->request);
}

/* --- what waits or runs ------------------------------------------------- */

static void on_purged(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct purge *purge = (struct purge *)request; /* its first member */
    int64_t count, aside = 0;

    weir__topic_log_error(&purge->topic->base, "purge", code, reply);
    if (code == WEIR_OK && (!weir__reply_int(reply, 0, &count) || count < 0))
        code = WEIR_ESERVER;
    if (!weir__reply_int(reply, 1, &aside) || aside < 0)
        aside = 0; /* as a rule */
    if (code != WEIR_OK) {
        finish(purge, code);
        return;
    }
    weir__topic_log_aside(&purge->topic->base, reply, 1);
    purge->count += (uint64_t)count;
    purge->idle = count > 0 || aside > 0 ? 0 : purge->idle + 1;
    if (purge->idle > IDLE_STEPS)
        finish(purge, WEIR_ESERVER);
    else if (purge->count >= purge->most)
        request_dead(purge);
    else
        request_nodes(purge);
}

/* How many of the names that were read make up one call. */
static size_t take_names(const struct redisReply *reply)
{
    size_t count = 0, slots = 0;
    struct weir_slice name;
    unsigned lo, hi;

    for (; count < NODES && weir__reply_str(reply, count, &name); count++) {
        if (weir__node_read(name, &lo, &hi) != WEIR_OK)
            continue; /* the script removes it */
        if (slots + hi - lo + 1 > WEIR__SLOTS_PER_CALL)
            break;
        slots += hi - lo + 1;
    }
    return count;
}

static void send_nodes(struct purge *purge, const struct redisReply *reply,
                       size_t count)
{
    const struct weir__prefix *prefix = &purge->topic->base.prefix;
    struct weir__buf bytes = {0};
    struct weir_slice name;
    unsigned lo, hi;

    WEIR_ASSERT(count > 0 && count <= NODES);
    purge->request.done = on_purged;
    weir__resp_eval(&bytes, &weir__script_delay_purge, 8 + count, count);
    weir__prefix_keys(&bytes, prefix, "wait run lease ids meta held due");
    for (size_t i = 0; i < count && weir__reply_str(reply, i, &name); i++)
        if (weir__node_read(name, &lo, &hi) == WEIR_OK)
            weir__prefix_pack(&bytes, prefix, (const char *)name.ptr);
        else
            weir__prefix_key(&bytes, prefix, "p:"); /* none is looked at */
    weir__prefix_key(&bytes, prefix, "absent");
    for (size_t i = 0; i < count && weir__reply_str(reply, i, &name); i++)
        weir__resp_bytes(&bytes, name);
    weir__place_send(purge->topic->base.place, &bytes,
                     &weir__script_delay_purge, WEIR__SEND_AGAIN,
                     &purge->request);
}

static void on_nodes(struct weir__request *request, int code,
                     const struct redisReply *reply)
{
    struct purge *purge = (struct purge *)request; /* its first member */
    size_t count;

    if (code == WEIR_OK && reply->type != REDIS_REPLY_ARRAY)
        code = WEIR_ESERVER;
    if (code != WEIR_OK) {
        finish(purge, code);
        return;
    }
    count = take_names(reply);
    if (count > 0) {
        purge->empty = 0;
        send_nodes(purge, reply, count);
        return;
    }
    /* What ran may wait again, and the other way round. */
    purge->is_running = !purge->is_running;
    purge->empty++;
    if (purge->empty == 3)
        request_dead(purge);
    else
        request_nodes(purge);
}

static void request_nodes(struct purge *purge)
{
    struct weir__buf bytes = {0};

    purge->request.done = on_nodes;
    weir__prefix_command(&bytes, &purge->topic->base.prefix, 4, "ZRANGE",
                         purge->is_running ? "run" : "wait");
    weir__resp_int(&bytes, 0);
    weir__resp_int(&bytes, NODES - 1);
    weir__place_send(purge->topic->base.place, &bytes, NULL, WEIR__SEND_AGAIN,
                     &purge->request);
}

/* --- the port ----------------------------------------------------------- */

static int64_t number_at(const struct redisReply *reply, size_t index)
{
    struct weir_slice text;

    return weir__reply_str(reply, index, &text) ? weir__digits_read(text) : 0;
}

/* Counters of the topic: what waits or runs is in none of the last three. */
static void on_counters(struct weir__request *request, int code,
                        const struct redisReply *reply)
{
    struct purge *purge = (struct purge *)request; /* its first member */
    struct weir_slice kind;
    int64_t present;

    if (code == WEIR_OK && !weir__reply_str(reply, 0, &kind))
        code = WEIR_ENOTFOUND;
    else if (code == WEIR_OK &&
             !weir__slice_equal(kind, weir__slice_str("delay")))
        code = WEIR_EKIND;
    if (code != WEIR_OK) {
        finish(purge, code);
        return;
    }
    present = number_at(reply, 1) + number_at(reply, 2) + number_at(reply, 3) +
              number_at(reply, 4) - number_at(reply, 5) - number_at(reply, 6) -
              number_at(reply, 7);
    purge->has_ticks = number_at(reply, 8) > 0;
    purge->most = (uint64_t)(present < 0 ? 0 : present) + ADDED_MAX;
    request_nodes(purge);
}

static void request_counters(struct purge *purge)
{
    static const char *const fields[] = {"kind",    "added",    "retried",
                                         "snoozed", "requeued", "settled",
                                         "delwait", "delrun",   "ticks"};
    enum { COUNT = sizeof(fields) / sizeof(fields[0]) };
    struct weir__buf bytes = {0};

    purge->request.done = on_counters;
    weir__prefix_command(&bytes, &purge->topic->base.prefix, 2 + COUNT, "HMGET",
                         "meta");
    for (size_t i = 0; i < COUNT; i++)
        weir__resp_str(&bytes, fields[i]);
    weir__place_send(purge->topic->base.place, &bytes, NULL, WEIR__SEND_AGAIN,
                     &purge->request);
}

int weir__delay_purge(struct weir__store_topic *topic, enum weir__purge what,
                      weir_count_fn fn, void *arg)
{
    struct purge *purge = weir__mem_new(sizeof(*purge));

    if (purge == NULL)
        return WEIR_ENOMEM;
    purge->topic = weir__delay_topic_of(topic);
    purge->fn = fn;
    purge->arg = arg;
    if (what == WEIR__PURGE_DEAD)
        request_dead(purge);
    else
        request_counters(purge);
    return WEIR_OK;
}
