/* SPDX-License-Identifier: MIT */
#include "adapters/http/session.h"

#include "adapters/http/door.h"
#include "core/assert.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

struct weir__session *weir__session_find(struct weir__session *sessions,
                                         struct weir_slice cookie, double now_s)
{
    if (cookie.len != WEIR__SESSION_CAP - 1)
        return NULL; /* a header holds many short values */
    for (size_t i = 0; i < WEIR__SESSIONS_MAX; i++) {
        if (sessions[i].cookie[0] != '\0' &&
            now_s - sessions[i].used_s >= WEIR__SESSION_IDLE_S)
            weir__session_end(&sessions[i]);
        if (weir__secret_equal(cookie, sessions[i].cookie))
            return &sessions[i];
    }
    return NULL;
}

static bool make_secret(char secret[static WEIR__SESSION_CAP])
{
    unsigned char bytes[(WEIR__SESSION_CAP - 1) / 2];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return false;
    for (size_t i = 0; i < sizeof(bytes); i++)
        (void)snprintf(secret + i * 2, 3, "%02x", bytes[i]); /* fits */
    return true;
}

struct weir__session *weir__session_begin(struct weir__session *sessions,
                                          double now_s)
{
    struct weir__session *session = &sessions[0], made = {.used_s = now_s};

    if (!make_secret(made.cookie) || !make_secret(made.key))
        return NULL;
    for (size_t i = 1; i < WEIR__SESSIONS_MAX; i++) {
        bool is_free = sessions[i].cookie[0] == '\0';

        if (session->cookie[0] != '\0' &&
            (is_free || sessions[i].used_s < session->used_s))
            session = &sessions[i];
    }
    WEIR_ASSERT(made.cookie[WEIR__SESSION_CAP - 1] == '\0');
    *session = made;
    return session;
}

void weir__session_end(struct weir__session *session)
{
    if (session != NULL)
        *session = (struct weir__session){0};
}
