/* SPDX-License-Identifier: MIT */

/* What mem_store.h declares, of a real server: the store of adapters/redis, and
 * a redis-server with a clock that the test moves (server_clock.c). Time goes
 * on by itself as well, by what it takes to ask. What the store reports is kept
 * back until the test wants answers; a flush returns when the server has done
 * what was flushed. */

#include <ev.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "adapters/redis/redis.h"
#include "core/text.h"
#include "tests/harness/mem_store.h"
#include "tests/harness/redis_proc.h"
#include "tests/harness/test.h"

enum { EVENTS_MAX = 256 };

struct event {
    enum { CLAIMED, ARRIVED, SETTLED, WAKE, LOST } what;
    struct weir__claimed claimed;
    struct weir__run *first;
    size_t count, other; /* lost, refused */
    uint64_t token;
};

struct mem_store {
    struct redis_proc *server;
    int64_t *ahead; /* ns, of the server's clock and ours */
    struct ev_loop *loop;
    struct weir__store *worker, *producer;
    struct weir__store_topic *topic; /* the producer's */
    struct weir__store_ops ops;      /* the worker's, counted */
    const struct weir__store_ops *real;
    struct weir__store_topic *served;
    void *user;
    int ups;
    struct event events[EVENTS_MAX]; /* not delivered */
    size_t event_count;
    size_t out, coming; /* claims without an answer, jobs on their way */
    size_t claims, renewals, flushed_renewals, largest_claim;
    bool is_slow; /* as the last claim said */
    int answers;
    struct mem_job job;
};

static struct mem_store *store; /* one at a time */

/* --- the loop ----------------------------------------------------------- */

static void on_look(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    if (!patience_ended(timer->data))
        return;
    printf("  the server does not answer\n");
    EXPECT_TRUE(false);
}

/* As the driver of a reactor does, with a flush before each turn. */
static void turn_loop(int flags)
{
    store->producer->ops->flush(store->producer);
    store->real->flush(store->worker);
    (void)ev_run(store->loop, flags);
}

#define RUN_UNTIL(condition)                            \
    do {                                                \
        struct patience patience = patience_start(30.); \
        ev_timer look;                                  \
        ev_timer_init(&look, on_look, 1., 1.);          \
        look.data = &patience;                          \
        ev_timer_start(store->loop, &look);             \
        while (!(condition))                            \
            turn_loop(EVRUN_ONCE);                      \
        ev_timer_stop(store->loop, &look);              \
    } while (0)

/* --- what the worker's store reports -------------------------------------- */

static void keep(struct event event)
{
    EXPECT_TRUE(store->event_count < EVENTS_MAX);
    store->events[store->event_count] = event;
    store->event_count++;
}

static void on_claimed(void *user, const struct weir__claimed *claimed)
{
    (void)user;
    store->out--;
    store->coming += claimed->count;
    keep((struct event){.what = CLAIMED, .claimed = *claimed});
}

static void on_arrived(void *user, struct weir__run *first, size_t count,
                       size_t lost)
{
    (void)user;
    store->coming -= count + lost;
    keep((struct event){
        .what = ARRIVED, .first = first, .count = count, .other = lost});
}

static void on_settled(void *user, size_t count, size_t refused)
{
    (void)user;
    keep((struct event){.what = SETTLED, .count = count, .other = refused});
}

static void on_wake(void *user)
{
    if (user == store->user)
        keep((struct event){.what = WAKE});
}

static void on_started(void *user, struct weir__run *run, int code)
{
    (void)user;
    (void)run;
    (void)code;
    EXPECT_TRUE(false); /* there are no suspects */
}

static void on_lost(void *user, uint64_t token)
{
    (void)user;
    keep((struct event){.what = LOST, .token = token});
}

static void on_options(void *user, const struct weir__setting *settings,
                       size_t count)
{
    (void)user;
    (void)settings;
    EXPECT_INT(0, count);
}

static void on_connection(int code, const char *text, void *arg)
{
    (void)text;
    (void)arg;
    EXPECT_INT(WEIR_OK, code);
    store->ups++;
}

static void deliver(const struct event *event)
{
    struct weir__store_events events = weir__lane_events();

    if (event->what == CLAIMED)
        events.claimed(store->user, &event->claimed);
    else if (event->what == ARRIVED)
        events.arrived(store->user, event->first, event->count, event->other);
    else if (event->what == SETTLED)
        events.settled(store->user, event->count, event->other);
    else if (event->what == WAKE)
        events.wake(store->user);
    else
        events.lost(store->user, event->token);
}

size_t mem_store_answer(struct mem_store *of)
{
    struct event events[EVENTS_MAX];
    size_t count = of->event_count;

    memcpy(events, of->events, count * sizeof(events[0]));
    of->event_count = 0;
    for (size_t i = 0; i < count; i++)
        deliver(&events[i]);
    return count;
}

/* What was published has come with the answer to something asked later. */
static void hear_wake_ups(bool are_lost)
{
    size_t kept = 0, wakes = 0;

    EXPECT_STR("PONG", redis_text(store->server, "PING"));
    turn_loop(EVRUN_NOWAIT);
    for (size_t i = 0; i < store->event_count; i++)
        if (store->events[i].what == WAKE)
            wakes++;
        else
            store->events[kept++] = store->events[i];
    store->event_count = kept;
    for (size_t i = 0; i < wakes && !are_lost; i++)
        weir__lane_events().wake(store->user);
}

/* --- what core asks of it ------------------------------------------------- */

static void topic_listen(struct weir__store_topic *topic, void *user)
{
    store->served = topic;
    store->user = user;
    store->real->topic_listen(topic, user);
}

static int claim(struct weir__store_topic *topic,
                 const struct weir__claim *claim_of)
{
    store->claims++;
    store->out++;
    store->is_slow = claim_of->is_slow;
    if (claim_of->room > store->largest_claim)
        store->largest_claim = claim_of->room;
    /* Its answers come when the test says so, a job at any time. */
    return store->real->claim(
        topic, &(struct weir__claim){.room = claim_of->room,
                                     .lease_ms = claim_of->lease_ms,
                                     .now_ns = claim_of->now_ns,
                                     .has_jobs = claim_of->has_jobs,
                                     .is_slow = claim_of->is_slow});
}

static bool renew(struct weir__store_topic *topic, int64_t lease_ms)
{
    store->renewals++;
    return store->real->renew(topic, lease_ms);
}

static size_t unsettled(const struct weir__store_topic *topic)
{
    size_t count = store->real->unsettled(topic);

    for (size_t i = 0; i < store->event_count; i++)
        if (store->events[i].what == SETTLED)
            count += store->events[i].count;
    return count;
}

static void flush(struct weir__store *port)
{
    (void)port;
    for (int i = 0; i < 3; i++) /* also what has no answer is sent */
        turn_loop(EVRUN_NOWAIT);
    RUN_UNTIL(store->out + store->coming == 0 &&
              store->real->unsettled(store->served) == 0);
    EXPECT_STR("PONG", redis_text(store->server, "PING")); /* and done */
    store->flushed_renewals = store->renewals;
}

static struct weir__store *open_store(const char *worker)
{
    static const struct weir__log log;
    static const struct weir__store_events events = {
        .claimed = on_claimed,
        .arrived = on_arrived,
        .settled = on_settled,
        .wake = on_wake,
        .started = on_started,
        .lost = on_lost,
        .options = on_options,
        .connection = on_connection,
    };
    struct weir__redis_url url;
    struct weir__redis_options options = {
        .loop = store->loop,
        .url = &url,
        .worker = worker,
        .clock = mem_store_clock,
        .clock_arg = store,
        .log = &log,
        .events = &events,
    };
    struct weir__store *port = NULL;

    redis_address(store->server, &url);
    EXPECT_INT(WEIR_OK, weir__redis_open(&options, &port));
    return port;
}

static void start_server(void)
{
    char name[200];
    int fd;

    store->server = redis_prepare(NULL);
    (void)snprintf(name, sizeof(name), "%s/clock", redis_dir(store->server));
    fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_INT(0, ftruncate(fd, sizeof(*store->ahead)));
    store->ahead = mmap(NULL, sizeof(*store->ahead), PROT_READ | PROT_WRITE,
                        MAP_SHARED, fd, 0);
    EXPECT_TRUE(store->ahead != MAP_FAILED);
    (void)close(fd); /* it stays mapped */
    EXPECT_INT(0, setenv("WEIR_CLOCK", name, 1));
    EXPECT_INT(0, setenv("LD_PRELOAD", WEIR_SERVER_CLOCK, 1));
    redis_restart(store->server);
    EXPECT_INT(0, unsetenv("LD_PRELOAD"));
}

struct mem_store *mem_store_new(void)
{
    struct weir__store_topic_options topic = {.name =
                                                  weir__slice_str("orders")};

    store = calloc(1, sizeof(*store));
    EXPECT_TRUE(store != NULL);
    start_server();
    store->loop = ev_loop_new(0);
    store->worker = open_store("worker");
    store->producer = open_store("producer");
    store->real = store->worker->ops;
    store->ops = *store->real;
    store->ops.topic_listen = topic_listen;
    store->ops.claim = claim;
    store->ops.renew = renew;
    store->ops.unsettled = unsettled;
    store->ops.flush = flush;
    store->worker->ops = &store->ops;
    EXPECT_INT(WEIR_OK, store->producer->ops->topic_open(
                            store->producer, &topic, &store->topic));
    RUN_UNTIL(store->ups == 2);
    return store;
}

struct weir__store *mem_store_port(struct mem_store *of)
{
    return of->worker;
}

void mem_store_free(struct mem_store *of)
{
    of->real->close(of->worker);
    of->producer->ops->close(of->producer);
    ev_loop_destroy(of->loop);
    (void)munmap(of->ahead, sizeof(*of->ahead));
    free(of);
}

/* --- the clock ----------------------------------------------------------- */

static int64_t ns_of(clockid_t clock)
{
    struct timespec now;

    EXPECT_INT(0, clock_gettime(clock, &now));
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t mem_store_clock(void *of)
{
    return ns_of(CLOCK_MONOTONIC) + *((struct mem_store *)of)->ahead;
}

int64_t mem_store_now_ms(const struct mem_store *of)
{
    return (ns_of(CLOCK_REALTIME) + *of->ahead) / 1000000;
}

void mem_store_advance(struct mem_store *of, int64_t ms)
{
    *of->ahead += ms * 1000000;
}

/* --- another client ------------------------------------------------------- */

static void on_added(int code, const char *id, void *arg)
{
    (void)id;
    (void)arg;
    EXPECT_INT(WEIR_OK, code);
    store->answers++;
}

static void on_paused(int code, const char *text, void *arg)
{
    (void)text;
    (void)arg;
    EXPECT_INT(WEIR_OK, code);
    store->answers++;
}

static void await_answer(int rc)
{
    int before = store->answers;

    EXPECT_INT(WEIR_OK, rc);
    RUN_UNTIL(store->answers > before);
}

void mem_store_add(struct mem_store *of, const char *id, int64_t delay_ms,
                   const char *retry, bool wakes)
{
    static const uint8_t seven[] = {7};
    struct weir__record record = {.body = {seven, 1},
                                  .retry = weir__slice_str(retry)};
    struct weir__new_job job = {
        .id = weir__slice_str(id), .record = &record, .delay_ms = delay_ms};

    await_answer(of->producer->ops->add(of->topic, &job, on_added, NULL));
    hear_wake_ups(!wakes);
}

void mem_store_pause(struct mem_store *of, bool is_paused)
{
    await_answer(
        of->producer->ops->pause(of->topic, is_paused, on_paused, NULL));
    hear_wake_ups(false);
}

static void on_shown(int code, const struct weir_job_info *job, void *arg)
{
    (void)arg;
    store->job = (struct mem_job){.state = "gone"};
    if (code == WEIR_OK) {
        store->job.state = job->state == WEIR_JOB_RUNNING ? "running"
                           : job->state == WEIR_JOB_DEAD  ? "dead"
                                                          : "waiting";
        store->job.counters = job->counters;
    }
    store->answers++;
}

/* The crashes of one that is gone are those of the topic, the end of a lease is
 * that of the one that ends first. */
const struct mem_job *mem_store_job(struct mem_store *of, const char *id)
{
    const char *text;

    await_answer(of->producer->ops->show(of->topic, weir__slice_str(id),
                                         on_shown, NULL));
    text = redis_text(of->server, "HGET weir:{orders}:meta crashed");
    if (strcmp(of->job.state, "gone") == 0 && text != NULL)
        of->job.counters.crashes = (uint32_t)strtoul(text, NULL, 10);
    text = redis_text(of->server,
                      "EVAL return(redis.call('ZRANGE','weir:{orders}:lease',"
                      "0,0,'WITHSCORES')[2]) 0");
    of->job.lease_ms = text == NULL ? 0 : strtoll(text, NULL, 10);
    return &of->job;
}

size_t mem_store_claims(const struct mem_store *of)
{
    return of->claims;
}

size_t mem_store_renewals(const struct mem_store *of)
{
    return of->renewals;
}

size_t mem_store_flushed_renewals(const struct mem_store *of)
{
    return of->flushed_renewals;
}

bool mem_store_is_slow(const struct mem_store *of)
{
    return of->is_slow;
}

size_t mem_store_largest_claim(const struct mem_store *of)
{
    return of->largest_claim;
}
