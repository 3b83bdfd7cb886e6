/* SPDX-License-Identifier: MIT */
#include "adapters/redis/store/keeper.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "adapters/redis/conn/compat.h"
#include "adapters/redis/monotonic.h"
#include "adapters/redis/store/kind.h"
#include "adapters/redis/store/probes.h"
#include "adapters/redis/thread.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

enum {
    OUT = 0, /* the gate's lower two bits; above is the number of the run */
    IN = 1,
    BUSY = 2,
    STATE = 3,

    ROUND_MS = 5000,    /* for all servers together */
    LOOK_MAX_MS = 1000, /* between two looks */
    LOOK_MIN_MS = 10,   /* for the shortest leases and timeouts */
    TRY_AGAIN_MS = 100, /* after a server did not answer */
    LOG_MS = 1000       /* between two lines about what holds the loop */
};

#define MS_NS INT64_C(1000000)

struct weir__keeper {
    const struct weir__redis *store;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* the gate, or is_stopping */
    bool is_stopping;       /* under the lock */

    _Atomic uint64_t gate;
    _Atomic int64_t deadline_ns; /* of the run behind it */
    _Atomic uint64_t taken;      /* number of the last run that was settled */
    _Atomic int64_t least_ms;    /* of all leases and timeouts */

    /* The loop thread's; behind the gate the keeper reads them. */
    uint64_t number; /* of the run */
    bool is_in;
    struct weir__store_topic *topic;
    struct weir__run *run;

    /* The keeper thread's. */
    struct weir__probes *probes;
    struct weir__overdue *overdue; /* NULL: no topic of a kind that has one */
    struct weir__renewals calls;
    uint64_t seen;    /* number of a run that was there at the last look */
    uint64_t decided; /* number of a run that is settled, or cannot be */
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
    (void)pthread_mutex_lock(&keeper->lock);
    atomic_store_explicit(&keeper->least_ms, ms, memory_order_relaxed);
    (void)pthread_cond_broadcast(&keeper->changed);
    (void)pthread_mutex_unlock(&keeper->lock);
}

static void open_gate(struct weir__keeper *keeper)
{
    atomic_store_explicit(&keeper->gate, keeper->number << 2 | IN,
                          memory_order_release);
}

static void close_gate(struct weir__keeper *keeper)
{
    uint64_t wanted = keeper->number << 2 | IN;

    if (atomic_compare_exchange_strong_explicit(
            &keeper->gate, &wanted, keeper->number << 2 | OUT,
            memory_order_acq_rel, memory_order_acquire))
        return;
    (void)pthread_mutex_lock(&keeper->lock);
    while ((atomic_load(&keeper->gate) & STATE) == BUSY)
        (void)pthread_cond_wait(&keeper->changed, &keeper->lock);
    atomic_store(&keeper->gate, keeper->number << 2 | OUT);
    (void)pthread_mutex_unlock(&keeper->lock);
}

void weir__keeper_enter(struct weir__keeper *keeper,
                        struct weir__store_topic *topic, struct weir__run *run,
                        int64_t deadline_ns)
{
    WEIR_ASSERT(!keeper->is_in);
    keeper->is_in = true;
    keeper->topic = topic;
    keeper->run = run;
    keeper->number++;
    weir__keeper_note(keeper, (deadline_ns - run->started_ns) / MS_NS);
    atomic_store_explicit(&keeper->deadline_ns, deadline_ns,
                          memory_order_relaxed);
    open_gate(keeper);
}

bool weir__keeper_has_taken(const struct weir__keeper *keeper)
{
    return atomic_load_explicit(&keeper->taken, memory_order_acquire) ==
           keeper->number;
}

bool weir__keeper_leave(struct weir__keeper *keeper)
{
    if (!keeper->is_in)
        return false; /* it was opened while the handler ran */
    close_gate(keeper);
    keeper->is_in = false;
    return weir__keeper_has_taken(keeper);
}

bool weir__keeper_shut(struct weir__keeper *keeper)
{
    if (keeper == NULL || !keeper->is_in)
        return false;
    close_gate(keeper);
    return true;
}

void weir__keeper_reopen(struct weir__keeper *keeper, bool was_in)
{
    if (was_in)
        open_gate(keeper);
}

/* --- behind the gate ------------------------------------------------------ */

/* False: the handler has returned meanwhile. */
static bool go_behind(struct weir__keeper *keeper, uint64_t number)
{
    uint64_t wanted = number << 2 | IN;

    return atomic_compare_exchange_strong_explicit(
        &keeper->gate, &wanted, number << 2 | BUSY, memory_order_acq_rel,
        memory_order_relaxed);
}

static void come_back(struct weir__keeper *keeper, uint64_t number)
{
    (void)pthread_mutex_lock(&keeper->lock);
    atomic_store_explicit(&keeper->gate, number << 2 | IN,
                          memory_order_release);
    (void)pthread_cond_broadcast(&keeper->changed);
    (void)pthread_mutex_unlock(&keeper->lock);
}

static void write_renewals(struct weir__keeper *keeper)
{
    weir__probes_follow(keeper->probes);
    weir__buf_reset(&keeper->calls.bytes);
    for (struct weir__store_topic *topic = keeper->store->topics; topic != NULL;
         topic = topic->next)
        if (topic->user != NULL && topic->kind->renew != NULL) {
            keeper->calls.topic = topic;
            topic->kind->renew(&keeper->calls, topic, topic->claim.lease_ms);
        }
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

static void renew(struct weir__keeper *keeper, uint64_t number, int64_t now_ns)
{
    int64_t step_ms = atomic_load(&keeper->least_ms) / 3;
    bool is_due = now_ns >= keeper->renew_at_ns;

    if (!go_behind(keeper, number))
        return;
    write_renewals(keeper);
    come_back(keeper, number);
    if (keeper->calls.bytes.failed) {
        keeper->renew_at_ns = now_ns + TRY_AGAIN_MS * MS_NS;
        return;
    }
    weir__probes_limit(keeper->probes, step_ms);
    if (is_due) {
        send_renewals(keeper, NULL, now_ns);
        keeper->renew_at_ns = now_ns + step_ms * MS_NS;
    }
    send_away(keeper, now_ns);
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
    bool has_verdict, is_written = false, is_settled = false;

    if (!go_behind(keeper, number))
        return;
    weir__probes_follow(keeper->probes);
    weir__buf_reset(&keeper->calls.bytes);
    keeper->calls.topic = keeper->topic;
    has_verdict =
        keeper->overdue != NULL && keeper->topic->kind->overdue_new != NULL;
    if (has_verdict)
        is_written = weir__overdue_write(keeper->overdue, keeper->topic,
                                         keeper->run, &keeper->calls);
    come_back(keeper, number);
    if (has_verdict && (!is_written || !send_verdict(keeper, &is_settled)))
        return; /* the next look tries again */
    if (is_settled)
        atomic_store_explicit(&keeper->taken, number, memory_order_release);
    keeper->decided = number;
}

/* Nobody else can say what holds the loop; returns when to say it again. */
static int64_t log_holding(struct weir__keeper *keeper, uint64_t number,
                           int64_t now_ns)
{
    const struct weir__log *log = keeper->store->options.blocked_log;

    if (number != keeper->seen)
        keeper->log_at_ns = now_ns + LOG_MS * MS_NS;
    if (!weir__log_wants(log, WEIR_LEVEL_WARN))
        return INT64_MAX;
    if (now_ns >= keeper->log_at_ns && go_behind(keeper, number)) {
        weir__run_log_holding(keeper->run, log, now_ns);
        come_back(keeper, number);
        keeper->log_at_ns = now_ns + LOG_MS * MS_NS;
    }
    return keeper->log_at_ns;
}

static int64_t look_ms(const struct weir__keeper *keeper)
{
    int64_t ms =
        atomic_load_explicit(&keeper->least_ms, memory_order_relaxed) / 8;

    return ms < LOOK_MIN_MS ? LOOK_MIN_MS : ms > LOOK_MAX_MS ? LOOK_MAX_MS : ms;
}

/* Look at what the loop does; returns when to look again. */
static int64_t look(struct weir__keeper *keeper, int64_t now_ns)
{
    uint64_t gate = atomic_load_explicit(&keeper->gate, memory_order_acquire);
    int64_t deadline_ns =
        atomic_load_explicit(&keeper->deadline_ns, memory_order_relaxed);
    int64_t next_ns = now_ns + look_ms(keeper) * MS_NS;
    uint64_t number = gate >> 2;
    int64_t log_ns;

    if ((gate & STATE) != IN)
        return next_ns;
    log_ns = log_holding(keeper, number, now_ns);
    if (log_ns < next_ns)
        next_ns = log_ns;
    if (number == keeper->decided)
        return next_ns;
    if (number != keeper->seen) { /* it may be a short one */
        keeper->seen = number;
        keeper->renew_at_ns = now_ns;
    } else if (now_ns >= deadline_ns) {
        settle(keeper, number);
    } else if (now_ns >= keeper->renew_at_ns || now_ns >= keeper->again_at_ns) {
        renew(keeper, number, now_ns);
    }
    return deadline_ns > now_ns && deadline_ns < next_ns ? deadline_ns
                                                         : next_ns;
}

/* --- life ----------------------------------------------------------------- */

static void *keep(void *arg)
{
    struct weir__keeper *keeper = arg;

    (void)pthread_mutex_lock(&keeper->lock);
    while (!keeper->is_stopping) {
        int64_t least_ms = atomic_load(&keeper->least_ms);
        int64_t until_ns;

        (void)pthread_mutex_unlock(&keeper->lock);
        until_ns = look(keeper, weir__monotonic_ns());
        (void)pthread_mutex_lock(&keeper->lock);
        /* Nobody waited when a shorter one was noted meanwhile. */
        if (!keeper->is_stopping && atomic_load(&keeper->least_ms) == least_ms)
            (void)weir__redis_lock_wait(&keeper->lock, &keeper->changed,
                                        until_ns);
    }
    (void)pthread_mutex_unlock(&keeper->lock);
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
    atomic_init(&keeper->least_ms, LOOK_MAX_MS * 8);
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
        store->keeper->overdue = topic->kind->overdue_new();
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
    WEIR_ASSERT(!keeper->is_in);
    (void)pthread_mutex_lock(&keeper->lock);
    keeper->is_stopping = true;
    weir__probes_cut(keeper->probes); /* it waits no longer */
    (void)pthread_cond_broadcast(&keeper->changed);
    (void)pthread_mutex_unlock(&keeper->lock);
    (void)pthread_join(keeper->thread, NULL);
    weir__redis_lock_fini(&keeper->lock, &keeper->changed);
    release(keeper);
}
