/* SPDX-License-Identifier: MIT */

/* Threads of weir as fibres. The linker leads calls of f to __wrap_f and calls
 * of __real_f to f. A fibre that has a mutex never blocks, so that a mutex is
 * always free: only their number is kept. */

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/fibre.h"

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*fn)(void *), void *arg);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*fn)(void *), void *arg);
int __wrap_pthread_join(pthread_t thread, void **result);
int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_detach(pthread_t thread);
int __real_pthread_detach(pthread_t thread);
pthread_t __wrap_pthread_self(void);
pthread_t __real_pthread_self(void);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __wrap_pthread_cond_signal(pthread_cond_t *cond);
int __real_pthread_cond_signal(pthread_cond_t *cond);
int __wrap_pthread_cond_broadcast(pthread_cond_t *cond);
int __real_pthread_cond_broadcast(pthread_cond_t *cond);
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old);
int __real_pthread_sigmask(int how, const sigset_t *set, sigset_t *old);
int __wrap_sem_wait(sem_t *semaphore);
int __real_sem_wait(sem_t *semaphore);
int __wrap_sem_clockwait(sem_t *semaphore, clockid_t clock,
                         const struct timespec *until);
int __real_sem_clockwait(sem_t *semaphore, clockid_t clock,
                         const struct timespec *until);
ssize_t __wrap_getrandom(void *buf, size_t len, unsigned flags);
ssize_t __real_getrandom(void *buf, size_t len, unsigned flags);
int __wrap_gethostname(char *name, size_t len);
int __real_gethostname(char *name, size_t len);

/* --- life ---------------------------------------------------------------- */

struct start {
    void *(*fn)(void *);
    void *arg;
};

static void run_thread(void *arg)
{
    struct start start = *(struct start *)arg;

    free(arg);
    (void)start.fn(start.arg); /* nobody in weir asks for the result */
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*fn)(void *), void *arg)
{
    struct start *start;

    if (!sim_is_inside())
        return __real_pthread_create(thread, attr, fn, arg);
    start = malloc(sizeof(*start));
    if (start == NULL)
        return EAGAIN;
    *start = (struct start){fn, arg};
    *thread = sim_spawn(run_thread, start);
    return 0;
}

static bool has_ended(void *arg)
{
    return sim_has_ended(*(const pthread_t *)arg);
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
    if (!sim_is_inside())
        return __real_pthread_join(thread, result);
    if (!sim_has_ended(thread))
        (void)sim_block(has_ended, &thread, INT64_MAX); /* only that wakes it */
    return 0;
}

int __wrap_pthread_detach(pthread_t thread)
{
    return sim_is_inside() ? 0 : __real_pthread_detach(thread);
}

pthread_t __wrap_pthread_self(void)
{
    return sim_is_inside() ? sim_self() : __real_pthread_self();
}

/* --- locks and conditions ------------------------------------------------ */

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (!sim_is_open())
        return __real_pthread_mutex_lock(mutex);
    sim_locked(1);
    return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    if (!sim_is_open())
        return __real_pthread_mutex_unlock(mutex);
    sim_locked(-1);
    return 0;
}

/* With the mutex given back meanwhile. */
static bool wait_for(const pthread_cond_t *cond, int64_t until_ns)
{
    bool woken;

    sim_locked(-1);
    woken = sim_wait(cond, until_ns);
    sim_locked(1);
    return woken;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    if (!sim_is_inside())
        return __real_pthread_cond_wait(cond, mutex);
    (void)wait_for(cond, INT64_MAX); /* only a signal wakes it */
    return 0;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    if (!sim_is_inside())
        return __real_pthread_cond_timedwait(cond, mutex, until);
    return wait_for(cond, until->tv_sec * SIM_S + until->tv_nsec) ? 0
                                                                  : ETIMEDOUT;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
    if (!sim_is_open())
        return __real_pthread_cond_broadcast(cond);
    sim_wake(cond, true);
    return 0;
}

/* POSIX lets it wake more than one, so it sometimes does. */
int __wrap_pthread_cond_signal(pthread_cond_t *cond)
{
    if (!sim_is_open())
        return __real_pthread_cond_signal(cond);
    sim_wake(cond, sim_one_in(16));
    return 0;
}

static bool is_posted(void *arg)
{
    int value = 0;

    return sem_getvalue(arg, &value) == 0 && value > 0;
}

int __wrap_sem_wait(sem_t *semaphore)
{
    if (!sim_is_inside())
        return __real_sem_wait(semaphore);
    if (!is_posted(semaphore))
        (void)sim_block(is_posted, semaphore, INT64_MAX); /* until it is */
    return sem_trywait(semaphore);
}

/* The world has one clock. */
int __wrap_sem_clockwait(sem_t *semaphore, clockid_t clock,
                         const struct timespec *until)
{
    if (!sim_is_inside())
        return __real_sem_clockwait(semaphore, clock, until);
    if (!is_posted(semaphore) &&
        !sim_block(is_posted, semaphore,
                   until->tv_sec * SIM_S + until->tv_nsec)) {
        errno = ETIMEDOUT;
        return -1;
    }
    return sem_trywait(semaphore);
}

/* --- who one is ---------------------------------------------------------- */

/* Signals of the world are none of the system's. */
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    if (!sim_is_inside())
        return __real_pthread_sigmask(how, set, old);
    return old == NULL ? 0 : sigemptyset(old);
}

ssize_t __wrap_getrandom(void *buf, size_t len, unsigned flags)
{
    unsigned char *byte = buf;

    if (!sim_is_inside())
        return __real_getrandom(buf, len, flags);
    for (size_t i = 0; i < len; i++)
        byte[i] = (unsigned char)sim_random();
    return (ssize_t)len;
}

int __wrap_gethostname(char *name, size_t len)
{
    if (!sim_is_inside())
        return __real_gethostname(name, len);
    (void)snprintf(name, len, "%s", sim_host()); /* cut like the real one */
    return 0;
}

/* libev asks, too: it must see the number that weir sees. */
pid_t getpid(void);
pid_t getpid(void)
{
    return sim_is_inside() ? sim_pid() : (pid_t)syscall(SYS_getpid);
}
