/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/conn/private.h"
#include "adapters/redis/pack.h"
#include "adapters/redis/store/store.h"
#include "core/text.h"
#include "tests/redis/store/store_fixture.h"

/* What somebody else may have written into the server: packs and records that
 * are cut, lie about lengths, or come from a later version. Their jobs die as
 * malformed, or are left alone; jobs beside them run. */

static struct host *host;

/* Three jobs with ids of one byte and records of nine: [.., body 7]. */
static void open_with_pack(void)
{
    (void)world_open(NULL);
    host = host_open("w1");
    host_add(host, "a", 0);
    host_add(host, "b", 0);
    host_add(host, "c", 0);
    AWAIT(host->added == 3);
}

enum { HEADER = 15, OFFSETS = 16, RECORD = 9 }; /* of that pack */
enum { MIB = 1024 * 1024 };

static const char *pack_key(void)
{
    static char key[64];

    (void)snprintf(key, sizeof(key), "weir:{t}:p:%s",
                   redis_text(proc, "HGET weir:{t}:ids b"));
    return key;
}

static void write_at(size_t at, const void *bytes, size_t len)
{
    (void)redis_int(proc, "SETRANGE %s %d %b", pack_key(), (int)at, bytes, len);
}

/* What core does with them, without handlers. Returns how many were sound. */
static int settle_claimed(void)
{
    int sound = 0;

    while (host->runs != NULL) {
        struct weir__run *run = host_take(host);

        sound += !run->is_malformed;
        run->record.reason = weir__slice_str("malformed");
        host_settle(host, run,
                    run->is_malformed ? WEIR__OUTCOME_DEAD
                                      : WEIR__OUTCOME_DONE);
    }
    host_await_settled(host);
    return sound;
}

static void expect_dead_and_sound(int dead, int sound)
{
    EXPECT_INT(dead + sound, host_claim(host, 10, 60000));
    EXPECT_INT(sound, settle_claimed());
    EXPECT_INT(dead, host_dead(host, 10));
    if (dead > 0)
        EXPECT_STR("malformed", (const char *)host->info.reason.ptr);
    EXPECT_INT(0, redis_int(proc, "ZCARD weir:{t}:run"));
    EXPECT_INT(0, redis_int(proc, "ZCARD weir:{t}:wait"));
    host_add(host, "next", 0); /* the store works on */
    AWAIT(host->added == 4);
    EXPECT_INT(1, host_claim(host, 10, 60000));
}

TEST(a_record_written_over_by_hand_kills_its_own_job_only)
{
    open_with_pack();
    write_at(HEADER + OFFSETS + RECORD, "garbage!!", RECORD);
    expect_dead_and_sound(1, 2);
}

TEST(a_record_that_promises_4_billion_elements_kills_its_own_job_only)
{
    open_with_pack();
    write_at(HEADER + OFFSETS + RECORD, "\xdd\xff\xff\xff\xff\x01\0\0\0",
             RECORD);
    expect_dead_and_sound(1, 2);
}

TEST(a_body_that_promises_4_billion_pairs_kills_its_own_job_only)
{
    static const uint8_t bomb[] = {0x98, 1, 0, 0, 0, 0, 0, 0xc0, 0xdf};

    open_with_pack();
    write_at(HEADER + OFFSETS + RECORD, bomb, sizeof(bomb));
    expect_dead_and_sound(1, 2);
}

TEST(a_body_nested_a_million_deep_kills_its_own_job_only)
{
    static uint8_t body[1000001];
    struct weir__record record = {.body = {body, sizeof(body)}};

    open_with_pack();
    memset(body, 0x91, sizeof(body) - 1); /* arrays of one */
    EXPECT_INT(WEIR_OK, host_set(host, "max_body", "16MiB"));
    host_add_record(host, "deep", &record, 0);
    AWAIT(host->added == 4);
    host->added = 3;
    expect_dead_and_sound(1, 3);
}

TEST(a_record_of_a_newer_version_is_left_alone_and_said_once)
{
    open_with_pack();
    write_at(HEADER + OFFSETS + RECORD + 1, "\x02", 1);
    EXPECT_INT(2, host_claim(host, 10, 300)); /* time is the subject */
    EXPECT_INT(1, host->lost);
    EXPECT_INT(2, settle_claimed());
    while (host->lost < 2) /* its lease ran out, it is claimed once more */
        (void)host_claim(host, 10, 300); /* time is the subject */
    EXPECT_CONTAINS("newer version", world_log);
    EXPECT_TRUE(strstr(strstr(world_log, "newer version") + 1,
                       "newer version") == NULL);
    EXPECT_INT(0, host_dead(host, 10));
    EXPECT_STR("0", redis_text(proc, "EXISTS weir:{t}:dead"));
}

TEST(a_pack_of_a_newer_layout_is_left_alone)
{
    open_with_pack();
    write_at(1, "2", 1);
    EXPECT_INT(0, host_claim(host, 10, 60000));
    EXPECT_INT(3, host->lost);
    EXPECT_CONTAINS("newer version", world_log);
    EXPECT_INT(0, host_dead(host, 10));
}

TEST(a_truncated_pack_kills_its_jobs_and_no_others)
{
    open_with_pack();
    for (size_t len = HEADER + OFFSETS + 3 * RECORD - 1; len >= 8; len -= 5) {
        const char *key = pack_key();
        int before = host->added;

        EXPECT_STR("OK",
                   redis_text(proc, "SET %s %s", key,
                              redis_text(proc, "GETRANGE %s 0 %d", key, 0)));
        EXPECT_INT(3, host_claim(host, 10, 60000));
        EXPECT_INT(0, settle_claimed());
        EXPECT_INT(3, host_dead(host, 10));
        EXPECT_INT(WEIR_OK, host_purge(host, WEIR__PURGE_DEAD));
        (void)redis_int(proc, "HDEL weir:{t}:ids a b c");
        host_add(host, "a", 0);
        host_add(host, "b", 0);
        host_add(host, "c", 0);
        AWAIT(host->added == before + 3);
    }
}

TEST(a_pack_that_lies_about_its_lengths_kills_its_jobs)
{
    static const struct {
        size_t at;
        const char *bytes;
        size_t len;
    } lies[] = {
        {2, "\xff", 1},                     /* slots */
        {5, "\xff\xff\xff", 3},             /* header length */
        {5, "\0\0\0", 3},                   /* the same, none */
        {4, "\xff", 1},                     /* flags */
        {8, "\xdd\xff\xff\xff\xff", 5},     /* ids */
        {9, "\xdb\xff\xff\xff\xff", 5},     /* length of an id */
        {HEADER, "\xff\xff\xff\xff", 4},    /* the first offset */
        {HEADER + 4, "\xff\xff\xff\x7f", 4} /* an offset */
    };

    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        open_with_pack();
        write_at(lies[i].at, lies[i].bytes, lies[i].len);
        expect_dead_and_sound(3, 0);
    }
}

/* A job with that id in the pack of another one, without the add script. */
static void put_pack(const char *seq, struct weir_slice bad)
{
    static const uint8_t record[] = {0x98, 1, 0, 0, 0, 0, 0, 0xc0, 7};
    struct weir__pack_job jobs[2] = {
        {weir__slice_str("good"), {record, sizeof(record)}},
        {bad, {record, sizeof(record)}}};
    struct weir__buf buf = {0};

    weir__pack_write(&buf, jobs, 2, true);
    EXPECT_STR("OK",
               redis_text(proc, "SET weir:{t}:p:%s %b", seq, buf.ptr, buf.len));
    EXPECT_INT(2, redis_int(proc, "HSET weir:{t}:ids good %s %b %s", seq,
                            bad.ptr, bad.len, seq));
    EXPECT_INT(1, redis_int(proc, "ZADD weir:{t}:wait 1 %s0001", seq));
    EXPECT_INT(5, redis_int(proc, "HINCRBY weir:{t}:meta added 2"));
    weir__buf_fini(&buf);
}

/* The job beside it in the pack runs, it dies under a name that weir made. */
static void expect_refused_id(struct weir_slice bad)
{
    int dead = 0;

    open_with_pack();
    put_pack("Zaaaaaaaaaaa", bad);
    EXPECT_INT(2, host_list(host, WEIR_JOB_READY, 2));
    EXPECT_INT(5, host_claim(host, 10, 60000));
    for (const struct weir__run *run = host->runs; run != NULL;
         run = run->next) {
        EXPECT_TRUE(weir__id_is_sound(run->id));
        dead += run->is_malformed &&
                weir__slice_equal(run->id, weir__slice_str("@Zaaaaaaaaaaa01"));
    }
    EXPECT_INT(1, dead);
    EXPECT_INT(4, settle_claimed());
    EXPECT_INT(1, host_dead(host, 10));
    EXPECT_STR("@Zaaaaaaaaaaa01", host->text[0]);
    EXPECT_CONTAINS("1 claimed jobs cannot be read and never run: "
                    "@Zaaaaaaaaaaa01",
                    world_log);
    EXPECT_INT(2, redis_int(proc, "HLEN weir:{t}:ids")); /* it and "!" */
}

TEST(an_id_that_no_job_can_have_kills_its_own_job_only)
{
    static const char *const ids[] = {
        "",   "\r\nX-A: b", "a\nb",     "a b",      "{a}",
        "!x", "a\x7f",      "a\x1b[2J", "\xc2\x9b", "\xff"};
    char text[256];

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        expect_refused_id(weir__slice_str(ids[i]));
    expect_refused_id(weir__slice_of("a\0b", 3));
    memset(text, 'x', sizeof(text));
    expect_refused_id(weir__slice_of(text, WEIR_MAX_ID + 1));
    expect_refused_id(weir__slice_of(text, 255));
}

TEST(a_pack_whose_name_is_none_is_settled_away)
{
    open_with_pack();
    put_pack("a\r\n\x1b[2J_____", weir__slice_str("x"));
    EXPECT_INT(3, host_list(host, WEIR_JOB_READY, 10));
    EXPECT_INT(3, host_claim(host, 10, 60000));
    EXPECT_INT(3, settle_claimed());
    EXPECT_CONTAINS("2 claimed jobs are lost, their packs are gone", world_log);
    EXPECT_TRUE(strchr(world_log, '\x1b') == NULL);
    AWAIT(redis_int(proc, "ZCARD weir:{t}:run") == 0);
}

TEST(packs_that_are_gone_are_logged_together_after_the_first)
{
    int lines = 0, jobs = 0, more;

    open_with_pack();
    for (int i = 0; i < 200; i++)
        (void)redis_int(proc, "ZADD weir:{t}:wait 1 gone-%07d0001", i);
    while (host->arrived < 3)
        (void)host_claim(host, 1000, 60000);
    EXPECT_INT(3, settle_claimed());
    EXPECT_CONTAINS(" claimed jobs are lost, their packs are gone: "
                    "gone-0000000",
                    world_log);
    host_close(host);
    for (const char *at = strstr(world_log, "redis: t: "); at != NULL;
         at = strstr(at + 1, "redis: t: "))
        if (sscanf(at, "redis: t: %d claimed jobs are lost", &more) == 1) {
            lines++;
            jobs += more;
        }
    EXPECT_INT(2, lines);
    EXPECT_INT(400, jobs);
}

TEST(names_that_are_no_nodes_do_not_hold_up_list_or_purge)
{
    open_with_pack();
    (void)redis_int(proc, "ZADD weir:{t}:wait 1 garbage 2 more-garbage-here!");
    EXPECT_INT(3, host_list(host, WEIR_JOB_READY, 10));
    EXPECT_INT(WEIR_OK, host_purge(host, WEIR__PURGE_ALL));
    EXPECT_INT(3, host->count);
}

/* The due times of a mixed pack begin in 1970, and the last one is missing. */
TEST(a_table_of_due_times_that_is_cut_is_not_read)
{
    int64_t due_ms;

    host = host_open("w1");
    host_add(host, NULL, 600000);
    host_add(host, NULL, 601000);
    AWAIT(host->added == 2);
    EXPECT_STR("OK", redis_text(proc, "EVAL %s 1 weir:{t}:due",
                                "local seq = redis.call('HKEYS', KEYS[1])[1] "
                                "redis.call('HSET', KEYS[1], seq, "
                                "string.rep('\\0', 16)) return 'OK'"));
    due_ms = redis_int(proc, "EVAL %s 1 weir:{t}:wait",
                       "return redis.call('ZRANGE', KEYS[1], 0, 0, "
                       "'WITHSCORES')[2] - 2 ^ 45");
    EXPECT_INT(1, host_list(host, WEIR_JOB_SCHEDULED, 1));
    EXPECT_INT(due_ms, host->info.due_ms);
}

TEST(a_topic_with_a_hostile_pack_can_be_purged)
{
    open_with_pack();
    write_at(8, "\xdd\xff\xff\xff\xff", 5);
    EXPECT_INT(WEIR_OK, host_purge(host, WEIR__PURGE_ALL));
    EXPECT_INT(3, host->count);
    EXPECT_INT(0, redis_int(proc, "ZCARD weir:{t}:wait"));
}

TEST(stored_options_that_make_no_sense_reach_core_as_they_are)
{
    open_with_pack();
    EXPECT_INT(WEIR_OK, host_set(host, "retry", "5s"));
    (void)redis_int(proc, "HSET weir:{t}:options nonsense 1 max_body -5");
    EXPECT_INT(3, host_claim(host, 10, 60000));
    EXPECT_CONTAINS("nonsense=1", host->options);
    host_add(host, "next", 0);
    AWAIT(host->added == 4);
}

/* One MiB more than an answer may have: what it has without bodies, and one. A
 * server needs seconds for the 80 MiB that are usual. */
static void open_with_large_pack(void)
{
    open_with_pack();
    ((struct weir__redis *)host->store)->servers->commands->options.max_reply =
        MIB;
    write_at(2 * MIB + WEIR_BODY_LIMIT, "x", 1);
}

TEST(a_pack_too_large_to_be_fetched_kills_its_own_jobs_only)
{
    open_with_large_pack();
    expect_dead_and_sound(3, 0);
    EXPECT_CONTAINS("an answer of more than 17 MiB", world_log);
}

TEST(jobs_fetched_with_a_pack_that_is_too_large_run_after_their_lease)
{
    int sound = 0;

    open_with_large_pack();
    host_add(host, "beside", 0);
    AWAIT(host->added == 4);
    while (host_dead(host, 10) < 3 || sound < 1) {
        (void)host_claim(host, 10, 1000); /* time is the subject */
        sound += settle_claimed();
    }
    EXPECT_INT(1, sound);
    EXPECT_INT(0, redis_int(proc, "ZCARD weir:{t}:run"));
}
