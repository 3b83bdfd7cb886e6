/* SPDX-License-Identifier: MIT */
#ifndef WEIR_REDIS_SCRIPT_H
#define WEIR_REDIS_SCRIPT_H

/* The Lua scripts, embedded at build time from adapters/redis/scripts. */

#include <stddef.h>

enum { WEIR__SCRIPTS_MAX = 64 };

struct weir__script {
    const char *name; /* folder and file, "delay_add" */
    const char *text; /* a part of `load` */
    size_t len;       /* bytes of text */
    const char *sha1; /* 40 hexadecimal digits of the text */
    const char *load; /* the command that loads it, NUL-terminated: loading
                         needs no memory */
    size_t load_len;
};

/* weir__script_<name>, one for each file. */
extern const struct weir__script weir__script_delay_add;
extern const struct weir__script weir__script_delay_add_one;
extern const struct weir__script weir__script_delay_add_keyed;
extern const struct weir__script weir__script_delay_push;
extern const struct weir__script weir__script_delay_cron;
extern const struct weir__script weir__script_delay_claim;
extern const struct weir__script weir__script_delay_pull;
extern const struct weir__script weir__script_delay_finish;
extern const struct weir__script weir__script_delay_settle;
extern const struct weir__script weir__script_delay_settle_one;
extern const struct weir__script weir__script_delay_renew;
extern const struct weir__script weir__script_delay_slot;
extern const struct weir__script weir__script_delay_stats;
extern const struct weir__script weir__script_store_beat;
extern const struct weir__script weir__script_store_lateness;
extern const struct weir__script weir__script_store_workers;
extern const struct weir__script weir__script_delay_requeue;
extern const struct weir__script weir__script_delay_forget;
extern const struct weir__script weir__script_delay_bury;
extern const struct weir__script weir__script_delay_mend;
extern const struct weir__script weir__script_delay_page;
extern const struct weir__script weir__script_delay_purge;
extern const struct weir__script weir__script_store_pause;
extern const struct weir__script weir__script_store_set;
extern const struct weir__script weir__script_store_drop;
extern const struct weir__script weir__script_delay_start;
extern const struct weir__script weir__script_delay_recall;
extern const struct weir__script weir__script_delay_undeliverable;
extern const struct weir__script weir__script_external_claim_list;
extern const struct weir__script weir__script_external_claim_stream;
extern const struct weir__script weir__script_external_find;
extern const struct weir__script weir__script_external_list;
extern const struct weir__script weir__script_external_purge;
extern const struct weir__script weir__script_external_renew;
extern const struct weir__script weir__script_external_requeue;
extern const struct weir__script weir__script_external_settle;
extern const struct weir__script weir__script_external_start;
extern const struct weir__script weir__script_external_stats;
extern const struct weir__script weir__script_external_undeliverable;
extern const struct weir__script weir__script_classic_push;
extern const struct weir__script weir__script_classic_poll;
extern const struct weir__script weir__script_classic_pop;
extern const struct weir__script weir__script_classic_park;
extern const struct weir__script weir__script_classic_peek;
extern const struct weir__script weir__script_classic_lock;
extern const struct weir__script weir__script_classic_unlock;
extern const struct weir__script weir__script_classic_renew;
extern const struct weir__script weir__script_classic_settle;
extern const struct weir__script weir__script_classic_stats;
extern const struct weir__script weir__script_classic_list;
extern const struct weir__script weir__script_classic_purge;
extern const struct weir__script weir__script_bounded_add;
extern const struct weir__script weir__script_bounded_claim;
extern const struct weir__script weir__script_bounded_settle;
extern const struct weir__script weir__script_bounded_renew;
extern const struct weir__script weir__script_bounded_purge;
extern const struct weir__script weir__script_bounded_list;
extern const struct weir__script weir__script_bounded_mend;
extern const struct weir__script weir__script_bounded_stats;

/* All of them, ended by NULL. */
extern const struct weir__script *const weir__scripts[];

#endif
