/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "exec.h"

/* A command for one job. Its output is read until it has ended, not until
 * everybody who may write to it has. */

enum { READ_CAP = 16 * 1024, LAST_CHANCE_MS = 1000 };

struct child {
    struct child *next;
    struct child **link; /* what points here */
    struct exec *of;
    child_done_fn done;
    struct weir_job *job; /* NULL: given up */
    struct weir_handle handle;
    struct process process;
    int out; /* -1: it has ended */
    struct weir_watch *out_watch;
    struct output output;
};

/* --- output --------------------------------------------------------------- */

static void close_output(struct child *child)
{
    weir_watch_free(child->out_watch);
    child->out_watch = NULL;
    if (child->out >= 0)
        (void)close(child->out); /* only read from */
    child->out = -1;
}

/* What is there now, up to a bound; false: that was all for now. */
static bool read_some(struct child *child)
{
    char bytes[READ_CAP];
    ssize_t len = read(child->out, bytes, sizeof(bytes));

    if (len > 0) {
        output_take(&child->output, bytes, (size_t)len);
        return true;
    }
    if (len == 0 || (errno != EAGAIN && errno != EINTR))
        close_output(child);
    return false;
}

static void on_output(int fd, unsigned events, void *arg)
{
    (void)fd;
    (void)events;
    (void)read_some(arg);
}

/* What it wrote before it ended; somebody it started may go on writing. */
static void read_rest(struct child *child)
{
    for (size_t i = 0; i < 16 && child->out >= 0 && read_some(child); i++)
        continue;
    output_end_line(&child->output);
    output_end(&child->output);
}

/* --- the end -------------------------------------------------------------- */

/* Its process was not started, or is freed. */
static void child_free(struct child *child)
{
    *child->link = child->next;
    if (child->next != NULL)
        child->next->link = child->link;
    close_output(child);
    free(child);
}

static void on_ended(void *arg)
{
    struct child *child = arg;
    struct weir_job *job = child->job;
    struct child_end end = {
        .of = child->of, .job = job, .output = child->output.last};

    if (job == NULL)
        process_signal(&child->process, SIGKILL); /* all that it started */
    read_rest(child);
    end.process = process_reap(&child->process);
    if (job != NULL)
        child->done(&end, child->handle);
    process_free(&child->process);
    child_free(child);
}

void child_cancel(struct child *child)
{
    child->job = NULL;
    output_about(&child->output, NULL);
    (void)weir_complete(child->handle, WEIR_RETRY, 0, NULL); /* lets go */
    process_signal(&child->process, SIGTERM);
    process_kill_after(&child->process, child->of->grace_ms);
}

static void end_at_once(struct child *child)
{
    const struct timespec pause = {0, 1000000};

    process_signal(&child->process, SIGKILL);
    for (int ms = 0; ms < LAST_CHANCE_MS && !process_has_ended(&child->process);
         ms++)
        (void)nanosleep(&pause, NULL);
    (void)process_reap(&child->process); /* nobody asks */
    process_free(&child->process);
    child_free(child);
}

void children_end(struct exec *exec)
{
    while (exec->first != NULL)
        end_at_once(exec->first);
}

/* --- the start ------------------------------------------------------------ */

/* A file in memory: the command reads it when it likes, and nobody waits. */
static int input_file(struct weir_slice input)
{
    int fd = memfd_create("weir-job", MFD_CLOEXEC);

    while (fd >= 0 && input.len > 0) {
        ssize_t len = write(fd, input.ptr, input.len);

        if (len < 0 && errno == EINTR)
            continue;
        if (len <= 0) {
            (void)close(fd);
            return -1;
        }
        input.ptr += len;
        input.len -= (size_t)len;
    }
    if (fd >= 0)
        (void)lseek(fd, 0, SEEK_SET); /* cannot fail on a file */
    return fd;
}

/* Start it with `in` as its input; fills `process` and `out`. An errno. */
static int start_with_pipe(struct child *child, int in)
{
    int ends[2], rc;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK); /* cannot fail on a pipe */
    rc = process_start(&child->process, child->of,
                       (const int[]){in, ends[1], ends[1]});
    (void)close(ends[1]);
    if (rc == 0)
        child->out = ends[0];
    else
        (void)close(ends[0]);
    return rc;
}

static struct child *child_new(struct exec *exec, struct weir_job *job)
{
    struct child *child = calloc(1, sizeof(*child));

    if (child == NULL)
        return NULL;
    child->of = exec;
    child->job = job;
    child->handle = weir_job_handle(job);
    child->process.ended = on_ended;
    child->process.arg = child;
    child->output.max = exec->max_output;
    output_about(&child->output, job);
    child->out = -1;
    child->next = exec->first;
    child->link = &exec->first;
    if (child->next != NULL)
        child->next->link = &child->next;
    exec->first = child;
    return child;
}

struct child *child_start(struct exec *exec, struct weir_job *job,
                          struct weir_slice input, child_done_fn done)
{
    struct child *child = child_new(exec, job);
    int in, rc = ENOMEM;

    if (child == NULL)
        return NULL;
    child->done = done;
    if (child->handle.ticket != 0) {
        in = input_file(input);
        rc = in < 0 ? errno : start_with_pipe(child, in);
        if (in >= 0)
            (void)close(in);
    }
    if (rc != 0) {
        child_free(child);
        errno = rc;
        return NULL;
    }
    /* Without memory for a watch there is the rest of the output. */
    child->out_watch = weir_watch_new(exec->loop, child->out, on_output, child);
    if (child->out_watch != NULL)
        weir_watch_set(child->out_watch, WEIR_FD_READ);
    return child;
}
