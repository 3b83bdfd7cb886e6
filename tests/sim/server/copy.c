/* SPDX-License-Identifier: MIT */

/* Copies of values: what a server that crashes finds on its disk. */

#include <stdlib.h>
#include <string.h>

#include "tests/sim/server/stream.h"

static void *allocate(size_t size)
{
    void *ptr = malloc(size + 1);

    if (ptr == NULL)
        server_fail("the server has no memory for %zu bytes", size);
    return ptr;
}

static struct slice slice_of(struct text text)
{
    return (struct slice){text.ptr, text.len};
}

/* In the order of the list, which readers see. */
static void copy_table(struct table *to, const struct table *from)
{
    for (size_t i = 0; i < from->count; i++) {
        const struct entry *entry = from->list[i];
        struct entry *copied = table_add(to, entry_name(entry));

        copied->score = entry->score;
        if (entry->value != NULL)
            entry_set(copied, entry_value(entry));
    }
}

/* --- streams ------------------------------------------------------------- */

static struct group *copy_group(const struct group *group)
{
    struct group *copied = allocate(sizeof(*copied));
    size_t size = group->count * sizeof(*group->pending);

    *copied = (struct group){.last = group->last,
                             .read = group->read,
                             .pending = allocate(size),
                             .count = group->count,
                             .cap = group->count};
    copy_table(&copied->consumers, &group->consumers);
    if (size > 0)
        memcpy(copied->pending, group->pending, size);
    for (size_t i = 0; i < copied->count; i++)
        if (copied->pending[i].consumer != NULL)
            copied->pending[i].consumer = table_find(
                &copied->consumers, entry_name(group->pending[i].consumer));
    return copied;
}

struct stream *stream_copy(const struct stream *stream)
{
    struct stream *copied;

    if (stream == NULL)
        return NULL;
    copied = stream_new();
    *copied = *stream;
    copied->groups = (struct table){0};
    copied->cap = stream->count;
    copied->entries = allocate(stream->count * sizeof(*stream->entries));
    for (size_t i = 0; i < stream->count; i++) {
        struct stream_entry *entry = &copied->entries[i];

        *entry = stream->entries[i];
        entry->words = allocate(entry->count * sizeof(*entry->words));
        for (size_t k = 0; k < entry->count; k++)
            entry->words[k] = text_new(slice_of(stream->entries[i].words[k]));
    }
    for (size_t i = 0; i < stream->groups.count; i++) {
        const struct entry *group = stream->groups.list[i];

        table_add(&copied->groups, entry_name(group))->group =
            copy_group(group->group);
    }
    return copied;
}

/* --- objects ------------------------------------------------------------- */

struct object *object_copy(const struct object *object)
{
    struct object *copied = allocate(sizeof(*copied));

    *copied = (struct object){.type = object->type,
                              .expires_ms = object->expires_ms,
                              .is_wide = object->is_wide,
                              .stream = stream_copy(object->stream)};
    if (object->type == TEXT)
        copied->text = text_new(slice_of(object->text));
    else if (object->type == SORTED)
        for (size_t i = 0; i < object->table.count; i++)
            sorted_put(copied, entry_name(object->table.list[i]),
                       object->table.list[i]->score);
    else
        copy_table(&copied->table, &object->table);
    for (size_t i = 0; i < object->count; i++)
        list_push(copied, list_at(object, i), true);
    return copied;
}
