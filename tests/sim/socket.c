/* SPDX-License-Identifier: MIT */

/* Stream sockets of the world. A client's end is a descriptor; the server's is
 * a service in memory. Portions fly between the two and arrive in their order,
 * each at a time of its own. */

#include "tests/sim/file.h" /* first */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/sim/fibre.h"

struct sim_net sim_net;

struct sim_port {
    char address[sizeof(((struct sockaddr_un *)0)->sun_path)];
    const struct sim_service *service;
    void *arg;
    bool refuses, swallows;
    int64_t stalled_until_ns;
    struct sim_stream *streams;
    struct sim_port *next;
};

enum { TO_SERVER, TO_CLIENT };

struct sim_stream {
    struct sim_file file;  /* first */
    struct sim_port *port; /* NULL: not connected to one */
    void *peer;            /* the service's; NULL: has none yet, or no more */
    int refs;              /* the descriptor and what flies */
    bool is_closed;        /* the descriptor is gone */
    bool is_cut;           /* nothing arrives any more */
    bool is_hung_up;       /* the service wants nothing more of it */
    bool is_connected, has_ended;
    int error;          /* of connect(2), for SO_ERROR */
    int64_t last_ns[2]; /* when the last portion of a direction arrives */
    size_t flying;      /* bytes to the server */
    char *in;           /* not read yet */
    size_t len, cap;
    struct sim_stream *next; /* of its port */
};

static struct sim_port *ports;

static struct sim_stream *stream_of(struct sim_file *file)
{
    return (struct sim_stream *)file; /* its first member */
}

/* --- life ---------------------------------------------------------------- */

static void leave_port(struct sim_stream *stream)
{
    struct sim_stream **link = &stream->port->streams;

    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    stream->port = NULL;
}

static void unref(struct sim_stream *stream)
{
    if (--stream->refs > 0)
        return;
    if (stream->port != NULL)
        leave_port(stream);
    free(stream->in);
    free(stream);
}

/* The service hears once that the connection ended. */
static void end_peer(struct sim_stream *stream)
{
    void *peer = stream->peer;

    stream->peer = NULL;
    if (peer != NULL)
        stream->port->service->gone(peer);
}

/* --- what flies ---------------------------------------------------------- */

struct flight {
    struct sim_stream *stream;
    void (*arrive)(struct flight *flight);
    size_t len;
    char bytes[];
};

static int64_t arrival(struct sim_stream *stream, int direction)
{
    int64_t at_ns = sim_now() + sim_net.least_ns +
                    (int64_t)sim_below((uint64_t)sim_net.spread_ns + 1);

    if (stream->port != NULL && at_ns < stream->port->stalled_until_ns)
        at_ns = stream->port->stalled_until_ns;
    if (at_ns < stream->last_ns[direction])
        at_ns = stream->last_ns[direction];
    stream->last_ns[direction] = at_ns;
    return at_ns;
}

static void land(void *arg)
{
    struct flight *flight = arg;
    struct sim_stream *stream = flight->stream;

    if (stream->port != NULL && stream->port->stalled_until_ns > sim_now()) {
        sim_event(stream->port->stalled_until_ns, land, flight);
        return;
    }
    flight->arrive(flight);
    unref(stream);
    free(flight);
}

static void fly(struct sim_stream *stream, int direction,
                void (*arrive)(struct flight *flight), const void *bytes,
                size_t len)
{
    struct flight *flight = malloc(sizeof(*flight) + len);

    if (flight == NULL)
        sim_fail("no memory for a portion of %zu bytes", len);
    *flight = (struct flight){stream, arrive, len};
    if (len > 0)
        memcpy(flight->bytes, bytes, len);
    sim_note(bytes, len);
    stream->refs++;
    sim_event(arrival(stream, direction), land, flight);
}

static void arrive_cut_off(struct flight *flight)
{
    flight->stream->is_cut = true;
    flight->stream->has_ended = true;
    end_peer(flight->stream);
}

/* In pieces, a third of all portions is split at a random byte. */
static void fly_bytes(struct sim_stream *stream, int direction,
                      void (*arrive)(struct flight *flight), const char *bytes,
                      size_t len)
{
    bool is_cut_off = sim_one_in(sim_net.cut_one_in);

    if (is_cut_off)
        len = (size_t)sim_below(len + 1);
    while (len > 0) {
        size_t piece = len;

        if (sim_net.in_pieces && sim_one_in(3))
            piece = 1 + (size_t)sim_below(len);
        fly(stream, direction, arrive, bytes, piece);
        bytes += piece;
        len -= piece;
    }
    if (is_cut_off)
        fly(stream, direction, arrive_cut_off, NULL, 0);
}

/* --- the client connects, writes and closes ------------------------------ */

static void arrive_connect(struct flight *flight)
{
    struct sim_stream *stream = flight->stream;
    struct sim_port *port = stream->port;

    if (stream->is_closed || stream->is_cut)
        return;
    if (port == NULL || port->refuses) {
        stream->error = ECONNREFUSED;
        stream->has_ended = true;
        return;
    }
    stream->is_connected = true;
    stream->peer = port->service->accept(port->arg, stream);
}

static void arrive_at_server(struct flight *flight)
{
    struct sim_stream *stream = flight->stream;

    stream->flying -= flight->len;
    if (!stream->is_cut && !stream->is_hung_up && stream->peer != NULL)
        stream->port->service->data(stream->peer, flight->bytes, flight->len);
}

static void arrive_close(struct flight *flight)
{
    if (!flight->stream->is_cut)
        end_peer(flight->stream);
}

static uint32_t stream_events(const struct sim_file *file)
{
    const struct sim_stream *stream = (const struct sim_stream *)file;
    uint32_t events = 0;

    if (stream->len > 0 || stream->has_ended)
        events |= EPOLLIN;
    if (stream->has_ended ||
        (stream->is_connected && stream->flying < sim_net.window))
        events |= EPOLLOUT;
    if (stream->error != 0)
        events |= EPOLLERR | EPOLLHUP;
    return events;
}

static bool is_readable(void *arg)
{
    return (stream_events(arg) & EPOLLIN) != 0;
}

static bool is_writable(void *arg)
{
    return (stream_events(arg) & EPOLLOUT) != 0;
}

static int fail(int error)
{
    errno = error;
    return -1;
}

static ssize_t read_stream(struct sim_file *file, void *buf, size_t len)
{
    struct sim_stream *stream = stream_of(file);

    if (file->blocks && !is_readable(stream))
        (void)sim_block(is_readable, stream, INT64_MAX); /* until it is */
    if (stream->len == 0)
        return stream->has_ended ? 0 : fail(EAGAIN);
    if (len > stream->len)
        len = stream->len;
    memcpy(buf, stream->in, len);
    stream->len -= len;
    memmove(stream->in, stream->in + len, stream->len);
    return (ssize_t)len;
}

static ssize_t write_stream(struct sim_file *file, const void *buf, size_t len)
{
    struct sim_stream *stream = stream_of(file);

    if (file->blocks && !is_writable(stream))
        (void)sim_block(is_writable, stream, INT64_MAX); /* until it is */
    if (stream->has_ended)
        return fail(EPIPE);
    if (!is_writable(stream))
        return fail(EAGAIN);
    if (len > sim_net.window - stream->flying)
        len = sim_net.window - stream->flying;
    if (sim_net.in_pieces && sim_one_in(8)) /* a partial write */
        len = 1 + (size_t)sim_below(len);
    stream->flying += len;
    fly_bytes(stream, TO_SERVER, arrive_at_server, buf, len);
    return (ssize_t)len;
}

static void close_stream(struct sim_file *file)
{
    struct sim_stream *stream = stream_of(file);

    stream->is_closed = true;
    fly(stream, TO_SERVER, arrive_close, NULL, 0);
    unref(stream);
}

static const struct sim_file_type stream_type = {.events = stream_events,
                                                 .read = read_stream,
                                                 .write = write_stream,
                                                 .close = close_stream};

int socket(int domain, int type, int protocol)
{
    struct sim_stream *stream;

    if (!sim_is_inside())
        return (int)syscall(SYS_socket, domain, type, protocol);
    stream = calloc(1, sizeof(*stream));
    if (stream == NULL)
        return fail(ENOMEM);
    stream->refs = 1;
    if (sim_file_add(&stream->file, &stream_type) < 0) {
        free(stream);
        return -1;
    }
    stream->file.blocks = (type & SOCK_NONBLOCK) == 0;
    return stream->file.fd;
}

static struct sim_port *find_port(const struct sockaddr *address)
{
    char text[sizeof(ports->address)] = "";
    char host[INET_ADDRSTRLEN];
    struct sockaddr_in in;

    if (address->sa_family == AF_UNIX) {
        (void)snprintf(text, sizeof(text), "%s",
                       ((const struct sockaddr_un *)address)->sun_path);
    } else if (address->sa_family == AF_INET) {
        memcpy(&in, address, sizeof(in));
        (void)snprintf(text, sizeof(text), "%s:%d",
                       inet_ntop(AF_INET, &in.sin_addr, host, sizeof(host)),
                       ntohs(in.sin_port)); /* fits */
    }
    for (struct sim_port *port = ports; port != NULL; port = port->next)
        if (strcmp(port->address, text) == 0)
            return port;
    return NULL;
}

int connect(int fd, const struct sockaddr *address, socklen_t len)
{
    struct sim_file *file = sim_file_of(fd);
    struct sim_stream *stream = stream_of(file);

    if (file == NULL)
        return (int)syscall(SYS_connect, fd, address, len);
    if (sim_file_as(fd, &stream_type) == NULL)
        return -1;
    if (stream->is_connected)
        return fail(EISCONN);
    if (stream->refs > 1 && stream->error == 0)
        return fail(EALREADY);
    stream->port = find_port(address);
    if (stream->port != NULL) {
        stream->next = stream->port->streams;
        stream->port->streams = stream;
    }
    if (stream->port == NULL || !stream->port->swallows)
        fly(stream, TO_SERVER, arrive_connect, NULL, 0);
    if (!file->blocks)
        return fail(EINPROGRESS);
    (void)sim_block(is_writable, stream, INT64_MAX); /* until it is */
    return stream->error == 0 ? 0 : fail(stream->error);
}

/* --- other calls --------------------------------------------------------- */

ssize_t recv(int fd, void *buf, size_t len, int flags)
{
    struct sim_stream *stream = stream_of(sim_file_of(fd));

    if (stream == NULL)
        return syscall(SYS_recvfrom, fd, buf, len, flags, NULL, NULL);
    if ((flags & MSG_PEEK) == 0)
        return read(fd, buf, len);
    if (stream->len == 0)
        return stream->has_ended ? 0 : fail(EAGAIN);
    if (len > stream->len)
        len = stream->len;
    memcpy(buf, stream->in, len);
    return (ssize_t)len;
}

ssize_t __recv_chk(int fd, void *buf, size_t len, size_t size, int flags);
ssize_t __recv_chk(int fd, void *buf, size_t len, size_t size, int flags)
{
    if (len > size)
        sim_fail("recv of %zu bytes into %zu", len, size);
    return recv(fd, buf, len, flags);
}

ssize_t send(int fd, const void *buf, size_t len, int flags)
{
    if (sim_file_of(fd) == NULL)
        return syscall(SYS_sendto, fd, buf, len, flags, NULL, 0);
    return write(fd, buf, len);
}

int getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
    struct sim_stream *stream = stream_of(sim_file_of(fd));
    int error = 0;

    if (stream == NULL)
        return (int)syscall(SYS_getsockopt, fd, level, option, value, len);
    if (level == SOL_SOCKET && option == SO_ERROR) {
        error = stream->error;
        stream->error = 0;
    }
    memset(value, 0, *len);
    memcpy(value, &error, *len < sizeof(error) ? *len : sizeof(error));
    return 0;
}

int setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
    if (sim_file_of(fd) == NULL)
        return (int)syscall(SYS_setsockopt, fd, level, option, value, len);
    return 0; /* the world has no such thing as a small segment */
}

int shutdown(int fd, int how)
{
    if (sim_file_of(fd) == NULL)
        return (int)syscall(SYS_shutdown, fd, how);
    stream_of(sim_file_of(fd))->has_ended = true;
    return 0;
}

/* --- the server's side --------------------------------------------------- */

struct sim_port *sim_listen(const char *address,
                            const struct sim_service *service, void *arg)
{
    struct sim_port *port = calloc(1, sizeof(*port));

    if (port == NULL || strlen(address) >= sizeof(port->address))
        sim_fail("no place for %s", address);
    (void)snprintf(port->address, sizeof(port->address), "%s", address);
    port->service = service;
    port->arg = arg;
    port->next = ports;
    ports = port;
    return port;
}

static void arrive_at_client(struct flight *flight)
{
    struct sim_stream *stream = flight->stream;

    if (stream->is_closed || stream->is_cut)
        return;
    if (stream->len + flight->len > stream->cap) {
        stream->cap = 2 * (stream->len + flight->len);
        stream->in = realloc(stream->in, stream->cap);
        if (stream->in == NULL)
            sim_fail("no memory for %zu bytes", stream->cap);
    }
    memcpy(stream->in + stream->len, flight->bytes, flight->len);
    stream->len += flight->len;
}

static void arrive_end(struct flight *flight)
{
    flight->stream->has_ended = true;
    end_peer(flight->stream);
}

void sim_send(struct sim_stream *stream, const void *bytes, size_t len)
{
    fly_bytes(stream, TO_CLIENT, arrive_at_client, bytes, len);
}

void sim_hang_up(struct sim_stream *stream)
{
    stream->is_hung_up = true;
    fly(stream, TO_CLIENT, arrive_end, NULL, 0);
}

static void arrive_cut(void *arg)
{
    end_peer(arg);
    unref(arg);
}

void sim_cut(struct sim_port *port)
{
    for (struct sim_stream *stream = port->streams; stream != NULL;
         stream = stream->next) {
        stream->is_cut = true;
        stream->has_ended = true;
        stream->refs++;
        sim_event(sim_now(), arrive_cut, stream); /* not inside the service */
    }
}

void sim_refuse(struct sim_port *port, bool refuses)
{
    port->refuses = refuses;
}

void sim_swallow(struct sim_port *port, bool swallows)
{
    port->swallows = swallows;
}

void sim_stall(struct sim_port *port, int64_t until_ns)
{
    port->stalled_until_ns = until_ns;
}

void sim_sockets_end(void)
{
    for (struct sim_port *port = ports; port != NULL; port = port->next)
        port->stalled_until_ns = 0;
    sim_events_end(); /* what flies arrives, and is freed */
    while (ports != NULL) {
        struct sim_port *port = ports;

        ports = port->next;
        free(port);
    }
}
