/* SPDX-License-Identifier: MIT */
#include "adapters/ev/thread.h"

#include <limits.h>
#include <poll.h>
#include <weir/thread.h>

#include "adapters/ev/fd_mailbox.h"
#include "adapters/ev/fork.h"
#include "adapters/weir/many.h"
#include "core/assert.h"
#include "core/mem.h"

/* A reactor on a thread of its own, and the way back to the host's thread. */

struct told {
    struct weir__mailbox_message message; /* first */
    weir_told_fn fn;
    void *arg;
    struct weir_thread *thread;
};

struct weir_thread {
    struct weir__ev_thread *ev;
    struct weir__fd_mailbox mailbox;
    struct weir_reactor *reactor;
    unsigned forks;       /* of the process that opened it */
    struct told *stopped; /* sent when the reactor stopped; NULL: none */
    bool is_started;
    bool is_dispatching;  /* the host's */
    bool is_freed;        /* in a callback on the host's thread */
    bool is_freed_within; /* in one on the reactor's thread */
};

/* --- life ----------------------------------------------------------------- */

static int open_parts(struct weir_thread *thread,
                      const struct weir_options *options,
                      struct weir_error *err)
{
    struct weir_options own = *options;
    int rc = weir__ev_thread_open(&thread->ev);

    if (rc < 0)
        return weir__error_code(err, rc);
    thread->forks = weir__forks();
    own.loop = weir__ev_thread_loop(thread->ev);
    return weir_reactor_open(&own, &thread->reactor, err);
}

int weir_thread_open(const struct weir_options *options,
                     struct weir_thread **ret_thread, struct weir_error *err)
{
    struct weir_thread *thread;
    int rc;

    if (options->loop != NULL)
        return weir__error_set(err, WEIR_EINVAL,
                               "a reactor on a thread of its own has a loop of "
                               "its own: leave loop out");
    thread = weir__mem_new(sizeof(*thread));
    if (thread == NULL)
        return weir__error_code(err, WEIR_ENOMEM);
    rc = weir__fd_mailbox_init(&thread->mailbox);
    if (rc < 0) {
        weir__mem_free(thread);
        return weir__error_set(err, rc, "no descriptor can be had");
    }
    rc = open_parts(thread, options, err);
    if (rc < 0) {
        weir__ev_thread_free(thread->ev);
        weir__fd_mailbox_fini(&thread->mailbox);
        weir__mem_free(thread);
        return rc;
    }
    *ret_thread = thread;
    return WEIR_OK;
}

struct weir_reactor *weir_thread_reactor(const struct weir_thread *thread)
{
    return thread->reactor;
}

/* The reactor is freed. What the host's last callbacks ask for is refused. */
static void destroy(struct weir_thread *thread)
{
    thread->reactor = NULL;
    thread->is_dispatching = true;
    weir__mailbox_queue_close(&thread->mailbox.queue);
    weir__fd_mailbox_read(&thread->mailbox);
    weir__mem_free(thread->stopped);
    weir__ev_thread_free(thread->ev);
    weir__fd_mailbox_fini(&thread->mailbox);
    weir__mem_free(thread);
}

static void on_begun(void *arg)
{
    struct weir_thread *thread = arg;

    weir__mailbox_here(thread->reactor->mailbox);
}

static void on_ended(void *arg)
{
    struct weir_thread *thread = arg;

    if (!thread->is_freed_within) {
        weir_reactor_free(thread->reactor);
        return; /* weir_thread_free joins this thread */
    }
    weir__ev_thread_let_go();
    destroy(thread);
}

/* The thread is not there in a child of a fork, and its locks may be held. */
static bool is_forked(const struct weir_thread *thread)
{
    return thread->forks != weir__forks();
}

int weir_thread_start(struct weir_thread *thread, struct weir_error *err)
{
    int rc;

    if (is_forked(thread))
        return weir__facade_check_thread(thread->reactor, err);
    if (thread->is_started)
        return weir__error_set(err, WEIR_EINVAL, "the thread runs already");
    thread->is_started = true; /* before: a callback may free it at once */
    rc = weir__ev_thread_start(thread->ev, on_begun, on_ended, thread);
    if (rc == WEIR_OK)
        return WEIR_OK;
    thread->is_started = false;
    return weir__error_set(err, rc, "no thread can be started");
}

static void join(struct weir_thread *thread)
{
    if (!thread->is_started) {
        weir_reactor_free(thread->reactor);
        return;
    }
    weir__ev_thread_end(thread->ev);
    weir__ev_thread_join(thread->ev);
}

/* On the reactor's thread: the loop goes on until the reactor is freed, which
 * it is in this turn. */
static void free_within(struct weir_thread *thread)
{
    if (thread->is_freed_within)
        return;
    thread->is_freed_within = true;
    weir_reactor_free(thread->reactor);
    weir__ev_thread_end(thread->ev);
}

void weir_thread_free(struct weir_thread *thread)
{
    if (thread == NULL || thread->is_freed || is_forked(thread))
        return;
    if (thread->is_dispatching) {
        thread->is_freed = true; /* dispatch does it */
        return;
    }
    if (thread->is_started && weir__mailbox_is_here(thread->reactor->mailbox)) {
        free_within(thread);
        return;
    }
    join(thread);
    destroy(thread);
}

/* --- to the host's thread ---------------------------------------------- */

static void read_told(struct weir__mailbox_message *message, bool is_dropped)
{
    struct told told = *(struct told *)message; /* its first member */

    WEIR_ASSERT(!is_dropped);
    weir__mem_free(message);
    if (told.fn != NULL)
        told.fn(told.arg);
}

static struct told *told_new(struct weir_thread *thread, weir_told_fn fn,
                             void *arg)
{
    struct told *told = weir__mem_new(sizeof(*told));

    if (told == NULL)
        return NULL;
    told->message.read = read_told;
    told->fn = fn;
    told->arg = arg;
    told->thread = thread;
    return told;
}

int weir_thread_tell(struct weir_thread *thread, weir_told_fn fn, void *arg)
{
    struct told *told = told_new(thread, fn, arg);
    int rc;

    WEIR_ASSERT(fn != NULL);
    if (told == NULL)
        return WEIR_ENOMEM;
    rc = is_forked(thread)
             ? WEIR_ETHREAD
             : weir__fd_mailbox_send(&thread->mailbox, &told->message,
                                     sizeof(*told));
    if (rc < 0)
        weir__mem_free(told);
    return rc;
}

int weir_thread_fd(const struct weir_thread *thread)
{
    return thread->mailbox.fd;
}

void weir_thread_dispatch(struct weir_thread *thread)
{
    WEIR_ASSERT(!thread->is_dispatching);
    if (is_forked(thread))
        return;
    thread->is_dispatching = true;
    weir__fd_mailbox_read(&thread->mailbox);
    thread->is_dispatching = false;
    if (!thread->is_freed)
        return;
    join(thread);
    destroy(thread);
}

int weir_thread_wait(struct weir_thread *thread, int64_t ms)
{
    struct pollfd readable = {.fd = thread->mailbox.fd, .events = POLLIN};
    int most = ms < 0 ? -1 : ms > INT_MAX ? INT_MAX : (int)ms;

    if (is_forked(thread))
        return WEIR_ETHREAD;
    if (poll(&readable, 1, most) < 1)
        return WEIR_ETIMEDOUT;
    weir_thread_dispatch(thread);
    return WEIR_OK;
}

/* --- to the reactor's thread ---------------------------------------------- */

static void answer(struct weir__mailbox_message *message, bool is_dropped)
{
    WEIR_ASSERT(!is_dropped);
    weir__many_answer((struct weir__many *)message); /* its first member */
}

/* `submit` took the room in the mailbox. */
static void send_back(struct weir__many *many)
{
    struct weir_thread *thread = many->done_arg;

    many->message.read = answer;
    many->message.size = many->bytes;
    weir__fd_mailbox_put(&thread->mailbox, &many->message);
}

static int check_started(const struct weir_thread *thread,
                         struct weir_error *err)
{
    if (thread->reactor == NULL)
        return weir__error_code(err, WEIR_ECANCELED);
    if (is_forked(thread))
        return weir__facade_check_thread(thread->reactor, err);
    if (!thread->is_started)
        return weir__error_set(err, WEIR_EINVAL,
                               "the thread does not run: weir_thread_start "
                               "comes first");
    return WEIR_OK;
}

static int submit(struct weir_thread *thread, struct weir__many *many)
{
    struct weir__mailbox_queue *queue = &thread->mailbox.queue;
    size_t bytes;
    int rc;

    if (many->bytes < WEIR__MAILBOX_MESSAGE_MIN)
        many->bytes = WEIR__MAILBOX_MESSAGE_MIN;
    bytes = many->bytes; /* `many` is not ours once it is sent */
    rc = weir__mailbox_queue_admit(queue, bytes);
    if (rc < 0)
        return rc;
    rc = weir__many_send(many, thread->reactor);
    if (rc < 0)
        weir__mailbox_queue_release(queue, bytes);
    return rc;
}

int weir_thread_submit(struct weir_thread *thread,
                       const struct weir_new_jobs *jobs, struct weir_error *err)
{
    struct weir__many *many;
    int rc = check_started(thread, err);

    if (rc == WEIR_OK)
        rc = weir__many_copy(jobs, &many, err);
    if (rc < 0)
        return rc;
    many->done = send_back;
    many->done_arg = thread;
    rc = submit(thread, many);
    if (rc == WEIR_OK)
        return WEIR_OK;
    weir__many_free(many);
    return weir__error_code(err, rc);
}

static void on_stopped(void *arg)
{
    struct weir_thread *thread = arg;
    struct told *told = thread->stopped;

    if (told == NULL)
        return;
    thread->stopped = NULL;
    weir__fd_mailbox_put(&thread->mailbox, &told->message);
}

static void stop(int code, struct weir_reactor *reactor, void *arg)
{
    struct told *told = arg;
    struct weir_thread *thread = told->thread;

    if (code < 0) {
        weir__mem_free(told);
        return;
    }
    weir__mem_free(thread->stopped);
    thread->stopped = told;
    weir_reactor_stop(reactor, on_stopped, thread);
}

int weir_thread_stop(struct weir_thread *thread, weir_stopped_fn fn, void *arg)
{
    int rc = check_started(thread, NULL);
    struct told *told;

    if (rc < 0)
        return rc;
    told = told_new(thread, fn, arg);
    if (told == NULL)
        return WEIR_ENOMEM;
    rc = weir_reactor_call(thread->reactor, stop, told);
    if (rc < 0)
        weir__mem_free(told);
    return rc;
}

static void give_back(int code, struct weir_reactor *reactor, void *arg)
{
    (void)arg;
    if (code == WEIR_OK)
        weir_reactor_give_back(reactor);
}

int weir_thread_give_back(struct weir_thread *thread)
{
    int rc = check_started(thread, NULL);

    return rc < 0 ? rc : weir_reactor_call(thread->reactor, give_back, NULL);
}
