/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/delay/private.h"
#include "core/assert.h"
#include "core/mem.h"

/* Listing jobs that are scheduled, ready or running: pages of nodes in the
 * order of their sorted set, then the packs of a page. */

enum {
    PAGE = 100,
    FIRST_PAGE = 8, /* before it is known how large packs are */
    PAGE_BYTES = 4 * 1024 * 1024
};

struct page_node {
    char name[WEIR__NODE_LEN];
    int64_t score; /* without its fraction */
    uint32_t crashes;
};

struct listing {
    struct weir__request request;
    struct weir__delay_topic *topic;
    enum weir_job_state state;
    weir_show_fn fn;
    void *arg;
    size_t left;    /* of the limit */
    int64_t now_ms; /* server time when it began */
    size_t rank;    /* of the next page */
    size_t page;    /* how many nodes to read */
    bool is_last;
    size_t count; /* nodes of this page */
    struct page_node nodes[PAGE];
};

static void request_page(struct listing *listing);

static void finish(struct listing *listing, int code)
{
    listing->fn(code, NULL, listing->arg);
    weir__mem_free(listing);
}

/* --- packs -------------------------------------------------------------- */

static void show_slot(const struct listing *listing,
                      const struct page_node *node,
                      const struct weir__pack *pack, size_t slot,
                      const struct weir_slice *ids)
{
    bool is_running = listing->state == WEIR_JOB_RUNNING;
    struct weir_job_info info = {
        .state = listing->state,
        .due_ms = is_running ? -1 : node->score,
    };
    char made[WEIR__MADE_ID_LEN + 1];

    if (weir__job_read(weir__pack_record(pack, slot), &info) != WEIR_OK)
        return; /* of a newer version: left alone */
    info.counters.crashes += node->crashes;
    if (ids != NULL && ids[slot].len > 0) {
        info.id = ids[slot];
    } else {
        weir__made_id(node->name, (unsigned)slot, made);
        info.id = (struct weir_slice){(const uint8_t *)made, WEIR__MADE_ID_LEN};
    }
    listing->fn(WEIR_OK, &info, listing->arg);
}

static void show_node(struct listing *listing, const struct page_node *node,
                      struct weir_slice bytes)
{
    struct weir_slice ids[WEIR__SLOTS_MAX];
    struct weir__pack pack;
    unsigned lo, hi;

    if (weir__pack_read(bytes, &pack) != WEIR_OK ||
        weir__node_read(
            (struct weir_slice){(const uint8_t *)node->name, WEIR__NODE_LEN},
            &lo, &hi) != WEIR_OK)
        return;
    if (pack.has_ids)
        weir__pack_ids(&pack, ids);
    for (size_t slot = lo; slot <= hi && slot < pack.count; slot++) {
        if (listing->left == 0)
            return;
        listing->left--;
        show_slot(listing, node, &pack, slot, pack.has_ids ? ids : NULL);
    }
}

static void on_packs(struct weir__request *request, int code,
                     const struct redisReply *reply)
{
    struct listing *listing = (struct listing *)request; /* its first member */
    struct weir_slice bytes;
    size_t total = 0;

    if (code == WEIR_OK && reply->type != REDIS_REPLY_ARRAY)
        code = WEIR_ESERVER;
    for (size_t i = 0; i < listing->count && code == WEIR_OK; i++) {
        if (!weir__reply_str(reply, i, &bytes))
            continue; /* settled in between */
        total += bytes.len;
        show_node(listing, &listing->nodes[i], bytes);
    }
    if (code != WEIR_OK || listing->is_last || listing->left == 0) {
        finish(listing, code);
        return;
    }
    total = PAGE_BYTES / (total / listing->count + 1);
    listing->page = total < 1 ? 1 : total > PAGE ? PAGE : total;
    request_page(listing);
}

/* --- nodes -------------------------------------------------------------- */

/* Ready ends where scheduled begins. */
static bool is_of_state(const struct listing *listing, int64_t score)
{
    return listing->state != WEIR_JOB_READY || score <= listing->now_ms;
}

/* False: not one of ours. */
static bool read_node(const struct redisReply *reply, size_t index,
                      struct page_node *node)
{
    struct weir_slice name, score;
    unsigned lo, hi;
    double value;

    if (!weir__reply_str(reply, index, &name) ||
        !weir__reply_str(reply, index + 1, &score) ||
        weir__node_read(name, &lo, &hi) != WEIR_OK ||
        !weir__seq_is_sound((const char *)name.ptr))
        return false;
    value = strtod((const char *)score.ptr, NULL);
    if (!(value >= 0 && value < 9e15))
        return false;
    memcpy(node->name, name.ptr, sizeof(node->name));
    node->score = (int64_t)value;
    node->crashes =
        (uint32_t)((value - (double)node->score) * WEIR__NODE_STATES) / 2;
    return true;
}

static void read_nodes(struct listing *listing, const struct redisReply *reply)
{
    size_t all = (size_t)reply->elements / 2;

    listing->count = 0;
    listing->is_last = all < listing->page;
    for (size_t i = 0; i < all && listing->count < PAGE; i++) {
        struct page_node *node = &listing->nodes[listing->count];

        listing->rank++;
        if (!read_node(reply, 2 * i, node))
            continue;
        if (!is_of_state(listing, node->score)) {
            listing->is_last = true;
            return;
        }
        listing->count++;
    }
}

static void on_nodes(struct weir__request *request, int code,
                     const struct redisReply *reply)
{
    struct listing *listing = (struct listing *)request; /* its first member */
    struct weir__buf bytes = {0};

    if (code == WEIR_OK && reply->type != REDIS_REPLY_ARRAY)
        code = WEIR_ESERVER;
    if (code == WEIR_OK)
        read_nodes(listing, reply);
    if (code != WEIR_OK || (listing->count == 0 && listing->is_last)) {
        finish(listing, code);
        return;
    }
    if (listing->count == 0) {
        request_page(listing);
        return;
    }
    listing->request.done = on_packs;
    weir__resp_command(&bytes, 1 + listing->count);
    weir__resp_str(&bytes, "MGET");
    for (size_t i = 0; i < listing->count; i++)
        weir__prefix_pack(&bytes, &listing->topic->base.prefix,
                          listing->nodes[i].name);
    weir__redis_send(listing->topic->base.store, &bytes, NULL,
                     WEIR__SEND_AGAIN | weir__send_bodies(listing->count),
                     &listing->request);
}

static void request_page(struct listing *listing)
{
    size_t count =
        listing->left < listing->page ? listing->left : listing->page;
    struct weir__buf bytes = {0};

    listing->page = count;
    listing->request.done = on_nodes;
    weir__resp_command(&bytes, 5);
    weir__resp_str(&bytes, "ZRANGE");
    weir__prefix_key(&bytes, &listing->topic->base.prefix,
                     listing->state == WEIR_JOB_RUNNING ? "run" : "wait");
    weir__resp_int(&bytes, (int64_t)listing->rank);
    weir__resp_int(&bytes, (int64_t)(listing->rank + count) - 1);
    weir__resp_str(&bytes, "WITHSCORES");
    weir__redis_send(listing->topic->base.store, &bytes, NULL, WEIR__SEND_AGAIN,
                     &listing->request);
}

/* --- where to begin ----------------------------------------------------- */

static void on_rank(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    struct listing *listing = (struct listing *)request; /* its first member */

    if (code == WEIR_OK && reply->type != REDIS_REPLY_INTEGER)
        code = WEIR_ESERVER;
    if (code != WEIR_OK) {
        finish(listing, code);
        return;
    }
    listing->rank = (size_t)reply->integer;
    request_page(listing);
}

static void request_rank(struct listing *listing)
{
    struct weir__buf bytes = {0};
    char bound[32];
    int len = snprintf(bound, sizeof(bound), "(%" PRId64, listing->now_ms + 1);

    WEIR_ASSERT(len > 0 && (size_t)len < sizeof(bound));
    listing->request.done = on_rank;
    weir__resp_command(&bytes, 4);
    weir__resp_str(&bytes, "ZCOUNT");
    weir__prefix_key(&bytes, &listing->topic->base.prefix, "wait");
    weir__resp_str(&bytes, "-inf");
    weir__resp_str(&bytes, bound);
    weir__redis_send(listing->topic->base.store, &bytes, NULL, WEIR__SEND_AGAIN,
                     &listing->request);
}

static void on_time(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    struct listing *listing = (struct listing *)request; /* its first member */

    if (code == WEIR_OK && !weir__reply_clock(reply, &listing->now_ms))
        code = WEIR_ESERVER;
    if (code != WEIR_OK) {
        finish(listing, code);
        return;
    }
    if (listing->state == WEIR_JOB_SCHEDULED)
        request_rank(listing);
    else
        request_page(listing);
}

static void on_exists(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct listing *listing = (struct listing *)request; /* its first member */
    struct weir__buf bytes = {0};

    if (code == WEIR_OK && reply->type == REDIS_REPLY_INTEGER &&
        reply->integer == 0)
        code = WEIR_ENOTFOUND;
    if (code != WEIR_OK || listing->left == 0) {
        finish(listing, code);
        return;
    }
    listing->request.done = on_time;
    weir__resp_command(&bytes, 1);
    weir__resp_str(&bytes, "TIME");
    weir__redis_send(listing->topic->base.store, &bytes, NULL, WEIR__SEND_AGAIN,
                     &listing->request);
}

int weir__delay_list(struct weir__store_topic *base, enum weir_job_state state,
                     size_t limit, weir_show_fn fn, void *arg)
{
    struct weir__delay_topic *topic = weir__delay_topic_of(base);
    struct weir__buf bytes = {0};
    struct listing *listing;

    WEIR_ASSERT(state != WEIR_JOB_DEAD);
    if (topic->base.store->is_closed)
        return WEIR_ECANCELED;
    listing = weir__mem_new(sizeof(*listing));
    if (listing == NULL)
        return WEIR_ENOMEM;
    listing->request.done = on_exists;
    listing->topic = topic;
    listing->state = state;
    listing->fn = fn;
    listing->arg = arg;
    listing->left = limit;
    listing->page = FIRST_PAGE;
    weir__resp_command(&bytes, 2);
    weir__resp_str(&bytes, "EXISTS");
    weir__prefix_key(&bytes, &topic->base.prefix, "meta");
    weir__redis_send(topic->base.store, &bytes, NULL, WEIR__SEND_AGAIN,
                     &listing->request);
    return WEIR_OK;
}
