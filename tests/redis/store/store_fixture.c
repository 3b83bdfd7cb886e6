/* SPDX-License-Identifier: MIT */
#include "tests/redis/store/store_fixture.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "adapters/redis/conn/tls.h"
#include "core/call.h"
#include "core/mem.h"
#include "core/text.h"

enum { TICK_MS = 5 };

char world_log[8192];
int64_t world_ns;
struct patience world_patience;

static struct ev_loop *loop;
static ev_prepare prepare;
static ev_timer tick;
static int ticks;
struct redis_proc *proc;
static bool is_elsewhere; /* at `address`, not at `proc` */
static struct weir__redis_url address;
static struct host *hosts;

/* --- the loop ----------------------------------------------------------- */

static void on_prepare(struct ev_loop *on, ev_prepare *watcher, int events)
{
    (void)on;
    (void)watcher;
    (void)events;
    for (struct host *host = hosts; host != NULL; host = host->next)
        host->store->ops->flush(host->store);
}

static void on_tick(struct ev_loop *on, ev_timer *watcher, int events)
{
    (void)on;
    (void)watcher;
    (void)events;
    ticks++;
}

static void on_log(enum weir_level level, const char *text, void *arg)
{
    size_t len = strlen(world_log);

    (void)level;
    (void)arg;
    (void)snprintf(world_log + len, sizeof(world_log) - len, "%s\n", text);
}

int64_t world_clock(void *arg)
{
    struct timespec now;

    (void)arg;
    if (world_ns != 0)
        return world_ns;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void world_close(void)
{
    if (loop == NULL)
        return;
    while (hosts != NULL)
        host_close(hosts);
    ev_prepare_stop(loop, &prepare);
    ev_timer_stop(loop, &tick);
    ev_loop_destroy(loop);
    loop = NULL;
    if (is_elsewhere)
        weir__tls_free(address.tls);
    else
        redis_stop(proc);
    is_elsewhere = false;
}

static void begin_loop(void)
{
    loop = ev_loop_new(EVFLAG_AUTO);
    EXPECT_TRUE(loop != NULL);
    ev_prepare_init(&prepare, on_prepare);
    ev_prepare_start(loop, &prepare);
    ev_timer_init(&tick, on_tick, TICK_MS / 1e3, TICK_MS / 1e3);
    ev_timer_start(loop, &tick);
    test_at_end(world_close);
}

struct redis_proc *world_open(const struct redis_options *options)
{
    world_close(); /* an earlier one */
    proc = redis_start(options);
    begin_loop();
    return proc;
}

void world_open_at(const char *url)
{
    world_close();
    EXPECT_INT(WEIR_OK, weir__redis_url_parse(url, &address, NULL));
    EXPECT_INT(WEIR_OK, weir__tls_new(&address, &address.tls, NULL));
    is_elsewhere = true;
    begin_loop();
}

void world_turn(void)
{
    if (patience_ended(&world_patience))
        printf("  log: %s\n", world_log);
    EXPECT_TRUE(!patience_ended(&world_patience));
    (void)ev_run(loop, EVRUN_ONCE); /* watchers are always active */
}

void world_turns(int count)
{
    world_patience = patience_start(30.);
    while (count-- > 0)
        world_turn();
}

void world_pass(int ms)
{
    int end = ticks + ms / TICK_MS;

    AWAIT(ticks > end);
}

/* --- events ------------------------------------------------------------- */

static void on_claimed(void *user, const struct weir__claimed *claimed)
{
    struct host *host = user;

    host->claims++;
    host->claimed = *claimed;
}

static void on_arrived(void *user, struct weir__run *first, size_t count,
                       size_t lost)
{
    struct host *host = user;
    size_t seen = 0;

    *host->runs_end = first;
    for (struct weir__run *run = first; run != NULL; run = run->next) {
        seen++;
        host->runs_end = &run->next;
    }
    EXPECT_INT(count, seen);
    host->arrived += count;
    host->lost += lost;
}

static void on_settled(void *user, size_t count, size_t refused)
{
    struct host *host = user;

    host->settled += count;
    host->refused += refused;
}

static void on_wake(void *user)
{
    ((struct host *)user)->wakes++;
}

static void on_handed(void *user, int64_t since_ns)
{
    struct host *host = user;

    host->handed++;
    host->since_ns = since_ns;
}

static void on_started(void *user, struct weir__run *run, int code)
{
    struct host *host = user;

    EXPECT_TRUE(run->is_suspect);
    host->starts++;
    host->start_code = code;
}

static void on_lost(void *user, uint64_t token)
{
    ((struct host *)user)->lost_token = token;
}

static void on_options(void *user, const struct weir__setting *settings,
                       size_t count)
{
    struct host *host = user;
    size_t len = 0;

    host->options_count++;
    host->options[0] = '\0';
    for (size_t i = 0; i < count && len < sizeof(host->options); i++)
        len += (size_t)snprintf(
            host->options + len, sizeof(host->options) - len, "%.*s=%s ",
            (int)settings[i].name.len, (const char *)settings[i].name.ptr,
            (const char *)settings[i].value.ptr);
}

static void on_dropped(const struct weir__dropped *dropped, void *arg)
{
    ((struct host *)arg)->dropped[dropped->reason] += dropped->count;
}

static void on_connection(int code, const char *text, void *arg)
{
    struct host *host = arg;

    (void)text;
    host->is_up = code == WEIR_OK;
    host->ups += code == WEIR_OK;
}

/* With what the host serves. */
static void open_topic(struct host *host, const char *name, const char *kind)
{
    struct weir__store_topic_options options = {
        .name = weir__slice_str(name), .kind = kind, .served = &host->served};

    EXPECT_INT(WEIR_OK, host->store->ops->topic_open(host->store, &options,
                                                     &host->topic));
}

void host_use(struct host *host, const char *name)
{
    const char *kind = host->store->ops->kind_name(host->topic);

    host->store->ops->topic_listen(host->topic, NULL);
    open_topic(host, name, kind);
    host->store->ops->topic_listen(host->topic, host);
}

void host_serve_with(struct host *host, const struct weir__options *options)
{
    const struct weir__store_topic *before = host->topic;

    host->served = *options;
    open_topic(host, "t", NULL);
    EXPECT_TRUE(host->topic == before);
}

void host_serve_said(struct host *host, const char *const *texts)
{
    struct weir__options options = weir__options_default;

    options.max_dead = 5;
    EXPECT_INT(WEIR_OK, weir__options_read(&options, "t", texts, NULL));
    host_serve_with(host, &options);
}

struct host *host_open_as(const char *worker, const char *kind,
                          const char *const *said)
{
    static const struct weir__store_events events = {
        .claimed = on_claimed,
        .arrived = on_arrived,
        .settled = on_settled,
        .wake = on_wake,
        .handed = on_handed,
        .started = on_started,
        .lost = on_lost,
        .options = on_options,
        .connection = on_connection,
        .dropped = on_dropped,
    };
    static const struct weir__log log = {
        .fn = on_log, .arg = NULL, .level = WEIR_LEVEL_INFO};
    struct host *host = weir__mem_new(sizeof(*host));
    struct weir__redis_url url;
    struct weir__redis_options options = {.url = &url,
                                          .worker = worker,
                                          .seed = 7,
                                          .clock = world_clock,
                                          .log = &log,
                                          .events = &events,
                                          .arg = host};

    EXPECT_TRUE(host != NULL);
    if (loop == NULL)
        (void)world_open(NULL);
    options.loop = loop;
    if (is_elsewhere)
        url = address;
    else
        redis_address(proc, &url);
    EXPECT_INT(WEIR_OK, weir__redis_open(&options, &host->store));
    open_topic(host, "t", kind);
    host_serve_said(host, said);
    host->store->ops->topic_listen(host->topic, host);
    host->runs_end = &host->runs;
    host->next = hosts;
    hosts = host;
    AWAIT(host->is_up);
    return host;
}

void host_close(struct host *host)
{
    struct host **at = &hosts;

    while (*at != host)
        at = &(*at)->next;
    *at = host->next;
    host->store->ops->close(host->store);
    weir__mem_free(host);
}

/* --- adding ------------------------------------------------------------- */

void host_added(int code, const char *id, void *arg)
{
    struct host *host = arg;

    host->added += code == WEIR_OK;
    host->existing += code == WEIR_EEXISTS;
    host->failed += code != WEIR_OK && code != WEIR_EEXISTS;
    host->last_code = code;
    (void)snprintf(host->last_id, sizeof(host->last_id), "%s", id);
}

void host_add_record(struct host *host, const char *id,
                     const struct weir__record *record, int64_t delay_ms)
{
    struct weir__new_job job = {
        .id = weir__slice_str(id), .record = record, .delay_ms = delay_ms};

    EXPECT_INT(WEIR_OK,
               host->store->ops->add(host->topic, &job, host_added, host));
}

void host_add(struct host *host, const char *id, int64_t delay_ms)
{
    static const uint8_t seven[] = {7};
    struct weir__record record = {.body = {seven, 1}};

    host_add_record(host, id, &record, delay_ms);
}

/* --- working ------------------------------------------------------------ */

size_t host_claim(struct host *host, size_t room, int64_t lease_ms)
{
    struct weir__claim claim = {
        .room = room, .lease_ms = lease_ms, .takes_jobs = host->takes_jobs};
    int claims = host->claims;
    size_t before = host->arrived + host->lost, arrived = host->arrived;

    EXPECT_INT(WEIR_OK, host->store->ops->claim(host->topic, &claim));
    AWAIT(host->claims > claims);
    AWAIT(host->arrived + host->lost == before + host->claimed.count);
    return host->arrived - arrived;
}

struct weir__run *host_take(struct host *host)
{
    struct weir__run *run = host->runs;

    EXPECT_TRUE(run != NULL);
    host->runs = run->next;
    if (host->runs == NULL)
        host->runs_end = &host->runs;
    return run;
}

int host_start(struct host *host, struct weir__run *run)
{
    int starts = host->starts;

    host->store->ops->start(host->topic, run);
    AWAIT(host->starts > starts);
    return host->start_code;
}

static struct weir__call holding;

void host_enter(struct host *host, struct weir__store_topic *topic,
                struct weir__run *run, int64_t timeout_ms)
{
    holding = (struct weir__call){
        .run = run,
        .run_topic = topic,
        .deadline_ns = run->started_ns + timeout_ms * 1000000,
    };
    weir__call_begin(host->store, &holding);
}

bool host_leave(struct host *host, const struct weir__run *run)
{
    EXPECT_TRUE(holding.run == run);
    return weir__call_end(host->store, &holding);
}

void host_settle(struct host *host, struct weir__run *run,
                 enum weir__outcome outcome)
{
    run->outcome = outcome;
    host->store->ops->settle(host->topic, run);
}

void host_settle_all(struct host *host, enum weir__outcome outcome)
{
    while (host->runs != NULL)
        host_settle(host, host_take(host), outcome);
}

void host_await_settled(struct host *host)
{
    AWAIT(host->store->ops->unsettled(host->topic) == 0);
}

/* --- numbered jobs ------------------------------------------------------- */

const char *run_id(const struct weir__run *run)
{
    static char id[WEIR_MAX_ID + 1];

    memcpy(id, run->id.ptr, run->id.len);
    id[run->id.len] = '\0';
    return id;
}

void host_add_numbered(struct host *host, int from, int to, int64_t delay_ms)
{
    char id[16];

    for (int i = from; i < to; i++) {
        (void)snprintf(id, sizeof(id), "job-%d", i);
        host_add(host, id, delay_ms);
    }
}

void host_work_off(struct host *host, uint8_t *ran, size_t count)
{
    while (host_claim(host, 1000, 60000) > 0) {
        while (host->runs != NULL) {
            struct weir__run *run = host_take(host);
            int number;

            EXPECT_INT(1, sscanf(run_id(run), "job-%d", &number));
            EXPECT_TRUE(number >= 0 && (size_t)number < count);
            ran[number]++;
            host_settle(host, run, WEIR__OUTCOME_DONE);
        }
    }
    host_await_settled(host);
}

void host_bury(struct host *host, size_t count)
{
    size_t buried = 0;

    while (buried < count) {
        (void)host_claim(host, 1000, 60000);
        while (host->runs != NULL) {
            struct weir__run *run = host_take(host);

            run->record.counters.attempt = 3;
            run->record.counters.failures = 3;
            run->record.counters.snoozes = 2;
            run->record.reason = weir__slice_str("failed");
            run->record.error = weir__slice_str("no such order");
            host_settle(host, run, WEIR__OUTCOME_DEAD);
            buried++;
        }
        host_await_settled(host);
    }
}
