/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "core/lane.h"
#include "core/text.h"
#include "tests/harness/test.h"

/* A reactor with thousands of topics that have nothing to do, in virtual time:
 * its store only counts claims and answers that nothing waits. */

enum { LANES = 1000 };

struct weir__store_topic {
    void *user;
    bool is_claiming;
    int claims;
};

static struct weir__store_topic topics[LANES];
static struct weir__store port;
static struct weir__reactor *reactor;
static size_t opened, out, most_out;
static int64_t now_ns, at_once_ns;
static size_t at_once, most_at_once;

static int64_t read_clock(void *arg)
{
    (void)arg;
    return now_ns;
}

static int topic_open(struct weir__store *store,
                      const struct weir__store_topic_options *options,
                      struct weir__store_topic **ret_topic)
{
    size_t index = 0;

    (void)store;
    for (size_t i = sizeof("topic") - 1; i < options->name.len; i++)
        index = index * 10 + (size_t)(options->name.ptr[i] - '0');
    EXPECT_TRUE(index < LANES);
    if (opened <= index)
        opened = index + 1;
    *ret_topic = &topics[index];
    return WEIR_OK;
}

static void topic_listen(struct weir__store_topic *topic, void *user)
{
    topic->user = user;
}

/* Counts how many come within one second. */
static int claim(struct weir__store_topic *topic,
                 const struct weir__claim *claim)
{
    if (claim->now_ns - at_once_ns >= 1000 * WEIR__MS_NS) {
        at_once_ns = claim->now_ns;
        at_once = 0;
    }
    at_once++;
    if (at_once > most_at_once)
        most_at_once = at_once;
    out++;
    if (out > most_out)
        most_out = out;
    topic->is_claiming = true;
    topic->claims++;
    return WEIR_OK;
}

static size_t unsettled(const struct weir__store_topic *topic)
{
    (void)topic;
    return 0;
}

static void flush(struct weir__store *store)
{
    (void)store;
}

static enum weir_verdict handle(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    return WEIR_DONE;
}

static const struct weir__store_ops ops = {
    .topic_open = topic_open,
    .topic_listen = topic_listen,
    .claim = claim,
    .unsettled = unsettled,
    .flush = flush,
};

static void serve(size_t index)
{
    struct weir__lane_options lane = {.run = handle};
    char name[16];

    (void)snprintf(name, sizeof(name), "topic%zu", index);
    lane.name = weir__slice_str(name);
    weir__options_init(&lane.options);
    lane.options.concurrency = 16;
    EXPECT_INT(WEIR_OK, weir__reactor_serve(reactor, &lane));
    EXPECT_INT(WEIR_EEXISTS, weir__reactor_serve(reactor, &lane));
}

static void open_lanes(void)
{
    struct weir__reactor_options options = {.clock = read_clock};

    port.ops = &ops;
    reactor = weir__reactor_new(&options);
    EXPECT_TRUE(reactor != NULL);
    weir__reactor_attach(reactor, &port);
    for (size_t i = 0; i < LANES; i++)
        serve(i);
    weir__reactor_connection(reactor, true);
}

static void answer(void)
{
    struct weir__store_events events = weir__lane_events();
    struct weir__claimed nothing = {.next_due_us = -1};

    for (size_t i = 0; i < opened; i++) {
        if (!topics[i].is_claiming)
            continue;
        topics[i].is_claiming = false;
        out--;
        events.claimed(topics[i].user, &nothing);
    }
}

/* Let virtual time pass from deadline to deadline. */
static void pass(int64_t ms)
{
    int64_t end_ns = now_ns + ms * WEIR__MS_NS, wait_ns;

    while (now_ns < end_ns) {
        wait_ns = weir__reactor_tick(reactor);
        if (out > 0) {
            answer();
            continue;
        }
        EXPECT_TRUE(wait_ns > 0);
        now_ns += wait_ns < end_ns - now_ns ? wait_ns : end_ns - now_ns;
    }
    weir__reactor_check(reactor);
}

TEST(many_lanes_begin_with_a_bounded_number_of_claims_at_once)
{
    open_lanes();
    pass(1);
    for (size_t i = 0; i < LANES; i++)
        EXPECT_INT(1, topics[i].claims);
    EXPECT_INT(WEIR__CLAIMS_OUT, most_out);
    weir__reactor_free(reactor);
}

TEST(the_checks_of_many_idle_lanes_are_spread)
{
    const int64_t round_ms = LANES * (WEIR__SAFETY_GAP_NS / WEIR__MS_NS);

    open_lanes();
    pass(1001); /* without those of the start */
    most_at_once = 0;
    pass(3 * round_ms);
    EXPECT_TRUE(most_at_once <= 51);
    for (size_t i = 0; i < LANES; i++) {
        EXPECT_TRUE(topics[i].claims >= 3);
        EXPECT_TRUE(topics[i].claims <= 4);
    }
    weir__reactor_free(reactor);
}

TEST(lanes_that_are_served_alike_share_their_options)
{
    struct weir__store_events events = weir__lane_events();
    struct weir__setting stored = {weir__slice_str("lease"),
                                   weir__slice_str("9s")};
    const struct weir__lane *first, *second;

    open_lanes();
    first = topics[0].user;
    second = topics[1].user;
    EXPECT_TRUE(first->options == second->options);
    events.options(topics[0].user, &stored, 1);
    EXPECT_INT(9000, first->options->lease);
    EXPECT_INT(5000, second->options->lease);
    events.options(topics[0].user, NULL, 0);
    EXPECT_TRUE(first->options == second->options);
    weir__reactor_free(reactor);
}
