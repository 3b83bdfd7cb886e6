/* SPDX-License-Identifier: MIT */
#ifndef WEIR_HTTP_DOOR_H
#define WEIR_HTTP_DOOR_H

/* Who is let in. A program shows the token; a browser has shown it once and
 * then has a cookie, which other sites cannot make it send (SameSite=Strict)
 * and no script can read. Without a token everybody on this machine may read,
 * and the name in the Host header must be this machine's, so that a foreign
 * site whose name leads here reads nothing. Pure. */

#include "adapters/http/http.h"

enum { WEIR__TOKEN_MAX = 256, WEIR__SESSION_CAP = 65 };

struct weir__door {
    char token[WEIR__TOKEN_MAX + 1]; /* "": there is none */
    char session[WEIR__SESSION_CAP]; /* value of the cookie */
    char cookie[24];                 /* its name, "weir8080" */
    bool is_read_only;
    bool checks_host; /* loopback without a token */
};

/* Headers of a request, each NULL when missing. */
struct weir__caller {
    const char *host, *origin, *fetch_site, *authorization, *cookie;
};

/* 0, or the status to refuse with and why. */
unsigned int weir__door_refuses(const struct weir__door *door,
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

/* The value of a cookie, not ended by a NUL; ptr NULL: there is none. */
struct weir_slice weir__cookie_find(const char *header, const char *name);

#endif
