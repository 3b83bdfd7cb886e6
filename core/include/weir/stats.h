/* SPDX-License-Identifier: MIT */
#ifndef WEIR_STATS_H
#define WEIR_STATS_H

/* What the server counts of a topic, for weir_reactor_stats of <weir/weir.h>,
 * which brings this. */

#include <stdbool.h>
#include <stdint.h>

/* Why nothing that is ready may start: no token of `rate` is there, as many run
 * as `parallel` lets, or each key is at its own bound. */
enum weir_limit {
    WEIR_NOT_LIMITED,
    WEIR_LIMITED_RATE,
    WEIR_LIMITED_PARALLEL,
    WEIR_LIMITED_KEY
};

struct weir_stats {
    const char *topic;
    const char *kind;
    const char *unserved_groups; /* up to three of `unserved`, or "" */
    bool paused;
    bool ready_is_exact; /* false: `ready` is a lower bound */
    uint64_t scheduled, ready, running, dead;
    uint64_t added_total, done_total, retried_total, failed_total;
    uint64_t expired_total, crashed_total, dropped_total;
    uint64_t lost_total; /* jobs whose pack was gone from the server */
    int64_t lateness_p50_us, lateness_p99_us, lateness_max_us; /* -1: no data */
    /* Of bounded topics: dropped_total by reason. */
    uint64_t dropped_overflow, dropped_age, dropped_ttl;
    /* Jobs that a newer version of weir wrote: this reactor met them, leaves
     * them alone, and has nothing else of the topic to do. */
    uint64_t newer;
    uint64_t relaying; /* packs of jobs on their way to other topics */
    /* How long the first of the ready jobs has been ready; -1: none is, or its
     * time is not known: entries of a list have none until they are taken. Of
     * bounded topics a few of the groups are read: a lower bound. */
    int64_t oldest_us;
    /* Groups of a bounded topic that have waiting events and that no worker
     * serves, where workers have `groups`; -1: not known. */
    int64_t unserved;
    int64_t lease_ended_us; /* since a lease ended that still has jobs; or -1 */
    bool is_elsewhere; /* all that is counted is in groups not served here */
    uint64_t ticks;    /* of schedules, among the jobs that wait or run */
    enum weir_limit limited;
};

#endif
