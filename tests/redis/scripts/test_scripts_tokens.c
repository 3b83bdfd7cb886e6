/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/script.h"
#include "tests/harness/redis_proc.h"
#include "tests/harness/test.h"

/* The tokens of a topic while one run of a server follows another, by the
 * arithmetic of scripts/lib/server.lua alone: no such year is waited for. */

enum { TEXT_CAP = 16384 };

#define BOUND  (INT64_C(1) << 45) /* a score holds that and a node's state */
#define YEAR_S INT64_C(31557600)

/* Behind the functions of the script. Each change comes `gap` ms behind the one
 * before, or, where that is none, at random from a week before to a week after.
 * At each a worker comes who was given a token, and jobs are claimed. Returns
 * the last token; an error where one did not grow. */
static const char changes[] =
    "local meta, lease = KEYS[1], KEYS[2] "
    "local now, count, gap = tonumber(ARGV[1]), tonumber(ARGV[2]), "
    "tonumber(ARGV[3]) "
    "local last, week = number_of(redis.call('HGET', meta, 'claimed')), 6048e5 "
    "for i = 1, count do "
    "  now = now + (gap > 0 and gap or math.random(-week, week)) "
    "  local own = string.format('%016x', i) "
    "  if i % 3 == 0 then own = own .. ' ' .. digits(last) end "
    "  meet_server(meta, lease, 'claimed', "
    "    redis.call('HGET', meta, 'server') or '', own, 60000, now) "
    "  local token = increment(meta, 'claimed', 1 + i % 256, first_token(now)) "
    "  if token <= last or token >= 2 ^ 45 then "
    "    return redis.error_reply('change ' .. i .. ': ' .. digits(token) .. "
    "      ' behind ' .. digits(last)) end "
    "  last = token "
    "end "
    "return digits(last)";

static struct redis_proc *server;

/* What the library of every claim defines, then the above. */
static int64_t last_token(int64_t now_ms, int count, int64_t gap_ms)
{
    const char *all = weir__script_delay_claim.text;
    const char *begin = strstr(all, "local MOST_STORED");
    const char *end = strstr(all, "local function first_token(now)");
    char text[TEXT_CAP];
    const char *answer;

    EXPECT_TRUE(begin != NULL && end != NULL && begin < end);
    end = strchr(end, '\n');
    EXPECT_TRUE(end != NULL && end - begin < TEXT_CAP - 2048);
    (void)snprintf(text, sizeof(text), "%.*s\n%s", (int)(end - begin), begin,
                   changes); /* fits */
    if (server == NULL)
        server = redis_start(NULL);
    answer = redis_text(server, "EVAL %s 2 m l %lld %d %lld", text,
                        (long long)now_ms, count, (long long)gap_ms);
    EXPECT_TRUE(strspn(answer, "0123456789") == strlen(answer));
    return strtoll(answer, NULL, 10);
}

static int64_t server_ms(void)
{
    if (server == NULL)
        server = redis_start(NULL);
    return redis_int(server, "EVAL %s 0",
                     "return redis.call('TIME')[1] * 1000");
}

/* --- a year --------------------------------------------------------------- */

static void expect_year(int64_t gap_s)
{
    int64_t count = YEAR_S / gap_s < 10000 ? YEAR_S / gap_s : 10000;
    int64_t now_ms = server_ms(), first, last;

    EXPECT_TRUE(redis_int(server, "DEL m l") >= 0);
    first = last_token(now_ms, 1, 1);
    last = last_token(now_ms, (int)count, gap_s * 1000);
    /* What is left of the year goes on likewise. */
    EXPECT_TRUE(first + (last - first) / count * (YEAR_S / gap_s) < BOUND);
}

TEST(tokens_stay_below_their_bound_through_a_year_of_restarts)
{
    static const int64_t gaps_s[] = {1, 10, 60, 131, 3600, 86400, 2629800};

    for (size_t i = 0; i < sizeof(gaps_s) / sizeof(gaps_s[0]); i++)
        expect_year(gaps_s[i]);
}

/* --- whatever comes ------------------------------------------------------- */

TEST(tokens_grow_whatever_the_clocks_of_servers_say)
{
    int64_t first = last_token(server_ms(), 1, 1);

    EXPECT_TRUE(last_token(server_ms(), 20000, 0) > first);
}

TEST(tokens_grow_however_near_they_are_to_their_bound)
{
    char near[24];

    (void)server_ms();
    (void)snprintf(near, sizeof(near), "%lld",
                   (long long)BOUND - (INT64_C(1) << 40));
    EXPECT_INT(1, redis_int(server, "HSET m claimed %s", near));
    EXPECT_TRUE(last_token(server_ms(), 20000, 1) > BOUND - (INT64_C(1) << 40));
    EXPECT_TRUE(last_token(server_ms(), 20000, 131000) < BOUND);
}

TEST(tokens_grow_behind_a_clock_that_was_wrong_by_a_century)
{
    int64_t now_ms = server_ms(), century_ms = 100 * YEAR_S * 1000, last;

    last = last_token(now_ms + century_ms, 10, 1000);
    EXPECT_TRUE(last_token(now_ms, 20000, 1000) > last);
    EXPECT_TRUE(last_token(now_ms - century_ms, 10, 1000) > last);
}
