/* SPDX-License-Identifier: MIT */
#include "adapters/redis/conn/glue.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

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
 * only a partial write needs the watcher, and with TLS one that had to wait for
 * a read. */
static void add_write(void *data)
{
    struct weir__glue *glue = glue_of(data);
    bool is_connected = (glue->context->c.flags & REDIS_CONNECTED) != 0;

    if (glue->is_handling || !is_connected)
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
    glue->pid = getpid();
    glue->ssl = NULL;
    context->ev.data = glue;
    context->ev.addRead = add_read;
    context->ev.delRead = del_read;
    context->ev.addWrite = add_write;
    context->ev.delWrite = del_write;
    context->ev.cleanup = clean_up;
}

/* --- without SIGPIPE ----------------------------------------------------- */

/* hiredis writes with write(2), which raises SIGPIPE when the peer is gone, and
 * OpenSSL begins with one. The host's disposition is not ours to change, so the
 * signal is blocked for the moment and the one we caused is taken back. Not
 * around reads, which run callbacks. */
struct shield {
    sigset_t before;
    bool was_pending;
};

static bool pipe_signal_pends(void)
{
    sigset_t pending;

    (void)sigemptyset(&pending); /* cannot fail */
    (void)sigpending(&pending);  /* cannot fail */
    return sigismember(&pending, SIGPIPE) == 1;
}

static void raise_shield(struct shield *shield)
{
    sigset_t pipe_only;

    (void)sigemptyset(&pipe_only); /* cannot fail */
    (void)sigaddset(&pipe_only, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &pipe_only, &shield->before);
    /* Unblocked so far, it would have been delivered. */
    shield->was_pending =
        sigismember(&shield->before, SIGPIPE) == 1 && pipe_signal_pends();
}

static void lower_shield(const struct shield *shield, bool has_failed)
{
    static const struct timespec now = {0};
    sigset_t pipe_only;

    (void)sigemptyset(&pipe_only); /* cannot fail */
    (void)sigaddset(&pipe_only, SIGPIPE);
    if (has_failed && !shield->was_pending && pipe_signal_pends())
        (void)sigtimedwait(&pipe_only, NULL, &now); /* taken back */
    (void)pthread_sigmask(SIG_SETMASK, &shield->before, NULL);
}

/* --- what the owner calls, once it is attached ---------------------------- */

bool weir__glue_secure(struct weir__glue *glue, const struct weir__tls *tls,
                       const char *host, char *why, size_t cap)
{
    struct shield shield;

    WEIR_ASSERT(glue->context != NULL && glue->ssl == NULL);
    raise_shield(&shield);
    glue->ssl = weir__tls_begin(tls, &glue->context->c, host, why, cap);
    lower_shield(&shield, glue->ssl == NULL);
    return glue->ssl != NULL;
}

static void handle(struct weir__glue *glue, void (*fn)(redisAsyncContext *))
{
    WEIR_ASSERT(glue->context != NULL && !glue->is_handling);
    if (glue->pid != getpid())
        return;
    if (glue->ssl != NULL)
        weir__tls_prepare();
    glue->is_handling = true;
    fn(glue->context);
    glue->is_handling = false;
}

void weir__glue_read(struct weir__glue *glue)
{
    handle(glue, redisAsyncHandleRead);
}

void weir__glue_write(struct weir__glue *glue)
{
    struct shield shield;

    raise_shield(&shield);
    WEIR__STEP("write");
    handle(glue, redisAsyncHandleWrite);
    WEIR__STEP("written");
    lower_shield(&shield, glue->context == NULL);
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
