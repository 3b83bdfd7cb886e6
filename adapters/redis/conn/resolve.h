/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CONN_RESOLVE_H
#define WEIR_CONN_RESOLVE_H

/* The addresses of a host. The system's resolver takes as long as it likes, so
 * a thread asks it, which is left behind where it takes too long. */

#include <weir/base.h>

struct ev_loop;
struct weir__lookup;

enum { WEIR__ADDRESSES_MAX = 8, WEIR__ADDRESS_CAP = 46 };

/* Numeric ones, the best first. */
struct weir__addresses {
    size_t count;
    char text[WEIR__ADDRESSES_MAX][WEIR__ADDRESS_CAP];
};

/* Of a host that needs no resolver: a numeric one, and "localhost". */
bool weir__addresses_known(const char *host,
                           struct weir__addresses *ret_addresses);

/* Is it a name that the resolver is asked for? Its addresses may change. */
bool weir__host_is_name(const char *host);

/* Of any host. BLOCKS, for `limit_ms` at most. NULL; otherwise why there are
 * none, a text that lasts. */
const char *weir__addresses_find(const char *host, int limit_ms,
                                 struct weir__addresses *ret_addresses);

/* `why` is NULL, or a text that lasts and there are none. */
typedef void (*weir__lookup_fn)(const struct weir__addresses *addresses,
                                const char *why, void *arg);

/* Look up a host on a thread. `fn` runs once, on the loop, never inside this
 * call, unless it is cancelled before; then the lookup is gone. NULL: out of
 * memory, or of threads. */
struct weir__lookup *weir__lookup_start(struct ev_loop *loop, const char *host,
                                        weir__lookup_fn fn, void *arg);

/* Does not wait for the thread. NULL is fine. */
void weir__lookup_cancel(struct weir__lookup *lookup);

#endif
