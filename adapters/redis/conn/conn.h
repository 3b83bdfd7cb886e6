/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CONN_H
#define WEIR_CONN_H

/* One connection to a Redis server, kept up for ever. The only place that uses
 * hiredis' asynchronous half.
 *
 *   IDLE --> LOCATING --> CONNECTING --> HANDSHAKE --> READY
 *              |              |              |           |
 *              +----------<-- BACKOFF --<----+-----------+  any loss, deadline
 *   any --> CLOSED
 *
 * At each attempt to connect the host is found anew: the locator's answer, or
 * that in the address. A name is looked up on a thread of its own (resolve.h).
 * Where it has several addresses, they are tried in turn before any back-off.
 * A name is looked at every 3 s while the connection stands, too: where it does
 * not have that address any more, the connection is made anew.
 *
 * Handshake: AUTH, behind a locator ROLE, whose answer is waited for, SELECT,
 * CLIENT SETNAME, and where it is wanted what tells who answers; users'
 * commands wait until it is through. A script is loaded ahead of its first call
 * on each connection. Back-off is jittered, 50 ms to 5 s (to a name 2 s), and
 * starts over only after the connection was READY for 5 s; then the first one
 * is 50 ms at most.
 * Where login or rights are refused, it is 5 s to 10 s and each attempt is
 * logged as an error; who is no primary is tried again after 100 to 500 ms
 * first.
 * Every wait but a locator's has a deadline of its own: looking up, connecting
 * (to all addresses together) and handshake 3 s each, a reply 10 s after its
 * command was handed to the socket, a pushed message 10 s after its first byte;
 * when one passes, the connection is closed, since replies are positional. What
 * waits in the socket then, as after a stop of this process, is read first.
 *
 * A reply may have 64 MiB in memory, and 16 MiB more for each body that was
 * asked for, of which 16 count; a pushed message 64 KiB. One that has more
 * closes the connection, and is not asked for again.
 *
 * Commands are queued here and handed to hiredis in bounded portions, written
 * at flush. A command lives here until its reply came: with WEIR__SEND_AGAIN it
 * is sent again after a reconnect (same order), for a minute; otherwise its
 * callback gets WEIR_EUNKNOWN when it had been sent. One of 1 MiB or more gets
 * WEIR_ETOOBIG when the server closed three connections over it
 * (conn/refusal.c). Where no connection comes for `wait_ms` it gets WEIR_ECONN,
 * or WEIR_EUNKNOWN when it may have run. A NOSCRIPT answer makes the script
 * load again and the command go out once more.
 *
 * What a server acknowledged may be gone where another one takes over, or where
 * it starts anew. So commands with WEIR__SEND_REPLAY that were answered without
 * an error are kept for 3 s, up to 16 MiB of them; the 3 s end with the last
 * sign of the server. Where the next one has another identity (or none that is
 * known) they are sent again, in their order and before all others, for a
 * minute from their first time. Whoever sent them is not told.
 *
 * Replies LOADING, READONLY, BUSY and the like (conn/error.c) close the
 * connection, once the replies under way have come, and count as "not run": the
 * command is sent again, whatever its flags. Other errors are for the one who
 * asked.
 *
 * hiredis' callbacks only note what happened; decisions are taken in our own
 * zero-delay timer, because 0.14 frees its context around them. SIGPIPE is
 * blocked around writes. Not thread-safe. */

#include "adapters/redis/script.h"
#include "adapters/redis/url.h"
#include "core/buf.h"
#include "core/error.h"

struct ev_loop;
struct redisReply;
struct weir__conn;
struct weir__command;
struct weir__sequence;

/* Who knows where the server is. */
struct weir__locator {
    /* An attempt to connect begins, and waits for one of weir__conn_located and
     * weir__conn_not_located, inside this call or later. The server has to call
     * itself a primary, but to a connection with a channel. */
    void (*find)(void *arg, struct weir__conn *conn);
    /* The connection is being closed, whatever it does. */
    void (*forget)(void *arg, struct weir__conn *conn);
    void *arg;
    /* Whom it finds need not call itself a primary, and is followed where its
     * name moves. */
    bool is_plain;
};

enum { WEIR__CONN_NAME_MAX = 96, WEIR__IDENTITY_LEN = 16 };

/* What became of a call that had been acknowledged before. */
enum weir__replayed {
    WEIR__REPLAYED_HEARD,  /* the server had heard of it */
    WEIR__REPLAYED_LOST,   /* it had not, and has done it now */
    WEIR__REPLAYED_REFUSED /* it had not, and does not do all of it any more */
};

struct weir__conn_options {
    struct ev_loop *loop;                /* kept */
    const struct weir__redis_url *url;   /* kept */
    const struct weir__redis_host *host; /* kept; NULL: the url's first one */
    const struct weir__locator *locator; /* kept; NULL: it is that host */
    const char *name;    /* CLIENT SETNAME; shorter than that; copied */
    const char *channel; /* SUBSCRIBE to it; likewise; NULL: a normal one */
    uint64_t seed;       /* of back-off jitter */
    size_t max_queued;   /* bytes waiting or unanswered; 0: 64 MiB */
    size_t max_reply;    /* bytes of an answer, beside the bodies that a command
                            asks for; 0: 64 MiB */
    int64_t wait_ms;     /* how long a command may wait while the connection
                            is not READY; 0: 10,000 */
    int64_t connect_ms;  /* deadlines; 0: 3,000, 3,000, 10,000 */
    int64_t handshake_ms;
    int64_t reply_ms;
    int64_t watch_ms;  /* between looks at a name while READY; 0: 3,000 */
    int64_t stable_ms; /* READY for so long, back-off starts over; 0: 5,000 */
    int64_t again_ms;  /* how long after its first time a command that may have
                          run is sent again; 0: 60,000 */
    int64_t replay_ms; /* how long a command that is to be replayed is kept;
                          0: 3,000 */
    const struct weir__log *log; /* kept */
    /* It stands beside another one to the same server, which tells what becomes
     * of that: of this one only debug messages say that it came or was lost. */
    bool is_beside;
    /* Another one to the same server, closed in the same turn or later, which
     * looks at the host's name for this one, too. Kept; NULL: none. */
    const struct weir__conn *lead;
    /* The handshake asks for weir__conn_client_id and what follows it. */
    bool wants_identity;
    /* What the answer to a call that was replayed says of it, for the log;
     * `elements` were in its first answer. NULL: it had been heard of. */
    enum weir__replayed (*judge)(const struct weir__script *script,
                                 const struct redisReply *reply,
                                 size_t elements);
    /* WEIR_OK when READY was reached; otherwise lost or not reached, with a
     * sentence: WEIR_ESERVER when the server turned us away, WEIR_ENOTFOUND
     * when it can be of no use with this address, else WEIR_ECONN or what the
     * locator said.
     * Never runs inside a call into this module. May be NULL. */
    void (*on_state)(int code, const char *text, void *arg);
    /* MOVED, ASK, TRYAGAIN or CLUSTERDOWN answered a command of a sequence (see
     * conn/command.h), with this text: it did not run, and is the callee's now.
     * It is NULL where it was to go by this connection only; then its callback
     * runs next, with WEIR_ECONN, as does that of a command of no sequence.
     * NULL: such errors close the connection. */
    void (*on_redirect)(struct weir__sequence *sequence,
                        struct weir__command *command, const char *text,
                        void *arg);
    /* Nothing of a sequence that is watched is on its way any more. */
    void (*on_drained)(struct weir__sequence *sequence, void *arg);
    /* The answer to CLUSTER SLOTS, which the handshake asks, maybe an error;
     * tells NULL, or what the server is that is of no use (on_state gets
     * WEIR_ENOTFOUND then). NULL: it does not ask. */
    const char *(*on_slots)(const struct redisReply *reply, void *arg);
    /* A message on `channel`. May be NULL. */
    void (*on_message)(struct weir_slice payload, void *arg);
    void *arg;
    int *depth; /* counts our callbacks on the stack; kept; may be NULL */
};

/* Allocate and start to connect. WEIR_ENOMEM. */
int weir__conn_open(const struct weir__conn_options *options,
                    struct weir__conn **ret_conn);

/* Close for good: every pending callback runs with WEIR_ECANCELED, in order,
 * before this returns; on_state does not. Safe inside any callback of this
 * connection. NULL is fine. */
void weir__conn_close(struct weir__conn *conn);

/* The answers to a locator's `find`: a name or a numeric address, which is
 * copied, or a code for on_state and why there is none. */
void weir__conn_located(struct weir__conn *conn, const char *host,
                        uint16_t port);
void weir__conn_not_located(struct weir__conn *conn, int code, const char *why);

/* This is not the server any more: close the connection in the next turn,
 * without reading what it still says, and find the server at once, also where a
 * back-off is under way. Safe inside any callback. */
void weir__conn_abandon(struct weir__conn *conn, const char *why);

/* From now on a command may wait so long while there is no connection. */
void weir__conn_set_wait(struct weir__conn *conn, int64_t wait_ms);

bool weir__conn_is_ready(const struct weir__conn *conn);

/* Was it lost, or not reached, last since the process lacks descriptors or
 * memory? */
bool weir__conn_was_short(const struct weir__conn *conn);

/* It is connected to that host, or connects to it now. */
bool weir__conn_is_at(const struct weir__conn *conn, const char *host,
                      uint16_t port);

/* How long, in ms, the oldest command that was sent has had no answer; 0: none
 * has to come. */
int64_t weir__conn_owed_ms(const struct weir__conn *conn);

/* What the last handshake learned of the server; still so while on_state tells
 * of the loss. 0, "", 0: not known, for example where it may not be asked. */

/* The number of this connection, which the server gives once only. */
int64_t weir__conn_client_id(const struct weir__conn *conn);

/* Another one after each start of a server: WEIR__IDENTITY_LEN hexadecimal
 * digits, which last as long as the connection and until the next handshake. */
const char *weir__conn_identity(const struct weir__conn *conn);

/* What its clock said then, in ms since 1970. */
int64_t weir__conn_server_ms(const struct weir__conn *conn);

/* `reply` is borrowed and NULL unless code is WEIR_OK or WEIR_ESERVER (an
 * error reply; its text is reply->str). Other codes: WEIR_ECONN (never sent),
 * WEIR_EUNKNOWN (sent, no answer), WEIR_ECANCELED. */
typedef void (*weir__reply_fn)(int code, const struct redisReply *reply,
                               void *arg);

enum { WEIR__BODIES_MAX = 16 };

enum weir__send_flags {
    WEIR__SEND_ONCE = 0,
    WEIR__SEND_AGAIN =
        1, /* idempotent: send again when its outcome is unknown */
    WEIR__SEND_REPLAY = 2, /* send again, also after its answer, where that may
                              have been lost: the server knows a repeat for at
                              least a minute, and what came of it meanwhile */
    WEIR__SEND_HERE = 4,   /* by this connection or not at all: WEIR_ECONN where
                            there is none, WEIR_EUNKNOWN where it is lost */
    WEIR__SEND_BODY = 8
};

/* To be added to the flags: how many bodies are asked for, at most. Who has
 * asked for any gets WEIR_ETOOBIG where the answer was too large. */
static inline unsigned weir__send_bodies(size_t count)
{
    return WEIR__SEND_BODY *
           (unsigned)(count < WEIR__BODIES_MAX ? count : WEIR__BODIES_MAX);
}

/* Queue one command. Takes `bytes` (exactly one RESP command) and leaves it
 * empty, also on failure. `script` is what the command runs (kept), or
 * NULL. `fn` may be NULL. Not for connections with a channel. WEIR_EFULL,
 * WEIR_ECONN, WEIR_ENOMEM (also when bytes->failed), WEIR_ECANCELED inside
 * weir__conn_close. */
int weir__conn_send(struct weir__conn *conn, struct weir__buf *bytes,
                    const struct weir__script *script, unsigned flags,
                    weir__reply_fn fn, void *arg);

/* Inside the callback of an answer: the command that was answered. The caller
 * owns the bytes; a second call gets none. */
void weir__conn_take_back(struct weir__conn *conn, struct weir__buf *ret_bytes);

/* Inside the callback of the first answer to a command with WEIR__SEND_REPLAY:
 * replay `bytes` (exactly one RESP command, taken) instead of that command, and
 * nothing if they are empty. Without memory the command itself is replayed.
 * Elsewhere only the bytes are freed. */
void weir__conn_replay_instead(struct weir__conn *conn,
                               struct weir__buf *bytes);

/* Likewise: replay nothing, since the answer says that nothing was done. An
 * answer that may be to a repeat says nothing of the first copy. */
void weir__conn_replay_nothing(struct weir__conn *conn);

/* Write what is queued, as far as bounds and the socket allow; the rest goes
 * by itself as the socket drains. Call it at the end of each turn. */
void weir__conn_flush(struct weir__conn *conn);

/* Bytes of the commands that wait or are not answered yet. */
size_t weir__conn_queued(const struct weir__conn *conn);

/* So many calls of scripts wait or are not answered yet that the server has
 * enough to do until an answer has come here: what is sent now waits there. */
bool weir__conn_is_busy(const struct weir__conn *conn);

/* How long the server worked on what is read now, as far as the loop waited for
 * it: since this connection sent or read something last, without the way there
 * and back. -1: not known, or it was told of this read already. */
int64_t weir__conn_take_work_ns(struct weir__conn *conn);

/* Commands handed to the socket since open, the handshakes' included; for tests
 * and statistics. */
uint64_t weir__conn_sent(const struct weir__conn *conn);

#endif
