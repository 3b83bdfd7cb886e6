/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_MODEL_H
#define WEIR_TEST_MODEL_H

/* What the scripts of adapters/redis do to one topic, told job by job and as
 * plainly as possible: each call changes the model and writes the answer that
 * the script has to give, as text (script_call.h says how).
 *
 * The model knows no server and no pack bytes. It owns its packs and jobs; a
 * pack stays in the model when it is gone from the server, so that calls can
 * come late or twice. Time is what `now_us` says. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/chaos/model/text.h"

enum {
    SLOTS = 256,        /* most of one pack */
    USERS = 400,        /* ids that callers may choose */
    WORKERS = 6,        /* that claim and sleep */
    BUCKETS = 20,       /* of lateness that are used */
    MINUTES = 6,        /* of lateness that are kept */
    ADD_CALL_SLOTS = 6, /* of calls that add */
    CALL_PACKS = 12,    /* most of one call */
    CALL_NODES = 1000,
    CALL_SLOTS = 1000,
    SEQ_LEN = 12
};

/* Above the due times of nodes of mixed packs, where claims of versions that do
 * not know these packs never look. */
#define MIXED_SCORE (INT64_C(1) << 45)

/* `pack` 0: "u<number>", chosen by the caller; else the id that weir makes for
 * slot `number` of that pack. */
struct id {
    uint32_t pack, number;
};

/* A range of slots of the pack numbered `pack`. */
struct node {
    uint32_t pack;
    unsigned lo, hi;
};

enum state { GONE, WAITS, RUNS };

struct job {
    struct pack *pack;
    unsigned slot;
    struct id id;
    uint32_t body;    /* number in its record */
    int64_t ms;       /* when it is due, as the call said it */
    enum state state; /* what follows is for those not GONE */
    unsigned lo, hi;  /* the node it lies in */
    int64_t due_ms;   /* its own, also while it runs */
    uint64_t token;   /* RUNS */
    unsigned ended;   /* leases that count */
    bool is_started;  /* RUNS: its start was noted */
    bool is_single;   /* RUNS: it was claimed as a node of its own */
    bool is_indexed;  /* `ids` points here */
    size_t at;        /* place in the list of all */
};

struct pack {
    uint32_t number;
    unsigned count, live;
    unsigned header_len;
    bool has_ids;
    bool is_staged;   /* on the server, for a while */
    bool is_in_use;   /* on the server, for good */
    bool is_mixed;    /* has a table of due times there */
    char form;        /* of `when`: r a p q s t */
    unsigned lead_ms; /* s t: how far its base is before the first job */
    int64_t added_ms, first_ms; /* when, and what slot 0 was due then */
    struct text crashes;        /* lines of its leases that ended and count */
    struct job jobs[];
};

struct dead {
    struct id id;
    int64_t died_ms;
    uint32_t body;
};

struct lease {
    uint64_t token;
    int64_t deadline_ms, length_ms;
    struct text held; /* "NODE@DUE " for each node of its claim, and
                         "@WORKER@TIME " */
};

struct worker {
    bool is_subscribed;    /* somebody hears its wake-ups */
    bool is_idle, is_busy; /* registered; with jobs in hand */
    int64_t wake_ms; /* INT64_MAX: never by itself; INT64_MIN: the topic is
                        paused */
};

/* Its score among the sleepers: the busy ones are behind the others. */
int64_t model_rank(const struct worker *worker);

/* What a worker noted before it ran a suspect. */
struct start {
    struct node node; /* pack 0: nothing */
    uint64_t token;
    unsigned ended;
};

struct minute {
    int64_t minute; /* -1: never used */
    long long max;
    long long buckets[BUCKETS]; /* 0: no such field */
};

/* The last call that added from here, and what it refused. */
struct call_slot {
    long long number; /* 0: none */
    struct text refusals;
};

struct counters {
    long long added, claimed, settled, retried, snoozed, failed, expired;
    long long returned, crashed, dropped, delwait, delrun, requeued;
};

struct model {
    int64_t now_us;
    bool exists, is_paused;
    int64_t mark;          /* -1: none */
    int64_t mixed_mark;    /* the same of nodes of mixed packs */
    int mixed;             /* 1: workers know such packs; 2: there are some */
    bool is_old;           /* workers claimed who do not know them */
    long long mixed_packs; /* so far */
    long long max_pending; /* 0: no bound */
    int rate;              /* as it holds: one of `rates` */
    long long parallel;    /* likewise; 0: no bound */
    bool has_rated;        /* the rate was another one before */
    long long rated;       /* then this was the last token */
    bool has_bucket;       /* what follows is on the server, in us */
    double full_us;        /* when all tokens are back */
    double visit_us;       /* when the last worker comes that waits for one */
    double high_us;        /* the last claim that found half of them there */
    long long revision;    /* of the stored options */
    unsigned server;       /* that gave out jobs last; 0: none said so */
    int64_t met_ms;        /* when it came */
    int64_t grace_ms;      /* until when no lease ends; 0: they do */
    struct counters count;
    struct worker workers[WORKERS];
    struct offer {
        long long number; /* 0: none */
        int worker;
        int64_t lease_ms, us;
    } offer;         /* the last one */
    uint64_t handed; /* token of what the last add handed over; 0: nothing */
    struct start started[WORKERS]; /* the last one of each */
    struct minute late[MINUTES];
    struct call_slot call_slots[ADD_CALL_SLOTS];
    struct job *users[USERS]; /* indexed under this id, or NULL */
    struct job **live;        /* all jobs that wait or run */
    size_t live_count, live_cap;
    struct pack **packs; /* by number, from 1 */
    size_t pack_count, pack_cap;
    struct dead *dead;
    size_t dead_count, dead_cap;
    struct lease *leases;
    size_t lease_count, lease_cap;
    struct text woken;  /* workers told since the last look, "3 1:SEQ " */
    long long relaying; /* entries in the outbox */
    uint32_t lone;      /* a pack that is added alone; 0: none */
};

void model_init(struct model *model, int64_t now_us);
void model_fini(struct model *model);

static inline int64_t model_now_ms(const struct model *model)
{
    return model->now_us / 1000;
}

/* --- calls: each writes into `answer` ----------------------------------- */

struct add_call {
    const char *kind;
    unsigned call_slot;
    long long number; /* calls of a call slot are numbered upwards, from 1 */
    bool is_lone;     /* one job, whose pack comes with the call */
    unsigned server;  /* of a lone one: its number; 0: it is not known */
    size_t count;
    struct pack *packs[CALL_PACKS];
};

void model_add(struct model *model, const struct add_call *call,
               struct text *answer);

struct claim_call {
    const char *kind;
    unsigned room, most_nodes;
    int64_t lease_ms;
    int worker; /* -1: do not register */
    bool is_registered, is_busy, is_slow;
    unsigned server;  /* its number as the worker knows it; 0: it does not */
    long long floor;  /* largest token that it was given */
    long long offer;  /* its number; 0: it makes none */
    bool says_limits; /* these, and what revision it knows */
    int rate;
    long long parallel, revision;
};

/* `ret_nodes` has room for CALL_NODES. Returns the token, 0: nothing. */
uint64_t model_claim(struct model *model, const struct claim_call *call,
                     struct text *answer, struct node *ret_nodes,
                     size_t *ret_count);

/* The worker is about to run the job of a node of one slot. */
struct start_call {
    struct node node;
    uint64_t token;
    int worker;
};

void model_start(struct model *model, const struct start_call *call,
                 struct text *answer);

/* What did the worker run when it died? */
void model_recall(struct model *model, int worker, struct text *answer);

/* One node as a worker remembers it, and which slots are settled. */
struct entry {
    struct node node;
    uint64_t token;
    bool is_whole; /* all slots */
    bool slots[SLOTS];
    bool refused[SLOTS]; /* written by model_settle */
};

/* The job in a slot of an entry; `entry` counts from 0. */
struct source {
    unsigned entry, slot;
};

struct move {
    struct pack *pack;
    bool is_retry;
    bool is_new; /* jobs that the sources add */
    struct source sources[SLOTS];
};

struct end {
    struct source source;
    struct id id;
    uint32_t body; /* 0: expired, only counted */
};

/* Jobs for another topic, in the outbox from their verdicts on: new ones, or
 * such that died. */
struct out {
    struct pack *pack;
    unsigned topic;
    bool is_dead;
    unsigned seat;
    struct source sources[SLOTS];
    bool gone[SLOTS]; /* written by model_settle, and what follows: refused */
    unsigned count;   /* of those that were not */
    bool is_recorded;
    struct text when;  /* times of the server */
    struct text entry; /* of `relay` */
};

enum { AWAY_TOPICS = 2 };

/* A node, or some of its slots, that nobody started. */
struct back {
    struct node node;
    uint64_t token;
    int64_t due_ms;
    bool is_whole;
    bool slots[SLOTS];
};

struct settle_call {
    size_t entries, moves, ends, backs, closed, outs;
    long long most_dead;
    bool wakes; /* who waits for others to end */
    struct entry entry[CALL_NODES];
    struct move move[CALL_PACKS];
    struct out out[CALL_PACKS];
    struct end end[CALL_SLOTS];
    struct back back[CALL_NODES];
    uint64_t close[CALL_NODES];
    struct claim_call offers; /* with what its worker offers itself; `offer` 0:
                                 it does not */
};

void model_settle(struct model *model, struct settle_call *call,
                  struct text *answer);

/* Another topic cannot have the jobs: they die here. */
void model_undeliverable(struct model *model, struct out *out,
                         long long most_dead, struct text *answer);

/* The outbox is done with it. */
void model_sent(struct model *model, struct out *out);

enum { BY_INDEX = -1 };

enum slot_verb { SHOW, DELETE, RESCHEDULE };

struct slot_call {
    enum slot_verb verb;
    struct id id;
    uint32_t place;   /* number of the pack, 0: dead */
    int slot;         /* or BY_INDEX */
    bool is_absolute; /* RESCHEDULE: a time, else a delay */
    int64_t ms;
};

void model_slot(struct model *model, const struct slot_call *call,
                struct text *answer);

/* Two leases that have run out at most, with so many nodes each at most. */
void model_expire(struct model *model, int64_t grace_ms);
/* Some leases that end later than they can, as a claim finds them that took so
 * many jobs under a lease of own_ms, end then. */
void model_heal_leases(struct model *model, int64_t own_ms,
                       unsigned long long jobs);
struct renewal {
    int64_t lease_ms;
    bool is_crash; /* the worker says that it crashes by SIGBUS */
};

/* Writes the tokens that are lost. */
void model_renew(struct model *model, const uint64_t *tokens, size_t count,
                 const struct renewal *renewal, struct text *answer);
void model_stats(struct model *model, size_t most_nodes, struct text *answer);
void model_lateness(struct model *model, long long max, const int *buckets,
                    const long long *counts, size_t count);

/* --- limits -------------------------------------------------------------- */

struct rate {
    const char *text; /* "": none */
    double step_us, burst;
};

enum { RATES = 7 };

extern const struct rate rates[RATES];

/* What there is for a claim. */
struct limit {
    double tokens, places, full_us;
    bool is_ahead; /* what the server has is more than can be */
};

struct next {
    int64_t us; /* when more may start; INT64_MAX: that is not known */
    bool waits; /* for a token */
};

/* As `meta` has them; "": none. */
void model_limits_text(int rate, long long parallel, struct text *ret_text);
bool model_hear_limits(struct model *model, const struct claim_call *call);
struct limit model_limit(const struct model *model);
unsigned model_room(const struct model *model, const struct limit *limit,
                    const struct claim_call *call);
/* So many jobs were claimed, others are due at `due_ms`. */
struct next model_next(struct model *model, const struct limit *limit,
                       uint64_t jobs, int64_t due_ms, bool comes);
int model_limited(const struct model *model);
/* So many jobs of a claim did not start: their tokens come back. */
void model_spare(struct model *model, const struct lease *lease,
                 long long jobs);
void model_set_limit(struct model *model, bool is_rate, long long value,
                     struct text *answer);

static inline bool model_has_limits(const struct model *model)
{
    return model->rate != 0 || model->parallel != 0;
}

/* --- managing ----------------------------------------------------------- */

/* Jobs that are dead since `died_ms` go into a pack. */
struct requeue_call {
    struct pack *pack;
    int64_t died_ms[SLOTS];
};

void model_requeue(struct model *model, const struct requeue_call *call,
                   struct text *answer);

/* Of those that died not after `latest_ms`; INT64_MAX: now. */
void model_forget(struct model *model, int64_t latest_ms, size_t most,
                  struct text *answer);
void model_purge(struct model *model, const struct node *nodes, size_t count,
                 struct text *answer);
/* Store how many jobs may wait; 0: no bound. */
void model_set(struct model *model, long long max_pending, struct text *answer);
void model_pause(struct model *model, const char *kind, bool pauses,
                 struct text *answer);

/* --- facts -------------------------------------------------------------- */

/* A new pack, its jobs still to be filled in; the model owns it. */
struct pack *model_pack_new(struct model *model, unsigned count, bool has_ids);

/* Where the index says that `id` is: number of a pack, 0: dead; false: not in
 * the index. */
bool model_place(const struct model *model, struct id id, uint32_t *ret_place);

/* The id under which a job goes. */
struct id job_id(const struct job *job);
void id_text(struct id id, char ret_text[24]);
/* When the last crashes of a job were, and whose: " MS WORKER" for each. */
void model_tell_crashes(const struct job *job, struct text *answer);

void node_text(struct node node, char ret_text[SEQ_LEN + 5]);
void seq_text(uint32_t pack, char ret_text[SEQ_LEN + 1]);

bool same_id(struct id one, struct id other);

/* Topics that take jobs of settle calls: "g", "h". */
char away_name(unsigned topic);

/* Where lo..hi of a tree splits: the size of its left part. */
unsigned left_part(unsigned lo, unsigned hi);

/* --- for the other files of the model ----------------------------------- */

enum { MOST_EXPIRED = 256, MOST_ENDED = 126 };

/* A job enters: waits in a node of its own, or in that of a whole pack. */
void model_enter(struct model *model, struct pack *pack, const bool *refused,
                 int64_t *first_ms);

/* Its call said due times in rising order, which slots of a node may have. */
static inline bool is_rising(const struct pack *pack)
{
    return pack->form == 's' || pack->form == 't';
}

/* All slots have one due time. */
static inline bool is_one_time(const struct pack *pack)
{
    return pack->form == 'r' || pack->form == 'a';
}

/* The times of `when` are delays. */
static inline bool has_delays(const struct pack *pack)
{
    return pack->form == 'r' || pack->form == 'p' || pack->form == 's';
}

/* The base of a mixed pack whose first job is due at `first_ms`, and what slots
 * lo..hi have more. */
void times_text(const struct pack *pack, unsigned lo, unsigned hi,
                int64_t first_ms, struct text *ret_text);

/* What the server keeps of them: behind the time of the add. */
void table_text(const struct pack *pack, unsigned lo, unsigned hi,
                struct text *ret_text);

/* Little endian. */
void add_little(struct text *text, uint64_t number, unsigned bytes);

/* When a job of a pack is due that enters now. */
int64_t model_due_ms(const struct model *model, const struct job *job);

/* Was the verdict refused? */
bool model_is_out(const struct settle_call *call, struct source source);

void model_die(struct model *model, struct id id, uint32_t body);

/* Where more are dead than may be. Returns how many went. */
size_t model_drop_oldest(struct model *model, long long most);

/* model_outbox.c: what a settle call has for other topics. */
void model_record(struct model *model, struct settle_call *call,
                  struct text *answer);

/* A job leaves for good. */
void model_drop(struct model *model, struct job *job);

/* The node splits so that slots of different `fates` are in different nodes,
 * each as large as the tree allows. */
void model_split(struct pack *pack, unsigned lo, unsigned hi,
                 const bool fates[SLOTS]);

/* The nodes (their first jobs) for which `wanted` says yes, in the order of
 * their scores; the list is the caller's, to be freed. */
struct job **model_nodes(const struct model *model,
                         bool (*wanted)(const struct job *job, int64_t arg),
                         int64_t arg, size_t *ret_count);

struct lease *model_lease(const struct model *model, uint64_t token);
void model_lease_end(struct model *model, uint64_t token);

bool model_runs_under(const struct model *model, uint64_t token);

/* The oldest first. */
void model_sort_dead(struct model *model);

/* Workers know mixed packs, or none was here yet. */
bool model_takes_mixed(const struct model *model);

/* Up to when `ready` counts the jobs of a pack. */
int64_t model_mark(const struct model *model, const struct pack *pack);

/* The node does not lie across that. */
void model_split_at_mark(const struct model *model, struct pack *pack,
                         unsigned lo, unsigned hi);

/* Give back at most `most` nodes of a token; returns how many nodes. After a
 * crash its jobs are suspects, or what suspects had started counts.
 * *ret_spared: suspects that had not. */
size_t model_give_back(struct model *model, uint64_t token, size_t most,
                       bool is_crash, long long *ret_jobs,
                       long long *ret_spared);
bool model_wake(struct model *model, int64_t due_ms);

/* How many ms behind `at_ms`, when there is something to do, a worker comes
 * that falls asleep: others may come before it. Where it has slow jobs in hand
 * it leaves `due_ms` to one that has none. */
int64_t model_behind(struct model *model, struct worker *worker, int64_t at_ms);
int64_t model_behind_idle(struct model *model, struct worker *worker,
                          int64_t due_ms);

/* Hand the only job of a call, which just entered, to who offered itself.
 * False: it waits. */
bool model_hand_over(struct model *model, const struct add_call *call);

/* The worker offers itself with a verdict, unless a claim would do more. */
void model_offer(struct model *model, const struct claim_call *call,
                 struct text *answer);

/* A job waits that is due. */
bool model_has_ready(const struct model *model);

/* realloc that ends the test when there is no memory. */
void *list_room(void *list, size_t count, size_t *cap, size_t size);

#endif
