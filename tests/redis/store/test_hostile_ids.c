/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/buf.h"
#include "core/text.h"
#include "tests/redis/bounded/bounded_fixture.h"

/* Ids and groups that somebody else wrote into topics of the other kinds: no
 * handler sees one that no job can have, and the jobs beside it run. */

static const uint8_t record[] = {0x98, 1, 0, 0, 0, 0, 0, 0xc0, 7};
static char text[300];

/* Number `i` of those that are none; `len` 0 ends them. */
static struct weir_slice bad_id(size_t i)
{
    static const struct weir_slice ids[] = {
        {(const uint8_t *)"\r\nX-A: b", 8}, {(const uint8_t *)"a\0b", 3},
        {(const uint8_t *)"a\x1b[2J", 5},   {(const uint8_t *)"\xc2\x9b", 2},
        {(const uint8_t *)"{t}", 3},        {(const uint8_t *)text, 129},
        {(const uint8_t *)text, 255},       {NULL, 0}};

    memset(text, 'x', sizeof(text));
    return ids[i];
}

/* What core does with them, without handlers. Returns how many were sound. */
static int settle_claimed(struct host *host)
{
    int sound = 0;

    while (host->runs != NULL) {
        struct weir__run *run = host_take(host);

        EXPECT_TRUE(weir__id_is_sound(run->id));
        EXPECT_TRUE(run->group.len == 0 || weir__group_is_sound(run->group));
        sound += !run->is_malformed;
        run->record.reason = weir__slice_str("malformed");
        host_settle(host, run,
                    run->is_malformed ? WEIR__OUTCOME_DEAD
                                      : WEIR__OUTCOME_DONE);
    }
    host_await_settled(host);
    return sound;
}

/* --- bounded topics ------------------------------------------------------ */

static struct host *open_bounded(void)
{
    (void)world_open(NULL);
    return bounded_open("one", &weir__options_default);
}

/* Behind the events of "g" that are there. */
static void push_event(const char *seq, struct weir_slice id)
{
    struct weir__buf event = {0};

    weir__buf_append(&event, "\x01", 1);
    weir__buf_append(&event, seq, 12);
    weir__buf_append(&event, "\0", 1);
    weir__buf_append(&event, &(uint8_t){(uint8_t)id.len}, 1);
    weir__buf_append(&event, id.ptr, id.len);
    weir__buf_append(&event, record, sizeof(record));
    EXPECT_INT(2,
               redis_int(proc, "RPUSH weir:{t}:g:g %b", event.ptr, event.len));
    (void)redis_int(proc, "HINCRBY weir:{t}:meta waiting 1");
    (void)redis_int(proc, "HINCRBY weir:{t}:meta added 1");
    weir__buf_fini(&event);
}

static void expect_one_runs(struct host *host)
{
    EXPECT_INT(2, host_list(host, WEIR_JOB_READY, 10));
    EXPECT_STR("malformed", host->text[2]);
    EXPECT_INT(2, host_claim(host, 10, 60000));
    EXPECT_INT(1, settle_claimed(host));
    EXPECT_INT(1, bounded_count("done"));
    EXPECT_INT(1, bounded_count("failed"));
    EXPECT_CONTAINS("1 claimed jobs cannot be read and never run", world_log);
    bounded_walk();
}

TEST(an_event_whose_id_is_none_dies_and_the_one_beside_it_runs)
{
    for (size_t i = 0; bad_id(i).len > 0; i++) {
        struct host *host = open_bounded();

        event_add(host, "g", 1);
        push_event("5K8M2vR----0", bad_id(i));
        expect_one_runs(host);
    }
}

TEST(an_event_whose_name_is_none_dies_and_the_one_beside_it_runs)
{
    struct host *host = open_bounded();

    event_add(host, "g", 1);
    push_event("\r\n\0\x1b[2J12345", weir__slice_str("good"));
    expect_one_runs(host);
}

/* Another program's group: its events are dropped and do not come again. */
TEST(a_group_whose_name_is_none_loses_its_events_and_no_other_ones)
{
    for (size_t i = 0; bad_id(i).len > 0; i++) {
        struct host *host = open_bounded();
        struct weir_slice group = bad_id(i);

        event_add(host, "g", 1);
        EXPECT_INT(1, redis_int(proc, "COPY weir:{t}:g:g weir:{t}:g:%b",
                                group.ptr, group.len));
        EXPECT_INT(
            1, redis_int(proc, "ZADD weir:{t}:rot 1 %b", group.ptr, group.len));
        (void)redis_int(proc, "HINCRBY weir:{t}:meta waiting 1");
        (void)redis_int(proc, "HINCRBY weir:{t}:meta added 1");
        EXPECT_INT(1, host_list(host, WEIR_JOB_READY, 10));
        EXPECT_INT(2, host_claim(host, 10, 60000));
        EXPECT_INT(1, settle_claimed(host));
        EXPECT_INT(1, bounded_count("done"));
        EXPECT_INT(0, redis_int(proc, "ZCARD weir:{t}:rot"));
        bounded_walk();
    }
}

TEST(a_topic_with_a_group_whose_name_is_none_can_be_purged)
{
    struct host *host = open_bounded();

    event_add(host, "g", 1);
    (void)redis_int(proc, "ZADD weir:{t}:rot 1 %b", bad_id(6).ptr,
                    bad_id(6).len);
    EXPECT_INT(WEIR_OK, host_purge(host, WEIR__PURGE_ALL));
    EXPECT_INT(0, redis_int(proc, "ZCARD weir:{t}:rot"));
}

/* --- lists and streams --------------------------------------------------- */

TEST(a_waiting_entry_of_a_list_whose_id_is_none_dies)
{
    for (size_t i = 0; bad_id(i).len > 0; i++) {
        struct weir_slice id = bad_id(i);
        struct host *host;

        (void)world_open(NULL);
        host = host_open_kind("w1", "list");
        EXPECT_INT(1, redis_int(proc, "RPUSH t 7"));
        (void)redis_int(proc, "ZADD weir:{t}:wait 1 %b", id.ptr, id.len);
        (void)redis_int(proc, "HSET weir:{t}:held %b 7", id.ptr, id.len);
        EXPECT_INT(2, host_claim(host, 10, 60000));
        EXPECT_INT(1, settle_claimed(host));
        EXPECT_INT(0, redis_int(proc, "ZCARD weir:{t}:run"));
        EXPECT_INT(1, host_dead(host, 10));
        EXPECT_STR("unreadable", host->text[0]);
        EXPECT_CONTAINS("1 claimed jobs cannot be read and never run: "
                        "unreadable",
                        world_log);
        EXPECT_INT(WEIR_OK, host_purge(host, WEIR__PURGE_DEAD));
        EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:dead weir:{t}:held"));
    }
}

TEST(a_waiting_entry_of_a_stream_whose_id_is_none_is_set_aside)
{
    static const char *const ids[] = {"garbage", "5", "-", "(1-1",
                                      "99999999999999999999-1"};
    struct host *host;

    for (size_t i = 0; i < 5; i++) {
        (void)world_open(NULL);
        host = host_open_kind("w1", "stream");
        EXPECT_STR("5-1", redis_text(proc, "XADD t 5-1 body 7"));
        EXPECT_INT(1, host_claim(host, 10, 60000));
        host_settle_all(host, WEIR__OUTCOME_DONE);
        host_await_settled(host);
        EXPECT_STR("5-2", redis_text(proc, "XADD t 5-2 body 7"));
        EXPECT_INT(1, redis_int(proc, "ZADD weir:{t}:wait 1 %s", ids[i]));
        EXPECT_INT(2, host_list(host, WEIR_JOB_READY, 10));
        EXPECT_INT(1, host_claim(host, 10, 60000));
        EXPECT_INT(1, settle_claimed(host));
        EXPECT_INT(0, redis_int(proc, "ZCARD weir:{t}:wait"));
        EXPECT_STR("1", redis_text(proc, "HGET weir:{t}:meta dropped"));
    }
}

TEST(a_stream_goes_on_where_its_group_was_removed_while_an_entry_waits)
{
    struct host *host;

    host = host_open_kind("w1", "stream");
    EXPECT_STR("5-1", redis_text(proc, "XADD t 5-1 body 7"));
    EXPECT_INT(1, host_claim(host, 10, 60000));
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_STR("5-2", redis_text(proc, "XADD t 5-2 body 7"));
    EXPECT_INT(1, redis_int(proc, "ZADD weir:{t}:wait 1 5-2"));
    EXPECT_INT(1, redis_int(proc, "XGROUP DESTROY t weir"));
    EXPECT_INT(2, host_claim(host, 10, 60000)); /* from the first one on */
}

/* A new group at the end of the stream would never hear of it. */
TEST(what_waits_is_kept_where_a_group_that_began_at_the_end_was_removed)
{
    struct host *host;

    host = host_open_kind("w1", "stream");
    host_serve(host, "start=$");
    EXPECT_INT(0, host_claim(host, 10, 60000));
    EXPECT_STR("5-1", redis_text(proc, "XADD t 5-1 body 7"));
    EXPECT_INT(1, redis_int(proc, "ZADD weir:{t}:wait 1 5-1"));
    EXPECT_INT(1, redis_int(proc, "ZADD weir:{t}:wait 1 4-1"));
    EXPECT_INT(1, redis_int(proc, "XGROUP DESTROY t weir"));
    EXPECT_INT(1, host_claim(host, 10, 60000));
    EXPECT_STR("5-1", run_id(host->runs));
    EXPECT_STR("1", redis_text(proc, "HGET weir:{t}:meta lost"));
}

/* --- dead jobs ------------------------------------------------------------ */

TEST(a_dead_job_whose_id_is_none_is_shown_as_such_and_stays_dead)
{
    for (size_t i = 0; bad_id(i).len > 0; i++) {
        struct weir_slice id = bad_id(i);
        struct host *host;

        (void)world_open(NULL);
        host = host_open("w1");
        host_add(host, "a", 0);
        AWAIT(host->added == 1);
        host_bury(host, 1);
        (void)redis_int(proc, "ZADD weir:{t}:dead 1 %b", id.ptr, id.len);
        (void)redis_int(proc, "HSET weir:{t}:rec %b %b", id.ptr, id.len, record,
                        sizeof(record));
        EXPECT_INT(2, host_dead(host, 10));
        EXPECT_INT(WEIR_OK, host_requeue(host, NULL));
        EXPECT_INT(1, host->count);
        EXPECT_INT(1, host_dead(host, 10));
        EXPECT_STR("unreadable", host->text[0]);
        EXPECT_INT(WEIR_OK, host_purge(host, WEIR__PURGE_DEAD));
        EXPECT_INT(0, host_dead(host, 10));
    }
}
