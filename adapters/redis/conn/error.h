/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CONN_ERROR_H
#define WEIR_CONN_ERROR_H

#include <stdbool.h>

/* What the text of an error reply means, on every version of the server. But
 * for WEIR__ERROR_MISTAKE nothing was done when it comes. */

enum weir__error_class {
    WEIR__ERROR_OTHER,       /* for the one who asked */
    WEIR__ERROR_NOSCRIPT,    /* load the script, send again */
    WEIR__ERROR_TURNED_AWAY, /* close, come back later, send again */
    WEIR__ERROR_CLUSTER,     /* the same, later: a node that lacks our slots */
    WEIR__ERROR_NOAUTH,      /* the same; denied where a login was just tried */
    WEIR__ERROR_REFUSED,     /* takes no writes now: for the one who asked */
    WEIR__ERROR_FULL,        /* none that need room; likewise */
    WEIR__ERROR_DENIED,      /* our login or rights; stays so for long */
    WEIR__ERROR_MISTAKE      /* ours, or another program wrote our keys */
};

enum weir__error_class weir__error_classify(const char *text);

/* A mistake that only a node of a cluster minds: keys in two of its slots. */
bool weir__error_is_cross_slot(const char *text);

/* The answer of a node of a cluster to SELECT. */
bool weir__error_is_no_database(const char *text);
#define WEIR__ERROR_NO_DATABASE "a cluster has no database %u, but 0 alone"

/* The answer to a question for the cluster of a server that is in none. */
bool weir__error_is_no_cluster(const char *text);

/* That, or CLUSTER SLOTS may not be asked: a user of a plain server needs no
 * right to it, and weir doctor tells. */
bool weir__error_hides_cluster(const char *text);

/* The text from its own code on, where a script's error is around it. */
const char *weir__error_core(const char *text);

/* The same for who gave a command: of a full server a sentence. */
const char *weir__error_words(const char *text);

#endif
