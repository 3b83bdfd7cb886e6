/* SPDX-License-Identifier: MIT */
#include "tests/redis/scripts/script_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/msgpack/record.h"
#include "adapters/redis/node.h"
#include "adapters/redis/pack.h"
#include "core/text.h"

/* Jobs under a key. A job whose id weir makes is written as "@a". */

static const char keys[] = "wait ids meta idle seen unique due absent";
static const char *call_slot = "call_slot";

/* A pack of one job with an id, and a record that may say when it was added. */
static void build(struct weir__buf *buf, const char *id, int64_t added_ms)
{
    struct weir__record record = {.added_ms = added_ms};
    struct weir__buf bytes = {0};
    struct weir__pack_job job = {.id = weir__slice_str(id)};

    record.counters.attempt = added_ms > 0;
    weir__record_write(&bytes, &record);
    job.record = weir__buf_slice(&bytes);
    weir__pack_write(buf, &job, 1, true);
    weir__buf_fini(&bytes);
}

static const char *seq_of(char letter)
{
    static char seq[13];

    memset(seq, letter, 12);
    return seq;
}

static const char *id_of(char letter)
{
    static char id[WEIR__MADE_ID_LEN + 1];

    weir__made_id(seq_of(letter), 0, id);
    return id;
}

static void begin(const char *letters)
{
    static char number[24];

    (void)snprintf(number, sizeof(number), "%lld", script_number++);
    script_begin(&weir__script_delay_add_keyed, keys);
    for (; *letters != '\0'; letters++)
        script_pack_key(*letters);
    script_arg("t");
    script_arg("delay");
    script_arg(call_slot);
    script_arg(number);
}

/* Its pack is `buf`'s from then on. */
static void put(struct weir__buf *buf, char letter, const char *id,
                const char *when, const char *key, const char *rule)
{
    build(buf, *id == '\0' ? id_of(letter) : id, 0);
    script_arg(id);
    script_arg_bytes(buf->ptr, buf->len);
    script_arg(when);
    script_arg(key);
    script_arg(rule);
}

/* The answer, in which made ids are written as "@a". */
static const char *answer(void)
{
    static char text[4096];
    const char *from = script_call();
    char *to = text;

    if (script_reply->type == REDIS_REPLY_ERROR)
        return from;
    for (; *from != '\0'; from++) {
        *to++ = *from;
        if (*from == '@') {
            *to++ = from[1];
            from += 14;
        }
    }
    *to = '\0';
    return text;
}

static const char *add_at(char letter, const char *id, const char *when,
                          const char *key, const char *rule)
{
    struct weir__buf buf = {0};
    const char *text;

    begin((const char[]){letter, '\0'});
    put(&buf, letter, id, when, key, rule);
    text = answer();
    weir__buf_fini(&buf);
    return text;
}

static const char *add(char letter, const char *key, const char *rule)
{
    return add_at(letter, "", "r0", key, rule);
}

/* Without an id, on key "k". */
static const char *add_k(char letter, const char *rule)
{
    return add(letter, "k", rule);
}

static long long due_of(char letter)
{
    return atoll(
        redis_text(script_proc, "ZSCORE weir:{t}:wait %s0000", seq_of(letter)));
}

static bool waits(char letter)
{
    return redis_int(script_proc, "EVAL %s 1 weir:{t}:wait %s0000",
                     "return redis.call('ZSCORE', KEYS[1], ARGV[1]) and 1 or 0",
                     seq_of(letter)) == 1;
}

static bool has_pack(char letter)
{
    return redis_int(script_proc, "EXISTS weir:{t}:p:%s", seq_of(letter)) == 1;
}

/* The only job that waits. */
static void expect_alone(char letter)
{
    EXPECT_TRUE(waits(letter));
    EXPECT_INT(1, redis_int(script_proc, "ZCARD weir:{t}:wait"));
    EXPECT_INT(1, script_stat("waiting"));
}

static void claim_and_settle(char letter)
{
    char node[6];

    (void)snprintf(node, sizeof(node), "%c0000", letter);
    (void)script_claim("1", "9000");
    EXPECT_STR("1", script_settle_one(node, id_of(letter), "1"));
}

/* --- reject --------------------------------------------------------------- */

TEST(a_job_whose_key_is_held_is_refused_and_the_holder_is_told)
{
    EXPECT_STR("1", add_k('a', "reject until-done"));
    EXPECT_STR("0 0 512 @a", add_k('b', "reject until-done"));
    EXPECT_STR("1", add('c', "other", "reject until-done"));
    EXPECT_TRUE(!has_pack('b'));
    EXPECT_INT(2, script_stat("waiting"));
    EXPECT_INT(2, redis_int(script_proc, "HLEN weir:{t}:unique"));
}

TEST(a_key_is_held_until_its_job_is_done)
{
    EXPECT_STR("1", add_k('a', "reject until-done"));
    EXPECT_STR("a0000+0", script_claim("1", "9000"));
    EXPECT_STR("0 0 512 @a", add_k('b', "reject until-done"));
    EXPECT_STR("1", script_settle_one("a0000", id_of('a'), "1"));
    EXPECT_STR("1", add_k('c', "reject until-done"));
    EXPECT_INT(1, redis_int(script_proc, "HLEN weir:{t}:unique"));
}

TEST(a_key_is_held_until_its_job_starts)
{
    EXPECT_STR("1", add_k('a', "reject until-start"));
    EXPECT_STR("0 0 512 @a", add_k('b', "reject until-start"));
    (void)script_claim("1", "9000");
    EXPECT_STR("1", add_k('c', "reject until-start"));
    EXPECT_STR("0 0 512 @c", add_k('d', "reject until-start"));
}

TEST(a_key_is_held_for_a_time_whatever_becomes_of_its_job)
{
    EXPECT_STR("1", add_k('a', "reject 60000"));
    claim_and_settle('a');
    EXPECT_STR("0 0 512 @a", add_k('b', "reject 60000"));
    (void)redis_int(script_proc, "EVAL %s 1 weir:{t}:unique",
                    "local entry = redis.call('HGET', KEYS[1], 'k') "
                    "return redis.call('HSET', KEYS[1], 'k', "
                    "(string.gsub(entry, '%d+', '0000000000000001', 1)))");
    EXPECT_STR("1", add_k('c', "reject 60000"));
}

TEST(a_deleted_job_holds_no_key)
{
    EXPECT_STR("1", add_k('a', "reject until-done"));
    EXPECT_STR("ready", script_slot("delete", id_of('a'), "aaaaaaaaaaaa", ""));
    EXPECT_STR("1", add_k('b', "reject until-done"));
}

static void kill_a(void)
{
    script_settle_begin();
    script_settle_node("a0000", "", 0);
    script_settle_end(0, id_of('a'), "r");
    script_settle_close();
    EXPECT_STR("1", script_settle('a', 0, "9"));
}

TEST(a_dead_job_holds_its_key_again_when_it_is_requeued_unless_it_was_taken)
{
    struct weir__buf buf = {0};

    EXPECT_STR("1", add_k('a', "reject until-done"));
    (void)script_claim("1", "9000");
    kill_a();
    (void)script_text("HSET weir:{t}:unique free nothing");
    EXPECT_STR("1", add('x', "other", "reject until-done"));
    EXPECT_INT(1, redis_int(script_proc, "HEXISTS weir:{t}:unique k"));
    build(&buf, id_of('a'), weir__seq_ms(seq_of('a')));
    EXPECT_INT(1, redis_int(script_proc, "EVAL %s 3 %s %s %s %b",
                            "redis.call('SET', KEYS[1], ARGV[1])"
                            "redis.call('HSET', KEYS[2], '@aaaaaaaaaaaa00', "
                            "'bbbbbbbbbbbb')"
                            "return redis.call('ZADD', KEYS[3], 1, "
                            "'bbbbbbbbbbbb0000')",
                            "weir:{t}:p:bbbbbbbbbbbb", "weir:{t}:ids",
                            "weir:{t}:wait", buf.ptr, buf.len));
    weir__buf_fini(&buf);
    EXPECT_STR("0 0 512 @a", add_k('c', "reject until-done"));
    EXPECT_STR("0 0 512 @a", add_k('c', "reject until-start"));
}

TEST(a_key_that_a_dead_job_had_is_free)
{
    EXPECT_STR("1", add_k('a', "reject until-done"));
    (void)script_claim("1", "9000");
    kill_a();
    EXPECT_STR("1", add_k('b', "reject until-done"));
}

TEST(an_id_that_exists_is_refused_before_its_key_is_looked_at)
{
    EXPECT_STR("1", add_at('a', "x", "r0", "k", "reject until-done"));
    EXPECT_STR("0 0 0 ", add_at('b', "x", "r0", "k", "replace until-start"));
    EXPECT_STR("0 0 0 ", add_at('b', "x", "r0", "other", "reject until-done"));
    EXPECT_STR("0 0 512 x", add_at('b', "y", "r0", "k", "reject until-done"));
    EXPECT_INT(1, redis_int(script_proc, "HLEN weir:{t}:unique"));
    EXPECT_STR("ready", script_slot("show", "x", "aaaaaaaaaaaa", ""));
}

TEST(another_job_with_the_holders_id_holds_nothing)
{
    EXPECT_STR("1", add_at('a', "x", "r0", "k", "reject until-done"));
    (void)script_claim("1", "9000");
    EXPECT_STR("1", script_settle_one("a0000", "x", "1"));
    EXPECT_STR("1", script_add('b', "x", "r0"));
    EXPECT_STR("1", add_at('c', "y", "r0", "k", "reject until-done"));
    EXPECT_STR("0 0 512 y", add_k('d', "reject until-done"));
}

/* --- replace and debounce ------------------------------------------------- */

TEST(a_job_takes_the_place_of_the_one_that_waits)
{
    EXPECT_STR("1", add_k('a', "replace until-start"));
    EXPECT_STR("1", add_at('b', "", "r60000", "k", "replace until-start"));
    expect_alone('b');
    EXPECT_TRUE(!has_pack('a'));
    EXPECT_INT(0,
               redis_int(script_proc, "HEXISTS weir:{t}:ids %s", id_of('a')));
    EXPECT_INT(2, script_stat("added"));
}

TEST(a_running_job_is_not_replaced)
{
    EXPECT_STR("1", add_k('a', "replace until-done"));
    (void)script_claim("1", "9000");
    EXPECT_STR("0 0 512 @a", add_k('b', "replace until-done"));
    EXPECT_STR("0 0 512 @a", add_k('c', "replace until-start"));
}

TEST(a_ready_job_that_is_replaced_is_not_ready_any_more)
{
    EXPECT_STR("1", add_k('a', "replace until-start"));
    while (script_stat("ready") == 0)
        continue;
    EXPECT_STR("1", add_at('b', "", "r60000", "k", "replace until-start"));
    EXPECT_INT(0, script_stat("ready"));
    EXPECT_INT(1, script_stat("waiting"));
}

TEST(a_debounced_job_is_put_off_until_max_wait_at_most)
{
    long long first;

    EXPECT_STR("1",
               add_at('a', "", "r60000", "k", "debounce until-start 100000"));
    first = due_of('a') - 60000;
    EXPECT_STR("1",
               add_at('b', "", "a2000000000000", "k", "debounce until-start"));
    EXPECT_INT(2000000000000, due_of('b'));
    EXPECT_STR("1", add_at('c', "", "a2000000000000", "k",
                           "debounce until-start 100000"));
    EXPECT_INT(first + 100000, due_of('c'));
    EXPECT_STR("1", add_at('d', "", "r0", "k", "debounce until-start 0"));
    EXPECT_TRUE(due_of('d') >= first); /* what is past counts as now */
    expect_alone('d');
    EXPECT_STR("1",
               add_at('e', "", "r60000", "other", "debounce until-start 5"));
    EXPECT_TRUE(due_of('e') < due_of('d') + 60000);
}

/* A holder that moved: it was retried, with two others. */
TEST(a_job_that_moved_is_replaced_where_it_is)
{
    struct weir__pack_job jobs[3] = {{.id = weir__slice_str("x")},
                                     {.id = weir__slice_str(id_of('a'))},
                                     {.id = weir__slice_str("y")}};
    struct weir__record record = {.added_ms = weir__seq_ms(seq_of('a'))};
    struct weir__buf bytes = {0}, pack = {0};
    redisReply *reply;
    redisContext *server = redisConnectUnix(redis_socket(script_proc));

    weir__record_write(&bytes, &record);
    for (size_t i = 0; i < 3; i++)
        jobs[i].record = weir__buf_slice(&bytes);
    weir__pack_write(&pack, jobs, 3, true);
    EXPECT_STR("1", add_k('a', "replace until-start"));
    (void)script_text("DEL weir:{t}:wait weir:{t}:p:aaaaaaaaaaaa");
    reply = redisCommand(server, "SET weir:{t}:p:mmmmmmmmmmmm %b", pack.ptr,
                         pack.len);
    freeReplyObject(reply);
    reply = redisCommand(server,
                         "HSET weir:{t}:ids %s mmmmmmmmmmmm x "
                         "mmmmmmmmmmmm y mmmmmmmmmmmm",
                         id_of('a'));
    freeReplyObject(reply);
    redisFree(server);
    weir__buf_fini(&pack);
    weir__buf_fini(&bytes);
    (void)script_text("ZADD weir:{t}:wait 2000000000000 mmmmmmmmmmmm0002");
    (void)script_text("HINCRBY weir:{t}:meta added 2");
    EXPECT_STR("0 0 512 @a", add_k('b', "reject until-done"));
    EXPECT_STR("1", add_k('b', "replace until-start"));
    EXPECT_TRUE(waits('b') && waits('m'));
    EXPECT_INT(3, redis_int(script_proc, "ZCARD weir:{t}:wait"));
    EXPECT_INT(3, script_stat("waiting"));
    EXPECT_INT(1, redis_int(script_proc, "EVAL %s 0",
                            "return redis.call('GETRANGE', "
                            "'weir:{t}:p:mmmmmmmmmmmm', 3, 3):byte()"));
    EXPECT_STR("2000000000000",
               script_text("ZSCORE weir:{t}:wait mmmmmmmmmmmm0202"));
}

/* --- throttle ------------------------------------------------------------- */

TEST(throttled_jobs_are_due_a_window_apart_and_the_last_one_stays)
{
    EXPECT_STR("1", add_k('a', "throttle 60000"));
    EXPECT_STR("1", add_k('b', "throttle 60000"));
    EXPECT_INT(due_of('a') + 60000, due_of('b'));
    EXPECT_STR("1", add_k('c', "throttle 60000"));
    EXPECT_TRUE(!waits('b'));
    EXPECT_INT(due_of('a') + 60000, due_of('c'));
    EXPECT_STR("1", add_at('d', "", "a2000000000000", "k", "throttle 60000"));
    EXPECT_INT(2000000000000, due_of('d'));
    EXPECT_INT(3, script_stat("waiting")); /* c runs before that */
}

TEST(throttled_jobs_with_delays_put_nobody_off)
{
    EXPECT_STR("1", add_at('a', "", "r20000", "k", "throttle 60000"));
    EXPECT_STR("1", add_at('b', "", "r30000", "k", "throttle 60000"));
    EXPECT_TRUE(waits('a'));
    EXPECT_INT(due_of('a') + 60000, due_of('b'));
    EXPECT_STR("1", add_at('c', "", "r40000", "k", "throttle 60000"));
    EXPECT_TRUE(!waits('b'));
    EXPECT_INT(due_of('a') + 60000, due_of('c'));
}

TEST(a_throttled_job_has_the_time_that_somebody_gave_it)
{
    long long due;

    EXPECT_STR("1", add_k('a', "throttle 60000"));
    EXPECT_STR("1", add_k('b', "throttle 60000"));
    due = redis_int(script_proc, "EVAL %s 0",
                    "local at = redis.call('ZSCORE', 'weir:{t}:wait', "
                    "'aaaaaaaaaaaa0000') redis.call('ZADD', 'weir:{t}:wait', "
                    "at, 'bbbbbbbbbbbb0000') return at + 0");
    EXPECT_STR("1", add_k('c', "throttle 60000"));
    EXPECT_TRUE(waits('b')); /* its time has come */
    EXPECT_INT(due, due_of('b'));
    EXPECT_INT(due + 60000, due_of('c'));
}

TEST(a_throttled_job_goes_at_once_when_the_window_is_over)
{
    EXPECT_STR("1", add_k('a', "throttle 1"));
    while (redis_int(script_proc, "EVAL %s 0",
                     "local t = redis.call('TIME') return t[1] * 1000 + "
                     "math.floor(t[2] / 1000)") <= due_of('a'))
        continue;
    EXPECT_STR("1", add_k('b', "throttle 60000"));
    EXPECT_TRUE(due_of('b') < due_of('a') + 60000);
    EXPECT_TRUE(waits('a'));
}

TEST(a_throttled_job_without_a_window_is_none)
{
    EXPECT_STR("0 0 -3 ", add_k('a', "throttle until-done"));
}

/* --- calls ---------------------------------------------------------------- */

TEST(jobs_of_one_call_are_added_in_their_order)
{
    struct weir__buf packs[4] = {{0}};

    begin("abcd");
    put(&packs[0], 'a', "", "r0", "k", "replace until-start");
    put(&packs[1], 'b', "", "r0", "k", "replace until-start");
    put(&packs[2], 'c', "", "r0", "k", "reject until-start");
    put(&packs[3], 'd', "", "r0", "other", "reject until-start");
    EXPECT_STR("3 2 512 @b", answer());
    EXPECT_TRUE(waits('b') && waits('d') && !waits('a'));
    EXPECT_INT(2, script_stat("waiting"));
    for (size_t i = 0; i < 4; i++)
        weir__buf_fini(&packs[i]);
}

TEST(a_repeat_changes_nothing_and_is_told_the_same)
{
    EXPECT_STR("1", add_k('a', "replace until-start"));
    script_number--;
    EXPECT_STR("0", add_k('a', "replace until-start"));
    EXPECT_STR("0 0 512 @a", add_k('b', "reject until-done"));
    (void)script_claim("1", "9000");
    EXPECT_STR("1", script_settle_one("a0000", id_of('a'), "1"));
    script_number--;
    EXPECT_STR("0 0 512 @a", add_k('b', "reject until-done"));
    EXPECT_INT(0, script_stat("waiting"));
    script_number -= 2;
    EXPECT_STR("0 0 -4 ", add_k('c', "reject until-done")); /* it is late */
    EXPECT_INT(1, script_stat("added"));
}

TEST(a_full_topic_takes_a_job_only_in_the_place_of_another)
{
    EXPECT_STR("1", add_k('a', "reject until-start"));
    (void)script_text("HSET weir:{t}:meta max_pending 1");
    EXPECT_STR("0 0 256 ", add('b', "other", "reject until-start"));
    EXPECT_INT(0, redis_int(script_proc, "HEXISTS weir:{t}:unique other"));
    EXPECT_STR("0 0 512 @a", add_k('b', "reject until-start"));
    EXPECT_STR("1", add_k('b', "replace until-start"));
    expect_alone('b');
}

TEST(a_large_job_comes_staged)
{
    const char *text;

    for (int i = 0; i < 2; i++) {
        script_stage('a', id_of('a'));
        begin("a");
        script_arg("");
        script_arg("");
        script_arg("r0");
        script_arg("k");
        script_arg("reject until-done");
        script_number -= i == 0;
        text = answer();
        EXPECT_STR(i == 0 ? "1" : "0", text);
    }
    EXPECT_INT(-1, redis_int(script_proc, "TTL weir:{t}:p:aaaaaaaaaaaa"));
    expect_alone('a');
    script_stage('b', id_of('b'));
    begin("b");
    script_arg("");
    script_arg("");
    script_arg("r0");
    script_arg("k");
    script_arg("reject until-done");
    EXPECT_STR("0 0 512 @a", answer());
    EXPECT_TRUE(!has_pack('b'));
    begin("c");
    script_arg("");
    script_arg("");
    script_arg("r0");
    script_arg("other");
    script_arg("reject until-done");
    EXPECT_STR("0 0 -2 ", answer());
}

TEST(a_name_that_is_in_use_takes_nothing_away)
{
    EXPECT_STR("1", add_k('a', "replace until-start"));
    EXPECT_STR("1", script_add('b', "1", "r0"));
    EXPECT_STR("0 0 -1 ", add_k('b', "replace until-start"));
    EXPECT_TRUE(waits('a') && waits('b'));
    EXPECT_STR("0 0 0 ", add_k('a', "replace until-start"));
}

TEST(what_is_no_job_is_refused)
{
    static const char *const rules[] = {"",
                                        "reject",
                                        "reject until-x",
                                        "other 60000",
                                        "reject ",
                                        "reject 999999999999999",
                                        "reject 1 x",
                                        "debounce until-done 999999999999999"};

    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        EXPECT_STR("0 0 -3 ", add_k('a', rules[i]));
    EXPECT_STR("0 0 -3 ", add('a', "", "reject until-done"));
    EXPECT_STR("0 0 -3 ", add_at('a', "@x", "r0", "k", "reject until-done"));
    EXPECT_STR("0 0 -3 ", add_at('a', "x y", "r0", "k", "reject until-done"));
    EXPECT_STR("0 0 -3 ", add_at('a', "", "p0", "k", "reject until-done"));
    EXPECT_STR("0 0 -3 ", add_at('a', "", "r1.5", "k", "reject until-done"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:wait "
                                         "weir:{t}:unique "
                                         "weir:{t}:p:aaaaaaaaaaaa"));
}

TEST(a_topic_of_another_kind_has_no_keys)
{
    (void)script_text("HSET weir:{t}:meta kind list");
    EXPECT_STR("-1 list", add_k('a', "reject until-done"));
    EXPECT_INT(1, redis_int(script_proc, "DBSIZE"));
}

TEST(the_revision_of_the_options_is_told)
{
    EXPECT_STR("1", add_k('a', "reject until-done"));
    (void)script_text("HSET weir:{t}:meta revision 7");
    EXPECT_STR("1 7", add('b', "other", "reject until-done"));
    EXPECT_STR("0 0 512 @a 7", add_k('c', "reject until-done"));
}

static const char *add_again(void)
{
    return add_k('b', "replace until-start");
}

static void make_topic(void)
{
    EXPECT_STR("1", add_k('a', "replace until-start"));
}

TEST(an_add_that_ends_with_an_error_leaves_everything_as_it_is)
{
    script_expect_untouched("wait ids meta seen unique due", make_topic,
                            add_again);
}

/* --- what stays ----------------------------------------------------------- */

TEST(what_is_no_entry_holds_nothing_and_goes)
{
    static const char *const odd[] = {"", "x", "d short 1 2 3 x",
                                      "q aaaaaaaaaaaa 1 2 3 x"};

    EXPECT_STR("1", add('o', "other", "reject until-done"));
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        (void)redis_int(script_proc, "HSET weir:{t}:unique k %s", odd[i]);
        EXPECT_STR("1", add_k((char)('a' + i), "reject until-done"));
    }
    (void)script_text("HSET weir:{t}:unique junk x");
    while (redis_int(script_proc, "HEXISTS weir:{t}:unique junk") == 1)
        (void)add_k('z', "reject until-done");
    EXPECT_INT(2, redis_int(script_proc, "HLEN weir:{t}:unique"));
}

TEST(keys_that_are_used_once_do_not_pile_up)
{
    char key[16];

    EXPECT_STR("1", add('b', "stays", "reject until-done"));
    for (int i = 0; i < 2000; i++) {
        (void)snprintf(key, sizeof(key), "k%d", i);
        EXPECT_STR("1", add_at('a', key, "r0", key, "reject until-done"));
        EXPECT_INT(1, redis_int(script_proc, "HDEL weir:{t}:ids %s", key));
        (void)script_text("DEL weir:{t}:p:aaaaaaaaaaaa");
        EXPECT_TRUE(redis_int(script_proc, "HLEN weir:{t}:unique") < 100);
    }
    EXPECT_INT(1, redis_int(script_proc, "HEXISTS weir:{t}:unique stays"));
}
