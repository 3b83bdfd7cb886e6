/* SPDX-License-Identifier: MIT */

/* The server in the test's process beside a real one: the same random commands
 * get the same bytes, alone and inside scripts. */

#include <stdio.h>
#include <string.h>

#include "adapters/redis/resp.h"
#include "core/random.h"
#include "tests/harness/test.h"
#include "tests/sim/server/pair.h"

enum { WORDS_MAX = 12, STEPS = 20000 };

/* --- random commands ----------------------------------------------------- */

/* k a key, f a field or member, v a value, i an integer, r a rank, s a score,
 * b a bound of scores, t a stream, e the id of an entry or none, h a
 * healthy one, g a group, c a
 * consumer, p a count. Behind ~ the answer has no order. */
static const char *const forms[] = {
    "SET k v",
    "SET k v NX",
    "SET k v PX 1000000",
    "GET k",
    "MGET k k k",
    "DEL k k",
    "UNLINK k",
    "EXISTS k k",
    "RENAME k k",
    "RENAMENX k k",
    "PERSIST k",
    "GETRANGE k r r",
    "SETRANGE k i v",
    "SADD k f f",
    "SREM k f f",
    "~SSCAN k 0 COUNT 1000",
    "~HSCAN k 0 COUNT 1000",
    "~ZSCAN k 0 COUNT 1000",
    "~ZRANDMEMBER k 1000 WITHSCORES",
    "HGET k f",
    "HMGET k f f f",
    "~HGETALL k",
    "~HKEYS k",
    "~HVALS k",
    "HLEN k",
    "HEXISTS k f",
    "HSET k f v",
    "HSET k f v f v f v",
    "HSET k f v f",
    "HSETNX k f v",
    "HINCRBY k f i",
    "HDEL k f",
    "HDEL k f f f",
    "LLEN k",
    "LINDEX k r",
    "LRANGE k r r",
    "LPUSH k v",
    "RPUSH k v v",
    "LPOP k",
    "LTRIM k r r",
    "LSET k r v",
    "BLMOVE k k LEFT LEFT 0.001",
    "ZADD k s f",
    "ZADD k s f s f s f",
    "ZADD k NX s f s f",
    "ZADD k XX s f s f",
    "ZADD k GT s f",
    "ZADD k XX GT CH s f",
    "ZADD k LT CH s f",
    "ZADD k XX LT s f",
    "ZADD k s f s",
    "ZREM k f f",
    "ZCARD k",
    "ZCOUNT k b b",
    "ZSCORE k f",
    "ZMSCORE k f f",
    "ZRANGE k r r",
    "ZRANGE k r r WITHSCORES",
    "ZRANGEBYSCORE k b b",
    "ZRANGEBYSCORE k b b WITHSCORES LIMIT r r",
    "ZREVRANGEBYSCORE k b b LIMIT r r",
    "ZREVRANGEBYSCORE k b b WITHSCORES",
    "ZPOPMIN k",
    "ZPOPMIN k r",
    "ZREMRANGEBYRANK k r r",
    "XADD t e f v",
    "XADD t e f v f v",
    "XADD k e f v",
    "XDEL t e e",
    "XLEN t",
    "XRANGE t e e",
    "XRANGE t - + COUNT p",
    "XREAD COUNT p STREAMS t e",
    "XREAD COUNT p BLOCK 1 STREAMS t e",
    "XREADGROUP GROUP g c COUNT p STREAMS t >",
    "XREADGROUP GROUP g c COUNT p STREAMS k >",
    "XACK t g e e",
    "XCLAIM t g c 0 h h",
    "XCLAIM t g c 0 h FORCE",
    "XAUTOCLAIM t g c 0 e COUNT p",
    "XAUTOCLAIM t g c 0 0-0 COUNT 1",
    "XPENDING t g e e p",
    "XPENDING t g - + 100",
    "XGROUP CREATE t g e",
    "XGROUP CREATE t g $ MKSTREAM",
    "XGROUP SETID t g e",
    "XGROUP SETID t g $",
    "~XINFO GROUPS t",
};

static uint64_t random_state = 1;

static const char *any(const char *const *list, size_t count)
{
    return list[weir__random_next(&random_state) % count];
}

#define ANY(...)                            \
    any((const char *const[]){__VA_ARGS__}, \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* Mostly one beyond all others, so that streams grow. */
static const char *id_for(bool may_be_none)
{
    static char texts[4][32];
    static unsigned last;
    static size_t next;
    char *text = texts[next++ % 4];

    if (may_be_none && weir__random_next(&random_state) % 8 == 0)
        return ANY("5", "0-0", "x", "1-", "-1", "7-18446744073709551615", "");
    last += weir__random_next(&random_state) % 2 == 0;
    (void)snprintf(text, sizeof(texts[0]), "%u-%u",
                   last - (unsigned)(weir__random_next(&random_state) % 4),
                   (unsigned)(weir__random_next(&random_state) % 3)); /* fits */
    return text;
}

static const char *word_for(const char *kind)
{
    if (kind[1] != '\0')
        return kind;
    switch (kind[0]) {
    case 't':
        return ANY("stream", "stream", "stream", "hash", "brook");
    case 'e':
        return id_for(true);
    case 'h':
        return id_for(false);
    case 'g':
        return ANY("g1", "g1", "g2", "");
    case 'c':
        return ANY("c1", "c2");
    case 'p':
        return ANY("1", "2", "3", "100");
    case 'k':
        return ANY("text", "hash", "list", "set", "zset", "any", "other");
    case 'f':
        return ANY("a", "b", "c", "d", "e", "", "0", "z\xff");
    case 'v':
        return ANY("", "x", "12", "-7", "9223372036854775807", "value",
                   "\xff\x80 binary", "1e3");
    case 'i':
        return ANY("0", "1", "-1", "5", "100", "9223372036854775807",
                   "-9223372036854775808", "01", " 1", "1.5", "x", "",
                   "99999999999999999999");
    case 'r':
        return ANY("0", "1", "2", "-1", "-2", "5", "-100", "100", "y");
    case 's':
        return ANY("0", "1", "-1", "1.5", "2", "inf", "-inf", "1e300",
                   "35184372088832", "0.1", "3.00390625", "nan", "x", "", "-0",
                   "0x10", "1e-5");
    case 'b':
        return ANY("0", "1", "(1", "-inf", "+inf", "(2", "1.5", "inf", "(-inf",
                   "nan", "x", "(", "");
    default:
        return kind;
    }
}

/* Puts the words of a form, with others for its letters. */
static size_t fill(const char *form, char *copy, size_t cap,
                   const char *words[WORDS_MAX + 1])
{
    size_t count = 0;
    char *rest = NULL;

    (void)snprintf(copy, cap, "%s", form); /* fits */
    for (char *word = strtok_r(copy, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = word_for(word);
    words[count] = NULL;
    return count;
}

/* How long an entry is pending depends on the clock: only the script removes
 * it. */
static const char *any_form(bool is_script)
{
    const char *form;

    do
        form = forms[weir__random_next(&random_state) %
                     (sizeof(forms) / sizeof(forms[0]))];
    while (!is_script && strncmp(form, "XPENDING", 8) == 0);
    return form;
}

static void walk(const char *script, int steps)
{
    const char *words[WORDS_MAX + 1];
    char copy[128];

    for (int i = 0; i < steps; i++) {
        const char *form = any_form(script != NULL);
        bool has_order = form[0] != '~';
        size_t count = fill(form + !has_order, copy, sizeof(copy), words);
        struct weir__buf bytes = {0};

        weir__resp_command(&bytes, script == NULL ? count : count + 3);
        if (script != NULL) {
            weir__resp_str(&bytes, "EVALSHA");
            weir__resp_str(&bytes, script);
            weir__resp_str(&bytes, "0");
        }
        for (size_t k = 0; k < count; k++)
            weir__resp_str(&bytes, words[k]);
        ask_both(&bytes);
        expect_same(&bytes, has_order);
        weir__buf_fini(&bytes);
    }
}

TEST(random_commands_are_answered_as_a_real_server_does)
{
    (void)open_pair(NULL);
    walk(NULL, STEPS);
}

TEST(random_commands_of_scripts_are_answered_as_a_real_server_does)
{
    (void)open_pair(NULL);
    walk(load("local got = redis.pcall(unpack(ARGV)) "
              "if ARGV[1] == 'XPENDING' and not got.err then "
              "for _, entry in ipairs(got) do entry[3] = 0 end end "
              "return got"), /* entry[3] is a time */
         STEPS);
}

/* Ours alone sees commands in between. */
TEST(a_server_that_restarts_has_the_keys_that_it_saved)
{
    (void)open_pair(NULL);
    walk(NULL, STEPS / 4);
    server_save(pair.server);
    pair.is_alone = true;
    walk(NULL, STEPS / 4);
    pair.is_alone = false;
    server_restart(pair.server);
    walk(NULL, STEPS / 4);
}

/* --- what scripts compute ------------------------------------------------ */

static const char *const sums[] = {
    "return cmsgpack.pack(1, -1, 127, 128, 255, 256, 65535, 65536, 2^31, 2^32)",
    "return cmsgpack.pack(-32, -33, -128, -129, -32768, -32769, -2^31, -2^40)",
    "return cmsgpack.pack(2^53, 2^63, -2^63, 1.5, 0.1, 1/0, -1/0, 1e300)",
    "return cmsgpack.pack('', 'a', string.rep('b', 31), string.rep('c', 32))",
    "return cmsgpack.pack(string.rep('d', 255), string.rep('e', 70000))",
    "return cmsgpack.pack({}, {1, 2, 3}, {a = 1}, {1, nil, 3}, {[1.5] = 2})",
    "return cmsgpack.pack({{{{{{{{{{{{{{{{{{}}}}}}}}}}}}}}}}}})",
    "return cmsgpack.pack(nil, true, false, {true, {false}})",
    "return {cmsgpack.unpack(cmsgpack.pack(1, 'a', {2, {b = 3}}, true))}",
    "return {cmsgpack.unpack_one(cmsgpack.pack(1, 2, 3), 1)}",
    "return {cmsgpack.unpack_limit(cmsgpack.pack(1, 2, 3), 2)}",
    "return {cmsgpack.unpack_limit(cmsgpack.pack(1, 2, 3), 3, 0)}",
    "return {pcall(cmsgpack.unpack, '\\193')}",
    "return {pcall(cmsgpack.unpack, '\\218')}",
    "return {pcall(cmsgpack.unpack, '\\147\\1')}",
    "return {pcall(cmsgpack.unpack_one, 'a', 5)}",
    "return {pcall(cmsgpack.unpack_one, 'a', -5)}",
    "return {struct.unpack('<I4I2', '\\1\\2\\3\\4\\5\\6\\7')}",
    "return {struct.unpack('>I2', '\\1\\2\\3', 2)}",
    "return struct.pack('<I4I2I4I2', 1, 2, 4294967295, 65535)",
    "return {pcall(struct.unpack, '<I4', 'abc')}",
    "return {1, 2.7, -2.7, 'x', true, false, {3, {4}}, nil, 5}",
    "return {err = 'MINE went wrong'}",
    "return {ok = 'FINE'}",
    "return redis.error_reply('MINE went wrong')",
    "return redis.error_reply('alone')",
    "return redis.error_reply('-DASH went wrong')",
    "return redis.status_reply('FINE')",
    "return redis.pcall('HGET', 'x')",
    "return tostring(1e15) .. ' ' .. tostring(2^53) .. ' ' .. tostring(0.1)",
    "return redis.call('ZADD', 'n', 2^45 + 1 / 256, 'a', 1e15, 'b')",
    "return redis.call('ZRANGE', 'n', 0, -1, 'WITHSCORES')",
    "return {math.random(1000), math.random(5, 9), math.random() * 1e9}",
    "math.randomseed(77) return {math.random(1000), math.random(1000)}",
    "return string.format('%.17g %.0f %d %013.0f', 1/3, 2^60, 7.9, 12)",
    "return redis.call('SET', 'n2', 'x', 'NX')",
    "return redis.call('SET', 'n2', 'x', 'NX')",
    "return redis.call('HGET', 'x')",
    "\n\nlocal function f() return redis.call('GET') end\nreturn 1 + f()",
    "return nil .. 'x'",
    "error('mine')",
    "error({err = 'MINE went wrong'})",
};

TEST(scripts_compute_what_they_do_on_a_real_server)
{
    (void)open_pair(NULL);
    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
        EXPECT_SAME("EVALSHA", load(sums[i]), "0");
}
