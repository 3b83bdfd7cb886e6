/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_ADD_LINES_H
#define WEIR_CLI_ADD_LINES_H

/* weir add --jsonl: jobs of a file, one JSON object per line, of any length of
 * file in bounded memory. What one turn of the loop reads travels in one
 * batch; reading pauses while too much is on its way. */

#include "adapters/cli/cli.h"

/* Add every line of the file at `path`, "-" for stdin, say what is wrong with
 * each that is refused, and print the counts. What to exit with. BLOCKS. */
enum weir__exit weir__add_lines(const struct weir__cli *cli, const char *topic,
                                const char *path);

#endif
