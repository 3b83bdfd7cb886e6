/* SPDX-License-Identifier: MIT */
#include "tests/harness/tempdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LONGEST_PARENT = 64,
    INHERITED_FDS_MAX = 256,
    GUARD_OFF = -1 /* instead of a pid: end, there is nothing left to do */
};

/* Removes a tree. Symbolic links are removed, not followed. */
static void remove_tree(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    char inner[1024];

    if (dir == NULL)
        return;
    for (entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        (void)snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name);
        if (unlink(inner) != 0)
            remove_tree(inner);
    }
    (void)closedir(dir); /* was only read */
    (void)rmdir(path);   /* gone already is as good */
}

/* Reads pids until the test closes its end by dying or by itself. */
static _Noreturn void guard(const char *path, int from)
{
    pid_t pid = 0, next = 0;
    ssize_t got;

    for (;;) {
        got = read(from, &next, sizeof(next));
        if (got == (ssize_t)sizeof(next))
            pid = next;
        else if (got >= 0 || errno != EINTR)
            break;
        if (pid == GUARD_OFF)
            _exit(0);
    }
    if (pid > 0)
        (void)kill(pid, SIGKILL); /* may have ended by itself */
    remove_tree(path);
    _exit(0);
}

static bool start_guard(struct tempdir *dir)
{
    int ends[2], null;

    if (pipe(ends) != 0)
        return false;
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC); /* cannot fail here */
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    (void)fflush(stdout);
    dir->guard_pid = fork();
    if (dir->guard_pid < 0)
        return false;
    if (dir->guard_pid == 0) {
        (void)setpgid(0, 0); /* to outlive the test's group */
        null = open("/dev/null", O_RDWR);
        (void)dup2(null, STDIN_FILENO); /* best effort */
        (void)dup2(null, STDOUT_FILENO);
        (void)dup2(null, STDERR_FILENO);
        for (int fd = STDERR_FILENO + 1; fd < INHERITED_FDS_MAX; fd++)
            if (fd != ends[0])
                (void)close(fd); /* other guards' pipes among them */
        guard(dir->path, ends[0]);
    }
    (void)setpgid(dir->guard_pid, dir->guard_pid); /* whoever is first */
    (void)close(ends[0]);
    dir->guard = ends[1];
    return true;
}

bool tempdir_make(struct tempdir *dir)
{
    const char *parent = getenv("TMPDIR");

    if (parent == NULL || parent[0] != '/' || strlen(parent) > LONGEST_PARENT)
        parent = "/tmp";
    (void)snprintf(dir->path, sizeof(dir->path), "%s/weir-XXXXXX", parent);
    return mkdtemp(dir->path) != NULL && start_guard(dir);
}

void tempdir_guard(struct tempdir *dir, pid_t pid)
{
    if (write(dir->guard, &pid, sizeof(pid)) != (ssize_t)sizeof(pid))
        fprintf(stderr, "tempdir: the guard of %s is gone\n", dir->path);
}

void tempdir_remove(struct tempdir *dir)
{
    tempdir_guard(dir, 0);
    remove_tree(dir->path);
    tempdir_guard(dir, GUARD_OFF);
    (void)close(dir->guard);
    while (waitpid(dir->guard_pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}
