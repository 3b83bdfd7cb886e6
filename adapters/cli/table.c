/* SPDX-License-Identifier: MIT */
#include "adapters/cli/table.h"

#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"
#include "core/visible.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NAMES = 2, GAP = 2 };

void weir__row_put(struct weir__row *row, const char *format, ...)
{
    va_list values;

    WEIR_ASSERT(row->count < WEIR__TABLE_COLUMNS);
    va_start(values, format);
    (void)vsnprintf(row->cells[row->count++], WEIR__TABLE_CELL, format, values);
    va_end(values);
}

int weir__table_init(struct weir__table *table, size_t rows, size_t columns)
{
    void *cells = weir__mem_grow(NULL, rows * columns, WEIR__TABLE_CELL);

    if (cells == NULL)
        return WEIR_ENOMEM;
    memset(cells, 0, rows * columns * WEIR__TABLE_CELL);
    *table =
        (struct weir__table){.columns = columns, .rows = rows, .cells = cells};
    return WEIR_OK;
}

void weir__table_fini(struct weir__table *table)
{
    weir__mem_free(table->cells);
    *table = (struct weir__table){0};
}

static char *cell(const struct weir__table *table, size_t row, size_t column)
{
    return table->cells[row * table->columns + column];
}

void weir__table_set(struct weir__table *table, size_t at,
                     const struct weir__row *row)
{
    WEIR_ASSERT(at < table->rows && row->count == table->columns);
    for (size_t i = 0; i < row->count; i++) {
        struct weir_slice text = weir__slice_str(row->cells[i]);
        char *to = cell(table, at, i);
        size_t len;

        (void)weir__visible_take(&text, to, WEIR__TABLE_CELL); /* cut */
        len = strlen(to);
        if (len > table->widest[i])
            table->widest[i] = len;
    }
}

size_t weir__table_width(const struct weir__table *table)
{
    size_t width = 0;

    for (size_t i = 0; i < table->columns; i++)
        if (!table->is_hidden[i])
            width += (width > 0 ? GAP : 0) + table->widest[i];
    return width;
}

/* A name that is the last cell has no blanks behind it. */
static void print_row(const struct weir__table *table, size_t row)
{
    size_t last = 0;

    for (size_t i = 0; i < table->columns; i++)
        last = table->is_hidden[i] ? last : i;
    for (size_t i = 0; i <= last; i++) {
        int wide = (int)table->widest[i];

        if (table->is_hidden[i])
            continue;
        weir__print("%*s%*s", i > 0 ? GAP : 0, "",
                    i >= NAMES  ? wide
                    : i == last ? 0
                                : -wide,
                    cell(table, row, i));
    }
    (void)printf("\n");
}

static bool is_set(const struct weir__table *table, size_t row)
{
    return cell(table, row, 0)[0] != '\0';
}

void weir__table_print(const struct weir__table *table, size_t lines)
{
    size_t count = 0, printed = 0;

    for (size_t row = 0; row < table->rows; row++)
        count += is_set(table, row) ? 1 : 0;
    if (lines == 0 || lines > count)
        lines = count;
    for (size_t row = 0; row < table->rows; row++) {
        if (!is_set(table, row))
            continue;
        if (printed + 1 == lines && lines < count)
            break;
        print_row(table, row);
        printed++;
    }
    if (printed < count)
        (void)printf("and %zu more\n", count - printed);
}
