/* SPDX-License-Identifier: MIT */
#include "tests/redis/scripts/script_fixture.h"

#include <stdlib.h>
#include <string.h>

/* --- settle ------------------------------------------------------------- */

TEST(a_settled_node_leaves_nothing_behind)
{
    (void)script_add('a', "x y z", "r0");
    EXPECT_STR("a0002+0", script_claim("10", "9000"));
    EXPECT_STR("3", script_settle_all("a0002"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:p:aaaaaaaaaaaa"));
    EXPECT_INT(1, redis_int(script_proc, "HLEN weir:{t}:ids"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:run weir:{t}:lease"));
    EXPECT_INT(3, script_stat("done"));
}

TEST(an_id_that_is_no_text_does_not_keep_the_ids_beside_it)
{
    EXPECT_STR("9", script_add('a', "a b c d e f g h i", "r0"));
    EXPECT_STR("a0008+0", script_claim("10", "9000"));
    (void)script_text("SETRANGE weir:{t}:p:aaaaaaaaaaaa 9 \x91");
    EXPECT_STR("9", script_settle_all("a0008"));
    EXPECT_INT(2, redis_int(script_proc, "HLEN weir:{t}:ids"));
}

TEST(what_is_not_settled_stays_under_its_token)
{
    (void)script_add('a', "v w x y z", "r0");
    EXPECT_STR("a0004+0", script_claim("10", "9000"));
    script_settle_begin();
    script_settle_node("a0004", "\x01\x04", 2);
    script_settle_close();
    EXPECT_STR("2", script_settle('a', 0, "10"));
    EXPECT_STR("aaaaaaaaaaaa0000 aaaaaaaaaaaa0203",
               script_text("ZRANGEBYLEX weir:{t}:run - +"));
    EXPECT_INT(1, redis_int(script_proc, "ZCARD weir:{t}:lease"));
    EXPECT_STR("3 0 1 0 4", script_settle_all("a0004"));
    EXPECT_INT(5, script_stat("done"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:lease"));
}

static const char *settle_range(unsigned lo, unsigned hi)
{
    char slots[256];

    for (unsigned slot = lo; slot <= hi; slot++)
        slots[slot - lo] = (char)slot;
    script_settle_begin();
    script_settle_node("a00??", slots, hi - lo + 1);
    script_settle_close();
    return script_settle('a', 0, "10");
}

/* Else each of many settles of a node would look for all that went before. */
TEST(settled_slots_are_not_looked_for_again)
{
    long long before;

    (void)script_add('a', "256", "r0");
    EXPECT_STR("a00??+0", script_claim("256", "9000"));
    EXPECT_STR("100", settle_range(0, 99));
    EXPECT_STR("99", settle_range(102, 200));
    before = redis_calls(script_proc, "zscore");
    EXPECT_STR("2", settle_range(100, 101));
    EXPECT_TRUE(redis_calls(script_proc, "zscore") - before <=
                10); /* the lease, nodes of 256 to 2 */
    EXPECT_STR("aaaaaaaaaaaa<9<9 aaaaaaaaaaaa<:<; aaaaaaaaaaaa<<<? "
               "aaaaaaaaaaaa=0=? aaaaaaaaaaaa>0??",
               script_text("ZRANGEBYLEX weir:{t}:run - +"));
}

/* The first that names a slot settles it. */
TEST(entries_of_one_node_share_a_call)
{
    (void)script_add('a', "v w x y z", "r0");
    EXPECT_STR("a0004+0", script_claim("10", "9000"));
    script_settle_begin();
    script_settle_node("a0004", "\x01\x03", 2);
    script_settle_node("a0004", "\x02\x03", 2);
    script_settle_node("a0004", NULL, 0);
    script_settle_close();
    EXPECT_STR("5 1 3 2 1 2 2 2 3", script_settle('a', 0, "10"));
    EXPECT_STR("0 0 1 0 3 1 2 1 3 2 0 2 1 2 2 2 3 2 4",
               script_settle('a', 0, "10"));
    EXPECT_INT(5, script_stat("done"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:p:aaaaaaaaaaaa"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:run weir:{t}:lease"));
    EXPECT_INT(1, redis_int(script_proc, "HLEN weir:{t}:ids"));
}

TEST(a_stale_token_changes_nothing)
{
    char stale[24];

    (void)script_add('a', "x y", "r0");
    EXPECT_STR("a0001+0", script_crash("10"));
    memcpy(stale, script_token, sizeof(stale));
    EXPECT_STR("a0000+1 a0101+1", script_claim("10", "9000"));
    memcpy(script_token, stale, sizeof(stale));
    EXPECT_STR("0 0 0 0 1", script_settle_all("a0001"));
    EXPECT_INT(2, script_stat("running"));
    EXPECT_INT(0, script_stat("done"));
}

TEST(a_move_takes_its_job_into_the_staged_pack)
{
    char first[8];

    (void)script_add('a', "x y", "r0");
    memcpy(first, script_header, sizeof(first));
    EXPECT_STR("a0001+0", script_claim("10", "9000"));
    script_stage('b', "y");
    script_settle_begin();
    script_settle_move(1, strtoul(script_header, NULL, 10));
    memcpy(script_header, first, sizeof(first));
    script_settle_node("a0001", NULL, 0);
    script_settle_close();
    EXPECT_STR("2", script_settle('a', 'b', "10"));
    EXPECT_STR("bbbbbbbbbbbb", script_text("HGET weir:{t}:ids y"));
    EXPECT_STR("bbbbbbbbbbbb0000", script_text("ZRANGE weir:{t}:wait 0 -1"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:p:aaaaaaaaaaaa"));
    EXPECT_INT(1, script_stat("retried"));
    EXPECT_INT(1, script_stat("done"));
    EXPECT_STR("0 0 0 0 1", script_settle('a', 'b', "10"));
    EXPECT_INT(1, script_stat("waiting"));
}

/* It is another producer's, or it would not be there before. */
TEST(a_move_into_a_permanent_pack_is_refused)
{
    (void)script_add('b', "v", "r3600000");
    (void)script_add('a', "x y", "r0");
    EXPECT_STR("a0001+0", script_claim("10", "9000"));
    script_settle_begin();
    script_settle_move(1, 10);
    script_settle_node("a0001", NULL, 0);
    EXPECT_STR("1 0 1", script_settle('a', 'b', "10"));
    EXPECT_STR("aaaaaaaaaaaa0101", script_text("ZRANGE weir:{t}:run 0 -1"));
    EXPECT_INT(1, script_stat("waiting"));
    EXPECT_INT(0, script_stat("retried"));
}

/* Whoever wrote it over, the pack is permanent: the job has its verdict. */
TEST(an_entry_of_the_outbox_that_is_none_is_not_sent)
{
    static const struct weir_slice entries[] = {
        {(const uint8_t *)"", 0},
        {(const uint8_t *)"\xc1", 1},
        {(const uint8_t *)"\x07", 1},
        {(const uint8_t *)"\xa1x", 2},
        {(const uint8_t *)"\x93\x01\xc0\xc0", 4},
        {(const uint8_t *)"\xdd\xff\xff\xff\xff", 5},
    };

    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        (void)script_text("FLUSHALL");
        (void)script_add('b', "v", "r3600000");
        (void)script_add('a', "x y", "r0");
        EXPECT_STR("a0001+0", script_claim("10", "9000"));
        (void)redis_int(script_proc, "HSET weir:{t}:relay bbbbbbbbbbbb %b",
                        entries[i].ptr, entries[i].len);
        script_settle_begin();
        script_settle_send(1, 10);
        script_settle_node("a0001", NULL, 0);
        EXPECT_STR("1 0 1", script_settle('a', 'b', "10"));
        EXPECT_INT(1, script_stat("done"));
        EXPECT_INT(1, redis_int(script_proc, "HLEN weir:{t}:relay"));
    }
}

/* Id blocks of two jobs "x" and "y" with something else in their place. */
static const struct weir_slice id_blocks[] = {
    {(const uint8_t *)"\x07\x07\x07\x07\x07", 5},
    {(const uint8_t *)"\xc1\xc1\xc1\xc1\xc1", 5},
    {(const uint8_t *)"\x91\xa3xyz", 5},
    {(const uint8_t *)"\x92\xc0\xa2yz", 5},
    {(const uint8_t *)"\x92\xa1x\xc3\xc0", 5},
    {(const uint8_t *)"\x92\xa1x\x81\x01", 5},
    {(const uint8_t *)"\xdd\xff\xff\xff\xff", 5},
};

static void write_ids(char letter, struct weir_slice block)
{
    char seq[13] = {0};

    memset(seq, letter, 12);
    EXPECT_TRUE(redis_int(script_proc, "SETRANGE weir:{t}:p:%s 8 %b", seq,
                          block.ptr, block.len) > 0);
}

TEST(ids_that_were_written_over_do_not_stop_a_verdict)
{
    for (size_t i = 0; i < sizeof(id_blocks) / sizeof(id_blocks[0]); i++) {
        (void)script_text("FLUSHALL");
        (void)script_add('a', "x y", "r0");
        EXPECT_STR("a0001+0", script_claim("10", "9000"));
        write_ids('a', id_blocks[i]);
        EXPECT_STR("2", script_settle_all("a0001"));
        EXPECT_INT(2, script_stat("done"));
        EXPECT_INT(0, script_stat("running"));
        EXPECT_STR("0", script_text("EXISTS weir:{t}:p:aaaaaaaaaaaa"));
    }
}

TEST(ids_beside_one_that_is_no_text_leave_the_index)
{
    (void)script_add('a', "x y", "r0");
    EXPECT_STR("a0001+0", script_claim("10", "9000"));
    write_ids('a', id_blocks[4]);
    EXPECT_STR("2", script_settle_all("a0001"));
    EXPECT_INT(0, redis_int(script_proc, "HEXISTS weir:{t}:ids x"));
    EXPECT_INT(1, redis_int(script_proc, "HEXISTS weir:{t}:ids y"));
}

/* Its jobs come, and workers see what they are. */
TEST(ids_that_were_written_over_do_not_stop_a_new_pack)
{
    for (size_t i = 0; i < sizeof(id_blocks) / sizeof(id_blocks[0]); i++) {
        (void)script_text("FLUSHALL");
        (void)script_add('a', "x y", "r0");
        EXPECT_STR("a0001+0", script_claim("10", "9000"));
        script_stage('b', "v w");
        write_ids('b', id_blocks[i]);
        script_settle_begin();
        script_settle_follow(0, "\0\1", 2, strtoul(script_header, NULL, 10));
        script_settle_node("a0001", NULL, 0);
        EXPECT_STR("2", script_settle('a', 'b', "10"));
        EXPECT_INT(2, script_stat("done"));
        EXPECT_INT(2, script_stat("waiting"));
        EXPECT_STR("bbbbbbbbbbbb0001",
                   script_text("ZRANGE weir:{t}:wait 0 -1"));
    }
}

/* Jobs of the pack `letter` that died at no time at all. */
static const char *requeue(char letter)
{
    script_begin(&weir__script_delay_requeue, "wait ids meta dead rec idle");
    script_pack_key(letter);
    script_arg("t");
    script_arg(script_total);
    script_arg(script_header);
    script_arg_bytes("\x92\x00\x00", 3);
    return script_call();
}

TEST(ids_that_were_written_over_do_not_stop_a_requeue)
{
    for (size_t i = 0; i < sizeof(id_blocks) / sizeof(id_blocks[0]); i++) {
        (void)script_text("FLUSHALL");
        (void)redis_int(script_proc, "ZADD weir:{t}:dead 0 x 0 y");
        script_stage('b', "x y");
        write_ids('b', id_blocks[i]);
        EXPECT_STR(i == 4 ? "1" : "0", requeue('b'));
        EXPECT_INT(i == 4,
                   redis_int(script_proc, "EXISTS weir:{t}:p:bbbbbbbbbbbb"));
    }
    script_stage('b', "x y");
    (void)redis_int(script_proc, "PERSIST weir:{t}:p:bbbbbbbbbbbb");
    (void)script_text("SET weir:{t}:p:bbbbbbbbbbbb b");
    EXPECT_STR("2", requeue('b')); /* a repeat: nothing of it is gone */
}

TEST(a_move_that_was_not_staged_stops_the_whole_call)
{
    (void)script_add('a', "x y", "r0");
    EXPECT_STR("a0001+0", script_claim("10", "9000"));
    script_settle_begin();
    script_settle_move(1, 10);
    script_settle_node("a0001", NULL, 0);
    EXPECT_STR("-1", script_settle('a', 'b', "10"));
    EXPECT_INT(2, script_stat("running"));
}

TEST(a_move_that_was_not_staged_is_left_out_when_that_is_asked_for)
{
    (void)script_add('a', "x y z", "r0");
    EXPECT_STR("a0002+0", script_claim("10", "9000"));
    script_settle_begin();
    script_settle_move(1, 10);
    script_settle_node("a0002", NULL, 0);
    script_settle_close();
    script_settle_leave_out();
    EXPECT_STR("2 0 257", script_settle('a', 'b', "10"));
    EXPECT_INT(1, script_stat("running"));
    EXPECT_INT(2, script_stat("done"));
    EXPECT_INT(0, script_stat("retried"));
    EXPECT_STR("aaaaaaaaaaaa0101", script_text("ZRANGE weir:{t}:run 0 -1"));
    EXPECT_INT(1, redis_int(script_proc, "ZCARD weir:{t}:lease"));
    script_settle_begin();
    script_settle_node("a0101", NULL, 0);
    EXPECT_STR("1", script_settle('a', 0, "10"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:p:aaaaaaaaaaaa"));
}

/* Job w brings one in c and one in d, x one in d and one in b, y one in b. */
static const char *settle_three_packs(const char *staged)
{
    char first[8];
    size_t header_len;

    memcpy(first, script_header, sizeof(first));
    for (size_t i = 0; staged[i] != '\0'; i++)
        script_stage(staged[i], staged[i] == 'c' ? "1" : "2");
    header_len = strtoul(script_header, NULL, 10);
    memcpy(script_header, first, sizeof(first));
    script_settle_begin();
    script_settle_node("a0003", NULL, 0);
    script_settle_follow(0, "\1\2", 2, header_len);
    script_settle_follow(1, "\0", 1, header_len);
    script_settle_follow(2, "\0\1", 2, header_len);
    script_settle_leave_out();
    return script_settle_packs('a', "bcd", "10");
}

/* A pack comes once, with all of its jobs: what shares one with a job that is
 * left out is left out as well. */
TEST(jobs_that_share_a_pack_with_one_that_is_left_out_stay_with_it)
{
    (void)script_add('a', "w x y z", "r0");
    EXPECT_STR("a0003+0", script_claim("10", "9000"));
    EXPECT_STR("1 0 256 0 257 0 258", settle_three_packs("bd"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:wait"));
    EXPECT_INT(3, script_stat("running"));
    EXPECT_INT(4, script_stat("added"));
    EXPECT_STR("3 0 3", settle_three_packs("bcd"));
    EXPECT_INT(5, script_stat("waiting"));
    EXPECT_INT(9, script_stat("added"));
    EXPECT_STR("0 0 0 0 1 0 2 0 3", settle_three_packs("bcd"));
    EXPECT_INT(9, script_stat("added"));
}

TEST(a_node_of_which_all_is_left_out_stays_as_it_is)
{
    (void)script_add('a', "x", "r0");
    EXPECT_STR("a0000+0", script_claim("10", "9000"));
    script_settle_begin();
    script_settle_move(0, 10);
    script_settle_node("a0000", NULL, 0);
    script_settle_leave_out();
    EXPECT_STR("0 0 256", script_settle('a', 'b', "10"));
    EXPECT_INT(1, script_stat("running"));
}

TEST(a_refused_move_leaves_no_pack)
{
    (void)script_add('a', "x", "r0");
    EXPECT_STR("a0000+0", script_claim("10", "9000"));
    EXPECT_STR("running", script_slot("delete", "x", "aaaaaaaaaaaa", ""));
    script_stage('b', "x");
    script_settle_begin();
    script_settle_move(0, strtoul(script_header, NULL, 10));
    script_settle_node("a0000", NULL, 0);
    EXPECT_STR("0 0 0", script_settle('a', 'b', "10"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:p:bbbbbbbbbbbb"));
    EXPECT_INT(0, script_stat("waiting"));
}

TEST(the_oldest_dead_job_is_pushed_out)
{
    static const char *const ids[] = {"x", "y", "z"};
    static const char *const nodes[] = {"a0000", "b0000", "c0000"};

    for (size_t i = 0; i < 3; i++) {
        (void)script_add(nodes[i][0], ids[i], "r0");
        (void)script_claim("1", "9000");
        script_settle_begin();
        script_settle_node(nodes[i], NULL, 0);
        script_settle_end(0, ids[i], "record");
        EXPECT_STR(i < 2 ? "1" : "1 -4 1", script_settle(nodes[i][0], 0, "2"));
    }
    EXPECT_INT(2, script_stat("dead"));
    EXPECT_INT(3, script_stat("failed"));
    EXPECT_INT(1, script_stat("dropped"));
    EXPECT_INT(0, redis_int(script_proc, "HEXISTS weir:{t}:ids x"));
    EXPECT_STR("D", script_text("HGET weir:{t}:ids z"));
    EXPECT_STR("record", script_text("HGET weir:{t}:rec z"));
}

TEST(an_expired_job_is_counted_and_not_kept)
{
    (void)script_add('a', "x", "r0");
    (void)script_claim("1", "9000");
    script_settle_begin();
    script_settle_node("a0000", NULL, 0);
    script_settle_end(0, "x", "");
    EXPECT_STR("1", script_settle('a', 0, "2"));
    EXPECT_INT(1, script_stat("expired"));
    EXPECT_INT(0, script_stat("done"));
    EXPECT_INT(0, redis_int(script_proc, "HEXISTS weir:{t}:ids x"));
}
