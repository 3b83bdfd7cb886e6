/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "core/random.h"
#include "tests/chaos/lost/lost.h"

unsigned lost_pick(struct lost_run *run, unsigned count)
{
    return (unsigned)(weir__random_next(&run->random) % count);
}

void lost_pass(struct lost_run *run, int64_t ms)
{
    run->now_ms += ms;
    server_set_time(run->caller.server, run->now_ms * 1000);
}

static _Noreturn void differs(const struct lost_run *run, const char *what,
                              const char *why)
{
    printf("seed %" PRIu64 ", %s without %s: %s: %s\n", run->seed, run->part,
           run->key, what, why);
    (void)fflush(stdout);
    _exit(1);
}

void lost_expect(const struct lost_run *run, const char *what, long long wanted,
                 long long got)
{
    char why[64];

    if (wanted == got)
        return;
    (void)snprintf(why, sizeof(why), "wanted %lld, got %lld", wanted, got);
    differs(run, what, why);
}

struct redisReply *lost_array(struct lost_run *run, size_t least)
{
    redisReply *reply = call_reply(&run->caller);

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < least)
        differs(run, "a call",
                reply->type == REDIS_REPLY_ERROR ? reply->str : "no array");
    return reply;
}

static long long number_of(const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_STRING)
        return strtoll(reply->str, NULL, 10);
    return reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
}

long long lost_ask(struct lost_run *run, const char *format, ...)
{
    char line[400], *words[16] = {NULL}, *rest = NULL;
    size_t count = 0;
    redisReply *reply;
    long long number;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line, sizeof(line), format, args); /* fits */
    va_end(args);
    for (char *word = strtok_r(line, " ", &rest); word != NULL && count < 16;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    call_command(&run->caller, words[0], count - 1);
    for (size_t i = 1; i < count; i++)
        call_str(&run->caller, words[i]);
    call_queue(&run->caller);
    reply = call_reply(&run->caller);
    number = number_of(reply);
    freeReplyObject(reply);
    return number;
}

long long lost_stat(const struct redisReply *reply, const char *name)
{
    for (size_t i = 0; i + 1 < reply->elements; i += 2)
        if (strcmp(reply->element[i]->str, name) == 0)
            return number_of(reply->element[i + 1]);
    return 0;
}
