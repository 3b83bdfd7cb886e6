/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLUSTER_REDIRECT_H
#define WEIR_CLUSTER_REDIRECT_H

/* Errors by which a node of a cluster says that a command is not for it, or not
 * now. The command did not run. */

#include "adapters/redis/url.h"

enum weir__redirect_kind {
    WEIR__REDIRECT_NONE,     /* no such error */
    WEIR__REDIRECT_MOVED,    /* another node has the slot */
    WEIR__REDIRECT_ASK,      /* the slot is moving there */
    WEIR__REDIRECT_TRYAGAIN, /* the slot is moving, and its keys are at both */
    WEIR__REDIRECT_DOWN,     /* nobody has the slot, or the cluster is down */
    WEIR__REDIRECT_CROSSSLOT /* the keys are in two slots */
};

struct weir__redirect {
    enum weir__redirect_kind kind;
    /* Of MOVED and ASK: which slot, and where it is. False where the error does
     * not say so: the node does not know it, or the text is wrong. */
    bool has_target;
    uint16_t slot;
    struct weir__redis_host host;
};

/* `text` is that of the error, also of one inside a script. `asked` is the
 * address of the node that said it, see endpoint.h. */
struct weir__redirect weir__redirect_read(const char *text,
                                          const struct weir__redis_host *asked);

#endif
