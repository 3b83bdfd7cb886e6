/* SPDX-License-Identifier: MIT */
#ifndef WEIR_REDIS_SCRIPT_H
#define WEIR_REDIS_SCRIPT_H

/* The Lua scripts, embedded at build time from adapters/redis/scripts. */

#include <stddef.h>

struct weir__script {
    const char *name; /* file name without .lua */
    const char *text; /* NUL-terminated */
    size_t len;       /* bytes of text */
    const char *sha1; /* 40 hexadecimal digits of the text */
};

/* weir__script_<name>, one for each file. */
extern const struct weir__script weir__script_add;
extern const struct weir__script weir__script_claim;
extern const struct weir__script weir__script_settle;
extern const struct weir__script weir__script_renew;
extern const struct weir__script weir__script_release;
extern const struct weir__script weir__script_slot;
extern const struct weir__script weir__script_stats;
extern const struct weir__script weir__script_lateness;
extern const struct weir__script weir__script_requeue;
extern const struct weir__script weir__script_forget;
extern const struct weir__script weir__script_purge;
extern const struct weir__script weir__script_pause;
extern const struct weir__script weir__script_set;
extern const struct weir__script weir__script_start;
extern const struct weir__script weir__script_recall;
extern const struct weir__script weir__script_feed_claim_list;
extern const struct weir__script weir__script_feed_claim_stream;
extern const struct weir__script weir__script_feed_find;
extern const struct weir__script weir__script_feed_list;
extern const struct weir__script weir__script_feed_purge;
extern const struct weir__script weir__script_feed_renew;
extern const struct weir__script weir__script_feed_requeue;
extern const struct weir__script weir__script_feed_settle;
extern const struct weir__script weir__script_feed_start;
extern const struct weir__script weir__script_feed_stats;
extern const struct weir__script weir__script_fifo_push;
extern const struct weir__script weir__script_fifo_look;
extern const struct weir__script weir__script_fifo_pop;
extern const struct weir__script weir__script_fifo_park;
extern const struct weir__script weir__script_fifo_peek;
extern const struct weir__script weir__script_fifo_lock;
extern const struct weir__script weir__script_fifo_unlock;
extern const struct weir__script weir__script_fifo_settle;
extern const struct weir__script weir__script_fifo_stats;
extern const struct weir__script weir__script_fifo_list;
extern const struct weir__script weir__script_fifo_purge;
extern const struct weir__script weir__script_bounded_add;
extern const struct weir__script weir__script_bounded_claim;
extern const struct weir__script weir__script_bounded_settle;
extern const struct weir__script weir__script_bounded_renew;
extern const struct weir__script weir__script_bounded_purge;
extern const struct weir__script weir__script_bounded_list;

/* All of them, ended by NULL. */
extern const struct weir__script *const weir__scripts[];

#endif
