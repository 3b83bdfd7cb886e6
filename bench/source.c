/* SPDX-License-Identifier: MIT */
#include "bench/source.h"

#include "bench/body.h"
#include "bench/say.h"
#include "core/error.h"

#include <hiredis.h>
#include <stdio.h>

#define GAMES   "weir-bench.games"
#define IS_IN   "weir-bench.in"
#define NS_TICK INT64_C(1000000)

enum { NUMBER_AT = 4, MOST_AT_ONCE = 256 };

static const char push_script[] =
    "local retVal = 0 "
    "local key = KEYS[1] "
    "local num = tonumber(ARGV[1]) "
    "local val = ARGV[2] "
    "local expire = tonumber(ARGV[3]) "
    "if (redis.call('llen', key) < num) then redis.call('rpush', key, val) "
    "else redis.call('lpop', key) redis.call('rpush', key, val) retVal = 1 end "
    "redis.call('expire', key, expire) return retVal";

/* It takes one event more than it is told to. */
static const char take_script[] =
    "local data = {} "
    "local key = KEYS[1] "
    "local num = tonumber(ARGV[1]) "
    "data = redis.call('lrange', key, 0, num) "
    "redis.call('ltrim', key, num+1, -1) return data";

struct run {
    const struct bench_source *source;
    redisContext *context;
    struct bench_tally *tally;
    struct bench_body body;
    int64_t sent, taken, dropped;
};

static int broken(struct weir_error *err)
{
    return weir__error_set(err, WEIR_ESERVER,
                           "the server did not do what the source asked");
}

/* The next reply as a number; false: it is none. */
static bool take_number(struct run *run, int64_t *ret_number)
{
    void *got = NULL;
    redisReply *reply;
    bool ok = redisGetReply(run->context, &got) == REDIS_OK;

    reply = got;
    ok = ok && reply->type == REDIS_REPLY_INTEGER;
    if (ok)
        *ret_number = reply->integer;
    if (reply != NULL)
        freeReplyObject(reply);
    return ok;
}

/* --- adding ----------------------------------------------------------- */

static void send_event(struct run *run, int64_t number)
{
    char group[BENCH_GROUP_CAP];

    bench_group_write(group, number, run->source->groups);
    bench_body_number(&run->body, number);
    (void)redisAppendCommand(
        run->context, "EVAL %s 1 weir-bench.%s %lld %b %lld", push_script,
        group, (long long)run->source->length, run->body.bytes, run->body.len,
        (long long)run->source->ttl_s);
    (void)redisAppendCommand(run->context, "SISMEMBER " IS_IN " %s", group);
}

/* The step that follows when the game is not known; a step of its own. */
static bool enlist(struct run *run, int64_t number)
{
    char group[BENCH_GROUP_CAP];
    int64_t is_new = 0, len;

    bench_group_write(group, number, run->source->groups);
    (void)redisAppendCommand(run->context, "SADD " IS_IN " %s", group);
    if (!take_number(run, &is_new))
        return false;
    if (is_new == 0)
        return true; /* twice in one write */
    (void)redisAppendCommand(run->context, "RPUSH " GAMES " %s", group);
    return take_number(run, &len);
}

static bool add(struct run *run, int64_t count)
{
    bool is_known[MOST_AT_ONCE];

    for (int64_t i = 0; i < count; i++)
        send_event(run, run->sent + i);
    for (int64_t i = 0; i < count; i++) {
        int64_t dropped, known;

        if (!take_number(run, &dropped) || !take_number(run, &known))
            return false;
        run->dropped += dropped;
        is_known[i] = known != 0;
    }
    for (int64_t i = 0; i < count; i++)
        if (!is_known[i] && !enlist(run, run->sent + i))
            return false;
    run->sent += count;
    return true;
}

/* --- taking ----------------------------------------------------------- */

static int64_t number_of(const redisReply *event)
{
    int64_t number = 0;

    if (event->type != REDIS_REPLY_STRING || event->len < BENCH_BODY_MIN)
        return -1;
    for (int i = 0; i < 4; i++)
        number = number << 8 | (uint8_t)event->str[NUMBER_AT + i];
    return number;
}

static bool take_events(struct run *run, const char *group)
{
    redisReply *reply =
        redisCommand(run->context, "EVAL %s 1 weir-bench.%s %lld", take_script,
                     group, (long long)run->source->batch);
    bool ok = reply != NULL && reply->type == REDIS_REPLY_ARRAY;

    for (size_t i = 0; ok && i < reply->elements; i++)
        run->taken +=
            bench_tally_mark(run->tally, number_of(reply->element[i]));
    freeReplyObject(reply);
    return ok;
}

/* The next game of the rotation. */
static bool poll_game(struct run *run)
{
    redisReply *reply =
        redisCommand(run->context, "RPOPLPUSH " GAMES " " GAMES);
    bool ok = reply != NULL && reply->type != REDIS_REPLY_ERROR;

    if (ok && reply->type == REDIS_REPLY_STRING)
        ok = take_events(run, reply->str);
    freeReplyObject(reply);
    return ok;
}

/* --- the run ---------------------------------------------------------- */

/* Both as far as the clock is, a millisecond at a time. */
static bool flow(struct run *run)
{
    const struct bench_source *source = run->source;
    int64_t begun = bench_now_ns(), polled = 0;

    while (run->sent < source->jobs) {
        int64_t now = bench_now_ns() - begun;
        int64_t due = now / 1000 * source->per_s / 1000000;
        int64_t more = (due < source->jobs ? due : source->jobs) - run->sent;

        if (more > MOST_AT_ONCE)
            more = MOST_AT_ONCE;
        if (more > 0 && !add(run, more))
            return false;
        if (polled < now / NS_TICK) {
            polled++;
            if (!poll_game(run))
                return false;
        } else if (more <= 0) {
            bench_rest_ns(NS_TICK / 4);
        }
    }
    return true;
}

/* Enough turns for what is left: every game is on the list. */
static bool drain(struct run *run)
{
    const struct bench_source *source = run->source;
    int64_t turns = source->groups * (source->length / source->batch + 1);

    for (int64_t i = 0; i < turns; i++)
        if (run->taken + run->dropped >= run->sent || !poll_game(run))
            break;
    return run->context->err == 0;
}

int bench_source_run(struct bench_server *server,
                     const struct bench_source *source,
                     struct bench_tally *tally, double *ret_server_us,
                     int64_t *ret_dropped, struct weir_error *err)
{
    struct run run = {.source = source, .tally = tally};
    double before = bench_server_cpu_us(server);
    int rc = WEIR_OK;

    run.context = bench_server_connect(server, err);
    if (run.context == NULL)
        return err->code;
    if (!bench_body_init(&run.body, source->payload_bytes))
        rc = weir__error_set(err, WEIR_ENOMEM, "out of memory");
    if (rc == WEIR_OK && (!flow(&run) || !drain(&run)))
        rc = broken(err);
    *ret_server_us =
        (bench_server_cpu_us(server) - before) / (double)source->jobs;
    *ret_dropped = run.dropped;
    bench_body_fini(&run.body);
    redisFree(run.context);
    return rc;
}
