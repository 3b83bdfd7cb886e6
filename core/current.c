/* SPDX-License-Identifier: MIT */
#include "core/lane.h"

#include <string.h>

/* Whose code runs, told to handlers of signals: nothing here takes memory or
 * locks, or asserts. */

static void copy_text(char *to, size_t cap, const char *from, size_t len)
{
    len = len < cap ? len : cap - 1;
    memcpy(to, from, len);
    to[len] = '\0';
}

static void take(const struct weir__lane *lane,
                 const struct weir__handler *handler,
                 struct weir_current *ret_current)
{
    *ret_current = (struct weir_current){
        .handler = handler == NULL ? NULL : handler->name};
    copy_text(ret_current->topic, sizeof(ret_current->topic), lane->name,
              strnlen(lane->name, sizeof(lane->name)));
}

bool weir__run_current(const struct weir__run *run,
                       struct weir_current *ret_current)
{
    if (run->magic != WEIR__RUN_MAGIC)
        return false;
    take(run->lane, run->handler, ret_current);
    copy_text(ret_current->id, sizeof(ret_current->id),
              (const char *)run->id.ptr, run->id.len);
    return true;
}

bool weir__reactor_current(const struct weir__reactor *reactor,
                           struct weir_current *ret_current)
{
    const struct weir__run *run = reactor->calling;
    const struct weir__handler *handler = reactor->flushing;

    if (run != NULL && weir__run_current(run, ret_current)) {
        ret_current->others = reactor->calling_count - 1;
        return true;
    }
    if (handler != NULL)
        take(handler->lane, handler, ret_current);
    return handler != NULL;
}
