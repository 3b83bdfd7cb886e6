/* SPDX-License-Identifier: MIT */
#include "tests/core/reactor_fixture.h"

#include <stdio.h>
#include <string.h>

#include "core/text.h"

#include "tests/harness/test.h"

struct mem_store *store;
struct weir__reactor *reactor;
struct weir__pool *pool;
static struct weir__log log_to;
bool logs_outcomes;
char last_log[512], logged[8192];
enum weir_level log_level;
int idles, stops;

/* What the handler does, and what it saw. */
enum weir_verdict (*behaviour)(struct weir_job *job);
int runs;
int64_t cost_ms; /* virtual time a run takes */
int flush_rc, flushes;
char order[400];

static void on_log(enum weir_level level, const char *text, void *arg)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    size_t used = strlen(logged);

    (void)arg;
    (void)snprintf(last_log, sizeof(last_log), "%s", text);
    (void)snprintf(logged + used, sizeof(logged) - used, "%s %s\n",
                   names[level], text);
}

static enum weir_verdict handle(void *self, struct weir_job *job)
{
    struct weir_slice id = weir_job_id(job);
    size_t used = strlen(order);

    (void)self;
    runs++;
    if (used + id.len + 2 < sizeof(order))
        (void)snprintf(order + used, sizeof(order) - used, "%.*s ", (int)id.len,
                       (const char *)id.ptr);
    mem_store_advance(store, cost_ms);
    return behaviour == NULL ? WEIR_DONE : behaviour(job);
}

static int flush(void *self)
{
    (void)self;
    flushes++;
    return flush_rc;
}

/* What the threads of handlers post arrives at once. */
static int post(struct weir__mailbox *mailbox, uint64_t ticket,
                const struct weir__completion *completion)
{
    (void)mailbox;
    weir__reactor_complete(reactor, ticket, completion);
    return WEIR_OK;
}

static struct weir__mailbox mailbox = {post};

/* Jobs that handlers add are fine; nothing else is asked. */
static int check_job(const struct weir_new_job *job, struct weir_error *err)
{
    (void)err;
    EXPECT_TRUE(job->id != NULL);
    return WEIR_OK;
}

static const struct weir__codec codec = {.check = check_job};

static void on_idle(const char *topic, void *arg)
{
    (void)arg;
    EXPECT_STR("orders", topic);
    idles++;
}

void on_stopped(void *arg)
{
    (void)arg;
    stops++;
}

struct weir__lane_options lane_options(const char *ladder)
{
    struct weir__lane_options options = {
        .name = weir__slice_str("orders"),
        .run = handle,
        .flush = flush,
    };

    weir__options_init(&options.options);
    EXPECT_INT(WEIR_OK, weir__options_put(&options.options, "orders",
                                          WEIR__TOPIC_retry, ladder, NULL));
    return options;
}

void open_reactor(const struct weir__lane_options *lane)
{
    struct weir__lane_options served = *lane;
    struct weir__reactor_options options;

    test_at_end(close_reactor);
    store = mem_store_new();
    log_to = (struct weir__log){.fn = on_log, .level = log_level};
    options = (struct weir__reactor_options){
        .codec = &codec,
        .clock = mem_store_clock,
        .clock_arg = store,
        .seed = 7,
        .mailbox = &mailbox,
        .pool = pool,
        .block_warn_ms = 100,
        .log = &log_to,
        .outcome_log = logs_outcomes ? &log_to : NULL,
    };
    reactor = weir__reactor_new(&options);
    EXPECT_TRUE(reactor != NULL);
    weir__reactor_attach(reactor, mem_store_port(store));
    EXPECT_INT(WEIR_OK, weir__reactor_serve(reactor, &served));
    weir__reactor_on_idle(reactor, on_idle, NULL);
    weir__reactor_connection(reactor, true);
}

void open_with_ladder(const char *ladder)
{
    struct weir__lane_options lane = lane_options(ladder);

    open_reactor(&lane);
}

void close_reactor(void)
{
    if (reactor == NULL)
        return;
    (void)weir__reactor_drop_pending(reactor);
    weir__reactor_free(reactor);
    reactor = NULL;
    mem_store_free(store);
}

int64_t turn(void)
{
    int64_t wait_ns = weir__reactor_tick(reactor);

    weir__reactor_check(reactor);
    return wait_ns;
}

/* Turns until nothing happens without time passing. */
int64_t settle_down(void)
{
    int64_t wait_ns;

    do
        wait_ns = turn();
    while (mem_store_answer(store) > 0 || wait_ns == 0);
    return wait_ns;
}

/* Let virtual time pass as a loop would, from deadline to deadline. */
void pass(int64_t ms)
{
    int64_t end = mem_store_now_ms(store) + ms;

    for (;;) {
        int64_t wait_ms = settle_down() / 1000000 + 1;

        if (mem_store_now_ms(store) + wait_ms > end)
            break;
        mem_store_advance(store, wait_ms);
    }
    mem_store_advance(store, end - mem_store_now_ms(store));
    (void)settle_down();
}

void add_many(int count)
{
    for (int i = 0; i < count; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "j%d", i);
        mem_store_add(store, id, 0, NULL, i + 1 == count);
    }
}
