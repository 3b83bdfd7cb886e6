/* SPDX-License-Identifier: MIT */
#ifndef WEIR_DELAY_PRIVATE_H
#define WEIR_DELAY_PRIVATE_H

/* What the files of delay topics share; delay/delay.c has the table of rules.
 *
 * The life of a job, in the order in which it happens:
 *
 *           +------- retry, snooze, given back, lease ran out -------+
 *           v                                                        |
 *   add --> wait --claim--> run --handler--> settle --> (held back) -+--> gone
 *           ^                                   |
 *           +------------- requeue ------------ dead
 *
 *   add      collect.c collects jobs, of which plan.c makes packs; add.c
 *            stores these and calls the script `add`, which puts a pack's root
 *            node into `wait`, scored by its due time.
 *   claim    claim.c: the script moves due nodes from `wait` to `run`, under a
 *            token: struct weir__delay_lease. fetch.c gets their packs and
 *            makes runs of these for core.
 *   run      core calls the handler. Of a suspect start.c notes that first.
 *            Meanwhile delay.c prolongs the lease, on the loop or by the keeper
 *            (store/keeper.h), which settles what is overdue (overdue.c).
 *   settle   settle.c takes the outcome, a bit in its node or bytes to be
 *            written; settle_call.c puts a call together, verdicts.c sends it.
 *            What the server does not take for a while backlog.c sends again.
 *   gone     the script takes the slot out of `run` and `ids`; a pack goes with
 *            its last slot.
 *   dead     its record is in `rec` until requeue.c or purge.c comes; with
 *            on_dead it goes to another topic by the outbox (store/outbox.h).
 *
 * The lease ends when its last verdict was answered; until then all of this is
 * under its token, and a verdict without it is refused. job.c and page.c look
 * at jobs where they are. */

#include "adapters/redis/delay/plan.h"
#include "adapters/redis/store/kind.h"
#include "adapters/redis/store/outbox.h"
#include "core/block_cache.h"

struct weir__delay;

enum {
    WEIR__SLOTS_PER_CALL = 1024, /* most slots that one script call touches */
    WEIR__NODES_PER_CALL = 400,  /* most nodes: these cost more */
    WEIR__ADD_COSTS = 4,         /* calls whose cost is kept */
    /* Of what one settle call writes. A run that has more goes alone, so that
     * it is the only one to fail where the server takes no more than 1 MiB. */
    WEIR__BYTES_PER_CALL = 512 * 1024,
    WEIR__SETTLE_LISTS = 6, /* arguments of a settle call that are lists */
    WEIR__NODE_STATES = 256 /* of a node: the fraction of its score */
};

/* What is on top of a due time in `wait` where the pack is mixed: its slots are
 * due one after the other (scripts/lib/mixed.lua). */
#define WEIR__MIXED_MS (INT64_C(1) << 45)
/* And of lanes (scripts/lib/lanes.lua). */
#define WEIR__LANED_MS (INT64_C(3) << 44)

/* One claimed node. */
struct weir__claimed_node {
    struct weir__request start; /* of a suspect: its node has one slot */
    struct weir__run *starting; /* NULL: none is on its way */
    char name[WEIR__NODE_LEN];
    uint32_t size;  /* slots */
    uint32_t lo;    /* first slot */
    uint32_t pack;  /* index into its lease's packs */
    uint32_t alone; /* slot + 1: only this one is here; 0: all */
    uint32_t ended; /* leases that count and are not in the record yet */
    struct weir__buf crashes; /* of a suspect that started: the attempts of its
                                 run's record, with these */
    int64_t due_ms;           /* server time; of its first slot */
    bool is_mixed;            /* its pack is */
    bool lost_due;            /* nothing tells when its jobs are due */
    bool is_laned;        /* its jobs are of a lane (scripts/lib/lanes.lua) */
    const uint8_t *table; /* of its slots, in its lease; NULL: all are due
                             then */
    uint32_t verdicts;    /* collected since the last flush */
    uint32_t backs;       /* likewise: runs that go back unstarted */
    uint32_t endings;     /* of these what is written somewhere else */
    size_t bytes;         /* of that, about */
    struct weir__asker *asker; /* about its one verdict, or job that goes back;
                                  NULL: there may be several */
    bool is_dropped;   /* its pack is gone: all slots go, without a verdict */
    uint64_t slots[4]; /* those of the verdicts, one bit each */
    uint64_t back[4];  /* those of the runs that go back */
    uint64_t unstarted[4]; /* of both those that did not start */
    struct weir__delay_lease *lease;
    struct weir__claimed_node *next; /* in the topic's list of touched nodes */
    uint32_t call;                   /* the settle call that takes it */
    uint32_t index;                  /* and where in it */
    /* Until the flush: further verdicts, where one call would be too large. A
     * part is a node like this one with slots of its own. */
    struct weir__claimed_node *part;
};

/* One pack as it was fetched: runs, ids and the bytes they point into, all in
 * one allocation. */
struct weir__batch {
    size_t size; /* of the allocation */
    size_t header_len;
    struct weir__run *runs;
    size_t run_count;
    struct weir_slice *ids; /* one for each slot; NULL: they are made */
    char (*made)[WEIR__MADE_ID_LEN + 1]; /* one for each run */
    int64_t added_ms; /* when the pack was; what moved since says it itself */
    uint8_t *bytes;
};

struct weir__fetched {
    size_t jobs;  /* of all nodes in this pack */
    uint32_t end; /* behind the last slot that the nodes name */
    const struct weir__claimed_node *first;
    struct weir__pack pack;    /* of the batch's bytes; no slots: unreadable */
    struct weir__batch *batch; /* NULL: not fetched, gone, or left alone */
    bool is_gone;
    uint32_t call; /* the last settle call that named the pack */
    uint32_t key;  /* and as which of its keys */
};

struct weir__delay_lease {
    struct weir__lease base;      /* first */
    struct weir__request request; /* of the fetch */
    struct weir__delay_topic *topic;
    struct weir__delay_lease *next_done; /* of the topic; until the flush */
    bool is_done;   /* all of it came back, and the flush took the verdicts */
    size_t settles; /* calls that name it and are not answered for good */
    size_t in_backlog; /* of these, which the server did not take at first */
    int64_t time_us;   /* server time of the claim */
    int64_t claimed_ns;
    uint64_t connection; /* of the server, that brought it */
    size_t jobs;
    bool by_fetcher; /* fetched by one of the store's fetchers */
    bool is_handed;  /* its job came without a claim */
    bool is_adopted; /* another process claimed it, and renews it */
    size_t out;      /* runs that core has */
    size_t node_count;
    size_t pack_count;
    struct weir__fetched *packs; /* behind the nodes; then their tables */
    uint8_t *tables_end;         /* of what is used of them */
    struct weir__claimed_node nodes[];
};

struct weir__adds;
struct weir__adopted;
struct weir__early_fetch;
struct weir__settle;

struct weir__delay_topic {
    struct weir__store_topic base; /* first */
    struct weir__delay *shared;
    uint32_t max_dead;
    uint32_t number; /* topics of the store are numbered from 1 */
    char
        limits[160]; /* as it is served, for scripts/lib/limits.lua; "": none */
    bool is_parallel;     /* one of them bounds how many run */
    bool has_rate;        /* one of them bounds how many start */
    bool tells_limits;    /* the next claim does, though there are none */
    uint64_t limits_told; /* connection of the last one that did */
    char on_dead[WEIR_MAX_TOPIC + 1]; /* where dead jobs go; "": nowhere */
    struct weir__delay_topic *on_dead_topic; /* NULL: not open yet */
    struct weir__relays outbox;
    int64_t limits_revision; /* of the stored options, as adds are told */

    struct weir__adds *adds;            /* being collected, oldest first */
    struct weir__adds *last_adds;       /* NULL: none is */
    struct weir__adds *sending;         /* of which a part waits for answers */
    size_t add_calls;                   /* on their way */
    int64_t add_costs[WEIR__ADD_COSTS]; /* ns that a slot of the last large ones
                                           cost the server; 0: not known */
    size_t oldest_cost;                 /* of these */

    struct weir__early_fetch *early; /* sent with the claim that is out */
    char early_seq[WEIR__SEQ_LEN];   /* of a pack that is to be fetched */
    bool has_early;

    bool is_adopting; /* claims take what others claimed, in this order */
    struct weir__adopted *adopted;

    int64_t offer_ns;    /* when the last claim that offered left; 0: none did,
                            or it was taken */
    bool is_stopped;     /* no claim offers any more */
    bool is_withdrawing; /* until what was published before has come */
    struct weir__withdrawal {
        struct weir__request request;
        struct weir__delay_topic *topic;
    } withdrawal;
    bool has_recalled; /* what ran when this worker died */
    bool has_ticks;    /* of schedules, as far as this worker knows */
    int64_t mended_ns; /* when ticks were looked after, monotonic */
    int64_t time_us;   /* the server's clock at the last claim */
    bool is_idle;      /* registered as an idle worker */
    bool warned_newer; /* about records of a newer version */
    size_t pack_bytes; /* what a fetched pack costs, running mean */

    /* Nodes with verdicts to flush, in order. */
    struct weir__claimed_node *touched, **touched_end;
    size_t touched_slots;           /* of them; a suspect fills a call */
    size_t settles_out;             /* calls that are on their way */
    struct weir__items endings;     /* runs that are not just done */
    uint32_t calls;                 /* settle calls so far */
    struct weir__delay_lease *done; /* nothing of them is out any more */

    struct weir__settle *backlog, **backlog_end; /* calls, delay/backlog.h */
    size_t backlog_cost;                         /* also of those sent again */
    ev_timer backlog_timer;  /* when the first goes out again */
    int64_t backlog_ms;      /* the wait before the last one */
    bool is_refused;         /* writes were not taken the last time */
    const char *backlog_why; /* the last call was not taken */
};

struct weir__delay {
    struct weir__redis *store; /* as in struct weir__shared */
    size_t collected;          /* bytes of jobs that are not answered yet */
    uint32_t topics_made;
    uint64_t random; /* of jitter */

    struct weir__buf scratch[WEIR__SETTLE_LISTS]; /* lists of one settle call */
    struct weir__planned_packs planned_packs;
    struct weir__block_cache batches; /* freed ones */
    struct weir__adds *spare_adds;
    size_t spare_count;
};

struct weir__delay_topic *weir__delay_topic_of(struct weir__store_topic *topic);

/* Jobs that are added together. */
struct weir__adds {
    struct weir__request request; /* fails those that no call could take */
    struct weir__delay_topic *topic;
    struct weir__adds *next_spare;
    struct weir__adds *next_adds; /* of the topic */
    struct weir__items items;
    size_t refs;         /* the flush, and one for each call */
    size_t next;         /* the first that is in no call */
    size_t end;          /* once arranged: those behind it have their codes */
    bool is_mixed;       /* of several groups */
    bool is_uneven;      /* not all due at the same time */
    bool has_durability; /* some say where they have to be */
    bool has_made;       /* some bring an id that weir made elsewhere */
    bool has_keys;       /* some were given a unique key, or are of a lane */
};

/* Groups of their items: bits. */
enum {
    WEIR__GROUP_ABSOLUTE = 1,
    WEIR__GROUP_MADE = 2,
    WEIR__GROUP_DURABILITY = 8,  /* from this one on; 0: the server's alone */
    WEIR__GROUP_UNIQUE = 1 << 20 /* it has a unique key */
};

static inline uint32_t weir__group_durability(uint64_t group)
{
    return (uint32_t)(group & (WEIR__GROUP_UNIQUE - 1)) >>
           WEIR__GROUP_DURABILITY;
}

/* --- delay/arrange.c ------------------------------------------------------ */

/* What the server says of each sort of durability, replicas and disks, that
 * some of them have. False: it is being asked. */
bool weir__adds_check(const struct weir__adds *adds, int ret_codes[2]);

/* Bring them into the order in which they leave. Returns how many leave: those
 * behind have their codes. */
size_t weir__adds_arrange(struct weir__adds *adds, const int codes[2]);

/* --- delay/collect.c ------------------------------------------------------ */

int weir__delay_add(struct weir__store_topic *topic,
                    const struct weir__new_job *job, weir_added_fn fn,
                    void *arg);

/* Its memory serves others after the last reference. */
void weir__adds_unref(struct weir__adds *adds);

/* Free what was kept for others. */
void weir__adds_fini(struct weir__delay *shared);

/* --- delay/add.c ---------------------------------------------------------- */

void weir__delay_flush_adds(struct weir__delay_topic *topic);

/* Answer what is collected with an error, now; only outside of ops. */
void weir__delay_fail_adds(struct weir__store_topic *topic, int code);

/* --- delay/claim.c -------------------------------------------------------- */

/* When a slot of the node was due, server time. */
int64_t weir__claimed_due_ms(const struct weir__claimed_node *node,
                             uint32_t slot);

void weir__delay_flush_claim(struct weir__delay_topic *topic);

/* Of so many nodes, which the caller fills in, and so many bytes of tables.
 * NULL when out of memory. */
struct weir__delay_lease *weir__delay_lease_new(struct weir__delay_topic *topic,
                                                size_t nodes, size_t tables);

/* The nodes are there: by a claim of this token, at this server time. */
void weir__delay_lease_claimed(struct weir__delay_lease *lease, int64_t time_us,
                               uint64_t token);

/* --- delay/adopt.c -------------------------------------------------------- */

/* The ops of these names in core/store.h. */
void weir__delay_token(const struct weir__run *run,
                       char ret_token[WEIR__TOKEN_CAP]);
int weir__delay_adopt(struct weir__store_topic *topic, const char *token);
int weir__delay_prolong(struct weir__store_topic *topic,
                        const struct weir__prolong *what, weir_count_fn fn,
                        void *arg);

/* Of a claim that was answered at this server time: what it brings instead,
 * NULL if there is no more. */
struct weir__delay_lease *weir__adopted_next(struct weir__delay_topic *topic,
                                             int64_t time_us,
                                             struct weir__claimed *claimed);

/* Free what no claim took. */
void weir__delay_disown(struct weir__delay_topic *topic);

/* --- delay/handover.c ----------------------------------------------------- */

/* A worker with nothing in hand offers itself with a claim, or with the verdict
 * on a job that it was handed, and where nothing is due the next job that is
 * added alone comes to it at once, under a lease (scripts/delay/add_one.lua).
 * It runs where it comes for the last offer; what comes late goes back. */

/* The number of the offer of a claim that is sent now; 0: it makes none. */
int64_t weir__offer_begin(struct weir__delay_topic *topic);

/* The same of a settle call that is sent in place of the claim that the topic
 * wants, by which the worker would be offered as well. */
int64_t weir__offer_renew(struct weir__delay_topic *topic);

/* That call was answered: so is the claim. Where there is something to claim
 * the answer is that there is more at once. */
void weir__offer_answered(struct weir__delay_topic *topic, int code,
                          const struct redisReply *reply);

/* A job is handed over, or the offer is withdrawn. */
void weir__delay_told(struct weir__store_topic *topic, struct weir_slice what);

/* Take jobs no longer: what is on its way comes and goes back. */
void weir__delay_stop(struct weir__store_topic *topic);
void weir__delay_listen(struct weir__store_topic *topic);

/* With one more until that is done. */
size_t weir__delay_unsettled(const struct weir__store_topic *topic);

/* --- delay/order.c -------------------------------------------------------- */

/* In order of due times: slots of mixed packs are due in turns. */
struct weir__run *weir__runs_by_due(struct weir__run *first);

/* Of claims that have nodes of lanes, in the order in which they came, but keys
 * take turns: of those that come in a row with one priority each key has one
 * run, then each has another one. */
struct weir__run *weir__runs_by_turn(struct weir__run *first);

/* --- delay/fetch.c -------------------------------------------------------- */

/* Ask for the packs of a lease. */
void weir__lease_fetch(struct weir__delay_lease *lease);

/* The answer to that; the lease's `request`. */
void weir__lease_fetched(struct weir__request *request, int code,
                         const struct redisReply *reply);

/* A wake-up said that this pack is to be claimed. */
void weir__early_fetch_note(struct weir__store_topic *topic, const char *seq);

/* Behind a claim: fetch the pack right away. */
void weir__early_fetch_send(struct weir__delay_topic *topic);

/* That claim was answered; `lease` may be NULL. True if the pack is what it
 * got: weir__lease_fetched is called when it comes. */
bool weir__early_fetch_takes(struct weir__delay_topic *topic,
                             struct weir__delay_lease *lease);

/* Nothing of it is out any more: the next flush sends what is left of it. */
void weir__delay_lease_done(struct weir__delay_lease *lease);

/* It leaves once the last call that names it was answered. */
void weir__delay_lease_leave(struct weir__delay_lease *lease);

/* With its batches and whatever runs are still out. */
void weir__delay_lease_free(struct weir__delay_lease *lease);

/* --- delay/start.c -------------------------------------------------------- */

void weir__delay_start(struct weir__store_topic *topic, struct weir__run *run);

/* Log which suspect was running when a worker of this name died. */
void weir__delay_recall(struct weir__delay_topic *topic);

/* --- delay/settle.c ------------------------------------------------------- */

void weir__delay_settle(struct weir__store_topic *topic, struct weir__run *run);

/* Give back a node of one slot, which was not fetched. */
void weir__delay_return(struct weir__claimed_node *node);

/* Settle all slots of a node whose pack is lost. */
void weir__delay_drop(struct weir__delay_topic *topic,
                      struct weir__claimed_node *node);

/* Forget the verdicts that are collected. */
void weir__delay_clear_verdicts(struct weir__delay_topic *topic);

/* --- delay/verdicts.c ----------------------------------------------------- */

/* Send the verdicts, unless they wait for more. */
void weir__delay_flush_settles(struct weir__delay_topic *topic);

/* In any case. */
void weir__delay_send_settles(struct weir__store_topic *topic);

/* --- delay/overdue.c ------------------------------------------------------ */

struct weir__overdue *weir__overdue_new(void);

/* --- delay/page.c --------------------------------------------------------- */

enum { WEIR__PAGE = 256 };

/* Where a page begins: at the first member of `score` whose bytes are not below
 * `name`, or behind all of that score. */
struct weir__page_place {
    double score;
    size_t len;
    uint8_t name[WEIR_MAX_ID + 2];
};

/* Slots of a pack that are left out: those up to `slot` of nodes that stand
 * at `score`. */
struct weir__page_passed {
    bool is_there;
    double score;
    char seq[WEIR__SEQ_LEN];
    unsigned slot;
};

/* A node, or a dead job. */
struct weir__member {
    size_t at, len; /* its name, in those of the page */
    double score;
    int64_t ms;   /* server time: due, or of death; in `run` a token */
    size_t table; /* of a mixed pack: where it begins in the page's tables */
    bool has_table;
    uint32_t crashes; /* of a node: leases that count and are not in records */
    /* In `run`, as far as it is known: who has it, in the page's workers, and
     * since when. */
    size_t worker, worker_len;
    int64_t claimed_ms;
};

/* Jobs in one state, one page after the other. The first member of what is made
 * of them, zeroed but for what the caller sets. */
struct weir__pages {
    struct weir__request request; /* first */
    struct weir__delay_topic *topic;
    enum weir_job_state state;
    size_t left; /* at most; the caller counts */
    /* What lies beyond is left out, in a mixed pack 2^45 above that. 0: beyond
     * the time when it began, where that tells: else beyond what was last. */
    double bound;
    struct weir__page_place place; /* of the next page; `is_placed`: where to
                                      begin, too */
    bool is_placed;
    struct weir__page_passed passed;
    /* A page is here, with the packs or records of its members; leads to
     * weir__pages_next. */
    void (*read)(struct weir__pages *pages, const struct redisReply *bodies);
    /* There are no more. Frees this. */
    void (*end)(struct weir__pages *pages, int code);

    int64_t now_ms; /* server time when it began */
    size_t most;    /* of its members, by what the last ones brought */
    size_t wanted;  /* members of this page */
    size_t count;   /* that came */
    bool is_last;
    int64_t region; /* what is ready stands in three, one behind the other: 0,
                       WEIR__MIXED_MS, WEIR__LANED_MS */
    struct weir__buf names, tables, workers;
    struct weir__member members[WEIR__PAGE];
};

/* Of a topic that exists: else WEIR_ENOTFOUND. */
void weir__pages_begin(struct weir__pages *pages);
void weir__pages_next(struct weir__pages *pages);

/* Ask for packs or records of this page. */
void weir__pages_fetch(struct weir__pages *pages);

struct weir_slice weir__page_name(const struct weir__pages *pages,
                                  size_t index);

/* Whether a slot, and those in front of it, are passed over. */
bool weir__page_is_passed(const struct weir__pages *pages,
                          const struct weir__member *node, unsigned slot);

/* Behind a member. */
void weir__page_place_behind(struct weir__page_place *place, double score,
                             struct weir_slice name);

/* With the memory of its pages. */
void weir__pages_fini(struct weir__pages *pages);
double weir__score_read(const char *text);

/* The name in what a claim noted of its worker: in a cluster the identity of a
 * node stands behind an @, of a worker that crashed how behind a blank. "":
 * that is no name. */
struct weir_slice weir__worker_name(struct weir_slice noted);

/* Add crashes to attempts of a record, `crashes` at most: from `from` on each
 * is ms, worker and how that ended (lib/crashes.lua). If there are fewer, the
 * first ones were at `otherwise_ms`, of a worker that is not known; 0: they are
 * left out. `attempts` borrows from `buf`, which is overwritten; without memory
 * it stays as it is. */
void weir__add_crashes(const struct redisReply *reply, size_t from,
                       uint32_t crashes, int64_t otherwise_ms,
                       struct weir_slice *attempts, struct weir__buf *buf);

/* --- delay/list.c --------------------------------------------------------- */

int weir__delay_list(struct weir__store_topic *topic,
                     const struct weir__list *what, weir_show_fn fn, void *arg);

/* --- delay/requeue.c, delay/purge.c --------------------------------------- */

int weir__delay_requeue(struct weir__store_topic *topic, struct weir_slice id,
                        weir_count_fn fn, void *arg);
int weir__delay_purge(struct weir__store_topic *topic, enum weir__purge what,
                      weir_count_fn fn, void *arg);

/* --- delay/cron.c --------------------------------------------------------- */

int weir__delay_cron(struct weir__store_topic *topic,
                     const struct weir__cron_change *what, weir_code_fn fn,
                     void *arg);
int weir__delay_crons(struct weir__store_topic *topic, weir__cron_fn fn,
                      void *arg);

/* Make lost ticks again, and let some come at once: `which` is a word of
 * scripts/delay/cron.lua: "all", "odd" or "soon". `fn` gets the number of lost
 * ones, and may be NULL. WEIR_ENOMEM. */
int weir__delay_mend_ticks(struct weir__delay_topic *topic, const char *which,
                           weir_count_fn fn, void *arg);
/* A worker does that now and then, and where the server's clock was set back
 * since its last claim. Called with each claim's time. */
void weir__delay_watch_ticks(struct weir__delay_topic *topic, int64_t time_us);

/* --- delay/bury.c --------------------------------------------------------- */

/* Add one that has died_ms. */
int weir__delay_bury(struct weir__store_topic *topic,
                     const struct weir__new_job *job, weir_added_fn fn,
                     void *arg);

/* --- delay/job.c ---------------------------------------------------------- */

/* Fill in what a record says of a job; of an unreadable one that it is
 * malformed. `seq`: name of the pack it lies in; NULL: it is dead.
 * WEIR_ENEWER. */
int weir__job_read(struct weir_slice bytes, const char *seq,
                   struct weir_job_info *info);

int weir__delay_reschedule(struct weir__store_topic *topic,
                           const struct weir__reschedule *what,
                           weir_reschedule_fn fn, void *arg);
int weir__delay_show(struct weir__store_topic *topic, struct weir_slice id,
                     weir_show_fn fn, void *arg);
int weir__delay_remove(struct weir__store_topic *topic, struct weir_slice id,
                       weir_delete_fn fn, void *arg);
int weir__delay_forget(struct weir__store_topic *topic, struct weir_slice id,
                       weir_count_fn fn, void *arg);
void weir__delay_counted(struct weir__stats_request *stats);

#endif
