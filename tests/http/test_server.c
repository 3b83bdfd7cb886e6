/* SPDX-License-Identifier: MIT */

/* The end of a server. */

#include "adapters/http/http.h"
#include "tests/harness/test.h"

#include <ev.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct served {
    struct weir__http *http;
    int calls;
    struct weir__http_request *waiting;
    int client;
    char answers[8192];
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

    served->calls++;
    served->waiting = request;
}

static int connect_to(const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    to.sin_port = htons((uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_INT(0, connect(fd, (struct sockaddr *)&to, sizeof(to)));
    return fd;
}

static void send_text(struct served *served, const char *text)
{
    EXPECT_INT((int)strlen(text),
               (int)send(served->client, text, strlen(text), 0));
}

/* To the end, which the server makes. */
static void read_answers(struct served *served)
{
    size_t len = 0;
    ssize_t got;

    do {
        got = recv(served->client, served->answers + len,
                   sizeof(served->answers) - 1 - len, 0);
        if (got > 0)
            len += (size_t)got;
    } while (got > 0);
    served->answers[len] = '\0';
}

static void open_server(struct served *served)
{
    static struct weir__http_route routes[4];
    const struct weir__http_options options = {
        .loop = EV_DEFAULT,
        .listen = "127.0.0.1:0",
        .allows_remote = true,
        .what = "--listen",
        .connections = 8,
        .routes = routes,
    };

    routes[0] = (struct weir__http_route){WEIR__HTTP_GET, WEIR__HTTP_OPEN,
                                          "/call", on_call, served};
    routes[1] = (struct weir__http_route){WEIR__HTTP_POST, WEIR__HTTP_OPEN,
                                          "/call", on_call, served};
    routes[2] = (struct weir__http_route){WEIR__HTTP_GET, WEIR__HTTP_OPEN,
                                          "/wait", on_wait, served};
    EXPECT_INT(WEIR_OK, weir__http_open(&options, &served->http, NULL));
    served->client = connect_to(weir__http_address(served->http));
}

static void turn_until_called(struct served *served, int calls)
{
    while (served->calls < calls)
        ev_run(EV_DEFAULT, EVRUN_ONCE);
}

TEST(what_comes_before_it_ends_is_answered)
{
    struct served served = {0};

    open_server(&served);
    send_text(&served, "GET /call HTTP/1.1\r\nHost: a\r\n\r\n");
    turn_until_called(&served, 1);
    weir__http_close(served.http);
    read_answers(&served);
    EXPECT_CONTAINS("HTTP/1.1 418 ", served.answers);
    (void)close(served.client);
}

TEST(no_route_is_called_while_it_ends)
{
    static const char *const late[] = {
        "GET /call HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /call HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab",
    };

    for (size_t i = 0; i < sizeof(late) / sizeof(late[0]); i++) {
        struct served served = {0};

        open_server(&served);
        send_text(&served, "GET /call HTTP/1.1\r\nHost: a\r\n\r\n");
        turn_until_called(&served, 1);
        send_text(&served, late[i]);
        weir__http_close(served.http);
        EXPECT_INT(1, served.calls);
        read_answers(&served);
        EXPECT_CONTAINS("HTTP/1.1 418 ", served.answers);
        EXPECT_CONTAINS("HTTP/1.1 503 ", served.answers);
        EXPECT_CONTAINS("weir is stopping", served.answers);
        (void)close(served.client);
    }
}

TEST(a_body_that_ends_while_it_ends_calls_no_route)
{
    struct served served = {0};
    int client;

    open_server(&served);
    send_text(&served, "POST /call HTTP/1.1\r\nHost: a\r\n"
                       "Content-Length: 2\r\n\r\na");
    client = served.client;
    served.client = connect_to(weir__http_address(served.http));
    send_text(&served, "GET /call HTTP/1.1\r\nHost: a\r\n\r\n");
    turn_until_called(&served, 1);
    (void)close(served.client);
    served.client = client;
    send_text(&served, "b");
    weir__http_close(served.http);
    EXPECT_INT(1, served.calls);
    read_answers(&served);
    EXPECT_CONTAINS("HTTP/1.1 503 ", served.answers);
    (void)close(served.client);
}

TEST(what_waits_is_refused)
{
    struct served served = {0};

    open_server(&served);
    send_text(&served, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    turn_until_called(&served, 1);
    EXPECT_TRUE(served.waiting != NULL);
    weir__http_close(served.http);
    read_answers(&served);
    EXPECT_CONTAINS("HTTP/1.1 503 ", served.answers);
    (void)close(served.client);
}
