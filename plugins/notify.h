/* SPDX-License-Identifier: MIT */
#ifndef WEIR_PLUGINS_NOTIFY_H
#define WEIR_PLUGINS_NOTIFY_H

/* The parts of notify: notify.c makes a request of a job and a verdict of its
 * end, notify_http.c carries requests out with libcurl on the instance's share
 * of the loop, notify_allow.c says whom it may connect to. */

#include <curl/curl.h>
#include <sys/socket.h>
#include <weir/plugin.h>

enum { ANSWER_CAP = 81 };

/* --- notify_allow.c ------------------------------------------------------- */

/* The option `allow`: hosts, networks and the word "public", separated by
 * blanks. */
struct allow;

/* NULL: what is wrong is in `fault`. Nothing but blanks allows whatever is not
 * link-local. */
struct allow *allow_new(const char *text, char *fault, size_t fault_cap);

/* NULL is fine. */
void allow_free(struct allow *allow);

/* Does it name anything? */
bool allow_is_given(const struct allow *allow);

/* May `to` be connected to, as an address of `host`? */
bool allow_has(const struct allow *allow, const char *host,
               const struct sockaddr *to);

/* --- notify_http.c -------------------------------------------------------- */

struct http;

struct http_settings {
    struct weir_loop *loop; /* kept */
    int64_t timeout_ms;
    int64_t per_host;
    int64_t total;
    bool follows;
    bool verifies;
    const char *ca_file;       /* kept; "": the system's */
    const struct allow *allow; /* kept */
};

/* One POST under way; belongs to whoever started it. */
struct http_post {
    /* Filled by the caller; kept until the end. */
    const char *url;
    const char *body;
    size_t body_len;
    struct curl_slist *headers;

    /* Of the transfer. */
    struct http *http;
    CURL *easy;
    CURLU *at;      /* what `url` says, or a redirect */
    char *host;     /* of both */
    int64_t end_ms; /* by the loop's clock */
    unsigned redirects;
    size_t head_len, answered; /* bytes that came */
    char refused[64];          /* an address that is not allowed; or "" */
    bool was_allowed;          /* another one */

    /* How it ended. */
    CURLcode code;              /* CURLE_OK: there is a status */
    char said[CURL_ERROR_SIZE]; /* else, or "": what happened; printable */
    bool is_hopeless;           /* else: it would happen again */
    bool is_short;              /* else: this worker lacks something */
    long status;                /* 0: none came */
    int64_t retry_after_ms;     /* 0: not asked for */
    char answer[ANSWER_CAP];    /* how the answer begins; printable */
};

/* The post ended, its fields say how; it is the caller's again. */
typedef void (*http_done_fn)(struct http_post *post);

/* NULL when libcurl has no memory or cannot start. */
struct http *http_open(const struct http_settings *settings, http_done_fn done);

/* Nothing is under way any more. */
void http_close(struct http *http);

/* True: `done` will be called, later. Else it will not; how it ended is in the
 * post. */
bool http_start(struct http *http, struct http_post *post);

/* Break it off: `done` will not be called. */
void http_cancel(struct http *http, struct http_post *post);

#endif
