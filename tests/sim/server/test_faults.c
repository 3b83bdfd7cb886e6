/* SPDX-License-Identifier: MIT */

/* The faults of the server in the test's process beside a real server that has
 * them: the same commands are refused, in the same words. */

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/harness/patience.h"
#include "tests/harness/test.h"
#include "tests/sim/server/pair.h"

/* --- what is asked ------------------------------------------------------- */

/* Scripts that write, that read, that write behind a read, and that catch the
 * error of a write. `first` is a write that needs no memory. */
static const char *const scripts[] = {
    "return redis.call('HSET', 'hash', 'field', 'value')",
    "return redis.call('HGET', 'hash', 'field')",
    "local got = redis.call('HGET', 'hash', 'field')\n"
    "redis.call('ZADD', 'zset', 1, got or 'none')\n"
    "return got",
    "return redis.pcall('SET', 'text', 'x')",
    "redis.call('DEL', 'first')\n"
    "return redis.call('SET', 'text', 'behind')",
    "redis.pcall('SET', 'text', 'x')\n"
    "redis.call('DEL', 'first')\n"
    "return redis.call('RPUSH', 'list', 'a')",
    "redis.call('PUBLISH', 'news', 'x')\n"
    "return redis.call('XADD', 'stream', '1-1', 'a', 'b')",
    "return redis.call('TIME')[3]",
};

static void ask_scripts(void)
{
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
        EXPECT_SAME("EVALSHA", load(scripts[i]), "1", "hash");
    EXPECT_SAME("EVAL", scripts[0], "2", "hash", "zset");
}

static void ask_commands(void)
{
    EXPECT_SAME("PING");
    EXPECT_SAME("SELECT", "0");
    EXPECT_SAME("CLIENT", "SETNAME", "x");
    EXPECT_SAME("CLUSTER", "NODES");
    EXPECT_SAME("SCRIPT", "EXISTS", "x");
    EXPECT_SAME("WAIT", "0", "1");
    EXPECT_SAME("PUBLISH", "news", "x");
    EXPECT_SAME("SET", "text", "value");
    EXPECT_SAME("SET", "text"); /* too few words come first */
    EXPECT_SAME("GET", "text");
    EXPECT_SAME("MGET", "text", "hash");
    EXPECT_SAME("SETRANGE", "text", "1", "x");
    EXPECT_SAME("RENAME", "text", "other");
    EXPECT_SAME("DEL", "other", "text");
    EXPECT_SAME("EXISTS", "text");
    EXPECT_SAME("PERSIST", "text");
    EXPECT_SAME("HSET", "hash", "field", "value");
    EXPECT_SAME("HINCRBY", "hash", "number", "1");
    EXPECT_SAME("HDEL", "hash", "none");
    EXPECT_SAME("SADD", "set", "a");
    EXPECT_SAME("SREM", "set", "b");
    EXPECT_SAME("RPUSH", "list", "a");
    EXPECT_SAME("LSET", "list", "0", "b");
    EXPECT_SAME("LTRIM", "list", "0", "5");
    EXPECT_SAME("LPOP", "list");
    EXPECT_SAME("ZADD", "zset", "1", "a");
    EXPECT_SAME("ZREM", "zset", "b");
    EXPECT_SAME("ZPOPMIN", "zset");
    EXPECT_SAME("XGROUP", "CREATE", "stream", "g", "0", "MKSTREAM");
    EXPECT_SAME("XGROUP", "SETID", "stream", "g", "0");
    EXPECT_SAME("XADD", "stream", "5-1", "a", "b");
    EXPECT_SAME("XREAD", "COUNT", "1", "STREAMS", "stream", "0-0");
    EXPECT_SAME("XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "STREAMS",
                "stream", ">");
    EXPECT_SAME("XACK", "stream", "g", "5-1");
    EXPECT_SAME("XDEL", "stream", "5-1");
    EXPECT_SAME("BLMOVE", "list", "other", "LEFT", "LEFT", "0.001");
}

/* During the fault, and behind it: what was refused changed nothing. */
static void ask_all(unsigned faults)
{
    server_faults(pair.server, faults);
    ask_commands();
    ask_scripts();
}

/* Asks the real server again until its answer has the text. */
static void await_answer(struct redis_proc *redis, const char *command,
                         const char *text)
{
    struct patience patience = patience_start(30.);

    while (strstr(redis_text(redis, command), text) == NULL)
        EXPECT_TRUE(!patience_ended(&patience));
}

/* Some keys of each type, and a group. */
static struct redis_proc *open_filled_pair(const struct redis_options *options)
{
    struct redis_proc *redis = open_pair(options);

    ask_commands();
    ask_scripts();
    return redis;
}

/* --- the tests ----------------------------------------------------------- */

TEST(a_full_server_refuses_what_grows)
{
    struct redis_proc *redis = open_filled_pair(NULL);

    EXPECT_STR("OK", redis_text(redis, "CONFIG SET maxmemory 1"));
    ask_all(SERVER_FULL);
    EXPECT_STR("OK", redis_text(redis, "CONFIG SET maxmemory 0"));
    ask_all(0);
}

/* Its snapshot cannot take the place of a folder. */
static struct redis_proc *open_pair_that_cannot_save(void)
{
    static const char *const args[] = {"--dbfilename", "taken.rdb", NULL};
    const struct redis_options options = {.args = args};
    struct redis_proc *redis = open_filled_pair(&options);
    char path[512];

    (void)snprintf(path, sizeof(path), "%s/taken.rdb", redis_dir(redis));
    EXPECT_INT(0, mkdir(path, 0700));
    EXPECT_STR("OK", redis_text(redis, "CONFIG SET save %s", "3600 1"));
    EXPECT_CONTAINS("started", redis_text(redis, "BGSAVE"));
    await_answer(redis, "INFO persistence", "rdb_last_bgsave_status:err");
    return redis;
}

TEST(a_server_that_cannot_save_refuses_what_writes)
{
    struct redis_proc *redis = open_pair_that_cannot_save();

    ask_all(SERVER_DISK);
    EXPECT_STR("OK", redis_text(redis, "CONFIG SET save %s", ""));
    ask_all(0);
}

TEST(a_replica_refuses_what_writes)
{
    struct redis_proc *redis = open_filled_pair(NULL);

    EXPECT_STR("OK", redis_text(redis, "REPLICAOF 127.0.0.1 1"));
    await_answer(redis, "ROLE", "connect ");
    ask_all(SERVER_REPLICA);
    EXPECT_SAME("ROLE");
    EXPECT_STR("OK", redis_text(redis, "REPLICAOF NO ONE"));
    ask_all(0);
    EXPECT_SAME("ROLE");
}

TEST(of_several_faults_the_first_is_told)
{
    struct redis_proc *redis = open_pair_that_cannot_save();

    EXPECT_STR("OK", redis_text(redis, "CONFIG SET maxmemory 1"));
    ask_all(SERVER_FULL | SERVER_DISK);
    EXPECT_STR("OK", redis_text(redis, "REPLICAOF 127.0.0.1 1"));
    ask_all(SERVER_FULL | SERVER_DISK | SERVER_REPLICA);
    EXPECT_STR("OK", redis_text(redis, "CONFIG SET save %s", ""));
    ask_all(SERVER_FULL | SERVER_REPLICA);
}

/* --- loading ------------------------------------------------------------- */

/* Its 20,000 keys take 20 s to load, and it answers behind each of them. */
TEST(a_server_that_loads_answers_little)
{
    const char *const args[] = {"--enable-debug-command", "yes", NULL};
    const struct redis_options options = {.args = args};
    struct redis_proc *redis = open_filled_pair(&options);
    redisContext *loader = redisConnectUnix(redis_socket(redis));

    EXPECT_STR("OK", redis_text(redis, "DEBUG POPULATE 20000 key 1100"));
    EXPECT_STR("OK", redis_text(redis, "CONFIG SET key-load-delay 1000"));
    EXPECT_STR("OK", redis_text(redis, "CONFIG SET "
                                       "loading-process-events-interval-bytes "
                                       "1024"));
    EXPECT_INT(REDIS_OK, redisAppendCommand(loader, "DEBUG RELOAD"));
    for (int done = 0; !done;)
        EXPECT_INT(REDIS_OK, redisBufferWrite(loader, &done));
    await_answer(redis, "PING", "LOADING");
    server_faults(pair.server, SERVER_LOADING);
    ask_commands();
    EXPECT_SAME("SCRIPT", "LOAD", "return 1");
    EXPECT_SAME("EVALSHA", "0123456789012345678901234567890123456789", "0");
    redisFree(loader);
}

/* --- rights -------------------------------------------------------------- */

static void forbid(struct redis_proc *redis, const char *rule,
                   const char *command, const char *prefix)
{
    EXPECT_STR("OK", redis_text(redis, "ACL SETUSER default allkeys "
                                       "+@all"));
    EXPECT_STR("OK", redis_text(redis, "ACL SETUSER default %s", rule));
    if (prefix != NULL)
        EXPECT_STR("OK", redis_text(redis, "ACL SETUSER default ~%s*", prefix));
    server_forbid(pair.server, command, prefix);
}

TEST(what_a_user_may_not_do_is_refused)
{
    struct redis_proc *redis = open_filled_pair(NULL);

    forbid(redis, "-hset", "hset", NULL);
    ask_all(0);
    forbid(redis, "-script", "script", NULL);
    EXPECT_SAME("SCRIPT", "LOAD", "return 1");
    ask_commands();
    forbid(redis, "-script|load", "script|load", NULL);
    EXPECT_SAME("SCRIPT", "LOAD", "return 1");
    EXPECT_SAME("SCRIPT", "EXISTS", "x");
    forbid(redis, "-evalsha", "evalsha", NULL);
    ask_all(0);
    forbid(redis, "-xgroup|create", "xgroup|create", NULL);
    ask_all(0);
    forbid(redis, "resetkeys", NULL, "h");
    ask_all(0);
    forbid(redis, "resetkeys", NULL, "none");
    ask_all(SERVER_FULL);
    forbid(redis, "allkeys", NULL, NULL);
    ask_all(0);
}
