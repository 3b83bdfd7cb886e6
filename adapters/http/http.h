/* SPDX-License-Identifier: MIT */
#ifndef WEIR_HTTP_H
#define WEIR_HTTP_H

/* A small HTTP server on a loop of libev's: routes, who may use them, answers
 * now or later. libmicrohttpd reads and writes; nothing outside this folder
 * knows it. Knows nothing of jobs.
 *
 * Everything runs on the thread of the loop. A route's function is called once
 * the whole request has come, and answers exactly once, from inside or later;
 * until then the request is valid, also when its client has gone. */

#include "core/buf.h"

#include <weir/base.h>

struct ev_loop;

struct weir__http;         /* a server */
struct weir__http_request; /* one request, until it is answered */
struct weir__http_content; /* bytes of an answer, shared by many */

enum weir__http_method {
    WEIR__HTTP_GET, /* HEAD as well: the body is left out */
    WEIR__HTTP_POST
};

/* Who may use a route. */
enum weir__http_access {
    WEIR__HTTP_OPEN, /* anybody: health, files of the page */
    WEIR__HTTP_READ, /* with the token, where there is one */
    WEIR__HTTP_ACT   /* with the token, from the same origin; refused where
                        there is no token or the server is read-only */
};

typedef void (*weir__http_fn)(struct weir__http_request *request, void *arg);

struct weir__http_route {
    enum weir__http_method method;
    enum weir__http_access access;
    /* "/metrics", or with "/" at its end also all that is below; the longest
     * that fits counts. */
    const char *path;
    weir__http_fn fn;
    void *arg;
};

struct weir__http_options {
    struct ev_loop *loop;
    const char *listen; /* "127.0.0.1:8080", "[::1]:8080", ":8080": anywhere;
                           port 0: any free one */
    const char *token;  /* 16 to 256 of 0x21 to 0x7E; NULL: everybody may read
                           and nobody act; copied */
    bool is_read_only;
    bool allows_remote; /* also without a token */
    const char *what;   /* for sentences: "--listen" */
    /* At most. For one more the oldest leaves of those from which no whole
     * request has come, else the one that reads its answer for the longest
     * time. If all others are to be answered, the new one gets 503. */
    uint32_t connections;
    double request_s;     /* for a whole head and body; 0: 20 s */
    size_t answers_bytes; /* of answers that are being read, 0: 64 MiB; beyond
                             it those end that are read for the longest time */
    const struct weir__http_route *routes; /* borrowed; {.path = NULL} ends */
};

/* A body has at most so many bytes; on routes of WEIR__HTTP_OPEN 1 KiB. */
enum { WEIR__HTTP_BODY_MAX = 1024 * 1024, WEIR__HTTP_TOKEN_MIN = 16 };

/* Listens when it returns. WEIR_EINVAL (address, token; no loopback address
 * without a token), WEIR_ENOMEM, WEIR_ESYSTEM (the address is taken or not of
 * this host), each with a sentence. */
int weir__http_open(const struct weir__http_options *options,
                    struct weir__http **ret_http, struct weir_error *err);

/* Where it listens, "127.0.0.1:8080": borrowed. */
const char *weir__http_address(const struct weir__http *http);

/* Requests that were not answered get 503 and are gone: whoever would answer
 * later is stopped before, and no route is called any more, so that what routes
 * use may be gone already. NULL is fine. */
void weir__http_close(struct weir__http *http);

/* --- the request; strings are borrowed until the answer ----------------- */

/* The decoded part of the path number `i` behind the route's own: of
 * "/api/topics/a%2Fb/jobs" under the route "/api/topics/" 0 is "a/b", 1 is
 * "jobs". NULL: there are less. Never with a NUL inside. */
const char *weir__http_part(const struct weir__http_request *request, size_t i);

/* The decoded value of ?name=value, the first of several; "" for a name
 * without a value; NULL: not given. */
const char *weir__http_query(const struct weir__http_request *request,
                             const char *name);

struct weir_slice weir__http_body(const struct weir__http_request *request);

/* The value of a header, as sent; NULL: there is none. */
const char *weir__http_header(const struct weir__http_request *request,
                              const char *name);

/* Whether routes of WEIR__HTTP_ACT, or of WEIR__HTTP_READ, are open to this
 * caller: for a page that shows what can be done. */
bool weir__http_may_act(const struct weir__http_request *request);
bool weir__http_may_read(const struct weir__http_request *request);

/* --- the answer --------------------------------------------------------- */

/* Take the bytes of `buf`, which is empty afterwards. A buffer that `failed`
 * is answered with 500. `type` is a literal: "application/json". */
void weir__http_answer(struct weir__http_request *request, unsigned int status,
                       const char *type, struct weir__buf *buf);

/* {"error": "sentence"} with this status; the sentence ends up escaped. */
WEIR_PRINTF(3, 4)
void weir__http_refuse(struct weir__http_request *request, unsigned int status,
                       const char *format, ...);

/* 200 with content that others get as well, or 304 where the client has it. */
void weir__http_answer_shared(struct weir__http_request *request,
                              struct weir__http_content *content);

/* Take the bytes of `buf` as content with an ETag of its bytes, owned by the
 * caller, who may free it at any time. NULL: out of memory; `buf` is empty all
 * the same. */
struct weir__http_content *weir__http_content_new(const char *type,
                                                  struct weir__buf *buf);

/* Of bytes that live as long as the program. NULL: out of memory. */
struct weir__http_content *weir__http_content_static(const char *type,
                                                     struct weir_slice bytes);

/* Slow readers keep the bytes. NULL is fine. */
void weir__http_content_free(struct weir__http_content *content);

/* Functions of routes, of WEIR__HTTP_OPEN; 403 from another site. POST with the
 * token as the body: 200 with the cookie and, as {"key"}, the key of a new
 * session, which replaces the caller's; or 401. POST: 204 ends the session of
 * the cookie, and the browser drops the cookie. */
void weir__http_login(struct weir__http_request *request, void *arg);
void weir__http_logout(struct weir__http_request *request, void *arg);

#endif
