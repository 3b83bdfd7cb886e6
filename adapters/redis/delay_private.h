/* SPDX-License-Identifier: MIT */
#ifndef WEIR_REDIS_DELAY_PRIVATE_H
#define WEIR_REDIS_DELAY_PRIVATE_H

/* What the files of the delay store share: the store, its topics, and how a
 * command is sent. delay.c opens and closes and owns both connections; then
 * there is one file for each thing that a topic does. */

#include <ev.h>
#include <hiredis/hiredis.h>

#include "adapters/redis/conn.h"
#include "adapters/redis/delay.h"
#include "adapters/redis/delay_plan.h"
#include "adapters/redis/node.h"
#include "adapters/redis/reply.h"
#include "core/store.h"

struct weir__delay;

enum {
    WEIR__CALL_SLOTS = 1000,    /* most slots that one script call touches */
    WEIR__CALL_NODES = 400,     /* most nodes: these cost more */
    WEIR__TOPIC_BUCKETS = 4096, /* a power of two */
    WEIR__NODE_STATES = 256,    /* of a node: the fraction of its score */
    WEIR__KEY_MAX = 72          /* "weir:{" topic "}:p:" seq, and some more */
};

/* One answer that is waited for; the first member of what is sent with it. */
struct weir__ask {
    struct weir__delay *store;
    /* Runs exactly once, never inside an op (except close), and frees the ask.
     * `reply` as in weir__reply_fn. */
    void (*done)(struct weir__ask *ask, int code,
                 const struct redisReply *reply);
    struct weir__ask *next; /* while it waits to be failed */
    int code;
};

/* One claimed node. */
struct weir__held {
    struct weir__ask start;     /* of a suspect: its node has one slot */
    struct weir__run *starting; /* NULL: none is on its way */
    char name[WEIR__NODE_LEN];
    uint32_t size;     /* slots */
    uint32_t lo;       /* first slot */
    uint32_t pack;     /* index into its lease's packs */
    uint32_t ended;    /* leases that count and are not in the record yet */
    int64_t due_ms;    /* server time */
    uint32_t verdicts; /* collected since the last flush */
    uint32_t endings;  /* of these what is written somewhere else */
    bool is_dropped;   /* its pack is gone: all slots go, without a verdict */
    uint64_t slots[4]; /* those slots, one bit each */
    struct weir__lease *lease;
    struct weir__held *next; /* in the topic's list of touched nodes */
    uint32_t call;           /* the settle call that takes it */
    uint32_t index;          /* and where in it */
};

/* One pack as it was fetched: runs, ids and the bytes they point into, all in
 * one allocation. */
struct weir__batch {
    size_t header_len;
    struct weir__run *runs;
    size_t run_count;
    struct weir_slice *ids; /* one for each slot; NULL: they are made */
    char (*made)[WEIR__MADE_ID_LEN + 1]; /* one for each run */
    uint8_t *bytes;
};

struct weir__fetched {
    size_t jobs;  /* of all nodes in this pack */
    uint32_t end; /* behind the last slot that the nodes name */
    const struct weir__held *first;
    struct weir__pack pack;    /* of the batch's bytes; no slots: unreadable */
    struct weir__batch *batch; /* NULL: not fetched, gone, or left alone */
    bool is_gone;
    uint32_t call; /* the last settle call that named the pack */
    uint32_t key;  /* and as which of its keys */
};

/* One claim under its token, from its reply until nothing of it is out. */
struct weir__lease {
    struct weir__ask ask; /* of the fetch */
    struct weir__store_topic *topic;
    struct weir__lease *previous, *next; /* in the topic's list */
    struct weir__lease *next_spent;
    uint64_t token;
    int64_t time_us; /* server time of the claim */
    int64_t claimed_ns;
    size_t jobs;
    size_t out;      /* runs that core has */
    size_t returned; /* runs that came back without having been started */
    bool is_fetching;
    size_t node_count;
    size_t pack_count;
    struct weir__fetched *packs; /* behind the nodes */
    struct weir__held nodes[];
};

struct weir__adds;
struct weir__keeper;

struct weir__store_topic {
    struct weir__delay *store;
    struct weir__store_topic *next_in_bucket;
    struct weir__store_topic *next_dirty; /* has something to flush */
    bool is_dirty;
    char name[WEIR_MAX_TOPIC + 1];
    char prefix[WEIR__KEY_MAX]; /* of keys: "weir:{name}:" */
    size_t prefix_len;
    void *user; /* of events; NULL: nobody listens */
    uint32_t max_dead;
    char on_dead[WEIR_MAX_TOPIC + 1]; /* where dead jobs go; "": nowhere */
    struct weir__store_topic *grave;  /* that topic, during a flush */
    uint64_t announced; /* connection on which it entered weir:topics */
    int64_t revision;   /* of the stored options that the user knows */
    bool is_following;  /* reading a newer one */
    uint64_t limits_of; /* connection on which max_body was read */
    bool asks_limits;
    int64_t limits_revision;
    size_t max_body; /* bytes */

    struct weir__adds *adds; /* being collected */

    bool wants_claim;
    struct weir__claim claim;
    bool has_recalled; /* what ran when this worker died */
    bool is_idle;      /* registered as an idle worker */
    bool warned_newer; /* about records of a newer version */
    size_t pack_bytes; /* what a fetched pack costs, running mean */
    struct weir__lease *leases;

    struct weir__held *touched; /* nodes with verdicts to flush, in order */
    struct weir__held **touched_end;
    struct weir__items endings; /* runs that are not just done */
    uint32_t calls;             /* settle calls so far */
    struct weir__lease *spent_leases;
    size_t unsettled;
    int64_t refused_ns; /* when refused verdicts were last logged */
    int64_t error_ns;   /* when an error of the server was */
    char error[32];     /* and how it begins */
};

/* Seats of calls that may have to be repeated: the server remembers the last
 * call of each (add.lua). Those that are free, the last one that got up on top,
 * so that few are used. */
struct weir__seats {
    char name[WEIR__SEQ_LEN + 1]; /* of this process's seats; "": none yet */
    uint32_t *free;
    size_t free_count;
    uint32_t count; /* made so far; `free` has room for all */
};

struct weir__delay {
    struct weir__store base; /* first */
    uint32_t magic;
    struct weir__redis_options options;
    struct weir__store_events events;
    struct weir__redis_url url;
    char worker[WEIR__KEY_MAX];
    struct weir__conn *commands;
    struct weir__conn *wakes;
    uint64_t connections; /* made so far */

    bool is_closed;
    struct weir__ask *failed; /* could not be sent; reported by the timer */
    struct weir__ask **failed_end;
    ev_timer failing;

    struct weir__store_topic *buckets[WEIR__TOPIC_BUCKETS];
    struct weir__store_topic *dirty;

    /* Names of packs: known once the server gave this process a number. */
    struct weir__seq_maker seqs;
    bool has_number;
    bool asks_number;
    struct weir__seats seats; /* of calls of the add script */
    int64_t ahead_ms;         /* server time minus our monotonic time */
    size_t collected;         /* bytes of jobs that wait to be sent */

    struct weir__keeper *keeper; /* NULL: no topic is listened to */

    struct weir__buf scratch[4]; /* lists of one settle call */
    struct weir__parcels parcels;
};

/* --- delay.c: the store ------------------------------------------------- */

struct weir__delay *weir__delay_of(struct weir__store *store);

int64_t weir__delay_now_ns(const struct weir__delay *store);

/* Send one command (see weir__conn_send); `ask` may be NULL. Where that is not
 * possible the ask is done a little later with the code. */
void weir__delay_send(struct weir__delay *store, struct weir__buf *bytes,
                      const struct weir__script *script, unsigned flags,
                      struct weir__ask *ask);

/* Have the ask done with an error code, a little later. */
void weir__delay_fail(struct weir__ask *ask, int code);

/* The topic has something to flush. */
void weir__topic_mark(struct weir__store_topic *topic);

/* weir:topics lists all topics; told once on each connection. */
void weir__topic_announce(struct weir__store_topic *topic);

/* Begin EVALSHA with `keys` keys and `args` arguments. */
void weir__delay_eval(struct weir__buf *buf, const struct weir__script *script,
                      size_t keys, size_t args);

/* A key of the topic, and those of all of `names` separated by blanks. */
void weir__topic_key(struct weir__buf *buf,
                     const struct weir__store_topic *topic, const char *name);
void weir__topic_keys(struct weir__buf *buf,
                      const struct weir__store_topic *topic, const char *names);

/* The key of a pack. */
void weir__topic_pack_key(struct weir__buf *buf,
                          const struct weir__store_topic *topic,
                          const char *seq);

/* Log what an error reply says, the same one every 5 s; callers are told only
 * that there was one. */
void weir__topic_log_error(struct weir__store_topic *topic, const char *what,
                           int code, const struct redisReply *reply);

struct weir__store_topic *weir__topic_find(struct weir__delay *store,
                                           struct weir_slice name);

/* --- delay_link.c ------------------------------------------------------- */

int weir__delay_connect(struct weir__delay *store);

/* Ask for the producer number. Jobs wait unsent until the answer comes, so
 * their patience is its patience. It is asked anew on each connection: a server
 * that lost its memory may have given the old number to somebody else. */
void weir__delay_ask_number(struct weir__delay *store);

/* Answer all jobs that are not sent yet, now; only outside of ops. */
void weir__delay_fail_collected(struct weir__delay *store, int code);

/* --- delay_add.c -------------------------------------------------------- */

int weir__topic_add(struct weir__store_topic *topic,
                    const struct weir__new_job *job, weir_added_fn fn,
                    void *arg);
void weir__topic_flush_adds(struct weir__store_topic *topic);

/* Answer what is collected with an error, now; only outside of ops. */
void weir__topic_fail_adds(struct weir__store_topic *topic, int code);

/* Store a pack under its name for a minute, unless that is taken already. */
void weir__topic_write_stage(struct weir__buf *buf,
                             const struct weir__store_topic *topic,
                             const struct weir__items *items,
                             const struct weir__parcel *parcel);

/* Give the parcel a name, about the server's time. */
void weir__delay_name_parcel(struct weir__delay *store,
                             struct weir__parcel *parcel);

/* --- delay_claim.c ------------------------------------------------------ */

void weir__topic_flush_claim(struct weir__store_topic *topic);

/* --- delay_fetch.c ------------------------------------------------------ */

/* The reply to the fetch of a lease's packs; `ask` is the lease. */
void weir__lease_fetched(struct weir__ask *ask, int code,
                         const struct redisReply *reply);

/* Nothing of it is out any more: the next flush frees it. */
void weir__lease_spend(struct weir__lease *lease);

/* With its batches and whatever runs are still out. */
void weir__lease_free(struct weir__lease *lease);

/* --- delay_start.c ------------------------------------------------------ */

void weir__topic_start(struct weir__store_topic *topic, struct weir__run *run);

/* Log which suspect was running when a worker of this name died. */
void weir__topic_recall(struct weir__store_topic *topic);

/* --- delay_settle.c ----------------------------------------------------- */

void weir__topic_settle(struct weir__store_topic *topic, struct weir__run *run);

/* Settle all slots of a node whose pack is lost. */
void weir__topic_drop(struct weir__store_topic *topic, struct weir__held *held);

/* --- delay_verdicts.c --------------------------------------------------- */

void weir__topic_flush_settles(struct weir__store_topic *topic);

/* --- delay_lease.c ------------------------------------------------------ */

void weir__topic_renew(struct weir__store_topic *topic, int64_t lease_ms);

/* Give back what is left under a token; `returned` verdicts wait for it. */
void weir__topic_release(struct weir__store_topic *topic, uint64_t token,
                         size_t returned);

/* --- delay_topic.c ------------------------------------------------------ */

/* The options that the user was told are of another revision: read them. */
void weir__topic_follow(struct weir__store_topic *topic, int64_t revision);

/* Are the limits of adds known? If not, what tells them flushes the adds. */
bool weir__topic_knows_limits(struct weir__store_topic *topic);

int weir__topic_pause(struct weir__store_topic *topic, bool is_paused,
                      weir_code_fn fn, void *arg);
int weir__topic_set(struct weir__store_topic *topic,
                    const struct weir__setting *settings, size_t count,
                    weir_code_fn fn, void *arg);
int weir__topic_settings(struct weir__store_topic *topic, weir_setting_fn fn,
                         void *arg);
int weir__topic_kind(struct weir__store_topic *topic, weir_kind_fn fn,
                     void *arg);

/* --- delay_requeue.c, delay_purge.c, delay_page.c ----------------------- */

int weir__topic_requeue(struct weir__store_topic *topic, struct weir_slice id,
                        weir_count_fn fn, void *arg);
int weir__topic_purge(struct weir__store_topic *topic, enum weir__purge what,
                      weir_count_fn fn, void *arg);
int weir__topic_forget(struct weir__store_topic *topic, struct weir_slice id,
                       weir_count_fn fn, void *arg);
int weir__topic_list(struct weir__store_topic *topic, enum weir_job_state state,
                     size_t limit, weir_show_fn fn, void *arg);

/* --- delay_job.c, delay_list.c, delay_stats.c --------------------------- */

/* Fill in what a record says of a job; of an unreadable one that it is
 * malformed. WEIR_ENEWER. */
int weir__job_read(struct weir_slice bytes, struct weir_job_info *info);

int weir__topic_reschedule(struct weir__store_topic *topic,
                           const struct weir__reschedule *what,
                           weir_reschedule_fn fn, void *arg);
int weir__topic_show(struct weir__store_topic *topic, struct weir_slice id,
                     weir_show_fn fn, void *arg);
int weir__topic_remove(struct weir__store_topic *topic, struct weir_slice id,
                       weir_delete_fn fn, void *arg);
int weir__topic_dead(struct weir__store_topic *topic, size_t limit,
                     weir_show_fn fn, void *arg);
int weir__topic_stats(struct weir__store_topic *topic, weir_stats_fn fn,
                      void *arg);
void weir__topic_lateness(struct weir__store_topic *topic,
                          const uint32_t *counts, int64_t max_us);
int weir__delay_topics(struct weir__store *base, weir_topics_fn fn, void *arg);

#endif
