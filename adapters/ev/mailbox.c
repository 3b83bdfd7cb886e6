/* SPDX-License-Identifier: MIT */
#include "adapters/ev/mailbox.h"

#include <ev.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "adapters/ev/fork.h"
#include "core/assert.h"
#include "core/mem.h"

struct completed {
    struct weir__mailbox_message message; /* first */
    struct weir__ev_mailbox *mailbox;
    uint64_t ticket;
    struct weir__completion completion; /* its text is behind */
    char text[];
};

struct weir__ev_mailbox {
    struct weir__mailbox port; /* first */
    struct weir__mailbox_options options;
    struct ev_async arrived;
    struct weir__mailbox_queue queue;
    _Atomic pthread_t thread; /* that runs the loop; 0: none has yet */
    size_t dropped;           /* completions that nobody read */
    unsigned forks;           /* of the process that opened it */
};

static struct weir__ev_mailbox *mailbox_of(struct weir__mailbox *port)
{
    return (struct weir__ev_mailbox *)port; /* its first member */
}

/* WEIR_ECANCELED: it is closed, the message stays the caller's. */
static int put(struct weir__ev_mailbox *mailbox,
               struct weir__mailbox_message *message)
{
    struct weir__mailbox_queue *queue = &mailbox->queue;
    bool is_closed;

    weir__mailbox_queue_lock(queue);
    is_closed = queue->is_closed;
    if (!is_closed && weir__mailbox_queue_put(queue, message))
        ev_async_send(mailbox->options.loop, &mailbox->arrived);
    weir__mailbox_queue_unlock(queue);
    return is_closed ? WEIR_ECANCELED : WEIR_OK;
}

static void read_completed(struct weir__mailbox_message *message,
                           bool is_dropped)
{
    struct completed *completed = (struct completed *)message; /* its first */
    const struct weir__mailbox_options *options = &completed->mailbox->options;

    if (is_dropped)
        completed->mailbox->dropped++;
    else
        options->completed(completed->ticket, &completed->completion,
                           options->arg);
    weir__mem_free(completed);
}

static struct completed *completed_new(struct weir__ev_mailbox *mailbox,
                                       uint64_t ticket,
                                       const struct weir__completion *from)
{
    size_t len = from->why == NULL ? 0 : strlen(from->why);
    struct completed *completed = weir__mem_new(sizeof(*completed) + len + 1);

    if (completed == NULL)
        return NULL;
    completed->message.read = read_completed;
    completed->mailbox = mailbox;
    completed->ticket = ticket;
    completed->completion = *from;
    if (from->why != NULL) {
        memcpy(completed->text, from->why, len);
        completed->completion.why = completed->text;
    }
    return completed;
}

static pthread_t thread_of(const struct weir__ev_mailbox *mailbox)
{
    return atomic_load_explicit(&mailbox->thread, memory_order_relaxed);
}

/* Under the lock, which close takes as well: who looks is done by then. */
static void look(struct weir__ev_mailbox *mailbox, bool *ret_is_here,
                 bool *ret_is_closed)
{
    weir__mailbox_queue_lock(&mailbox->queue);
    *ret_is_closed = mailbox->queue.is_closed;
    *ret_is_here = thread_of(mailbox) == pthread_self();
    weir__mailbox_queue_unlock(&mailbox->queue);
}

static int post(struct weir__mailbox *port, uint64_t ticket,
                const struct weir__completion *completion)
{
    struct weir__ev_mailbox *mailbox = mailbox_of(port);
    struct completed *completed;
    bool is_here, is_closed;
    int rc;

    if (weir__mailbox_is_forked(mailbox))
        return WEIR_ETHREAD; /* the lock may be held for ever */
    look(mailbox, &is_here, &is_closed);
    if (is_closed)
        return WEIR_ECANCELED;
    if (is_here) {
        mailbox->options.completed(ticket, completion, mailbox->options.arg);
        return WEIR_OK;
    }
    completed = completed_new(mailbox, ticket, completion);
    if (completed == NULL)
        return WEIR_ENOMEM;
    rc = put(mailbox, &completed->message);
    if (rc < 0)
        weir__mem_free(completed);
    return rc;
}

static void on_arrived(struct ev_loop *loop, ev_async *arrived, int events)
{
    struct weir__ev_mailbox *mailbox = arrived->data;

    (void)loop;
    (void)events;
    weir__mailbox_queue_read(&mailbox->queue, false);
}

int weir__mailbox_open(const struct weir__mailbox_options *options,
                       struct weir__ev_mailbox **ret_mailbox)
{
    struct weir__ev_mailbox *mailbox = weir__mem_new(sizeof(*mailbox));
    int rc;

    if (mailbox == NULL)
        return WEIR_ENOMEM;
    rc = weir__mailbox_queue_init(&mailbox->queue);
    if (rc < 0) {
        weir__mem_free(mailbox);
        return rc;
    }
    mailbox->port.post = post;
    mailbox->forks = weir__forks();
    mailbox->options = *options;
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

bool weir__mailbox_is_here(struct weir__ev_mailbox *mailbox)
{
    bool is_here, is_closed;

    look(mailbox, &is_here, &is_closed);
    return is_here;
}

bool weir__mailbox_is_forked(const struct weir__ev_mailbox *mailbox)
{
    return mailbox->forks != weir__forks();
}

bool weir__mailbox_may_be_here(const struct weir__ev_mailbox *mailbox)
{
    pthread_t thread = thread_of(mailbox);

    return (thread == 0 || thread == pthread_self()) &&
           !weir__mailbox_is_forked(mailbox);
}

void weir__mailbox_here(struct weir__ev_mailbox *mailbox)
{
    atomic_store_explicit(&mailbox->thread, pthread_self(),
                          memory_order_relaxed);
}

int weir__mailbox_send(struct weir__ev_mailbox *mailbox,
                       struct weir__mailbox_message *message, size_t size)
{
    int rc;

    if (weir__mailbox_is_forked(mailbox))
        return WEIR_ETHREAD;
    message->size =
        size < WEIR__MAILBOX_MESSAGE_MIN ? WEIR__MAILBOX_MESSAGE_MIN : size;
    rc = weir__mailbox_queue_admit(&mailbox->queue, message->size);
    return rc < 0 ? rc : put(mailbox, message);
}

void weir__mailbox_read(struct weir__ev_mailbox *mailbox)
{
    if (mailbox != NULL)
        weir__mailbox_queue_read(&mailbox->queue, false);
}

void weir__mailbox_close(struct weir__ev_mailbox *mailbox, size_t held)
{
    if (mailbox == NULL)
        return;
    weir__mailbox_queue_close(&mailbox->queue);
    ev_async_stop(mailbox->options.loop, &mailbox->arrived);
    weir__mailbox_queue_read(&mailbox->queue, true);
    if (held > mailbox->dropped)
        return;
    weir__mailbox_queue_fini(&mailbox->queue);
    weir__mem_free(mailbox);
}
