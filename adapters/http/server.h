/* SPDX-License-Identifier: MIT */
#ifndef WEIR_HTTP_SERVER_H
#define WEIR_HTTP_SERVER_H

/* What the sources of this folder know of a server and a request. */

#include "adapters/http/clients.h"
#include "adapters/http/content.h"
#include "adapters/http/door.h"
#include "adapters/http/target.h"

#include <ev.h>

struct MHD_Connection;
struct MHD_Daemon;

struct weir__http {
    struct MHD_Daemon *daemon;
    struct ev_loop *loop;
    struct ev_io readable; /* the epoll descriptor of the daemon */
    struct ev_timer due;   /* what the daemon wants to do next, by time */
    struct weir__clients clients;
    struct weir__door door;
    const struct weir__http_route *routes;
    struct weir__http_request *first; /* every open request */
    bool is_closing;                  /* no route is called any more */
    char address[64];
};

/* MHD calls on_request several times for one request: for its headers, for
 * pieces of its body, at its end, and once more when it is resumed. */
struct weir__http_request {
    struct weir__http *http;
    struct MHD_Connection *connection; /* NULL until the headers are there */
    struct weir__client_conn *client;
    struct weir__http_request *previous, *next;
    struct weir__target target;
    int target_code; /* of parsing it */
    bool is_post, is_called, is_suspended, is_answered;
    const struct weir__http_route *route;
    size_t route_parts;
    struct weir__buf body;
    /* The answer until MHD has it: one of the two. */
    unsigned int status;
    struct MHD_Response *response;      /* owned */
    size_t response_len;                /* bytes of its body */
    struct weir__http_content *content; /* a share */
};

/* Keep the answer, and wake the connection where it waits. Takes `response`;
 * NULL: out of memory. */
void weir__request_answer(struct weir__http_request *request,
                          unsigned int status, struct MHD_Response *response);

/* What the headers say of the caller; borrowed from the request. */
struct weir__caller
weir__request_caller(const struct weir__http_request *request);

#endif
