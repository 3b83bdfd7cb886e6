/* SPDX-License-Identifier: MIT */
#include "adapters/redis/store/keeper.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "adapters/redis/conn/compat.h"
#include "adapters/redis/monotonic.h"
#include "adapters/redis/store/kind.h"
#include "adapters/redis/store/probes.h"
#include "adapters/redis/thread.h"
#include "core/assert.h"
#include "core/call.h"
#include "core/mem.h"
#include "core/text.h"

enum {
    SHUT = 0, /* the gate's lower two bits; above is the number of the call */
    OPEN = 1,
    BUSY = 2,
    STATE = 3,

    ROUND_MS = 5000,    /* for all servers together */
    LOOK_MAX_MS = 1000, /* between two looks */
    LOOK_MIN_MS = 10,   /* for the shortest leases and timeouts */
    TRY_AGAIN_MS = 100, /* after a server did not answer */
    CRASH_MS = 1000,    /* a process that ends waits for the keeper */
    LOG_MS = 1000,      /* between two lines about what holds the loop */
    HELD_MS = 600000    /* so long leases are kept for it at least */
};

#define MS_NS INT64_C(1000000)

struct weir__keeper {
    const struct weir__redis *store;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* the gate */
    sem_t wake;             /* look now */
    _Atomic bool is_stopping;
    _Atomic(const char *) crash; /* how the process ends; NULL: it lives */
    _Atomic bool is_crash_noted; /* or cannot be */

    _Atomic uint64_t gate;
    _Atomic uint64_t turn;       /* of the loop */
    _Atomic bool is_calling;     /* the loop thread is inside a call */
    _Atomic int64_t deadline_ns; /* of the run that is called, or INT64_MAX */
    _Atomic uint64_t taken;      /* number of the last run that was settled */
    _Atomic int64_t least_ms;    /* of all leases and timeouts */

    /* The loop thread's; behind the gate the keeper reads `call`. */
    unsigned shuts;          /* that were not reopened */
    uint64_t number;         /* of the call that began last */
    struct weir__call *call; /* the innermost; NULL: none */

    /* The keeper thread's. */
    struct weir__probes *probes;
    struct weir__overdue *overdue; /* NULL: no topic of a kind that has one */
    struct weir__renewals calls;
    uint64_t seen;      /* number of a call that was there at the last look */
    uint64_t decided;   /* number of a run that is settled, or cannot be */
    uint64_t seen_turn; /* of the last look */
    bool seen_calling;  /* likewise */
    int64_t turn_ns;    /* when a look first saw it */
    int64_t seen_ns;    /* likewise the call */
    int64_t renew_at_ns;
    int64_t again_at_ns; /* by servers that are away; INT64_MAX: none is */
    int64_t log_at_ns;
};

/* --- the loop thread ------------------------------------------------------ */

void weir__keeper_note(struct weir__keeper *keeper, int64_t ms)
{
    if (keeper == NULL ||
        ms >= atomic_load_explicit(&keeper->least_ms, memory_order_relaxed))
        return;
    atomic_store_explicit(&keeper->least_ms, ms, memory_order_relaxed);
    (void)sem_post(&keeper->wake);
}

static uint64_t number_of(const struct weir__keeper *keeper)
{
    return keeper->call == NULL ? 0 : keeper->call->number;
}

void weir__keeper_shut(struct weir__keeper *keeper)
{
    uint64_t wanted;

    if (keeper == NULL || keeper->shuts++ > 0)
        return;
    wanted = number_of(keeper) << 2 | OPEN;
    if (atomic_compare_exchange_strong_explicit(&keeper->gate, &wanted, SHUT,
                                                memory_order_acq_rel,
                                                memory_order_acquire))
        return;
    (void)pthread_mutex_lock(&keeper->lock);
    while ((atomic_load(&keeper->gate) & STATE) == BUSY)
        (void)pthread_cond_wait(&keeper->changed, &keeper->lock);
    atomic_store(&keeper->gate, SHUT);
    (void)pthread_mutex_unlock(&keeper->lock);
}

void weir__keeper_reopen(struct weir__keeper *keeper)
{
    if (keeper == NULL || --keeper->shuts > 0)
        return;
    atomic_store_explicit(&keeper->gate, number_of(keeper) << 2 | OPEN,
                          memory_order_release);
}

/* The gate is shut. */
static void set_call(struct weir__keeper *keeper, struct weir__call *call)
{
    keeper->call = call;
    atomic_store_explicit(&keeper->is_calling, call != NULL,
                          memory_order_relaxed);
    atomic_store_explicit(&keeper->deadline_ns,
                          call == NULL || call->run == NULL ? INT64_MAX
                                                            : call->deadline_ns,
                          memory_order_relaxed);
}

void weir__keeper_enter(struct weir__keeper *keeper, struct weir__call *call)
{
    if (call->run != NULL)
        weir__keeper_note(keeper,
                          (call->deadline_ns - call->run->started_ns) / MS_NS);
    weir__keeper_shut(keeper);
    call->number = ++keeper->number;
    call->outer = keeper->call;
    set_call(keeper, call);
    weir__keeper_reopen(keeper);
}

bool weir__keeper_has_taken(const struct weir__keeper *keeper)
{
    return atomic_load_explicit(&keeper->taken, memory_order_acquire) ==
           keeper->number;
}

bool weir__keeper_leave(struct weir__keeper *keeper, struct weir__call *call)
{
    if (call->number == 0)
        return false; /* the keeper was opened while the handler ran */
    WEIR_ASSERT(keeper->call == call);
    weir__keeper_shut(keeper);
    set_call(keeper, call->outer);
    weir__keeper_reopen(keeper);
    return call->run != NULL &&
           atomic_load_explicit(&keeper->taken, memory_order_acquire) ==
               call->number;
}

bool weir__keeper_has_call(const struct weir__keeper *keeper)
{
    return keeper != NULL && keeper->call != NULL;
}

void weir__keeper_turn(struct weir__keeper *keeper)
{
    uint64_t turn;

    if (keeper == NULL || keeper->call != NULL) /* of a loop inside a loop */
        return;
    turn = atomic_load_explicit(&keeper->turn, memory_order_relaxed);
    atomic_store_explicit(&keeper->turn, turn + 1, memory_order_relaxed);
}

/* --- a thread that ends the process --------------------------------------- */

/* A handler of a signal may call nothing but what does not wait for others: the
 * thread that it interrupts may have any lock. Steps are longer on a machine
 * that is busy. */
void weir__keeper_note_crash(struct weir__keeper *keeper, const char *how)
{
    const struct timespec step = {.tv_nsec = 1000000};
    const char *none = NULL;

    if (keeper == NULL || pthread_equal(pthread_self(), keeper->thread) != 0 ||
        !atomic_compare_exchange_strong(&keeper->crash, &none, how))
        return;
    (void)sem_post(&keeper->wake);
    for (int i = 0; i < CRASH_MS && !atomic_load(&keeper->is_crash_noted); i++)
        (void)nanosleep(&step, NULL);
}

/* --- behind the gate ------------------------------------------------------ */

/* False: the loop thread has gone on meanwhile, or changes what is read. */
static bool go_behind(struct weir__keeper *keeper, uint64_t number)
{
    uint64_t wanted = number << 2 | OPEN;

    return atomic_compare_exchange_strong_explicit(
        &keeper->gate, &wanted, number << 2 | BUSY, memory_order_acq_rel,
        memory_order_relaxed);
}

static void come_back(struct weir__keeper *keeper, uint64_t number)
{
    (void)pthread_mutex_lock(&keeper->lock);
    atomic_store_explicit(&keeper->gate, number << 2 | OPEN,
                          memory_order_release);
    (void)pthread_cond_broadcast(&keeper->changed);
    (void)pthread_mutex_unlock(&keeper->lock);
}

/* A run has its own timeout. For other calls, and for what weir does not hear
 * of, leases are kept much longer: the worker lives, and a lease that ends
 * counts as a crash. A loop that is well turns each third of a lease and renews
 * by itself. */
static bool is_kept_now(const struct weir__keeper *keeper,
                        const struct weir__claim *claim, int64_t held_ms)
{
    if (keeper->calls.crash != NULL ||
        (keeper->call != NULL && keeper->call->run != NULL))
        return true;
    if (held_ms >= HELD_MS && held_ms >= claim->timeout_ms)
        return false;
    return keeper->call != NULL || held_ms > claim->lease_ms / 3;
}

static void write_renewals(struct weir__keeper *keeper, int64_t held_ms)
{
    weir__buf_reset(&keeper->calls.bytes);
    for (struct weir__store_topic *topic = keeper->store->topics; topic != NULL;
         topic = topic->next)
        if (topic->user != NULL && topic->kind->renew != NULL &&
            is_kept_now(keeper, &topic->claim, held_ms)) {
            keeper->calls.topic = topic;
            topic->kind->renew(&keeper->calls, topic, topic->claim.lease_ms);
        }
    if (keeper->calls.bytes.len > 0) /* else the loop is idle, most often */
        weir__probes_follow(keeper->probes);
}

/* --- keeping -------------------------------------------------------------- */

static redisReply *ask(struct weir__keeper *keeper,
                       const struct weir__renewal *call,
                       const struct weir__probed *only)
{
    return weir__probes_ask(keeper->probes, call->topic->place->slot, only,
                            call->script, call->command);
}

/* Each answer to a renewal is the list of leases that are gone. */
static bool is_kept(const redisReply *reply)
{
    return reply != NULL && reply->type == REDIS_REPLY_ARRAY &&
           reply->elements == 0;
}

static void note_kept(struct weir__store_topic *topic, bool is_kept,
                      int64_t now_ns)
{
    if (is_kept)
        atomic_store_explicit(&topic->kept_ns, now_ns, memory_order_relaxed);
}

/* What `only` has to be told, or where that is NULL each server that is not
 * away. The calls of a topic are in a row; it is kept where all of them were
 * answered well. */
static void send_renewals(struct weir__keeper *keeper,
                          const struct weir__probed *only, int64_t now_ns)
{
    int64_t until_ns = now_ns + ROUND_MS * MS_NS;
    struct weir__store_topic *topic = NULL;
    struct weir__renewal call;
    bool are_kept = false;
    size_t at = 0;

    while (weir__renewals_next(&keeper->calls, &at, &call)) {
        redisReply *reply =
            weir__monotonic_ns() < until_ns ? ask(keeper, &call, only) : NULL;

        if (call.topic != topic) {
            note_kept(topic, are_kept, now_ns);
            topic = call.topic;
            are_kept = true;
        }
        are_kept = are_kept && is_kept(reply);
        freeReplyObject(reply);
    }
    note_kept(topic, are_kept, now_ns);
}

/* Servers that are away have what time the others leave. */
static void send_away(struct weir__keeper *keeper, int64_t now_ns)
{
    const struct weir__probed *server;

    if (weir__probes_has_away(keeper->probes) &&
        weir__probes_look(keeper->probes))
        keeper->renew_at_ns = now_ns; /* by others, at the next look */
    do {
        server = weir__probes_next_away(keeper->probes, now_ns);
        if (server != NULL)
            send_renewals(keeper, server, now_ns);
    } while (server != NULL && weir__monotonic_ns() < keeper->renew_at_ns);
    keeper->again_at_ns = weir__probes_has_away(keeper->probes)
                              ? now_ns + TRY_AGAIN_MS * MS_NS
                              : INT64_MAX;
}

/* Something holds the loop that weir does not call: a watcher of the program,
 * or another reactor on the same loop. */
static void log_unnamed(const struct weir__keeper *keeper, int64_t now_ns)
{
    const struct weir__held held = {
        .who = "the program, outside of weir's callbacks,"};

    weir__held_log(&held, keeper->store->options.blocked_log,
                   now_ns - keeper->turn_ns);
}

static void renew(struct weir__keeper *keeper, uint64_t number, int64_t now_ns)
{
    int64_t step_ms = atomic_load(&keeper->least_ms) / 3;
    bool is_due = now_ns >= keeper->renew_at_ns;

    if (!go_behind(keeper, number))
        return;
    write_renewals(keeper, (now_ns - keeper->turn_ns) / MS_NS);
    come_back(keeper, number);
    if (keeper->calls.bytes.failed) {
        keeper->renew_at_ns = now_ns + TRY_AGAIN_MS * MS_NS;
        return;
    }
    if (keeper->calls.bytes.len == 0)
        return;
    if (number == 0)
        log_unnamed(keeper, now_ns);
    weir__probes_limit(keeper->probes, step_ms);
    if (is_due) {
        send_renewals(keeper, NULL, now_ns);
        keeper->renew_at_ns = now_ns + step_ms * MS_NS;
    }
    send_away(keeper, now_ns);
}

static void note_crash(struct weir__keeper *keeper, uint64_t number,
                       const char *how, int64_t now_ns)
{
    if (!go_behind(keeper, number))
        return; /* the next look tries again */
    keeper->calls.crash = how;
    write_renewals(keeper, 0);
    keeper->calls.crash = NULL;
    come_back(keeper, number);
    send_renewals(keeper, NULL, now_ns);
    send_away(keeper, weir__monotonic_ns()); /* a connection may be old */
    atomic_store(&keeper->is_crash_noted, true);
}

/* Has the last call, the script's, settled the one slot that it was given? The
 * calls before it only prepare it. */
static bool has_settled(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
           reply->element[0]->type == REDIS_REPLY_INTEGER &&
           reply->element[0]->integer == 1;
}

/* False: no answer. */
static bool send_verdict(struct weir__keeper *keeper, bool *ret_is_settled)
{
    uint16_t slot = keeper->calls.topic->place->slot;
    const struct weir__probed *server;
    struct weir__renewal call;
    size_t at = 0;

    (void)weir__probes_look(keeper->probes);
    server = weir__probes_server(keeper->probes, slot);
    while (server != NULL && weir__renewals_next(&keeper->calls, &at, &call)) {
        redisReply *reply = ask(keeper, &call, server);

        if (reply == NULL)
            return false;
        *ret_is_settled = has_settled(reply);
        freeReplyObject(reply);
    }
    return server != NULL;
}

/* A second try names new packs, and changes nothing if the first one worked:
 * then the job is no longer under the token. */
static void settle(struct weir__keeper *keeper, uint64_t number)
{
    struct weir__store_topic *topic;
    bool has_verdict, is_written = false, is_settled = false;

    if (!go_behind(keeper, number))
        return;
    weir__probes_follow(keeper->probes);
    weir__buf_reset(&keeper->calls.bytes);
    topic = keeper->call->run_topic;
    keeper->calls.topic = topic;
    has_verdict = keeper->overdue != NULL && topic->kind->overdue_new != NULL;
    if (has_verdict)
        is_written = weir__overdue_write(keeper->overdue, topic,
                                         keeper->call->run, &keeper->calls);
    come_back(keeper, number);
    if (has_verdict && (!is_written || !send_verdict(keeper, &is_settled)))
        return; /* the next look tries again */
    if (is_settled)
        atomic_store_explicit(&keeper->taken, number, memory_order_release);
    keeper->decided = number;
}

/* Only this thread can log what holds the loop, and not behind the gate: the
 * host's function may block. Returns when to log again. */
static int64_t log_holding(struct weir__keeper *keeper, uint64_t number,
                           int64_t now_ns)
{
    const struct weir__redis_options *options = &keeper->store->options;
    struct weir__held held;
    int64_t held_ns;

    if (number != keeper->seen)
        keeper->log_at_ns = now_ns + LOG_MS * MS_NS;
    if (number == 0 || !weir__log_wants(options->blocked_log, WEIR_LEVEL_WARN))
        return INT64_MAX;
    if (now_ns < keeper->log_at_ns || !go_behind(keeper, number))
        return keeper->log_at_ns;
    weir__call_copy(keeper->call, &held);
    come_back(keeper, number);
    held_ns = now_ns - (held.began_ns == 0 ? keeper->seen_ns : held.began_ns);
    if (held_ns > options->block_warn_ms * MS_NS)
        weir__held_log(&held, options->blocked_log, held_ns);
    keeper->log_at_ns = now_ns + LOG_MS * MS_NS;
    return keeper->log_at_ns;
}

static int64_t look_ms(const struct weir__keeper *keeper)
{
    int64_t ms =
        atomic_load_explicit(&keeper->least_ms, memory_order_relaxed) / 8;

    return ms < LOOK_MIN_MS ? LOOK_MIN_MS : ms > LOOK_MAX_MS ? LOOK_MAX_MS : ms;
}

/* Has the loop stood since the last look? A call that begins after a pause may
 * be a short one. */
static bool stands(struct weir__keeper *keeper, int64_t now_ns)
{
    uint64_t turn = atomic_load_explicit(&keeper->turn, memory_order_relaxed);
    bool is_calling =
        atomic_load_explicit(&keeper->is_calling, memory_order_relaxed);
    bool was_calling = keeper->seen_calling;

    keeper->seen_calling = is_calling;
    if (turn == keeper->seen_turn)
        return was_calling || !is_calling;
    keeper->seen_turn = turn;
    keeper->turn_ns = now_ns;
    keeper->renew_at_ns = now_ns;
    return false;
}

/* Look at what the loop does; returns when to look again. */
static int64_t look(struct weir__keeper *keeper, int64_t now_ns)
{
    uint64_t gate = atomic_load_explicit(&keeper->gate, memory_order_acquire);
    int64_t deadline_ns =
        atomic_load_explicit(&keeper->deadline_ns, memory_order_relaxed);
    int64_t next_ns = now_ns + look_ms(keeper) * MS_NS;
    const char *crash = atomic_load(&keeper->crash);
    bool is_held = stands(keeper, now_ns);
    uint64_t number = gate >> 2;
    int64_t log_ns;

    if (crash != NULL && !atomic_load(&keeper->is_crash_noted)) {
        note_crash(keeper, number, crash, now_ns);
        return now_ns + MS_NS;
    }
    if ((gate & STATE) != OPEN)
        return next_ns;
    log_ns = log_holding(keeper, number, now_ns);
    if (log_ns < next_ns)
        next_ns = log_ns;
    if (number != 0 && number == keeper->decided)
        return next_ns;
    if (number != keeper->seen) {
        keeper->seen = number;
        keeper->seen_ns = now_ns;
    } else if (now_ns >= deadline_ns) {
        settle(keeper, number);
        return next_ns;
    }
    if (is_held &&
        (now_ns >= keeper->renew_at_ns || now_ns >= keeper->again_at_ns))
        renew(keeper, number, now_ns);
    return deadline_ns > now_ns && deadline_ns < next_ns ? deadline_ns
                                                         : next_ns;
}

/* --- life ----------------------------------------------------------------- */

static void *keep(void *arg)
{
    struct weir__keeper *keeper = arg;

    while (!atomic_load(&keeper->is_stopping)) {
        int64_t until_ns = look(keeper, weir__monotonic_ns());
        const struct timespec until = {.tv_sec = until_ns / (1000 * MS_NS),
                                       .tv_nsec = until_ns % (1000 * MS_NS)};

        (void)sem_clockwait(&keeper->wake, CLOCK_MONOTONIC, &until);
    }
    return NULL;
}

static void release(struct weir__keeper *keeper)
{
    weir__overdue_free(keeper->overdue);
    weir__probes_free(keeper->probes);
    weir__buf_fini(&keeper->calls.bytes);
    weir__mem_free(keeper);
}

/* WEIR_ENOMEM, WEIR_ESYSTEM. */
static int keeper_open(struct weir__redis *store,
                       struct weir__keeper **ret_keeper)
{
    struct weir__keeper *keeper = weir__mem_new(sizeof(*keeper));

    if (keeper == NULL)
        return WEIR_ENOMEM;
    keeper->store = store;
    keeper->again_at_ns = INT64_MAX;
    atomic_init(&keeper->gate, OPEN);
    atomic_init(&keeper->deadline_ns, INT64_MAX);
    atomic_init(&keeper->least_ms, LOOK_MAX_MS * 8);
    (void)sem_init(&keeper->wake, 0, 0); /* zero is never too large */
    keeper->probes = weir__probes_new(store, &keeper->lock);
    if (keeper->probes == NULL ||
        !weir__redis_lock_init(&keeper->lock, &keeper->changed)) {
        release(keeper);
        return WEIR_ESYSTEM;
    }
    if (weir__redis_thread_start(&keeper->thread, keep, keeper) != 0) {
        weir__redis_lock_fini(&keeper->lock, &keeper->changed);
        release(keeper);
        return WEIR_ESYSTEM;
    }
    *ret_keeper = keeper;
    return WEIR_OK;
}

void weir__keeper_begin(const struct weir__store_topic *topic)
{
    struct weir__redis *store = topic->store;
    int rc = WEIR_OK;

    if (store->keeper == NULL)
        rc = keeper_open(store, &store->keeper);
    if (rc == WEIR_OK && store->keeper->overdue == NULL &&
        topic->kind->overdue_new != NULL) {
        weir__keeper_shut(store->keeper);
        store->keeper->overdue = topic->kind->overdue_new();
        weir__keeper_reopen(store->keeper);
        rc = store->keeper->overdue == NULL ? WEIR_ENOMEM : WEIR_OK;
    }
    if (rc < 0)
        weir__log(store->options.log, WEIR_LEVEL_WARN,
                  "redis: no thread to keep leases: those of jobs whose "
                  "handler holds the loop run out");
}

void weir__keeper_close(struct weir__keeper *keeper)
{
    if (keeper == NULL)
        return;
    WEIR_ASSERT(keeper->call == NULL && keeper->shuts == 0);
    (void)pthread_mutex_lock(&keeper->lock);
    atomic_store(&keeper->is_stopping, true);
    weir__probes_cut(keeper->probes); /* it waits no longer */
    (void)pthread_mutex_unlock(&keeper->lock);
    (void)sem_post(&keeper->wake);
    (void)pthread_join(keeper->thread, NULL);
    weir__redis_lock_fini(&keeper->lock, &keeper->changed);
    release(keeper);
}
