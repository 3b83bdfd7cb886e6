/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CONFIG_SCAN_H
#define WEIR_CONFIG_SCAN_H

/* A configuration file in tokens: words of [A-Za-z0-9._:/%@~-], texts in single
 * or double quotes, the signs { } = , and between them blanks and comments. */

#include "core/buf.h"
#include <weir/base.h>

enum { WEIR__CONFIG_MAX = 1024 * 1024 };

enum weir__token {
    WEIR__TOKEN_TEXT, /* a word, or what stands in quotes */
    WEIR__TOKEN_OPEN,
    WEIR__TOKEN_CLOSE,
    WEIR__TOKEN_EQUALS,
    WEIR__TOKEN_COMMA,
    WEIR__TOKEN_BAD, /* `why` says; the rest of the line is passed over */
    WEIR__TOKEN_END
};

struct weir__scan {
    struct weir__buf source;
    size_t at;
    int at_line;
    enum weir__token token; /* the one that was read last */
    int line;               /* where it begins, from 1 */
    struct weir__buf text;  /* of a text, and as written of a sign; with NUL */
    struct weir_error why;
};

/* Read the file into a zeroed `scan`, and its first token. WEIR_ESYSTEM,
 * WEIR_ETOOBIG, WEIR_ENOMEM, WEIR_EINVAL (a byte that no text has, on
 * `scan->line`), with `why`; release with weir__scan_fini in any case. BLOCKS
 * on the file. */
int weir__scan_open(struct weir__scan *scan, const char *path);

/* To the next token; behind the end there is only the end. When memory runs out
 * it ends, and text.failed is true. */
void weir__scan_next(struct weir__scan *scan);

const char *weir__scan_text(const struct weir__scan *scan);

void weir__scan_fini(struct weir__scan *scan);

/* What to write instead of a token that cannot stand where it is. */
const char *weir__scan_instead(enum weir__token token);

#endif
