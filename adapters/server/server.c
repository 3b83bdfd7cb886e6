/* SPDX-License-Identifier: MIT */
#include "adapters/server/server.h"

#include "adapters/server/ask.h"
#include "adapters/server/spawn.h"
#include "core/assert.h"
#include "core/error.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { START_LIMIT_MS = 10000, STOP_LIMIT_MS = 30000, LOOK_AGAIN_MS = 5 };

static int64_t monotonic_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Between two looks at something that sends no event. */
static void pause_shortly(void)
{
    struct timespec pause = {.tv_nsec = LOOK_AGAIN_MS * 1000000L};

    (void)nanosleep(&pause, NULL); /* a signal only shortens it */
}

static int file_of(const struct weir__server *server, const char *name,
                   char *buf, size_t cap)
{
    int len = snprintf(buf, cap, "%s/%s", server->dir, name);

    return len > 0 && (size_t)len < cap ? WEIR_OK : WEIR_ETOOBIG;
}

/* --- the lock --------------------------------------------------------- */

/* Held while a server is started or stopped. Gone with its holder. */
static int lock_take(const struct weir__server *server, int64_t deadline_ms,
                     int *ret_fd, struct weir_error *err)
{
    char path[PATH_MAX];
    int fd;

    if (file_of(server, "lock", path, sizeof(path)) < 0)
        return weir__error_set(err, WEIR_ETOOBIG, "name too long");
    fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return weir__error_set(err, WEIR_ESYSTEM,
                               "cannot open %s: %s; it has to be this user's",
                               path, strerror(errno));
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (monotonic_ms() >= deadline_ms) {
            (void)close(fd);
            return weir__error_set(
                err, WEIR_ETIMEDOUT,
                "another process holds %s for long; see what it does", path);
        }
        pause_shortly();
    }
    *ret_fd = fd;
    return WEIR_OK;
}

static void lock_release(int fd)
{
    (void)close(fd);
}

/* --- starting --------------------------------------------------------- */

static int spawn_server(const struct weir__server *server, pid_t *ret_pid,
                        struct weir_error *err)
{
    char pid_path[PATH_MAX], log_path[PATH_MAX];
    const char *const argv[] = {"redis-server",
                                "--port",
                                "0",
                                "--unixsocket",
                                server->socket,
                                "--unixsocketperm",
                                "700",
                                "--dir",
                                server->dir,
                                "--appendonly",
                                "yes",
                                "--save",
                                "", /* the append-only file is all there is */
                                "--maxmemory-policy",
                                "noeviction",
                                "--daemonize",
                                "no",
                                "--pidfile",
                                pid_path,
                                "--logfile",
                                log_path,
                                NULL};

    if (file_of(server, "redis.pid", pid_path, sizeof(pid_path)) < 0 ||
        file_of(server, "redis.log", log_path, sizeof(log_path)) < 0)
        return weir__error_set(err, WEIR_ETOOBIG, "name too long");
    return weir__spawn(argv, -1, ret_pid, err);
}

static long read_pid(const char *path)
{
    char line[32] = "";
    FILE *file = fopen(path, "r");

    if (file == NULL)
        return 0;
    (void)!fgets(line, sizeof(line), file); /* an empty file reads as 0 */
    (void)fclose(file);
    return strtol(line, NULL, 10);
}

/* A server whose socket was deleted under it still writes the files here; a
 * second one would destroy them. */
static int refuse_orphan(const struct weir__server *server,
                         struct weir_error *err)
{
    char path[PATH_MAX], link[64], cwd[PATH_MAX];
    ssize_t len;
    long pid;

    if (file_of(server, "redis.pid", path, sizeof(path)) < 0)
        return WEIR_OK;
    pid = read_pid(path);
    if (pid <= 0 || !weir__process_is_alive((pid_t)pid))
        return WEIR_OK;
    (void)snprintf(link, sizeof(link), "/proc/%ld/cwd", pid);
    len = readlink(link, cwd, sizeof(cwd) - 1);
    if (len < 0)
        return WEIR_OK;
    cwd[len] = '\0';
    if (strcmp(cwd, server->dir) != 0)
        return WEIR_OK; /* the number belongs to another process now */
    return weir__error_set(err, WEIR_ESYSTEM,
                           "a redis-server (pid %ld) works in %s without its "
                           "socket; stop it with kill %ld, then try again",
                           pid, server->dir, pid);
}

/* The last line of the log, without its newline. */
static void last_log_line(const struct weir__server *server, char *buf,
                          size_t cap)
{
    char path[PATH_MAX];
    FILE *file = NULL;

    (void)snprintf(buf, cap, "see redis.log there");
    if (file_of(server, "redis.log", path, sizeof(path)) == WEIR_OK)
        file = fopen(path, "r");
    if (file == NULL)
        return;
    while (fgets(buf, (int)cap, file) != NULL)
        buf[strcspn(buf, "\n")] = '\0';
    (void)fclose(file);
}

/* --- a file that was cut ------------------------------------------------ */

/* A crash may cut the append-only file within a step of a script. A server that
 * starts leaves that step out, but shortens the file to the last whole command
 * only, and what comes next would complete half of the step at the start after
 * this one. So its log is looked at, from where it began with this start, by
 * who starts it or, should that process end meanwhile, by the next one: the
 * file "starting" is there until that is done. */
static int starting_open(const struct weir__server *server, int flags)
{
    char path[PATH_MAX];

    if (file_of(server, "starting", path, sizeof(path)) < 0)
        return -1;
    return open(path, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* Without the file a start is as good, but for a crash before. */
static void note_start(const struct weir__server *server)
{
    char path[PATH_MAX], text[24];
    int fd = starting_open(server, O_WRONLY | O_CREAT | O_TRUNC);
    struct stat log = {0};
    ssize_t written;

    if (fd < 0)
        return;
    if (file_of(server, "redis.log", path, sizeof(path)) < 0 ||
        stat(path, &log) != 0)
        log.st_size = 0;
    (void)snprintf(text, sizeof(text), "%lld", (long long)log.st_size);
    written = write(fd, text, strlen(text));
    (void)written; /* where it failed, it is the beginning of the log */
    (void)close(fd);
}

/* Where the log of a start begins that was not looked at; -1: of none. */
static long long noted_start(const struct weir__server *server)
{
    int fd = starting_open(server, O_RDONLY);
    char text[24] = "";
    ssize_t len;

    if (fd < 0)
        return -1;
    len = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    return len < 0 ? -1 : strtoll(text, NULL, 10);
}

static bool was_cut(const struct weir__server *server, long long from)
{
    char path[PATH_MAX], line[256];
    bool is_cut = false;
    FILE *file = NULL;

    if (file_of(server, "redis.log", path, sizeof(path)) == WEIR_OK)
        file = fopen(path, "r");
    if (file == NULL)
        return false;
    if (fseek(file, (long)from, SEEK_SET) == 0)
        while (!is_cut && fgets(line, sizeof(line), file) != NULL)
            is_cut = strstr(line, "Truncating the AOF") != NULL;
    (void)fclose(file);
    return is_cut;
}

/* Under the lock, with a server that answers. */
static void mend_file(const struct weir__server *server)
{
    long long from = noted_start(server);
    char path[PATH_MAX];

    if (from < 0)
        return;
    if (was_cut(server, from) && !weir__server_ask_rewrite(server->socket))
        return; /* the next one asks */
    if (file_of(server, "starting", path, sizeof(path)) == WEIR_OK)
        (void)unlink(path); /* or it is looked at once more */
}

/* --- starting ------------------------------------------------------------- */

static int refuse_stranger(const struct weir__server *server,
                           struct weir_error *err)
{
    return weir__error_set(err, WEIR_EINVAL,
                           "who listens on %s is no server of this user; see "
                           "who does, or give another data directory",
                           server->socket);
}

/* `pid` is the process started here, or 0. */
static int wait_ready(const struct weir__server *server, pid_t pid,
                      int64_t deadline_ms, struct weir__server_info *ret_info,
                      struct weir_error *err)
{
    for (;;) {
        enum weir__server_state state =
            weir__server_ask(server->socket, ret_info);

        if (state == WEIR__SERVER_READY)
            return WEIR_OK;
        if (state == WEIR__SERVER_FOREIGN)
            return refuse_stranger(server, err);
        if (pid > 0 && !weir__process_is_alive(pid)) {
            char line[120];

            last_log_line(server, line, sizeof(line));
            return weir__error_set(err, WEIR_ESERVER,
                                   "redis-server in %.80s ended at once: %s",
                                   server->dir, line);
        }
        if (monotonic_ms() >= deadline_ms)
            return weir__error_set(
                err, WEIR_ETIMEDOUT,
                "redis-server in %s %s; see redis.log there", server->dir,
                state == WEIR__SERVER_LOADING ? "is still loading its data"
                                              : "does not answer");
        pause_shortly();
    }
}

/* Whether the socket is not there, and nobody works without it. A server that
 * is starting has its number in redis.pid some time before it listens, and who
 * started it may be gone: it is waited for. */
static int look_absent(const struct weir__server *server, int64_t deadline_ms,
                       bool *ret_absent, struct weir__server_info *ret_info,
                       struct weir_error *err)
{
    for (;;) {
        int rc = WEIR_OK;

        *ret_absent =
            weir__server_ask(server->socket, ret_info) == WEIR__SERVER_ABSENT;
        if (*ret_absent)
            rc = refuse_orphan(server, err);
        if (rc == WEIR_OK || noted_start(server) < 0 ||
            monotonic_ms() >= deadline_ms)
            return rc;
        pause_shortly();
    }
}

/* Under the lock. */
static int start_locked(const struct weir__server *server, int64_t deadline_ms,
                        bool *ret_started, struct weir__server_info *ret_info,
                        struct weir_error *err)
{
    bool is_absent = false;
    pid_t pid = 0;
    int rc = look_absent(server, deadline_ms, &is_absent, ret_info, err);

    if (is_absent && rc == WEIR_OK) {
        note_start(server);
        rc = spawn_server(server, &pid, err);
    }
    if (rc == WEIR_OK)
        rc = wait_ready(server, pid, deadline_ms, ret_info, err);
    if (rc < 0)
        return rc;
    mend_file(server);
    *ret_started = is_absent;
    return WEIR_OK;
}

int weir__server_start(const struct weir__server *server, bool *ret_started,
                       struct weir__server_info *ret_info,
                       struct weir_error *err)
{
    int64_t deadline_ms = monotonic_ms() + START_LIMIT_MS;
    struct weir__server_info info = {0};
    bool started = false, is_ready;
    int lock = -1;
    int rc = WEIR_OK;

    WEIR_ASSERT(server->socket[0] == '/');
    is_ready = weir__server_ask(server->socket, &info) == WEIR__SERVER_READY;
    if (!is_ready || noted_start(server) >= 0) {
        rc = lock_take(server, is_ready ? 0 : deadline_ms, &lock, err);
        if (rc < 0 && !is_ready)
            return rc;
        if (rc == WEIR_OK) { /* else who has the lock looks at the log */
            rc = start_locked(server, deadline_ms, &started, &info, err);
            lock_release(lock);
        }
        if (is_ready)
            rc = WEIR_OK;
    }
    if (rc < 0)
        return rc;
    *ret_started = started;
    *ret_info = info;
    return WEIR_OK;
}

/* --- looking and stopping --------------------------------------------- */

int weir__server_status(const struct weir__server *server,
                        struct weir__server_info *ret_info,
                        struct weir_error *err)
{
    struct weir__server_info info = {0};

    switch (weir__server_ask(server->socket, &info)) {
    case WEIR__SERVER_ABSENT:
        return weir__error_set(err, WEIR_ENOTFOUND,
                               "no private redis-server runs in %s",
                               server->dir);
    case WEIR__SERVER_FOREIGN:
        return refuse_stranger(server, err);
    case WEIR__SERVER_SILENT:
        return weir__error_set(err, WEIR_ETIMEDOUT,
                               "redis-server in %s does not answer",
                               server->dir);
    case WEIR__SERVER_LOADING:
    case WEIR__SERVER_READY:
        break;
    }
    *ret_info = info;
    return WEIR_OK;
}

static int stop_locked(const struct weir__server *server,
                       struct weir_error *err)
{
    struct weir__server_info info = {0};
    int64_t deadline_ms;
    int rc = weir__server_status(server, &info, err);

    if (rc == WEIR_OK)
        rc = weir__server_ask_shutdown(server->socket, err);
    deadline_ms = monotonic_ms() + STOP_LIMIT_MS;
    while (rc == WEIR_OK && weir__process_is_alive(info.pid)) {
        if (monotonic_ms() >= deadline_ms)
            rc = weir__error_set(err, WEIR_ETIMEDOUT,
                                 "redis-server (pid %ld) is still saving",
                                 (long)info.pid);
        pause_shortly();
    }
    return rc;
}

int weir__server_stop(const struct weir__server *server, struct weir_error *err)
{
    int lock = -1;
    int rc = lock_take(server, monotonic_ms() + START_LIMIT_MS, &lock, err);

    if (rc < 0)
        return rc;
    rc = stop_locked(server, err);
    lock_release(lock);
    return rc;
}
