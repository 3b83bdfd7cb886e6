/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_TEAM_H
#define WEIR_BENCH_TEAM_H

/* Members: processes that add jobs, handle jobs, or both, each with a reactor
 * of its own. They report through shared memory, so that what one of them saw
 * survives when it is killed, and obey orders sent through a pipe; they end
 * when the pipe does.
 *
 *     STARTING -> READY -(go)-> RUNNING -> DONE (all added) -(stop)-> ENDED */

#include "bench/tally.h"

#include <sys/types.h>
#include <weir/base.h>

enum { BENCH_MEMBERS_MAX = 64, BENCH_REQUEST_LIMIT_MS = 120000 };

enum bench_state {
    BENCH_STARTING,
    BENCH_READY,   /* connected; claims already where it was told to */
    BENCH_RUNNING, /* got the order to go */
    BENCH_DONE,    /* everything it had to add is acknowledged */
    BENCH_ENDED,   /* stopped: everything is settled or given back */
    BENCH_FAILED   /* see its error */
};

/* What a member tells; written by it alone, each on cache lines of its own. */
struct bench_member {
    _Alignas(128) _Atomic int state;
    _Atomic int64_t handled;    /* runs */
    _Atomic int64_t fresh;      /* runs of jobs that had not run before */
    _Atomic int64_t settled;    /* `handled` when it last ran out of work */
    _Atomic int64_t settled_ns; /* when that was */
    _Atomic int64_t backlog;    /* runs of the other topic */
    int64_t begun_ns, added_ns; /* order to go; the last add acknowledged */
    int64_t cpu_ns;             /* from the order to go to that to stop */
    int64_t add_cpu_ns;         /* from the order to go to `added_ns` */
    int64_t turn_ns; /* the longest turn of its loop between these two */
    int64_t rss_kib;
    char error[200];
};

/* What members share. `stamp` has one entry for each job, or none. */
struct bench_arena {
    struct bench_member member[BENCH_MEMBERS_MAX];
    struct bench_tally *tally;
    _Atomic int64_t *stamp;
    size_t size; /* bytes of all of it */
};

#define BENCH_NO_STAMP INT64_MIN

/* What a handler notes in `stamp`. */
enum bench_stamps {
    BENCH_STAMP_NONE,
    BENCH_STAMP_WAKE, /* ns since the producer, or the handler that added the
                         job, noted the time */
    BENCH_STAMP_LATE, /* us from its due time to now, below 0: early */
    BENCH_STAMP_ORDER /* the monotonic time in ns */
};

/* How a handler finishes its jobs. */
enum bench_handler {
    BENCH_HANDLER_SYNC,
    BENCH_HANDLER_PENDING,  /* in the next turn of the loop */
    BENCH_HANDLER_RANDOM,   /* half of what is pending in each turn */
    BENCH_HANDLER_BLOCKING, /* threads call it */
    BENCH_HANDLER_TIMER     /* a millisecond later */
};

/* Topics that jobs go to in turn, `batch` of them each, by their numbers. */
enum { BENCH_SPREAD_MAX = 1024, BENCH_TOPIC_CAP = 41 };
struct bench_spread {
    int64_t batch;
    int count;
    char topics[BENCH_SPREAD_MAX][BENCH_TOPIC_CAP];
};

/* Which of them a job goes to. */
static inline int bench_spread_of(const struct bench_spread *spread,
                                  int64_t number)
{
    return (int)(number / spread->batch % spread->count);
}

struct bench_role {
    const char *url, *topic, *kind;
    const struct bench_spread *spread; /* in place of the topic; or NULL */
    bool adds, handles;
    /* Adding: jobs numbered from 0. */
    int64_t jobs, payload_bytes;
    int64_t batch;       /* jobs in a turn of the loop */
    int64_t in_flight;   /* how many may be unanswered; 0: 32 batches, 1,024
                            at least */
    int64_t id_base;     /* the number of the first id */
    bool makes_ids;      /* weir does */
    bool has_groups;     /* as those of bounded topics */
    int64_t groups;      /* how many; 0: 1,000 */
    int64_t keys;        /* each has one of so many; 0: they have none */
    bool has_priorities; /* each of the four in turn */
    bool is_unique;      /* each has its id as its unique key */
    int64_t first;       /* the number of the first job, else 0 */
    int64_t per_s;       /* > 0: so many in a second, not as many as go */
    bool is_hot;       /* adds to ten groups hot-N, with no number, for ever */
    int64_t delay_ms;  /* of every job */
    int64_t from_ms;   /* > 0: time of the server, in place of the delay */
    int64_t spread_ms; /* and so much more at random */
    int64_t pause_ms;  /* > 0: one by one, each so long after the
                                   one before was handled */
    /* Handling. */
    bool handles_at_once;      /* READY when it waits for jobs */
    int64_t lease_ms;          /* 0: the default */
    int64_t concurrency;       /* of the topic; 0: the default */
    int64_t idle_topics;       /* other topics that it serves */
    const char *follow_topic;  /* gets each job with its verdict, or NULL */
    const char *backlog_topic; /* served when ordered so, or NULL */
    int64_t backlog_jobs;
    int64_t clock_ahead_us;   /* the server's clock before ours */
    enum bench_stamps stamps; /* none where the handler is blocking */
    enum bench_handler handler;
};

struct bench_team {
    struct bench_arena *arena;
    int count;
    struct {
        pid_t pid; /* 0: reaped */
        int orders;
    } process[BENCH_MEMBERS_MAX];
};

/* `jobs` are counted; with `stamps` each has a stamp. WEIR_ENOMEM. */
int bench_team_init(struct bench_team *team, int64_t jobs, bool stamps,
                    struct weir_error *err);

/* Kill whoever is left, free everything. A zeroed team is fine. */
void bench_team_fini(struct bench_team *team);

/* Start a member and wait until it is READY. Returns its number, or a code. */
int bench_team_join(struct bench_team *team, const struct bench_role *role,
                    struct weir_error *err);

enum { BENCH_GO = 'g', BENCH_STOP = 's', BENCH_BACKLOG = 'b' };
void bench_team_order(struct bench_team *team, int who, char order);

/* kill -9, and wait until it is gone. */
void bench_team_kill(struct bench_team *team, int who);

/* Order everybody to stop and wait until they are gone. */
int bench_team_stop(struct bench_team *team, struct weir_error *err);

/* WEIR_OK while all is well; otherwise the sentence of whoever failed. */
int bench_team_check(struct bench_team *team, struct weir_error *err);

int bench_team_state(const struct bench_team *team, int who);

/* Sums over all members. */
int64_t bench_team_handled(const struct bench_team *team);
int64_t bench_team_fresh(const struct bench_team *team);
int64_t bench_team_cpu_ns(const struct bench_team *team);

/* The longest turn of anybody's loop. */
int64_t bench_team_turn_ns(const struct bench_team *team);

/* True when every live member has settled whatever it handled; then
 * `*ret_ns` is the moment at which the last of them had. */
bool bench_team_settled(const struct bench_team *team, int64_t *ret_ns);

/* The life of a member; BLOCKS until it is told to stop. In member.c. */
void bench_member_run(const struct bench_role *role, struct bench_arena *arena,
                      int who, int orders);

#endif
