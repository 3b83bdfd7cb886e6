/* SPDX-License-Identifier: MIT */
#ifndef WEIR_STORE_STORE_H
#define WEIR_STORE_STORE_H

/* A reactor's store on a server: connections, requests and their answers,
 * topics and which of them have something to flush, names on the server, the
 * stored options, statistics. What the rules of a kind of topic add is in
 * store/kind.h, what is out under a token in store/lease.h. */

#include <ev.h>
#include <hiredis/hiredis.h>

#include "adapters/redis/node.h"
#include "adapters/redis/redis.h"
#include "adapters/redis/reply.h"
#include "adapters/redis/resp.h"
#include "adapters/redis/store/place.h"

struct weir__redis;
struct weir__store_topic;
struct weir__kind;
struct weir__keeper;
struct weir__lease;
struct weir__relays;
struct weir__sentinels;
struct weir__cluster;

enum {
    WEIR__TOPIC_BUCKETS = 4096, /* a power of two */
    WEIR__PLACE_BUCKETS = 256,
    WEIR__KEY_MAX = 100 /* "PREFIX:{" topic "}:p:" seq, and some more */
};

/* What is due later only somebody else can have written: the year 2286. */
#define WEIR__DUE_MAX_MS INT64_C(9999999999999)

/* One answer that is waited for; the first member of what is sent with it. */
struct weir__request {
    struct weir__redis *store;
    /* Runs exactly once, never inside an op (except close), and frees the
     * request. `reply` as in weir__reply_fn. */
    void (*done)(struct weir__request *request, int code,
                 const struct redisReply *reply);
    struct weir__request *next; /* while it waits to be failed */
    int code;
};

/* What keys of a topic begin with: "PREFIX:{name}:", see url.h. */
struct weir__prefix {
    char text[WEIR__KEY_MAX];
    size_t len;
};

/* Claimed jobs do not run although they have no verdict, verdicts have no
 * effect, or jobs that verdicts brought do not reach their topic. */
enum weir__loss {
    WEIR__LOSS_GONE,
    WEIR__LOSS_MALFORMED,
    WEIR__LOSS_VERDICTS,
    WEIR__LOSS_OUTBOX,
    WEIR__LOSSES
};

/* One for each name and kind. */
struct weir__store_topic {
    struct weir__redis *store;
    struct weir__place *place; /* of its keys */
    const struct weir__kind *kind;
    struct weir__store_topic *next; /* of the store */
    struct weir__store_topic *next_in_bucket;
    struct weir__store_topic *next_dirty; /* has something to flush */
    bool is_dirty;
    bool is_urgent; /* it does not wait until the server has less to do */
    char name[WEIR_MAX_TOPIC + 1];
    struct weir__prefix prefix;
    const struct weir__options *options; /* as it is served */
    bool is_served; /* else these are the default, and what is stored counts */
    void *user;     /* of events; NULL: nobody listens */
    uint64_t registered;   /* connection on which it entered PREFIX:topics */
    int64_t registered_ns; /* and when */
    struct weir__listing {
        struct weir__request request;
        struct weir__store_topic *topic;
        int64_t asked_ns;
        bool is_asked;
        bool is_done; /* it is there, or was waited for long enough */
        struct weir__request *waiting; /* for that, in their order */
    } listing;

    int64_t revision;  /* of the stored options that the user knows */
    bool is_following; /* reading a newer one */
    struct weir__options_request {
        struct weir__request request;
        struct weir__store_topic *topic;
        int64_t revision;
    } follow;

    /* What is stored and concerns who adds. */
    struct weir__limits {
        struct weir__request request;
        struct weir__store_topic *topic;
        bool is_asked;
        uint64_t connection; /* on which they were read; 0: none, read again */
        int64_t read_ns;
        size_t max_body;      /* bytes */
        uint32_t durability;  /* WEIR__DURABILITY_... */
        char unique[128 + 1]; /* path in the body; is_unique: keys are there */
        bool is_unique;
        char key[128 + 1]; /* the same of keys that take turns */
        bool has_key;
        struct weir__key_rule rule;
    } limits;

    bool wants_claim;
    bool may_sleep; /* registered as an idle worker, perhaps */
    /* And then as the worker's name with this behind it, or nothing. */
    const char *sleeps_for;
    struct weir__claim claim;
    uint64_t last_token;    /* the largest that claims were given */
    uint64_t token_of;      /* connection that brought one last */
    int64_t claims_from_ns; /* no claims before */
    struct weir__put_off_request {
        struct weir__request request;
        struct weir__store_topic *topic;
    } put_off;
    struct weir__lease *leases;  /* all that are not ended */
    _Atomic int64_t kept_ns;     /* when the keeper renewed them; 0: never */
    size_t unsettled;            /* verdicts */
    struct weir__relays *outbox; /* NULL: the kind has none */
    struct weir__forgo_request {
        struct weir__request request;
        struct weir__store_topic *topic;
        size_t count; /* of verdicts that nobody will answer; 0: not queued */
    } forgone;
    int64_t error_ns; /* when an error of the server was last logged */
    char error[32];   /* and how it begins */
    struct {
        int64_t ns;  /* when it was last logged */
        size_t jobs; /* or verdicts, since then */
    } losses[WEIR__LOSSES];
    uint64_t aside;   /* set aside and not logged */
    int64_t aside_ns; /* when that was logged; 0: never */
};

/* Places of calls that may have to be repeated: the server remembers the last
 * call of each (scripts/lib/call_slot.lua). The free ones are a stack, so that
 * few are used. The first name that this process gives makes them its own, also
 * where the server forgot to whom it had given which number. */
struct weir__call_slots {
    char name[WEIR__SEQ_LEN + 1]; /* "": none yet */
    uint32_t *free;
    size_t free_count;
    uint32_t count; /* made so far; `free` has room for all */
    uint64_t random;
};

/* In place of a slot of an add's answer: the server has a later call of this
 * call slot, so nothing of this one is stored (call_slot.lua). */
#define WEIR__NOT_STORED (-4)

/* Workers tell that they are there: each every 5 s by one small command, from
 * when it listens to a topic, while there is a connection, and not while the
 * one before is not answered. What one tells is a field of a hash in the slot
 * of the list of topics (scripts/store/beat.lua). */
struct weir__presence {
    struct weir__request request; /* first */
    ev_timer beat;
    char worker[WEIR__KEY_MAX + 20]; /* the field: its name and a number by
                                        chance, since two may have one name */
    int64_t opened_ns;
    int64_t since_ms; /* the same by the server; 0: not known yet */
    bool is_asked;    /* a beat is not answered yet */
    bool has_beaten;  /* there may be something to remove */
    bool is_refused;  /* which was logged */
};

/* What the topics of one kind share in a store; begins so. */
struct weir__shared {
    struct weir__redis *store;
};

struct weir__redis {
    struct weir__store port;            /* first */
    struct weir__redis_options options; /* what they point to is kept */
    struct weir__redis_url url;
    struct weir__store_events events;
    char worker[WEIR__KEY_MAX];
    struct weir__sentinels *sentinels;   /* NULL: the address is the server's */
    const struct weir__locator *locator; /* of all connections; likewise */
    struct weir__server *servers; /* the first one is at the url's address */
    struct weir__cluster *cluster;
    struct weir__place *places[WEIR__PLACE_BUCKETS];
    struct weir__place *moving;       /* those that are not settled */
    size_t waiting;                   /* places that are not settled */
    struct weir__place *topics_place; /* of the list of topics */
    uint64_t connections;             /* made so far, to whatever server */
    struct weir__keeper *keeper;      /* NULL: no topic is listened to */
    size_t unconfirmed;               /* bytes of adds, by whatever server */

    bool is_closed;
    struct weir__request *failed; /* could not be sent; the timer reports */
    struct weir__request **failed_end;
    ev_timer failing;
    ev_timer again; /* a turn for what a flush could not do */

    struct weir__store_topic *topics; /* all */
    size_t topic_count;
    int64_t register_ns; /* none of them is told again before */
    struct weir__store_topic *buckets[WEIR__TOPIC_BUCKETS];
    struct weir__store_topic *found; /* the last one by its name, or NULL */
    struct weir__store_topic *dirty, **dirty_end; /* oldest first */
    const struct weir__store_topic *flushed;      /* the last one */
    struct weir__shared *shared[WEIR__KINDS]; /* NULL: no topic of the kind */

    /* Names of packs: none before the first connection, which tells the number
     * of this producer and the time. */
    struct weir__seq_maker seqs;
    struct weir__call_slots call_slots;
    struct weir__presence presence;
    struct weir__stats_request *counting; /* wait for the workers' answer */
};

/* --- store/store.c: life and topics --------------------------------------- */

/* NULL: not open. The first of that name is the one that requests mean. */
struct weir__store_topic *weir__redis_find(struct weir__redis *store,
                                           struct weir_slice name);

/* Open a topic of a kind, or return the one that is open; NULL when out of
 * memory. What requests by that name mean stays as it is. */
struct weir__store_topic *weir__topic_open(struct weir__redis *store,
                                           const struct weir__kind *kind,
                                           struct weir_slice name);

/* Requests by its name mean this topic from now on. */
void weir__topic_put_first(struct weir__store_topic *topic);

/* The ops `flush` and `close`. */
void weir__redis_flush(struct weir__store *port);
void weir__redis_close(struct weir__store *port);
extern const struct weir__store_ops weir__redis_ops; /* store/ops.c */

/* What topics of the kind share; NULL: none is open. */
struct weir__shared *weir__redis_shared(const struct weir__redis *store,
                                        const struct weir__kind *kind);

/* The topic has something to flush. */
void weir__topic_mark(struct weir__store_topic *topic);

/* Behind an outage: renewals go first, claims when other workers had the time
 * for theirs, half a lease and 1 s at least. */
void weir__topic_calm(struct weir__store_topic *topic);

/* This worker as it stands in `idle`, as one argument. */
void weir__topic_write_sleeper(struct weir__buf *buf,
                               const struct weir__store_topic *topic);

/* This worker claims no more: wake-ups are for others. */
void weir__topic_leave_idle(struct weir__store_topic *topic);

/* So many verdicts were answered for good, `refused` of them in vain: the user
 * is told. Outside of ops. */
void weir__topic_settled(struct weir__store_topic *topic, size_t count,
                         size_t refused);

/* A settle was answered that so many dead jobs went for. Likewise. */
void weir__topic_evicted(const struct weir__store_topic *topic, int64_t count);

/* So many will not be answered: the same a little later. Also inside of ops. */
void weir__topic_forgo(struct weir__store_topic *topic, size_t count);

/* WEIR_OK, or WEIR_ESERVER where the answer to a claim contradicts itself or
 * what was asked for: then it brings nothing. */
int weir__claimed_check(const struct weir__claimed *claimed, size_t room);

int64_t weir__redis_now_ns(const struct weir__redis *store);

/* The time of the topic's server, as far as is known. */
int64_t weir__topic_server_ms(const struct weir__store_topic *topic);

/* --- store/attempts.c ----------------------------------------------------- */

/* Before the record of a run is written anew: put into it how the run ended,
 * where it was neither done nor put off, behind `crashes` leases that ended
 * before the claim. The record borrows from `buf`, which is overwritten;
 * without memory it stays as it is. May be called from the keeper's thread. */
void weir__attempts_note(const struct weir__redis *store,
                         const struct weir__run *run, uint32_t crashes,
                         struct weir__record *record, struct weir__buf *buf);

/* --- store/request.c: sending --------------------------------------------- */

void weir__redis_requests_init(struct weir__redis *store);
void weir__redis_requests_fini(struct weir__redis *store); /* fails them now */

/* What the answer to a repeat says of it, see conn.h. */
enum weir__replayed weir__redis_judge(const struct weir__script *script,
                                      const struct redisReply *reply,
                                      size_t elements);

/* Call what the program gave with an add; outside of ops. */
void weir__topic_added(const struct weir__store_topic *topic, weir_added_fn fn,
                       int code, const char *id, void *arg);

/* Have the request done a little later, with this code and without a reply. */
void weir__redis_fail(struct weir__request *request, int code);

/* Have a turn of the loop, and a flush with it, though nothing else comes. */
void weir__redis_flush_again(struct weir__redis *store);

/* Around what may call the owner: it does not close the store meanwhile. */
void weir__redis_enter(struct weir__redis *store);
void weir__redis_leave(struct weir__redis *store);

/* --- store/link.c: connections -------------------------------------------- */

int weir__redis_connect(struct weir__redis *store);

/* Connect to another server, the last of the list then. WEIR_ENOMEM. */
int weir__link_open(struct weir__redis *store,
                    const struct weir__redis_host *host);
/* Close the connections to one that nothing is waited for from, and free it. */
void weir__link_end(struct weir__server *server);
void weir__link_flush(struct weir__redis *store);
void weir__link_close(struct weir__redis *store); /* all connections */
void weir__link_fini(struct weir__redis *store);

/* Open a connection beside that of commands, with what `conn` leaves 0 of loop,
 * url, locator, name, log, lead and depth: to one server, or to whatever server
 * serves a place. What a server of a cluster redirects ends with WEIR_ECONN, or
 * at a place's closes the connection, which finds the server anew. */
int weir__link_beside(struct weir__server *server,
                      struct weir__conn_options *conn,
                      struct weir__conn **ret_conn);
int weir__link_beside_place(struct weir__place *place,
                            struct weir__conn_options *conn,
                            struct weir__conn **ret_conn);

/* A place is settled again, at another server perhaps. */
void weir__link_arrived(struct weir__place *place, bool is_other);

/* What listens to topics of the place may have something to claim. */
void weir__link_wake(const struct weir__place *place);

/* A topic is listened to. */
void weir__link_listen(struct weir__store_topic *topic);

/* Somebody else gives names with our producer number: another one, by chance,
 * until the next connection. */
void weir__redis_number_by_chance(struct weir__redis *store);

/* --- store/listing.c: the list of topics ---------------------------------- */

/* PREFIX:topics lists all topics; told on each connection, and every 10 min.
 * False where the list is at another server and has not got the topic yet: what
 * makes the topic waits, and the topic is flushed again. A program may end with
 * the answer to its first job, and nobody would know of the topic. */
bool weir__topic_register(struct weir__store_topic *topic);

/* The request, which was answered, made the topic: it is done with WEIR_OK as
 * soon as the list has the topic. Outside of ops. */
void weir__topic_await_listed(struct weir__store_topic *topic,
                              struct weir__request *request);

/* With each flush of the topic: what waits so does not wait for ever. */
void weir__topic_flush_listed(struct weir__store_topic *topic);

/* Add to the list, each time, a topic that need not be open. */
void weir__redis_register(struct weir__redis *store, struct weir_slice name);

/* Take it off the list; whoever uses the topic next enters it anew. */
void weir__topic_unregister(struct weir__store_topic *topic,
                            struct weir__request *request);

/* --- store/policy.c: whether servers evict -------------------------------- */

/* Ask each connected server; a policy that drops keys is logged, and its end,
 * once each. */
void weir__policy_ask(struct weir__redis *store);

/* --- store/presence.c: which workers are there ---------------------------- */

void weir__presence_init(struct weir__redis *store);

/* A topic is listened to. */
void weir__presence_begin(struct weir__redis *store);

/* The store is about to be closed, its connections still stand. */
void weir__presence_leave(struct weir__redis *store);

/* The op `workers`. */
int weir__redis_workers(struct weir__store *port, weir_workers_fn fn,
                        void *arg);

/* --- store/names.c: names, call slots, and what is logged ----------------- */

/* A name that nobody else gives, of the time of the topic's server, but for
 * that it is later than all before; not before the first connection. */
void weir__topic_next_seq(const struct weir__store_topic *topic,
                          char seq[WEIR__SEQ_LEN]);

/* False when out of memory. */
bool weir__call_slot_take(struct weir__redis *store, uint32_t *ret_call_slot);

/* Also when no answer came: a later call has a larger number. */
void weir__call_slot_leave(struct weir__redis *store, uint32_t call_slot);

/* Tells a call from one of a copy of this process, such as a restored machine:
 * random, and never asked of the server. */
uint32_t weir__call_nonce(struct weir__redis *store);

/* Two arguments: the call slot and the call's number, which grows, with the
 * nonce behind a point. Numbers are times of names, so that call slots that
 * nobody used for long can be found. */
void weir__call_slot_write(struct weir__buf *buf,
                           const struct weir__redis *store, uint32_t call_slot,
                           uint64_t number, uint32_t nonce);

/* PREFIX is the store's. */
void weir__prefix_init(struct weir__prefix *prefix,
                       const struct weir__redis *store,
                       struct weir_slice topic);

/* Names a topic, which knows its store, and its keys. */
void weir__topic_name(struct weir__store_topic *topic, struct weir_slice name);

/* Append a key, all of `names` separated by blanks, a pack's, that of a pack
 * for another topic. Nobody ever writes "absent": a script that may empty a key
 * and need it once more has that key as well, behind those that it knows. A
 * server refuses the script then while its slot moves. It would begin one whose
 * keys are all there, and end it in the middle, at the key that is gone. */
void weir__prefix_key(struct weir__buf *buf, const struct weir__prefix *prefix,
                      const char *name);
void weir__prefix_keys(struct weir__buf *buf, const struct weir__prefix *prefix,
                       const char *names);
void weir__prefix_pack(struct weir__buf *buf, const struct weir__prefix *prefix,
                       const char *seq);
void weir__prefix_outgoing(struct weir__buf *buf,
                           const struct weir__prefix *prefix, const char *seq);

/* Begin a command of `argc` words: its name, and the key that it is about. */
void weir__prefix_command(struct weir__buf *buf,
                          const struct weir__prefix *prefix, size_t argc,
                          const char *name, const char *key);

/* The number that a text begins with, of up to 18 digits. */
int64_t weir__digits_read(struct weir_slice digits);

/* Append the key of the list of topics. */
void weir__topics_key(struct weir__buf *buf, const struct weir__redis *store);

/* The channel on which the store's worker is woken by a server. */
void weir__wake_channel(char *buf, size_t cap,
                        const struct weir__server *server);

/* Log what an error reply says, the same one every 5 s; callers are told only
 * that there was one. */
void weir__topic_log_error(struct weir__store_topic *topic, const char *what,
                           int code, const struct redisReply *reply);

/* Log what a script set aside (scripts/lib/number.lua): the last element, if it
 * is a number at `from` or behind. Once in 5 s. */
void weir__topic_log_aside(struct weir__store_topic *topic,
                           const struct redisReply *reply, size_t from);

/* Log that jobs or verdicts were lost in this way, at once or with those of
 * the next second. `where` is a pack or an id, and fit to be printed. */
void weir__topic_log_loss(struct weir__store_topic *topic, enum weir__loss loss,
                          size_t jobs, struct weir_slice where);

/* Log what was not yet, where its second is over or `is_last`. */
void weir__topic_log_losses(struct weir__store_topic *topic, bool is_last);

/* --- store/topic.c: requests that every kind has, the stored options ------ */

int weir__topic_pause(struct weir__store_topic *topic, bool is_paused,
                      weir_code_fn fn, void *arg);
/* WEIR_EINVAL, and a line says why: a key of a list or stream that is not in
 * the topic's slot of a cluster. */
int weir__topic_check_key(const struct weir__store_topic *topic,
                          struct weir_slice key);
int weir__topic_set(struct weir__store_topic *topic,
                    const struct weir__setting *settings, size_t count,
                    weir_code_fn fn, void *arg);
int weir__topic_settings(struct weir__store_topic *topic, weir_setting_fn fn,
                         void *arg);
int weir__topic_kind(struct weir__store_topic *topic, weir_kind_fn fn,
                     void *arg);
int weir__redis_topics(struct weir__store *store, weir_topics_fn fn, void *arg);
/* WEIR_EEXISTS: it holds jobs or is served, and stays. */
int weir__topic_drop(struct weir__store_topic *topic, weir_code_fn fn,
                     void *arg);

/* Those that the user was told are of another revision: read them, tell the
 * user, then the kind. Nothing while that is under way. */
void weir__topic_follow(struct weir__store_topic *topic, int64_t revision);

/* --- store/limits.c: what concerns who adds ------------------------------- */

/* False: not known yet. The topic is flushed when they were read, or its adds
 * are failed. */
bool weir__limits_known(struct weir__store_topic *topic);

/* --- store/stats.c: statistics -------------------------------------------- */

struct weir__stats_request {
    struct weir__request request; /* first */
    struct weir__store_topic *topic;
    weir_stats_fn fn;
    void *arg;
    char kind[16];
    int64_t now_ms; /* of the server */
    struct weir_stats stats;
    struct weir__waiting_parts *parts; /* owned; store/unserved.c */
    struct weir__stats_request *next;  /* that waits for the workers, too */
    char unserved[3 * WEIR_MAX_ID + 8];
};

/* The rule `stats` of a kind whose script needs nothing but keys. */
int weir__topic_stats(struct weir__store_topic *topic, weir_stats_fn fn,
                      void *arg);

/* What is to be sent with the command that asks for counts: its answer is read,
 * names and values (delay/stats.lua), then the lateness is asked for, then `fn`
 * is called. NULL: out of memory. */
struct weir__stats_request *weir__stats_new(struct weir__store_topic *topic,
                                            weir_stats_fn fn, void *arg);

/* The answer to a weir__stats_request. */
void weir__stats_counted(struct weir__request *request, int code,
                         const struct redisReply *reply);

/* Ask for the lateness, which is what comes last. */
void weir__stats_ask_lateness(struct weir__stats_request *stats);

/* Tell it and free it. */
void weir__stats_finish(struct weir__stats_request *stats, int code);

/* --- store/unserved.c: groups that no worker serves ----------------------- */

/* Keep what stats.lua says of the groups that wait. WEIR_ENOMEM. */
int weir__unserved_read(struct weir__stats_request *stats,
                        const struct redisReply *reply);

/* With `parts`: have the workers asked, then for the lateness. */
void weir__unserved_ask(struct weir__stats_request *stats);

/* The op `lateness`. */
void weir__topic_lateness(struct weir__store_topic *topic,
                          const uint32_t *counts, int64_t max_us);

#endif
