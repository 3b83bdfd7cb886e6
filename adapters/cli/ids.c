/* SPDX-License-Identifier: MIT */
#include "adapters/cli/ids.h"

#include "adapters/cli/cli.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { TABLE_MIN = 64 };

/* --- those that were seen ------------------------------------------------- */

static const char *seen_at(const struct weir__ids *ids, size_t place)
{
    return (const char *)ids->seen.ptr + place - 1;
}

/* Where `id` stands in the table, or would: it has free places. */
static size_t *find(const struct weir__ids *ids, struct weir_slice id)
{
    size_t i = weir__slice_hash(id) & (ids->table_size - 1);

    while (ids->table[i] != 0 &&
           !weir__slice_equal(weir__slice_str(seen_at(ids, ids->table[i])), id))
        i = (i + 1) & (ids->table_size - 1);
    return &ids->table[i];
}

/* At most half of the table is used. */
static bool grow(struct weir__ids *ids)
{
    size_t old_size = ids->table_size, *old = ids->table;
    size_t size = old_size == 0 ? TABLE_MIN : old_size * 2;
    size_t *table;

    if ((ids->seen_count + 1) * 2 <= old_size)
        return true;
    table = weir__mem_new(size * sizeof(*table));
    if (table == NULL)
        return false;
    ids->table = table;
    ids->table_size = size;
    for (size_t i = 0; i < old_size; i++)
        if (old[i] != 0)
            *find(ids, weir__slice_str(seen_at(ids, old[i]))) = old[i];
    weir__mem_free(old);
    return true;
}

/* NULL: it was given before, or there is no memory. */
static const char *take_new(struct weir__ids *ids, struct weir_slice id)
{
    size_t at = ids->seen.len, *place;

    if (!grow(ids)) {
        ids->is_out_of_memory = true;
        return NULL;
    }
    place = find(ids, id);
    if (*place != 0)
        return NULL;
    weir__buf_append(&ids->seen, id.ptr, id.len);
    weir__buf_append(&ids->seen, "", 1);
    if (ids->seen.failed) {
        ids->is_out_of_memory = true;
        return NULL;
    }
    *place = at + 1;
    ids->seen_count++;
    WEIR_ASSERT(ids->seen_count * 2 <= ids->table_size);
    return seen_at(ids, *place);
}

/* --- those of the file ---------------------------------------------------- */

static const char *take_line(struct weir__ids *ids, struct weir_slice line)
{
    struct weir_error err = {0};

    while (line.len > 0 && strchr(" \t\r", line.ptr[line.len - 1]) != NULL)
        line.len--;
    if (line.len == 0)
        return NULL;
    if (weir__id_check_any(line, &err) == WEIR_OK)
        return take_new(ids, line);
    ids->has_wrong = true;
    weir__complain("%s:%" PRIu64 ": %s", ids->shown, ids->reader.line,
                   err.text);
    return NULL;
}

static bool fill(struct weir__ids *ids)
{
    struct weir_error err = {0};

    if (ids->reader.is_ended)
        return false;
    if (weir__line_reader_fill(&ids->reader, &err) == WEIR_OK)
        return true;
    weir__complain("--ids-from: cannot read %s: %s", ids->shown, err.text);
    ids->has_wrong = true;
    return false;
}

static const char *next_of_file(struct weir__ids *ids)
{
    const char *id = NULL;
    struct weir_slice line;

    while (id == NULL && !ids->is_out_of_memory) {
        switch (weir__line_reader_next(&ids->reader, &line)) {
        case WEIR__LINE_GOOD:
            id = take_line(ids, line);
            break;
        case WEIR__LINE_TOO_LONG:
            id =
                take_line(ids, weir__slice_str("(a line of more than 64 MiB)"));
            break;
        case WEIR__LINE_NONE:
            if (!fill(ids))
                return NULL;
        }
    }
    return id;
}

/* --- both ----------------------------------------------------------------- */

bool weir__ids_open(struct weir__ids *ids)
{
    bool is_file = ids->path != NULL && strcmp(ids->path, "-") != 0;

    ids->shown = is_file ? ids->path : "stdin";
    ids->reader.fd = STDIN_FILENO;
    if (is_file)
        ids->reader.fd = open(ids->path, O_RDONLY | O_CLOEXEC);
    if (ids->reader.fd < 0)
        weir__complain("--ids-from: cannot open %s: %s", ids->path,
                       strerror(errno));
    return ids->reader.fd >= 0;
}

const char *weir__ids_next(struct weir__ids *ids)
{
    const char *id = NULL;

    while (id == NULL && ids->given < ids->operand_count &&
           !ids->is_out_of_memory)
        id = take_new(ids, weir__slice_str(ids->operand[ids->given++]));
    return id != NULL || ids->path == NULL ? id : next_of_file(ids);
}

void weir__ids_fini(struct weir__ids *ids)
{
    if (ids->reader.fd > STDIN_FILENO)
        (void)close(ids->reader.fd); /* was only read */
    weir__line_reader_fini(&ids->reader);
    weir__buf_fini(&ids->seen);
    weir__mem_free(ids->table);
}
