/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CALL_H
#define WEIR_CALL_H

/* A call of code that is not weir's, on the loop's thread: of a handler, a
 * plugin or a callback of the program. The store hears of each one that may
 * hold the loop, so that it can name the call in the log.
 *
 * A call may be inside another one. Begin and end come in pairs, in the same
 * function, with the same store. */

#include "core/store.h"

struct weir__call {
    const char *what;    /* "the flush"; NULL: the run itself */
    const char *handler; /* its name; NULL: the program */
    const char *topic;   /* NULL: of none */
    /* The run that holds the loop, until `deadline_ns` at most (monotonic), and
     * its topic. A batch has that of its first job. NULL: another call. */
    struct weir__run *run;
    struct weir__store_topic *run_topic;
    int64_t deadline_ns;

    struct weir__call *outer; /* the store's, with: */
    uint64_t number;
};

/* `store` may be NULL: a reactor that is being freed has none. */
static inline void weir__call_begin(const struct weir__store *store,
                                    struct weir__call *call)
{
    if (store != NULL && store->ops->enter != NULL)
        store->ops->enter((struct weir__store *)(uintptr_t)store, call);
}

/* True: the store has settled the run as timed out. */
static inline bool weir__call_end(const struct weir__store *store,
                                  struct weir__call *call)
{
    return store != NULL && store->ops->leave != NULL &&
           store->ops->leave((struct weir__store *)(uintptr_t)store, call);
}

/* What the log says of a call that holds the loop: copies, for a thread that
 * logs while the loop goes on. */
struct weir__held {
    char who[WEIR_MAX_TOPIC + 64];  /* "the flush of archive" */
    char topic[WEIR_MAX_TOPIC + 1]; /* "": none */
    uint8_t id[WEIR_MAX_ID];
    size_t id_len;
    int64_t began_ns; /* 0: not known */
};

void weir__call_copy(const struct weir__call *call,
                     struct weir__held *ret_held);

/* Warn that the call holds the loop, or held it, for so long. */
void weir__held_log(const struct weir__held *held, const struct weir__log *log,
                    int64_t held_ns);
void weir__held_log_ended(const struct weir__held *held,
                          const struct weir__log *log, int64_t held_ns,
                          int64_t most_ms);

#endif
