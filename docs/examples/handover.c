/* SPDX-License-Identifier: MIT */
/* When a lock is not won, hand the request to a delay topic instead of sleeping
 * in front of the lock. Usage: handover REDIS_URL DIR
 *
 * Any program puts requests into the list "requests":
 *     redis-cli RPUSH requests '{"account":"anna","amount":5}'
 * Each account has a lock, a file in DIR, that other programs take as well
 * (flock(1) does). A request whose account is locked becomes a job of the topic
 * "requests.later" in the step that takes it out of the list, due in 100 ms;
 * requests of other accounts do not wait for it. */
#define _POSIX_C_SOURCE 200809L /* for -std=c11 */
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include <weir/weir.h>

enum { RETRY_MS = 100 };

/* The locked file, or -1 with errno: EWOULDBLOCK when somebody has the lock. */
static int lock_account(const char *dir, const char *account)
{
    char path[512];
    int fd, before;

    snprintf(path, sizeof(path), "%s/%s.lock", dir, account);
    fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    before = errno;
    if (fd >= 0)
        (void)close(fd);
    errno = before;
    return -1;
}

static enum weir_verdict handle(void *self, struct weir_job *job)
{
    struct weir_slice text, topic = weir_job_topic(job);
    char account[64];
    int fd;

    if (!weir_job_str(job, "account", &text) || text.len >= sizeof(account) ||
        memchr(text.ptr, '/', text.len) != NULL)
        return weir_fail(job, "the request names no account");
    snprintf(account, sizeof(account), "%.*s", (int)text.len,
             (const char *)text.ptr);
    fd = lock_account(self, account);
    if (fd < 0 && errno == EWOULDBLOCK)
        return weir_retry_after(job, RETRY_MS, "the account is locked");
    if (fd < 0)
        return weir_fail(job, strerror(errno));
    /* the work itself */
    printf("%s done, from %.*s\n", account, (int)topic.len,
           (const char *)topic.ptr);
    fflush(stdout);
    (void)close(fd);
    return WEIR_DONE;
}

static int serve(struct weir_reactor *reactor, char *dir,
                 struct weir_error *err)
{
    struct weir_topic_options requests = {
        .run = handle,
        .self = dir,
        .options = {"kind=list", "retry=100ms ...", "on_retry=requests.later"},
    };
    struct weir_topic_options later = {
        .run = handle,
        .self = dir,
        .options = {"retry=100ms ..."}, /* for ever */
    };
    int rc = weir_reactor_serve(reactor, "requests", &requests, err);

    return rc < 0 ? rc
                  : weir_reactor_serve(reactor, "requests.later", &later, err);
}

static void on_signal(struct ev_loop *loop, ev_signal *watcher, int events)
{
    (void)watcher;
    (void)events;
    ev_break(loop, EVBREAK_ALL);
}

/* Among it that no server answers: weir tries again until one does. */
static void say(enum weir_level level, const char *text, void *arg)
{
    (void)level;
    (void)arg;
    fprintf(stderr, "handover: %s\n", text);
}

int main(int argc, char **argv)
{
    struct ev_loop *loop = ev_default_loop(0);
    struct weir_options options = {
        .loop = loop, .log = say, .log_level = WEIR_LEVEL_WARN};
    struct weir_reactor *reactor;
    struct weir_error err;
    ev_signal term;

    if (argc != 3) {
        fprintf(stderr, "usage: handover REDIS_URL DIR\n");
        return 2;
    }
    options.redis_url = argv[1];
    if (weir_reactor_open(&options, &reactor, &err) != WEIR_OK) {
        fprintf(stderr, "handover: %s\n", err.text);
        return 2;
    }
    if (serve(reactor, argv[2], &err) < 0) {
        fprintf(stderr, "handover: %s\n", err.text);
        weir_reactor_free(reactor);
        return 2;
    }
    ev_signal_init(&term, on_signal, SIGTERM);
    ev_signal_start(loop, &term);
    fprintf(stderr, "handover: waits for requests, until SIGTERM\n");
    ev_run(loop, 0);
    weir_reactor_free(reactor);
    return 0;
}
