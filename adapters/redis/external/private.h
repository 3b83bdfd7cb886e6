/* SPDX-License-Identifier: MIT */
#ifndef WEIR_EXTERNAL_PRIVATE_H
#define WEIR_EXTERNAL_PRIVATE_H

/* What the files of list and stream topics share. Both do the same with an
 * entry once it was taken; what differs is the script that takes it, the
 * command that waits for the next one, and how entries are added.
 *
 *   the key --claim--> out --settle--> gone
 *                       ^ \-- retry, snooze, lost lease --> waits
 *                       \---------------- due -------------/
 */

#include "adapters/redis/delay/plan.h"
#include "adapters/redis/store/kind.h"
#include "adapters/redis/store/outbox.h"

struct weir__external;

enum {
    WEIR__EXTERNAL_CALL = 1024, /* most entries of one script call */
    WEIR__EXTERNAL_ID_MAX = 48  /* of an entry of a stream, and more */
};

/* What is known of a taken entry besides its run. Places are positions in the
 * claim's bytes. */
struct weir__external_entry {
    struct weir__request start; /* first; whether it may start */
    struct weir__run *starting; /* while that is asked */
    size_t id_at, id_len;       /* as the server has it: any bytes */
    size_t raw_at, raw_len;     /* as it came, or what decodes to the same */
    size_t body_at, body_len;   /* msgpack */
    bool is_kept;               /* on the server, until it is settled */
};

/* Entries that were claimed together, until all of them came back. */
struct weir__external_lease {
    struct weir__lease base; /* first */
    struct weir__external_topic *topic;
    int64_t time_us; /* server time */
    int64_t claimed_ns;
    size_t count, out;
    struct weir__buf bytes;
    struct weir__run *runs; /* behind the entries */
    struct weir__external_entry entries[];
};

/* Verdicts that leave together. Lists of msgpack elements, as the script reads
 * them. */
struct weir__external_call {
    struct weir__request request; /* first */
    struct weir__external_topic *topic;
    struct weir__external_call *next;
    size_t verdicts;
    struct weir__asker *asker; /* about its one verdict; NULL: nobody */
    bool is_broken; /* out of memory: nothing of it leaves, leases run out */
    size_t dones, autos, others;
    struct weir__buf done, other;
    struct weir__external_auto {
        uint64_t token, count;
    } auto_done[16];                  /* of entries that are not kept */
    struct weir__items moves;         /* of others: jobs of other topics */
    struct weir__planned_packs packs; /* of these, once it is sent */
    /* If the server takes no more than a few bytes: its one verdict, a death
     * that leaves the entry where it is; empty: it has no large entry. */
    struct weir__buf death;
    size_t staging;  /* commands whose answers come here, ahead of its own */
    bool is_refused; /* one of these is larger than the server takes */
    bool is_over;    /* it is freed with the last of these answers */
};

struct weir__external_add;

enum { WEIR__SOURCE_MAX = sizeof(((struct weir__options *)NULL)->key) - 1 };

/* Which key and group the entries are in; a list is taken from its left, or
 * else from its right. */
struct weir__external_place {
    bool is_right;
    uint32_t body; /* how bodies are read, a value of the option `body` */
    char key[WEIR__SOURCE_MAX + 1];
    char group[WEIR__SOURCE_MAX + 1];
};

struct weir__external_topic {
    struct weir__store_topic base; /* first */
    struct weir__external *shared;
    bool is_stream;
    char consumer[WEIR__REDIS_PREFIX_CAP + WEIR_MAX_TOPIC + 1];
    char served_key[WEIR__SOURCE_MAX + 1]; /* option key as last served */
    uint32_t served_end, served_body;      /* options end and body as well */

    size_t entry_bytes; /* what an entry costs, running mean */

    struct weir__external_call *calls, **calls_end; /* being collected */
    struct weir__relays outbox;

    struct weir__external_add *adds, **adds_end; /* being collected */
    struct weir__external_place place;           /* where they go */
    int64_t found_ns;                            /* as of then; 0: not known */
    bool is_finding;

    struct weir__conn *waits; /* blocks until there is an entry */
    bool is_waiting;
    char waits_after[WEIR__EXTERNAL_ID_MAX]; /* of a stream */
};

struct weir__external {
    struct weir__redis *store; /* as in struct weir__shared */
    struct weir__buf scratch[3];
};

/* --- external/external.c -------------------------------------------------- */

struct weir__external_topic *
weir__external_topic_of(struct weir__store_topic *port);

/* The list or stream as the options name it. */
const char *weir__external_key(const struct weir__external_topic *topic);

/* The end that a list is taken from as scripts read it: "right" or "". */
const char *weir__external_end(bool is_right);

/* The consumer group; "": a list has none. */
const char *weir__external_group(const struct weir__external_topic *topic);

/* --- external/body.c ------------------------------------------------------ */

/* The values of the option `body` as they are stored; auto is "". */
extern const char *const weir__external_body_names[4];

/* Append what one element of a reply holds: `raw` is a string, or the fields of
 * an entry of a stream, or what weir kept of these. `form` is a value of the
 * option `body`. False: these bytes have another form; the body is then their
 * text. */
bool weir__external_read_body(const struct weir__external_topic *topic,
                              struct weir__buf *buf,
                              const struct redisReply *raw, uint32_t form,
                              struct weir__external_entry *entry);

/* Append a msgpack body as an entry has it: JSON with auto and json, the bytes
 * of a string with text (of another value its JSON). False: out of memory, or
 * no msgpack. */
bool weir__external_write_body(struct weir__buf *buf, struct weir_slice body,
                               uint32_t form);

/* When an entry was added: the id of a stream's says it. 0: nobody knows. */
int64_t weir__external_added_ms(const struct weir__external_topic *topic,
                                struct weir_slice id);

/* Counters of an entry, as the server keeps them; nothing when `bytes` is
 * empty. `ret_blamed` may be NULL. */
void weir__external_read_past(struct weir_slice bytes,
                              struct weir__record *record,
                              uint32_t *ret_blamed);
void weir__external_write_past(struct weir__buf *buf,
                               const struct weir__record *record,
                               uint32_t blamed);

/* What the script `undeliverable` is told of a job that was an entry. */
void weir__external_write_undeliverable(const struct weir__store_topic *topic,
                                        struct weir__buf *buf,
                                        const struct weir__undeliverable *job);

/* --- external/claim.c ----------------------------------------------------- */

void weir__external_flush_claim(struct weir__external_topic *topic);
void weir__external_lease_free(struct weir__external_lease *lease);
void weir__external_renew(struct weir__renewals *renewals,
                          const struct weir__store_topic *topic,
                          int64_t lease_ms);
void weir__external_start(struct weir__store_topic *topic,
                          struct weir__run *run);

/* --- external/wait.c ------------------------------------------------------ */

/* Wake the user once there is something to take. */
void weir__external_wait(struct weir__external_topic *topic);
void weir__external_stop_waiting(struct weir__external_topic *topic);

/* --- external/settle.c ---------------------------------------------------- */

void weir__external_settle(struct weir__store_topic *topic,
                           struct weir__run *run);
void weir__external_flush_settles(struct weir__external_topic *topic);
void weir__external_call_free(struct weir__external_call *call);

/* --- external/add.c ------------------------------------------------------- */

int weir__external_add(struct weir__store_topic *topic,
                       const struct weir__new_job *job, weir_added_fn fn,
                       void *arg);
void weir__external_flush_adds(struct weir__external_topic *topic);

/* Answer what is collected with an error, now; only outside of ops. */
void weir__external_fail_adds(struct weir__external_topic *topic, int code);

/* --- external/manage.c ---------------------------------------------------- */

/* Ask which list or stream it is: as it is served here, else as it is stored
 * with the topic. */
void weir__external_find(struct weir__external_topic *topic,
                         struct weir__request *request);

/* What the answer says. WEIR_ESERVER, WEIR_EKIND (the topic is of another
 * kind), WEIR_ENOTFOUND (there is no such topic; the place is filled). */
int weir__external_found(const struct weir__external_topic *topic, int code,
                         const struct redisReply *reply,
                         struct weir__external_place *ret_place);

int weir__external_stats(struct weir__store_topic *topic, weir_stats_fn fn,
                         void *arg);
int weir__external_purge(struct weir__store_topic *topic, enum weir__purge what,
                         weir_count_fn fn, void *arg);
int weir__external_requeue(struct weir__store_topic *topic,
                           struct weir_slice id, weir_count_fn fn, void *arg);
int weir__external_forget(struct weir__store_topic *topic, struct weir_slice id,
                          weir_count_fn fn, void *arg);

/* --- external/list.c ------------------------------------------------------ */

int weir__external_list(struct weir__store_topic *topic,
                        const struct weir__list *what, weir_show_fn fn,
                        void *arg);

#endif
