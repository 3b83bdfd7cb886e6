/* SPDX-License-Identifier: MIT */

/* Tables, sorted sets and lists of the server in the test's process. */

#include "tests/sim/server/stream.h"

#include <stdlib.h>
#include <string.h>

static void *grow(void *ptr, size_t size)
{
    ptr = realloc(ptr, size);
    if (ptr == NULL)
        server_fail("the server has no memory for %zu bytes", size);
    return ptr;
}

static char *copy(struct slice text)
{
    char *copied = grow(NULL, text.len + 1);

    if (text.len > 0)
        memcpy(copied, text.ptr, text.len);
    copied[text.len] = '\0';
    return copied;
}

/* --- tables -------------------------------------------------------------- */

static uint32_t hash_of(struct slice name)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (unsigned char)name.ptr[i]) * 16777619u;
    return hash;
}

static bool is_named(const struct entry *entry, uint32_t hash,
                     struct slice name)
{
    return entry->hash == hash && entry->len == name.len &&
           memcmp(entry->name, name.ptr, name.len) == 0;
}

struct entry *table_find(const struct table *table, struct slice name)
{
    uint32_t hash = hash_of(name);

    if (table->slots == 0)
        return NULL;
    for (size_t i = hash & (table->slots - 1); table->index[i] != NULL;
         i = (i + 1) & (table->slots - 1))
        if (is_named(table->index[i], hash, name))
            return table->index[i];
    return NULL;
}

static void put_index(struct table *table, struct entry *entry)
{
    size_t i = entry->hash & (table->slots - 1);

    while (table->index[i] != NULL)
        i = (i + 1) & (table->slots - 1);
    table->index[i] = entry;
}

static void make_room(struct table *table)
{
    if (table->count < table->cap)
        return;
    table->cap = table->cap == 0 ? 8 : table->cap * 2;
    table->list = grow(table->list, table->cap * sizeof(struct entry *));
    table->slots = table->cap * 2;
    table->index = grow(table->index, table->slots * sizeof(struct entry *));
    memset(table->index, 0, table->slots * sizeof(struct entry *));
    for (size_t i = 0; i < table->count; i++)
        put_index(table, table->list[i]);
}

struct entry *table_add(struct table *table, struct slice name)
{
    struct entry *entry = grow(NULL, sizeof(*entry) + name.len + 1);

    make_room(table);
    *entry = (struct entry){
        .hash = hash_of(name), .at = table->count, .len = name.len};
    if (name.len > 0)
        memcpy(entry->name, name.ptr, name.len);
    entry->name[name.len] = '\0';
    table->list[table->count++] = entry;
    put_index(table, entry);
    return entry;
}

/* Entries behind the gap move up, unless that is before their place. */
static void close_gap(struct table *table, size_t gap)
{
    size_t mask = table->slots - 1;

    for (size_t i = (gap + 1) & mask; table->index[i] != NULL;
         i = (i + 1) & mask) {
        size_t home = table->index[i]->hash & mask;

        if (((i - home) & mask) < ((i - gap) & mask))
            continue;
        table->index[gap] = table->index[i];
        table->index[i] = NULL;
        gap = i;
    }
}

void table_remove(struct table *table, struct entry *entry)
{
    struct entry *last = table->list[table->count - 1];
    size_t i = entry->hash & (table->slots - 1);

    while (table->index[i] != entry)
        i = (i + 1) & (table->slots - 1);
    table->index[i] = NULL;
    close_gap(table, i);
    if (table->count <= TABLE_SMALL) {
        for (size_t at = entry->at; at + 1 < table->count; at++)
            (table->list[at] = table->list[at + 1])->at = at;
    } else {
        table->list[entry->at] = last;
        last->at = entry->at;
    }
    table->count--;
    free(entry->value);
    free(entry);
}

void table_clear(struct table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        free(table->list[i]->value);
        free(table->list[i]);
    }
    free(table->list);
    free(table->index);
    *table = (struct table){0};
}

void entry_set(struct entry *entry, struct slice value)
{
    char *copied = copy(value); /* first: it may be of this entry */

    free(entry->value);
    entry->value = copied;
    entry->value_len = value.len;
}

struct slice entry_name(const struct entry *entry)
{
    return (struct slice){entry->name, entry->len};
}

struct slice entry_value(const struct entry *entry)
{
    return (struct slice){entry->value, entry->value_len};
}

/* --- objects ------------------------------------------------------------- */

struct text text_new(struct slice text)
{
    return (struct text){copy(text), text.len};
}

struct object *object_new(enum object_type type)
{
    struct object *object = grow(NULL, sizeof(*object));

    *object = (struct object){.type = type};
    if (type == STREAM)
        object->stream = stream_new();
    return object;
}

void object_free(struct object *object)
{
    if (object == NULL)
        return;
    list_drop(object, object->count, false);
    free(object->list);
    free(object->sorted);
    free(object->text.ptr);
    table_clear(&object->table);
    stream_free(object->stream);
    free(object);
}

bool object_is_empty(const struct object *object)
{
    if (object->type == TEXT || object->type == STREAM)
        return false;
    return object->type == LIST ? object->count == 0 : object->table.count == 0;
}

/* --- sorted sets --------------------------------------------------------- */

static int compare_names(const struct entry *a, const struct entry *b)
{
    size_t len = a->len < b->len ? a->len : b->len;
    int order = memcmp(a->name, b->name, len);

    if (order != 0)
        return order;
    return a->len < b->len ? -1 : a->len > b->len;
}

static bool is_before(const struct entry *a, const struct entry *b)
{
    return a->score != b->score ? a->score < b->score : compare_names(a, b) < 0;
}

/* Where the entry stands or belongs, among `count`. */
static size_t place_of(const struct object *object, const struct entry *entry,
                       size_t count)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (is_before(object->sorted[middle], entry))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(struct object *object, struct entry *entry, size_t count)
{
    size_t at = place_of(object, entry, count);

    if (count == object->sorted_cap) {
        object->sorted_cap = object->sorted_cap * 2 + 8;
        object->sorted =
            grow(object->sorted, object->sorted_cap * sizeof(struct entry *));
    }
    memmove(object->sorted + at + 1, object->sorted + at,
            (count - at) * sizeof(struct entry *));
    object->sorted[at] = entry;
}

/* Its rank is free; the table still has it. */
static void take_out(struct object *object, const struct entry *entry)
{
    size_t at = place_of(object, entry, object->table.count);

    memmove(object->sorted + at, object->sorted + at + 1,
            (object->table.count - at - 1) * sizeof(struct entry *));
}

void sorted_put(struct object *object, struct slice name, double score)
{
    struct entry *entry = table_find(&object->table, name);

    if (entry == NULL)
        entry = table_add(&object->table, name);
    else if (entry->score == score)
        return;
    else
        take_out(object, entry);
    entry->score = score == 0 ? 0 : score; /* -0 is 0 in a small set of Redis */
    insert(object, entry, object->table.count - 1);
}

void sorted_remove(struct object *object, struct entry *entry)
{
    take_out(object, entry);
    table_remove(&object->table, entry);
}

size_t sorted_rank(const struct object *object, struct bound bound, bool is_end)
{
    size_t low = 0, high = object->table.count;
    bool with_equal = bound.is_exclusive != is_end;

    while (low < high) {
        size_t middle = (low + high) / 2;
        double score = object->sorted[middle]->score;

        if (score < bound.score || (with_equal && score == bound.score))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* --- lists --------------------------------------------------------------- */

static struct text *place_in(const struct object *object, size_t i)
{
    return &object->list[(object->first + i) & (object->cap - 1)];
}

struct slice list_at(const struct object *object, size_t i)
{
    const struct text *text = place_in(object, i);

    return (struct slice){text->ptr, text->len};
}

void list_set(struct object *object, size_t i, struct slice text)
{
    struct text *at = place_in(object, i);
    struct text copied = text_new(text); /* first: it may be of this list */

    free(at->ptr);
    *at = copied;
}

static void widen(struct object *object)
{
    size_t cap = object->cap == 0 ? 8 : object->cap * 2;
    struct text *list = grow(NULL, cap * sizeof(*list));

    for (size_t i = 0; i < object->count; i++)
        list[i] = *place_in(object, i);
    free(object->list);
    object->list = list;
    object->cap = cap;
    object->first = 0;
}

void list_push(struct object *object, struct slice text, bool at_end)
{
    struct text copied = {copy(text), text.len};

    if (object->count == object->cap)
        widen(object);
    if (!at_end)
        object->first = (object->first - 1) & (object->cap - 1);
    object->count++;
    *place_in(object, at_end ? object->count - 1 : 0) = copied;
}

void list_drop(struct object *object, size_t count, bool at_end)
{
    for (; count > 0; count--) {
        free(place_in(object, at_end ? object->count - 1 : 0)->ptr);
        if (!at_end)
            object->first = (object->first + 1) & (object->cap - 1);
        object->count--;
    }
}
