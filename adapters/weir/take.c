/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/weir/facade.h"
#include "core/assert.h"
#include "core/call.h"
#include "core/lane.h"
#include "core/mem.h"
#include "core/text.h"

/* Behind <weir/take.h>. A taker is the handler of a topic that jobs are taken
 * from: it serves the topic while calls wait, and wants no more jobs than they
 * do. Each job that comes is left pending. A verdict ends it as any pending
 * run, and the store tells what became of that one. */

#define WAIT_MAX_MS INT64_C(315360000000)

enum {
    PATIENCE_MS = 10000, /* the default of request_timeout_ms */
    SHORT_MS = 1000      /* to wait where this worker has no memory */
};

/* A call that is not answered yet. */
struct weir__taking {
    struct weir__taking *next;
    struct weir__taker *taker;
    weir_taken_fn fn;
    void *arg;
    weir_lost_fn lost;
    void *lost_arg;
    int64_t until_ns; /* to wait for the first job */
    int64_t came_ns;  /* when that came; what else is due comes behind */
    size_t limit, count;
    struct weir_take *takes[]; /* `limit` of them */
};

/* Of a topic; stays with the reactor. */
struct weir__taker {
    struct weir__taker *next;
    struct weir_reactor *reactor;
    size_t calls;  /* that wait; none: it does not serve the topic */
    size_t wanted; /* jobs, by all of them */
    char topic[WEIR_MAX_TOPIC + 1];
};

struct weir_take {
    struct weir__asker asker; /* first */
    struct weir_take *previous, *next;
    struct weir_reactor *reactor;
    struct weir__taking *taking; /* NULL: the host has it */
    struct weir_job *job;        /* NULL: it is lost or settled */
    struct weir_handle handle;
    bool is_lost, is_settled;
    int code; /* what became of it */
    weir_lost_fn lost;
    void *lost_arg;
    weir_take_settled_fn fn;
    void *arg;
};

/* --- takes ---------------------------------------------------------------- */

static struct weir_take *take_new(struct weir_reactor *reactor)
{
    struct weir_take *take = weir__mem_new(sizeof(*take));

    if (take == NULL)
        return NULL;
    take->reactor = reactor;
    take->next = reactor->takes.out;
    if (take->next != NULL)
        take->next->previous = take;
    reactor->takes.out = take;
    return take;
}

static void unlink_take(const struct weir_take *take)
{
    if (take->previous == NULL)
        take->reactor->takes.out = take->next;
    else
        take->previous->next = take->next;
    if (take->next != NULL)
        take->next->previous = take->previous;
}

static void take_free(struct weir_take *take)
{
    unlink_take(take);
    weir__mem_free(take);
}

/* The host is told in the next turn: the store may be in the middle of
 * something. */
static void on_answered(struct weir__asker *asker, int code)
{
    struct weir_take *take = (struct weir_take *)asker; /* its first member */
    struct weir__takes *takes = &take->reactor->takes;

    unlink_take(take);
    take->code = code;
    take->next = NULL;
    *takes->told_end = take;
    takes->told_end = &take->next;
}

/* Its host never heard of it. */
static void forget(struct weir__taking *taking, struct weir_take *take)
{
    size_t at = 0;

    while (taking->takes[at] != take)
        at++;
    taking->count--;
    taking->taker->wanted++;
    memmove(&taking->takes[at], &taking->takes[at + 1],
            (taking->count - at) * sizeof(taking->takes[0]));
    take_free(take);
}

static void on_cancel(struct weir_job *job, enum weir_cancel why, void *arg)
{
    struct weir_take *take = arg;

    (void)job;
    (void)weir_complete(take->handle, WEIR_RETRY, 0, NULL); /* nobody will */
    if (take->taking != NULL) {
        forget(take->taking, take);
        return;
    }
    take->is_lost = true;
    if (take->lost != NULL)
        take->lost(take, why, take->lost_arg);
    take->job = NULL; /* settled in there the take is not told yet */
}

/* --- jobs that come ------------------------------------------------------- */

static enum weir_verdict on_job(void *self, struct weir_job *job)
{
    const struct weir__taker *taker = self;
    struct weir__taking *taking = taker->reactor->takes.first;
    struct weir_take *take = take_new(taker->reactor);

    if (take != NULL)
        take->handle = weir_job_handle(job);
    if (take == NULL || take->handle.ticket == 0) {
        if (take != NULL)
            take_free(take);
        return weir_snooze(job, SHORT_MS); /* that is not the job's fault */
    }
    while (taking->taker != taker || taking->count == taking->limit)
        taking = taking->next; /* one wants it: the lane is not full */
    if (taking->count == 0)
        taking->came_ns = weir__driver_clock(NULL);
    taking->takes[taking->count++] = take;
    taking->taker->wanted--;
    take->taking = taking;
    take->job = job;
    take->lost = taking->lost;
    take->lost_arg = taking->lost_arg;
    weir_job_on_cancel(job, on_cancel, take);
    return WEIR_PENDING;
}

bool weir__takes_has(const struct weir_reactor *reactor, const void *self)
{
    const struct weir__taker *taker = reactor->takes.takers;

    while (taker != NULL && taker != self)
        taker = taker->next;
    return taker != NULL;
}

static struct weir__taker *taker_of(const struct weir_reactor *reactor,
                                    const char *topic)
{
    struct weir__taker *taker = reactor->takes.takers;

    while (taker != NULL && strcmp(taker->topic, topic) != 0)
        taker = taker->next;
    return taker;
}

int weir__takes_check(const struct weir_reactor *reactor, const char *topic,
                      struct weir_error *err)
{
    const struct weir__taker *taker = taker_of(reactor, topic);

    if (taker == NULL || taker->calls == 0)
        return WEIR_OK;
    return weir__error_set(err, WEIR_EEXISTS,
                           "topic %s: a call of weir_reactor_take waits for "
                           "its jobs: serve it when that is answered",
                           topic);
}

/* --- calls ---------------------------------------------------------------- */

static int check_call(const struct weir_reactor *reactor, const char *topic,
                      const struct weir_take_options *options,
                      struct weir_error *err)
{
    int rc = weir__facade_check_thread(reactor, err);

    WEIR_ASSERT(options->fn != NULL);
    if (rc == WEIR_OK && reactor->is_freed)
        rc = weir__error_code(err, WEIR_ECANCELED);
    if (rc == WEIR_OK)
        rc = weir__topic_check(weir__slice_str(topic), err);
    if (rc < 0)
        return rc;
    if (options->limit > WEIR_MAX_TAKE)
        return weir__error_set(err, WEIR_EINVAL,
                               "limit is %zu: wanted 1 to %d, or 0 for 1",
                               options->limit, WEIR_MAX_TAKE);
    if (reactor->takes.calls == WEIR_MAX_TAKE_CALLS)
        return weir__error_set(err, WEIR_EFULL,
                               "%d calls of weir_reactor_take wait already: "
                               "take when one of them is answered",
                               WEIR_MAX_TAKE_CALLS);
    if (options->wait_ms < 0 || options->wait_ms > WAIT_MAX_MS)
        return weir__error_set(
            err, WEIR_EINVAL, "wait_ms is %lld: wanted 0 to %lld",
            (long long)options->wait_ms, (long long)WAIT_MAX_MS);
    if (weir__reactor_serves(reactor->core, weir__slice_str(topic)) &&
        weir__takes_check(reactor, topic, NULL) == WEIR_OK)
        return weir__error_set(err, WEIR_EEXISTS,
                               "topic %s is served here: its handler gets the "
                               "jobs",
                               topic);
    return WEIR_OK;
}

static struct weir__taker *open_taker(struct weir_reactor *reactor,
                                      const char *topic)
{
    struct weir__taker *taker = taker_of(reactor, topic);

    if (taker != NULL)
        return taker;
    taker = weir__mem_new(sizeof(*taker));
    if (taker == NULL)
        return NULL;
    taker->reactor = reactor;
    memcpy(taker->topic, topic, strlen(topic)); /* it was checked */
    taker->next = reactor->takes.takers;
    reactor->takes.takers = taker;
    return taker;
}

static struct weir__taking *taking_new(struct weir__taker *taker,
                                       const struct weir_take_options *options)
{
    size_t limit = options->limit == 0 ? 1 : options->limit;
    struct weir__taking *taking =
        weir__mem_new(sizeof(*taking) + limit * sizeof(taking->takes[0]));

    if (taking == NULL)
        return NULL;
    *taking = (struct weir__taking){
        .taker = taker,
        .fn = options->fn,
        .arg = options->arg,
        .lost = options->lost,
        .lost_arg = options->lost_arg,
        .until_ns = weir__driver_clock(NULL) + options->wait_ms * WEIR__MS_NS,
        .limit = limit,
    };
    return taking;
}

static int serve(struct weir__taker *taker,
                 const struct weir_take_options *options,
                 struct weir_error *err)
{
    struct weir_topic_options served = {
        .run = on_job,
        .self = taker,
        .overrides = options->overrides,
    };
    const char *const *from = options->options;

    for (size_t i = 0; from != NULL && from[i] != NULL; i++) {
        served.options[i] = from[i];
        if (i == WEIR_MAX_OPTIONS - 1)
            break; /* which is refused */
    }
    return weir__facade_serve(taker->reactor, taker->topic, &served,
                              &taker->wanted, err);
}

int weir_reactor_take(struct weir_reactor *reactor, const char *topic,
                      const struct weir_take_options *options,
                      struct weir_error *err)
{
    struct weir__taking *taking = NULL;
    struct weir__taker *taker;
    int rc = check_call(reactor, topic, options, err);

    if (rc < 0)
        return rc;
    taker = open_taker(reactor, topic);
    if (taker != NULL)
        taking = taking_new(taker, options);
    if (taking == NULL)
        return weir__error_code(err, WEIR_ENOMEM);
    rc = serve(taker, options, err);
    if (rc < 0) {
        weir__mem_free(taking);
        return rc;
    }
    taker->calls++;
    reactor->takes.calls++;
    taker->wanted += taking->limit;
    *reactor->takes.end = taking;
    reactor->takes.end = &taking->next;
    return WEIR_OK;
}

/* --- answers -------------------------------------------------------------- */

static int64_t last_ns(const struct weir__taking *taking)
{
    int64_t from_ns = taking->count > 0 ? taking->came_ns : taking->until_ns;
    int64_t ms = taking->taker->reactor->request_timeout_ms;

    return from_ns + (ms == 0 ? PATIENCE_MS : ms) * WEIR__MS_NS;
}

/* Is there an answer? Else *ret_ns is until when there may be none. */
static bool is_due(const struct weir__taking *taking, int64_t now_ns,
                   int *ret_code, int64_t *ret_ns)
{
    const struct weir__reactor *core = taking->taker->reactor->core;
    int code =
        weir__reactor_claiming(core, weir__slice_str(taking->taker->topic));

    *ret_ns = last_ns(taking);
    if (taking->count > 0) {
        *ret_code = WEIR_OK;
        return code != 1 || taking->count == taking->limit ||
               core->is_stopping || now_ns >= *ret_ns;
    }
    if (now_ns < taking->until_ns)
        *ret_ns = taking->until_ns;
    *ret_code = core->is_stopping ? WEIR_ECANCELED : code;
    if (*ret_code == 1)
        *ret_code = WEIR_ECONN;
    return core->is_stopping || code == WEIR_EKIND ||
           now_ns >= (code == 1 ? last_ns(taking) : taking->until_ns);
}

/* Maybe with a callback that frees the reactor, or takes again. */
static void answer(struct weir_reactor *reactor, struct weir__taking *taking,
                   int code)
{
    struct weir__taker *taker = taking->taker;
    struct weir__taking **at = &reactor->takes.first;
    struct weir__call call = {.what = "the callback of a take",
                              .topic = taker->topic};

    while (*at != taking)
        at = &(*at)->next;
    *at = taking->next;
    if (taking->next == NULL)
        reactor->takes.end = at;
    taker->calls--;
    reactor->takes.calls--;
    taker->wanted -= taking->limit - taking->count;
    for (size_t i = 0; i < taking->count; i++)
        taking->takes[i]->taking = NULL;
    if (taker->calls == 0 && !reactor->is_freed)
        weir__reactor_unserve(reactor->core, weir__slice_str(taker->topic));
    weir__call_begin(reactor->store, &call);
    taking->fn(code, taking->takes, taking->count, taking->arg);
    (void)weir__call_end(reactor->store, &call); /* has no run */
    weir__mem_free(taking);
}

static void tell(struct weir__takes *takes)
{
    struct weir_take take = *takes->told;

    weir__mem_free(takes->told);
    takes->told = take.next;
    if (takes->told == NULL)
        takes->told_end = &takes->told;
    if (take.fn != NULL)
        take.fn(take.code, take.arg);
}

static struct weir__taking *find_due(const struct weir__takes *takes,
                                     int64_t now_ns, int *ret_code,
                                     int64_t *ret_ns)
{
    struct weir__taking *taking = takes->first;
    int64_t ns;

    *ret_ns = INT64_MAX;
    for (; taking != NULL; taking = taking->next) {
        if (is_due(taking, now_ns, ret_code, &ns))
            return taking;
        if (ns < *ret_ns)
            *ret_ns = ns;
    }
    return NULL;
}

void weir__takes_run(struct weir_reactor *reactor)
{
    struct weir__takes *takes = &reactor->takes;
    struct weir__taking *taking;
    int64_t now_ns, ns;
    int code;

    while (takes->told != NULL && !reactor->is_freed)
        tell(takes);
    if (takes->first == NULL)
        return;
    now_ns = weir__driver_clock(NULL);
    while (!reactor->is_freed) {
        taking = find_due(takes, now_ns, &code, &ns);
        if (taking == NULL)
            return;
        answer(reactor, taking, code);
    }
}

int64_t weir__takes_wait_ns(const struct weir_reactor *reactor, int64_t wait_ns)
{
    const struct weir__takes *takes = &reactor->takes;
    int64_t now_ns, ns;
    int code;

    if (takes->told != NULL)
        return 0;
    if (takes->first == NULL || reactor->is_freed)
        return wait_ns;
    now_ns = weir__driver_clock(NULL);
    if (find_due(takes, now_ns, &code, &ns) != NULL)
        return 0;
    ns -= now_ns;
    WEIR_ASSERT(ns >= 0); /* nothing but 0 and what is to come is armed for */
    return wait_ns < 0 || ns < wait_ns ? ns : wait_ns;
}

/* --- what the host does with them ----------------------------------------- */

struct weir_job *weir_take_job(const struct weir_take *take)
{
    return take->job;
}

static int check_take(const struct weir_take *take)
{
    int rc = weir__facade_check_thread(take->reactor, NULL);

    if (rc < 0)
        return rc;
    WEIR_ASSERT(take->taking == NULL && !take->is_settled);
    return take->reactor->is_freed ? WEIR_ECANCELED : WEIR_OK;
}

/* The run, about which the take asks; NULL: it is lost. */
static struct weir__run *begin_end(struct weir_take *take,
                                   weir_take_settled_fn fn, void *arg)
{
    struct weir__run *run = NULL;

    take->is_settled = true;
    take->fn = fn;
    take->arg = arg;
    take->asker.answered = on_answered;
    if (take->is_lost) {
        on_answered(&take->asker, WEIR_ENOTFOUND);
        return NULL;
    }
    run = weir__run_of(take->job);
    run->asker = &take->asker;
    take->job = NULL;
    return run;
}

int weir_take_settle(struct weir_take *take,
                     const struct weir_settlement *settlement)
{
    enum weir_verdict verdict = settlement->verdict;
    int rc = check_take(take);

    if (rc == WEIR_OK && (verdict < WEIR_DONE || verdict > WEIR_FAIL))
        rc = WEIR_EINVAL;
    if (rc == WEIR_OK &&
        begin_end(take, settlement->fn, settlement->arg) != NULL)
        rc = weir_complete(take->handle, verdict, settlement->delay_ms,
                           settlement->why);
    return rc;
}

int weir_take_give_back(struct weir_take *take, weir_take_settled_fn fn,
                        void *arg)
{
    struct weir__run *run;
    int rc = check_take(take);

    if (rc < 0)
        return rc;
    run = begin_end(take, fn, arg);
    if (run == NULL)
        return WEIR_OK;
    run->is_unstarted = true;
    weir__run_let_go(run, WEIR__OUTCOME_RETURN);
    return WEIR_OK;
}

int weir_take_token(const struct weir_take *take,
                    char ret_token[WEIR_TAKE_TOKEN])
{
    const struct weir__store_ops *ops;
    const struct weir__run *run;
    int rc = check_take(take);

    if (rc < 0 || take->is_lost)
        return rc < 0 ? rc : WEIR_ENOTFOUND;
    run = weir__run_of(take->job);
    ops = run->lane->store->ops;
    return ops->token == NULL ? WEIR_EKIND
                              : ops->token(run->lane->topic, run, ret_token);
}

/* Only those that another process may settle. */
int weir_take_let_go(struct weir_take *take)
{
    char token[WEIR_TAKE_TOKEN];
    struct weir__run *run;
    int rc = weir_take_token(take, token);

    if (rc < 0 && rc != WEIR_ENOTFOUND)
        return rc;
    run = begin_end(take, NULL, NULL);
    if (run == NULL)
        return WEIR_OK; /* it goes in the next turn */
    run->asker = NULL;
    weir__run_let_go(run, WEIR__OUTCOME_TAKEN);
    take_free(take);
    return WEIR_OK;
}

/* --- life ----------------------------------------------------------------- */

void weir__takes_init(struct weir__takes *takes)
{
    takes->end = &takes->first;
    takes->told_end = &takes->told;
}

void weir__takes_fini(struct weir_reactor *reactor)
{
    struct weir__takes *takes = &reactor->takes;

    while (takes->first != NULL)
        answer(reactor, takes->first, WEIR_ECANCELED);
    for (struct weir_take *take = takes->out, *next; take != NULL;
         take = next) {
        next = take->next;
        if (take->is_settled)
            on_answered(&take->asker, WEIR_ECANCELED);
    }
    while (takes->told != NULL)
        tell(takes);
}

void weir__takes_free(struct weir__takes *takes)
{
    while (takes->out != NULL)
        take_free(takes->out);
    while (takes->takers != NULL) {
        struct weir__taker *taker = takes->takers;

        takes->takers = taker->next;
        weir__mem_free(taker);
    }
}
