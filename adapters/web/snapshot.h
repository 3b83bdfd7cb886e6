/* SPDX-License-Identifier: MIT */
#ifndef WEIR_WEB_SNAPSHOT_H
#define WEIR_WEB_SNAPSHOT_H

/* What the topics of a server have, asked once for all who look. A round asks
 * for the names and then for each topic; it goes in slices of 50 topics each
 * 50 ms, so that 10,000 topics take 10 s and no more than 1,000 are asked for
 * in a second. Rounds begin when somebody looks, one a second at most, and each
 * 30 s for the history of the last hour. */

#include "adapters/cli/rates.h"
#include "adapters/cli/stats_view.h"
#include "adapters/web/history.h"

#include <ev.h>

struct weir__snapshot;

/* A topic, as it was found last. */
struct weir__topic_view {
    struct weir__stats_row row;
    struct weir__history history;
    struct weir__growth done; /* for row.rate */
    bool is_of_new_kind;      /* that this version does not know */
};

/* Begin with a round at once. `loop` and `reactor` are kept. WEIR_ENOMEM. */
int weir__snapshot_open(struct ev_loop *loop, struct weir_reactor *reactor,
                        struct weir__snapshot **ret_snapshot);

/* After the reactor was freed. NULL is fine. */
void weir__snapshot_close(struct weir__snapshot *snapshot);

/* Somebody looks: have a round begin where none is on its way and the last one
 * is older than a second. */
void weir__snapshot_look(struct weir__snapshot *snapshot);

/* Have `fn` called whenever a round is over, also one that failed. One
 * listener; NULL: none. */
void weir__snapshot_on_round(struct weir__snapshot *snapshot,
                             void (*fn)(void *arg), void *arg);

/* The topics in byte order, those that are gone (row.is_shown is false)
 * included. Borrowed for this turn of the loop. */
struct weir__topic_view *const *
weir__snapshot_topics(const struct weir__snapshot *snapshot, size_t *ret_count);

/* The one of that name; NULL: there is none. Borrowed as above. */
const struct weir__topic_view *
weir__snapshot_find(const struct weir__snapshot *snapshot, const char *topic);

/* What somebody else was told of a topic: it counts as if a round had. */
void weir__snapshot_take(struct weir__snapshot *snapshot, const char *topic,
                         const struct weir_stats *stats);

/* Grows with every change of what is known. */
uint64_t weir__snapshot_version(const struct weir__snapshot *snapshot);

/* How many rounds were completed. */
uint64_t weir__snapshot_rounds(const struct weir__snapshot *snapshot);

/* What the last round came to, WEIR_OK before the first one; and when the last
 * good one was over, in ms since 1970; 0: none was. */
int weir__snapshot_code(const struct weir__snapshot *snapshot);
int64_t weir__snapshot_taken_ms(const struct weir__snapshot *snapshot);

#endif
