/* SPDX-License-Identifier: MIT */
#ifndef WEIR_EV_FD_MAILBOX_H
#define WEIR_EV_FD_MAILBOX_H

/* From any thread to one that has a loop of another kind, or none: messages are
 * queued, and a descriptor is readable while some wait. */

#include "adapters/ev/mailbox_queue.h"

struct weir__fd_mailbox {
    struct weir__mailbox_queue queue;
    int fd; /* an eventfd */
};

/* WEIR_ESYSTEM (no lock or descriptor to be had). */
int weir__fd_mailbox_init(struct weir__fd_mailbox *mailbox);

/* A message that has its room already, or needs none (size 0); cannot fail. */
void weir__fd_mailbox_put(struct weir__fd_mailbox *mailbox,
                          struct weir__mailbox_message *message);

/* A message of `size` bytes. WEIR_EFULL, WEIR_ECANCELED (it is closed): it
 * stays the caller's. */
int weir__fd_mailbox_send(struct weir__fd_mailbox *mailbox,
                          struct weir__mailbox_message *message, size_t size);

/* Read all messages that are there. */
void weir__fd_mailbox_read(struct weir__fd_mailbox *mailbox);

/* The mailbox is empty, and no thread uses it any more. */
void weir__fd_mailbox_fini(struct weir__fd_mailbox *mailbox);

#endif
