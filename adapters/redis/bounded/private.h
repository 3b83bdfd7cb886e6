/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BOUNDED_PRIVATE_H
#define WEIR_BOUNDED_PRIVATE_H

/* What the files of bounded topics share. Events that leave in one call are
 * one struct weir__bounded_adds; events of one group that were claimed together
 * are one struct weir__bounded_lease, and settled together. */

#include "adapters/redis/store/kind.h"

struct weir__bounded;
struct weir__bounded_topic;

enum {
    WEIR__BOUND_EVENTS = 1000,  /* most events of one call */
    WEIR__BOUND_COLLECT = 8192, /* most events that are sorted into calls */
    WEIR__BOUND_OFFERS = 128,   /* most groups that a claim asks for */
    WEIR__BOUND_BYTES = 1 << 20 /* of events in one call, about */
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
struct weir__bounded_adds {
    struct weir__request request; /* first */
    struct weir__bounded_topic *topic;
    struct weir__bounded_adds *next;
    struct weir__event *events;
    struct weir__event_group *groups;
    size_t count, cap, group_count, group_cap;
    uint16_t *index; /* hash of a name: place of a group + 1 */
    size_t index_size;
    struct weir__buf bytes;
    uint32_t durability; /* as they say; 0: the topic's */
    struct weir__add_call *calls;
    size_t left;                                /* of them, not answered yet */
    char seqs[WEIR__EVENT_SEQS][WEIR__SEQ_LEN]; /* one for 256 events */
};

/* One claimed event besides its run. */
struct weir__leased_event {
    size_t at, len; /* of its bytes; in `rewritten` if is_rewritten */
    bool is_rewritten;
    bool is_back; /* goes back to its group */
};

/* What a claim took of one group. */
struct weir__bounded_lease {
    struct weir__lease base;    /* first */
    struct weir__request start; /* noting that a suspect starts */
    struct weir__run *starting;
    struct weir__bounded_topic *topic;
    struct weir__bounded_lease *next_spent; /* all its runs came back */
    struct weir_slice group; /* as the server has it: any bytes */
    uint32_t ended; /* leases of these events that ended before this one */
    bool has_end;   /* not where the topic has lease = none */
    bool is_lost;
    struct weir__asker *askers; /* about its runs; told with the answer */
    bool is_sent;               /* back to the server; not answered yet */
    size_t count, out;
    uint32_t done, failed, aged, retried, snoozed, back;
    int64_t wait_ms; /* until the group's next turn */
    struct weir__buf bytes, rewritten;
    struct weir__run *runs; /* behind the events; the group is behind them */
    struct weir__leased_event events[];
};

struct weir__bounded_topic {
    struct weir__store_topic base; /* first */
    struct weir__bounded *shared;

    bool has_other_groups; /* than the claim before */
    bool is_idle;          /* registered as an idle worker */
    char groups[sizeof(((struct weir__options *)0)->groups)]; /* of claims */
    struct weir__bounded_claim *claimed; /* waits for the stored options */
    unsigned tries;          /* claims in a row that were only offered groups */
    struct weir__buf offers; /* length and name of each */
    size_t offer_count;
    int64_t offered_ns;
    size_t per_group; /* events of a batch, running mean */
    int64_t added;    /* ever, when the last claim was answered */
    struct weir__bounded_lease *spent, **spent_end;

    struct weir__bounded_adds *adds, **adds_end; /* being collected */
    struct weir__bounded_adds *last_adds;
};

struct weir__bounded {
    struct weir__redis *store; /* as in struct weir__shared */
    size_t collected;          /* bytes of events that wait to be sent */
};

/* --- bounded/bounded.c ---------------------------------------------------- */

struct weir__bounded_topic *
weir__bounded_topic_of(struct weir__store_topic *port);

/* The key of a group's list ("g") or its leased batch ("l"). */
void weir__bounded_group_key(struct weir__buf *buf,
                             const struct weir__bounded_topic *topic, char list,
                             struct weir_slice group);

void weir__bounded_report_drop(const struct weir__bounded_topic *topic,
                               struct weir_slice group, enum weir_drop reason,
                               uint64_t count);

/* --- bounded/event.c ------------------------------------------------------ */

/* Append an event whose name is filled in when it leaves. */
void weir__event_write(struct weir__buf *buf, struct weir_slice id,
                       const struct weir__record *record);
void weir__event_name(uint8_t *event, const char *seq, unsigned slot);

/* Append arguments of the add script: a group's name, how many events it gets,
 * those. */
void weir__event_group_write(struct weir__buf *buf,
                             const struct weir__bounded_adds *adds,
                             const struct weir__event_group *group);

/* Where the id that its caller chose begins. */
enum { WEIR__EVENT_ID_AT = 15 };

/* The same event with another record. */
void weir__event_rewrite(struct weir__buf *buf, struct weir_slice event,
                         const struct weir__record *record);

/* Fill the run; it has an id that can be shown in any case. One that weir makes
 * is in `ret_id`. WEIR_EMALFORMED, WEIR_ENEWER. */
int weir__event_read(struct weir_slice event, struct weir__run *run,
                     char ret_id[WEIR__MADE_ID_LEN + 1]);

/* --- bounded/add.c -------------------------------------------------------- */

int weir__bounded_add(struct weir__store_topic *topic,
                      const struct weir__new_job *job, weir_added_fn fn,
                      void *arg);
void weir__bounded_flush_adds(struct weir__bounded_topic *topic);
void weir__bounded_fail_adds(struct weir__store_topic *topic, int code);

/* --- bounded/claim.c ------------------------------------------------------ */

/* The options may be others: whom wake-ups reach is looked at anew. */
void weir__bounded_serve(struct weir__store_topic *topic);

/* The stored options were read, or not: what was claimed is delivered. */
void weir__bounded_followed(struct weir__store_topic *topic, int code);

void weir__bounded_flush_claim(struct weir__bounded_topic *topic);
void weir__bounded_lease_free(struct weir__bounded_lease *lease);

/* --- bounded/settle.c ----------------------------------------------------- */

void weir__bounded_settle(struct weir__store_topic *topic,
                          struct weir__run *run);
void weir__bounded_flush_settles(struct weir__bounded_topic *topic);
void weir__bounded_renew(struct weir__renewals *renewals,
                         const struct weir__store_topic *topic,
                         int64_t lease_ms);
void weir__bounded_start(struct weir__store_topic *topic,
                         struct weir__run *run);

/* --- bounded/manage.c ----------------------------------------------------- */

int weir__bounded_list(struct weir__store_topic *topic,
                       const struct weir__list *what, weir_show_fn fn,
                       void *arg);
int weir__bounded_purge(struct weir__store_topic *topic, enum weir__purge what,
                        weir_count_fn fn, void *arg);

#endif
