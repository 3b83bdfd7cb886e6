/* SPDX-License-Identifier: MIT */
#include "adapters/redis/store/keeper.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

#include "adapters/redis/conn/compat.h"
#include "adapters/redis/conn/error.h"
#include "adapters/redis/conn/resolve.h"
#include "adapters/redis/monotonic.h"
#include "adapters/redis/probe.h"
#include "adapters/redis/store/kind.h"
#include "adapters/redis/thread.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

enum {
    OUT = 0, /* the gate's lower two bits; above is the number of the run */
    IN = 1,
    BUSY = 2,
    STATE = 3,

    LIMIT_MS = 1000,    /* for the server */
    LOOK_MAX_MS = 1000, /* between two looks */
    LOOK_MIN_MS = 10,   /* for the shortest leases and timeouts */
    TRY_AGAIN_MS = 100, /* after the server did not answer */
    ASK_MS = 5000,      /* between questions for the primary */
    LOG_MS = 1000       /* between two lines about what holds the loop */
};

#define MS_NS INT64_C(1000000)

struct weir__keeper {
    const struct weir__redis *store;
    bool may_move; /* it may be another server that has to be asked */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* the gate, or is_stopping */
    bool is_stopping;       /* under the lock */
    int fd;                 /* of the probe; under the lock; -1: none */

    _Atomic uint64_t gate;
    _Atomic int64_t deadline_ns; /* of the run behind it */
    _Atomic uint64_t taken;      /* number of the last run that was settled */
    _Atomic int64_t kept_ns;
    _Atomic int64_t least_ms; /* of all leases and timeouts */

    /* The loop thread's; behind the gate the keeper reads them. */
    uint64_t number; /* of the run */
    bool is_in;
    struct weir__store_topic *topic;
    struct weir__run *run;

    /* The keeper thread's. */
    struct weir__probe *probe;
    int64_t probe_ns;              /* when it was opened */
    struct weir__overdue *overdue; /* NULL: no topic of a kind that has one */
    struct weir__renewals calls;
    uint64_t seen;    /* number of a run that was there at the last look */
    uint64_t decided; /* number of a run that is settled, or cannot be */
    int64_t renew_at_ns;
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

int64_t weir__keeper_kept_ns(const struct weir__keeper *keeper)
{
    return atomic_load_explicit(&keeper->kept_ns, memory_order_relaxed);
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

/* --- the server ----------------------------------------------------------- */

static void set_fd(struct weir__keeper *keeper, int fd)
{
    (void)pthread_mutex_lock(&keeper->lock);
    keeper->fd = fd;
    (void)pthread_mutex_unlock(&keeper->lock);
}

static void hang_up(struct weir__keeper *keeper)
{
    set_fd(keeper, -1);
    weir__probe_close(keeper->probe);
    keeper->probe = NULL;
}

/* The loop, which would hear of a new primary or see that the name moved, is
 * held: ask now and then. An old one that lives on would go on renewing. */
static bool is_outdated(const struct weir__keeper *keeper)
{
    return keeper->may_move &&
           weir__monotonic_ns() - keeper->probe_ns >= ASK_MS * MS_NS;
}

static bool connect_probe(struct weir__keeper *keeper)
{
    if (keeper->probe != NULL && is_outdated(keeper))
        hang_up(keeper);
    if (keeper->probe != NULL)
        return true;
    if (weir__probe_open(&keeper->store->url, LIMIT_MS, &keeper->probe, NULL) <
        0) {
        keeper->probe = NULL;
        return false;
    }
    keeper->probe_ns = weir__monotonic_ns();
    set_fd(keeper, weir__probe_fd(keeper->probe));
    return true;
}

/* Who is no primary any more answers nothing of use. */
static bool is_of_replica(const struct weir__keeper *keeper,
                          const redisReply *reply)
{
    return keeper->may_move && reply->type == REDIS_REPLY_ERROR &&
           weir__error_classify(reply->str) == WEIR__ERROR_TURNED_AWAY;
}

/* NULL: no answer, and the connection is gone. */
static redisReply *send_command(struct weir__keeper *keeper,
                                struct weir_slice command)
{
    redisReply *reply = connect_probe(keeper)
                            ? weir__probe_command(keeper->probe, command)
                            : NULL;

    if (reply != NULL && !is_of_replica(keeper, reply))
        return reply;
    freeReplyObject(reply);
    hang_up(keeper);
    return NULL;
}

/* What is answered; the script is loaded when the server does not know it. */
static redisReply *run_call(struct weir__keeper *keeper,
                            const struct weir__script *script,
                            struct weir_slice command)
{
    redisReply *reply = send_command(keeper, command);

    if (script == NULL || reply == NULL || reply->type != REDIS_REPLY_ERROR ||
        weir__error_classify(reply->str) != WEIR__ERROR_NOSCRIPT)
        return reply;
    freeReplyObject(reply);
    reply =
        send_command(keeper, weir__slice_of(script->load, script->load_len));
    if (reply == NULL)
        return NULL;
    freeReplyObject(reply);
    return send_command(keeper, command);
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
    weir__buf_reset(&keeper->calls.bytes);
    for (const struct weir__store_topic *topic = keeper->store->topics;
         topic != NULL; topic = topic->next)
        if (topic->user != NULL && topic->kind->renew != NULL)
            topic->kind->renew(&keeper->calls, topic, topic->claim.lease_ms);
}

/* --- keeping -------------------------------------------------------------- */

/* Each answer to a renewal is the list of leases that are gone. */
static bool has_kept_all(bool were_kept, const redisReply *reply)
{
    return were_kept && reply->type == REDIS_REPLY_ARRAY &&
           reply->elements == 0;
}

/* Has the last call, the script's, settled the one slot that it was given? */
static bool has_settled(bool was_settled, const redisReply *reply)
{
    (void)was_settled; /* the calls before it only prepare it */
    return reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
           reply->element[0]->type == REDIS_REPLY_INTEGER &&
           reply->element[0]->integer == 1;
}

/* Send the calls; `judge` is told each answer and what it said of the ones
 * before. False: no answer. */
static bool send_calls(struct weir__keeper *keeper,
                       bool (*judge)(bool, const redisReply *), bool *ret_is_so)
{
    size_t at = 0;

    *ret_is_so = true;
    for (;;) {
        const struct weir__script *script;
        struct weir_slice call =
            weir__renewals_next(&keeper->calls, &at, &script);
        redisReply *reply;

        if (call.len == 0)
            return true;
        reply = run_call(keeper, script, call);
        if (reply == NULL)
            return false;
        *ret_is_so = judge(*ret_is_so, reply);
        freeReplyObject(reply);
    }
}

static void renew(struct weir__keeper *keeper, uint64_t number, int64_t now_ns)
{
    int64_t least_ms = atomic_load(&keeper->least_ms);
    bool is_kept = false;

    keeper->renew_at_ns = now_ns + TRY_AGAIN_MS * MS_NS;
    if (!go_behind(keeper, number))
        return;
    write_renewals(keeper);
    come_back(keeper, number);
    if (keeper->calls.bytes.failed ||
        !send_calls(keeper, has_kept_all, &is_kept))
        return;
    if (is_kept)
        atomic_store(&keeper->kept_ns, now_ns);
    keeper->renew_at_ns = now_ns + least_ms * MS_NS / 3;
}

/* A second try names new packs, and changes nothing if the first one worked:
 * then the job is no longer under the token. */
static void settle(struct weir__keeper *keeper, uint64_t number, int64_t now_ns)
{
    bool has_verdict, is_written = false, is_settled = false;

    keeper->renew_at_ns = now_ns + TRY_AGAIN_MS * MS_NS;
    if (!go_behind(keeper, number))
        return;
    weir__buf_reset(&keeper->calls.bytes);
    has_verdict =
        keeper->overdue != NULL && keeper->topic->kind->overdue_new != NULL;
    if (has_verdict)
        is_written = weir__overdue_write(keeper->overdue, keeper->topic,
                                         keeper->run, &keeper->calls);
    come_back(keeper, number);
    if (has_verdict &&
        (!is_written || !send_calls(keeper, has_settled, &is_settled)))
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
    if (log == NULL || log->fn == NULL)
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
        settle(keeper, number, now_ns);
    } else if (now_ns >= keeper->renew_at_ns) {
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
    hang_up(keeper);
    return NULL;
}

static bool may_move(const struct weir__redis_url *url)
{
    return url->is_sentinel ||
           (!url->is_unix && weir__host_is_name(url->hosts[0].name));
}

static void release(struct weir__keeper *keeper)
{
    weir__overdue_free(keeper->overdue);
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
    keeper->may_move = may_move(&store->url);
    keeper->fd = -1;
    atomic_init(&keeper->least_ms, LOOK_MAX_MS * 8);
    if (!weir__redis_lock_init(&keeper->lock, &keeper->changed)) {
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
    if (keeper->fd >= 0)
        (void)shutdown(keeper->fd, SHUT_RDWR); /* it waits no longer */
    (void)pthread_cond_broadcast(&keeper->changed);
    (void)pthread_mutex_unlock(&keeper->lock);
    (void)pthread_join(keeper->thread, NULL);
    weir__redis_lock_fini(&keeper->lock, &keeper->changed);
    release(keeper);
}
