/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_TABLE_H
#define WEIR_CLI_TABLE_H

/* A table for people: columns as wide as their widest cell, those of numbers to
 * the right. Cells hold texts of foreign origin, too. */

#include "adapters/cli/cli.h"

#include <stdbool.h>
#include <stddef.h>

enum { WEIR__TABLE_COLUMNS = 24, WEIR__TABLE_CELL = 64 };

/* A zeroed struct has no cells. */
struct weir__row {
    char cells[WEIR__TABLE_COLUMNS][WEIR__TABLE_CELL];
    size_t count;
};

/* One more cell, or a cut one. */
WEIR_PRINTF(2, 3)
void weir__row_put(struct weir__row *row, const char *format, ...);

struct weir__table {
    size_t columns, rows;
    size_t widest[WEIR__TABLE_COLUMNS]; /* cell of each, in bytes */
    char (*cells)[WEIR__TABLE_CELL];    /* owned */
    bool is_hidden[WEIR__TABLE_COLUMNS];
};

/* WEIR_ENOMEM: then nothing is to be released. */
int weir__table_init(struct weir__table *table, size_t rows, size_t columns);

/* Zeroed, or released before, is fine. */
void weir__table_fini(struct weir__table *table);

/* The row has as many cells as the table columns. */
void weir__table_set(struct weir__table *table, size_t at,
                     const struct weir__row *row);

/* Of a line, without the columns that are hidden. */
size_t weir__table_width(const struct weir__table *table);

/* The rows that were set; their first two cells are names, the others numbers.
 * On `lines` at most, 0: as many as it takes; the last one says then how many
 * rows are missing. */
void weir__table_print(const struct weir__table *table, size_t lines);

#endif
