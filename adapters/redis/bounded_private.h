/* SPDX-License-Identifier: MIT */
#ifndef WEIR_REDIS_BOUNDED_PRIVATE_H
#define WEIR_REDIS_BOUNDED_PRIVATE_H

/* What the files of the bounded store share. Events that leave in one call are
 * one struct weir__bound_adds; events of one group that were claimed together
 * are one struct weir__lot, and settled together. */

#include <ev.h>
#include <hiredis/hiredis.h>

#include "adapters/redis/bounded.h"
#include "adapters/redis/conn.h"
#include "adapters/redis/node.h"
#include "adapters/redis/reply.h"
#include "core/store.h"

struct weir__add_call;
struct weir__bounded;
struct weir__bound_topic;

enum {
    WEIR__BOUND_EVENTS = 1000,  /* most events of one call */
    WEIR__BOUND_COLLECT = 8192, /* most events that are sorted into calls */
    WEIR__BOUND_OFFERS = 128,   /* most groups that a claim asks for */
    WEIR__BOUND_KEY_MAX = 200,  /* "weir:{" topic "}:g:" group */
    WEIR__BOUND_BYTES = 1 << 20 /* of events in one call, about */
};

/* One answer that is waited for; the first member of what is sent with it. */
struct weir__bound_ask {
    struct weir__bounded *store;
    /* Runs exactly once, never inside an op (except close), and frees the ask.
     * `reply` as in weir__reply_fn. */
    void (*done)(struct weir__bound_ask *ask, int code,
                 const struct redisReply *reply);
    struct weir__bound_ask *next; /* while it waits to be failed */
    int code;
};

/* An event on its way to the server. */
struct weir__event {
    weir_added_fn fn;
    void *arg;
    size_t at; /* in the bytes of its adds */
    uint32_t len;
    uint32_t next; /* of its group: place + 1; 0: none */
    uint32_t id_len;
    int code;
};

struct weir__event_group {
    size_t name_at;
    uint32_t name_len;
    uint32_t hash;
    uint32_t first, last; /* places of events + 1 */
    uint32_t count;
    size_t len; /* bytes of its events */
};

enum { WEIR__EVENT_SEQS = WEIR__BOUND_COLLECT / WEIR__SLOTS_MAX };

/* Events that were collected together. They leave by groups, as the server's
 * work is for each group of a call: all of a group's are in the same one. */
struct weir__bound_adds {
    struct weir__bound_ask ask; /* first */
    struct weir__bound_topic *topic;
    struct weir__bound_adds *next;
    struct weir__event *events;
    struct weir__event_group *groups;
    size_t count, cap, group_count, group_cap;
    uint16_t *index; /* hash of a name: place of a group + 1 */
    size_t index_size;
    struct weir__buf bytes;
    struct weir__add_call *calls;
    size_t left;                                /* of them, not answered yet */
    char seqs[WEIR__EVENT_SEQS][WEIR__SEQ_LEN]; /* one for 256 events */
};

/* One claimed event besides its run. */
struct weir__lot_event {
    size_t at, len; /* of its bytes; in `rewritten` if is_rewritten */
    bool is_rewritten;
    bool is_back; /* goes back to its group */
};

/* A claimed batch. */
struct weir__lot {
    struct weir__bound_ask start; /* noting that a suspect starts */
    struct weir__run *starting;
    struct weir__bound_topic *topic;
    struct weir__lot *previous, *next; /* all that are out */
    struct weir__lot *next_spent;      /* all its runs came back */
    char group[WEIR_MAX_ID + 1];
    uint64_t token;
    uint32_t ended; /* leases */
    bool is_leased;
    bool is_lost;
    size_t count, out;
    uint32_t done, failed, aged, retried, snoozed, back;
    int64_t wait_ms; /* until the group's next turn */
    struct weir__buf bytes, rewritten;
    struct weir__run *runs; /* behind the events */
    struct weir__lot_event events[];
};

struct weir__bound_topic {
    uint32_t magic;
    struct weir__bounded *store;
    struct weir__bound_topic *next;
    struct weir__bound_topic *next_dirty; /* has something to flush */
    bool is_dirty;
    char name[WEIR_MAX_TOPIC + 1];
    void *user;                           /* of events; NULL: nobody listens */
    struct weir__bounded_options options; /* length 0: not served here */
    uint64_t announced; /* connection on which it entered weir:topics */
    int64_t revision;   /* of the stored options that the user knows */

    bool wants_claim;
    bool is_idle; /* registered as an idle worker */
    struct weir__claim claim;
    unsigned tries;          /* claims in a row that were only offered groups */
    struct weir__buf offers; /* names, a NUL behind each */
    size_t offer_count;
    int64_t offered_ns;
    size_t per_group; /* events of a batch, running mean */
    struct weir__lot *lots;
    struct weir__lot *spent, **spent_end;
    size_t unsettled;
    int64_t error_ns; /* when an error of the server was last logged */

    struct weir__bound_adds *adds, **adds_end; /* being collected */
    struct weir__bound_adds *last_adds;
};

/* Seats of calls that may come again (scripts/boundadd.lua). */
struct weir__bound_seats {
    char name[WEIR__SEQ_LEN + 1]; /* "": none yet */
    uint32_t *free;
    size_t free_count;
    uint32_t count; /* made so far */
};

struct weir__bounded {
    struct weir__store base; /* first */
    uint32_t magic;
    struct weir__redis_options options;
    struct weir__redis_url url;
    struct weir__store_events events;
    char worker[64];
    struct weir__conn *commands;
    struct weir__conn *wakes;
    uint64_t connections; /* made so far */
    bool is_closed;
    struct weir__bound_ask *failed; /* could not be sent; told by the timer */
    struct weir__bound_ask **failed_end;
    ev_timer failing;
    struct weir__bound_topic *topics;
    struct weir__bound_topic *dirty;
    struct weir__seq_maker seqs;
    bool has_number; /* of this producer */
    bool asks_number;
    int64_t ahead_ms; /* server time minus our monotonic time */
    size_t collected; /* bytes of events that wait to be sent */
    struct weir__bound_seats seats;
};

/* --- bounded.c ---------------------------------------------------------- */

struct weir__bounded *weir__bounded_of(struct weir__store *store);
struct weir__bound_topic *weir__bound_topic_of(struct weir__store_topic *topic);
int64_t weir__bounded_now_ns(const struct weir__bounded *store);
void weir__bound_mark(struct weir__bound_topic *topic);
struct weir__bound_topic *weir__bound_find(const struct weir__bounded *store,
                                           struct weir_slice name);

/* --- bounded_link.c ----------------------------------------------------- */

int weir__bounded_connect(struct weir__bounded *store);
void weir__bounded_ask_number(struct weir__bounded *store);
void weir__bounded_failing_init(struct weir__bounded *store);
void weir__bounded_fail_all(struct weir__bounded *store);

/* Send one command (see weir__conn_send); `ask` may be NULL. Where that is not
 * possible the ask is done a little later with the code. */
void weir__bounded_send(struct weir__bounded *store, struct weir__buf *bytes,
                        const struct weir__script *script, unsigned flags,
                        struct weir__bound_ask *ask);
void weir__bounded_fail(struct weir__bound_ask *ask, int code);

/* weir:topics lists all topics; told once on each connection. */
void weir__bound_announce(struct weir__bound_topic *topic);

/* Keys of a topic, all of `names` separated by blanks; of a group's list ("g")
 * or its leased batch ("l"). */
void weir__bound_keys(struct weir__buf *buf, const char *topic,
                      const char *names);
void weir__bound_group_key(struct weir__buf *buf, const char *topic, char list,
                           struct weir_slice group);

void weir__bound_log_error(struct weir__bound_topic *topic, const char *what,
                           int code, const struct redisReply *reply);
void weir__bound_tell_drop(const struct weir__bound_topic *topic,
                           struct weir_slice group, enum weir_drop reason,
                           uint64_t count);

/* --- bounded_event.c ---------------------------------------------------- */

/* Append an event whose name is filled in when it leaves. */
void weir__event_write(struct weir__buf *buf, struct weir_slice id,
                       const struct weir__record *record);
void weir__event_name(uint8_t *event, const char *seq, unsigned slot);

/* Where the id that its caller chose begins. */
enum { WEIR__EVENT_ID_AT = 15 };

/* The same event with another record. */
void weir__event_rewrite(struct weir__buf *buf, struct weir_slice event,
                         const struct weir__record *record);

/* Fill the run. The made id goes to `ret_id`. WEIR_EMALFORMED, WEIR_ENEWER. */
int weir__event_read(struct weir_slice event, struct weir__run *run,
                     char ret_id[WEIR__MADE_ID_LEN + 1]);

/* --- bounded_add.c, bounded_send.c -------------------------------------- */

int weir__bound_add(struct weir__store_topic *topic,
                    const struct weir__new_job *job, weir_added_fn fn,
                    void *arg);
void weir__bound_flush_adds(struct weir__bound_topic *topic);
void weir__bound_fail_adds(struct weir__bound_topic *topic, int code);
void weir__bound_adds_free(struct weir__bound_adds *adds);

/* Answer all of its events, and free it. */
void weir__bound_adds_answer(struct weir__bound_adds *adds, int code);
void weir__bound_adds_send(struct weir__bound_adds *adds);

/* --- bounded_claim.c ---------------------------------------------------- */

void weir__bound_flush_claim(struct weir__bound_topic *topic);
void weir__lot_free(struct weir__lot *lot);

/* --- bounded_settle.c, bounded_verdicts.c ------------------------------- */

void weir__bound_settle(struct weir__store_topic *topic, struct weir__run *run);
void weir__bound_flush_settles(struct weir__bound_topic *topic);
void weir__bound_renew(struct weir__store_topic *topic, int64_t lease_ms);
void weir__bound_start(struct weir__store_topic *topic, struct weir__run *run);

/* --- bounded_manage.c --------------------------------------------------- */

int weir__bound_stats(struct weir__store_topic *topic, weir_stats_fn fn,
                      void *arg);
void weir__bound_lateness(struct weir__store_topic *topic,
                          const uint32_t *counts, int64_t max_us);
int weir__bound_purge(struct weir__store_topic *topic, enum weir__purge what,
                      weir_count_fn fn, void *arg);

#endif
