/* SPDX-License-Identifier: MIT */
#include "adapters/weir/facade.h"

/* What handlers of fatal signals call. A reactor that is being freed has parts
 * of it no more. */

bool weir_reactor_current(const struct weir_reactor *reactor,
                          struct weir_current *ret_current)
{
    if (reactor->pool != NULL &&
        weir__ev_pool_current(reactor->pool, ret_current))
        return true;
    if (!weir__mailbox_may_be_here(reactor->mailbox))
        return false;
    if (reactor->core != NULL &&
        weir__reactor_current(reactor->core, ret_current))
        return true;
    if (reactor->calling != NULL)
        weir__ev_loop_current(reactor->calling, ret_current);
    return reactor->calling != NULL;
}

void weir_reactor_note_crash(const struct weir_reactor *reactor,
                             const char *how)
{
    const struct weir__store *store = reactor->store;

    if (store != NULL && store->ops->note_crash != NULL)
        store->ops->note_crash(store, how);
}
