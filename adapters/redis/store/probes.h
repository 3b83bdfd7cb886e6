/* SPDX-License-Identifier: MIT */
#ifndef WEIR_STORE_PROBES_H
#define WEIR_STORE_PROBES_H

/* The connections of the keeper: one to each server that it has a question for,
 * found by a map of the cluster that it follows by itself while the loop, which
 * has the store's, is held. A server that does not answer is away until it is
 * asked again: others do not wait for it.
 *
 * Of one thread, which BLOCKS in here, but for weir__probes_cut. */

#include <pthread.h>

#include "adapters/redis/store/store.h"

struct redisReply;
struct weir__probes;
struct weir__probed; /* one server */

/* `store` is kept, `lock` guards what weir__probes_cut looks at. NULL: out of
 * memory. */
struct weir__probes *weir__probes_new(const struct weir__redis *store,
                                      pthread_mutex_t *lock);

/* NULL is fine. */
void weir__probes_free(struct weir__probes *probes);

/* From another thread, which has the lock: no question is waited for from now
 * on. */
void weir__probes_cut(struct weir__probes *probes);

/* Take what the store knows of servers by now; while its loop cannot change
 * it. */
void weir__probes_follow(struct weir__probes *probes);

/* Before questions: each is waited for so long in a cluster, where others wait
 * as well, up to 300 ms; 1 s where there is one server. */
void weir__probes_limit(struct weir__probes *probes, int64_t limit_ms);

/* Who has the slot; NULL: nobody, or out of memory. It stays until the next
 * weir__probes_follow or weir__probes_look. */
struct weir__probed *weir__probes_server(struct weir__probes *probes,
                                         uint16_t slot);

/* Ask the server that has the slot: none that is away, or where `only` is not
 * NULL, that one alone. A script that the server does not know is loaded, MOVED
 * followed once. NULL: not asked; no answer, then the server is away from now
 * on; or the slot is at no server for now. The reply, maybe an error, is
 * released with freeReplyObject. */
struct redisReply *weir__probes_ask(struct weir__probes *probes, uint16_t slot,
                                    const struct weir__probed *only,
                                    const struct weir__script *script,
                                    struct weir_slice command);

/* Of those that are away the one that was asked longest ago, and before
 * `before_ns`; from now on it was asked. NULL: none. */
struct weir__probed *weir__probes_next_away(struct weir__probes *probes,
                                            int64_t before_ns);
bool weir__probes_has_away(const struct weir__probes *probes);

/* Where a server of a cluster is away others may say who took over: ask one,
 * once a second. True: slots are at other servers now. */
bool weir__probes_look(struct weir__probes *probes);

#endif
