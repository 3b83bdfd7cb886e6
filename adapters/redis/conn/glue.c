/* SPDX-License-Identifier: MIT */
#include "adapters/redis/conn/glue.h"

#include <signal.h>
#include <time.h>

#include "core/assert.h"
#include "core/chaos.h"

static struct weir__glue *glue_of(void *data)
{
    struct weir__glue *glue = data;

    WEIR_ASSERT(glue != NULL && glue->context != NULL);
    return glue;
}

/* --- what hiredis calls ------------------------------------------------- */

static void add_read(void *data)
{
    struct weir__glue *glue = glue_of(data);

    ev_io_start(glue->loop, &glue->read);
}

static void del_read(void *data)
{
    struct weir__glue *glue = glue_of(data);

    ev_io_stop(glue->loop, &glue->read);
}

/* Asked for after each command; once connected the owner writes by itself, so
 * only a partial write needs the watcher. */
static void add_write(void *data)
{
    struct weir__glue *glue = glue_of(data);
    bool is_connected = (glue->context->c.flags & REDIS_CONNECTED) != 0;

    if (glue->is_writing || !is_connected)
        ev_io_start(glue->loop, &glue->write);
}

static void del_write(void *data)
{
    struct weir__glue *glue = glue_of(data);

    ev_io_stop(glue->loop, &glue->write);
}

/* hiredis 1.x may call it twice for one context. */
static void clean_up(void *data)
{
    struct weir__glue *glue = data;

    ev_io_stop(glue->loop, &glue->read);
    ev_io_stop(glue->loop, &glue->write);
    glue->context = NULL;
}

/* --- what libev calls ---------------------------------------------------- */

static void on_readable(struct ev_loop *loop, ev_io *watcher, int events)
{
    struct weir__glue *glue = glue_of(watcher->data);

    (void)loop; /* the glue's own */
    (void)events;
    glue->on_ready(false, glue->arg);
}

static void on_writable(struct ev_loop *loop, ev_io *watcher, int events)
{
    struct weir__glue *glue = glue_of(watcher->data);

    (void)loop; /* the glue's own */
    (void)events;
    glue->on_ready(true, glue->arg);
}

/* --- what the owner calls ------------------------------------------------ */

void weir__glue_attach(struct weir__glue *glue,
                       struct redisAsyncContext *context)
{
    WEIR_ASSERT(glue->context == NULL && context->ev.data == NULL);
    WEIR_ASSERT(context->c.fd >= 0 && context->c.err == 0);
    ev_io_init(&glue->read, on_readable, context->c.fd, EV_READ);
    ev_io_init(&glue->write, on_writable, context->c.fd, EV_WRITE);
    glue->read.data = glue;
    glue->write.data = glue;
    glue->context = context;
    context->ev.data = glue;
    context->ev.addRead = add_read;
    context->ev.delRead = del_read;
    context->ev.addWrite = add_write;
    context->ev.delWrite = del_write;
    context->ev.cleanup = clean_up;
}

void weir__glue_read(struct weir__glue *glue)
{
    WEIR_ASSERT(glue->context != NULL);
    redisAsyncHandleRead(glue->context);
}

static bool pipe_signal_pends(void)
{
    sigset_t pending;

    (void)sigemptyset(&pending); /* cannot fail */
    (void)sigpending(&pending);  /* cannot fail */
    return sigismember(&pending, SIGPIPE) == 1;
}

/* hiredis writes with write(2), which raises SIGPIPE when the peer is gone. The
 * host's disposition is not ours to change, so the signal is blocked for the
 * moment and the one we caused is taken back. */
void weir__glue_write(struct weir__glue *glue)
{
    static const struct timespec now = {0};
    sigset_t pipe_only, before;
    bool was_pending;

    WEIR_ASSERT(glue->context != NULL && !glue->is_writing);
    (void)sigemptyset(&pipe_only); /* cannot fail */
    (void)sigaddset(&pipe_only, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    /* Unblocked so far, it would have been delivered. */
    was_pending = sigismember(&before, SIGPIPE) == 1 && pipe_signal_pends();
    glue->is_writing = true;
    WEIR__STEP("write");
    redisAsyncHandleWrite(glue->context);
    WEIR__STEP("written");
    glue->is_writing = false;
    if (glue->context == NULL && !was_pending && pipe_signal_pends())
        (void)sigtimedwait(&pipe_only, NULL, &now); /* taken back */
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

size_t weir__glue_buffered(const struct weir__glue *glue)
{
    WEIR_ASSERT(glue->context != NULL);
    return sdslen(glue->context->c.obuf);
}

bool weir__glue_is_stuck(struct weir__glue *glue)
{
    return ev_is_active(&glue->write);
}
