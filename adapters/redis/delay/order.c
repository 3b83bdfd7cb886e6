/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/delay/private.h"
#include "core/mem.h"
#include "core/text.h"

/* The order in which runs of a claim start. They come node by node. */

enum { TABLE_MIN = 16 };

static bool is_due_before(const struct weir__run *one,
                          const struct weir__run *other)
{
    return one->due_ms < other->due_ms;
}

static bool has_turn_before(const struct weir__run *one,
                            const struct weir__run *other)
{
    return one->turn < other->turn;
}

typedef bool is_before_fn(const struct weir__run *, const struct weir__run *);

/* Of equal ones those of `one` first. */
static struct weir__run *merge(struct weir__run *one, struct weir__run *other,
                               is_before_fn *is_before)
{
    struct weir__run *first = NULL, **end = &first;

    while (one != NULL && other != NULL) {
        struct weir__run **next = is_before(other, one) ? &other : &one;

        *end = *next;
        end = &(*end)->next;
        *next = *end;
    }
    *end = one != NULL ? one : other;
    return first;
}

static struct weir__run *sort(struct weir__run *first, size_t count,
                              is_before_fn *is_before)
{
    struct weir__run *last = first, *rest;

    if (count < 2)
        return first;
    for (size_t i = 1; i < count / 2; i++)
        last = last->next;
    rest = last->next;
    last->next = NULL;
    return merge(sort(first, count / 2, is_before),
                 sort(rest, count - count / 2, is_before), is_before);
}

/* Mostly they are in order already. */
static struct weir__run *bring_in_order(struct weir__run *first,
                                        is_before_fn *is_before)
{
    const struct weir__run *run = first;
    size_t count = 0;

    while (run != NULL && run->next != NULL && !is_before(run->next, run))
        run = run->next;
    if (run == NULL || run->next == NULL)
        return first;
    for (run = first; run != NULL; run = run->next)
        count++;
    return sort(first, count, is_before);
}

struct weir__run *weir__runs_by_due(struct weir__run *first)
{
    return bring_in_order(first, is_due_before);
}

/* --- turns ---------------------------------------------------------------- */

/* Runs in a row that have keys and one priority take turns. */
struct row {
    uint32_t begin, end; /* turns of its runs */
    uint64_t priority;
    bool has_keys;
};

/* How many runs of a key the row had. */
struct key_count {
    const struct weir__run *run; /* one that has it; NULL: none */
    uint32_t begin;              /* of the row */
    uint32_t count;
};

static bool has_key(const struct weir__run *run, struct weir_slice key)
{
    struct weir_slice own = run->record.key;

    return own.len == key.len && memcmp(own.ptr, key.ptr, key.len) == 0;
}

/* The entry of the run's key; `size` is a power of two, and some are free. */
static struct key_count *find(struct key_count *table, size_t size,
                              const struct weir__run *run)
{
    size_t at = weir__slice_hash(run->record.key) & (size - 1);

    while (table[at].run != NULL && !has_key(table[at].run, run->record.key))
        at = (at + 1) & (size - 1);
    return &table[at];
}

static void go_on(struct row *row, const struct weir__run *run)
{
    bool has_one = run->record.key.len > 0;

    if (has_one && row->has_keys && row->priority == run->record.priority)
        return;
    *row = (struct row){.begin = row->end,
                        .end = row->end,
                        .priority = run->record.priority,
                        .has_keys = has_one};
}

static void give_turns(struct weir__run *first, struct key_count *table,
                       size_t size)
{
    struct row row = {0};

    for (struct weir__run *run = first; run != NULL; run = run->next) {
        struct key_count *of;

        go_on(&row, run);
        run->turn = row.begin;
        if (row.has_keys) {
            of = find(table, size, run);
            if (of->run == NULL || of->begin != row.begin)
                *of = (struct key_count){.run = run, .begin = row.begin};
            run->turn += of->count++;
        }
        if (run->turn >= row.end)
            row.end = run->turn + 1;
    }
}

struct weir__run *weir__runs_by_turn(struct weir__run *first)
{
    size_t count = 0, size = TABLE_MIN;
    struct key_count *table;

    for (const struct weir__run *run = first; run != NULL; run = run->next)
        count++;
    while (size < 2 * count)
        size *= 2;
    table = weir__mem_new(size * sizeof(*table));
    if (table == NULL)
        return first; /* all start all the same */
    give_turns(first, table, size);
    weir__mem_free(table);
    return bring_in_order(first, has_turn_before);
}
