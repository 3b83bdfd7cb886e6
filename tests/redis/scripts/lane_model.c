/* SPDX-License-Identifier: MIT */
#include "tests/redis/scripts/lane_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "tests/sim/server/local.h"
#include "tests/sim/server/server.h"

/* The first time is any; the mean of a step is that of a busy server. */
enum { BEGIN_MS = 1000000000, STEP_US = 1000 };
enum { WORKERS = 3, PACK_MOST = 12 };
enum { FEW = 2, MANY = 50 };             /* key_parallel */
enum { LONG_MS = 60000, SHORT_MS = 30 }; /* ageing */

struct lane_model lane_model;

static struct server *server;
static struct local *client;

static unsigned pick(unsigned count)
{
    return (unsigned)(weir__random_next(&lane_model.random) % count);
}

static redisReply *answer(const char *bytes, size_t len)
{
    local_give(client, bytes, len);
    return local_take(client);
}

struct redis_proc *script_start(void)
{
    return redis_stand_in(answer);
}

static void pass_us(long long us)
{
    server_set_time(server, server_time(server) + us);
}

/* --- operations ----------------------------------------------------------- */

static const char *any_when(void)
{
    static const char *const dues[] = {"r0", "r0", "r0", "r3", "r60000"};
    static char when[32];
    unsigned keys = lane_model.is_narrow ? 2 : LANE_KEYS;
    unsigned level = lane_model.is_narrow ? 2 : pick(LANE_LEVELS);
    unsigned key = pick(keys + 1);

    if (pick(8) == 0)
        return dues[pick(5)];
    (void)snprintf(when, sizeof(when), "l%u%s %.*s", level, dues[pick(5)],
                   key == keys ? 0 : 1, &"abcde"[key % keys]);
    return when;
}

/* One that is in this state; -1: none was found. */
static int any_job(enum lane_state state)
{
    for (int i = 0; i < 40 && lane_model.next > 1; i++) {
        int span = lane_model.next - 1 < 200 ? lane_model.next - 1 : 200;
        int job = lane_model.next - 1 - (int)pick((unsigned)span);

        if (lane_model.states[job] == state)
            return job;
    }
    for (int job = 1; job < lane_model.next; job++)
        if (lane_model.states[job] == state)
            return job;
    return -1;
}

static void end_job(int job)
{
    lane_model.states[job] = LANE_GONE;
    lane_model.alive--;
}

/* Jobs that are not there any more. Returns how many. */
static int end_missing(void)
{
    int count = 0;

    for (int i = 1; i < lane_model.next; i++)
        if ((lane_model.states[i] == LANE_ADDED ||
             lane_model.states[i] == LANE_CLAIMED) &&
            redis_int(script_proc, "HEXISTS weir:{t}:ids j%d", i) == 0) {
            end_job(i);
            count++;
        }
    return count;
}

static void add_pack(void)
{
    int job = lane_model.next, count = 2 + (int)pick(PACK_MOST - 1);
    const char *text = lane_add_pack(job, count, any_when());

    lane_model.next += count;
    if (lane_reply->type != REDIS_REPLY_ARRAY ||
        lane_reply->element[0]->integer != count) {
        lane_find_problem("add of a pack", text);
        return;
    }
    for (int i = 0; i < count; i++) {
        lane_model.states[job + i] = LANE_ADDED;
        lane_model.is_packed[job + i] = true;
    }
    lane_model.alive += count;
}

static void add_some(void)
{
    static const char *const rules[] = {"replace until-start",
                                        "reject until-done"};
    int job = lane_model.next++;
    bool is_under = pick(6) == 0;
    const char *text =
        is_under ? lane_add_under(job, any_when(), "u", rules[pick(2)])
                 : lane_add(job, any_when());

    if (lane_reply->type != REDIS_REPLY_ARRAY) {
        lane_find_problem("add", text);
    } else if (lane_reply->element[0]->integer == 1) {
        lane_model.states[job] = LANE_ADDED;
        lane_model.alive++;
    }
    if (is_under)
        (void)end_missing(); /* whom it replaced */
}

static void claim_some(void)
{
    static const char *const rooms[] = {"0", "1", "2", "5", "20"};
    static const char *const workers[WORKERS] = {"w1", "w2", "w3"};
    static const char *const suspects[] = {"", "", "alone", "none"};
    const char *who = workers[pick(WORKERS)], *room = rooms[pick(5)];
    const char *how = suspects[pick(4)], *text;
    char firsts[LANE_FIRSTS_CAP] = "";

    if (how[0] == '\0' && !lane_model.has_rate)
        lane_look_before(firsts);
    text = lane_claim_as(
        (struct lane_claim){who, room, "600000", lane_model.limits, how});
    lane_check_claim(firsts);
    if (lane_reply->type != REDIS_REPLY_ARRAY)
        lane_find_problem("claim", text);
    if (strchr(text, '?') != NULL)
        lane_find_problem("claimed what is none", text);
    for (int i = 0; i < lane_claimed_count; i++)
        lane_model.states[lane_claimed[i]] = LANE_CLAIMED;
}

/* What another claim has by now is not settled. */
static void settle_some(void)
{
    static const char *const verdicts[] = {"done", "done", "back", "spare"};
    int job = any_job(LANE_CLAIMED);
    bool is_old, runs, goes_back;
    const char *verdict, *text;

    if (job < 0)
        return;
    runs = lane_runs(job);
    verdict = pick(4) == 0 ? any_when() : verdicts[pick(4)];
    goes_back = strcmp(verdict, "back") == 0 || strcmp(verdict, "spare") == 0;
    is_old = lane_model.has_older && pick(8) == 0 && !goes_back &&
             !lane_model.is_packed[job];
    if (runs && strcmp(verdict, "spare") == 0)
        lane_count_spared(job);
    text = lane_settle_as(job, verdict, is_old ? "0" : "4");
    if (lane_reply->type != REDIS_REPLY_ARRAY) {
        lane_find_problem("settle", text);
        return;
    }
    if (!goes_back && lane_reply->element[0]->integer != (runs ? 1 : 0))
        lane_find_problem("settled", text);
    if (runs && !goes_back)
        lane_model.is_packed[job] = false;
    if (runs && strcmp(verdict, "done") == 0)
        end_job(job);
    else
        lane_model.states[job] = LANE_ADDED;
}

static void slot_some(void)
{
    static const char *const times[] = {"r0", "r2", "r60000"};
    int job = any_job(pick(3) == 0 ? LANE_CLAIMED : LANE_ADDED);
    const char *text;

    if (job < 0)
        return;
    if (pick(2) == 0) {
        text = lane_slot("reschedule", job, times[pick(3)]);
    } else {
        if (lane_held[job].state >= 2 && lane_runs(job))
            lane_count_spared(job);
        text = lane_slot("delete", job, "");
        end_job(job);
    }
    if (lane_reply->type != REDIS_REPLY_ARRAY || strcmp(text, "none") == 0)
        lane_find_problem("slot", text);
}

static void purge_some(void)
{
    int jobs[2] = {any_job(LANE_ADDED), any_job(LANE_CLAIMED)};

    for (int i = 0; i < 2; i++) {
        if (jobs[i] < 0 || lane_model.states[jobs[i]] == LANE_GONE)
            continue;
        if (strtol(lane_purge(&jobs[i], 1), NULL, 10) != end_missing())
            lane_find_problem("purge", "not its node");
        if (lane_model.states[jobs[i]] != LANE_GONE)
            lane_find_problem("purge", "it is there");
    }
}

static void expire_some(void)
{
    int job = any_job(LANE_CLAIMED);

    if (job < 0 || redis_int(script_proc, "ZADD weir:{t}:lease XX CH 1 %lld",
                             lane_held[job].token) == 0)
        return;
    /* Suspects, as none was started. */
    for (int i = 1; i < lane_model.next; i++)
        if (lane_held[i].token == lane_held[job].token &&
            lane_held[i].state >= 2 && lane_runs(i))
            lane_count_spared(i);
}

static void step(void)
{
    unsigned what = pick(100);

    pass_us(pick(2 * STEP_US));
    if (lane_model.alive < 80 && what < 26)
        add_some();
    else if (lane_model.alive < 80 && what < 36)
        add_pack();
    else if (what < 38)
        lane_check_ready();
    else if (what < 60)
        claim_some();
    else if (what < 84)
        settle_some();
    else if (what < 92)
        slot_some();
    else if (what < 95)
        purge_some();
    else if (what < 98)
        expire_some();
    else
        pass_us(1000 * (1 + (long long)pick(1001)));
}

/* --- the end -------------------------------------------------------------- */

static void claim_rest(void)
{
    (void)lane_claim("20", lane_model.limits);
    lane_check_claim("");
    for (int i = 0, count = lane_claimed_count; i < count; i++) {
        int job = lane_claimed[i];

        if (strcmp(lane_settle(job, "done"), "1") != 0)
            lane_find_problem("the rest", "not settled");
        end_job(job);
    }
}

/* All that is left comes, and nothing stays. */
static void finish(void)
{
    (void)redis_text(script_proc, "EVAL %s 0",
                     "for _, token in ipairs(redis.call('ZRANGE', "
                     "'weir:{t}:lease', 0, -1)) do redis.call('ZADD', "
                     "'weir:{t}:lease', 1, token) end return 'OK'");
    (void)lane_claim("0", lane_model.limits);
    for (int job = 1; job < lane_model.next;
         job++) /* those of ended leases, too */
        if (lane_model.states[job] == LANE_ADDED ||
            lane_model.states[job] == LANE_CLAIMED)
            (void)lane_slot("reschedule", job, "r0");
    for (int i = 0;
         i < 600 && lane_model.alive > 0 && lane_model.problem == NULL; i++) {
        claim_rest();
        if (lane_claimed_count == 0)
            pass_us(1001000); /* who ran unseen is looked for */
    }
    if (lane_model.alive > 0)
        lane_find_problem("lost", "jobs that nobody gets");
    if (lane_model.problem == NULL) {
        const char *left;

        (void)redis_text(script_proc, "DEL %s", "weir:{t}:idle");
        if (strcmp(lane_drop(), "1") != 0)
            lane_find_problem("drop", "jobs are there");
        left = script_text("KEYS *");
        if (left[0] != '\0')
            lane_find_problem("stays", left);
    }
}

const char *lane_model_run(uint64_t seed, int ops)
{
    server = server_new(1000LL * BEGIN_MS, seed);
    EXPECT_TRUE(server != NULL);
    client = local_open(server);
    memset(&lane_model, 0, sizeof(lane_model));
    lane_model.random = seed;
    lane_model.next = 1;
    lane_model.has_older = seed % 2 == 0;
    lane_model.ageing_ms = seed % 3 == 0 ? SHORT_MS : LONG_MS;
    lane_model.has_rate = seed % 4 == 1;
    lane_model.is_narrow = seed % 3 == 2;
    lane_model.parallel =
        seed % 5 == 1 || (lane_model.is_narrow && seed % 2 == 0) ? MANY : FEW;
    lane_model.begin_ms = BEGIN_MS;
    (void)snprintf(lane_model.limits, sizeof(lane_model.limits), "||%s|%d|%d",
                   lane_model.has_rate ? LANE_KEY_RATE : "",
                   lane_model.parallel, lane_model.ageing_ms);
    for (int i = 0; i < ops && lane_model.problem == NULL; i++) {
        step();
        lane_check_all();
    }
    if (lane_model.problem == NULL)
        finish();
    local_close(client);
    server_free(server);
    return lane_model.problem;
}
