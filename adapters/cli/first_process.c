/* SPDX-License-Identifier: MIT */

/* In a container weir may be process 1. The kernel hands that process every
 * orphan, for example what a command of exec left in the background, and an
 * orphan stays a zombie until process 1 reaps it. */

#include "adapters/cli/cli.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Exit as the child did, once it has ended. */
static void reap(pid_t child)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);

        if (pid <= 0)
            return;
        if (pid == child)
            _exit(WIFEXITED(status) ? WEXITSTATUS(status)
                                    : 128 + WTERMSIG(status));
    }
}

void weir__leave_first_process(void)
{
    struct sigaction normal = {.sa_handler = SIG_DFL};
    sigset_t all, before;
    int number;
    pid_t child;

    if (getpid() != 1)
        return;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, &before);
    (void)sigaction(SIGCHLD, &normal, NULL); /* ignored, it hides the end */
    child = fork();
    if (child <= 0) { /* without a child, orphans stay zombies */
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
        return;
    }
    for (;;) {
        if (sigwait(&all, &number) != 0)
            continue;
        if (number == SIGCHLD)
            reap(child);
        else
            (void)kill(child, number); /* the child is not reaped yet */
    }
}
