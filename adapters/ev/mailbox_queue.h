/* SPDX-License-Identifier: MIT */
#ifndef WEIR_EV_MAILBOX_QUEUE_H
#define WEIR_EV_MAILBOX_QUEUE_H

/* A queue between threads: any of them puts messages in, one takes all of them
 * out, in the order in which they were put. The mailbox that owns the queue
 * wakes the thread that reads: see mailbox.h and fd_mailbox.h. */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* The first member of each object that is sent. */
struct weir__mailbox_message {
    struct weir__mailbox_message *next;
    size_t size; /* bytes of room that it was admitted with */
    /* Act on the message and free it. `is_dropped`: the receiver is gone. */
    void (*read)(struct weir__mailbox_message *message, bool is_dropped);
};

/* Most bytes that may be admitted at once. */
#define WEIR__MAILBOX_QUEUE_MAX ((size_t)64 * 1024 * 1024)

/* What each message counts at least, so that their number is bounded, too. */
enum { WEIR__MAILBOX_MESSAGE_MIN = 1024 };

struct weir__mailbox_queue {
    pthread_mutex_t lock; /* of all that follows */
    struct weir__mailbox_message *first, **end;
    size_t admitted; /* bytes not yet read */
    bool is_closed;
};

/* WEIR_ESYSTEM (no lock to be had). */
int weir__mailbox_queue_init(struct weir__mailbox_queue *queue);

/* For conditions that must hold when a message is put. */
void weir__mailbox_queue_lock(struct weir__mailbox_queue *queue);
void weir__mailbox_queue_unlock(struct weir__mailbox_queue *queue);

/* Take room for a message of `size` bytes, or for what becomes one later. A
 * message that was not admitted has size 0. WEIR_EFULL, WEIR_ECANCELED (it is
 * closed). */
int weir__mailbox_queue_admit(struct weir__mailbox_queue *queue, size_t size);

/* Give room back that no message came for. */
void weir__mailbox_queue_release(struct weir__mailbox_queue *queue,
                                 size_t size);

/* Under the lock, and not when the queue is closed. True: the queue was empty,
 * so the reader must be woken. */
bool weir__mailbox_queue_put(struct weir__mailbox_queue *queue,
                             struct weir__mailbox_message *message);

/* Take no more messages. Those that are in stay. */
void weir__mailbox_queue_close(struct weir__mailbox_queue *queue);

/* Give back the room of all messages that are there now, then read them. */
void weir__mailbox_queue_read(struct weir__mailbox_queue *queue,
                              bool is_dropped);

/* The queue is closed and empty, and no thread uses it any more. */
void weir__mailbox_queue_fini(struct weir__mailbox_queue *queue);

#endif
