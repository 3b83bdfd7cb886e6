/* SPDX-License-Identifier: MIT */
#include "adapters/ev/outbox.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <weir/base.h>

int weir__outbox_init(struct weir__outbox *outbox)
{
    outbox->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (outbox->fd < 0)
        return WEIR_ESYSTEM;
    if (weir__letters_init(&outbox->letters) == WEIR_OK)
        return WEIR_OK;
    (void)close(outbox->fd);
    return WEIR_ESYSTEM;
}

void weir__outbox_put(struct weir__outbox *outbox, struct weir__letter *letter)
{
    const uint64_t one = 1;

    weir__letters_lock(&outbox->letters);
    if (weir__letters_put(&outbox->letters, letter))
        /* Fails where it is readable already, which is as good. */
        while (write(outbox->fd, &one, sizeof(one)) < 0 && errno == EINTR)
            ;
    weir__letters_unlock(&outbox->letters);
}

int weir__outbox_send(struct weir__outbox *outbox, struct weir__letter *letter,
                      size_t size)
{
    int rc;

    letter->size = size < WEIR__LETTER_MIN ? WEIR__LETTER_MIN : size;
    rc = weir__letters_admit(&outbox->letters, letter->size);
    if (rc == WEIR_OK)
        weir__outbox_put(outbox, letter);
    return rc;
}

void weir__outbox_read(struct weir__outbox *outbox)
{
    uint64_t count;

    /* Before: what comes from now on makes it readable anew. */
    while (read(outbox->fd, &count, sizeof(count)) < 0 && errno == EINTR)
        ;
    weir__letters_read(&outbox->letters, false);
}

void weir__outbox_fini(struct weir__outbox *outbox)
{
    weir__letters_fini(&outbox->letters);
    (void)close(outbox->fd);
}
