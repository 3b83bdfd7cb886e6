/* SPDX-License-Identifier: MIT */
#ifndef WEIR_EV_MAILBOX_H
#define WEIR_EV_MAILBOX_H

/* From any thread to the loop thread: messages are queued under a lock and read
 * on the loop, in the order in which they were posted. What comes from the loop
 * thread itself is read at once.
 *
 * A mailbox outlives its reactor as long as somebody may still post to it: it
 * then says that the reactor is gone. */

#include "adapters/ev/mailbox_queue.h"
#include "core/reactor.h"

struct ev_loop;
struct weir__ev_mailbox;

/* Both run on the loop thread. */
struct weir__mailbox_options {
    struct ev_loop *loop; /* kept */
    void (*completed)(uint64_t ticket,
                      const struct weir__completion *completion, void *arg);
    void *arg;
};

/* WEIR_ENOMEM, WEIR_ESYSTEM (no lock to be had). */
int weir__mailbox_open(const struct weir__mailbox_options *options,
                       struct weir__ev_mailbox **ret_mailbox);

/* What core and handles know of it. */
struct weir__mailbox *weir__mailbox_port(struct weir__ev_mailbox *mailbox);

/* Whether the calling thread runs the loop; from any. */
bool weir__mailbox_is_here(struct weir__ev_mailbox *mailbox);

/* Whether this is a child of the process that opened it: nothing is sent. */
bool weir__mailbox_is_forked(const struct weir__ev_mailbox *mailbox);

/* Whether the calling thread runs the loop, without a lock, also for handlers
 * of signals; true as well where no thread has run the loop yet. */
bool weir__mailbox_may_be_here(const struct weir__ev_mailbox *mailbox);

/* The calling thread runs the loop from now on. */
void weir__mailbox_here(struct weir__ev_mailbox *mailbox);

/* From any thread: have a message of `size` bytes read on the loop, soon, and
 * also where this is the loop's thread. WEIR_EFULL, WEIR_ECANCELED: it stays
 * the caller's; WEIR_ETHREAD: it is a child of a fork. */
int weir__mailbox_send(struct weir__ev_mailbox *mailbox,
                       struct weir__mailbox_message *message, size_t size);

/* Read what has arrived, now. NULL is fine. */
void weir__mailbox_read(struct weir__ev_mailbox *mailbox);

/* Messages that were not read are dropped. `held`: so many may still post their
 * completion; where fewer have, a few bytes stay behind for good. NULL is
 * fine. */
void weir__mailbox_close(struct weir__ev_mailbox *mailbox, size_t held);

#endif
