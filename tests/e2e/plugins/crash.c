/* SPDX-License-Identifier: MIT */

/* Crashes where the option `where` says. One source for three plugins: jobs one
 * by one, with CRASH_BATCH many at once, with CRASH_THREAD in threads. */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <weir/plugin.h>

struct crash {
    char where[16];
    struct weir_loop *loop;
    struct weir_handle handle;
};

static pthread_barrier_t both;

static const struct weir_option options[] = {
    {
        .name = "where",
        .type = WEIR_OPTION_CHOICE,
        .fallback = "run",
        .choices = "open|run|fault|together|timer|cancel|flush|close|elsewhere|"
                   "deep|exit",
    },
};

static bool is(const struct crash *crash, const char *where)
{
    return strcmp(crash->where, where) == 0;
}

static void on_timer(void *arg)
{
    (void)arg;
    abort();
}

static void on_cancel(struct weir_job *job, enum weir_cancel why, void *arg)
{
    (void)job;
    (void)why;
    (void)arg;
    abort();
}

static int open_crash(const struct weir_open *open, void **ret_self)
{
    struct crash *crash = calloc(1, sizeof(*crash));
    const char *where = open->values[0].text;

    if (crash == NULL)
        return WEIR_ENOMEM;
    memcpy(crash->where, where, strlen(where)); /* one of the choices: fits */
    (void)pthread_barrier_init(&both, NULL, 2);
    if (is(crash, "open"))
        abort();
    crash->loop = weir_open_loop(open);
    *ret_self = crash;
    return 0;
}

static void close_crash(void *self)
{
    struct crash *crash = self;

    if (is(crash, "close"))
        abort();
    free(crash);
}

#ifndef CRASH_THREAD
static int flush(void *self)
{
    if (is(self, "flush"))
        abort();
    return 0;
}
#endif

/* The stack of what crashes then has nothing of the plugin. */
static void leave_stack(void)
{
    static char stack[64 * 1024];
    ucontext_t other;

    if (getcontext(&other) != 0)
        return;
    other.uc_stack.ss_sp = stack;
    other.uc_stack.ss_size = sizeof(stack);
    other.uc_link = NULL;
    makecontext(&other, abort, 0);
    (void)setcontext(&other);
}

__attribute__((noinline)) static void fault(void)
{
    volatile int *volatile nowhere = NULL;

    *nowhere = 1;
}

/* Returns never: the stack ends first. */
__attribute__((noinline)) static int recurse(int depth)
{
    volatile char page[4096];

    page[0] = (char)depth;
    return depth < 0 ? depth : recurse(depth + page[0] * 0 + 1) + page[0];
}

static enum weir_verdict run(void *self, struct weir_job *job)
{
    struct crash *crash = self;

    if (is(crash, "run"))
        abort();
    if (is(crash, "together"))
        (void)pthread_barrier_wait(&both); /* a failure is seen by the test */
    if (is(crash, "fault") || is(crash, "together"))
        fault();
    if (is(crash, "exit"))
        exit(0);
    if (is(crash, "deep"))
        (void)recurse(0);
    if (is(crash, "elsewhere"))
        leave_stack();
    if (is(crash, "timer"))
        weir_timer_start(weir_timer_new(crash->loop, on_timer, NULL), 0);
    if (is(crash, "cancel"))
        weir_job_on_cancel(job, on_cancel, NULL);
    if (!is(crash, "timer") && !is(crash, "cancel"))
        return WEIR_DONE;
    crash->handle = weir_job_handle(job);
    return WEIR_PENDING;
}

#ifdef CRASH_BATCH
static enum weir_verdict run_batch(void *self, struct weir_job *const *jobs,
                                   size_t count, enum weir_verdict *verdicts)
{
    (void)count;
    (void)verdicts;
    return run(self, jobs[0]);
}
#endif

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "crash",
    .options = options,
    .option_count = 1,
    .option_size = sizeof(struct weir_option),
    .open = open_crash,
    .run = run,
    .close = close_crash,
#ifdef CRASH_THREAD
    .flags = WEIR_PLUGIN_BLOCKING,
#else
    .flush = flush,
#endif
#ifdef CRASH_BATCH
    .run_batch = run_batch,
#endif
};
