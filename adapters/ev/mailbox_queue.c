/* SPDX-License-Identifier: MIT */
#include "adapters/ev/mailbox_queue.h"

#include <weir/base.h>

#include "core/assert.h"

int weir__mailbox_queue_init(struct weir__mailbox_queue *queue)
{
    if (pthread_mutex_init(&queue->lock, NULL) != 0)
        return WEIR_ESYSTEM;
    queue->first = NULL;
    queue->end = &queue->first;
    queue->admitted = 0;
    queue->is_closed = false;
    return WEIR_OK;
}

void weir__mailbox_queue_lock(struct weir__mailbox_queue *queue)
{
    int rc = pthread_mutex_lock(&queue->lock);

    WEIR_ASSERT(rc == 0);
}

void weir__mailbox_queue_unlock(struct weir__mailbox_queue *queue)
{
    int rc = pthread_mutex_unlock(&queue->lock);

    WEIR_ASSERT(rc == 0);
}

int weir__mailbox_queue_admit(struct weir__mailbox_queue *queue, size_t size)
{
    int rc = WEIR_OK;

    weir__mailbox_queue_lock(queue);
    if (queue->is_closed)
        rc = WEIR_ECANCELED;
    else if (size > WEIR__MAILBOX_QUEUE_MAX - queue->admitted)
        rc = WEIR_EFULL;
    else
        queue->admitted += size;
    weir__mailbox_queue_unlock(queue);
    return rc;
}

void weir__mailbox_queue_release(struct weir__mailbox_queue *queue, size_t size)
{
    weir__mailbox_queue_lock(queue);
    WEIR_ASSERT(queue->admitted >= size);
    queue->admitted -= size;
    weir__mailbox_queue_unlock(queue);
}

bool weir__mailbox_queue_put(struct weir__mailbox_queue *queue,
                             struct weir__mailbox_message *message)
{
    bool was_empty = queue->first == NULL;

    WEIR_ASSERT(!queue->is_closed);
    message->next = NULL;
    *queue->end = message;
    queue->end = &message->next;
    return was_empty;
}

void weir__mailbox_queue_close(struct weir__mailbox_queue *queue)
{
    weir__mailbox_queue_lock(queue);
    queue->is_closed = true;
    weir__mailbox_queue_unlock(queue);
}

static struct weir__mailbox_message *take_all(struct weir__mailbox_queue *queue)
{
    struct weir__mailbox_message *first;

    weir__mailbox_queue_lock(queue);
    first = queue->first;
    queue->first = NULL;
    queue->end = &queue->first;
    for (struct weir__mailbox_message *at = first; at != NULL; at = at->next) {
        WEIR_ASSERT(queue->admitted >= at->size);
        queue->admitted -= at->size;
    }
    weir__mailbox_queue_unlock(queue);
    return first;
}

void weir__mailbox_queue_read(struct weir__mailbox_queue *queue,
                              bool is_dropped)
{
    struct weir__mailbox_message *message = take_all(queue);

    while (message != NULL) {
        struct weir__mailbox_message *next = message->next;

        message->read(message, is_dropped);
        message = next;
    }
}

void weir__mailbox_queue_fini(struct weir__mailbox_queue *queue)
{
    WEIR_ASSERT(queue->first == NULL);
    (void)pthread_mutex_destroy(&queue->lock); /* nobody has it */
}
