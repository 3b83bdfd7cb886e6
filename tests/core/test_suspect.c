/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/lane.h"
#include "core/text.h"
#include "tests/core/reactor_fixture.h"

/* Jobs that a worker had when it died. */

static void add_suspect(const char *id, uint32_t blamed)
{
    mem_store_add(store, id, 0, NULL, true);
    mem_store_suspect(store, blamed);
}

static void add_innocent(void)
{
    mem_store_add(store, "innocent", 0, NULL, true);
}

TEST(a_suspect_runs_after_its_start_was_noted)
{
    open_with_ladder("1s");
    (void)settle_down();
    add_suspect("a", 0);
    mem_store_add(store, "b", 0, NULL, true);
    (void)turn();
    (void)mem_store_answer(store); /* the claim */
    (void)turn();
    EXPECT_INT(0, runs); /* nothing else runs while the note is on its way */
    EXPECT_INT(1, mem_store_starts(store));
    (void)mem_store_answer(store);
    EXPECT_TRUE(mem_store_job(store, "a")->is_started);
    (void)turn();
    EXPECT_STR("a b ", order);
    (void)settle_down();
    EXPECT_STR("gone", mem_store_job(store, "a")->state);
}

TEST(one_suspect_at_a_time_is_noted)
{
    open_with_ladder("1s");
    (void)settle_down();
    add_suspect("a", 0);
    add_suspect("b", 1);
    add_suspect("c", 0);
    add_innocent();
    (void)turn();
    for (int i = 0; i < 12; i++) {
        int noted = 0;

        for (const char *id = "a\0b\0c\0"; *id != '\0'; id += 2)
            noted += strcmp(mem_store_job(store, id)->state, "running") == 0 &&
                     mem_store_job(store, id)->is_started;
        EXPECT_TRUE(noted <= 1);
        (void)mem_store_answer(store);
        (void)turn();
    }
    (void)settle_down();
    EXPECT_INT(4, runs);
    EXPECT_INT(3, mem_store_starts(store));
}

TEST(a_suspect_that_was_blamed_too_often_dies_without_running)
{
    open_with_ladder("1s");
    (void)settle_down();
    add_suspect("poison", 3);
    add_suspect("lucky", 2);
    add_innocent();
    (void)settle_down();
    EXPECT_STR("dead", mem_store_job(store, "poison")->state);
    EXPECT_STR("crashed", mem_store_job(store, "poison")->reason);
    EXPECT_STR("gone", mem_store_job(store, "lucky")->state);
    EXPECT_TRUE(strstr(order, "poison") == NULL);
    EXPECT_INT(2, mem_store_starts(store)); /* which tells of its crashes */
}

TEST(a_suspect_that_is_gone_when_it_is_noted_does_not_run)
{
    open_with_ladder("1s");
    (void)settle_down();
    add_suspect("a", 0);
    add_innocent();
    (void)turn();
    (void)mem_store_answer(store);
    mem_store_delete(store, "a");
    (void)settle_down();
    EXPECT_STR("innocent ", order);
}

TEST(a_suspect_that_cannot_be_noted_is_left_to_its_lease)
{
    open_with_ladder("1s");
    (void)settle_down();
    add_suspect("a", 1);
    mem_store_fail_start(store, WEIR_ESERVER); /* it is full */
    add_innocent();
    pass(12000);
    EXPECT_TRUE(mem_store_starts(store) >= 2);
    EXPECT_TRUE(mem_store_starts(store) <= 3); /* one a lease of 5 s */
    EXPECT_TRUE(mem_store_claims(store) <= 10);
    mem_store_fail_start(store, WEIR_OK);
    pass(6000);
    EXPECT_STR("gone", mem_store_job(store, "a")->state);
    EXPECT_INT(2, mem_store_job(store, "a")->counters.crashes); /* as before */
    EXPECT_STR("innocent a ", order);
}

TEST(suspects_go_back_when_the_reactor_stops)
{
    open_with_ladder("1s");
    (void)settle_down();
    add_suspect("a", 0);
    add_suspect("b", 0);
    add_innocent();
    (void)turn();
    (void)mem_store_answer(store);
    (void)turn(); /* a is being noted, the others wait */
    weir__reactor_stop(reactor, on_stopped, NULL);
    (void)settle_down();
    EXPECT_INT(1, stops);
    EXPECT_INT(0, runs);
    EXPECT_STR("waiting", mem_store_job(store, "a")->state);
    EXPECT_STR("waiting", mem_store_job(store, "b")->state);
    EXPECT_INT(1, mem_store_job(store, "a")->suspicion);
}

static struct weir_handle pending[4];
static int pending_count;

static enum weir_verdict pend(struct weir_job *job)
{
    if (strncmp((const char *)weir_job_id(job).ptr, "innocent", 8) == 0)
        return WEIR_DONE;
    pending[pending_count++] = weir_job_handle(job);
    return WEIR_PENDING;
}

TEST(suspects_that_are_pending_may_be_many)
{
    open_with_ladder("1s");
    behaviour = pend;
    (void)settle_down();
    add_suspect("a", 0);
    add_suspect("b", 0);
    add_innocent();
    (void)settle_down();
    EXPECT_INT(2, pending_count);
    EXPECT_TRUE(mem_store_job(store, "b")->is_started);
    EXPECT_STR("gone", mem_store_job(store, "innocent")->state);
}

TEST(a_suspect_that_was_blamed_is_pending_alone)
{
    open_with_ladder("1s");
    behaviour = pend;
    (void)settle_down();
    add_suspect("a", 0);
    add_suspect("blamed", 1);
    add_suspect("c", 0);
    add_innocent();
    (void)settle_down();
    EXPECT_INT(1, pending_count); /* a; the next one waits for it */
    EXPECT_STR("gone", mem_store_job(store, "innocent")->state);
    EXPECT_INT(WEIR_OK, weir_complete(pending[0], WEIR_DONE, 0, NULL));
    (void)settle_down();
    EXPECT_INT(2, pending_count);
    EXPECT_TRUE(mem_store_job(store, "blamed")->is_started);
    EXPECT_TRUE(!mem_store_job(store, "c")->is_started);
    EXPECT_INT(WEIR_OK, weir_complete(pending[1], WEIR_DONE, 0, NULL));
    (void)settle_down();
    EXPECT_INT(3, pending_count);
}

/* Two suspects are pending one after the other. */
static void expect_in_turns(const struct weir__lane_options *lane)
{
    open_reactor(lane);
    behaviour = pend;
    (void)settle_down();
    add_suspect("a", 0);
    add_suspect("b", 0);
    add_innocent();
    (void)settle_down();
    EXPECT_INT(1, pending_count);
    EXPECT_INT(WEIR_OK, weir_complete(pending[0], WEIR_DONE, 0, NULL));
    (void)settle_down();
    EXPECT_INT(2, pending_count);
}

TEST(where_one_blame_is_death_all_suspects_are_pending_alone)
{
    struct weir__lane_options lane = lane_options("1s");

    lane.options.max_crashes = 1;
    expect_in_turns(&lane);
}

TEST(suspects_do_not_exceed_concurrency)
{
    struct weir__lane_options lane = lane_options("1s");

    lane.options.concurrency = 1;
    lane.options.prefetch = 10;
    expect_in_turns(&lane);
}

static enum weir_verdict done(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    return WEIR_DONE;
}

/* One more topic. */
static struct mem_store *serve(const char *name, struct weir__lane_options lane)
{
    struct mem_store *own = mem_store_new();

    lane.name = weir__slice_str(name);
    mem_store_join(store, own);
    EXPECT_INT(WEIR_OK, weir__reactor_serve(reactor, &lane));
    return own;
}

static void answer(struct mem_store *const *stores)
{
    for (; *stores != NULL; stores++)
        while (mem_store_answer(*stores) > 0)
            continue;
}

TEST(lanes_whose_suspects_have_to_wait_hold_no_other_up)
{
    struct weir__lane_options lane = lane_options("1s"), other = lane;
    struct mem_store *stores[4] = {0};

    lane.options.concurrency = 1;
    lane.options.prefetch = 10;
    open_reactor(&lane);
    behaviour = pend;
    weir__reactor_on_idle(reactor, NULL, NULL);
    stores[0] = store;
    stores[1] = serve("second", lane);
    other.run = done;
    stores[2] = serve("third", other);
    mem_store_add(stores[0], "busy", 0, NULL, true);
    mem_store_add(stores[1], "busy", 0, NULL, true);
    for (int i = 0; i < 3; i++) {
        (void)turn();
        answer(stores);
    }
    EXPECT_INT(2, pending_count); /* as many as may, in two topics */
    for (size_t i = 0; i < 3; i++) {
        mem_store_add(stores[i], "a", 0, NULL, true);
        mem_store_suspect(stores[i], 0);
    }
    (void)turn();
    answer(stores); /* the claims */
    (void)turn();
    EXPECT_INT(0, mem_store_starts(stores[0]) + mem_store_starts(stores[1]));
    EXPECT_INT(1, mem_store_starts(stores[2]));
    close_reactor();
    mem_store_free(stores[1]);
    mem_store_free(stores[2]);
}
