/* SPDX-License-Identifier: MIT */
#ifndef WEIR_STORE_KIND_H
#define WEIR_STORE_KIND_H

/* The rules of a kind of topic. Each kind has a folder and one table; all of
 * them are in kinds.c. */

#include "adapters/redis/store/keeper.h"
#include "adapters/redis/store/lease.h"
#include "adapters/redis/store/store.h"
#include "core/option.h"

struct weir__overdue;
struct weir__stats_request;

/* A job that its topic cannot take. */
struct weir__undeliverable {
    struct weir_slice id;              /* empty: none of its own */
    const char *made_id;               /* of its place in the pack */
    struct weir_slice stored;          /* its record, where that is broken */
    const struct weir__record *record; /* else this, with the reason */
};

/* Required are the name, the sizes, topic_init, flush and fail_adds, and settle
 * where there is a claim, which is answered by the event `claimed` or by
 * refusing. What else a kind has no use for is NULL; of a request that means
 * WEIR_EKIND, which store/ops.c says. Functions without a comment are the ops
 * of core/store.h of that name, and get topics of this kind only. */
struct weir__kind {
    const char *name;
    size_t topic_size; /* of its struct; begins with struct weir__store_topic */
    size_t shared_size; /* the same of struct weir__shared */
    bool takes_follows; /* settle adds the jobs that runs add */

    /* --- life; called outside of ops, but for these ----------------------- */
    void (*shared_init)(struct weir__shared *shared);
    void (*shared_fini)(struct weir__shared *shared);
    /* The topic is zeroed behind its base. */
    void (*topic_init)(struct weir__store_topic *topic);
    /* What it holds besides its own memory. */
    void (*topic_fini)(struct weir__store_topic *topic);
    /* It is served with other options from now on. */
    void (*serve)(struct weir__store_topic *topic);
    /* Its user came, or went. */
    void (*listen)(struct weir__store_topic *topic);
    /* Connected, for the first time or again. */
    void (*connected)(struct weir__store_topic *topic);
    /* Each second in a cluster: weir__place_look_beside for each connection
     * beside the topic's place. */
    void (*look)(struct weir__store_topic *topic);
    /* Somebody wakes a topic that has a user. NULL: tell the user. */
    void (*woken)(struct weir__store_topic *topic);
    /* Before that: a pack of this name is there (WEIR__SEQ_LEN bytes). */
    void (*hinted)(struct weir__store_topic *topic, const char *seq);
    /* A message says more than that, to a topic with a user or without. Empty:
     * the subscription stands again, and earlier messages are lost. */
    void (*told)(struct weir__store_topic *topic, struct weir_slice what);
    void (*flush)(struct weir__store_topic *topic);
    /* After all topics, and before what was sent for them leaves. */
    void (*flush_shared)(struct weir__shared *shared);
    /* The stored options were read, and the user told; or not. */
    void (*followed)(struct weir__store_topic *topic, int code);
    /* Answer all jobs that are not sent yet, now. */
    void (*fail_adds)(struct weir__store_topic *topic, int code);
    /* The store is about to be closed: send what need not be answered. */
    void (*leaving)(struct weir__store_topic *topic);
    /* The store is being closed; its connections still stand. */
    void (*closing)(struct weir__store_topic *topic);

    /* --- work ------------------------------------------------------------- */
    int (*claim)(struct weir__store_topic *topic,
                 const struct weir__claim *claim);
    void (*settle)(struct weir__store_topic *topic, struct weir__run *run);
    void (*start)(struct weir__store_topic *topic, struct weir__run *run);
    void (*token)(const struct weir__run *run, char ret_token[WEIR__TOKEN_CAP]);
    int (*adopt)(struct weir__store_topic *topic, const char *token);
    int (*prolong)(struct weir__store_topic *topic,
                   const struct weir__prolong *what, weir_count_fn fn,
                   void *arg);
    void (*stop)(struct weir__store_topic *topic);
    size_t (*unsettled)(const struct weir__store_topic *topic);
    bool (*holds_back)(const struct weir__store_topic *topic);
    /* Bytes of jobs that wait in the kind's own memory. NULL: none do. */
    size_t (*collected)(const struct weir__store_topic *topic);
    /* Append the calls that prolong all that the topic holds. Behind the
     * keeper's gate, too, on its thread. */
    void (*renew)(struct weir__renewals *renewals,
                  const struct weir__store_topic *topic, int64_t lease_ms);
    /* It holds nothing that could be lost. NULL: it may. */
    bool (*is_unleased)(const struct weir__store_topic *topic);
    /* The script by which jobs of the outbox die here that their topic cannot
     * take, its five keys in front of the pack, and what it is told of a job:
     * three arguments. NULL: the kind has no outbox. */
    const struct weir__script *undeliverable;
    const char *undeliverable_keys;
    void (*write_undeliverable)(const struct weir__store_topic *topic,
                                struct weir__buf *buf,
                                const struct weir__undeliverable *job);
    /* Settles an overdue run. NULL: its leases are renewed no longer. */
    struct weir__overdue *(*overdue_new)(void);

    /* --- requests --------------------------------------------------------- */
    int (*add)(struct weir__store_topic *topic, const struct weir__new_job *job,
               weir_added_fn fn, void *arg);
    int (*show)(struct weir__store_topic *topic, struct weir_slice id,
                weir_show_fn fn, void *arg);
    int (*remove)(struct weir__store_topic *topic, struct weir_slice id,
                  weir_delete_fn fn, void *arg);
    int (*reschedule)(struct weir__store_topic *topic,
                      const struct weir__reschedule *what,
                      weir_reschedule_fn fn, void *arg);
    int (*requeue)(struct weir__store_topic *topic, struct weir_slice id,
                   weir_count_fn fn, void *arg);
    int (*purge)(struct weir__store_topic *topic, enum weir__purge what,
                 weir_count_fn fn, void *arg);
    int (*forget)(struct weir__store_topic *topic, struct weir_slice id,
                  weir_count_fn fn, void *arg);
    int (*cron)(struct weir__store_topic *topic,
                const struct weir__cron_change *what, weir_code_fn fn,
                void *arg);
    int (*crons)(struct weir__store_topic *topic, weir__cron_fn fn, void *arg);
    int (*list)(struct weir__store_topic *topic, const struct weir__list *what,
                weir_show_fn fn, void *arg);
    int (*stats)(struct weir__store_topic *topic, weir_stats_fn fn, void *arg);
    /* What weir__topic_stats asks. */
    const struct weir__script *stats_script;
    const char *stats_keys;
    size_t stats_key_count;
    /* The server's counts came: add what only this process knows. May be
     * NULL. */
    void (*counted)(struct weir__stats_request *stats);
};

/* --- kinds.c -------------------------------------------------------------- */

/* The first one is that of topics of which nothing else is known. */
extern const struct weir__kind *const weir__kinds[WEIR__KINDS];

/* Each in its folder. Entries of a list or a stream come from somebody else's
 * key; events of a bounded topic are in groups of a bounded length; messages of
 * a sync or concurrent one stand in one queue (docs/kinds.md). */
#define KIND(set, name) extern const struct weir__kind weir__##name##_kind;
WEIR__KIND_MAP(KIND)
#undef KIND

/* NULL: there is none of that name. */
const struct weir__kind *weir__kind_find(const char *name);

#endif
