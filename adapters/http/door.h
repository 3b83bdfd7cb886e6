/* SPDX-License-Identifier: MIT */
#ifndef WEIR_HTTP_DOOR_H
#define WEIR_HTTP_DOOR_H

/* The door lets callers in or refuses them. A program shows the token. A
 * browser shows it once and then has a session. Without a token everybody on
 * this machine may read, and the name in the Host header must be this
 * machine's, so that a foreign site whose name leads here reads nothing. */

#include "adapters/http/http.h"
#include "adapters/http/session.h"

enum { WEIR__TOKEN_MAX = 256, WEIR__COOKIE_CAP = 32 };

struct weir__door {
    char token[WEIR__TOKEN_MAX + 1]; /* "": there is none */
    unsigned int port;               /* part of the cookie's name */
    bool is_read_only;
    bool checks_host; /* loopback without a token */
    struct weir__session sessions[WEIR__SESSIONS_MAX];
};

/* Headers of a request, each NULL when missing, and when it came. */
struct weir__caller {
    const char *host, *origin, *fetch_site, *authorization, *cookie, *key;
    bool is_tls; /* the browser speaks TLS, to a proxy */
    double now_s;
};

/* 0, or the status to refuse with and why. The caller's session is in use. */
unsigned int weir__door_refuses(struct weir__door *door,
                                const struct weir__caller *caller,
                                enum weir__http_access access,
                                const char **ret_why);

/* WEIR_EINVAL with a sentence when it is too short, too long or has bytes that
 * a header cannot hold. */
int weir__token_check(struct weir_slice token, struct weir_error *err);

/* Whether the two are equal, in a time that tells nothing of `secret` but its
 * length. */
bool weir__secret_equal(struct weir_slice given, const char *secret);

/* "localhost", an address 127.x.x.x or [::1], with a port or without. */
bool weir__host_is_loopback(const char *host);

/* Whether an Origin header is of the site that the Host header names. The
 * scheme is not looked at: a proxy may end TLS. */
bool weir__origin_is_host(const char *origin, const char *host);

/* Whether the browser says that the request comes from another site. */
bool weir__caller_is_foreign(const struct weir__caller *caller);

/* The session whose cookie the caller has, with its key or without; NULL: there
 * is none. Another port can add cookies of the same name, so all are tried. */
struct weir__session *weir__door_session(struct weir__door *door,
                                         const struct weir__caller *caller);

/* The cookie's name. A host has one set of cookies for all of its ports, so the
 * name contains the port. Over TLS "__Host-" keeps other hosts of the same
 * domain from setting it. */
void weir__door_cookie_name(const struct weir__door *door, bool is_tls,
                            char ret_name[static WEIR__COOKIE_CAP]);

#endif
