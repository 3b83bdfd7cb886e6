/* SPDX-License-Identifier: MIT */

/* libmicrohttpd on the loop: its epoll descriptor is one descriptor of ours,
 * and a timer stands for what it wants to do by itself. A request waits for its
 * answer as a suspended connection, which costs no descriptor event at all. */

#include "adapters/http/server.h"

#include "adapters/http/listen.h"
#include "core/assert.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A client that moves nothing for so long is hung up on. */
enum { IDLE_S = 30, REQUEST_S = 20, HEADERS_MAX = 16 * 1024 };
enum { OPEN_BODY_MAX = 1024 }; /* of WEIR__HTTP_OPEN: a token fits */
enum { ANSWERS_MAX = 64 * 1024 * 1024 };
enum { LEAVING_MAX = 32 }; /* connections that are closed in a moment */

/* --- a request's life --------------------------------------------------- */

static struct weir__client_conn *client_of(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection,
                                   MHD_CONNECTION_INFO_SOCKET_CONTEXT)
        ->socket_context;
}

static void schedule(struct weir__http *http, double seconds)
{
    ev_timer_stop(http->loop, &http->due);
    ev_timer_set(&http->due, seconds, 0.0);
    ev_timer_start(http->loop, &http->due);
}

static void *on_target(void *arg, const char *text,
                       struct MHD_Connection *connection)
{
    struct weir__http *http = arg;
    struct weir__http_request *request = weir__mem_new(sizeof(*request));

    if (request == NULL)
        return NULL;
    request->http = http;
    request->client = client_of(connection);
    request->target_code = weir__target_parse(text, &request->target);
    request->next = http->first;
    if (http->first != NULL)
        http->first->previous = request;
    http->first = request;
    return request;
}

static void drop_answer(struct weir__http_request *request)
{
    if (request->content == NULL && request->response != NULL)
        MHD_destroy_response(request->response);
    weir__http_content_free(request->content);
    request->content = NULL;
    request->response = NULL;
}

static void end_request(struct weir__http_request *request)
{
    WEIR_ASSERT(!request->is_suspended);
    drop_answer(request);
    if (request->client != NULL)
        weir__client_waits(request->client);
    if (request->previous != NULL)
        request->previous->next = request->next;
    else
        request->http->first = request->next;
    if (request->next != NULL)
        request->next->previous = request->previous;
    weir__target_fini(&request->target);
    weir__buf_fini(&request->body);
    weir__mem_free(request);
}

static void on_completed(void *arg, struct MHD_Connection *connection,
                         void **context, enum MHD_RequestTerminationCode how)
{
    (void)arg;
    (void)connection;
    (void)how;
    if (*context != NULL)
        end_request(*context);
    *context = NULL;
}

/* libmicrohttpd does not complete a request whose query has more fields than
 * its memory holds. */
static void end_requests_of(struct weir__http *http,
                            const struct weir__client_conn *client)
{
    struct weir__http_request *next;

    for (struct weir__http_request *request = http->first; request != NULL;
         request = next) {
        next = request->next;
        if (client != NULL && request->client == client &&
            request->connection == NULL)
            end_request(request);
    }
}

static void on_connection(void *arg, struct MHD_Connection *connection,
                          void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct weir__http *http = arg;
    const union MHD_ConnectionInfo *info;

    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        end_requests_of(http, *context);
        weir__clients_leave(*context);
        *context = NULL;
        return;
    }
    info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    *context = weir__clients_enter(&http->clients, info->connect_fd);
}

void weir__request_answer(struct weir__http_request *request,
                          unsigned int status, struct MHD_Response *response)
{
    WEIR_ASSERT(!request->is_answered);
    request->is_answered = true;
    request->status = status;
    request->response = response;
    if (!request->is_suspended)
        return;
    WEIR_ASSERT(request->is_called && request->connection != NULL);
    request->is_suspended = false;
    MHD_resume_connection(request->connection);
    schedule(request->http, 0.0);
}

/* Hand the answer to MHD. Without memory for one the connection ends. */
static enum MHD_Result queue(struct weir__http_request *request)
{
    enum MHD_Result rc = MHD_NO;

    WEIR_ASSERT(request->is_answered && !request->is_suspended);
    if (weir__client_is_leaving(request->client))
        return MHD_NO;
    weir__client_reads(request->client, request->response_len,
                       request->response_len > 0 ? request->content : NULL);
    if (request->response != NULL)
        rc = MHD_queue_response(request->connection, request->status,
                                request->response);
    drop_answer(request);
    return rc;
}

/* --- which function, and whether ---------------------------------------- */

/* The longest path counts, then the method; `ret_allow` has the other one's
 * where only that is there. */
static void find_route(struct weir__http_request *request,
                       const char **ret_allow)
{
    const struct weir__http_route *route = request->http->routes;
    int best = -1;

    WEIR_ASSERT(request->route == NULL);
    for (; route->path != NULL; route++) {
        int parts = weir__target_fits(&request->target, route->path);
        bool is_post = route->method == WEIR__HTTP_POST;

        if (parts < best || parts < 0)
            continue;
        if (parts > best)
            request->route = NULL;
        best = parts;
        if (is_post == request->is_post) {
            request->route = route;
            request->route_parts = (size_t)parts;
        } else {
            *ret_allow = is_post ? "POST" : "GET, HEAD";
        }
    }
}

static void refuse_method(struct weir__http_request *request, const char *allow)
{
    struct weir__buf none = {0};
    struct MHD_Response *response = weir__response_new(NULL, &none);

    if (response != NULL && !weir__response_header(response, "Allow", allow)) {
        MHD_destroy_response(response);
        response = NULL;
    }
    weir__request_answer(request, 405, response);
}

static void refuse_caller(struct weir__http_request *request)
{
    const struct weir__caller caller = weir__request_caller(request);
    const char *why = "";
    unsigned int status = weir__door_refuses(&request->http->door, &caller,
                                             request->route->access, &why);

    if (status != 0)
        weir__http_refuse(request, status, "%s", why);
}

/* Callers without a token get little memory. */
static size_t body_max(const struct weir__http_request *request)
{
    bool is_open =
        request->route != NULL && request->route->access == WEIR__HTTP_OPEN;

    return is_open ? OPEN_BODY_MAX : WEIR__HTTP_BODY_MAX;
}

/* Whether more is to be sent than is taken. */
static bool is_too_big(const struct weir__http_request *request)
{
    const char *text = weir__http_header(request, "Content-Length");

    return text != NULL && strtoull(text, NULL, 10) > body_max(request);
}

static void refuse_body(struct weir__http_request *request)
{
    weir__http_refuse(request, 413, "a body may have %zu bytes",
                      body_max(request));
}

/* What routes answer from may be gone already. */
static void refuse_late(struct weir__http_request *request)
{
    weir__http_refuse(request, 503, "weir is stopping");
}

/* The headers are there: find out whether the request is refused. What is
 * refused is answered at its end, or the client might not read why. */
static void begin(struct weir__http_request *request, const char *method)
{
    const char *allow = NULL;
    bool is_get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;

    request->is_post = strcmp(method, "POST") == 0;
    if (request->http->is_closing) {
        refuse_late(request);
        return;
    }
    if (request->target_code != WEIR_OK) {
        weir__http_refuse(request, 400, "the address cannot be read");
        return;
    }
    if (is_get || request->is_post)
        find_route(request, &allow);
    else
        allow = "GET, HEAD, POST";
    if (request->route != NULL)
        refuse_caller(request);
    else if (allow != NULL)
        refuse_method(request, allow);
    else
        weir__http_refuse(request, 404, "there is nothing at this address");
}

static enum MHD_Result take_body(struct weir__http_request *request,
                                 const char *bytes, size_t len)
{
    if (request->is_answered)
        return MHD_YES; /* refused: read and forgotten */
    if (len > body_max(request) - request->body.len) {
        refuse_body(request);
        weir__buf_fini(&request->body);
        return MHD_YES; /* in chunks: its length was not known */
    }
    weir__buf_append(&request->body, bytes, len);
    return request->body.failed ? MHD_NO : MHD_YES;
}

/* The whole request is there, or its answer. */
static enum MHD_Result proceed(struct weir__http_request *request)
{
    if (!request->is_answered && !request->is_called) {
        request->is_called = true;
        weir__client_is_asking(request->client);
        if (request->http->is_closing)
            refuse_late(request);
        else
            request->route->fn(request, request->route->arg);
    }
    if (request->is_answered)
        return queue(request);
    request->is_suspended = true;
    MHD_suspend_connection(request->connection);
    return MHD_YES;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection,
                                  const char *url, const char *method,
                                  const char *version, const char *upload,
                                  size_t *upload_len, void **context)
{
    struct weir__http_request *request = *context;

    (void)arg;
    (void)url;
    (void)version;
    if (request == NULL || weir__client_is_leaving(client_of(connection)))
        return MHD_NO; /* out of memory, or the client has to leave */
    if (request->connection == NULL) {
        request->connection = connection;
        begin(request, method);
        if (!is_too_big(request))
            return MHD_YES;
        drop_answer(request);
        request->is_answered = false;
        refuse_body(request);
        return queue(request);
    }
    if (*upload_len > 0) {
        size_t len = *upload_len;

        *upload_len = 0;
        return take_body(request, upload, len);
    }
    return proceed(request);
}

/* --- the loop ----------------------------------------------------------- */

static void run(struct weir__http *http)
{
    MHD_UNSIGNED_LONG_LONG ms;

    ev_timer_stop(http->loop, &http->due);
    (void)MHD_run(http->daemon);
    if (ev_is_active(&http->due))
        return; /* something was answered meanwhile */
    if (MHD_get_timeout(http->daemon, &ms) == MHD_YES)
        schedule(http, (double)ms / 1000.0);
}

static void on_readable(struct ev_loop *loop, struct ev_io *watcher, int events)
{
    (void)loop;
    (void)events;
    run(watcher->data);
}

static void on_due(struct ev_loop *loop, struct ev_timer *watcher, int events)
{
    (void)loop;
    (void)events;
    run(watcher->data);
}

/* --- the server --------------------------------------------------------- */

/* Escapes are decoded part by part, where "/" is told from "%2F". */
static size_t keep_escapes(void *arg, struct MHD_Connection *connection,
                           char *text)
{
    (void)arg;
    (void)connection;
    return strlen(text);
}

static int set_door(struct weir__http *http,
                    const struct weir__http_options *options,
                    const struct weir__listen *listen, struct weir_error *err)
{
    struct weir__door *door = &http->door;
    struct weir_slice token;
    int rc;

    door->is_read_only = options->is_read_only;
    door->port = listen->port;
    if (options->token != NULL) {
        token = weir__slice_str(options->token);
        rc = weir__token_check(token, err);
        if (rc == WEIR_OK)
            memcpy(door->token, token.ptr, token.len);
        return rc;
    }
    door->checks_host = !options->allows_remote;
    if (listen->is_loopback || options->allows_remote)
        return WEIR_OK;
    return weir__error_set(
        err, WEIR_EINVAL,
        "%s: %s can be reached from elsewhere: give --token-file F, or an "
        "address of 127.0.0.1 or [::1]",
        options->what, listen->address);
}

static void count_clients(struct weir__http *http,
                          const struct weir__http_options *options)
{
    http->clients.loop = options->loop;
    http->clients.most = options->connections;
    http->clients.request_s =
        options->request_s > 0.0 ? options->request_s : REQUEST_S;
    http->clients.answers_max =
        options->answers_bytes > 0 ? options->answers_bytes : ANSWERS_MAX;
}

static int start(struct weir__http *http, int fd, uint32_t connections)
{
    const union MHD_DaemonInfo *info;

    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request,
        http, MHD_OPTION_LISTEN_SOCKET, (MHD_socket)fd,
        MHD_OPTION_URI_LOG_CALLBACK, on_target, http,
        MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, http,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned int)connections + LEAVING_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)IDLE_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADERS_MAX,
        MHD_OPTION_END);
    if (http->daemon == NULL) {
        (void)close(fd);
        return WEIR_ENOMEM;
    }
    info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    WEIR_ASSERT(info != NULL);
    ev_io_init(&http->readable, on_readable, info->epoll_fd, EV_READ);
    http->readable.data = http;
    ev_io_start(http->loop, &http->readable);
    return WEIR_OK;
}

int weir__http_open(const struct weir__http_options *options,
                    struct weir__http **ret_http, struct weir_error *err)
{
    struct weir__http *http = weir__mem_new(sizeof(*http));
    struct weir__listen listen;
    int rc;

    WEIR_ASSERT(options->loop != NULL && options->routes != NULL);
    WEIR_ASSERT(options->what != NULL && options->listen != NULL);
    WEIR_ASSERT(options->connections > 0);
    if (http == NULL)
        return weir__error_code(err, WEIR_ENOMEM);
    rc = weir__listen_open(options->listen, options->what, &listen, err);
    if (rc < 0) {
        weir__mem_free(http);
        return rc;
    }
    http->loop = options->loop;
    http->routes = options->routes;
    count_clients(http, options);
    memcpy(http->address, listen.address, sizeof(http->address));
    ev_timer_init(&http->due, on_due, 0.0, 0.0);
    http->due.data = http;
    rc = set_door(http, options, &listen, err);
    if (rc < 0) {
        (void)close(listen.fd);
    } else {
        rc = start(http, listen.fd, options->connections);
        if (rc < 0)
            (void)weir__error_code(err, rc);
    }
    if (rc < 0) {
        weir__mem_free(http);
        return rc;
    }
    *ret_http = http;
    return WEIR_OK;
}

const char *weir__http_address(const struct weir__http *http)
{
    return http->address;
}

void weir__http_close(struct weir__http *http)
{
    if (http == NULL)
        return;
    http->is_closing = true;
    for (struct weir__http_request *request = http->first; request != NULL;
         request = request->next) {
        if (request->is_suspended)
            refuse_late(request);
    }
    (void)MHD_run(http->daemon); /* what is short is sent */
    ev_io_stop(http->loop, &http->readable);
    ev_timer_stop(http->loop, &http->due);
    MHD_stop_daemon(http->daemon);
    WEIR_ASSERT(http->first == NULL);
    weir__mem_free(http);
}
