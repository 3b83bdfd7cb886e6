/* SPDX-License-Identifier: MIT */
#include "adapters/weir/facade.h"
#include "core/assert.h"
#include "core/mem.h"

/* From any thread to the reactor's loop. */

struct call {
    struct weir__mailbox_message message; /* first */
    struct weir_reactor *reactor;
    weir_call_fn fn;
    void *arg;
};

/* A message is dropped where the reactor is all but gone. */
static void make_call(struct weir__mailbox_message *message, bool is_dropped)
{
    struct call call = *(struct call *)message; /* its first member */
    bool is_over = is_dropped || call.reactor->is_freed;

    weir__mem_free(message);
    call.reactor->depth++;
    call.fn(is_over ? WEIR_ECANCELED : WEIR_OK, call.reactor, call.arg);
    call.reactor->depth--;
}

int weir_reactor_call(struct weir_reactor *reactor, weir_call_fn fn, void *arg)
{
    struct call *call = weir__mem_new(sizeof(*call));
    int rc;

    WEIR_ASSERT(fn != NULL);
    if (call == NULL)
        return WEIR_ENOMEM;
    call->message.read = make_call;
    call->reactor = reactor;
    call->fn = fn;
    call->arg = arg;
    rc = weir__mailbox_send(reactor->mailbox, &call->message, sizeof(*call));
    if (rc < 0)
        weir__mem_free(call);
    return rc;
}
