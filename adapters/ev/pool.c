/* SPDX-License-Identifier: MIT */
#include "adapters/ev/pool.h"

#include <ev.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <weir/base.h>

#include "adapters/ev/driver.h"
#include "adapters/ev/signals.h"
#include "adapters/ev/spare_stack.h"
#include "core/assert.h"
#include "core/mem.h"

/* A line that a handler logged while it ran. */
struct line {
    struct line *next;
    struct weir__thread_run *thread_run;
    enum weir_level level;
    char text[];
};

struct thread {
    struct weir__ev_pool *pool;
    pthread_t id;           /* the loop's, to join it */
    _Atomic pthread_t self; /* the same, by itself; 0: has not begun */
    const struct weir__run *volatile calling; /* what it runs; its own */
};

struct weir__ev_pool {
    struct weir__pool port; /* first */
    struct weir__ev_pool_options options;
    struct ev_async arrived;
    struct thread *threads; /* `started` of them */
    uint32_t started;
    pthread_mutex_t lock;             /* of all that follows */
    pthread_cond_t work;              /* a run waits, or the pool closes */
    uint32_t idle;                    /* threads that wait */
    uint32_t busy;                    /* those that run one */
    bool is_waking;                   /* an idle thread is on its way */
    struct weir__pool_share *waiting; /* topics with runs that wait */
    size_t waiting_count;             /* of runs */
    struct weir__thread_queue done;
    struct line *lines, **lines_end;
    bool is_loop_woken; /* of runs that are done */
    bool is_closing;
};

static struct weir__ev_pool *pool_of(struct weir__pool *port)
{
    return (struct weir__ev_pool *)port; /* its first member */
}

static void lock(struct weir__ev_pool *pool)
{
    int rc = pthread_mutex_lock(&pool->lock);

    WEIR_ASSERT(rc == 0);
}

static void unlock(struct weir__ev_pool *pool)
{
    int rc = pthread_mutex_unlock(&pool->lock);

    WEIR_ASSERT(rc == 0);
}

static void push(struct weir__thread_queue *queue,
                 struct weir__thread_run *thread_run)
{
    thread_run->next = NULL;
    if (queue->last == NULL)
        queue->first = thread_run;
    else
        queue->last->next = thread_run;
    queue->last = thread_run;
}

static struct weir__thread_run *pop(struct weir__thread_queue *queue)
{
    struct weir__thread_run *thread_run = queue->first;

    if (thread_run == NULL)
        return NULL;
    queue->first = thread_run->next;
    if (queue->first == NULL)
        queue->last = NULL;
    return thread_run;
}

static void remove_from(struct weir__thread_queue *queue,
                        struct weir__thread_run *thread_run)
{
    struct weir__thread_run *before = NULL;

    for (struct weir__thread_run *at = queue->first; at != thread_run;
         at = at->next)
        before = at;
    if (before == NULL)
        queue->first = thread_run->next;
    else
        before->next = thread_run->next;
    if (queue->last == thread_run)
        queue->last = before;
}

/* --- topics --------------------------------------------------------------- */

/* Under the lock, all of these. A thread takes the next run of the topic that
 * has the least of its share: of threads that are busy, by weight. Those cannot
 * be interrupted: a topic that has none gets one beyond `threads`. */

static void append(struct weir__ev_pool *pool, struct weir__pool_share *share)
{
    struct weir__pool_share **end = &pool->waiting;

    while (*end != NULL)
        end = &(*end)->next;
    share->next = NULL;
    *end = share;
}

static void unlink_share(struct weir__ev_pool *pool,
                         struct weir__pool_share *share)
{
    struct weir__pool_share **at = &pool->waiting;

    while (*at != share)
        at = &(*at)->next;
    *at = share->next;
}

static void put(struct weir__ev_pool *pool, struct weir__thread_run *thread_run)
{
    struct weir__pool_share *share = thread_run->share;

    share->weight = thread_run->weight;
    if (share->waiting.first == NULL)
        append(pool, share);
    push(&share->waiting, thread_run);
    pool->waiting_count++;
}

/* The topic goes behind those that wait with it. */
static void take_out(struct weir__ev_pool *pool,
                     struct weir__thread_run *thread_run)
{
    struct weir__pool_share *share = thread_run->share;

    remove_from(&share->waiting, thread_run);
    pool->waiting_count--;
    unlink_share(pool, share);
    if (share->waiting.first != NULL)
        append(pool, share);
}

/* NULL: none is to be taken now. */
static struct weir__pool_share *choose(const struct weir__ev_pool *pool)
{
    struct weir__pool_share *least = pool->waiting;

    if (least == NULL)
        return NULL;
    for (struct weir__pool_share *one = least->next; one != NULL;
         one = one->next)
        if (one->busy * least->weight < least->busy * one->weight)
            least = one;
    return least->busy == 0 || pool->busy < pool->port.threads ? least : NULL;
}

/* --- threads -------------------------------------------------------------- */

/* Under the lock; once until the loop took what is done. */
static void wake_loop(struct weir__ev_pool *pool)
{
    if (pool->is_loop_woken)
        return;
    pool->is_loop_woken = true;
    ev_async_send(pool->options.loop, &pool->arrived);
}

/* Under the lock: whether to signal `work`, after it. Threads are woken one by
 * one, each by the one before: where handlers are quick the first ones do it
 * all, and the others sleep on. */
static bool wakes_one(struct weir__ev_pool *pool)
{
    if (pool->idle == 0 || pool->is_waking || choose(pool) == NULL)
        return false;
    pool->is_waking = true;
    return true;
}

static void wake_one(struct weir__ev_pool *pool)
{
    (void)pthread_cond_signal(&pool->work); /* cannot fail */
}

/* Under the lock; NULL: the pool closes. */
static struct weir__thread_run *await_work(struct weir__ev_pool *pool)
{
    struct weir__pool_share *share = NULL;
    struct weir__thread_run *thread_run;

    while (!pool->is_closing && (share = choose(pool)) == NULL) {
        int rc;

        pool->idle++;
        rc = pthread_cond_wait(&pool->work, &pool->lock);
        pool->idle--;
        pool->is_waking = false;
        WEIR_ASSERT(rc == 0);
    }
    if (share == NULL || pool->is_closing)
        return NULL;
    thread_run = share->waiting.first;
    take_out(pool, thread_run);
    share->busy++;
    pool->busy++;
    return thread_run;
}

static void *work(void *arg)
{
    struct thread *thread = arg;
    struct weir__ev_pool *pool = thread->pool;
    struct weir__thread_run *thread_run;
    void *stack = weir__spare_stack_new();
    bool wakes;

    atomic_store(&thread->self, pthread_self());
    lock(pool);
    for (;;) {
        thread_run = await_work(pool);
        if (thread_run == NULL)
            break;
        thread_run->began_ns = weir__driver_clock(NULL);
        wakes = wakes_one(pool);
        unlock(pool);
        if (wakes)
            wake_one(pool);
        thread->calling = &thread_run->run;
        weir__thread_run_do(thread_run);
        thread->calling = NULL;
        lock(pool);
        thread_run->share->busy--;
        pool->busy--;
        push(&pool->done, thread_run);
        wake_loop(pool);
    }
    unlock(pool);
    weir__spare_stack_free(stack);
    return NULL;
}

/* The new thread must not see a signal before it blocks them. */
static int start_thread(struct weir__ev_pool *pool)
{
    struct thread *thread = &pool->threads[pool->started];
    sigset_t before;
    int rc;

    thread->pool = pool;
    weir__ev_signals_block(&before);
    rc = pthread_create(&thread->id, NULL, work, thread);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0)
        pool->started++;
    return rc;
}

/* --- the port ------------------------------------------------------------- */

/* Under the lock: for a run that was put there. */
static bool wants_one_more(const struct weir__ev_pool *pool,
                           const struct weir__pool_share *share)
{
    if (pool->started < pool->port.threads)
        return pool->waiting_count > pool->idle;
    return share->busy == 0 && share->waiting.first == share->waiting.last &&
           pool->idle <= (pool->is_waking ? 1 : 0) &&
           pool->started < WEIR__THREADS_MAX;
}

/* Where no thread can be started, the run waits for one of those there are;
 * without any, until one can be started for a later run, or its timeout. */
static void start(struct weir__pool *port, struct weir__thread_run *thread_run)
{
    struct weir__ev_pool *pool = pool_of(port);
    bool wants_thread, wakes;
    int rc;

    lock(pool);
    put(pool, thread_run);
    wants_thread = wants_one_more(pool, thread_run->share);
    wakes = wakes_one(pool);
    unlock(pool);
    if (wakes)
        wake_one(pool);
    if (!wants_thread)
        return;
    rc = start_thread(pool);
    if (rc != 0 && pool->started == 0)
        weir__log(pool->options.log, WEIR_LEVEL_ERROR,
                  "no thread can be started for handlers that block (%s); "
                  "their jobs wait",
                  strerror(rc));
}

static int64_t recall(struct weir__pool *port,
                      struct weir__thread_run *thread_run)
{
    struct weir__ev_pool *pool = pool_of(port);
    int64_t began_ns;

    lock(pool);
    began_ns = thread_run->began_ns;
    if (began_ns == 0)
        take_out(pool, thread_run);
    unlock(pool);
    return began_ns;
}

static void cancel(struct weir__pool *port, struct weir__thread_run *thread_run)
{
    lock(pool_of(port));
    thread_run->is_canceled = true;
    unlock(pool_of(port));
}

static bool is_canceled(struct weir__pool *port,
                        const struct weir__thread_run *thread_run)
{
    bool is;

    lock(pool_of(port));
    is = thread_run->is_canceled;
    unlock(pool_of(port));
    return is;
}

/* Without memory the line is lost. */
static void log_line(struct weir__pool *port,
                     struct weir__thread_run *thread_run, enum weir_level level,
                     const char *text)
{
    struct weir__ev_pool *pool = pool_of(port);
    size_t len = strlen(text);
    struct line *line = weir__mem_new(sizeof(*line) + len + 1);

    if (line == NULL)
        return;
    line->thread_run = thread_run;
    line->level = level;
    memcpy(line->text, text, len);
    lock(pool);
    *pool->lines_end = line;
    pool->lines_end = &line->next;
    wake_loop(pool);
    unlock(pool);
}

/* --- the loop ------------------------------------------------------------- */

static void log_all(struct weir__ev_pool *pool, struct line *line)
{
    while (line != NULL) {
        struct line *next = line->next;

        weir__thread_run_log(line->thread_run, pool->options.log, line->level,
                             line->text);
        weir__mem_free(line);
        line = next;
    }
}

/* Runs that are done come back, after their lines were logged. */
static struct weir__thread_queue take_done(struct weir__ev_pool *pool)
{
    struct weir__thread_queue done;
    struct line *lines;

    lock(pool);
    done = pool->done;
    lines = pool->lines;
    pool->done = (struct weir__thread_queue){0};
    pool->lines = NULL;
    pool->lines_end = &pool->lines;
    pool->is_loop_woken = false;
    unlock(pool);
    log_all(pool, lines);
    return done;
}

static void on_arrived(struct ev_loop *loop, ev_async *arrived, int events)
{
    struct weir__ev_pool *pool = arrived->data;
    int *depth = pool->options.depth;
    struct weir__thread_run *thread_run;
    struct weir__thread_queue done;

    (void)loop;
    (void)events;
    (*depth)++;
    done = take_done(pool);
    for (thread_run = pop(&done); thread_run != NULL; thread_run = pop(&done))
        pool->options.returned(thread_run, pool->options.arg);
    (*depth)--;
}

static bool make_locks(struct weir__ev_pool *pool)
{
    if (pthread_mutex_init(&pool->lock, NULL) != 0)
        return false;
    if (pthread_cond_init(&pool->work, NULL) == 0)
        return true;
    (void)pthread_mutex_destroy(&pool->lock); /* nobody has it */
    return false;
}

int weir__ev_pool_open(const struct weir__ev_pool_options *options,
                       struct weir__ev_pool **ret_pool)
{
    struct weir__ev_pool *pool = weir__mem_new(sizeof(*pool));

    WEIR_ASSERT(options->threads > 0 && options->threads <= WEIR__THREADS_MAX);
    if (pool == NULL)
        return WEIR_ENOMEM;
    pool->threads = weir__mem_new(WEIR__THREADS_MAX * sizeof(*pool->threads));
    if (pool->threads == NULL || !make_locks(pool)) {
        int rc = pool->threads == NULL ? WEIR_ENOMEM : WEIR_ESYSTEM;

        weir__mem_free(pool->threads);
        weir__mem_free(pool);
        return rc;
    }
    pool->port = (struct weir__pool){
        .threads = options->threads,
        .start = start,
        .recall = recall,
        .cancel = cancel,
        .is_canceled = is_canceled,
        .log = log_line,
    };
    pool->options = *options;
    pool->lines_end = &pool->lines;
    ev_async_init(&pool->arrived, on_arrived);
    pool->arrived.data = pool;
    ev_async_start(options->loop, &pool->arrived);
    *ret_pool = pool;
    return WEIR_OK;
}

struct weir__pool *weir__ev_pool_port(struct weir__ev_pool *pool)
{
    return &pool->port;
}

/* Places that no thread has begun in are as good as those of others. */
bool weir__ev_pool_current(const struct weir__ev_pool *pool,
                           struct weir_current *ret_current)
{
    const pthread_t self = pthread_self();

    for (uint32_t i = 0; i < WEIR__THREADS_MAX; i++) {
        const struct thread *thread = &pool->threads[i];
        const struct weir__run *run;

        if (atomic_load(&thread->self) != self)
            continue;
        run = thread->calling;
        return run != NULL && weir__run_current(run, ret_current);
    }
    return false;
}

static void free_all(struct weir__thread_queue *queue)
{
    for (;;) {
        struct weir__thread_run *thread_run = pop(queue);

        if (thread_run == NULL)
            return;
        weir__thread_run_free(thread_run);
    }
}

void weir__ev_pool_close(struct weir__ev_pool *pool)
{
    struct weir__thread_queue done;

    if (pool == NULL)
        return;
    lock(pool);
    pool->is_closing = true;
    (void)pthread_cond_broadcast(&pool->work); /* cannot fail */
    unlock(pool);
    for (uint32_t i = 0; i < pool->started; i++)
        (void)pthread_join(pool->threads[i].id, NULL); /* ours, joined once */
    ev_async_stop(pool->options.loop, &pool->arrived);
    done = take_done(pool);
    free_all(&done);
    while (pool->waiting != NULL) {
        struct weir__thread_run *thread_run = pool->waiting->waiting.first;

        take_out(pool, thread_run);
        weir__thread_run_free(thread_run);
    }
    (void)pthread_cond_destroy(&pool->work); /* nobody has them */
    (void)pthread_mutex_destroy(&pool->lock);
    weir__mem_free(pool->threads);
    weir__mem_free(pool);
}
