/* SPDX-License-Identifier: MIT */
#ifndef WEIR_EV_OUTBOX_H
#define WEIR_EV_OUTBOX_H

/* From any thread to one that has a loop of another kind, or none: letters are
 * queued, and a descriptor is readable while there are some. */

#include "adapters/ev/letters.h"

struct weir__outbox {
    struct weir__letters letters;
    int fd; /* an eventfd */
};

/* WEIR_ESYSTEM (no lock or descriptor to be had). */
int weir__outbox_init(struct weir__outbox *outbox);

/* A letter that has its room already, or needs none (size 0); cannot fail. */
void weir__outbox_put(struct weir__outbox *outbox, struct weir__letter *letter);

/* A letter of `size` bytes. WEIR_EFULL, WEIR_ECANCELED (it is closed): it
 * stays the caller's. */
int weir__outbox_send(struct weir__outbox *outbox, struct weir__letter *letter,
                      size_t size);

/* Read all that are there. */
void weir__outbox_read(struct weir__outbox *outbox);

/* Empty, and nobody comes any more. */
void weir__outbox_fini(struct weir__outbox *outbox);

#endif
