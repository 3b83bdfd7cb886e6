/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_IDS_H
#define WEIR_CLI_IDS_H

/* The ids of jobs that a line gives: those that stand in it, then those of the
 * file of --ids-from; each once, however often it is given. */

#include "adapters/cli/line_reader.h"

#include <weir/weir.h>

struct weir__ids {
    const char *const *operand; /* borrowed */
    size_t operand_count;
    const char *path; /* NULL: no file; "-": stdin */
    const char *shown;
    struct weir__line_reader reader; /* of that file */
    struct weir__buf seen;           /* each with its NUL */
    size_t *table; /* of `table_size` places: where one begins in `seen`, from 1
                      on; 0: free */
    size_t table_size, seen_count;
    size_t given;   /* of the line */
    bool has_wrong; /* one, or the file, could not be read: it was said */
    bool is_out_of_memory;
};

/* Open the file; false: it cannot be, which was said. Released with
 * weir__ids_fini in any case. */
bool weir__ids_open(struct weir__ids *ids);

/* The next one, valid until the one after it is asked for; NULL: there is none,
 * or no memory. BLOCKS while the file has nothing to read. */
const char *weir__ids_next(struct weir__ids *ids);

void weir__ids_fini(struct weir__ids *ids);

#endif
