/* SPDX-License-Identifier: MIT */
#ifndef WEIR_PLUGINS_NOTIFY_H
#define WEIR_PLUGINS_NOTIFY_H

/* The parts of notify: notify.c makes a request of a job and a verdict of its
 * end, notify_http.c carries requests out with libcurl on the instance's share
 * of the loop, notify_allow.c says whom it may connect to, notify_room.c how
 * many requests the free descriptors allow, notify_sigpipe.c keeps signals of
 * broken connections away. */

#include <curl/curl.h>
#include <signal.h>
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

/* --- notify_room.c -------------------------------------------------------- */

/* How many requests run at once while the process lacks descriptors or memory:
 * half as many after a lack, one more after each answer. Zeroed at first, but
 * for `total` and `most`. */
struct room {
    long total; /* with nothing lacking: no bound below it */
    long most;  /* now; at least 1 */
    long running;
    long holding; /* those that have new descriptors */
    long resolving;
    int64_t halve_ms; /* not before */
};

/* What one request has of it; zeroed at first. */
struct room_share {
    bool holds, resolves;
    bool was_tight; /* few descriptors were free when it took some */
};

/* False: as many as there may be now run already. Else room_leave follows. */
bool room_enter(struct room *room);
void room_leave(struct room *room, struct room_share *share);

/* Before a name is resolved, or a socket opened. False: the free descriptors
 * are needed by others, or are the last 8, which are left to the worker. */
bool room_for_lookup(struct room *room, struct room_share *share);
bool room_for_socket(struct room *room, struct room_share *share);

/* May a lack be the reason of a failure that has an unknown one? */
bool room_was_tight(const struct room_share *share);

/* Allow half of the requests that run, at most once a second. True: it is
 * another bound now. */
bool room_halve(struct room *room, int64_t now_ms);
bool room_grow(struct room *room);

/* --- notify_sigpipe.c ----------------------------------------------------- */

/* TLS libraries write with write(2), which raises SIGPIPE if the peer has
 * closed. Block the signal from hush() until unhush(), which takes back one
 * that was raised meanwhile. */
struct quiet {
    sigset_t before;
    bool was_pending;
};

void hush(struct quiet *quiet);
void unhush(const struct quiet *quiet);

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
    struct room_share share;
    bool got_no_socket; /* for lack of descriptors or memory */

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
