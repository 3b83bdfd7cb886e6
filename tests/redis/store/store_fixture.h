/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_STORE_FIXTURE_H
#define WEIR_TEST_STORE_FIXTURE_H

/* Stores on one server and one loop, each with one topic "t", and what
 * they report written down. The loop flushes every store before it sleeps, as
 * the driver of a reactor does. */

#include <ev.h>

#include "adapters/redis/store/kind.h"
#include "tests/harness/redis_proc.h"
#include "tests/harness/test.h"

struct host {
    struct weir__options served;
    struct host *next;
    struct weir__store *store;
    struct weir__store_topic *topic;
    bool is_up;
    int ups;

    int claims;                         /* answered */
    struct weir__claimed claimed;       /* the last answer */
    struct weir__run *runs, **runs_end; /* arrived and not taken */
    size_t arrived, lost;
    size_t settled, refused;
    int wakes, starts, start_code;
    bool takes_jobs;     /* its claims offer */
    int handed;          /* jobs that came without a claim */
    int64_t since_ns;    /* of the last one */
    uint64_t lost_token; /* the last one */

    int added, existing, failed; /* answers to adds */
    int last_code;
    char last_id[WEIR_MAX_ID + 1];

    uint64_t dropped[3]; /* by enum weir_drop */

    int shown; /* answers to show, dead, remove */
    int show_code;
    struct weir_job_info info; /* of the last; slices are copied */
    char text[6][256];         /* id, error, reason, body, url, worker */
    enum weir_job_state was;
    bool is_listed; /* the end of a list came */
    uint64_t count; /* of requeue, purge, forget */
    int64_t due_ms; /* of reschedule */

    char options[512]; /* stored with the topic, "name=value " each */
    int options_count; /* how often they were told */

    struct weir_stats stats; /* numbers; the text is in `kind` */
    char kind[16], unserved[512];
    int stats_code, stats_count;
    char topics[256];
};

/* The loop and a plain server. What is open is closed first, or with the test.
 */
struct redis_proc *world_open(const struct redis_options *options);
void world_close(void);

/* The loop alone: the servers are at `url`, which is kept. */
void world_open_at(const char *url);
extern struct redis_proc *proc; /* the server */
int64_t world_clock(void *arg); /* monotonic ns */
extern int64_t world_ns;        /* where the clock stands; 0: it runs */
extern char world_log[8192];    /* what was logged, one line each */

/* In the world, which is a plain one where none was opened. With a topic "t" of
 * kind delay, of another kind, and with these options. */
#define host_open(worker) host_open_kind(worker, "delay")
#define host_open_kind(worker, kind) \
    host_open_as(worker, kind, (const char *const[]){NULL})
struct host *host_open_as(const char *worker, const char *kind,
                          const char *const *said);

/* Serve the topic "t" with these options, as "name=value" or as values; have
 * `host` work with the topic `name` instead of it. */
#define host_serve(host, ...) \
    host_serve_said(host, (const char *const[]){__VA_ARGS__, NULL})
void host_serve_said(struct host *host, const char *const *texts);
void host_serve_with(struct host *host, const struct weir__options *options);
void host_use(struct host *host, const char *name);
void host_close(struct host *host);

/* One turn of the loop; fails the test when AWAIT takes too long. */
void world_turn(void);
extern struct patience world_patience;

#define AWAIT(condition)                                      \
    for (world_patience = patience_start(30.); !(condition);) \
    world_turn()

/* So many turns; turns for at least so long. */
void world_turns(int count);
void world_pass(int ms);

/* Add a job with an integer or text body; id NULL: made. */
void host_add(struct host *host, const char *id, int64_t delay_ms);
void host_add_record(struct host *host, const char *id,
                     const struct weir__record *record, int64_t delay_ms);

/* Counts the answer of an add; `arg` is the host. */
void host_added(int code, const char *id, void *arg);

/* Claim and wait for the runs. Returns how many came. */
size_t host_claim(struct host *host, size_t room, int64_t lease_ms);

struct weir__run *host_take(struct host *host);           /* the next run */
int host_start(struct host *host, struct weir__run *run); /* the answer */
/* The handler of the run begins to hold the loop; it returns. */
void host_enter(struct host *host, struct weir__store_topic *topic,
                struct weir__run *run, int64_t timeout_ms);
bool host_leave(struct host *host, const struct weir__run *run);
void host_settle(struct host *host, struct weir__run *run,
                 enum weir__outcome outcome);
void host_settle_all(struct host *host, enum weir__outcome outcome);
void host_await_settled(struct host *host);

/* Claim what is due until `count` jobs came, and have them die: after three
 * attempts, "failed", with the error "no such order". */
void host_bury(struct host *host, size_t count);

/* NUL-terminated, until the next call. */
const char *run_id(const struct weir__run *run);

/* Jobs "job-N", and working them off: counts the runs of each, until a claim
 * gets nothing. */
void host_add_numbered(struct host *host, int from, int to, int64_t delay_ms);
void host_work_off(struct host *host, uint8_t *ran, size_t count);

/* --- store/look_fixture.c ------------------------------------------------- */

int host_show(struct host *host, const char *id);
int host_remove(struct host *host, const char *id);
int host_dead(struct host *host, size_t limit);
int host_stats(struct host *host);

int host_requeue(struct host *host, const char *id);      /* NULL: all */
void host_ask_requeue(struct host *host, const char *id); /* is_listed: done */
void host_ask_purge(struct host *host, enum weir__purge what);
int host_forget(struct host *host, const char *id);
int host_purge(struct host *host, enum weir__purge what);
int host_reschedule(struct host *host, const char *id, int64_t delay_ms,
                    int64_t at_ms);
int host_list(struct host *host, enum weir_job_state state, size_t limit);
int host_pause(struct host *host, bool is_paused);
int host_set(struct host *host, const char *name, const char *value);

#endif
