/* SPDX-License-Identifier: MIT */
#ifndef WEIR_PLUGINS_NOTIFY_H
#define WEIR_PLUGINS_NOTIFY_H

/* The two halves of notify: notify.c makes a request of a job and a verdict of
 * its end, notify_http.c carries requests out with libcurl on the instance's
 * share of the loop. */

#include <curl/curl.h>
#include <weir/plugin.h>

enum { ANSWER_CAP = 81 };

struct http;

struct http_settings {
    struct weir_loop *loop; /* kept */
    int64_t timeout_ms;
    int64_t per_host;
    int64_t total;
    bool follows;
    bool verifies;
    const char *ca_file; /* kept; "": the system's */
};

/* One POST under way; belongs to whoever started it. */
struct http_post {
    /* Filled by the caller; kept until the end. */
    const char *url;
    const char *body;
    size_t body_len;
    struct curl_slist *headers;

    /* Of the transfer. */
    CURL *easy;
    char said[CURL_ERROR_SIZE];
    size_t answered; /* bytes */

    /* How it ended. */
    CURLcode code;           /* CURLE_OK: there is a status */
    long status;             /* 0: none came */
    int64_t retry_after_ms;  /* 0: not asked for */
    char answer[ANSWER_CAP]; /* how the answer begins; printable */
};

/* The post ended, its fields say how; it is the caller's again. */
typedef void (*http_done_fn)(struct http_post *post);

/* NULL when libcurl has no memory or cannot start. */
struct http *http_open(const struct http_settings *settings, http_done_fn done);

/* Nothing is under way any more. */
void http_close(struct http *http);

/* CURLE_OK: `done` will be called, later; else it will not. */
CURLcode http_start(struct http *http, struct http_post *post);

/* Break it off: `done` will not be called. */
void http_cancel(struct http *http, struct http_post *post);

#endif
