/* SPDX-License-Identifier: MIT */
#include "adapters/cli/output.h"

#include "core/mem.h"
#include "core/text.h"
#include "core/visible.h"

#include <string.h>

bool weir__table_add(struct weir__table *table, const char *const *row)
{
    size_t used = table->rows * table->columns;
    void *cells = weir__mem_grow(table->cells, used + table->columns,
                                 sizeof(table->cells[0]));

    if (cells == NULL)
        return false;
    table->cells = cells;
    for (size_t i = 0; i < table->columns; i++) {
        struct weir_slice text = weir__slice_str(row[i]);

        (void)weir__visible_take(&text, table->cells[used + i],
                                 sizeof(table->cells[0])); /* cut */
    }
    table->rows++;
    return true;
}

static const char *cell(const struct weir__table *table, size_t row,
                        size_t column)
{
    return table->cells[row * table->columns + column];
}

static int width(const struct weir__table *table, size_t column)
{
    size_t widest = 0;

    for (size_t row = 0; row < table->rows; row++) {
        size_t len = strlen(cell(table, row, column));

        widest = len > widest ? len : widest;
    }
    return (int)widest;
}

/* The first two columns are names, the others numbers. */
void weir__table_print(const struct weir__table *table)
{
    for (size_t row = 0; row < table->rows; row++) {
        for (size_t i = 0; i < table->columns; i++) {
            int wide = width(table, i);

            weir__print("%s%*s", i > 0 ? "  " : "", i < 2 ? -wide : wide,
                        cell(table, row, i));
        }
        (void)printf("\n");
    }
}

void weir__table_fini(struct weir__table *table)
{
    weir__mem_free(table->cells);
    table->cells = NULL;
}
