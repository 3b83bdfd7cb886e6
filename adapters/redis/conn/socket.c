/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "adapters/redis/conn/private.h"

/* Options of a connection's descriptor: dead peers are noticed, and a producer
 * does not fill the socket of a server that has workers, too. */

enum {
    KEEPALIVE_IDLE_S = 15,
    KEEPALIVE_STEP_S = 5,
    KEEPALIVE_STEPS = 3,
    USER_TIMEOUT_MS = 20000, /* keepalive is silent while data is in flight */
    /* The server reads all that a unix socket holds in one turn of its loop,
     * but answers others with 64 KiB each: a producer that keeps it full would
     * leave its workers behind. */
    SEND_BYTES = 65536
};

static void set_option(int fd, int level, int option, int value)
{
    /* Best effort: our own deadlines notice a dead peer, too. */
    (void)setsockopt(fd, level, option, &value, sizeof(value));
}

void weir__socket_prepare(int fd, bool is_unix)
{
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* cannot fail on an open socket */
    if (is_unix) {
        set_option(fd, SOL_SOCKET, SO_SNDBUF, SEND_BYTES);
        return;
    }
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
#ifdef TCP_KEEPIDLE
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_STEP_S);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_STEPS);
#endif
#ifdef TCP_USER_TIMEOUT
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS);
#endif
}

bool weir__socket_is_own_peer(int fd)
{
    struct sockaddr_storage own = {0}, peer = {0};
    socklen_t own_len = sizeof(own), peer_len = sizeof(peer);

    if (getsockname(fd, (struct sockaddr *)&own, &own_len) != 0 ||
        getpeername(fd, (struct sockaddr *)&peer, &peer_len) != 0)
        return false;
    return own.ss_family != AF_UNIX && own_len == peer_len &&
           memcmp(&own, &peer, own_len) == 0;
}

bool weir__socket_is_readable(int fd)
{
    struct pollfd look = {.fd = fd, .events = POLLIN};

    return poll(&look, 1, 0) > 0;
}

bool weir__socket_last_words(int fd, char *text, size_t cap)
{
    ssize_t got = recv(fd, text, cap - 1, MSG_DONTWAIT);

    if (got < 2 || text[0] != '-')
        return false;
    text[got] = '\0';
    memmove(text, text + 1, (size_t)got); /* with the NUL */
    text[strcspn(text, "\r\n")] = '\0';
    return true;
}
