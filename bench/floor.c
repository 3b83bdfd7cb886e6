/* SPDX-License-Identifier: MIT */
#include "bench/floor.h"

#include "bench/say.h"
#include "core/error.h"

#include <hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLIGHT = 4, ARGS = 4 };

const char *const bench_floor_names[BENCH_FLOOR_OPS] = {
    [BENCH_FLOOR_PING] = "ping",
    [BENCH_FLOOR_LPUSH] = "lpush",
    [BENCH_FLOOR_LPOP] = "lpop",
    [BENCH_FLOOR_RPUSH_MANY] = "rpush-many",
    [BENCH_FLOOR_LPOP_MANY] = "lpop-many",
    [BENCH_FLOOR_XADD] = "xadd",
    [BENCH_FLOOR_EVALSHA] = "evalsha",
};

struct run {
    const struct bench_floor *floor;
    redisContext *context;
    const char **argv; /* of one command */
    size_t *lens;
    int argc;
    char *value;
    char sha[48], many[24];
    int64_t per_command; /* elements */
};

static void put(struct run *run, const char *arg, size_t len)
{
    run->argv[run->argc] = arg;
    run->lens[run->argc++] = len;
}

static void put_text(struct run *run, const char *arg)
{
    put(run, arg, strlen(arg));
}

/* The command that is sent over and over. */
static void compose(struct run *run)
{
    static const char *const words[BENCH_FLOOR_OPS][ARGS] = {
        [BENCH_FLOOR_PING] = {"PING"},
        [BENCH_FLOOR_LPUSH] = {"LPUSH", "weir-bench.list"},
        [BENCH_FLOOR_LPOP] = {"LPOP", "weir-bench.list"},
        [BENCH_FLOOR_RPUSH_MANY] = {"RPUSH", "weir-bench.many"},
        [BENCH_FLOOR_LPOP_MANY] = {"LPOP", "weir-bench.many"},
        [BENCH_FLOOR_XADD] = {"XADD", "weir-bench.stream", "*", "b"},
        [BENCH_FLOOR_EVALSHA] = {"EVALSHA"},
    };
    enum bench_floor_op op = run->floor->op;
    int64_t values = op == BENCH_FLOOR_RPUSH_MANY ? run->floor->batch : 0;

    for (int i = 0; i < ARGS && words[op][i] != NULL; i++)
        put_text(run, words[op][i]);
    if (op == BENCH_FLOOR_LPUSH || op == BENCH_FLOOR_XADD)
        values = 1;
    for (int64_t i = 0; i < values; i++)
        put(run, run->value, (size_t)run->floor->payload_bytes);
    if (op == BENCH_FLOOR_LPOP_MANY) {
        (void)snprintf(run->many, sizeof(run->many), "%lld",
                       (long long)run->floor->batch);
        put_text(run, run->many);
    }
    if (op == BENCH_FLOOR_EVALSHA) {
        put_text(run, run->sha);
        put_text(run, "0");
    }
}

static int load_script(struct run *run, struct weir_error *err)
{
    redisReply *reply = redisCommand(run->context, "SCRIPT LOAD %s", "return");
    bool ok = reply != NULL && reply->type == REDIS_REPLY_STRING;

    if (ok)
        (void)snprintf(run->sha, sizeof(run->sha), "%s", reply->str);
    freeReplyObject(reply);
    return ok ? WEIR_OK
              : weir__error_set(err, WEIR_ESERVER,
                                "the server takes no scripts");
}

static int open_run(struct run *run, const struct bench_server *server,
                    struct weir_error *err)
{
    const struct bench_floor *floor = run->floor;
    size_t room = ARGS + 1 + (size_t)floor->batch;

    run->argv = calloc(room, sizeof(run->argv[0]));
    run->lens = calloc(room, sizeof(run->lens[0]));
    run->value = malloc((size_t)floor->payload_bytes);
    if (run->argv == NULL || run->lens == NULL || run->value == NULL)
        return weir__error_set(err, WEIR_ENOMEM, "out of memory");
    memset(run->value, 'x', (size_t)floor->payload_bytes);
    run->per_command = floor->op == BENCH_FLOOR_RPUSH_MANY ||
                               floor->op == BENCH_FLOOR_LPOP_MANY
                           ? floor->batch
                           : 1;
    run->context = bench_server_connect(server, err);
    if (run->context == NULL)
        return err->code;
    return load_script(run, err);
}

static void close_run(struct run *run)
{
    redisFree(run->context);
    free(run->argv);
    free(run->lens);
    free(run->value);
}

/* Send `count` commands in one write. */
static int send_batch(struct run *run, int64_t count)
{
    int done = 0;
    int rc = REDIS_OK;

    for (int64_t i = 0; i < count && rc == REDIS_OK; i++)
        rc = redisAppendCommandArgv(run->context, run->argc, run->argv,
                                    run->lens);
    while (rc == REDIS_OK && done == 0)
        rc = redisBufferWrite(run->context, &done);
    return rc;
}

static int take_replies(struct run *run, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        void *reply = NULL;
        bool ok = redisGetReply(run->context, &reply) == REDIS_OK &&
                  ((redisReply *)reply)->type != REDIS_REPLY_ERROR;

        if (reply != NULL)
            freeReplyObject(reply);
        if (!ok)
            return REDIS_ERR;
    }
    return REDIS_OK;
}

static int pump(struct run *run, int64_t commands, int64_t batch)
{
    int64_t sent = 0, taken = 0;
    int rc = REDIS_OK;

    while (taken < commands && rc == REDIS_OK) {
        if (sent < commands && sent - taken < batch * FLIGHT) {
            int64_t count = commands - sent < batch ? commands - sent : batch;

            rc = send_batch(run, count);
            sent += count;
        } else {
            int64_t count = commands - taken < batch ? commands - taken : batch;

            rc = take_replies(run, count);
            taken += count;
        }
    }
    return rc;
}

static int measure(struct run *run, struct bench_server *server,
                   double *ret_per_s, double *ret_server_us)
{
    int64_t commands =
        (run->floor->count + run->per_command - 1) / run->per_command;
    int64_t batch = run->per_command > 1 ? 1 : run->floor->batch;
    double before = bench_server_cpu_us(server);
    int64_t begun = bench_now_ns(), ended;
    double elements = (double)(commands * run->per_command);
    int rc = pump(run, commands, batch);

    ended = bench_now_ns();
    *ret_per_s = elements * 1e9 / (double)(ended - begun);
    *ret_server_us = (bench_server_cpu_us(server) - before) / elements;
    return rc;
}

int bench_floor_run(struct bench_server *server,
                    const struct bench_floor *floor, double *ret_per_s,
                    double *ret_server_us, struct weir_error *err)
{
    struct run run = {.floor = floor};
    int rc = open_run(&run, server, err);

    if (rc == WEIR_OK) {
        compose(&run);
        if (measure(&run, server, ret_per_s, ret_server_us) != REDIS_OK)
            rc = weir__error_set(err, WEIR_ESERVER,
                                 "the server did not do what %s asked",
                                 bench_floor_names[floor->op]);
    }
    close_run(&run);
    return rc;
}
