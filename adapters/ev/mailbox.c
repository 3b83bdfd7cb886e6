/* SPDX-License-Identifier: MIT */
#include "adapters/ev/mailbox.h"

#include <ev.h>
#include <pthread.h>
#include <string.h>

#include "core/assert.h"
#include "core/mem.h"

struct letter {
    struct letter *next;
    uint64_t ticket;
    struct weir__completion completion; /* its text is behind the letter */
    char text[];
};

struct weir__ev_mailbox {
    struct weir__mailbox port; /* first */
    struct weir__mailbox_options options;
    struct ev_async arrived;
    pthread_mutex_t lock; /* of what follows */
    pthread_t thread;     /* that runs the loop */
    bool has_thread;
    bool is_closed;
    struct letter *first, **end;
};

static struct weir__ev_mailbox *mailbox_of(struct weir__mailbox *port)
{
    return (struct weir__ev_mailbox *)port; /* its first member */
}

static void lock(struct weir__ev_mailbox *mailbox)
{
    int rc = pthread_mutex_lock(&mailbox->lock);

    WEIR_ASSERT(rc == 0);
}

static void unlock(struct weir__ev_mailbox *mailbox)
{
    int rc = pthread_mutex_unlock(&mailbox->lock);

    WEIR_ASSERT(rc == 0);
}

static struct letter *letter_new(uint64_t ticket,
                                 const struct weir__completion *completion)
{
    size_t len = completion->why == NULL ? 0 : strlen(completion->why);
    struct letter *letter = weir__mem_new(sizeof(*letter) + len + 1);

    if (letter == NULL)
        return NULL;
    letter->ticket = ticket;
    letter->completion = *completion;
    if (completion->why != NULL) {
        memcpy(letter->text, completion->why, len);
        letter->completion.why = letter->text;
    }
    return letter;
}

static int post(struct weir__mailbox *port, uint64_t ticket,
                const struct weir__completion *completion)
{
    struct weir__ev_mailbox *mailbox = mailbox_of(port);
    struct letter *letter;
    bool is_here, is_closed;

    lock(mailbox);
    is_closed = mailbox->is_closed;
    is_here = mailbox->has_thread &&
              pthread_equal(mailbox->thread, pthread_self()) != 0;
    unlock(mailbox);
    if (is_closed)
        return WEIR_ECANCELED;
    if (is_here) {
        mailbox->options.completed(ticket, completion, mailbox->options.arg);
        return WEIR_OK;
    }
    letter = letter_new(ticket, completion);
    if (letter == NULL)
        return WEIR_ENOMEM;
    lock(mailbox);
    is_closed = mailbox->is_closed;
    if (!is_closed) {
        *mailbox->end = letter;
        mailbox->end = &letter->next;
        ev_async_send(mailbox->options.loop, &mailbox->arrived);
    }
    unlock(mailbox);
    if (is_closed)
        weir__mem_free(letter);
    return is_closed ? WEIR_ECANCELED : WEIR_OK;
}

static struct letter *take_all(struct weir__ev_mailbox *mailbox)
{
    struct letter *first;

    lock(mailbox);
    first = mailbox->first;
    mailbox->first = NULL;
    mailbox->end = &mailbox->first;
    unlock(mailbox);
    return first;
}

static void on_arrived(struct ev_loop *loop, ev_async *arrived, int events)
{
    struct weir__ev_mailbox *mailbox = arrived->data;
    struct letter *letter = take_all(mailbox);

    (void)loop;
    (void)events;
    while (letter != NULL) {
        struct letter *next = letter->next;

        mailbox->options.completed(letter->ticket, &letter->completion,
                                   mailbox->options.arg);
        weir__mem_free(letter);
        letter = next;
    }
}

int weir__mailbox_open(const struct weir__mailbox_options *options,
                       struct weir__ev_mailbox **ret_mailbox)
{
    struct weir__ev_mailbox *mailbox = weir__mem_new(sizeof(*mailbox));

    if (mailbox == NULL)
        return WEIR_ENOMEM;
    if (pthread_mutex_init(&mailbox->lock, NULL) != 0) {
        weir__mem_free(mailbox);
        return WEIR_ESYSTEM;
    }
    mailbox->port.post = post;
    mailbox->options = *options;
    mailbox->end = &mailbox->first;
    ev_async_init(&mailbox->arrived, on_arrived);
    mailbox->arrived.data = mailbox;
    ev_async_start(options->loop, &mailbox->arrived);
    *ret_mailbox = mailbox;
    return WEIR_OK;
}

struct weir__mailbox *weir__mailbox_port(struct weir__ev_mailbox *mailbox)
{
    return &mailbox->port;
}

void weir__mailbox_here(struct weir__ev_mailbox *mailbox)
{
    pthread_t self = pthread_self();

    if (mailbox->has_thread && pthread_equal(mailbox->thread, self) != 0)
        return; /* only this thread writes it, or hands the loop over */
    lock(mailbox);
    mailbox->thread = self;
    mailbox->has_thread = true;
    unlock(mailbox);
}

void weir__mailbox_close(struct weir__ev_mailbox *mailbox, bool is_held)
{
    struct letter *letter;

    if (mailbox == NULL)
        return;
    lock(mailbox);
    mailbox->is_closed = true;
    unlock(mailbox);
    ev_async_stop(mailbox->options.loop, &mailbox->arrived);
    letter = take_all(mailbox);
    while (letter != NULL) {
        struct letter *next = letter->next;

        weir__mem_free(letter);
        letter = next;
    }
    if (is_held)
        return;
    (void)pthread_mutex_destroy(&mailbox->lock); /* nobody has it */
    weir__mem_free(mailbox);
}
