/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/delay/private.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Pages of jobs in one state, in the order of its sorted set: nodes and their
 * packs, or dead jobs and their records. Lists are made of them here;
 * delay/requeue.c writes them anew. */

enum {
    FIRST_PAGE = 8, /* before it is known how large packs and records are */
    PAGE_BYTES = 4 * 1024 * 1024
};

struct weir_slice weir__page_name(const struct weir__pages *pages, size_t index)
{
    const struct weir__member *member = &pages->members[index];

    return weir__slice_of(pages->names.ptr + member->at, member->len);
}

void weir__pages_fini(struct weir__pages *pages)
{
    weir__buf_fini(&pages->names);
    weir__buf_fini(&pages->tables);
}

static void send_command(struct weir__pages *pages, struct weir__buf *bytes,
                         void (*done)(struct weir__request *, int,
                                      const struct redisReply *))
{
    pages->request.done = done;
    weir__place_send(pages->topic->base.place, bytes, NULL,
                     WEIR__SEND_AGAIN | weir__send_bodies(pages->count),
                     &pages->request);
}

/* False: that was the end. */
static bool is_answer(struct weir__pages *pages, int code,
                      const struct redisReply *reply, int type)
{
    if (code == WEIR_OK && reply->type != type)
        code = WEIR_ESERVER;
    if (code != WEIR_OK)
        pages->end(pages, code);
    return code == WEIR_OK;
}

/* --- packs and records ---------------------------------------------------- */

static void on_bodies(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct weir__pages *pages = (struct weir__pages *)request; /* its first */
    struct weir_slice body;
    size_t total = 0;

    if (!is_answer(pages, code, reply, REDIS_REPLY_ARRAY))
        return;
    for (size_t i = 0; i < pages->count; i++)
        if (weir__reply_str(reply, i, &body))
            total += body.len;
    total = PAGE_BYTES / (total / pages->count + 1);
    pages->most = total < 1 ? 1 : total > WEIR__PAGE ? WEIR__PAGE : total;
    pages->read(pages, reply);
}

void weir__pages_fetch(struct weir__pages *pages)
{
    const struct weir__prefix *prefix = &pages->topic->base.prefix;
    struct weir__buf bytes = {0};

    if (pages->state == WEIR_JOB_DEAD) {
        weir__prefix_command(&bytes, prefix, 2 + pages->count, "HMGET", "rec");
        for (size_t i = 0; i < pages->count; i++)
            weir__resp_bytes(&bytes, weir__page_name(pages, i));
    } else {
        weir__resp_command(&bytes, 1 + pages->count);
        weir__resp_str(&bytes, "MGET");
        for (size_t i = 0; i < pages->count; i++)
            weir__prefix_pack(&bytes, prefix,
                              (const char *)weir__page_name(pages, i).ptr);
    }
    send_command(pages, &bytes, on_bodies);
}

/* --- members -------------------------------------------------------------- */

/* A time that only somebody else can have written is moved to a bound. */
double weir__score_read(const char *text)
{
    double score = strtod(text, NULL);

    return score < 0 ? 0 : score < 9e15 ? score : 9e15;
}

static void add_member(struct weir__pages *pages, struct weir_slice name,
                       double score)
{
    struct weir__member *member = &pages->members[pages->count];
    unsigned lo = 0, hi = 0;

    if (pages->state != WEIR_JOB_DEAD &&
        (weir__node_read(name, &lo, &hi) != WEIR_OK ||
         !weir__seq_is_sound((const char *)name.ptr)))
        return; /* none of ours */
    *member = (struct weir__member){.at = pages->names.len, .len = name.len};
    if (score >= (double)WEIR__MIXED_MS && pages->state != WEIR_JOB_DEAD &&
        pages->state != WEIR_JOB_RUNNING) {
        score -= (double)WEIR__MIXED_MS;
        member->has_table = hi > lo;
    }
    member->ms = (int64_t)score;
    member->crashes =
        (uint32_t)((score - (double)member->ms) * WEIR__NODE_STATES) / 2;
    weir__buf_append(&pages->names, name.ptr, name.len);
    pages->count++;
}

/* Behind what is ready now: of plain packs, then of mixed ones. */
static bool is_beyond(const struct weir__pages *pages, double score)
{
    if (!pages->is_bounded)
        return false;
    return (int64_t)score >
           pages->now_ms + (pages->in_mixed ? WEIR__MIXED_MS : 0);
}

static void read_members(struct weir__pages *pages,
                         const struct redisReply *reply)
{
    struct weir_slice name, score;
    size_t i = 0;
    double ms;

    while (pages->count < WEIR__PAGE && weir__reply_str(reply, i, &name) &&
           weir__reply_str(reply, i + 1, &score)) {
        i += 2;
        pages->rank++;
        ms = weir__score_read((const char *)score.ptr);
        if (is_beyond(pages, ms)) {
            pages->is_last = true;
            return;
        }
        add_member(pages, name, ms);
    }
    pages->is_last = i / 2 < pages->wanted;
}

/* --- tables --------------------------------------------------------------- */

static void on_tables(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct weir__pages *pages = (struct weir__pages *)request; /* its first */
    struct weir_slice table;
    size_t next = 0;
    unsigned lo, hi;

    if (!is_answer(pages, code, reply, REDIS_REPLY_ARRAY))
        return;
    for (size_t i = 0; i < pages->count; i++) {
        struct weir__member *member = &pages->members[i];

        if (!member->has_table)
            continue;
        member->has_table =
            weir__reply_str(reply, next++, &table) &&
            weir__node_read(weir__page_name(pages, i), &lo, &hi) == WEIR_OK &&
            table.len >= weir__table_len(hi + 1);
        member->table = pages->tables.len;
        if (member->has_table)
            weir__buf_append(&pages->tables, table.ptr, table.len);
    }
    if (pages->tables.failed)
        pages->end(pages, WEIR_ENOMEM);
    else
        weir__pages_fetch(pages);
}

static size_t tables_wanted(const struct weir__pages *pages)
{
    size_t count = 0;

    for (size_t i = 0; i < pages->count; i++)
        count += pages->members[i].has_table;
    return count;
}

static void request_tables(struct weir__pages *pages)
{
    struct weir__buf bytes = {0};

    weir__buf_reset(&pages->tables);
    weir__prefix_command(&bytes, &pages->topic->base.prefix,
                         2 + tables_wanted(pages), "HMGET", "due");
    for (size_t i = 0; i < pages->count; i++)
        if (pages->members[i].has_table)
            weir__resp_bytes(
                &bytes,
                weir__slice_of(weir__page_name(pages, i).ptr, WEIR__SEQ_LEN));
    send_command(pages, &bytes, on_tables);
}

static void on_members(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct weir__pages *pages = (struct weir__pages *)request; /* its first */

    if (!is_answer(pages, code, reply, REDIS_REPLY_ARRAY))
        return;
    read_members(pages, reply);
    if (pages->names.failed)
        pages->end(pages, WEIR_ENOMEM);
    else if (pages->count == 0)
        weir__pages_next(pages);
    else if (tables_wanted(pages) > 0)
        request_tables(pages);
    else
        weir__pages_fetch(pages);
}

static void request_rank(struct weir__pages *pages, int64_t bound);

/* Where those of mixed packs begin. */
static void begin_mixed(struct weir__pages *pages)
{
    pages->in_mixed = true;
    pages->is_last = false;
    request_rank(pages, WEIR__MIXED_MS);
}

void weir__pages_next(struct weir__pages *pages)
{
    static const char *const keys[] = {
        [WEIR_JOB_SCHEDULED] = "wait",
        [WEIR_JOB_READY] = "wait",
        [WEIR_JOB_RUNNING] = "run",
        [WEIR_JOB_DEAD] = "dead",
    };
    struct weir__buf bytes = {0};

    if (pages->is_last && pages->left > 0 && !pages->in_mixed &&
        pages->state == WEIR_JOB_READY) {
        begin_mixed(pages);
        return;
    }
    if (pages->is_last || pages->left == 0) {
        pages->end(pages, WEIR_OK);
        return;
    }
    pages->count = 0;
    weir__buf_reset(&pages->names);
    pages->wanted = pages->left < pages->most ? pages->left : pages->most;
    weir__prefix_command(&bytes, &pages->topic->base.prefix, 5, "ZRANGE",
                         keys[pages->state]);
    weir__resp_int(&bytes, (int64_t)pages->rank);
    weir__resp_int(&bytes, (int64_t)(pages->rank + pages->wanted) - 1);
    weir__resp_str(&bytes, "WITHSCORES");
    send_command(pages, &bytes, on_members);
}

/* --- where to begin ------------------------------------------------------- */

static void on_rank(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    struct weir__pages *pages = (struct weir__pages *)request; /* its first */

    if (!is_answer(pages, code, reply, REDIS_REPLY_INTEGER))
        return;
    pages->rank = (size_t)reply->integer;
    weir__pages_next(pages);
}

/* Behind what is below a score. */
static void request_rank(struct weir__pages *pages, int64_t bound)
{
    struct weir__buf bytes = {0};
    char text[32];
    int len = snprintf(text, sizeof(text), "(%" PRId64, bound);

    WEIR_ASSERT(len > 0 && (size_t)len < sizeof(text));
    weir__prefix_command(&bytes, &pages->topic->base.prefix, 4, "ZCOUNT",
                         "wait");
    weir__resp_str(&bytes, "-inf");
    weir__resp_str(&bytes, text);
    send_command(pages, &bytes, on_rank);
}

static void on_time(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    struct weir__pages *pages = (struct weir__pages *)request; /* its first */

    if (!is_answer(pages, code, reply, REDIS_REPLY_ARRAY))
        return;
    if (!weir__reply_clock(reply, &pages->now_ms))
        pages->end(pages, WEIR_ESERVER);
    else if (pages->state == WEIR_JOB_SCHEDULED) /* where ready ends */
        request_rank(pages, pages->now_ms + 1);
    else
        weir__pages_next(pages);
}

static void on_exists(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct weir__pages *pages = (struct weir__pages *)request; /* its first */
    struct weir__buf bytes = {0};

    if (!is_answer(pages, code, reply, REDIS_REPLY_INTEGER))
        return;
    if (reply->integer == 0) {
        pages->end(pages, WEIR_ENOTFOUND);
        return;
    }
    weir__resp_command(&bytes, 1);
    weir__resp_str(&bytes, "TIME");
    send_command(pages, &bytes, on_time);
}

void weir__pages_begin(struct weir__pages *pages)
{
    struct weir__buf bytes = {0};

    pages->most = FIRST_PAGE;
    weir__prefix_command(&bytes, &pages->topic->base.prefix, 2, "EXISTS",
                         "meta");
    send_command(pages, &bytes, on_exists);
}

/* --- lists ---------------------------------------------------------------- */

struct listing {
    struct weir__pages pages; /* first */
    weir_show_fn fn;
    void *arg;
};

static void end_list(struct weir__pages *pages, int code)
{
    struct listing *listing = (struct listing *)pages; /* its first member */

    listing->fn(code, NULL, listing->arg);
    weir__pages_fini(pages);
    weir__mem_free(listing);
}

static int64_t due_ms_of(const struct weir__pages *pages,
                         const struct weir__member *node, size_t slot)
{
    return !node->has_table
               ? node->ms
               : weir__table_due_ms(pages->tables.ptr + node->table, slot);
}

/* Of a mixed pack's node some slots may be ready and others not. */
static bool is_in_state(const struct weir__pages *pages, int64_t due_ms)
{
    return pages->state == WEIR_JOB_RUNNING ||
           (pages->state == WEIR_JOB_READY) == (due_ms <= pages->now_ms);
}

static void show_slot(const struct listing *listing,
                      const struct weir__member *node,
                      const struct weir__pack *pack, size_t slot,
                      struct weir_slice id)
{
    const struct weir__pages *pages = &listing->pages;
    struct weir_job_info info = {
        .id = id,
        .state = pages->state,
        .due_ms = pages->state == WEIR_JOB_RUNNING
                      ? -1
                      : due_ms_of(pages, node, slot),
    };
    char made[WEIR__MADE_ID_LEN + 1];

    if (weir__job_read(weir__pack_record(pack, slot), &info) != WEIR_OK)
        return; /* of a newer version: left alone */
    info.counters.crashes += node->crashes;
    if (id.len == 0) {
        weir__made_id((const char *)pages->names.ptr + node->at, (unsigned)slot,
                      made);
        info.id = weir__slice_of(made, WEIR__MADE_ID_LEN);
    }
    listing->fn(WEIR_OK, &info, listing->arg);
}

static void show_node(struct listing *listing, size_t index,
                      struct weir_slice bytes)
{
    struct weir_slice ids[WEIR__SLOTS_MAX] = {{0}};
    struct weir__pages *pages = &listing->pages;
    struct weir__pack pack;
    unsigned lo, hi;

    if (weir__pack_read(bytes, &pack) != WEIR_OK ||
        weir__node_read(weir__page_name(pages, index), &lo, &hi) != WEIR_OK)
        return;
    if (pack.has_ids)
        weir__pack_ids(&pack, ids);
    for (size_t slot = lo; slot <= hi && slot < pack.count; slot++) {
        const struct weir__member *node = &pages->members[index];

        if (pages->left == 0)
            return;
        if (!is_in_state(pages, due_ms_of(pages, node, slot)))
            continue;
        pages->left--;
        show_slot(listing, node, &pack, slot, ids[slot]);
    }
}

static void show_dead(struct listing *listing, size_t index,
                      struct weir_slice record)
{
    struct weir__pages *pages = &listing->pages;
    struct weir_job_info info = {
        .id = weir__page_name(pages, index),
        .state = WEIR_JOB_DEAD,
        .due_ms = pages->members[index].ms,
    };

    pages->left--;
    if (!weir__id_is_sound(info.id))
        info.id = weir__slice_str("unreadable");
    if (weir__job_read(record, &info) != WEIR_OK)
        info.reason = weir__slice_str("malformed");
    listing->fn(WEIR_OK, &info, listing->arg);
}

static void show_page(struct weir__pages *pages,
                      const struct redisReply *bodies)
{
    struct listing *listing = (struct listing *)pages; /* its first member */
    struct weir_slice body;

    for (size_t i = 0; i < pages->count; i++) {
        if (!weir__reply_str(bodies, i, &body))
            continue; /* it left in between */
        if (pages->state == WEIR_JOB_DEAD)
            show_dead(listing, i, body);
        else
            show_node(listing, i, body);
    }
    weir__pages_next(pages);
}

int weir__delay_list(struct weir__store_topic *topic, enum weir_job_state state,
                     size_t limit, weir_show_fn fn, void *arg)
{
    struct listing *listing = weir__mem_new(sizeof(*listing));

    if (listing == NULL)
        return WEIR_ENOMEM;
    listing->fn = fn;
    listing->arg = arg;
    listing->pages.topic = weir__delay_topic_of(topic);
    listing->pages.state = state;
    listing->pages.is_bounded = state == WEIR_JOB_READY;
    listing->pages.left = limit;
    listing->pages.read = show_page;
    listing->pages.end = end_list;
    weir__pages_begin(&listing->pages);
    return WEIR_OK;
}

int weir__delay_dead(struct weir__store_topic *topic, size_t limit,
                     weir_show_fn fn, void *arg)
{
    return weir__delay_list(topic, WEIR_JOB_DEAD, limit, fn, arg);
}
