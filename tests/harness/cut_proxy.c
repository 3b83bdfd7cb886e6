/* SPDX-License-Identifier: MIT */
#include "tests/harness/cut_proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness/tempdir.h"
#include "tests/harness/test.h"

static struct {
    struct tempdir dir; /* for its guard */
    pid_t pid;
} proxy;

static _Noreturn void give_up(const char *what)
{
    printf("  cut_proxy: %s\n", what);
    (void)fflush(stdout); /* the test has failed already */
    _exit(1);
}

static struct sockaddr_in local(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

static int listen_anywhere(int *ret_port)
{
    struct sockaddr_in address = local(0);
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (bind(fd, (struct sockaddr *)&address, len) != 0 ||
        listen(fd, 64) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) != 0)
        give_up("no port");
    *ret_port = ntohs(address.sin_port);
    return fd;
}

/* Move up to `most` bytes. False: one of them hung up. */
static bool move(int from, int to, size_t most, size_t *ret_moved)
{
    char buf[4096];
    ssize_t got = read(from, buf, most < sizeof(buf) ? most : sizeof(buf));
    ssize_t done = 0;

    while (got > 0 && done < got) {
        ssize_t sent = send(to, buf + done, (size_t)(got - done), MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        done += sent;
    }
    *ret_moved = got > 0 ? (size_t)got : 0;
    return got > 0;
}

static void relay(const struct cut_proxy_options *options, int client,
                  int server, size_t left)
{
    struct pollfd ends[2] = {{.fd = client, .events = POLLIN},
                             {.fd = server, .events = POLLIN}};
    int counted = options->counts_sent ? 0 : 1;
    bool is_slow = options->byte_every_ms > 0;
    bool goes_on = true;

    while (goes_on && left > 0 && poll(ends, 2, -1) > 0)
        for (int i = 0; i < 2 && goes_on; i++) {
            bool is_one = is_slow && i == counted;
            size_t moved = 0;

            if (ends[i].revents == 0)
                continue;
            if (is_one)
                (void)poll(NULL, 0, options->byte_every_ms);
            goes_on = move(ends[i].fd, ends[1 - i].fd,
                           is_one         ? 1
                           : i == counted ? left
                                          : SIZE_MAX,
                           &moved);
            if (i == counted && !is_slow)
                left -= moved;
        }
}

static _Noreturn void run(const struct cut_proxy_options *options, int listener)
{
    struct sockaddr_in address = local(options->port);

    for (size_t bytes = (size_t)options->cut_at;; bytes++) {
        int client = accept(listener, NULL, NULL);
        int server = socket(AF_INET, SOCK_STREAM, 0);

        if (client < 0 ||
            connect(server, (struct sockaddr *)&address, sizeof(address)) != 0)
            give_up("the server is not there");
        relay(options, client, server,
              options->byte_every_ms > 0 ? SIZE_MAX : bytes);
        (void)close(client); /* that is the cut */
        (void)close(server);
    }
}

static void stop(void)
{
    (void)kill(proxy.pid, SIGKILL); /* it may have ended by itself */
    while (waitpid(proxy.pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    tempdir_remove(&proxy.dir);
}

int cut_proxy_start(const struct cut_proxy_options *options)
{
    int port, listener = listen_anywhere(&port);

    if (!tempdir_make(&proxy.dir))
        give_up("no directory");
    (void)fflush(stdout); /* or the child could print it again */
    proxy.pid = fork();
    if (proxy.pid < 0)
        give_up("fork failed");
    if (proxy.pid == 0)
        run(options, listener);
    (void)close(listener); /* the child's now */
    tempdir_guard(&proxy.dir, proxy.pid);
    test_at_end(stop);
    return port;
}
