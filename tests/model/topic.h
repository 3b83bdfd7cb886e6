/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_TOPIC_H
#define WEIR_TEST_TOPIC_H

/* What weir promises of one delay topic, told job by job. The model knows jobs
 * and not how a server keeps them. Who hears a call (listen.h) tells it what
 * was asked for and what was answered. Each function changes the model, and
 * notes in `problem` what the answer broke. Times are those of the server. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum job_state { GONE, WAITS, RUNS, DEAD };

struct job {
    char *id;
    char *lane; /* its priority and its key; NULL: it has none */
    enum job_state state;
    int64_t due_ms;    /* also while it runs */
    bool is_due_loose; /* the clock was set back: it may be due earlier */
    uint64_t token;    /* RUNS: of its claim */
    unsigned crashes;  /* leases that ended and count */
    bool is_started;   /* RUNS: its start was noted */
    bool has_moved;    /* it was retried, snoozed or requeued */
    bool is_seen;      /* for who looks at all jobs */
    const char *place; /* where that found it, the listener's */
    int64_t died_ms;
    size_t at;        /* in `live` or in `dead` */
    struct job *next; /* of all that ever were */
};

struct lease {
    uint64_t token;
    int64_t deadline_ms, length_ms;
};

/* A worker that comes at `wake_ms` unless it is woken. INT64_MAX: it never
 * comes by itself; INT64_MIN: no job that is added wakes it. */
struct sleeper {
    char *name;
    int64_t wake_ms;
    bool is_busy; /* it has jobs in hand */
};

struct told {
    char *name;
    bool is_heard;
};

/* A worker that waits for a job that is added: it is handed the next one. */
struct offer {
    char *worker; /* NULL: there is none */
    long long number;
    int64_t us; /* when it was made */
};

/* What is counted of jobs since the topic began. */
struct counters {
    long long added, settled, retried, snoozed, failed, expired, returned,
        crashed, delwait, delrun, requeued;
};

enum { PROBLEM_CAP = 400 };

struct topic {
    char name[48];
    int64_t now_ms;
    bool was_set_back; /* the clock, ever */
    bool is_paused;
    long long max_pending; /* 0: no bound */
    uint64_t last_token;
    struct counters count;
    struct job **live, **dead; /* WAITS and RUNS; DEAD */
    size_t live_count, live_cap, dead_count, dead_cap, waiting;
    struct lease *leases; /* in no order */
    size_t lease_count, lease_cap;
    struct sleeper *sleepers;
    size_t sleeper_count, sleeper_cap;
    struct told *told; /* in this call */
    size_t told_count, told_cap;
    struct offer offer;
    int64_t entered_ms; /* the first due time of jobs that began to wait in this
                           call; INT64_MAX: none */
    size_t entered;     /* these jobs */
    void *by_id;        /* jobs, a tree */
    void *said;         /* answers to adds */
    void *unique;       /* unique keys */
    struct job *first;  /* of all that ever were */
    char problem[PROBLEM_CAP]; /* the first one; "": none was found */
};

struct topic *topic_new(const char *name);
void topic_free(struct topic *topic);

/* Notes the first problem. */
void topic_problem(struct topic *topic, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The job that has the id: it waits, runs or is dead. NULL: none. */
struct job *topic_find(const struct topic *topic, const char *id);

/* --- adding -------------------------------------------------------------- */

enum add_outcome { ADDED, EXISTS, FULL, HELD };

/* Adds a job. On ADDED *ret_job waits. A time in the past counts as now. */
enum add_outcome topic_add(struct topic *topic, const char *id,
                           const char *lane, int64_t due_ms,
                           struct job **ret_job);

/* What a job that comes with a unique key says of it. */
struct unique_rule {
    const char *key;
    enum unique_mode { REJECT, REPLACE, DEBOUNCE, THROTTLE } mode;
    enum unique_form { UNTIL_DONE, UNTIL_START, FOR } form;
    int64_t ms;      /* FOR */
    int64_t most_ms; /* DEBOUNCE; -1: none */
};

/* The same with a unique key. On HELD *ret_job is the job that holds it. */
enum add_outcome topic_add_unique(struct topic *topic, const char *id,
                                  const char *lane, int64_t due_ms,
                                  const struct unique_rule *rule,
                                  struct job **ret_job);

/* A call says a number from its call slot. Returns what was answered where the
 * call is a repeat, NULL where it is new. "late": nothing of it was stored. */
const char *topic_said(struct topic *topic, const char *call_slot,
                       const char *number);
void topic_say(struct topic *topic, const char *call_slot, const char *number,
               const char *answer);

/* --- running ------------------------------------------------------------- */

struct claim {
    unsigned room, most_nodes;
    int64_t lease_ms;
    uint64_t token;   /* 0: nothing was taken */
    unsigned jobs;    /* that came */
    size_t nodes;     /* in so many pieces */
    int64_t next_us;  /* until the worker is to ask again; -1: never */
    bool is_bounded;  /* a limit may have held some back */
    int64_t first_ms; /* the first due time of those that came */
    int64_t last_ms;  /* the last one of those without keys; 0: there is none */
};

/* The job's lease has ended, and the job waits again. */
void topic_expire(struct topic *topic, struct job *job);

/* The claim gives out this job, and says when it is due and how often it
 * crashed. */
void topic_take(struct topic *topic, struct claim *claim, struct job *job,
                int64_t due_ms, unsigned crashes);

/* That was all. Were they the right ones, and is the time to ask again
 * right? */
void topic_end_claim(struct topic *topic, const struct claim *claim);

/* When the first job that waits is due; when there is something to do, also
 * since a lease has ended. INT64_MAX: never. */
int64_t topic_first_due_ms(const struct topic *topic);
int64_t topic_next_ms(const struct topic *topic);

/* The job was handed to a worker that waited. */
void topic_hand_over(struct topic *topic, struct job *job, uint64_t token,
                     int64_t lease_ms);

struct lease *topic_lease(struct topic *topic, uint64_t token);
bool topic_runs_under(const struct topic *topic, uint64_t token);

/* Nothing is left of the claim. */
void topic_close(struct topic *topic, uint64_t token);

/* --- verdicts; the job runs ---------------------------------------------- */

static inline bool job_runs(const struct job *job, uint64_t token)
{
    return job != NULL && job->state == RUNS && job->token == token;
}

/* It is done or expired; it is retried or snoozed; it is dead; it was not
 * started and goes back. */
void topic_end(struct topic *topic, struct job *job);
void topic_again(struct topic *topic, struct job *job, int64_t due_ms);
void topic_die(struct topic *topic, struct job *job);
void topic_return(struct topic *topic, struct job *job, int64_t due_ms);

/* More are dead than may be. Returns how many of the oldest went. */
size_t topic_drop_oldest(struct topic *topic, size_t most);

/* A job that another topic did not take dies in this one. */
void topic_enter_dead(struct topic *topic, const char *id);

/* --- offers -------------------------------------------------------------- */

/* The last one counts. */
void topic_offer(struct topic *topic, const char *worker, long long number,
                 int64_t now_us);

/* NULL: the offer of any worker. */
void topic_withdraw(struct topic *topic, const char *worker);

/* Is the job, which was just added, handed to who offered itself? Nothing else
 * is due then. */
bool topic_is_handed(const struct topic *topic, const struct job *job);

/* --- wake-ups ------------------------------------------------------------ */

void topic_sleep(struct topic *topic, const char *name, int64_t wake_ms,
                 bool is_busy);
void topic_awake(struct topic *topic, const char *name);

/* The call sends the worker a wake-up, which is heard or not. */
void topic_tell(struct topic *topic, const char *name, bool is_heard);

/* The worker makes the call, so it hears nothing new. */
void topic_untell(struct topic *topic, const char *name);

/* Were the right ones woken for something that is due then? INT64_MAX: there is
 * nothing. */
void topic_judge_wakes(struct topic *topic, int64_t due_ms);

/* Whoever was told is awake. */
void topic_end_call(struct topic *topic);

/* --- managing ------------------------------------------------------------ */

/* In whatever state it is. */
void topic_delete(struct topic *topic, struct job *job);
void topic_reschedule(struct topic *topic, struct job *job, int64_t due_ms);
void topic_requeue(struct topic *topic, struct job *job, int64_t due_ms);

/* --- for the files of the model ------------------------------------------ */

bool topic_is_full(const struct topic *topic);
struct job *topic_enter(struct topic *topic, const char *id, const char *lane,
                        int64_t due_ms);
void topic_wait(struct topic *topic, struct job *job, int64_t due_ms);
void topic_leave(struct topic *topic, struct job *job, enum job_state state);
void unique_free(struct topic *topic);
void wake_free(struct topic *topic);

/* realloc that ends the program when there is no memory. */
void *topic_grow(void *list, size_t count, size_t *cap, size_t size);
char *topic_text(const char *ptr, size_t len);

#endif
