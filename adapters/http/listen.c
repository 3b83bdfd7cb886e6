/* SPDX-License-Identifier: MIT */
#include "adapters/http/listen.h"

#include "core/assert.h"
#include "core/error.h"
#include "core/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* By itself the kernel keeps up to 4 MiB for each client that reads slowly, and
 * filling that holds the loop. */
enum { BACKLOG = 511, SEND_BUFFER = 128 * 1024 };

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* The host of HOST:PORT without brackets into `host`, and the port. */
static bool split(const char *text, char host[INET6_ADDRSTRLEN],
                  unsigned int *ret_port)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon == NULL ? 0 : (size_t)(colon - text);
    size_t digits = colon == NULL ? 0 : strlen(colon + 1);
    unsigned long port;

    if (digits == 0 || digits > 5 || strspn(colon + 1, "0123456789") != digits)
        return false;
    if (len >= 2 && text[0] == '[' && colon[-1] == ']') {
        text++;
        len -= 2;
    } else if (memchr(text, ':', len) != NULL) {
        return false; /* an IPv6 address without brackets */
    }
    port = strtoul(colon + 1, NULL, 10);
    if (len >= INET6_ADDRSTRLEN || port > 65535)
        return false;
    memcpy(host, text, len);
    host[len] = '\0';
    *ret_port = (unsigned int)port;
    return true;
}

/* The length of the address that `host` is; 0: it is none. */
static socklen_t fill(union address *address, const char *host,
                      unsigned int port)
{
    memset(address, 0, sizeof(*address));
    if (strcmp(host, "localhost") == 0)
        host = "127.0.0.1";
    if (host[0] == '\0')
        host = "::";
    if (inet_pton(AF_INET, host, &address->v4.sin_addr) == 1) {
        address->v4.sin_family = AF_INET;
        address->v4.sin_port = htons((uint16_t)port);
        return sizeof(address->v4);
    }
    if (inet_pton(AF_INET6, host, &address->v6.sin6_addr) == 1) {
        address->v6.sin6_family = AF_INET6;
        address->v6.sin6_port = htons((uint16_t)port);
        return sizeof(address->v6);
    }
    return 0;
}

static bool is_loopback(const union address *address)
{
    if (address->any.sa_family == AF_INET)
        return ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}

static int refuse(const char *what, const char *text, struct weir_error *err)
{
    int number = errno;

    return weir__error_set(err, WEIR_ESYSTEM, "%s: cannot listen at %s: %s",
                           what, text, strerror(number));
}

/* Both protocols where no address was given. */
static int bind_socket(const union address *address, socklen_t len)
{
    int one = 1, zero = 0, buffer = SEND_BUFFER;
    int fd = socket(address->any.sa_family, SOCK_STREAM, 0);

    if (fd < 0)
        return -1;
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* cannot fail */
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    /* connections inherit it */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
    if (address->any.sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
    if (bind(fd, &address->any, len) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    one = errno;
    (void)close(fd);
    errno = one;
    return -1;
}

/* What the socket is bound to, the port that was chosen as well. */
static void describe(struct weir__listen *listen)
{
    union address address = {0};
    socklen_t len = sizeof(address);
    char host[INET6_ADDRSTRLEN] = "?";

    WEIR_ASSERT(listen->fd >= 0);
    (void)getsockname(listen->fd, &address.any, &len); /* cannot fail */
    listen->is_loopback = is_loopback(&address);
    if (address.any.sa_family == AF_INET) {
        listen->port = ntohs(address.v4.sin_port);
        (void)inet_ntop(AF_INET, &address.v4.sin_addr, host, sizeof(host));
        (void)snprintf(listen->address, sizeof(listen->address), "%s:%u", host,
                       listen->port);
        return;
    }
    listen->port = ntohs(address.v6.sin6_port);
    (void)inet_ntop(AF_INET6, &address.v6.sin6_addr, host, sizeof(host));
    (void)snprintf(listen->address, sizeof(listen->address), "[%s]:%u", host,
                   listen->port);
}

int weir__listen_open(const char *text, const char *what,
                      struct weir__listen *ret_listen, struct weir_error *err)
{
    struct weir__listen listen = {0};
    char host[INET6_ADDRSTRLEN], quoted[WEIR__TEXT_QUOTE_CAP];
    union address address;
    socklen_t len = 0;
    unsigned int port = 0;

    if (split(text, host, &port))
        len = fill(&address, host, port);
    if (len == 0)
        return weir__error_set(
            err, WEIR_EINVAL,
            "%s: \"%s\" is no ADDRESS:PORT, such as 127.0.0.1:8080", what,
            weir__text_quote(weir__slice_str(text), quoted));
    listen.fd = bind_socket(&address, len);
    if (listen.fd < 0 && host[0] == '\0' && errno == EAFNOSUPPORT) {
        len = fill(&address, "0.0.0.0", port); /* a kernel without IPv6 */
        listen.fd = bind_socket(&address, len);
    }
    if (listen.fd < 0)
        return refuse(what, text, err);
    describe(&listen);
    *ret_listen = listen;
    return WEIR_OK;
}
