/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CHAIN_H
#define WEIR_CHAIN_H

/* Where dead jobs go: from topic to topic by their on_dead. A chain that comes
 * back to its beginning is a cycle, in which they would go round for ever. */

#include <weir/weir.h>

enum { WEIR__CHAIN_MAX = 32 };

/* Zeroed is empty. */
struct weir__chain {
    char first[WEIR_MAX_TOPIC + 1];
    char text[400]; /* "a -> b -> c"; cut */
    size_t count;
};

/* The next topic. WEIR_EINVAL: the first again, with a sentence. WEIR_EFULL: no
 * need to look any further. */
int weir__chain_add(struct weir__chain *chain, const char *topic,
                    struct weir_error *err);

#endif
