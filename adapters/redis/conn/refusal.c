/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/conn/private.h"

/* A command that is larger than the server takes (proto-max-bulk-len,
 * client-query-buffer-limit): the server closes the connection over it, and may
 * say why. It is sent twice more, alone, since the connection may have been
 * lost for another reason. Then it is given up: sent again for ever it would
 * keep all others of the connection waiting. */

enum {
    LEAST = 1024 * 1024, /* that a server can be told to refuse */
    REFUSALS_MOST = 3
};

static bool is_large(const struct weir__command *request)
{
    return request->bytes.len >= LEAST;
}

void weir__conn_blame(struct weir__conn *conn)
{
    struct weir__command *request = conn->sent.first;

    while (request != NULL && !is_large(request))
        request = request->next;
    if (request != NULL)
        request->refusals++;
}

bool weir__conn_take_refusal(struct weir__conn *conn,
                             struct weir__command *request, const char *text)
{
    if (!is_large(request) || strncmp(text, "ERR Protocol error", 18) != 0)
        return false;
    request->refusals++;
    weir__conn_note_lost(conn, WEIR_ESERVER, "%s", text);
    weir__request_append(&conn->returned, request); /* it did not run */
    return true;
}

bool weir__conn_is_hopeless(const struct weir__command *request)
{
    return request->refusals >= REFUSALS_MOST;
}

bool weir__conn_must_wait(const struct weir__conn *conn,
                          const struct weir__command *next)
{
    const struct weir__command *sent = conn->sent.first;

    return sent != NULL && (next->refusals > 0 || sent->refusals > 0);
}
