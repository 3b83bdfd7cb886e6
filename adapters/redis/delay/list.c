/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/delay/private.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Jobs in one state, shown one after the other. */

struct listing {
    struct weir__pages pages; /* first */
    weir_show_fn fn;
    void *arg;
    char place[WEIR_MAX_PLACE + 1]; /* of the job that is shown */
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

/* --- places --------------------------------------------------------------- */

/* STATE SCORE,BOUND:NAME without the blank, STATE being a digit: the name is
 * that of a pack and a slot in two hexadecimal digits, or the bytes of a dead
 * job's id, two digits each. */

static struct weir_slice put_place(struct listing *listing,
                                   const struct weir__member *member,
                                   struct weir_slice name)
{
    const struct weir__pages *pages = &listing->pages;
    int len = snprintf(listing->place, sizeof(listing->place),
                       "%d%.17g,%.17g:", (int)pages->state, member->score,
                       pages->bound);

    WEIR_ASSERT(len > 0 && (size_t)len + name.len < sizeof(listing->place));
    memcpy(listing->place + len, name.ptr, name.len);
    return weir__slice_of(listing->place, (size_t)len + name.len);
}

static struct weir_slice slot_place(struct listing *listing,
                                    const struct weir__member *node,
                                    size_t slot)
{
    char name[WEIR__SEQ_LEN + 3];

    memcpy(name, listing->pages.names.ptr + node->at, WEIR__SEQ_LEN);
    (void)snprintf(name + WEIR__SEQ_LEN, 3, "%02x", (unsigned)slot & 0xff);
    return put_place(listing, node, weir__slice_of(name, WEIR__SEQ_LEN + 2));
}

static struct weir_slice dead_place(struct listing *listing,
                                    const struct weir__member *member)
{
    struct weir__page_place place;
    char name[2 * sizeof(place.name) + 1];

    weir__page_place_behind(
        &place, 0,
        weir__slice_of(listing->pages.names.ptr + member->at, member->len));
    for (size_t i = 0; i < place.len; i++)
        (void)snprintf(name + 2 * i, 3, "%02x", place.name[i]);
    return put_place(listing, member, weir__slice_of(name, 2 * place.len));
}

static bool read_hex(const char *text, uint8_t *ret_byte)
{
    int high = weir__hex_digit(text[0]), low = -1;

    if (high >= 0)
        low = weir__hex_digit(text[1]);
    if (low < 0)
        return false;
    *ret_byte = (uint8_t)(high * 16 + low);
    return true;
}

static bool read_slot(struct weir__pages *pages, const char *name)
{
    struct weir__page_passed *passed = &pages->passed;
    uint8_t slot;

    if (strlen(name) != WEIR__SEQ_LEN + 2 || !weir__seq_is_sound(name) ||
        !read_hex(name + WEIR__SEQ_LEN, &slot))
        return false;
    passed->is_there = true;
    passed->score = pages->place.score;
    passed->slot = slot;
    memcpy(passed->seq, name, sizeof(passed->seq));
    pages->place.len = WEIR__SEQ_LEN;
    memcpy(pages->place.name, name, WEIR__SEQ_LEN);
    return true;
}

static bool read_id(struct weir__pages *pages, const char *name)
{
    size_t len = strlen(name) / 2;

    if (len == 0 || len > sizeof(pages->place.name) || strlen(name) % 2 > 0)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!read_hex(name + 2 * i, &pages->place.name[i]))
            return false;
    pages->place.len = len;
    return true;
}

/* A number of at least 0 that a double and a script can hold. */
static bool read_score(const char **at, char end, double *ret_score)
{
    const char *from = *at;
    char *behind;

    if (*from < '0' || *from > '9')
        return false;
    *ret_score = strtod(from, &behind);
    *at = behind + 1;
    return *behind == end && *ret_score < 1e16;
}

static bool read_place(struct weir__pages *pages, struct weir_slice text)
{
    char copy[WEIR_MAX_PLACE + 1] = "";
    const char *at = copy + 1;

    if (text.len == 0)
        return true;
    if (text.len > WEIR_MAX_PLACE || memchr(text.ptr, 0, text.len) != NULL)
        return false;
    memcpy(copy, text.ptr, text.len);
    pages->is_placed = true;
    if (copy[0] != '0' + (int)pages->state ||
        !read_score(&at, ',', &pages->place.score) ||
        !read_score(&at, ':', &pages->bound))
        return false;
    return pages->state == WEIR_JOB_DEAD ? read_id(pages, at)
                                         : read_slot(pages, at);
}

/* --- jobs ----------------------------------------------------------------- */

static void show_slot(struct listing *listing, const struct weir__member *node,
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
        .place = slot_place(listing, node, slot),
        .claimed_ms = node->claimed_ms,
        .lease_left_ms = -1,
    };
    const char *seq = (const char *)pages->names.ptr + node->at;
    char made[WEIR__MADE_ID_LEN + 1];

    if (weir__job_read(weir__pack_record(pack, slot), seq, &info) != WEIR_OK)
        return; /* of a newer version: left alone */
    info.counters.crashes += node->crashes;
    if (node->worker_len > 0)
        info.worker =
            weir__slice_of(pages->workers.ptr + node->worker, node->worker_len);
    if (id.len == 0) {
        weir__made_id(seq, (unsigned)slot, made);
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
        if (!is_in_state(pages, due_ms_of(pages, node, slot)) ||
            weir__page_is_passed(pages, node, (unsigned)slot))
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
        .place = dead_place(listing, &pages->members[index]),
    };

    pages->left--;
    if (!weir__id_is_sound(info.id))
        info.id = weir__slice_str("unreadable");
    if (weir__job_read(record, NULL, &info) != WEIR_OK)
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

int weir__delay_list(struct weir__store_topic *topic,
                     const struct weir__list *what, weir_show_fn fn, void *arg)
{
    struct listing *listing = weir__mem_new(sizeof(*listing));

    if (listing == NULL)
        return WEIR_ENOMEM;
    listing->fn = fn;
    listing->arg = arg;
    listing->pages.topic = weir__delay_topic_of(topic);
    listing->pages.state = what->state;
    listing->pages.left = what->limit;
    listing->pages.read = show_page;
    listing->pages.end = end_list;
    if (!read_place(&listing->pages, what->after)) {
        weir__mem_free(listing);
        return WEIR_EINVAL;
    }
    weir__pages_begin(&listing->pages);
    return WEIR_OK;
}
