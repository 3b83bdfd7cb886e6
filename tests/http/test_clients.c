/* SPDX-License-Identifier: MIT */

/* Connections that bring no whole request, or read no answer. */

#include "adapters/http/http.h"
#include "tests/harness/test.h"

#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 4, LARGE = 4 * 1024 * 1024 };

struct served {
    struct weir__http *http;
    int calls;
    struct weir__http_request *waiting[MOST];
};

static void on_call(struct weir__http_request *request, void *arg)
{
    struct served *served = arg;

    served->calls++;
    weir__http_refuse(request, 418, "called");
}

static void on_wait(struct weir__http_request *request, void *arg)
{
    struct served *served = arg;

    served->waiting[served->calls++] = request;
}

static void on_large(struct weir__http_request *request, void *arg)
{
    struct served *served = arg;
    struct weir__buf buf = {0};

    served->calls++;
    for (size_t i = 0; i < LARGE / 64; i++)
        weir__buf_append(&buf,
                         "0123456789abcdef0123456789abcdef"
                         "0123456789abcdef0123456789abcde\n",
                         64);
    weir__http_answer(request, 200, "text/plain", &buf);
}

static void open_server(struct served *served, double request_s)
{
    static struct weir__http_route routes[5];
    const struct weir__http_options options = {
        .loop = EV_DEFAULT,
        .listen = "127.0.0.1:0",
        .allows_remote = true,
        .what = "--listen",
        .connections = MOST,
        .request_s = request_s,
        .answers_bytes = (size_t)2 * LARGE,
        .routes = routes,
    };

    routes[0] = (struct weir__http_route){WEIR__HTTP_GET, WEIR__HTTP_OPEN,
                                          "/call", on_call, served};
    routes[1] = (struct weir__http_route){WEIR__HTTP_POST, WEIR__HTTP_OPEN,
                                          "/call", on_call, served};
    routes[2] = (struct weir__http_route){WEIR__HTTP_GET, WEIR__HTTP_OPEN,
                                          "/wait", on_wait, served};
    routes[3] = (struct weir__http_route){WEIR__HTTP_GET, WEIR__HTTP_OPEN,
                                          "/large", on_large, served};
    EXPECT_INT(WEIR_OK, weir__http_open(&options, &served->http, NULL));
}

/* Sends without waiting; reads come back at once. */
static int client_with(const struct served *served, const char *text)
{
    const char *address = weir__http_address(served->http);
    struct sockaddr_in to = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0), small = 4096;

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    to.sin_port = htons((uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_INT(0, connect(fd, (struct sockaddr *)&to, sizeof(to)));
    EXPECT_INT((int)strlen(text), (int)send(fd, text, strlen(text), 0));
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

/* All that comes until the server hangs up: its size, and its first bytes. */
static size_t read_all(int fd, char begin[static 16])
{
    static char bytes[65536];
    size_t len = 0;

    memset(begin, 0, 16);
    for (;;) {
        ssize_t got = recv(fd, bytes, sizeof(bytes), 0);

        if (got > 0 && len == 0)
            memcpy(begin, bytes, got < 15 ? (size_t)got : 15);
        if (got > 0)
            len += (size_t)got;
        else if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
            break;
        ev_run(EV_DEFAULT, EVRUN_NOWAIT);
    }
    (void)close(fd);
    return len;
}

static const char call[] =
    "GET /call HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

TEST(half_sent_requests_keep_nobody_out)
{
    static const char *const halves[] = {
        "", "GET /ca", "GET /call HTTP/1.1\r\n",
        "POST /call HTTP/1.1\r\nContent-Length: 9\r\n\r\nab"};
    struct served served = {0};
    int halfway[4 * MOST];
    char begin[16];

    open_server(&served, 0.0);
    for (size_t i = 0; i < sizeof(halfway) / sizeof(halfway[0]); i++) {
        halfway[i] = client_with(&served, halves[i % 4]);
        ev_run(EV_DEFAULT, EVRUN_NOWAIT);
    }
    (void)read_all(client_with(&served, call), begin);
    EXPECT_CONTAINS("HTTP/1.1 418", begin);
    EXPECT_INT(1, served.calls);
    EXPECT_INT(0, (int)read_all(halfway[0], begin)); /* the oldest had to go */
    for (size_t i = 1; i < sizeof(halfway) / sizeof(halfway[0]); i++)
        (void)close(halfway[i]);
    weir__http_close(served.http);
}

TEST(one_more_is_refused_while_all_others_are_answered)
{
    struct served served = {0};
    int clients[MOST];
    char begin[16];

    open_server(&served, 0.0);
    for (int i = 0; i < MOST; i++) {
        clients[i] =
            client_with(&served, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
        while (served.calls <= i)
            ev_run(EV_DEFAULT, EVRUN_ONCE);
    }
    (void)read_all(client_with(&served, call), begin);
    EXPECT_CONTAINS("HTTP/1.1 503", begin);
    EXPECT_INT(MOST, served.calls);
    weir__http_refuse(served.waiting[0], 418, "later");
    for (int turns = 0; turns < 100; turns++) /* it is sent, and noticed */
        ev_run(EV_DEFAULT, EVRUN_NOWAIT);
    (void)read_all(client_with(&served, call), begin);
    EXPECT_CONTAINS("HTTP/1.1 418", begin); /* there is a place again */
    weir__http_close(served.http);
    for (int i = 0; i < MOST; i++)
        (void)close(clients[i]);
}

TEST(readers_that_read_nothing_keep_nobody_out)
{
    struct served served = {0};
    int clients[MOST];
    char begin[16];

    open_server(&served, 0.0);
    for (int i = 0; i < MOST; i++) {
        clients[i] = client_with(
            &served, i < 2 ? "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"
                           : "GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
        while (served.calls <= i)
            ev_run(EV_DEFAULT, EVRUN_ONCE);
    }
    (void)read_all(client_with(&served, call), begin);
    EXPECT_CONTAINS("HTTP/1.1 418", begin);
    EXPECT_TRUE(read_all(clients[2], begin) < LARGE); /* the first reader */
    weir__http_close(served.http);
    (void)close(clients[0]);
    (void)close(clients[1]);
    (void)close(clients[3]);
}

TEST(a_request_that_comes_in_drops_ends)
{
    static const char *const begins[] = {"GET /", "POST /call HTTP/1.1\r\n"
                                                  "Content-Length: 999999\r\n"
                                                  "Host: a\r\n\r\n"};

    for (size_t i = 0; i < 2; i++) {
        struct served served = {0};
        char begin[16];
        int fd;

        open_server(&served, 0.02);
        fd = client_with(&served, begins[i]);
        while (recv(fd, begin, sizeof(begin), 0) < 0 &&
               (errno == EAGAIN || errno == EWOULDBLOCK)) {
            (void)send(fd, "a", 1, MSG_NOSIGNAL);
            ev_run(EV_DEFAULT, EVRUN_NOWAIT);
        }
        EXPECT_INT(0, served.calls);
        (void)close(fd);
        weir__http_close(served.http);
    }
}

TEST(a_connection_is_used_again)
{
    struct served served = {0};
    char begin[16];
    int fd;

    open_server(&served, 0.0);
    fd = client_with(&served, "GET /call HTTP/1.1\r\nHost: a\r\n\r\n");
    while (served.calls == 0)
        ev_run(EV_DEFAULT, EVRUN_ONCE);
    EXPECT_INT((int)strlen(call), (int)send(fd, call, strlen(call), 0));
    (void)read_all(fd, begin);
    EXPECT_INT(2, served.calls);
    weir__http_close(served.http);
}

TEST(a_query_with_too_many_fields_is_forgotten_with_its_connection)
{
    struct served served = {0};
    char text[9000] = "GET /call?", begin[16];
    size_t len = strlen(text);
    int fd;

    for (; len < sizeof(text) - 64; len += 2)
        memcpy(text + len, "a&", 2);
    (void)snprintf(text + len, sizeof(text) - len,
                   " HTTP/1.1\r\nHost: a\r\n\r\n");
    open_server(&served, 0.0);
    fd = client_with(&served, text);
    for (int turns = 0; turns < 100; turns++)
        ev_run(EV_DEFAULT, EVRUN_NOWAIT);
    (void)close(fd);
    (void)read_all(client_with(&served, call), begin);
    EXPECT_CONTAINS("HTTP/1.1 418", begin);
    EXPECT_INT(1, served.calls);
    weir__http_close(served.http);
}

TEST(a_body_to_an_open_route_is_small)
{
    static const char *const large[] = {
        "POST /call HTTP/1.1\r\nHost: a\r\nContent-Length: 1025\r\n"
        "Connection: close\r\n\r\n",
        "POST /call HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
        "Connection: close\r\n\r\n401\r\n"};
    struct served served = {0};
    char begin[16], body[1025 + 8];

    open_server(&served, 0.0);
    for (size_t i = 0; i < 2; i++) {
        int fd = client_with(&served, large[i]);

        memset(body, 'x', 1025);
        memcpy(body + 1025, "\r\n0\r\n\r\n", 8);
        (void)send(fd, body, sizeof(body) - 1, MSG_NOSIGNAL);
        (void)read_all(fd, begin);
        EXPECT_CONTAINS("HTTP/1.1 413", begin);
    }
    EXPECT_INT(0, served.calls);
    weir__http_close(served.http);
}

TEST(answers_that_are_read_slowly_make_room_for_others)
{
    struct served served = {0};
    int slow[MOST - 1];
    char begin[16];

    open_server(&served, 0.0);
    for (int i = 0; i < MOST - 1; i++) {
        slow[i] = client_with(&served, "GET /large HTTP/1.1\r\nHost: a\r\n"
                                       "Connection: close\r\n\r\n");
        while (served.calls <= i)
            ev_run(EV_DEFAULT, EVRUN_ONCE);
    }
    EXPECT_TRUE(
        read_all(client_with(&served, "GET /large HTTP/1.1\r\nHost: a\r\n"
                                      "Connection: close\r\n\r\n"),
                 begin) > LARGE);
    /* two are in the budget; the kernel holds little of what was sent */
    EXPECT_TRUE(read_all(slow[0], begin) < LARGE / 4);
    EXPECT_TRUE(read_all(slow[1], begin) < LARGE / 4);
    EXPECT_TRUE(read_all(slow[2], begin) > LARGE);
    weir__http_close(served.http);
}
