/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exec_stream.h"

enum {
    WAIT_MS = 1000, /* a job waits for a child, then goes back for a while */
    START_FIRST_MS = 100, /* between starts of children that answer nothing, */
    START_MOST_MS = 30000 /* doubled each time */
};

/* --- runs ----------------------------------------------------------------- */

static void append(struct stream_runs *runs, struct stream_run *run)
{
    run->next = NULL;
    run->previous = runs->last;
    if (runs->last == NULL)
        runs->first = run;
    else
        runs->last->next = run;
    runs->last = run;
    runs->count++;
}

static void cut_out(struct stream_run *run)
{
    struct stream_runs *runs =
        run->child == NULL ? &run->of->waiting : &run->child->runs;

    if (run->previous == NULL)
        runs->first = run->next;
    else
        run->previous->next = run->next;
    if (run->next == NULL)
        runs->last = run->previous;
    else
        run->next->previous = run->previous;
    runs->count--;
}

static void run_free(struct stream_run *run)
{
    cut_out(run);
    free(run);
}

static void finish(struct stream_run *run, enum weir_verdict verdict,
                   int64_t delay_ms, const char *why)
{
    static const char *const counters[] = {[WEIR_DONE] = "done",
                                           [WEIR_RETRY] = "retried",
                                           [WEIR_RETRY_AFTER] = "retried",
                                           [WEIR_SNOOZE] = "snoozed",
                                           [WEIR_FAIL] = "failed"};

    weir_job_count(run->job, counters[verdict], 1);
    /* It cannot fail on the loop's thread. */
    (void)weir_complete(run->handle, verdict, delay_ms, why);
    run_free(run);
}

/* They come again and have used up nothing. */
static void give_back(struct stream_runs *runs, int64_t delay_ms)
{
    while (runs->first != NULL) {
        struct stream_run *run = runs->first;

        if (run->job != NULL)
            finish(run, WEIR_SNOOZE, delay_ms, NULL);
        else
            run_free(run);
    }
}

/* --- which child ---------------------------------------------------------- */

static int64_t pause_of(const struct stream *stream)
{
    int64_t ms = START_FIRST_MS;

    for (unsigned i = 1; i < stream->failures && ms < START_MOST_MS; i++)
        ms *= 2;
    return ms < START_MOST_MS ? ms : START_MOST_MS;
}

/* How long no child may start; 0: one may now. */
static int64_t rest_of(const struct stream *stream)
{
    int64_t ms;

    if (stream->start_ms == 0)
        return 0;
    ms = stream->start_ms - weir_loop_now_ms(stream->exec->loop);
    return ms > 0 ? ms : 0;
}

/* As long as none answers they start one after the other. */
static void space_starts(struct stream *stream)
{
    stream->start_ms =
        stream->failures == 0
            ? 0
            : weir_loop_now_ms(stream->exec->loop) + pause_of(stream);
}

static struct stream_child *start_child(struct stream *stream,
                                        struct weir_job *job)
{
    struct stream_child *child = stream_child_start(stream);
    char text[200];

    if (child != NULL) {
        weir_job_count(job, "started", 1);
        space_starts(stream);
        return child;
    }
    (void)snprintf(text, sizeof(text), "cannot start the command: %s",
                   strerror(errno)); /* cut */
    weir_loop_log(stream->exec->loop, WEIR_LEVEL_ERROR, text);
    stream->failures++;
    space_starts(stream);
    return NULL;
}

/* The one that has least to do, or a new one before one gets a second job. */
static struct stream_child *choose(struct stream *stream, struct weir_job *job)
{
    struct stream_child *least = NULL, *made = NULL;

    for (struct stream_child *child = stream->first; child != NULL;
         child = child->next)
        if (!child->is_leaving && child->runs.count < stream->window &&
            (least == NULL || child->runs.count < least->runs.count))
            least = child;
    if (least != NULL && least->runs.count == 0)
        return least;
    if (stream->live < stream->most && rest_of(stream) == 0)
        made = start_child(stream, job);
    return made == NULL ? least : made;
}

/* False: out of memory. It is in no list yet. */
static bool give(struct stream_child *child, struct stream_run *run)
{
    run->number = child->of->last_number + 1;
    if (!stream_child_give(child, run))
        return false;
    child->of->last_number++;
    run->child = child;
    append(&child->runs, run);
    return true;
}

/* --- jobs that wait ------------------------------------------------------- */

static void await_child(struct stream_run *run)
{
    struct stream *stream = run->of;
    int64_t ms = rest_of(stream);

    append(&stream->waiting, run);
    if (stream->waiting.count == 1)
        weir_timer_start(stream->again, ms > 0 && ms < WAIT_MS ? ms : WAIT_MS);
}

static void serve_waiting(struct stream *stream)
{
    while (stream->waiting.first != NULL) {
        struct stream_run *run = stream->waiting.first;
        struct stream_child *child = choose(stream, run->job);

        if (child == NULL)
            return;
        cut_out(run);
        if (give(child, run))
            continue;
        append(&stream->waiting, run);
        finish(run, WEIR_SNOOZE, WAIT_MS, NULL); /* out of memory */
    }
    weir_timer_stop(stream->again);
}

/* What no child takes now would use up its time here. */
static void on_again(void *arg)
{
    struct stream *stream = arg;
    int64_t ms;

    serve_waiting(stream);
    stream_flush(stream);
    ms = rest_of(stream);
    give_back(&stream->waiting, ms > 0 ? ms : WAIT_MS);
}

/* --- runs that are given up ----------------------------------------------- */

/* Whose answer is awaited for longest; NULL: there is none. */
static const struct stream_run *first_canceled(const struct stream_child *child)
{
    const struct stream_run *first = NULL;

    for (const struct stream_run *run = child->runs.first; run != NULL;
         run = run->next)
        if (run->job == NULL &&
            (first == NULL || run->canceled_ms < first->canceled_ms))
            first = run;
    return first;
}

/* The child goes on unless it does not answer for too long. */
static void on_overdue(void *arg)
{
    struct stream_child *child = arg;
    const struct stream_run *run = first_canceled(child);
    int64_t ms;

    if (run == NULL)
        return;
    ms = run->canceled_ms + child->of->exec->grace_ms -
         weir_loop_now_ms(child->of->exec->loop);
    if (ms > 0) {
        weir_timer_start(child->overdue, ms);
        return;
    }
    stream_child_end(child);
    give_back(&child->runs, 0);
}

static bool tell(struct stream_run *run)
{
    struct stream_child *child = run->child;
    struct weir_loop *loop = run->of->exec->loop;

    if (child->overdue == NULL)
        child->overdue = weir_timer_new(loop, on_overdue, child);
    if (child->overdue == NULL || !stream_child_cancel(child, run))
        return false;
    if (first_canceled(child) == NULL)
        weir_timer_start(child->overdue, run->of->exec->grace_ms);
    run->job = NULL;
    run->canceled_ms = weir_loop_now_ms(loop);
    stream_child_send(child);
    return true;
}

/* The other jobs of a child that is ended for one of them are not to blame; at
 * a stop each of them is given up by itself. */
static void on_cancel(struct weir_job *job, enum weir_cancel why, void *arg)
{
    struct stream_run *run = arg;
    struct stream_child *child = run->child;

    (void)job;
    (void)weir_complete(run->handle, WEIR_RETRY, 0, NULL); /* lets go */
    if (child != NULL && why != WEIR_CANCEL_STOP && run->of->cancels &&
        !child->is_leaving && tell(run))
        return;
    run_free(run);
    if (child == NULL)
        return;
    stream_child_end(child);
    if (why != WEIR_CANCEL_STOP)
        give_back(&child->runs, 0);
}

/* --- what a child says ---------------------------------------------------- */

static struct stream_run *find(const struct stream_child *child,
                               uint64_t number)
{
    struct stream_run *run = child->runs.first;

    while (number != 0 && run != NULL && run->number != number)
        run = run->next;
    return run;
}

static bool is_blank(const char *line, size_t len)
{
    while (len > 0 && memchr(" \t\r", line[len - 1], 3) != NULL)
        len--;
    return len == 0;
}

static void complain(struct stream_child *child, const char *what,
                     const char *line, size_t len)
{
    output_about(&child->output, NULL);
    output_say(&child->output, what, line, len);
}

void stream_on_line(struct stream_child *child, const char *line, size_t len)
{
    struct stream *stream = child->of;
    struct answer answer;
    struct stream_run *run;

    if (child->is_ended || is_blank(line, len))
        return;
    if (!exec_read_answer(line, len, &answer)) {
        complain(child, "no verdict: ", line, len);
        return;
    }
    run = find(child, answer.run);
    if (run == NULL) {
        complain(child, "a verdict for no job that the child has: ", line, len);
        return;
    }
    output_about(&child->output, run->job);
    output_end(&child->output);
    child->has_answered = true;
    stream->failures = 0;
    stream->start_ms = 0;
    if (run->job == NULL)
        run_free(run);
    else
        finish(run, answer.verdict, answer.delay_ms,
               *answer.reason == '\0' ? NULL : answer.reason);
    if (stream->waiting.count == 0)
        return;
    serve_waiting(stream);
    stream_flush(stream);
}

/* The oldest of its jobs is the one that it was at, unless it did not read
 * it. */
static void blame(struct stream_child *child, const char *why)
{
    struct stream_run *run = child->runs.first;

    while (run != NULL && run->job == NULL)
        run = run->next;
    if (run != NULL && run->begin < child->taken)
        finish(run, WEIR_RETRY, 0, why);
    give_back(&child->runs, 0);
}

static void log_end(struct stream_child *child, const char *why, bool is_fine)
{
    const struct stream *stream = child->of;
    char text[260], next[60] = "";

    if (!child->has_answered)
        (void)snprintf(next, sizeof(next), "; the next one starts in %lld ms",
                       (long long)pause_of(stream));       /* fits */
    (void)snprintf(text, sizeof(text), "%s%s", why, next); /* fits */
    weir_loop_log(stream->exec->loop,
                  is_fine ? WEIR_LEVEL_DEBUG : WEIR_LEVEL_WARN, text);
}

void stream_on_end(struct stream_child *child, const struct process_end *end)
{
    struct stream *stream = child->of;
    const char *last = child->output.last;
    char why[200] = "exec: the child ended: ";
    size_t prefix = strlen("exec: "), len = strlen(why);
    bool is_fine = end->is_known && end->signal == 0 && end->status == 0 &&
                   child->runs.count == 0;

    len += process_describe(end, why + len, sizeof(why) - len);
    if (*last != '\0')
        (void)snprintf(why + len, sizeof(why) - len, ": %.*s",
                       (int)exec_whole(last, strnlen(last, 120)),
                       last); /* fits */
    if (!child->has_answered) {
        stream->failures++;
        space_starts(stream);
    }
    log_end(child, why + prefix, is_fine);
    blame(child, why);
    serve_waiting(stream);
    stream_flush(stream);
}

/* --- the instance --------------------------------------------------------- */

struct stream *stream_new(struct exec *exec)
{
    struct stream *stream = calloc(1, sizeof(*stream));

    if (stream == NULL)
        return NULL;
    stream->exec = exec;
    stream->again = weir_timer_new(exec->loop, on_again, stream);
    if (stream->again != NULL)
        return stream;
    free(stream);
    return NULL;
}

enum weir_verdict stream_job(struct stream *stream, struct weir_job *job)
{
    struct stream_run *run = calloc(1, sizeof(*run));
    struct stream_child *child;

    if (run == NULL)
        return weir_snooze(job, WAIT_MS);
    run->of = stream;
    run->job = job;
    run->handle = weir_job_handle(job);
    child = run->handle.ticket == 0 ? NULL : choose(stream, job);
    if (run->handle.ticket == 0 || (child != NULL && !give(child, run))) {
        free(run);
        return weir_snooze(job, WAIT_MS);
    }
    weir_job_on_cancel(job, on_cancel, run);
    if (child == NULL)
        await_child(run);
    return WEIR_PENDING;
}

void stream_flush(struct stream *stream)
{
    struct stream_child *child, *next;

    for (child = stream->first; child != NULL; child = next) {
        next = child->next;
        if (!child->is_blocked && child->text.len > child->sent)
            stream_child_send(child);
    }
}

/* Have all children ended? What they print does not hold them up. */
static bool have_ended(const struct stream *stream)
{
    for (struct stream_child *child = stream->first; child != NULL;
         child = child->next) {
        (void)stream_child_read(child);
        if (!process_has_ended(&child->process))
            return false;
    }
    return true;
}

static void pass_ms(const struct stream *stream, int64_t ms)
{
    const struct timespec pause = {0, 1000000};

    for (; ms > 0 && !have_ended(stream); ms--)
        (void)nanosleep(&pause, NULL);
}

void stream_free(struct stream *stream)
{
    enum { LAST_CHANCE_MS = 1000 };

    if (stream == NULL)
        return;
    for (struct stream_child *child = stream->first; child != NULL;
         child = child->next)
        stream_child_leave(child);
    pass_ms(stream, stream->exec->grace_ms);
    for (struct stream_child *child = stream->first; child != NULL;
         child = child->next)
        process_signal(&child->process, SIGKILL);
    pass_ms(stream, LAST_CHANCE_MS);
    while (stream->first != NULL)
        stream_child_free(stream->first);
    weir_timer_free(stream->again);
    free(stream);
}
