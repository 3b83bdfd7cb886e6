/* SPDX-License-Identifier: MIT */
#ifndef WEIR_STORE_PLACE_H
#define WEIR_STORE_PLACE_H

/* Which server a command is for. All keys of a topic are in one slot of 16,384,
 * and one server at a time serves a slot: that is a place. What is sent to a
 * place runs in that order, also where the place gets another server meanwhile:
 *
 *            MOVED, or the map names another server
 *  SETTLED ---------------------------------> LEAVING --nothing on its way--+
 *    |  ^                                                                   |
 *    |  +-------------------------------------------------------------------+
 *    |  +-- answered -- PROBING <--20 ms, doubling to 100 ms-- HELD
 *    |                     +-------- ASK and the like ---------> ^
 *    +--------------- ASK, TRYAGAIN, CLUSTERDOWN, no server -----+
 *
 * In LEAVING and HELD new commands wait here; those that come back without
 * having run go ahead of them. PROBING sends the oldest alone. Where no cluster
 * is each place is settled for ever. */

#include "adapters/redis/conn/command.h"

struct weir__confirms;
struct weir__redis;
struct weir__request;

enum { WEIR__SERVER_WORKER_CAP = 112, WEIR__FETCHERS = 4 };

/* A server that keeps jobs, and the store's connections to it. */
struct weir__server {
    struct weir__redis *store;
    struct weir__server *next;
    struct weir__redis_host host; /* as the map calls it */
    struct weir__locator locator; /* which names that */
    struct weir__conn *commands;
    /* What fetches large answers, for the kind that wants it; NULL: not yet. */
    struct weir__conn *fetchers[WEIR__FETCHERS];
    size_t fetcher;           /* the last one used */
    struct weir__conn *wakes; /* NULL: nothing is listened to there */
    /* The name that it wakes us by: in a cluster, where all servers hear each
     * other's wake-ups, with the server's identity behind an @. */
    char worker[WEIR__SERVER_WORKER_CAP];
    uint64_t connection; /* number of the last one that stood, of all */
    bool is_up;          /* it stands */
    bool is_away;        /* it was lost, or did not come */
    bool is_dirty;       /* something was sent and not flushed */
    bool is_spare;       /* it had no place at the last look */
    bool evicts;         /* its policy drops keys, which was logged */
    int64_t down_ns;     /* since when none does; 0: there was none */
    int64_t ahead_ms;    /* its time minus our monotonic time */
    struct weir__confirms *confirms; /* NULL: nothing was to be confirmed */
};

enum weir__place_state {
    WEIR__PLACE_SETTLED,
    WEIR__PLACE_LEAVING,
    WEIR__PLACE_HELD,
    WEIR__PLACE_PROBING
};

/* They are opened anew when they are needed. */
void weir__server_close_fetchers(struct weir__server *server);

struct weir__place {
    struct weir__sequence sequence; /* first */
    /* For connections beside, which find the server that serves the place. */
    struct weir__locator locator;
    struct weir__redis *store;
    struct weir__place *next; /* in its bucket */
    struct weir__server *server;
    uint16_t slot;
    enum weir__place_state state;
    bool is_moving; /* on the list of those that are not
                                          settled, or were not a moment ago */
    struct weir__place *next_moving;
    struct weir__command_list back; /* did not run */
    struct weir__command_list held; /* wait */
    size_t held_bytes;              /* of both */
    int64_t left_ns;                /* when it last left a server; 0: never */
    int64_t since_ns;               /* not settled */
    int64_t probe_ns;               /* when to probe, or when that began */
    /* PROBING: nothing was held, what is sent next is the probe. */
    bool is_open;
    bool is_told;     /* that it waits */
    bool is_down;     /* nobody serves it, said a server last */
    char why[96];     /* what a server said, cut */
    int64_t probe_ms; /* the wait before that */
};

/* The place of a topic. NULL: out of memory. It lives as long as the store. */
struct weir__place *weir__place_of_topic(struct weir__redis *store,
                                         struct weir_slice topic);

/* The same of a slot. */
struct weir__place *weir__place_of_slot(struct weir__redis *store,
                                        uint16_t slot);

/* Send one command (see weir__conn_send); `request` may be NULL. Where that is
 * not possible the request is done a little later with the code. */
void weir__place_send(struct weir__place *place, struct weir__buf *bytes,
                      const struct weir__script *script, unsigned flags,
                      struct weir__request *request);

/* The same by another connection of the store. */
void weir__redis_send_by(struct weir__redis *store, struct weir__conn *conn,
                         struct weir__buf *bytes,
                         const struct weir__script *script, unsigned flags,
                         struct weir__request *request);

/* The same without a request, and with the codes of weir__conn_send. */
int weir__place_command(struct weir__place *place, struct weir__buf *bytes,
                        const struct weir__script *script, unsigned flags,
                        weir__reply_fn fn, void *arg);

/* Let what was sent leave, outside of a flush of the store. */
void weir__place_flush(struct weir__place *place);

/* What is sent now leaves at once. */
bool weir__place_is_up(const struct weir__place *place);

/* Bytes of the commands that wait for its server or its answers. */
size_t weir__place_queued(const struct weir__place *place);

/* A connection of weir__link_beside_place that has had no answer for 1 s from
 * another server than the place's is closed, and finds this one. Nobody else
 * tells it where the other server stands still. */
void weir__place_look_beside(const struct weir__place *place,
                             struct weir__conn *conn);

/* --- for store/cluster.c and store/link.c --------------------------------- */

/* Somebody may wait for it: nobody does for the list of topics where it only
 * learns of one. */
bool weir__place_is_asked(const struct weir__place *place);

/* The map names another server. */
void weir__place_leave(struct weir__place *place);

/* Its server's connection was lost: nothing is on its way there. */
void weir__place_lost(struct weir__place *place);

/* `on_redirect` and `on_drained` of the connections; `arg` is the server. */
void weir__place_redirected(struct weir__sequence *sequence,
                            struct weir__command *command, const char *text,
                            void *arg);
void weir__place_drained(struct weir__sequence *sequence, void *arg);

/* Look at the places that are not settled: probe, give up what waited too long.
 * False: all are. */
bool weir__places_tick(struct weir__redis *store);

/* Before connections are closed: what is held is theirs again. */
void weir__places_release(struct weir__redis *store);
void weir__places_fini(struct weir__redis *store);

#endif
