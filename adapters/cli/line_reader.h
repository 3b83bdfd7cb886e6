/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_LINE_READER_H
#define WEIR_CLI_LINE_READER_H

/* Lines of a file or pipe, a piece at a time, in memory as large as the longest
 * line. Does not own the descriptor, and reads only when told to. */

#include "core/buf.h"

/* A zeroed struct with `fd` set has read nothing yet. */
struct weir__line_reader {
    int fd;
    bool is_ended;    /* nothing more will be read */
    bool is_skipping; /* the rest of a line that is too long */
    uint64_t line;    /* number of the line taken last, from 1 */
    uint64_t read;    /* bytes */
    struct weir__buf text;
    size_t taken;    /* of `text` */
    size_t searched; /* no newline before it, behind `taken` */
};

/* Read once. The end sets `is_ended`; so does WEIR_ESYSTEM with a sentence, and
 * WEIR_ENOMEM: what was not taken is then dropped. BLOCKS where nothing is
 * there to be read. */
int weir__line_reader_fill(struct weir__line_reader *reader,
                           struct weir_error *err);

enum weir__line_result {
    WEIR__LINE_NONE, /* none is complete */
    WEIR__LINE_GOOD,
    WEIR__LINE_TOO_LONG /* more than 64 MiB: is not kept */
};

/* Take the next line, without what ends it, valid until the next call of
 * weir__line_reader_fill. The last one needs no newline. */
enum weir__line_result weir__line_reader_next(struct weir__line_reader *reader,
                                              struct weir_slice *ret_line);

void weir__line_reader_fini(struct weir__line_reader *reader);

#endif
