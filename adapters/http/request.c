/* SPDX-License-Identifier: MIT */

/* What a route's function asks of a request, and how it answers. */

#include "adapters/http/server.h"

#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"
#include "core/visible.h"

#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

const char *weir__http_part(const struct weir__http_request *request, size_t i)
{
    WEIR_ASSERT(request->route != NULL);
    i += request->route_parts;
    return i < request->target.part_count ? request->target.part[i] : NULL;
}

const char *weir__http_query(const struct weir__http_request *request,
                             const char *name)
{
    return weir__target_field(&request->target, name);
}

struct weir_slice weir__http_body(const struct weir__http_request *request)
{
    return weir__buf_slice(&request->body);
}

const char *weir__http_header(const struct weir__http_request *request,
                              const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND,
                                       name);
}

/* A proxy writes the scheme that the browser used. Without a proxy only the
 * caller can write it, and gets a stricter cookie. */
static bool is_tls(const struct weir__http_request *request)
{
    const char *scheme = weir__http_header(request, "X-Forwarded-Proto");

    return scheme != NULL && strncasecmp(scheme, "https", 5) == 0 &&
           strchr(", ", scheme[5]) != NULL;
}

/* Time in which the host sleeps counts. */
static double clock_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now); /* this clock is there */
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct weir__caller
weir__request_caller(const struct weir__http_request *request)
{
    return (struct weir__caller){
        .host = weir__http_header(request, "Host"),
        .origin = weir__http_header(request, "Origin"),
        .fetch_site = weir__http_header(request, "Sec-Fetch-Site"),
        .authorization = weir__http_header(request, "Authorization"),
        .cookie = weir__http_header(request, "Cookie"),
        .key = weir__http_header(request, "Weir-Key"),
        .is_tls = is_tls(request),
        .now_s = clock_s(),
    };
}

static bool may(const struct weir__http_request *request,
                enum weir__http_access access)
{
    struct weir__caller caller = weir__request_caller(request);
    const char *why;

    /* a GET of the page says nothing of its origin */
    caller.origin = NULL;
    caller.fetch_site = "same-origin";
    return weir__door_refuses(&request->http->door, &caller, access, &why) == 0;
}

bool weir__http_may_act(const struct weir__http_request *request)
{
    return may(request, WEIR__HTTP_ACT);
}

bool weir__http_may_read(const struct weir__http_request *request)
{
    return may(request, WEIR__HTTP_READ);
}

/* --- answers ------------------------------------------------------------ */

void weir__http_answer(struct weir__http_request *request, unsigned int status,
                       const char *type, struct weir__buf *buf)
{
    const size_t len = buf->len;
    struct MHD_Response *response = weir__response_new(type, buf);

    WEIR_ASSERT(status >= 200 && status < 600);
    request->response_len = len;
    if (response != NULL &&
        !weir__response_header(response, "Cache-Control", "no-store")) {
        MHD_destroy_response(response);
        response = NULL;
    }
    weir__request_answer(request, status, response);
}

/* The inside of a JSON string. */
static void append_escaped(struct weir__buf *buf, struct weir_slice text)
{
    char part[64];

    while (text.len > 0) {
        size_t len = weir__visible_take(&text, part, sizeof(part));

        for (size_t i = 0; i < len; i++) {
            if (part[i] == '"' || part[i] == '\\')
                weir__buf_append(buf, "\\", 1);
            weir__buf_append(buf, part + i, 1);
        }
    }
}

void weir__http_refuse(struct weir__http_request *request, unsigned int status,
                       const char *format, ...)
{
    struct weir__buf buf = {0};
    char text[512];
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    weir__buf_append(&buf, "{\"error\": \"", 11);
    append_escaped(&buf, weir__visible_formatted(text, sizeof(text), len));
    weir__buf_append(&buf, "\"}\n", 3);
    weir__http_answer(request, status, "application/json", &buf);
}

/* If-None-Match with this ETag, alone or in a list. */
static bool has_it(const struct weir__http_request *request, const char *etag)
{
    const char *known = weir__http_header(request, "If-None-Match");

    return known != NULL && strstr(known, etag) != NULL;
}

void weir__http_answer_shared(struct weir__http_request *request,
                              struct weir__http_content *content)
{
    bool is_known = has_it(request, content->etag);

    WEIR_ASSERT(!request->is_answered);
    content->refs++;
    request->content = content;
    request->response_len = is_known ? 0 : content->len;
    weir__request_answer(request, is_known ? 304 : 200,
                         is_known ? content->unchanged : content->whole);
}

/* --- the session of a browser ------------------------------------------- */

/* The cookie of `session`, and its key in the body; NULL: 204, and the browser
 * drops the cookie. */
static void answer_session(struct weir__http_request *request, bool is_over_tls,
                           const struct weir__session *session)
{
    bool is_gone = session == NULL;
    char name[WEIR__COOKIE_CAP], cookie[200], key[100];
    struct weir__buf body = {0};
    struct MHD_Response *response;

    weir__door_cookie_name(&request->http->door, is_over_tls, name);
    (void)snprintf(cookie, sizeof(cookie),
                   "%s=%s; Path=/; HttpOnly; SameSite=Strict%s%s", name,
                   is_gone ? "" : session->cookie, is_gone ? "; Max-Age=0" : "",
                   is_over_tls ? "; Secure" : ""); /* fits */
    if (!is_gone) {
        (void)snprintf(key, sizeof(key), "{\"key\": \"%s\"}\n",
                       session->key); /* fits */
        weir__buf_append(&body, key, strlen(key));
    }
    request->response_len = body.len;
    response = weir__response_new(is_gone ? NULL : "application/json", &body);
    if (response != NULL &&
        (!weir__response_header(response, "Cache-Control", "no-store") ||
         !weir__response_header(response, "Set-Cookie", cookie))) {
        MHD_destroy_response(response);
        response = NULL;
    }
    weir__request_answer(request, is_gone ? 204 : 200, response);
}

/* Another site may log its visitors neither in nor out; a program that shows
 * the token needs no more than that. */
static void refuse_foreign(struct weir__http_request *request)
{
    weir__http_refuse(request, 403, "the request comes from another site");
}

void weir__http_login(struct weir__http_request *request, void *arg)
{
    struct weir__door *door = &request->http->door;
    const struct weir__caller caller = weir__request_caller(request);
    const struct weir__session *session;
    struct weir_slice body = weir__http_body(request);

    (void)arg;
    while (body.len > 0 &&
           (body.ptr[body.len - 1] == '\n' || body.ptr[body.len - 1] == '\r'))
        body.len--;
    if (weir__caller_is_foreign(&caller)) {
        refuse_foreign(request);
        return;
    }
    if (!weir__secret_equal(body, door->token)) {
        weir__http_refuse(request, 401, "the token is wrong");
        return;
    }
    weir__session_end(weir__door_session(door, &caller));
    session = weir__session_begin(door->sessions, caller.now_s);
    if (session != NULL)
        answer_session(request, caller.is_tls, session);
    else
        weir__http_refuse(request, 500, "the system has no random numbers");
}

void weir__http_logout(struct weir__http_request *request, void *arg)
{
    const struct weir__caller caller = weir__request_caller(request);

    (void)arg;
    if (weir__caller_is_foreign(&caller)) {
        refuse_foreign(request);
        return;
    }
    weir__session_end(weir__door_session(&request->http->door, &caller));
    answer_session(request, caller.is_tls, NULL);
}
