/* SPDX-License-Identifier: MIT */
#include "adapters/ev/thread.h"

#include <ev.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <weir/base.h>

#include "adapters/ev/signals.h"
#include "core/assert.h"
#include "core/mem.h"

struct weir__ev_thread {
    struct ev_loop *loop;
    struct ev_async end;
    pthread_t thread;
    void (*begun)(void *arg);
    void (*ended)(void *arg);
    void *arg;
    sem_t *has_begun; /* of the caller of start, who waits for it */
};

static void on_end(struct ev_loop *loop, ev_async *end, int events)
{
    (void)end;
    (void)events;
    ev_break(loop, EVBREAK_ALL);
}

int weir__ev_thread_open(struct weir__ev_thread **ret_thread)
{
    struct weir__ev_thread *thread = weir__mem_new(sizeof(*thread));

    if (thread == NULL)
        return WEIR_ENOMEM;
    thread->loop = ev_loop_new(EVFLAG_AUTO);
    if (thread->loop == NULL) {
        weir__mem_free(thread);
        return WEIR_ENOMEM;
    }
    ev_async_init(&thread->end, on_end);
    ev_async_start(thread->loop, &thread->end);
    *ret_thread = thread;
    return WEIR_OK;
}

struct ev_loop *weir__ev_thread_loop(struct weir__ev_thread *thread)
{
    return thread->loop;
}

/* `ended` may free `thread`. */
static void *work(void *arg)
{
    struct weir__ev_thread *thread = arg;

    thread->begun(thread->arg);
    (void)sem_post(thread->has_begun); /* its count is 0 */
    ev_run(thread->loop, 0);
    thread->ended(thread->arg);
    return NULL;
}

/* The new thread must not see a signal before it blocks them. It may have ended
 * when it has begun. */
int weir__ev_thread_start(struct weir__ev_thread *thread,
                          void (*begun)(void *arg), void (*ended)(void *arg),
                          void *arg)
{
    sem_t has_begun;
    sigset_t before;
    int rc;

    if (sem_init(&has_begun, 0, 0) != 0)
        return WEIR_ESYSTEM;
    thread->begun = begun;
    thread->ended = ended;
    thread->arg = arg;
    thread->has_begun = &has_begun;
    weir__ev_signals_block(&before);
    rc = pthread_create(&thread->thread, NULL, work, thread);
    while (rc == 0 && sem_wait(&has_begun) != 0)
        ; /* a signal came */
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)sem_destroy(&has_begun);
    return rc == 0 ? WEIR_OK : WEIR_ESYSTEM;
}

void weir__ev_thread_end(struct weir__ev_thread *thread)
{
    ev_async_send(thread->loop, &thread->end);
}

void weir__ev_thread_join(struct weir__ev_thread *thread)
{
    int rc = pthread_join(thread->thread, NULL);

    WEIR_ASSERT(rc == 0);
}

void weir__ev_thread_let_go(void)
{
    int rc = pthread_detach(pthread_self());

    WEIR_ASSERT(rc == 0);
}

void weir__ev_thread_free(struct weir__ev_thread *thread)
{
    if (thread == NULL)
        return;
    ev_async_stop(thread->loop, &thread->end);
    ev_loop_destroy(thread->loop);
    weir__mem_free(thread);
}
