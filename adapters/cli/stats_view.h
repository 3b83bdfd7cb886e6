/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_STATS_VIEW_H
#define WEIR_CLI_STATS_VIEW_H

/* How weir stats shows what it was told of topics: a table for people, or an
 * object. A table has no column that is zero in every row and, where there is
 * no room for all, the most telling ones. */

#include "adapters/cli/cli.h"

#include <json-c/json.h>
#include <weir/weir.h>

/* What is known of a topic. */
struct weir__stats_row {
    char topic[WEIR_MAX_TOPIC + 1];
    char kind[32];
    struct weir_stats stats; /* without its strings */
    double rate;             /* jobs done a second; below 0: not known */
    int64_t workers;         /* that serve it; below 0: not known */
    bool is_shown;           /* it is there; false: the row is left out */
    bool is_away;            /* nobody can tell more of it now */
};

enum { WEIR__STATS_COLUMNS = 21 };

/* Zeroed with `sort` -1: a table in byte order that fits into 0 columns. */
struct weir__stats_view {
    bool has_rate; /* a column of rates */
    bool is_wide;  /* every column, whatever the width */
    int sort;      /* the column to sort by; -1: none */
    size_t width;  /* of what it has to fit into, in characters */
    size_t lines;  /* likewise, one for each topic and one for titles; 0:
                        as many as there are */
    /* Once shown a column stays. */
    bool is_kept[WEIR__STATS_COLUMNS];
};

/* The column that --sort calls so; -1 with a sentence: none, or one of rates
 * where there are none. */
int weir__stats_column(const char *name, bool has_rate);

/* The same without a sentence, of all columns. */
int weir__stats_column_find(const char *name);

/* What a column sorts by, the largest first; 0 where there is nothing, and in
 * columns of text. */
uint64_t weir__stats_weight(const struct weir__stats_row *row, int column);

/* The rows in the order of the view; owned by the caller, weir__mem_free. NULL:
 * out of memory. */
struct weir__stats_row **weir__stats_sorted(const struct weir__stats_view *view,
                                            struct weir__stats_row *rows,
                                            size_t count);

/* Print the table. WEIR_ENOMEM: nothing was printed. `left_out` gets the names
 * of columns that are not zero and have no room, "" where there are none. */
int weir__stats_print(struct weir__stats_view *view,
                      struct weir__stats_row *const *rows, size_t count,
                      char left_out[160]);

/* A row as an object; NULL: out of memory. */
struct json_object *weir__stats_row_json(const struct weir__stats_view *view,
                                         const struct weir__stats_row *row);

/* {"topics":[...]}; NULL: out of memory. */
struct json_object *weir__stats_json(const struct weir__stats_view *view,
                                     struct weir__stats_row *const *rows,
                                     size_t count);

#endif
