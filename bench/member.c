/* SPDX-License-Identifier: MIT */

/* A member's process: a loop, a reactor, a producer, a handler. */

#include "bench/later.h"
#include "bench/new_job.h"
#include "bench/say.h"
#include "bench/team.h"
#include "bench/turns.h"
#include "core/error.h"

#include <ev.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <weir/weir.h>

enum { TURN_BYTES = 1024 * 1024 };
enum { CONNECT_TRIES = 5 };
enum { WINDOW_BATCHES = 32, WINDOW_JOBS = 1024, IDLE_NAME = 64 };

struct member {
    const struct bench_role *role;
    struct bench_arena *arena;
    struct bench_member *out;
    struct ev_loop *loop;
    struct weir_reactor *weir;
    struct bench_body body;
    struct bench_later later;
    ev_io orders;
    ev_idle producer;
    ev_timer pacer;
    struct bench_turns turns;
    int64_t sent, acknowledged;
    int64_t begun_cpu_ns;
    /* Runs of each topic of a spread, and how many when it last ran out. */
    int64_t handled_of[BENCH_SPREAD_MAX], settled_of[BENCH_SPREAD_MAX];
    uint64_t random;
    bool is_connected;
    int failed; /* connections before the first one that did not */
};

static void fail(struct member *self, const char *text)
{
    if (atomic_load(&self->out->state) == BENCH_FAILED)
        return;
    (void)snprintf(self->out->error, sizeof(self->out->error), "%.199s", text);
    atomic_store(&self->out->state, BENCH_FAILED);
    ev_break(self->loop, EVBREAK_ALL);
}

/* --- handling --------------------------------------------------------- */

/* Only this process writes its counters: no locked instruction is needed. */
static void count(_Atomic int64_t *counter)
{
    atomic_store_explicit(
        counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
        memory_order_relaxed);
}

static void stamp(struct member *self, const struct weir_job *job,
                  int64_t number)
{
    _Atomic int64_t *mine = &self->arena->stamp[number];
    int64_t late_us;

    if (self->role->stamps == BENCH_STAMP_WAKE) {
        atomic_store(mine, bench_now_ns() - atomic_load(mine));
        return;
    }
    if (self->role->backlog_topic != NULL &&
        (atomic_load(&self->out->backlog) == 0 ||
         atomic_load(&self->out->backlog) >= self->role->backlog_jobs))
        return; /* not while the other topic drains */
    if (self->role->stamps == BENCH_STAMP_ORDER) {
        atomic_store(mine, bench_now_ns());
        return;
    }
    late_us = bench_wall_ns() / 1000 + self->role->clock_ahead_us -
              weir_job_due_ms(job) * 1000;
    atomic_store(mine, late_us);
}

static enum weir_verdict handle(void *arg, struct weir_job *job)
{
    struct member *self = arg;
    int64_t number = -1;
    bool is_first;

    (void)weir_job_i64(job, "n", &number);
    is_first = bench_tally_mark(self->arena->tally, number);
    if (is_first && self->role->stamps != BENCH_STAMP_NONE)
        stamp(self, job, number);
    if (is_first)
        count(&self->out->fresh);
    if (self->role->spread != NULL && number >= 0)
        self->handled_of[bench_spread_of(self->role->spread, number)]++;
    count(&self->out->handled);
    return WEIR_DONE;
}

static enum weir_verdict handle_later(void *arg, struct weir_job *job)
{
    struct member *self = arg;

    (void)handle(arg, job);
    if (bench_later_put(&self->later, job))
        return WEIR_PENDING;
    fail(self, "out of memory");
    return WEIR_RETRY;
}

/* The job goes on to another topic: what counts is its run there. */
static enum weir_verdict handle_follow(void *arg, struct weir_job *job)
{
    struct member *self = arg;
    struct weir_slice id = weir_job_id(job);
    struct weir_follow follow = {.body = weir_job_body(job)};
    char text[BENCH_ID_CAP];
    int64_t number = -1;

    if (!self->role->makes_ids) {
        (void)snprintf(text, sizeof(text), "%.*s", (int)id.len,
                       (const char *)id.ptr);
        follow.id = text;
    }
    if (weir_job_i64(job, "n", &number) && number >= 0 &&
        number < self->arena->tally->jobs)
        atomic_store(&self->arena->stamp[number], bench_now_ns());
    if (weir_job_follow_to(job, self->role->follow_topic, &follow) < 0)
        fail(self, "a job could not be added to the other topic");
    return WEIR_DONE;
}

/* On any thread. */
static enum weir_verdict handle_blocking(void *arg, struct weir_job *job)
{
    struct member *self = arg;
    int64_t number = -1;

    (void)weir_job_i64(job, "n", &number);
    if (bench_tally_mark(self->arena->tally, number))
        atomic_fetch_add(&self->out->fresh, 1);
    atomic_fetch_add(&self->out->handled, 1);
    return WEIR_DONE;
}

static weir_run_fn handler_of(const struct member *self)
{
    if (self->role->follow_topic != NULL)
        return handle_follow;
    switch (self->role->handler) {
    case BENCH_HANDLER_PENDING:
    case BENCH_HANDLER_RANDOM:
    case BENCH_HANDLER_TIMER:
        return handle_later;
    case BENCH_HANDLER_BLOCKING:
        return handle_blocking;
    case BENCH_HANDLER_SYNC:
    default:
        return handle;
    }
}

static enum weir_verdict handle_backlog(void *arg, struct weir_job *job)
{
    struct member *self = arg;
    int64_t number;

    (void)weir_job_i64(job, "n", &number);
    count(&self->out->backlog);
    return WEIR_DONE;
}

/* How many runs are settled now that a topic ran out of work; -1: that topic
 * does not count. */
static int64_t settled_with(struct member *self, const char *topic)
{
    const struct bench_spread *spread = self->role->spread;
    int64_t sum = 0;

    if (spread == NULL)
        return strcmp(topic, self->role->topic) == 0
                   ? atomic_load(&self->out->handled)
                   : -1;
    for (int i = 0; i < spread->count; i++) {
        if (strcmp(topic, spread->topics[i]) == 0)
            self->settled_of[i] = self->handled_of[i];
        sum += self->settled_of[i];
    }
    return sum;
}

static void on_idle(const char *topic, void *arg)
{
    struct member *self = arg;
    int64_t settled = settled_with(self, topic);

    if (settled < 0)
        return;
    if (settled != atomic_load(&self->out->settled)) {
        atomic_store(&self->out->settled_ns, bench_now_ns());
        atomic_store(&self->out->settled, settled);
    }
    if (atomic_load(&self->out->state) == BENCH_STARTING)
        atomic_store(&self->out->state, BENCH_READY);
}

/* Counts each as the other handler does. */
static enum weir_verdict handle_batch(void *arg, struct weir_job *const *jobs,
                                      size_t count_of, enum weir_verdict *each)
{
    weir_run_fn run = handler_of(arg);

    for (size_t i = 0; i < count_of; i++)
        each[i] = run(arg, jobs[i]);
    return WEIR_EACH;
}

/* What is 0 or NULL is the default, and is said as an empty value. */
static void say_options(const struct bench_role *role, char texts[3][32],
                        const char **ret_options)
{
    (void)snprintf(texts[0], 32, "kind=%s",
                   role->kind == NULL ? "" : role->kind);
    (void)snprintf(texts[1], 32,
                   role->concurrency == 0 ? "concurrency=" : "concurrency=%lld",
                   (long long)role->concurrency);
    (void)snprintf(texts[2], 32,
                   role->lease_ms == 0 ? "lease=" : "lease=%lldms",
                   (long long)role->lease_ms);
    for (size_t i = 0; i < 3; i++)
        ret_options[i] = texts[i];
}

static bool serve(struct member *self, const char *topic, weir_run_fn run)
{
    bool blocks = run == handle_blocking;
    struct weir_topic_options options = {
        .run = run,
        .run_batch = self->role->has_groups && !blocks ? handle_batch : NULL,
        .blocking = blocks,
        .self = self,
    };
    char texts[3][32];
    struct weir_error err;

    say_options(self->role, texts, options.options);
    if (weir_reactor_serve(self->weir, topic, &options, &err) == WEIR_OK)
        return true;
    fail(self, err.text);
    return false;
}

/* The topics that it is there for. */
static bool serve_all(struct member *self)
{
    const struct bench_spread *spread = self->role->spread;

    if (spread == NULL)
        return serve(self, self->role->topic, handler_of(self));
    for (int i = 0; i < spread->count; i++)
        if (!serve(self, spread->topics[i], handler_of(self)))
            return false;
    return true;
}

static void serve_idle(struct member *self)
{
    char name[IDLE_NAME];

    for (int64_t i = 0; i < self->role->idle_topics; i++) {
        (void)snprintf(name, sizeof(name), "%.28s.i%lld", self->role->topic,
                       (long long)i);
        if (!serve(self, name, handle))
            return;
    }
}

/* --- adding ----------------------------------------------------------- */

static void all_added(struct member *self)
{
    self->out->added_ns = bench_now_ns();
    self->out->add_cpu_ns = bench_cpu_ns() - self->begun_cpu_ns;
    atomic_store(&self->out->state, BENCH_DONE);
}

/* How many jobs a producer may have that are not acknowledged. */
static int64_t window_of(const struct bench_role *role)
{
    int64_t jobs = role->batch * WINDOW_BATCHES;

    if (role->in_flight > 0)
        return role->in_flight;
    return jobs < WINDOW_JOBS ? WINDOW_JOBS : jobs;
}

static void on_added(int code, const char *id, void *arg)
{
    struct member *self = arg;

    (void)id;
    if (code < 0) {
        if (code != WEIR_ECANCELED)
            fail(self, weir_error_text(code));
        return;
    }
    self->acknowledged++;
    if (self->acknowledged == self->role->jobs)
        all_added(self);
    else if (self->role->pause_ms == 0 && self->role->per_s == 0 &&
             self->sent < self->role->jobs &&
             self->sent - self->acknowledged <= window_of(self->role) / 2)
        ev_idle_start(self->loop, &self->producer);
}

static const char *topic_of(const struct bench_role *role, int64_t number)
{
    return role->spread == NULL
               ? role->topic
               : role->spread->topics[bench_spread_of(role->spread, number)];
}

/* False: not now, too much waits to be sent. */
static bool add_one(struct member *self)
{
    struct bench_new_job new;
    int64_t number =
        self->role->is_hot ? INT32_MAX : self->role->first + self->sent;
    int rc;

    bench_new_job_make(self->role, number, self->sent, &self->random, &new);
    bench_body_number(&self->body, number);
    new.job.body = (struct weir_slice){self->body.bytes, self->body.len};
    rc = weir_reactor_add(self->weir, topic_of(self->role, number), &new.job,
                          on_added, self, NULL);
    if (rc == WEIR_OK)
        self->sent++;
    else if (rc != WEIR_EFULL)
        fail(self, weir_error_text(rc));
    return rc == WEIR_OK;
}

/* A batch each turn, or 1 MiB of bodies, several in flight. What is refused
 * waits for answers. */
static void produce(struct ev_loop *loop, ev_idle *watcher, int events)
{
    struct member *self = watcher->data;
    const struct bench_role *role = self->role;
    int64_t most = TURN_BYTES / role->payload_bytes, in_flight;
    bool has_room = true;

    (void)events;
    for (int64_t i = 0; i < role->batch && i < most && has_room; i++)
        has_room = self->sent < role->jobs && add_one(self);
    in_flight = self->sent - self->acknowledged;
    if (self->sent == role->jobs || in_flight > window_of(role) ||
        (!has_room && in_flight > 0))
        ev_idle_stop(loop, watcher);
}

/* One job, when the one before was handled. */
static void pace(struct ev_loop *loop, ev_timer *watcher, int events)
{
    struct member *self = watcher->data;
    int64_t handled = 0;

    (void)loop;
    (void)events;
    for (int i = 0; i < BENCH_MEMBERS_MAX; i++)
        handled += atomic_load(&self->arena->member[i].fresh);
    if (self->sent < self->role->jobs && handled == self->sent) {
        atomic_store(&self->arena->stamp[self->sent], bench_now_ns());
        (void)add_one(self);
    }
    /* Off the beat, so that no timer of anybody's falls in step with it. */
    watcher->repeat =
        (double)self->role->pause_ms *
        (0.5 + (double)(bench_random_next(&self->random) % 1000) / 1000) / 1000;
    ev_timer_again(self->loop, watcher);
}

/* As many as are due by now at that rate. */
static void pour(struct ev_loop *loop, ev_timer *watcher, int events)
{
    struct member *self = watcher->data;
    const struct bench_role *role = self->role;
    int64_t due =
        (bench_now_ns() - self->out->begun_ns) / 1000 * role->per_s / 1000000;

    (void)loop;
    (void)events;
    due = due < role->jobs ? due : role->jobs;
    while (self->sent < due) {
        if (role->stamps == BENCH_STAMP_WAKE)
            atomic_store(&self->arena->stamp[role->first + self->sent],
                         bench_now_ns());
        if (!add_one(self))
            return;
    }
}

/* --- orders ----------------------------------------------------------- */

static void go(struct member *self)
{
    self->begun_cpu_ns = bench_cpu_ns();
    self->out->begun_ns = bench_now_ns();
    atomic_store(&self->out->state, BENCH_RUNNING);
    bench_turns_begin(&self->turns, self->loop, &self->out->turn_ns);
    if (self->role->handles && !self->role->handles_at_once)
        (void)serve_all(self);
    if (!self->role->adds)
        return;
    if (self->role->per_s > 0) {
        ev_set_cb(&self->pacer, pour);
        self->pacer.repeat = 0.001;
        ev_timer_again(self->loop, &self->pacer);
    } else if (self->role->pause_ms > 0) {
        self->pacer.repeat = (double)self->role->pause_ms / 1000;
        ev_timer_again(self->loop, &self->pacer);
    } else {
        ev_idle_start(self->loop, &self->producer);
    }
}

static void on_stopped(void *arg)
{
    struct member *self = arg;
    struct rusage usage = {0};

    (void)getrusage(RUSAGE_SELF, &usage);
    self->out->rss_kib = usage.ru_maxrss;
    atomic_store(&self->out->state, BENCH_ENDED);
    ev_break(self->loop, EVBREAK_ALL);
}

static void obey(struct member *self, char order)
{
    switch (order) {
    case BENCH_GO:
        go(self);
        return;
    case BENCH_BACKLOG:
        (void)serve(self, self->role->backlog_topic, handle_backlog);
        return;
    case BENCH_STOP:
        self->out->cpu_ns = bench_cpu_ns() - self->begun_cpu_ns;
        ev_idle_stop(self->loop, &self->producer);
        ev_timer_stop(self->loop, &self->pacer);
        bench_turns_end(&self->turns, self->loop);
        weir_reactor_stop(self->weir, on_stopped, self);
        return;
    default:
        fail(self, "got an order that nobody gives");
    }
}

static void on_order(struct ev_loop *loop, ev_io *watcher, int events)
{
    struct member *self = watcher->data;
    char order;

    (void)events;
    if (read(watcher->fd, &order, 1) == 1)
        obey(self, order);
    else
        ev_break(loop, EVBREAK_ALL); /* nobody is left to report to */
}

/* --- life ------------------------------------------------------------- */

static void on_connection(int code, const char *text, void *arg)
{
    struct member *self = arg;
    char sentence[240];

    if (code < 0 && !self->is_connected && ++self->failed < CONNECT_TRIES)
        return; /* on a busy machine; the reactor tries again */
    if (code < 0) {
        (void)snprintf(sentence, sizeof(sentence), "cannot reach redis: %.180s",
                       text);
        fail(self, sentence);
        return;
    }
    if (atomic_load(&self->out->state) != BENCH_STARTING || self->is_connected)
        return; /* it came back */
    self->is_connected = true;
    if (self->role->handles)
        serve_idle(self);
    if (self->role->handles_at_once)
        (void)serve_all(self);
    else if (atomic_load(&self->out->state) == BENCH_STARTING)
        atomic_store(&self->out->state, BENCH_READY);
}

static void init_watchers(struct member *self, int orders)
{
    ev_io_init(&self->orders, on_order, orders, EV_READ);
    ev_idle_init(&self->producer, produce);
    ev_init(&self->pacer, pace);
    self->orders.data = self;
    self->producer.data = self;
    self->pacer.data = self;
    ev_io_start(self->loop, &self->orders);
}

static void log_line(enum weir_level level, const char *text, void *arg)
{
    (void)level;
    (void)arg;
    bench_complain("%s", text);
}

void bench_member_run(const struct bench_role *role, struct bench_arena *arena,
                      int who, int orders)
{
    struct member self = {
        .role = role,
        .arena = arena,
        .out = &arena->member[who],
        .loop = ev_loop_new(EVFLAG_AUTO),
        .random = UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)who,
    };
    struct weir_options options = {
        .loop = self.loop,
        .redis_url = role->url,
        .log = log_line,
        .log_level = WEIR_LEVEL_ERROR,
        .request_timeout_ms = BENCH_REQUEST_LIMIT_MS,
        .on_connection = on_connection,
        .on_connection_arg = &self,
    };
    struct weir_error err;

    if (self.loop == NULL || !bench_body_init(&self.body, role->payload_bytes))
        _exit(1);
#ifdef M_TRIM_THRESHOLD
    (void)mallopt(M_MMAP_THRESHOLD, 4 << 20); /* as `weir run` does */
    (void)mallopt(M_TRIM_THRESHOLD, 32 << 20);
#endif
    init_watchers(&self, orders);
    if (!bench_later_init(&self.later, self.loop, role->handler)) {
        fail(&self, "cannot make a timer");
    } else if (weir_reactor_open(&options, &self.weir, &err) < 0 ||
               weir_reactor_declare(self.weir, role->topic, role->kind, &err) <
                   0) {
        fail(&self, err.text);
    } else {
        weir_reactor_on_idle(self.weir, on_idle, &self);
        ev_run(self.loop, 0);
    }
    weir_reactor_free(self.weir);
    bench_later_fini(&self.later);
    bench_body_fini(&self.body);
    ev_loop_destroy(self.loop);
}
