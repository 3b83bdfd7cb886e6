/* SPDX-License-Identifier: MIT */
#include "adapters/ev/fd_mailbox.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <weir/base.h>

int weir__fd_mailbox_init(struct weir__fd_mailbox *mailbox)
{
    mailbox->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (mailbox->fd < 0)
        return WEIR_ESYSTEM;
    if (weir__mailbox_queue_init(&mailbox->queue) == WEIR_OK)
        return WEIR_OK;
    (void)close(mailbox->fd);
    return WEIR_ESYSTEM;
}

void weir__fd_mailbox_put(struct weir__fd_mailbox *mailbox,
                          struct weir__mailbox_message *message)
{
    const uint64_t one = 1;

    weir__mailbox_queue_lock(&mailbox->queue);
    if (weir__mailbox_queue_put(&mailbox->queue, message))
        /* Fails where the descriptor is readable already, which is as good. */
        while (write(mailbox->fd, &one, sizeof(one)) < 0 && errno == EINTR)
            ;
    weir__mailbox_queue_unlock(&mailbox->queue);
}

int weir__fd_mailbox_send(struct weir__fd_mailbox *mailbox,
                          struct weir__mailbox_message *message, size_t size)
{
    int rc;

    message->size =
        size < WEIR__MAILBOX_MESSAGE_MIN ? WEIR__MAILBOX_MESSAGE_MIN : size;
    rc = weir__mailbox_queue_admit(&mailbox->queue, message->size);
    if (rc == WEIR_OK)
        weir__fd_mailbox_put(mailbox, message);
    return rc;
}

void weir__fd_mailbox_read(struct weir__fd_mailbox *mailbox)
{
    uint64_t count;

    /* Before messages are read: a later one makes it readable anew. */
    while (read(mailbox->fd, &count, sizeof(count)) < 0 && errno == EINTR)
        ;
    weir__mailbox_queue_read(&mailbox->queue, false);
}

void weir__fd_mailbox_fini(struct weir__fd_mailbox *mailbox)
{
    weir__mailbox_queue_fini(&mailbox->queue);
    (void)close(mailbox->fd);
}
