/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLASSIC_PRIVATE_H
#define WEIR_CLASSIC_PRIVATE_H

/* What the files of sync and concurrent topics share. A topic is one list of
 * messages. Logical consumers, each with a connection of its own and one
 * command at a time, take them while the topic is served, and hold each until
 * it is due; core's claims are answered out of what they hold.
 *
 *   IDLE --> LOOKING --> HELD --(due)--> READY --(claim)--> OUT --> SETTLING
 *     ^        |  ^       |                |                  |        |
 *     |        v  |       +----(pause, stop: back to the head)+        |
 *     |       WAITING                                                  |
 *     +----------------------------------------------------------------+
 *
 * classic/classic.c has the table of rules and asks the server each second how
 * the topic is, classic/add.c appends, classic/consumer.c runs consumers,
 * classic/sync.c and classic/concurrent.c are the two ways to take a message,
 * classic/settle.c ends them, classic/manage.c answers requests. */

#include "adapters/redis/store/kind.h"

/* Longest wait until the server is polled again: a day. */
#define WEIR__FIFO_WAIT_US INT64_C(86400000000)

enum { WEIR__FIFO_OWNER_MAX = 120 }; /* worker, start of it, consumer, life */

enum weir__consumer_state {
    WEIR__CONSUMER_IDLE,
    WEIR__CONSUMER_WAITING, /* for the head to be due, or for the lock */
    WEIR__CONSUMER_LOOKING, /* a command is out, a message may come of it */
    WEIR__CONSUMER_HELD,    /* has a message that is not due yet */
    WEIR__CONSUMER_READY,   /* has one that core may have */
    WEIR__CONSUMER_OUT,     /* core has it */
    WEIR__CONSUMER_BACK,    /* it goes back with the next flush */
    WEIR__CONSUMER_SETTLING /* the server was told its end */
};

/* One message as it was taken; the bytes follow. */
struct weir__message {
    struct weir__run run; /* first */
    struct weir__consumer *consumer;
    bool is_parked;
    size_t len;
    uint8_t bytes[];
};

struct weir__consumer {
    struct weir__classic_topic *topic;
    struct weir__conn *conn;
    struct weir__consumer *next_idle;
    struct weir__consumer *next_dirty;
    bool is_idle_listed;
    bool is_dirty; /* its connection has something to write */
    enum weir__consumer_state state;
    uint32_t index;
    uint32_t life; /* grows when nobody knows what the last one holds */
    bool has_lock;
    bool is_auto;       /* this message is done when it is taken */
    bool is_two_step;   /* it is parked in a step of its own */
    bool has_told_busy; /* when it asked, others had messages */
    int64_t again_ns;   /* wait so long after the lock was released; -1: idle */
    ev_timer timer;
    struct weir__message *message;
    char owner[WEIR__FIFO_OWNER_MAX];
};

struct weir__classic_push;

struct weir__classic_topic {
    struct weir__store_topic base; /* first */
    struct weir__classic *shared;
    bool is_sync; /* else concurrent */

    ev_timer poll; /* each second while somebody listens */
    ev_timer answer;
    bool is_polling;
    bool is_serving; /* kind and options are known: consumers may run */
    bool is_foreign; /* another kind */
    bool is_paused;
    bool is_stopping;
    bool has_newer;  /* a record of a newer version: left alone */
    uint64_t length; /* at the last poll */

    int claim_code;

    struct weir__consumer **consumers;
    size_t consumer_count;
    struct weir__consumer *idle;
    size_t busy;    /* consumers that have or may get a message */
    size_t at_head; /* LOOKING or WAITING */
    size_t in_hand; /* with a message */
    bool has_backs;
    struct weir__run *ready, **ready_end;

    struct weir__classic_push *push; /* being collected */
};

struct weir__classic {
    struct weir__redis *store; /* as in struct weir__shared */
    struct weir__log quiet;    /* of consumers' connections: errors only */
    uint32_t start;            /* distinguishes lives of a worker's name */
    struct weir__consumer *dirty;
};

/* --- classic/classic.c ---------------------------------------------------- */

struct weir__classic_topic *
weir__classic_topic_of(struct weir__store_topic *topic);

/* Answer a claim that waits, if it can be; only outside of ops. */
void weir__classic_answer(struct weir__classic_topic *topic);
/* The same, a little later. */
void weir__classic_answer_soon(struct weir__classic_topic *topic);

/* Of every message; -1: what is stored, or the default. */
int64_t weir__classic_delay_ms(const struct weir__classic_topic *topic);

/* A message was parked: poll again before its lease ends. */
void weir__classic_poll_soon(struct weir__classic_topic *topic);

/* --- classic/add.c -------------------------------------------------------- */

int weir__classic_add(struct weir__store_topic *topic,
                      const struct weir__new_job *job, weir_added_fn fn,
                      void *arg);
void weir__classic_flush_adds(struct weir__classic_topic *topic);
/* Answer what was collected; only outside of ops. */
void weir__classic_fail_adds(struct weir__store_topic *topic, int code);

/* --- classic/consumer.c --------------------------------------------------- */

/* As many consumers as the options say. */
void weir__classic_fit(struct weir__classic_topic *topic);
/* Close all of them. */
void weir__classic_dismiss(struct weir__classic_topic *topic);
/* Have up to `count` idle consumers poll. */
void weir__classic_kick(struct weir__classic_topic *topic, uint64_t count);
/* After a wake-up: consumers that wait poll again, too. */
void weir__classic_wake(struct weir__classic_topic *topic);
/* What is held and not out goes back to the head. */
void weir__classic_give_back(struct weir__classic_topic *topic);

void weir__consumer_state(struct weir__consumer *consumer,
                          enum weir__consumer_state state);
/* Begin anew, or rest where that must not be. */
void weir__consumer_next(struct weir__consumer *consumer);
void weir__consumer_rest(struct weir__consumer *consumer);
/* Look again in `ns`. */
void weir__consumer_wait(struct weir__consumer *consumer, int64_t ns);
/* Nobody knows what the server did: whatever it holds under its name comes
 * back when its lease ends, it goes on under another one. */
void weir__consumer_lost(struct weir__consumer *consumer, const char *what,
                         int code, const struct redisReply *reply);
/* Its message belongs to somebody else by now, and core does not have it. */
void weir__consumer_drop(struct weir__consumer *consumer);
/* Its message is safe as the options want it: hold it until it is due. */
void weir__consumer_took(struct weir__consumer *consumer);
/* Keep the message of a reply { time in us, ..., message } as the consumer's;
 * false: out of memory, it is lost. */
bool weir__consumer_keep(struct weir__consumer *consumer,
                         const struct redisReply *reply, size_t index);
/* Send on the consumer's connection; on failure it is lost, a little later. */
void weir__consumer_send(struct weir__consumer *consumer,
                         struct weir__buf *bytes,
                         const struct weir__script *script, unsigned flags,
                         weir__reply_fn fn);
/* Send fifo_pop (see there). */
void weir__consumer_pop(struct weir__consumer *consumer, const char *todo,
                        weir__reply_fn fn);

/* The consumer's message is safe on the server, under the lease. */
void weir__consumer_parked(struct weir__consumer *consumer);

/* Free its message, if any. */
void weir__consumer_forget(struct weir__consumer *consumer);
/* The parts of a message. WEIR_EMALFORMED, WEIR_ENEWER. */
int weir__message_read(struct weir_slice bytes, struct weir_slice *ret_id,
                       int64_t *ret_due_ms, struct weir__record *ret_record);

/* --- classic/sync.c, classic/concurrent.c --------------------------------- */

/* Take the next message; ends with weir__consumer_took, _rest, _wait or
 * _lost. */
void weir__sync_begin(struct weir__consumer *consumer);
void weir__concurrent_begin(struct weir__consumer *consumer);

/* --- classic/settle.c ----------------------------------------------------- */

void weir__classic_settle(struct weir__store_topic *topic,
                          struct weir__run *run);
/* Send what goes back, so that it stands at the head in its old order. */
void weir__classic_flush_backs(struct weir__classic_topic *topic);

/* --- classic/manage.c ----------------------------------------------------- */

void weir__classic_counted(struct weir__stats_request *stats);
int weir__classic_list(struct weir__store_topic *topic,
                       const struct weir__list *what, weir_show_fn fn,
                       void *arg);
int weir__classic_purge(struct weir__store_topic *topic, enum weir__purge what,
                        weir_count_fn fn, void *arg);

#endif
