/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "exec.h"

/* A command is the leader of a process group of its own. Its exit is noticed
 * through a descriptor of the process (Linux 5.3), else by looking every now
 * and then: the host's SIGCHLD is its own. Its output is read until it has
 * ended, not until everybody who may write to it has. */

enum {
    LOOK_MS = 20,
    READ_CAP = 16 * 1024,
    LAST_CHANCE_MS = 1000,
    /* Of a line of the log that has output: its time and level, and with the
     * topic and id what is cut beyond. */
    LOG_REST = 31,
    LOG_MAX = 511,
    LINE_LEAST = 340 /* whatever the id */
};

struct child {
    struct child *next;
    struct child **link; /* what points here */
    struct children *of;
    child_done_fn done;
    struct weir_job *job; /* NULL: given up */
    struct weir_handle handle;
    pid_t pid;
    int pidfd; /* -1: there is none, `look` looks */
    int out;   /* -1: it has ended */
    struct weir_watch *exit_watch, *out_watch;
    struct weir_timer *look; /* whether it has ended */
    struct weir_timer *kill; /* when it did not end by itself */
    size_t log_before;       /* bytes of topic and id in a line of the log */
    size_t logged;           /* bytes, these included */
    size_t dropped, dropped_lines;
    size_t line_len;
    char line[LINE_CAP + 1];
    char last[LINE_CAP + 1]; /* line that was not empty */
};

/* --- output --------------------------------------------------------------- */

/* What is dropped is the end, also where a shorter line would have room. */
static void log_line(struct child *child)
{
    size_t cost = LOG_REST + child->log_before + child->line_len;

    if (child->dropped_lines > 0 ||
        child->logged + cost > child->of->max_output) {
        child->dropped += child->line_len;
        child->dropped_lines++;
        return;
    }
    child->logged += cost;
    weir_job_log(child->job, WEIR_LEVEL_INFO, child->line);
}

static void end_line(struct child *child)
{
    child->line[child->line_len] = '\0';
    exec_clean(child->line, child->line_len);
    if (child->line_len > 0 && child->job != NULL) {
        memcpy(child->last, child->line, child->line_len + 1);
        log_line(child);
    }
    child->line_len = 0;
}

/* What is there of a character goes into the next part. */
static void end_part(struct child *child)
{
    char rest[4];
    size_t whole = exec_whole(child->line, child->line_len);
    size_t rest_len = child->line_len - whole; /* 3 at most */

    memcpy(rest, child->line + whole, rest_len);
    child->line_len = whole;
    end_line(child);
    memcpy(child->line, rest, rest_len);
    child->line_len = rest_len;
}

/* A part that is longer would be cut by the log. */
static size_t line_max(const struct child *child)
{
    size_t before = child->log_before;

    if (before > LOG_MAX - LINE_LEAST)
        return LINE_LEAST;
    return before < LOG_MAX - LINE_CAP ? LINE_CAP : LOG_MAX - before;
}

/* Control characters could forge lines of the log. What it writes as escapes
 * would take more of it than was counted. */
static void take_output(struct child *child, const char *bytes, size_t len)
{
    size_t most = line_max(child);

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];

        if (c == '\n')
            end_line(child);
        else if (child->line_len == most)
            end_part(child);
        if (c != '\n')
            child->line[child->line_len++] =
                c < ' ' || c == 0x7f ? ' ' : bytes[i];
    }
}

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
        take_output(child, bytes, (size_t)len);
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
    char text[120];

    for (size_t i = 0; i < 16 && child->out >= 0 && read_some(child); i++)
        continue;
    end_line(child);
    if (child->dropped_lines == 0 || child->job == NULL)
        return;
    (void)snprintf(text, sizeof(text),
                   "exec: %zu bytes of output not shown, in %zu lines",
                   child->dropped, child->dropped_lines); /* fits */
    weir_job_log(child->job, WEIR_LEVEL_WARN, text);
}

/* --- the end -------------------------------------------------------------- */

static void child_free(struct child *child)
{
    *child->link = child->next;
    if (child->next != NULL)
        child->next->link = child->link;
    close_output(child);
    weir_watch_free(child->exit_watch);
    if (child->pidfd >= 0)
        (void)close(child->pidfd);
    weir_timer_free(child->look);
    weir_timer_free(child->kill);
    free(child);
}

static void kill_group(const struct child *child, int signal_number)
{
    /* Fails when nobody is left. */
    (void)kill(-child->pid, signal_number);
}

/* True when it has ended. Its zombie is still there, so that nobody else can
 * have its number. */
static bool has_ended(const struct child *child)
{
    siginfo_t info = {.si_pid = 0};
    int rc =
        waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT);

    return rc != 0 ? errno == ECHILD : info.si_pid != 0;
}

/* Take its exit status. */
static struct child_end reap(const struct child *child)
{
    struct child_end end = {.job = child->job, .output = child->last};
    int status = 0;

    if (waitpid(child->pid, &status, WNOHANG) != child->pid)
        return end;
    end.is_known = true;
    if (WIFSIGNALED(status))
        end.signal = WTERMSIG(status);
    else
        end.status = WEXITSTATUS(status);
    return end;
}

static void look(struct child *child)
{
    struct child_end end;
    struct weir_job *job = child->job;

    if (!has_ended(child)) {
        if (child->pidfd < 0)
            weir_timer_start(child->look, LOOK_MS);
        return;
    }
    if (job == NULL)
        kill_group(child, SIGKILL); /* what it started goes with it */
    read_rest(child);
    end = reap(child);
    if (job != NULL)
        child->done(&end, child->handle);
    child_free(child);
}

static void on_exit_ready(int fd, unsigned events, void *arg)
{
    (void)fd;
    (void)events;
    look(arg);
}

static void on_look(void *arg)
{
    look(arg);
}

static void on_kill(void *arg)
{
    kill_group(arg, SIGKILL);
}

void child_cancel(struct child *child)
{
    child->job = NULL;
    (void)weir_complete(child->handle, WEIR_RETRY, 0, NULL); /* lets go */
    kill_group(child, SIGTERM);
    weir_timer_start(child->kill, child->of->grace_ms);
}

static void end_at_once(struct child *child)
{
    const struct timespec pause = {0, 1000000};

    kill_group(child, SIGKILL);
    for (int ms = 0; ms < LAST_CHANCE_MS && !has_ended(child); ms++)
        (void)nanosleep(&pause, NULL);
    (void)reap(child); /* nobody asks */
    child_free(child);
}

void children_end(struct children *children)
{
    while (children->first != NULL)
        end_at_once(children->first);
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

/* In the new process: the three streams and nothing else that is open. */
static int set_streams(posix_spawn_file_actions_t *actions, int in, int out)
{
    int rc = posix_spawn_file_actions_adddup2(actions, in, STDIN_FILENO);

    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(actions, out, STDOUT_FILENO);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(actions, out, STDERR_FILENO);
#ifdef WEIR_HAVE_CLOSEFROM
    if (rc == 0)
        rc = posix_spawn_file_actions_addclosefrom_np(actions,
                                                      STDERR_FILENO + 1);
#endif
    return rc;
}

/* A group of its own, and signals as a fresh program expects them. */
static int set_signals(posix_spawnattr_t *attributes)
{
    const short flags =
        POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    sigset_t all, none;
    int rc = posix_spawnattr_setflags(attributes, flags);

    (void)sigfillset(&all);
    (void)sigemptyset(&none);
    if (rc == 0)
        rc = posix_spawnattr_setpgroup(attributes, 0);
    if (rc == 0)
        rc = posix_spawnattr_setsigmask(attributes, &none);
    if (rc == 0)
        rc = posix_spawnattr_setsigdefault(attributes, &all);
    return rc;
}

static int spawn(const struct children *children, int in, int out,
                 pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int rc = posix_spawn_file_actions_init(&actions);

    if (rc != 0)
        return rc;
    rc = posix_spawnattr_init(&attributes);
    if (rc == 0) {
        rc = set_streams(&actions, in, out);
        if (rc == 0)
            rc = set_signals(&attributes);
        if (rc == 0)
            rc = posix_spawnp(ret_pid, children->argv[0], &actions, &attributes,
                              children->argv, children->envp);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return rc;
}

/* Start it with `in` as its input; fills `pid` and `out`. An errno. */
static int spawn_with_pipe(struct child *child, int in)
{
    int ends[2], rc;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    rc = spawn(child->of, in, ends[1], &child->pid);
    (void)close(ends[1]);
    if (rc == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0) {
        child->out = ends[0];
        return 0;
    }
    (void)close(ends[0]);
    return rc;
}

/* The watches and timers that do not depend on the process. */
static bool make_timers(struct child *child)
{
    struct weir_loop *loop = child->of->loop;

    child->look = weir_timer_new(loop, on_look, child);
    child->kill = weir_timer_new(loop, on_kill, child);
    return child->look != NULL && child->kill != NULL;
}

/* Without memory for a watch there is the timer, and the rest of the output. */
static void watch(struct child *child)
{
    struct weir_loop *loop = child->of->loop;

    child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
    if (child->pidfd >= 0)
        child->exit_watch =
            weir_watch_new(loop, child->pidfd, on_exit_ready, child);
    if (child->exit_watch != NULL) {
        weir_watch_set(child->exit_watch, WEIR_FD_READ);
    } else {
        if (child->pidfd >= 0)
            (void)close(child->pidfd);
        child->pidfd = -1;
        weir_timer_start(child->look, LOOK_MS);
    }
    child->out_watch = weir_watch_new(loop, child->out, on_output, child);
    if (child->out_watch != NULL)
        weir_watch_set(child->out_watch, WEIR_FD_READ);
}

static struct child *child_new(struct children *children, struct weir_job *job)
{
    struct child *child = calloc(1, sizeof(*child));

    if (child == NULL)
        return NULL;
    child->of = children;
    child->job = job;
    child->log_before = weir_job_topic(job).len + weir_job_id(job).len + 3;
    child->out = -1;
    child->pidfd = -1;
    child->next = children->first;
    child->link = &children->first;
    if (child->next != NULL)
        child->next->link = &child->next;
    children->first = child;
    return child;
}

struct child *child_start(struct children *children, struct weir_job *job,
                          struct weir_slice input, child_done_fn done)
{
    struct child *child = child_new(children, job);
    int in, rc = ENOMEM;

    if (child == NULL)
        return NULL;
    child->done = done;
    child->handle = weir_job_handle(job);
    if (make_timers(child) && child->handle.ticket != 0) {
        in = input_file(input);
        rc = in < 0 ? errno : spawn_with_pipe(child, in);
        if (in >= 0)
            (void)close(in);
    }
    if (rc != 0) {
        child_free(child);
        errno = rc;
        return NULL;
    }
    watch(child);
    return child;
}
