/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CONN_PRIVATE_H
#define WEIR_CONN_PRIVATE_H

/* The inside of a connection, shared by
 *   conn.c   what others call,
 *   state.c  the state machine: handshake, losing, backing off,
 *   locate.c finding the server: host, addresses, a socket,
 *   queue.c  requests on their way: sending, matching replies, giving up; what
 *            is wrong with the connection is noted there for state.c,
 *   replay.c what was acknowledged lately,
 *   command.c  how a command is made, ends, and gets to another connection,
 *   handshake.c  what a fresh connection says first,
 *   identity.c  who answers: what the handshake was told,
 *   glue.c   hiredis on the loop.
 *
 * Each calls the ones below it only; state.c and locate.c are halves of one.
 *
 * Requests live on one of seven lists. They go out in the order `returned`,
 * `replaying`, `again`, `waiting`, and each list is in the order in which it is
 * to go out:
 *
 *   waiting --> sent --> (answered) --> acked   WEIR__SEND_REPLAY, for a while
 *                |
 *                +--> returned    answered, but did not run: NOSCRIPT, LOADING
 *                |
 *   on a loss:   +--> again       WEIR__SEND_AGAIN; takes `returned` in, too
 *                +--> replaying   had been acknowledged before
 *                +--> failed      the others; their callbacks run next
 *
 *   on another server:  acked --> replaying --> sent --> (answered) --> acked
 *
 * The number of a call that is replayed is smaller than that of the next one of
 * its call slot: behind it, it would be taken for one that comes late.
 *
 * Whatever may run a user's callback stands between weir__conn_enter and
 * weir__conn_leave, which frees a connection that was closed in between. */

#include <ev.h>

#include "adapters/redis/conn/command.h"
#include "adapters/redis/conn/conn.h"
#include "adapters/redis/conn/error.h"
#include "adapters/redis/conn/glue.h"
#include "adapters/redis/conn/reply_guard.h"
#include "adapters/redis/conn/resolve.h"
#include "core/assert.h"

enum { WEIR__CONN_MAGIC = 0x636f6e6e, WEIR__CONN_REASON_MAX = 240 };

enum weir__conn_state {
    WEIR__CONN_IDLE,
    WEIR__CONN_LOCATING,
    WEIR__CONN_CONNECTING,
    WEIR__CONN_HANDSHAKE,
    WEIR__CONN_READY,
    WEIR__CONN_BACKOFF,
    WEIR__CONN_CLOSED,
    WEIR__CONN_STATES
};

/* What a server says of itself. */
struct weir__identity {
    int64_t client_id;
    int64_t server_ms;         /* at some time between the next two, */
    int64_t asked_ms, told_ms; /* which are monotonic */
    char text[WEIR__IDENTITY_LEN + 1];
};

struct weir__conn {
    uint32_t magic;
    int depth; /* enters without their leave */
    enum weir__conn_state state;
    struct weir__conn_options options; /* defaults filled in */
    char name[WEIR__CONN_NAME_MAX];    /* "": none */
    char channel[WEIR__CONN_NAME_MAX]; /* "": none */

    /* Where the server is, as of the last attempt. */
    bool is_finding;                 /* the locator owes an answer */
    bool is_resolved;                /* `addresses` came, and were not used */
    char host[WEIR__REDIS_TEXT_CAP]; /* or the path of a socket */
    uint16_t port;
    struct weir__lookup *lookup; /* of the host; NULL: none is under way */
    struct weir__addresses addresses;
    size_t tried;                        /* of these, by this attempt */
    int64_t connect_by_ms;               /* all of them together */
    int64_t attempt_ms;                  /* the one under way */
    char reasons[WEIR__CONN_REASON_MAX]; /* of those that were lost */
    bool is_abandoned; /* lost, and not for want of a server */
    /* A name that the resolver knows; the address that was left when it moved,
     * and that it is no use to follow it. */
    bool is_named;
    bool is_rotating;
    char left[WEIR__ADDRESS_CAP];
    int64_t left_ms;

    struct redisAsyncContext *context; /* NULL: none that can be used */
    struct weir__glue glue;
    struct weir__reply_guard guard;
    bool is_in_hiredis; /* below one of its Handle functions */
    bool is_dropping;   /* we free the context: its callbacks are no news */

    /* What hiredis' callbacks noted for `soon`. */
    bool is_connected;
    int lost_code;    /* not WEIR_OK: the connection is lost, and why */
    bool is_hung_up;  /* by the server */
    bool is_draining; /* turned away, but the replies under way still count */
    bool is_denied;   /* our login or rights are the reason */
    bool is_replica;  /* where a primary is wanted */
    bool is_short;    /* a line said so since it was ready */
    char lost_text[WEIR__CONN_REASON_MAX];

    ev_timer soon;     /* zero delay: decisions */
    ev_timer deadline; /* of connecting and handshake; end of back-off */
    ev_timer overdue;  /* the oldest reply, or a pushed message */
    ev_timer watch;    /* until the next look at the name */
    ev_timer patience; /* the oldest request without a connection */
    ev_timer stale;    /* a look at what was acknowledged long ago */

    bool asks_role;        /* the rest of the handshake waits for the answer */
    size_t handshake_left; /* replies to come */
    struct weir__identity identity; /* as of the last */
    struct weir__identity clocked;  /* whose clock was told last */
    const struct weir__script *loaded[WEIR__SCRIPTS_MAX]; /* on this one */
    size_t loaded_count;
    unsigned attempts; /* since the connection was last stable */
    uint64_t random;
    int64_t now_ms; /* monotonic, as of the last look */
    int64_t now_ns;
    int64_t alone_ns;  /* when a command was sent alone; 0: it is answered */
    int64_t answer_ns; /* the fastest answer to such a one; 0: none came */
    int64_t waited_ns; /* for what is being read; -1: that is told */
    int64_t ready_ms;
    int64_t down_ms; /* since when there is no stable connection */

    uint64_t pushed; /* number of the message under way; 0: none */
    int64_t pushed_ms;
    uint64_t reads; /* of the socket */
    uint64_t late;  /* number of the last reply before one that is overdue */
    uint64_t late_reads; /* at the last look at it */
    int64_t late_ms;     /* when that was seen first; 0: none is */

    struct weir__command_list waiting, sent, returned, again, failed;
    struct weir__command_list acked, replaying;
    struct weir__command *answered; /* its callback runs; NULL: none does */
    struct weir__command *spare;
    size_t spares;
    size_t queued_bytes; /* of all requests but those that are replays */
    size_t queued_calls; /* of these, that run a script */
    size_t replay_bytes; /* of those */
    size_t replay_left;  /* not answered again yet */
    bool takes_replays;  /* this connection answered one of them */
    struct {
        size_t calls;   /* of scripts, that were answered since the last log */
        size_t lost;    /* of these, by their answers */
        size_t refused; /* by an error, or too old by now */
        char why[WEIR__CONN_REASON_MAX]; /* of the last one that was */
    } replayed;
    char acked_by[WEIR__IDENTITY_LEN + 1]; /* who answered; "": not known */
    bool wants_flush;                      /* asked for and not finished yet */
    uint64_t sent_total;
};

/* --- conn/state.c --------------------------------------------------------- */

void weir__conn_state_init(struct weir__conn *conn);
void weir__conn_change_state(struct weir__conn *conn,
                             enum weir__conn_state state);
void weir__conn_stop_timers(struct weir__conn *conn);

/* A context that connects is this connection's from now on. */
void weir__conn_adopt(struct weir__conn *conn,
                      struct redisAsyncContext *context);

/* --- conn/locate.c -------------------------------------------------------- */

void weir__conn_locate_init(struct weir__conn *conn);

/* Begin an attempt: LOCATING, or already CONNECTING. */
void weir__conn_connect(struct weir__conn *conn);

/* The attempt under way was lost: try the next address of the host. False where
 * there is none, or where it would be of no use. */
bool weir__conn_try_next(struct weir__conn *conn);

/* The lookup took too long. */
void weir__conn_note_not_found(struct weir__conn *conn);

/* READY was reached: see to it that a name is followed. */
void weir__conn_watch(struct weir__conn *conn);

/* --- conn/handshake.c ----------------------------------------------------- */

/* Begin the handshake: log in, and ask for the role where that counts, else
 * what follows. */
void weir__conn_greet(struct weir__conn *conn);

/* The rest of it. */
void weir__conn_introduce(struct weir__conn *conn);

/* A step was refused with these words. */
void weir__conn_note_refused(struct weir__conn *conn, const char *text);

/* --- conn/identity.c ------------------------------------------------------ */

/* The commands that ask for it, from 0 on; NULL: there are no more. */
const char *const *weir__identity_question(size_t index);

/* Take what answers any of them; other answers tell nothing. */
void weir__identity_note(struct weir__conn *conn,
                         const struct redisReply *reply);

/* Warn where its clock differs from that of the server before. */
void weir__identity_compare_clocks(struct weir__conn *conn);

/* --- conn/queue.c: clock and timers --------------------------------------- */

struct weir__conn *weir__conn_of(void *arg);

/* Read the clock into conn->now_ms. */
void weir__conn_look_at_clock(struct weir__conn *conn);

void weir__conn_prepare_timer(struct weir__conn *conn, ev_timer *timer,
                              void (*fn)(struct ev_loop *, ev_timer *, int));

/* Start `timer` anew, `ms` from the real now. */
void weir__conn_arm(struct weir__conn *conn, ev_timer *timer, int64_t ms);

/* --- conn/queue.c: noting a loss ------------------------------------------ */

/* Note that the connection is lost; the first reason counts. It is acted upon
 * in the next turn, so this fits any place. */
WEIR_PRINTF(3, 4)
void weir__conn_note_lost(struct weir__conn *conn, int code, const char *format,
                          ...);

/* --- conn/queue.c: requests ----------------------------------------------- */

void weir__conn_queue_init(struct weir__conn *conn);

/* Send what bounds and socket allow; the rest when the socket drained or
 * replies came. Not below hiredis. */
void weir__conn_pump(struct weir__conn *conn);

/* Write what hiredis has buffered. */
void weir__conn_write(struct weir__conn *conn);

/* The connection is gone: sort `sent` and `returned` into `again` and `failed`.
 * What was too large is not asked for again, it would be as large. */
void weir__conn_queue_lost(struct weir__conn *conn);

/* Move what may have run and is too old to be sent again to `failed`. */
void weir__conn_queue_give_up(struct weir__conn *conn);

/* Run the callbacks of `failed` with WEIR_EUNKNOWN, or WEIR_ETOOBIG. */
void weir__conn_queue_report(struct weir__conn *conn);

/* Wait for a connection only so long. */
void weir__conn_arm_patience(struct weir__conn *conn);

/* Run all callbacks with WEIR_ECANCELED. */
void weir__conn_queue_cancel(struct weir__conn *conn);

/* Hand one command to hiredis. False: it refused, and the loss is noted. The
 * byte behind `bytes` is 0, hiredis looks at it. */
bool weir__conn_hand(struct weir__conn *conn, struct weir_slice bytes,
                     redisCallbackFn *fn);

/* Book the arrival of a reply; false when it is to be ignored: NULL, for the
 * context is being freed, or the connection was closed. */
bool weir__conn_take_reply(struct weir__conn *conn, const void *reply);

/* A new or recycled request; NULL when out of memory. */
struct weir__command *weir__conn_request_new(struct weir__conn *conn);

/* Free a request that is on no list. */
void weir__conn_request_free(struct weir__conn *conn,
                             struct weir__command *request);

/* --- conn/refusal.c ------------------------------------------------------- */

/* The server closed the connection, the commands in `sent` unanswered. */
void weir__conn_blame(struct weir__conn *conn);

/* An error was the answer to this command. True: the server says that it is too
 * large, and closes the connection; the command is back on a list. */
bool weir__conn_take_refusal(struct weir__conn *conn,
                             struct weir__command *request, const char *text);

/* The server will not take it. */
bool weir__conn_is_hopeless(const struct weir__command *request);

/* Whether `next` has to wait: a command that may have cost a connection is sent
 * when all others are answered, and nothing behind it. */
bool weir__conn_must_wait(const struct weir__conn *conn,
                          const struct weir__command *next);

/* --- conn/replay.c -------------------------------------------------------- */

void weir__conn_replay_init(struct weir__conn *conn);

/* Takes a request that was answered and is counted nowhere. */
void weir__conn_replay_keep(struct weir__conn *conn,
                            struct weir__command *request,
                            const struct redisReply *reply);

/* One that is a replay was answered, or will not be; `reply` may be NULL. It
 * is counted nowhere then. */
void weir__conn_replay_answered(struct weir__conn *conn,
                                const struct weir__command *request,
                                const struct redisReply *reply);

/* Another connection replays it. */
void weir__conn_replay_leave(struct weir__conn *conn,
                             const struct weir__command *request);

/* Drop what was acknowledged too long ago; not before the last sign of the
 * server is as old. */
void weir__conn_replay_prune(struct weir__conn *conn);

/* The connection is READY: let what was acknowledged go out, if it was by
 * somebody else. */
void weir__conn_replay_begin(struct weir__conn *conn);

/* --- conn/command.c ------------------------------------------------------- */

/* A reply came. What is queued at the server says nothing of how long the way
 * there and back takes, so it is noted of a command that was sent alone. */
void weir__conn_note_answer(struct weir__conn *conn);

/* A request that is no replay counts here from now on. */
void weir__conn_book(struct weir__conn *conn,
                     const struct weir__command *request);

/* A request that is on no list, and was not acknowledged or is replayed, counts
 * here no longer. */
void weir__conn_let_go(struct weir__conn *conn,
                       const struct weir__command *request);

/* --- conn/queue.c: ending ------------------------------------------------- */

/* Takes the request, which is on no list any more. Its bytes outlive its
 * callback, which may want them back. */
void weir__conn_finish(struct weir__conn *conn, struct weir__command *request,
                       int code, const struct redisReply *reply);

/* --- conn/queue.c: life --------------------------------------------------- */

/* Free the context, if any; not below hiredis. */
void weir__conn_drop_context(struct weir__conn *conn);

void weir__conn_enter(struct weir__conn *conn);

/* `conn` may be gone afterwards. */
void weir__conn_leave(struct weir__conn *conn);

/* --- conn/socket.c -------------------------------------------------------- */

/* Options of a fresh socket: not inherited, dead peers are noticed. */
void weir__socket_prepare(int fd, bool is_unix);

/* The socket is connected to itself: a closed port of the ephemeral range on
 * this machine can do that. */
bool weir__socket_is_own_peer(int fd);

/* A server that turns us away says so and hangs up without reading; when our
 * write fails first, its error is still unread. Takes it, without the '-'. */
bool weir__socket_last_words(int fd, char *text, size_t cap);

/* Bytes are waiting to be read. */
bool weir__socket_is_readable(int fd);

#endif
