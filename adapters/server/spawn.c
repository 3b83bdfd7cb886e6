/* SPDX-License-Identifier: MIT */
#include "adapters/server/spawn.h"

#include "core/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the new process tells through the pipe, which closes at exec: its pid,
 * and if exec failed a second record with the reason. If there is no new
 * process, the only record has the reason. */
struct word {
    pid_t pid;
    int error; /* errno */
};

/* The process has one thread, so opendir is allowed between fork and exec. */
static void close_all_but(int keep)
{
    DIR *open_files = opendir("/proc/self/fd");

    if (open_files == NULL) {
        for (int fd = 0; fd < 1024; fd++) {
            if (fd != keep)
                (void)close(fd);
        }
        return;
    }
    for (struct dirent *entry = readdir(open_files); entry != NULL;
         entry = readdir(open_files)) {
        int fd = (int)strtol(entry->d_name, NULL, 10); /* "." reads as 0 */

        if (fd != keep && fd != dirfd(open_files))
            (void)close(fd);
    }
    (void)closedir(open_files);
}

/* Descriptors are closed, so the next three are 0, 1 and 2. */
static bool open_null_streams(void)
{
    return open("/dev/null", O_RDONLY) == STDIN_FILENO &&
           open("/dev/null", O_WRONLY) == STDOUT_FILENO &&
           open("/dev/null", O_WRONLY) == STDERR_FILENO;
}

/* In the grandchild. */
_Noreturn static void become(const char *const *argv, int guard, int tell)
{
    struct word word = {getpid(), 0};
    union {
        const char *const *in;
        char *const *out;
    } args = {.in = argv}; /* execvp takes no const but changes nothing */
    sigset_t none;

    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)umask(077);
    if (guard >= 0 &&
        write(guard, &word.pid, sizeof(word.pid)) != (ssize_t)sizeof(word.pid))
        _exit(1); /* the guard is gone */
    close_all_but(tell);
    if (write(tell, &word, sizeof(word)) == (ssize_t)sizeof(word) &&
        open_null_streams())
        (void)execvp(argv[0], args.out);
    word.error = errno;
    (void)!write(tell, &word, sizeof(word)); /* nobody else to tell */
    _exit(127);
}

/* In the child: leave our session, then fork again so that the program can
 * never get a controlling terminal and nobody has to wait for it. */
_Noreturn static void leave_session(const char *const *argv, int guard,
                                    int tell)
{
    struct word word = {0, 0};
    pid_t pid;

    (void)setsid(); /* cannot fail: a fresh child leads no group */
    pid = fork();
    if (pid == 0)
        become(argv, guard, tell);
    word.error = errno;
    if (pid < 0)
        (void)!write(tell, &word, sizeof(word)); /* nobody else to tell */
    _exit(pid < 0 ? 1 : 0);
}

static ssize_t read_word(int fd, struct word *ret_word)
{
    ssize_t len;

    do {
        len = read(fd, ret_word, sizeof(*ret_word));
    } while (len < 0 && errno == EINTR);
    return len;
}

static int hear(int fd, const char *program, pid_t *ret_pid,
                struct weir_error *err)
{
    struct word first = {0, 0}, second = {0, 0};

    if (read_word(fd, &first) != (ssize_t)sizeof(first))
        return weir__error_set(err, WEIR_ESYSTEM, "cannot start %s: no process",
                               program);
    if (first.error != 0)
        second = first;
    else if (read_word(fd, &second) == 0) {
        *ret_pid = first.pid;
        return WEIR_OK;
    }
    if (second.error == ENOENT)
        return weir__error_set(err, WEIR_ENOTFOUND,
                               "%s is not in PATH; install it", program);
    return weir__error_set(err, WEIR_ESYSTEM, "cannot start %s: %s", program,
                           strerror(second.error));
}

/* A pipe above the standard streams, closed at exec. */
static int make_pipe(int ends[2], struct weir_error *err)
{
    int low[2];

    if (pipe(low) != 0)
        return weir__error_set(err, WEIR_ESYSTEM, "cannot make a pipe: %s",
                               strerror(errno));
    ends[0] = fcntl(low[0], F_DUPFD_CLOEXEC, 3);
    ends[1] = fcntl(low[1], F_DUPFD_CLOEXEC, 3);
    (void)close(low[0]);
    (void)close(low[1]);
    if (ends[0] >= 0 && ends[1] >= 0)
        return WEIR_OK;
    (void)close(ends[0]);
    (void)close(ends[1]);
    return weir__error_set(err, WEIR_ESYSTEM, "too many open files");
}

int weir__spawn(const char *const *argv, int guard, pid_t *ret_pid,
                struct weir_error *err)
{
    int ends[2] = {-1, -1};
    pid_t child;
    int rc = make_pipe(ends, err);

    if (rc < 0)
        return rc;
    child = fork();
    if (child == 0)
        leave_session(argv, guard, ends[1]);
    (void)close(ends[1]);
    if (child < 0)
        rc = weir__error_set(err, WEIR_ESYSTEM, "cannot start %s: %s", argv[0],
                             strerror(errno));
    else
        rc = hear(ends[0], argv[0], ret_pid, err);
    (void)close(ends[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    return rc;
}

/* The state letter behind "pid (name) "; a name may hold blanks and brackets.
 * '?' when it cannot be read. */
static char process_state(pid_t pid)
{
    char path[64], line[256];
    const char *end = NULL;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    file = fopen(path, "r");
    if (file == NULL)
        return '?';
    if (fgets(line, sizeof(line), file) != NULL)
        end = strrchr(line, ')');
    (void)fclose(file);
    return end != NULL && end[1] == ' ' ? end[2] : '?';
}

bool weir__process_is_alive(pid_t pid)
{
    char state;

    if (kill(pid, 0) != 0 && errno == ESRCH)
        return false;
    state = process_state(pid);
    if (state == '?') /* not readable, or reaped since we looked */
        return kill(pid, 0) == 0 || errno != ESRCH;
    return state != 'Z' && state != 'X';
}
