/* SPDX-License-Identifier: MIT */
#ifndef WEIR_STORE_BASE_H
#define WEIR_STORE_BASE_H

/* What the stores of all kinds have in common: connections, commands and their
 * answers, topics and which of them have something to flush, names on the
 * server, the stored options, the producer number, statistics. A kind's store
 * begins with struct weir__base, its topics with struct weir__base_topic; what
 * differs between kinds is in struct weir__base_kind. */

#include <ev.h>
#include <hiredis/hiredis.h>

#include "adapters/redis/conn/conn.h"
#include "adapters/redis/node.h"
#include "adapters/redis/reply.h"
#include "adapters/redis/resp.h"
#include "adapters/redis/store.h"

struct weir__base;
struct weir__base_topic;

enum {
    WEIR__TOPIC_BUCKETS = 4096, /* a power of two */
    WEIR__KEY_MAX = 72          /* "weir:{" topic "}:p:" seq, and some more */
};

/* What is due later only somebody else can have written: the year 2286. */
#define WEIR__DUE_MAX_MS INT64_C(9999999999999)

/* One answer that is waited for; the first member of what is sent with it. */
struct weir__ask {
    struct weir__base *base;
    /* Runs exactly once, never inside an op (except close), and frees the ask.
     * `reply` as in weir__reply_fn. */
    void (*done)(struct weir__ask *ask, int code,
                 const struct redisReply *reply);
    struct weir__ask *next; /* while it waits to be failed */
    int code;
};

/* What keys of a topic begin with: "weir:{name}:". */
struct weir__prefix {
    char text[WEIR__KEY_MAX];
    size_t len;
};

/* Why claimed jobs do not run, though nobody gave a verdict. */
enum weir__loss { WEIR__LOSS_GONE, WEIR__LOSS_MALFORMED, WEIR__LOSSES };

struct weir__base_topic {
    struct weir__base *base;
    struct weir__base_topic *next; /* of the store */
    struct weir__base_topic *next_in_bucket;
    struct weir__base_topic *next_dirty; /* has something to flush */
    bool is_dirty;
    char name[WEIR_MAX_TOPIC + 1];
    struct weir__prefix prefix;
    void *user;         /* of events; NULL: nobody listens */
    uint64_t announced; /* connection on which it entered weir:topics */

    int64_t revision;  /* of the stored options that the user knows */
    bool is_following; /* reading a newer one */
    struct weir__options_ask {
        struct weir__ask ask;
        struct weir__base_topic *topic;
        int64_t revision;
    } follow;

    bool wants_claim;
    struct weir__claim claim;
    size_t unsettled;   /* verdicts */
    int64_t error_ns;   /* when an error of the server was last logged */
    char error[32];     /* and how it begins */
    int64_t refused_ns; /* when refused verdicts were */
    struct {
        int64_t ns;  /* when it was last logged */
        size_t jobs; /* since then */
    } losses[WEIR__LOSSES];
    uint64_t aside;   /* set aside and not logged */
    int64_t aside_ns; /* when that was logged; 0: never */
};

struct weir__kept;
struct weir__keeper;

/* Where a kind differs; what it has no use for is NULL. Each is called outside
 * of ops, but topic_init and flush_topic. */
struct weir__base_kind {
    size_t size, topic_size; /* of its structs, which begin with the base's */
    const struct weir__store_ops *ops;
    const struct weir__script *const *scripts; /* that it calls */
    bool has_wakes;                            /* workers are woken by name */
    const struct weir__kept *kept; /* NULL: nobody looks after leases */
    /* Connected, for the first time or again. */
    void (*connected)(struct weir__base *base);
    /* Somebody wakes a topic that has a user. NULL: tell the user. */
    void (*woken)(struct weir__base_topic *topic);
    /* Before that: a pack of this name is there (WEIR__SEQ_LEN bytes). */
    void (*hinted)(struct weir__base_topic *topic, const char *seq);
    void (*flush_topic)(struct weir__base_topic *topic);
    /* The producer number is known, or will not be with this code. */
    void (*numbered)(struct weir__base_topic *topic, int code);
    /* The stored options were read, and the user told; or not. */
    void (*followed)(struct weir__base_topic *topic, int code);
    /* Answer all jobs that are not sent yet, now. */
    void (*fail_adds)(struct weir__base_topic *topic, int code);
    /* The store is about to be closed: send what need not be answered. NULL:
     * nothing. */
    void (*leaving)(struct weir__base *base);
    /* The store is being closed; its connections still stand. */
    void (*closing)(struct weir__base *base);
    /* The topic is zeroed behind its base. */
    void (*topic_init)(struct weir__base_topic *topic);
    /* What a topic and the store hold besides their own memory. */
    void (*topic_fini)(struct weir__base_topic *topic);
    void (*fini)(struct weir__base *base);
};

/* Seats of calls that may have to be repeated: the server remembers the last
 * call of each (scripts/delay/add.lua). Those that are free, the last one that
 * got up on top, so that few are used. The first name that this process gives
 * makes them its own, also where the server forgot whom it had given which
 * number. */
struct weir__seats {
    char name[WEIR__SEQ_LEN + 1]; /* "": none yet */
    uint32_t *free;
    size_t free_count;
    uint32_t count; /* made so far; `free` has room for all */
};

struct weir__base {
    struct weir__store port;            /* first */
    const struct weir__base_kind *kind; /* NULL: freed */
    struct weir__redis_options options; /* what they point to is kept */
    struct weir__redis_url url;
    struct weir__store_events events;
    char worker[WEIR__KEY_MAX];
    struct weir__conn *commands;
    struct weir__conn *wakes;    /* NULL: not of this kind */
    uint64_t connections;        /* made so far */
    struct weir__keeper *keeper; /* NULL: no topic is listened to, or the kind
                                    has none */

    bool is_closed;
    struct weir__ask *failed; /* could not be sent; reported by the timer */
    struct weir__ask **failed_end;
    ev_timer failing;

    struct weir__base_topic *topics; /* all */
    struct weir__base_topic *buckets[WEIR__TOPIC_BUCKETS];
    struct weir__base_topic *dirty;

    /* Names of packs: known once the server gave this process a number. */
    struct weir__seq_maker seqs;
    bool has_number;
    bool asks_number;
    int64_t ahead_ms; /* server time minus our monotonic time */
    struct weir__seats seats;
};

/* --- base/base.c: life and topics ----------------------------------------- */

/* WEIR_ENOMEM. */
int weir__base_open(const struct weir__base_kind *kind,
                    const struct weir__redis_options *options,
                    struct weir__base **ret_base);

/* The ops `flush`, `close` and `unsettled` of every kind. */
void weir__base_flush(struct weir__store *store);
void weir__base_close(struct weir__store *store);
size_t weir__base_unsettled(const struct weir__store_topic *topic);

/* A store or a topic of this kind. */
struct weir__base *weir__base_of(struct weir__store *store,
                                 const struct weir__base_kind *kind);
struct weir__base_topic *
weir__base_topic_of(struct weir__store_topic *topic,
                    const struct weir__base_kind *kind);

/* NULL: not open. */
struct weir__base_topic *weir__base_find(const struct weir__base *base,
                                         struct weir_slice name);

/* Open a topic, or return the one of that name; NULL when out of memory. */
struct weir__base_topic *weir__base_topic_open(struct weir__base *base,
                                               struct weir_slice name);

/* The topic has something to flush. */
void weir__base_mark(struct weir__base_topic *topic);

/* WEIR_OK, or WEIR_ESERVER where the answer to a claim contradicts itself or
 * what was asked for: then it brings nothing. */
int weir__base_check_claimed(const struct weir__claimed *claimed, size_t room);

/* Note a claim for the next flush. WEIR_ECANCELED. */
int weir__base_claim(struct weir__base_topic *topic,
                     const struct weir__claim *claim);

int64_t weir__base_now_ns(const struct weir__base *base);

/* The server's time, as far as is known. */
int64_t weir__base_server_ms(const struct weir__base *base);

/* --- base/ask.c: sending ------------------------------------------------ */

void weir__base_ask_init(struct weir__base *base);
void weir__base_ask_fini(struct weir__base *base); /* fails them now */

/* Send one command (see weir__conn_send); `ask` may be NULL. Where that is not
 * possible the ask is done a little later with the code. */
void weir__base_send(struct weir__base *base, struct weir__buf *bytes,
                     const struct weir__script *script, unsigned flags,
                     struct weir__ask *ask);

/* The same by another connection of the store. */
void weir__base_send_by(struct weir__base *base, struct weir__conn *conn,
                        struct weir__buf *bytes,
                        const struct weir__script *script, unsigned flags,
                        struct weir__ask *ask);

/* Have the ask done with an error code, a little later. */
void weir__base_fail(struct weir__ask *ask, int code);

/* Around what may call the owner: it does not close the store meanwhile. */
void weir__base_enter(struct weir__base *base);
void weir__base_leave(struct weir__base *base);

/* --- base/link.c: connections and the producer number ------------------- */

int weir__base_connect(struct weir__base *base);

/* Ask for the producer number. Jobs wait unsent until the answer comes, so
 * their patience is its patience. It is asked anew on each connection: a server
 * that lost its memory may have given the old number to somebody else. */
void weir__base_ask_number(struct weir__base *base);

/* weir:topics lists all topics; told once on each connection. */
void weir__base_announce(struct weir__base_topic *topic);

/* The same of a topic that need not be open. */
void weir__base_announce_name(struct weir__base *base, const char *name);

/* Have `ask` hear whether that was taken, as any other write would be. */
void weir__base_announce_to(struct weir__base *base, const char *name,
                            struct weir__ask *ask);

/* --- base/seat.c: names of packs, and calls that may be repeated ---------- */

/* A name that nobody else gives; needs the producer number. */
void weir__base_next_seq(struct weir__base *base, char seq[WEIR__SEQ_LEN]);

/* False when out of memory. */
bool weir__seat_take(struct weir__base *base, uint32_t *ret_seat);

/* Also when no answer came: a later call has a larger number. */
void weir__seat_leave(struct weir__base *base, uint32_t seat);

/* Two arguments: the seat and the call's number, which grows. Numbers are times
 * of names, so that seats nobody used for long can be told. */
void weir__seat_write(struct weir__buf *buf, const struct weir__base *base,
                      uint32_t seat, uint64_t number);

/* --- base/name.c: names, and what is logged ----------------------------- */

void weir__prefix_init(struct weir__prefix *prefix, struct weir_slice topic);

/* Names a topic and its keys. */
void weir__base_topic_name(struct weir__base_topic *topic,
                           struct weir_slice name);

/* Append a key, all of `names` separated by blanks, a pack's. */
void weir__prefix_key(struct weir__buf *buf, const struct weir__prefix *prefix,
                      const char *name);
void weir__prefix_keys(struct weir__buf *buf, const struct weir__prefix *prefix,
                       const char *names);
void weir__prefix_pack(struct weir__buf *buf, const struct weir__prefix *prefix,
                       const char *seq);

/* The number that a text begins with, of up to 18 digits. */
int64_t weir__digits_read(struct weir_slice digits);

/* The channel on which a worker is woken. */
void weir__wake_channel(char *buf, size_t cap, const char *worker);

/* Log what an error reply says, the same one every 5 s; callers are told only
 * that there was one. */
void weir__base_log_error(struct weir__base_topic *topic, const char *what,
                          int code, const struct redisReply *reply);

/* Log what a script set aside (scripts/lib/number.lua): the last element, if it
 * is a number at `from` or behind. Once in 5 s. */
void weir__base_log_aside(struct weir__base_topic *topic,
                          const struct redisReply *reply, size_t from);

/* Log how many verdicts were refused, once in a second. */
void weir__base_log_refused(struct weir__base_topic *topic, size_t refused);

/* Log that a claimed job was lost in this way, at once or with those of the
 * next second. `where` is a pack or an id, and fit to be printed. */
void weir__base_log_loss(struct weir__base_topic *topic, enum weir__loss loss,
                         size_t jobs, struct weir_slice where);

/* Log what was not yet, where its second is over or `is_last`. */
void weir__base_log_losses(struct weir__base_topic *topic, bool is_last);

/* --- base/follow.c: the stored options ---------------------------------- */

/* Ask for all of them. */
void weir__base_ask_options(struct weir__base_topic *topic,
                            struct weir__ask *ask);

/* Those that the user was told are of another revision: read them, tell the
 * user, then the kind. Nothing while that is under way. */
void weir__base_follow(struct weir__base_topic *topic, int64_t revision);

/* --- base/stats.c: statistics ------------------------------------------- */

struct weir__stats_ask {
    struct weir__ask ask; /* first */
    struct weir__base_topic *topic;
    /* What the answer to `ask` says; it fills `stats`, and `now_ms`. */
    int (*read)(struct weir__stats_ask *stats, const struct redisReply *reply);
    weir_stats_fn fn;
    void *arg;
    char kind[16];
    int64_t now_ms; /* of the server */
    struct weir_stats stats;
};

/* What is to be sent with the command that asks for counts: its answer is read,
 * then the lateness is asked for, then `fn` is called. WEIR_ECANCELED,
 * WEIR_ENOMEM. */
int weir__stats_new(struct weir__base_topic *topic,
                    int (*read)(struct weir__stats_ask *,
                                const struct redisReply *),
                    weir_stats_fn fn, void *arg,
                    struct weir__stats_ask **ret_stats);

/* The answer to a weir__stats_ask. */
void weir__stats_counted(struct weir__ask *ask, int code,
                         const struct redisReply *reply);

/* Tell it and free it. */
void weir__stats_finish(struct weir__stats_ask *stats, int code);

/* Read what most kinds answer: the server's time, kind, paused, scheduled,
 * ready, running, dead, whether ready is exact, and seven totals. */
int weir__stats_read(struct weir__stats_ask *stats,
                     const struct redisReply *reply);

/* The op `lateness` of every kind. */
void weir__base_lateness(struct weir__store_topic *topic,
                         const uint32_t *counts, int64_t max_us);

#endif
