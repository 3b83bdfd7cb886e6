/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "exec.h"

enum { LOOK_MS = 20 };

/* --- the end -------------------------------------------------------------- */

bool process_has_ended(const struct process *process)
{
    siginfo_t info = {.si_pid = 0};
    int rc =
        waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT);

    return rc != 0 ? errno == ECHILD : info.si_pid != 0;
}

static void look(struct process *process)
{
    if (process_has_ended(process))
        process->ended(process->arg);
    else if (process->pidfd < 0)
        weir_timer_start(process->look, LOOK_MS);
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

void process_signal(const struct process *process, int signal_number)
{
    (void)kill(-process->pid, signal_number); /* fails when nobody is left */
}

static void on_kill(void *arg)
{
    process_signal(arg, SIGKILL);
}

void process_kill_after(const struct process *process, int64_t ms)
{
    weir_timer_start(process->kill, ms);
}

struct process_end process_reap(const struct process *process)
{
    struct process_end end = {0};
    int status = 0;

    if (waitpid(process->pid, &status, WNOHANG) != process->pid)
        return end;
    end.is_known = true;
    if (WIFSIGNALED(status))
        end.signal = WTERMSIG(status);
    else
        end.status = WEXITSTATUS(status);
    return end;
}

size_t process_describe(const struct process_end *end, char *text, size_t cap)
{
    int len;

    if (!end->is_known)
        len = snprintf(text, cap, "this program took the exit status away");
    else if (end->signal != 0)
        len = snprintf(text, cap, "killed by signal %d", end->signal);
    else
        len = snprintf(text, cap, "exit status %d", end->status);
    return (size_t)len; /* fits */
}

/* --- the start ------------------------------------------------------------ */

/* In the new process: the three streams and nothing else that is open. */
static int set_streams(posix_spawn_file_actions_t *actions,
                       const int streams[3])
{
    int rc = 0;

    for (int fd = 0; rc == 0 && fd < 3; fd++)
        rc = posix_spawn_file_actions_adddup2(actions, streams[fd], fd);
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

static int spawn(const struct exec *exec, const int streams[3], pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int rc = posix_spawn_file_actions_init(&actions);

    if (rc != 0)
        return rc;
    rc = posix_spawnattr_init(&attributes);
    if (rc == 0) {
        rc = set_streams(&actions, streams);
        if (rc == 0)
            rc = set_signals(&attributes);
        if (rc == 0)
            rc = posix_spawnp(ret_pid, exec->argv[0], &actions, &attributes,
                              exec->argv, exec->envp);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return rc;
}

/* Without memory for a watch there is the timer. */
static void watch(struct process *process)
{
    struct weir_loop *loop = process->look->loop;

    process->pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    if (process->pidfd >= 0)
        process->watch =
            weir_watch_new(loop, process->pidfd, on_exit_ready, process);
    if (process->watch != NULL) {
        weir_watch_set(process->watch, WEIR_FD_READ);
        return;
    }
    if (process->pidfd >= 0)
        (void)close(process->pidfd);
    process->pidfd = -1;
    weir_timer_start(process->look, LOOK_MS);
}

int process_start(struct process *process, const struct exec *exec,
                  const int streams[3])
{
    int rc = ENOMEM;

    for (int i = 0; i < 3; i++)
        if (streams[i] >= exec->fds_most)
            return EMFILE;
    process->pidfd = -1;
    process->look = weir_timer_new(exec->loop, on_look, process);
    process->kill = weir_timer_new(exec->loop, on_kill, process);
    if (process->look != NULL && process->kill != NULL)
        rc = spawn(exec, streams, &process->pid);
    if (rc != 0) {
        process_free(process);
        return rc;
    }
    watch(process);
    return 0;
}

void process_free(struct process *process)
{
    weir_watch_free(process->watch);
    if (process->pidfd >= 0)
        (void)close(process->pidfd);
    weir_timer_free(process->look);
    weir_timer_free(process->kill);
}
