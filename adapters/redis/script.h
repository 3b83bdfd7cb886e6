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
extern const struct weir__script weir__script_listclaim;
extern const struct weir__script weir__script_streamclaim;
extern const struct weir__script weir__script_feedfind;
extern const struct weir__script weir__script_feedlist;
extern const struct weir__script weir__script_feedpurge;
extern const struct weir__script weir__script_feedrenew;
extern const struct weir__script weir__script_feedrequeue;
extern const struct weir__script weir__script_feedsettle;
extern const struct weir__script weir__script_feedstart;
extern const struct weir__script weir__script_feedstats;
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
extern const struct weir__script weir__script_boundadd;
extern const struct weir__script weir__script_boundclaim;
extern const struct weir__script weir__script_boundsettle;
extern const struct weir__script weir__script_boundrenew;
extern const struct weir__script weir__script_boundpurge;

/* All of them, ended by NULL. */
extern const struct weir__script *const weir__scripts[];

#endif
