/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "exec_stream.h"

enum {
    READ_CAP = 16 * 1024,
    PIPE_READS = 4, /* of as many bytes as a pipe holds */
    REST_READS = 16,
    TEXT_KEPT = 1024 * 1024
};

static void close_end(struct weir_watch **watch, int *fd)
{
    weir_watch_free(*watch);
    *watch = NULL;
    if (*fd >= 0)
        (void)close(*fd); /* what was not taken is nobody's */
    *fd = -1;
}

/* --- its input ------------------------------------------------------------ */

/* Without the signal that a pipe raises when nobody reads from it; whether it
 * is ignored is the host's affair. */
static ssize_t write_quietly(int fd, const char *bytes, size_t len)
{
    static const struct timespec now = {0, 0};
    sigset_t pipe_only, before, pending;
    ssize_t rc;

    (void)sigemptyset(&pipe_only);
    (void)sigaddset(&pipe_only, SIGPIPE);
    (void)sigemptyset(&pending);
    (void)pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    if (sigismember(&before, SIGPIPE) == 1)
        (void)sigpending(&pending);
    rc = write(fd, bytes, len);
    if (rc < 0 && errno == EPIPE && sigismember(&pending, SIGPIPE) == 0) {
        (void)sigtimedwait(&pipe_only, NULL, &now); /* taken back */
        errno = EPIPE;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* It takes no more for now. */
static void await_room(struct stream_child *child)
{
    if (child->sent > child->text.len / 2) {
        memmove(child->text.bytes, child->text.bytes + child->sent,
                child->text.len - child->sent);
        child->text.len -= child->sent;
        child->sent = 0;
    }
    if (!child->is_blocked)
        weir_watch_set(child->in_watch, WEIR_FD_WRITE);
    child->is_blocked = true;
}

void stream_child_send(struct stream_child *child)
{
    while (child->in >= 0 && child->sent < child->text.len) {
        ssize_t len = write_quietly(child->in, child->text.bytes + child->sent,
                                    child->text.len - child->sent);

        if (len < 0 && errno == EAGAIN) {
            await_room(child);
            return;
        }
        if (len < 0 && errno != EINTR)
            stream_child_leave(child); /* it closed its input */
        if (len < 0)
            continue;
        child->sent += (size_t)len;
        child->written += (uint64_t)len;
    }
    child->sent = 0;
    child->text.len = 0;
    if (child->text.cap > TEXT_KEPT) {
        free(child->text.bytes);
        child->text = (struct text){0};
    }
    if (child->is_blocked && child->in_watch != NULL)
        weir_watch_set(child->in_watch, 0);
    child->is_blocked = false;
}

static void on_room(int fd, unsigned events, void *arg)
{
    (void)fd;
    (void)events;
    stream_child_send(arg);
}

bool stream_child_give(struct stream_child *child, struct stream_run *run)
{
    run->begin = child->written + (child->text.len - child->sent);
    return exec_put_job(&child->text, run->job, run->number);
}

bool stream_child_cancel(struct stream_child *child,
                         const struct stream_run *run)
{
    return exec_put_cancel(&child->text, run->number);
}

/* What is left in the pipe it did not read. */
static void close_input(struct stream_child *child)
{
    int unread = 0;

    if (child->in < 0)
        return;
    (void)ioctl(child->in, FIONREAD, &unread); /* cannot fail on a pipe */
    child->taken = child->written - (uint64_t)unread;
    close_end(&child->in_watch, &child->in);
}

/* --- what it writes ------------------------------------------------------- */

/* With one job at a time what it prints is of that job. */
static void note_job(struct stream_child *child)
{
    const struct stream_run *run = child->runs.first;

    output_about(&child->output,
                 run != NULL && run->next == NULL ? run->job : NULL);
}

static bool read_output(struct stream_child *child)
{
    char bytes[READ_CAP];
    ssize_t len;

    if (child->err < 0)
        return false;
    len = read(child->err, bytes, sizeof(bytes));
    if (len > 0) {
        note_job(child);
        output_take(&child->output, bytes, (size_t)len);
        return true;
    }
    if (len == 0 || (errno != EAGAIN && errno != EINTR))
        close_end(&child->err_watch, &child->err);
    return false;
}

static void on_output(int fd, unsigned events, void *arg)
{
    (void)fd;
    (void)events;
    (void)read_output(arg);
}

/* The lines that are whole; what is left is at the beginning then. */
static void take_lines(struct stream_child *child)
{
    char *from = child->line, *end = from + child->line_len, *to;

    while ((to = memchr(from, '\n', (size_t)(end - from))) != NULL) {
        if (!child->is_skipping)
            stream_on_line(child, from, (size_t)(to - from));
        child->is_skipping = false;
        from = to + 1;
    }
    child->line_len = (size_t)(end - from);
    memmove(child->line, from, child->line_len);
    if (child->line_len < sizeof(child->line))
        return;
    if (!child->is_skipping)
        stream_on_line(child, child->line, child->line_len);
    child->is_skipping = true;
    child->line_len = 0;
}

static bool read_answers(struct stream_child *child)
{
    ssize_t len;

    if (child->out < 0)
        return false;
    len = read(child->out, child->line + child->line_len,
               sizeof(child->line) - child->line_len);
    if (len > 0) {
        child->line_len += (size_t)len;
        take_lines(child);
        return true;
    }
    if (len == 0 || (errno != EAGAIN && errno != EINTR)) {
        close_end(&child->out_watch, &child->out);
        stream_child_leave(child);
    }
    return false;
}

/* What it printed before an answer is of the job that is answered. */
bool stream_child_read(struct stream_child *child)
{
    bool is_some = read_output(child);

    return read_answers(child) || is_some;
}

static void on_answers(int fd, unsigned events, void *arg)
{
    struct stream_child *child = arg;

    (void)fd;
    (void)events;
    if (child->of->window == 1)
        for (size_t i = 0; i < PIPE_READS && read_output(child); i++)
            continue;
    (void)read_answers(child);
}

/* --- the end -------------------------------------------------------------- */

void stream_child_leave(struct stream_child *child)
{
    close_input(child);
    if (child->is_leaving)
        return;
    child->is_leaving = true;
    child->of->live--;
    process_kill_after(&child->process, child->of->exec->grace_ms);
}

void stream_child_end(struct stream_child *child)
{
    stream_child_leave(child);
    if (child->is_ended)
        return;
    child->is_ended = true;
    process_signal(&child->process, SIGTERM);
    process_kill_after(&child->process, child->of->exec->grace_ms);
}

/* Its process was not started, or is freed. */
static void discard(struct stream_child *child)
{
    *child->link = child->next;
    if (child->next != NULL)
        child->next->link = child->link;
    close_end(&child->in_watch, &child->in);
    close_end(&child->out_watch, &child->out);
    close_end(&child->err_watch, &child->err);
    weir_timer_free(child->overdue);
    free(child->text.bytes);
    free(child);
}

/* What it wrote before it ended counts; what it started may go on writing, and
 * goes with it. */
void stream_child_free(struct stream_child *child)
{
    struct process_end end;

    for (size_t i = 0; i < REST_READS && stream_child_read(child); i++)
        continue;
    note_job(child);
    output_end_line(&child->output);
    output_end(&child->output);
    process_signal(&child->process, SIGKILL);
    end = process_reap(&child->process);
    stream_child_leave(child);
    process_free(&child->process);
    stream_on_end(child, &end);
    discard(child);
}

static void on_ended(void *arg)
{
    stream_child_free(arg);
}

/* --- the start ------------------------------------------------------------ */

static struct weir_watch *watch(struct stream_child *child, int fd,
                                unsigned events, weir_watch_fn fn)
{
    struct weir_watch *made =
        weir_watch_new(child->of->exec->loop, fd, fn, child);

    if (made != NULL && events != 0)
        weir_watch_set(made, events);
    return made;
}

static struct stream_child *child_new(struct stream *stream)
{
    struct stream_child *child = malloc(sizeof(*child));

    if (child == NULL)
        return NULL;
    memset(child, 0, offsetof(struct stream_child, line));
    child->of = stream;
    child->process.ended = on_ended;
    child->process.arg = child;
    child->output.max = stream->exec->max_output;
    child->output.loop = stream->exec->loop;
    child->output.loop_before = stream->exec->log_before;
    child->in = -1;
    child->out = -1;
    child->err = -1;
    child->next = stream->first;
    child->link = &stream->first;
    if (child->next != NULL)
        child->next->link = &child->next;
    stream->first = child;
    return child;
}

/* The ends of three pipes: `ours` are those that the child does not get. */
static bool open_pipes(int ours[3], int theirs[3])
{
    for (int i = 0; i < 3; i++) {
        int ends[2];

        if (pipe2(ends, O_CLOEXEC) != 0)
            return false;
        ours[i] = ends[i == 0 ? 1 : 0];
        theirs[i] = ends[i == 0 ? 0 : 1];
        (void)fcntl(ours[i], F_SETFL, O_NONBLOCK); /* cannot fail on a pipe */
    }
    return true;
}

static void close_all(const int fds[3])
{
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
}

/* Fills `process` and our ends. An errno. */
static int start(struct stream_child *child)
{
    int ours[3] = {-1, -1, -1}, theirs[3] = {-1, -1, -1}, rc;

    if (!open_pipes(ours, theirs))
        rc = errno;
    else
        rc = process_start(&child->process, child->of->exec, theirs);
    close_all(theirs);
    if (rc != 0) {
        close_all(ours);
        return rc;
    }
    child->in = ours[0];
    child->out = ours[1];
    child->err = ours[2];
    return 0;
}

struct stream_child *stream_child_start(struct stream *stream)
{
    struct stream_child *child = child_new(stream);
    int rc;

    if (child == NULL)
        return NULL;
    rc = start(child);
    if (rc != 0) {
        discard(child);
        errno = rc;
        return NULL;
    }
    stream->live++;
    child->in_watch = watch(child, child->in, 0, on_room);
    child->out_watch = watch(child, child->out, WEIR_FD_READ, on_answers);
    child->err_watch = watch(child, child->err, WEIR_FD_READ, on_output);
    if (child->in_watch == NULL || child->out_watch == NULL ||
        child->err_watch == NULL) {
        stream_child_end(child); /* it is freed when it has ended */
        errno = ENOMEM;
        return NULL;
    }
    return child;
}
