/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/msgpack/scan.h"
#include "adapters/redis/delay/private.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Pages of jobs in one state, in the order of its sorted set: nodes and their
 * packs, or dead jobs and their records. delay/list.c shows them,
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
    weir__buf_fini(&pages->workers);
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

bool weir__page_is_passed(const struct weir__pages *pages,
                          const struct weir__member *node, unsigned slot)
{
    const struct weir__page_passed *passed = &pages->passed;

    return passed->is_there && node->score <= passed->score &&
           memcmp(pages->names.ptr + node->at, passed->seq, WEIR__SEQ_LEN) ==
               0 &&
           slot <= passed->slot;
}

static int64_t region_of(double score)
{
    return score >= (double)WEIR__LANED_MS   ? WEIR__LANED_MS
           : score >= (double)WEIR__MIXED_MS ? WEIR__MIXED_MS
                                             : 0;
}

/* Returns how many jobs the member has at most. */
static size_t add_member(struct weir__pages *pages, struct weir_slice name,
                         double score)
{
    struct weir__member *member = &pages->members[pages->count];
    unsigned lo = 0, hi = 0;

    WEIR_ASSERT(pages->count < WEIR__PAGE);
    if (pages->state != WEIR_JOB_DEAD &&
        (weir__node_read(name, &lo, &hi) != WEIR_OK ||
         !weir__seq_is_sound((const char *)name.ptr)))
        return 0; /* none of ours */
    *member = (struct weir__member){
        .at = pages->names.len, .len = name.len, .score = score};
    if (pages->state != WEIR_JOB_DEAD && pages->state != WEIR_JOB_RUNNING) {
        int64_t region = region_of(score);

        score -= (double)region;
        member->has_table = region == WEIR__MIXED_MS && hi > lo;
    }
    member->ms = (int64_t)score;
    member->crashes =
        (uint32_t)((score - (double)member->ms) * WEIR__NODE_STATES) / 2;
    weir__buf_append(&pages->names, name.ptr, name.len);
    if (!pages->names.failed && weir__page_is_passed(pages, member, hi)) {
        pages->names.len = member->at;
        return 0;
    }
    pages->count++;
    while (!pages->names.failed && weir__page_is_passed(pages, member, lo))
        lo++;
    return hi - lo + 1;
}

/* What is ready stands in plain packs up to the bound, then in mixed ones, then
 * in lanes. */
static bool is_beyond(const struct weir__pages *pages, double score)
{
    return (double)(int64_t)score > pages->bound + (double)pages->region;
}

void weir__page_place_behind(struct weir__page_place *place, double score,
                             struct weir_slice name)
{
    bool is_cut = name.len > WEIR_MAX_ID; /* none of ours */

    place->score = score;
    place->len = is_cut ? WEIR_MAX_ID : name.len;
    if (name.len > 0)
        memcpy(place->name, name.ptr, place->len);
    place->name[place->len++] = is_cut ? 0xff : 0;
}

static void read_members(struct weir__pages *pages,
                         const struct redisReply *reply)
{
    struct weir_slice name, score;
    size_t i = 1, jobs = 0;
    double ms;

    if (pages->bound <= 0 && weir__reply_str(reply, 0, &score) && score.len > 0)
        pages->bound = weir__score_read((const char *)score.ptr);
    while (pages->count < WEIR__PAGE && weir__reply_str(reply, i, &name) &&
           weir__reply_str(reply, i + 1, &score)) {
        i += 2;
        ms = weir__score_read((const char *)score.ptr);
        if (is_beyond(pages, ms)) {
            pages->is_last = true;
            return;
        }
        weir__page_place_behind(&pages->place,
                                strtod((const char *)score.ptr, NULL), name);
        jobs += add_member(pages, name, ms);
        if (jobs >= pages->left)
            return; /* more packs would be read in vain */
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

/* --- who runs them -------------------------------------------------------- */

struct weir_slice weir__worker_name(struct weir_slice noted)
{
    size_t len = 0;

    while (len < noted.len && noted.ptr[len] != '@' && noted.ptr[len] != ' ')
        len++;
    return weir__slice_of(noted.ptr, len <= WEIR_MAX_TOPIC ? len : 0);
}

/* Nodes of one claim stand together, at its token. */
static bool begins_claim(const struct weir__pages *pages, size_t index)
{
    return index == 0 ||
           pages->members[index].ms != pages->members[index - 1].ms;
}

/* Behind the nodes of a claim and their due times stand @WORKER, the time in ms
 * and the length of its lease (scripts/delay/held.lua). */
static void read_held(struct weir__pages *pages, struct weir__member *member,
                      struct weir_slice held)
{
    struct weir_value value, last[3] = {{0}};
    struct weir_slice name;
    size_t count, len;

    if (weir__msgpack_check(held) < 0)
        return;
    len = weir__msgpack_head(held, &value);
    count = value.type == WEIR_TYPE_ARRAY ? value.as.count : 0;
    for (size_t i = 0; i < count; i++) {
        held = weir__slice_of(held.ptr + len, held.len - len);
        last[0] = last[1];
        last[1] = last[2];
        (void)weir__msgpack_head(held, &last[2]);
        len = weir__msgpack_length(held);
    }
    if (last[0].type != WEIR_TYPE_STR || last[0].as.bytes.len < 2 ||
        last[0].as.bytes.ptr[0] != '@' || last[1].type != WEIR_TYPE_INT)
        return;
    name = weir__worker_name(
        weir__slice_of(last[0].as.bytes.ptr + 1, last[0].as.bytes.len - 1));
    member->worker = pages->workers.len;
    member->worker_len = name.len;
    member->claimed_ms = last[1].as.i64;
    weir__buf_append(&pages->workers, name.ptr, name.len);
}

/* Where somebody else wrote the key, nothing is told. */
static void on_held(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    struct weir__pages *pages = (struct weir__pages *)request; /* its first */
    struct weir_slice held;
    size_t next = 0;

    if (code != WEIR_OK && reply == NULL) {
        pages->end(pages, code);
        return;
    }
    for (size_t i = 0; i < pages->count; i++) {
        struct weir__member *member = &pages->members[i];

        if (begins_claim(pages, i) && weir__reply_str(reply, next++, &held)) {
            read_held(pages, member, held);
        } else if (!begins_claim(pages, i)) {
            member->worker = member[-1].worker;
            member->worker_len = member[-1].worker_len;
            member->claimed_ms = member[-1].claimed_ms;
        }
    }
    if (pages->workers.failed)
        pages->end(pages, WEIR_ENOMEM);
    else
        weir__pages_fetch(pages);
}

static void request_held(struct weir__pages *pages)
{
    struct weir__buf bytes = {0};
    size_t claims = 0;

    weir__buf_reset(&pages->workers);
    for (size_t i = 0; i < pages->count; i++)
        claims += begins_claim(pages, i);
    weir__prefix_command(&bytes, &pages->topic->base.prefix, 2 + claims,
                         "HMGET", "held");
    for (size_t i = 0; i < pages->count; i++)
        if (begins_claim(pages, i))
            weir__resp_int(&bytes, pages->members[i].ms);
    send_command(pages, &bytes, on_held);
}

/* --- which they are ------------------------------------------------------- */

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
    else if (pages->state == WEIR_JOB_RUNNING)
        request_held(pages);
    else if (tables_wanted(pages) > 0)
        request_tables(pages);
    else
        weir__pages_fetch(pages);
}

/* From the first member that stands at a score, or above. */
static void place_at(struct weir__pages *pages, int64_t score)
{
    pages->place.score = (double)score;
    pages->place.len = 0;
}

static void request_page(struct weir__pages *pages)
{
    static const char *const keys[] = {
        [WEIR_JOB_SCHEDULED] = "wait",
        [WEIR_JOB_READY] = "wait",
        [WEIR_JOB_RUNNING] = "run",
        [WEIR_JOB_DEAD] = "dead",
    };
    struct weir__buf bytes = {0};
    char score[32];

    pages->count = 0;
    weir__buf_reset(&pages->names);
    pages->wanted = pages->left < pages->most ? pages->left : pages->most;
    (void)snprintf(score, sizeof(score), "%.17g",
                   pages->place.score); /* fits */
    weir__resp_eval(&bytes, &weir__script_delay_page, 1, 3);
    weir__prefix_key(&bytes, &pages->topic->base.prefix, keys[pages->state]);
    weir__resp_str(&bytes, score);
    weir__resp_bytes(&bytes,
                     weir__slice_of(pages->place.name, pages->place.len));
    weir__resp_int(&bytes, (int64_t)pages->wanted);
    pages->request.done = on_members;
    weir__place_send(pages->topic->base.place, &bytes, &weir__script_delay_page,
                     WEIR__SEND_AGAIN, &pages->request);
}

void weir__pages_next(struct weir__pages *pages)
{
    if (pages->is_last && pages->left > 0 && pages->region < WEIR__LANED_MS &&
        pages->state == WEIR_JOB_READY) {
        pages->region = pages->region == 0 ? WEIR__MIXED_MS : WEIR__LANED_MS;
        pages->is_last = false;
        place_at(pages, pages->region);
    }
    if (pages->is_last || pages->left == 0)
        pages->end(pages, WEIR_OK);
    else
        request_page(pages);
}

/* --- where to begin ------------------------------------------------------- */

static void on_time(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    struct weir__pages *pages = (struct weir__pages *)request; /* its first */

    if (!is_answer(pages, code, reply, REDIS_REPLY_ARRAY))
        return;
    if (!weir__reply_clock(reply, &pages->now_ms)) {
        pages->end(pages, WEIR_ESERVER);
        return;
    }
    if (pages->bound <= 0 &&
        (pages->state == WEIR_JOB_READY || pages->state == WEIR_JOB_DEAD))
        pages->bound = (double)pages->now_ms;
    if (!pages->is_placed)
        place_at(pages,
                 pages->state == WEIR_JOB_SCHEDULED ? pages->now_ms + 1 : 0);
    if (pages->state == WEIR_JOB_READY)
        pages->region = region_of(pages->place.score);
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
