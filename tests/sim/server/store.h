/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_STORE_H
#define WEIR_TEST_STORE_H

/* The keys of the server, and the six types of their values. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slice {
    const char *ptr;
    size_t len;
};

/* Prints the sentence and ends the program. */
_Noreturn void server_fail(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* --- tables: names and what stands behind each --------------------------- */

struct entry {
    uint32_t hash;
    size_t at;   /* in the table's list */
    char *value; /* of a hash; owned */
    size_t value_len;
    double score;          /* of a sorted set */
    struct object *object; /* of the keys; owned */
    struct group *group;   /* of a stream; owned */
    size_t len;
    char name[];
};

/* Up to so many entries stay in the order of adding, as Redis keeps a small
 * hash; of more, the last one fills a gap. */
enum { TABLE_SMALL = 128 };

struct table {
    struct entry **list;
    size_t count, cap;
    struct entry **index; /* open addressing; a power of two, or NULL */
    size_t slots;
};

struct entry *table_find(const struct table *table, struct slice name);

/* A new entry, all of it zero; the name must not be there. */
struct entry *table_add(struct table *table, struct slice name);

/* Frees the entry with its value, not its object. */
void table_remove(struct table *table, struct entry *entry);
void table_clear(struct table *table);

void entry_set(struct entry *entry, struct slice value);
struct slice entry_name(const struct entry *entry);
struct slice entry_value(const struct entry *entry);

/* --- objects ------------------------------------------------------------- */

enum object_type { TEXT, LIST, SET, SORTED, HASH, STREAM };

struct text {
    char *ptr; /* owned */
    size_t len;
};

struct object {
    enum object_type type;
    int64_t expires_ms;    /* 0: never */
    struct text text;      /* TEXT */
    struct table table;    /* SET, SORTED, HASH */
    bool is_wide;          /* a HASH that Redis keeps as a table, for good */
    struct entry **sorted; /* SORTED: by score, then name */
    size_t sorted_cap;
    struct stream *stream; /* STREAM; owned */
    struct text *list;     /* LIST: count elements from `first` on */
    size_t first, count, cap;
};

/* A copy. */
struct text text_new(struct slice text);

struct object *object_new(enum object_type type);
void object_free(struct object *object);
struct object *object_copy(const struct object *object);
bool object_is_empty(const struct object *object);

/* --- sorted sets --------------------------------------------------------- */

/* An end of a range of scores. */
struct bound {
    double score;
    bool is_exclusive;
};

void sorted_put(struct object *object, struct slice name, double score);
void sorted_remove(struct object *object, struct entry *entry);

/* How many entries are below the bound: of a range from `bound`, or, if
 * `is_end`, of one that ends with it. */
size_t sorted_rank(const struct object *object, struct bound bound,
                   bool is_end);

/* --- lists --------------------------------------------------------------- */

void list_push(struct object *object, struct slice text, bool at_end);
void list_drop(struct object *object, size_t count, bool at_end);
struct slice list_at(const struct object *object, size_t i);
void list_set(struct object *object, size_t i, struct slice text);

#endif
