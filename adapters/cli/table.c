/* SPDX-License-Identifier: MIT */
#include "adapters/cli/output.h"

#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"
#include "core/visible.h"

#include <string.h>

static char *cell(const struct weir__table *table, size_t row, size_t column)
{
    return table->cells[row * table->columns + column];
}

/* Room doubles: there may be a hundred thousand rows. */
static bool make_room(struct weir__table *table)
{
    void *cells;

    if ((table->rows & (table->rows - 1)) != 0)
        return true;
    cells = weir__mem_grow(table->cells, (2 * table->rows + 1) * table->columns,
                           sizeof(table->cells[0]));
    if (cells != NULL)
        table->cells = cells;
    return cells != NULL;
}

bool weir__table_add(struct weir__table *table, const char *const *row)
{
    WEIR_ASSERT(table->columns <= WEIR__TABLE_COLUMNS);
    if (!make_room(table))
        return false;
    for (size_t i = 0; i < table->columns; i++) {
        struct weir_slice text = weir__slice_str(row[i]);
        char *to = cell(table, table->rows, i);
        size_t len;

        (void)weir__visible_take(&text, to, sizeof(table->cells[0])); /* cut */
        len = strlen(to);
        if (len > table->widest[i])
            table->widest[i] = len;
    }
    table->rows++;
    return true;
}

/* The first two columns are names, the others numbers. */
void weir__table_print(const struct weir__table *table)
{
    for (size_t row = 0; row < table->rows; row++) {
        for (size_t i = 0; i < table->columns; i++) {
            int wide = (int)table->widest[i];

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
