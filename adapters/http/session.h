/* SPDX-License-Identifier: MIT */
#ifndef WEIR_HTTP_SESSION_H
#define WEIR_HTTP_SESSION_H

/* Sessions of browsers that have shown the token. A session has two secrets. A
 * browser sends the cookie to every port of the host. The page keeps the key
 * where only pages of its own scheme, host and port can read. A request needs
 * both. On the thread of the loop. */

#include <weir/base.h>

enum {
    WEIR__SESSIONS_MAX = 64,
    WEIR__SESSION_CAP = 65,           /* of a secret, with its NUL */
    WEIR__SESSION_IDLE_S = 12 * 3600, /* a session ends after so long unused */
};

/* Zeroed: free. */
struct weir__session {
    char cookie[WEIR__SESSION_CAP], key[WEIR__SESSION_CAP];
    double used_s; /* when a request came last; of a clock that never jumps */
};

/* The session with this cookie among WEIR__SESSIONS_MAX `sessions`; NULL if
 * there is none or it has ended. Borrowed. */
struct weir__session *weir__session_find(struct weir__session *sessions,
                                         struct weir_slice cookie,
                                         double now_s);

/* A new session. If none is free, the session that was used least recently
 * ends. NULL: the system has no random numbers. Borrowed. */
struct weir__session *weir__session_begin(struct weir__session *sessions,
                                          double now_s);

/* NULL is fine. */
void weir__session_end(struct weir__session *session);

#endif
