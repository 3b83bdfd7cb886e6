/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/random.h"
#include "core/text.h"
#include "tests/redis/scripts/lane_fixture.h"

/* Random operations on jobs with keys and priorities. After each of them the
 * server's state is walked; in the end every job came to somebody or was
 * deleted. WEIR_SEED and WEIR_OPS say which operations and how many. */

enum { WORKERS = 3, KEYS = 5 };
enum { LONG_MS = 60000, SHORT_MS = 30 }; /* ageing */
enum { STEP_MS = 500, BURST = 3, SEEN_MS = 5000 };
#define KEY_RATE "2/s burst 3"

enum state { NEW, ADDED, CLAIMED, GONE };

struct model {
    uint64_t random;
    int next, alive; /* number of the next job; those that are there */
    enum state states[LANE_JOBS];
    bool has_older; /* workers, who leave keys to be looked at again */
    int ageing_ms;
    bool has_rate;
    long long begin_ms, passed_ms;
    long long started[KEYS]; /* of each key */
    char limits[40];
    const char *problem;
};

static struct model model;
static char problem_text[256];

static unsigned pick(unsigned count)
{
    return (unsigned)(weir__random_next(&model.random) % count);
}

static void find_problem(const char *what, const char *more)
{
    if (model.problem != NULL)
        return;
    (void)snprintf(problem_text, sizeof(problem_text), "%s: %.150s", what,
                   more);
    model.problem = problem_text;
}

/* --- what must hold ------------------------------------------------------- */

static const char walk[] =
    "local p, level = 'weir:{t}:', 2 ^ 45 "
    "local function call(name, key, ...) "
    "  return redis.call(name, p .. key, ...) end "
    "local t = redis.call('TIME') "
    "local now = t[1] * 1000 + math.floor(t[2] / 1000) "
    "local all = call('ZRANGE', 'wait', 0, -1, 'WITHSCORES') "
    "for i = 1, #all, 2 do "
    "  local seq, score = all[i]:sub(1, 12), tonumber(all[i + 1]) "
    "  if call('EXISTS', 'p:' .. seq) == 0 then return 'no pack ' .. seq end "
    "  if score >= 3 * 2 ^ 44 then "
    "    local due = math.floor(score - 3 * 2 ^ 44) "
    "    local lane = call('HGET', 'of', seq) "
    "    if not lane then return 'of no lane ' .. seq end "
    "    local at = tonumber(call('ZSCORE', 'lane:' .. lane, all[i]) or 'inf') "
    "    if at == math.huge then return 'not in its lane ' .. seq end "
    "    if at > due then return 'too late in its lane ' .. seq end "
    "    local turn = tonumber(call('ZSCORE', 'turns', lane) or 'inf') "
    "    if turn == math.huge then return 'no turn ' .. lane end "
    "    local key = lane:sub(2) "
    "    if turn >= 4 * level then "
    "      if ARGV[2] == '0' and call('ZCARD', 'on:' .. key) < 2 then "
    "        return 'blocked for nothing ' .. lane end "
    "    elseif turn % level > math.max(due, now + ARGV[3]) then "
    "      return 'turn too late ' .. lane "
    "    elseif math.floor(turn / level) ~= lane:byte() - 48 then "
    "      return 'turn of another level ' .. lane end "
    "  elseif call('HEXISTS', 'of', seq) == 1 then "
    "    return 'left its lane ' .. seq end "
    "end "
    "local running = {} "
    "for _, node in ipairs(call('ZRANGE', 'run', 0, -1)) do "
    "  local lane = call('HGET', 'of', node:sub(1, 12)) "
    "  local key = lane and lane:sub(2) or '' "
    "  if key ~= '' then running[key] = (running[key] or 0) + 1 end "
    "end "
    "for key, count in pairs(running) do "
    "  if count > 2 then return 'too many run ' .. key end end "
    "local jobs = call('HLEN', 'ids') - 1 " /* and one for the topic */
    "if jobs ~= math.max(tonumber(ARGV[1]), 0) and jobs >= 0 then "
    "  return 'jobs there: ' .. jobs .. ' of ' .. ARGV[1] end "
    "if call('ZCARD', 'wait') + call('ZCARD', 'run') ~= tonumber(ARGV[1]) then "
    "  return 'jobs that wait or run: ' .. call('ZCARD', 'wait') .. ' + ' .. "
    "    call('ZCARD', 'run') .. ' of ' .. ARGV[1] end "
    "return ''";

static void check_all(void)
{
    const char *odd =
        redis_text(script_proc, "EVAL %s 0 %d %d %d", walk, model.alive,
                   model.has_older ? 1 : 0, model.has_rate ? SEEN_MS : 0);

    if (odd[0] != '\0')
        find_problem("state", odd);
}

/* --- whose turn it is ----------------------------------------------------- */

/* Names of the packs of which one comes first, of all that have a lane: those
 * whose lane counts no later than any other that is sure to have a turn, and of
 * each lane the job that is due first. '': that cannot be told, as leases end
 * in the same claim. Time goes on until then, hence `soon`. */
static const char first_ones[] =
    "local p, level = 'weir:{t}:', 2 ^ 45 "
    "local function call(name, key, ...) "
    "  return redis.call(name, p .. key, ...) end "
    "local t = redis.call('TIME') "
    "local now = t[1] * 1000 + math.floor(t[2] / 1000) "
    "local soon = now + 2000 "
    "if call('ZCOUNT', 'lease', '-inf', soon) > 0 then return '' end "
    "local function heads_of(lane) "
    "  local heads = {} "
    "  for _, node in ipairs(call('ZRANGE', 'lane:' .. lane, 0, -1)) do "
    "    local at = tonumber(call('ZSCORE', 'wait', node) or 0) - 3 * 2 ^ 44 "
    "    if at >= 0 and at < soon then heads[#heads + 1] = node:sub(1, 12) end "
    "    if at >= 0 and at <= now then return heads, math.floor(at) end "
    "  end "
    "  return heads, math.huge "
    "end "
    "local best, lanes, names = math.huge, {}, {} "
    "local turns = call('ZRANGE', 'turns', 0, -1, 'WITHSCORES') "
    "for i = 1, #turns, 2 do "
    "  local name, turn = turns[i], tonumber(turns[i + 1]) "
    "  local heads, due = heads_of(name) "
    "  local ahead = (2 - (name:byte() - 48)) * ARGV[1] "
    "  local is_blocked = turn >= 4 * level "
    "  turn = turn % level "
    "  if turn <= soon then "
    "    local from = is_blocked and -math.huge or turn - ahead "
    "    lanes[#lanes + 1] = { from, table.concat(heads, ' ') } "
    "    local is_free = #name == 1 or "
    "      call('ZCARD', 'on:' .. name:sub(2)) < 2 "
    "    if is_free and not is_blocked and turn <= now then "
    "      best = math.min(best, math.max(turn, due) - ahead) "
    "    end "
    "  end "
    "end "
    "for _, lane in ipairs(lanes) do "
    "  if lane[1] <= best then names[#names + 1] = lane[2] end "
    "end "
    "return table.concat(names, ' ')";

/* `names` are what first_ones said before the claim. */
static void check_first(const char *names)
{
    for (int i = 0; i < lane_claimed_count && names[0] != '\0'; i++) {
        const char *seq = lane_held[lane_claimed[i]].seq;

        if (redis_int(script_proc, "HEXISTS weir:{t}:of %s", seq) == 0)
            continue;
        if (strstr(names, seq) == NULL)
            find_problem("not the first", seq);
        return;
    }
}

/* Of a key that was given a job others come first, from now on. */
static void check_turns(void)
{
    static const char odd[] =
        "local lane = redis.call('HGET', 'weir:{t}:of', ARGV[1]) or '' "
        "local turn = redis.call('ZSCORE', 'weir:{t}:turns', lane) "
        "return #lane > 1 and turn and turn % 2 ^ 45 < ARGV[2] + 0 "
        "and lane or ''";

    for (int i = 0; i < lane_claimed_count; i++) {
        const char *lane = redis_text(script_proc, "EVAL %s 0 %s %lld", odd,
                                      lane_held[lane_claimed[i]].seq,
                                      lane_reply->element[0]->integer / 1000);

        if (lane[0] != '\0')
            find_problem("it has its turn again", lane);
    }
}

/* --- tokens of keys ------------------------------------------------------- */

static long long clock_ms(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_REALTIME, &time);
    return (long long)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void count_started(void)
{
    long long most =
        BURST + (clock_ms() + 1 - model.begin_ms + model.passed_ms) / STEP_MS;

    for (int i = 0; i < lane_claimed_count && model.has_rate; i++) {
        const char *lane = redis_text(
            script_proc, "EVAL %s 0 %s",
            "return redis.call('HGET', 'weir:{t}:of', ARGV[1]) or ''",
            lane_held[lane_claimed[i]].seq);
        size_t key =
            lane[0] == '\0' || lane[1] == '\0' ? KEYS : (size_t)(lane[1] - 'a');

        if (key < KEYS && ++model.started[key] > most)
            find_problem("more than the key's rate", lane);
    }
}

static void pass_ms(long long ms)
{
    model.passed_ms += ms;
    lane_pass_ms(ms);
}

/* --- operations ----------------------------------------------------------- */

static const char *any_when(void)
{
    static const char *const dues[] = {"r0", "r0", "r0", "r3", "r60000"};
    static char when[32];
    unsigned key = pick(KEYS + 1);

    if (pick(8) == 0)
        return dues[pick(5)];
    (void)snprintf(when, sizeof(when), "l%u%s %.*s", pick(4), dues[pick(5)],
                   key == KEYS ? 0 : 1, &"abcde"[key % KEYS]);
    return when;
}

/* One that is in this state; -1: none was found. */
static int any_job(enum state state)
{
    for (int i = 0; i < 40 && model.next > 1; i++) {
        int span = model.next - 1 < 200 ? model.next - 1 : 200;
        int job = model.next - 1 - (int)pick((unsigned)span);

        if (model.states[job] == state)
            return job;
    }
    for (int job = 1; job < model.next; job++)
        if (model.states[job] == state)
            return job;
    return -1;
}

static void end_job(int job)
{
    model.states[job] = GONE;
    model.alive--;
}

static void add_some(void)
{
    static const char *const rules[] = {"replace until-start",
                                        "reject until-done"};
    int job = model.next++;
    bool is_under = pick(6) == 0;
    const char *text =
        is_under ? lane_add_under(job, any_when(), "u", rules[pick(2)])
                 : lane_add(job, any_when());

    if (lane_reply->type != REDIS_REPLY_ARRAY) {
        find_problem("add", text);
    } else if (lane_reply->element[0]->integer == 1) {
        model.states[job] = ADDED;
        model.alive++;
    }
    for (int i = 1; is_under && i < model.next; i++) /* whom it replaced */
        if ((model.states[i] == ADDED || model.states[i] == CLAIMED) &&
            redis_int(script_proc, "HEXISTS weir:{t}:ids j%d", i) == 0)
            end_job(i);
}

static void claim_some(void)
{
    static const char *const rooms[] = {"0", "1", "2", "5", "20"};
    static const char *const workers[WORKERS] = {"w1", "w2", "w3"};
    static const char *const suspects[] = {"", "", "alone", "none"};
    const char *who = workers[pick(WORKERS)], *room = rooms[pick(5)];
    const char *how = suspects[pick(4)], *text;
    char names[1024] = "";

    if (how[0] == '\0' && !model.has_rate)
        (void)snprintf(names, sizeof(names), "%s",
                       redis_text(script_proc, "EVAL %s 0 %d", first_ones,
                                  model.ageing_ms));
    text = lane_claim_as(
        (struct lane_claim){who, room, "600000", model.limits, how});
    check_first(names);
    check_turns();
    count_started();
    if (lane_reply->type != REDIS_REPLY_ARRAY)
        find_problem("claim", text);
    if (strchr(text, '?') != NULL)
        find_problem("claimed what is none", text);
    for (int i = 0; i < lane_claimed_count; i++)
        model.states[lane_claimed[i]] = CLAIMED;
}

/* What another claim has by now is not settled. */
static void settle_some(void)
{
    static const char *const verdicts[] = {"done", "done", "done", "back"};
    int job = any_job(CLAIMED);
    bool is_old, runs;
    const char *verdict, *text;

    if (job < 0)
        return;
    runs = redis_int(script_proc, "EVAL %s 0 %s0000 %lld",
                     "local at = redis.call('ZSCORE', 'weir:{t}:run', ARGV[1]) "
                     "return at and math.floor(tonumber(at)) == "
                     "tonumber(ARGV[2]) and 1 or 0",
                     lane_held[job].seq, lane_held[job].token) == 1;
    verdict = pick(4) == 0 ? any_when() : verdicts[pick(4)];
    is_old = model.has_older && pick(8) == 0 && strcmp(verdict, "back") != 0;
    text = lane_settle_as(job, verdict, is_old ? "0" : "4");
    if (lane_reply->type != REDIS_REPLY_ARRAY) {
        find_problem("settle", text);
        return;
    }
    if (strcmp(verdict, "back") != 0 &&
        lane_reply->element[0]->integer != (runs ? 1 : 0))
        find_problem("settled", text);
    if (runs && strcmp(verdict, "done") == 0)
        end_job(job);
    else
        model.states[job] = ADDED;
}

static void slot_some(void)
{
    static const char *const times[] = {"r0", "r2", "r60000"};
    int job = any_job(pick(3) == 0 ? CLAIMED : ADDED);
    const char *text;

    if (job < 0)
        return;
    if (pick(2) == 0) {
        text = lane_slot("reschedule", job, times[pick(3)]);
    } else {
        text = lane_slot("delete", job, "");
        end_job(job);
    }
    if (lane_reply->type != REDIS_REPLY_ARRAY || strcmp(text, "none") == 0)
        find_problem("slot", text);
}

static void purge_some(void)
{
    int jobs[2] = {any_job(ADDED), any_job(CLAIMED)};

    for (int i = 0; i < 2; i++) {
        if (jobs[i] < 0)
            continue;
        if (strcmp(lane_purge(&jobs[i], 1), "1") != 0)
            find_problem("purge", "not one");
        end_job(jobs[i]);
    }
}

static void expire_some(void)
{
    int job = any_job(CLAIMED);

    if (job >= 0)
        (void)redis_int(script_proc, "ZADD weir:{t}:lease XX 1 %lld",
                        lane_held[job].token);
}

static void step(void)
{
    unsigned what = pick(100);

    if (model.alive < 60 && what < 38)
        add_some();
    else if (what < 60)
        claim_some();
    else if (what < 84)
        settle_some();
    else if (what < 92)
        slot_some();
    else if (what < 93)
        purge_some();
    else if (what < 97)
        expire_some();
    else
        pass_ms(1 + (long long)pick(1001));
}

/* --- the end -------------------------------------------------------------- */

static void claim_rest(void)
{
    (void)lane_claim("20", model.limits);
    count_started();
    for (int i = 0, count = lane_claimed_count; i < count; i++) {
        int job = lane_claimed[i];

        if (strcmp(lane_settle(job, "done"), "1") != 0)
            find_problem("the rest", "not settled");
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
    (void)lane_claim("0", model.limits);
    for (int job = 1; job < model.next; job++) /* those of ended leases, too */
        if (model.states[job] == ADDED || model.states[job] == CLAIMED)
            (void)lane_slot("reschedule", job, "r0");
    for (int i = 0; i < 600 && model.alive > 0 && model.problem == NULL; i++) {
        claim_rest();
        if (lane_claimed_count == 0)
            pass_ms(1001); /* who ran unseen is looked for */
    }
    if (model.alive > 0)
        find_problem("lost", "jobs that nobody gets");
    if (model.problem == NULL) {
        const char *left;

        (void)redis_text(script_proc, "DEL %s", "weir:{t}:idle");
        if (strcmp(lane_drop(), "1") != 0)
            find_problem("drop", "jobs are there");
        left = script_text("KEYS *");
        if (left[0] != '\0')
            find_problem("stays", left);
    }
}

static const char *run(uint64_t seed, int ops)
{
    (void)script_text("FLUSHALL");
    memset(&model, 0, sizeof(model));
    model.random = seed;
    model.next = 1;
    model.has_older = seed % 2 == 0;
    model.ageing_ms = seed % 3 == 0 ? SHORT_MS : LONG_MS;
    model.has_rate = seed % 4 == 1;
    model.begin_ms = clock_ms();
    (void)snprintf(model.limits, sizeof(model.limits), "||%s|2|%d",
                   model.has_rate ? KEY_RATE : "", model.ageing_ms);
    for (int i = 0; i < ops && model.problem == NULL; i++) {
        step();
        check_all();
    }
    if (model.problem == NULL)
        finish();
    return model.problem;
}

static uint64_t number_of(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);

    return text == NULL ? fallback : strtoull(text, NULL, 10);
}

TEST(jobs_of_lanes_keep_their_rules_whatever_happens)
{
    uint64_t first = number_of("WEIR_SEED", 7);

    for (uint64_t seed = first; seed < first + 3; seed++) {
        const char *problem = run(seed, (int)number_of("WEIR_OPS", 2000));

        if (problem != NULL) {
            printf("  seed %llu\n", (unsigned long long)seed);
            EXPECT_STR("", problem);
        }
    }
}

/* --- planted faults ------------------------------------------------------- */

#define CLAIM  &weir__script_delay_claim
#define SETTLE &weir__script_delay_settle
#define SLOT   &weir__script_delay_slot
#define LANE_ENTRY                                                \
    "local added = redis.pcall('ZADD', lane, digits(due), node)", \
        "local added = 1"

static const struct lane_fault faults[] = {
    {"an added job is in no lane", &weir__script_delay_add_keyed, LANE_ENTRY},
    {"a lane gets no turn", &weir__script_delay_add_keyed,
     "redis.call('ZADD', turns, digits(turn), name)", ""},
    {"a blocked lane is not blocked any more when a job comes",
     &weir__script_delay_add_keyed,
     "if at ~= at or at < BLOCKED * LEVEL and turn < at then",
     "if at ~= at then"},
    {"a retry is in no lane", SETTLE, LANE_ENTRY},
    {"a running job does not count", CLAIM,
     "redis.pcall('ZADD', prefix .. 'on:' .. lane.key, '0', node[2])", ""},
    {"each lane has the places of its key", CLAIM, "keys[lane.key] = key\n",
     "keys[lane.name] = key\n"},
    {"one more of a key may run", CLAIM, "key.places = parallel - #nodes",
     "key.places = parallel - #nodes + 1"},
    {"a blocked lane has no turn", CLAIM,
     "if key.places <= 0 then return BLOCKED * LEVEL + now + RECHECK_MS end",
     "if key.places <= 0 then return nil end"},
    {"a lane ends with its first job", CLAIM,
     "if not head[1] then return nil end", "do return nil end"},
    {"an ended lease leaves no lane", CLAIM,
     "lanes.leave(prefix, left[i], laned[seq], now)", ""},
    {"an ended lease leads out of the lane", CLAIM, "if laned[seq] then",
     "if false then"},
    {"what is given back leaves its lane", SETTLE,
     "lanes.enter(list, name, due, ended / 128, laned[seq])",
     "carve(list, digits(due), seq, from, to, stays)"},
    {"a settled job keeps its place", SETTLE, "leave(node)\nif laned",
     "if laned"},
    {"a freed key stays blocked", SETTLE,
     "redis.call('ZADD', turns, digits(level * LEVEL + now), lane)", ""},
    {"a deleted job keeps its place", SLOT,
     "if running then leave_lane(prefix, job.node, lane, now) end", ""},
    {"a job that is put off leaves its lane", SLOT, "if lane then",
     "if false then"},
    {"a purged job keeps its place", &weir__script_delay_purge,
     "leave_lane(prefix, node, lane, time[1] * 1000 + floor(time[2] / 1000))",
     ""},
    {"priorities count the other way round", CLAIM,
     "lane.ahead = (2 - (byte(name) - 48)) * ageing",
     "lane.ahead = ((byte(name) - 48) - 2) * ageing"},
    {"nothing ages", CLAIM, "lane.ahead = (2 - (byte(name) - 48)) * ageing",
     "lane.ahead = (2 - (byte(name) - 48)) * 2 ^ 40"},
    {"a key has its turn again at once", CLAIM, "lane.turn = now\n", "\n"},
    {"jobs of a key start from the last one on", CLAIM,
     "lane.nodes, lane.next = nodes, 1",
     "lane.nodes, lane.next = nodes, math.max(#nodes, 1)"},
    {"a job takes no token of its key", CLAIM,
     "key.full, key.is_changed = key.full + step, true", ""},
    {"tokens of a key are not kept", CLAIM,
     "call('HSET', prefix .. 'rates', name, digits(math.ceil(key.full)))", ""},
    {"a key that rested has more tokens than may gather", CLAIM,
     "min(math.max(full or 0, time_us), time_us + all)",
     "min(full or time_us, time_us + all)"},
    {"what is taken stays in `wait`", CLAIM, "gone[#gone + 1] = node\nreturn",
     "return"},
    {"a dropped topic leaves its lanes", &weir__script_store_drop,
     "call('UNLINK', prefix .. 'lane:' .. name,", "call('EXISTS', prefix,"},
};

enum { FAULT_OPS = 1000, FAULT_SEEDS = 40 }; /* one finds most of them */

TEST(planted_faults_of_lanes_show)
{
    const char *wanted = getenv("WEIR_FAULT");
    int missed = 0;

    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        const char *problem = NULL;

        if (wanted != NULL && strstr(faults[i].name, wanted) == NULL)
            continue;
        lane_fault = &faults[i];
        for (uint64_t seed = 1; seed <= FAULT_SEEDS && problem == NULL; seed++)
            problem = run(seed, FAULT_OPS);
        lane_fault = NULL;
        printf("  %s: %s\n", faults[i].name, problem == NULL ? "-" : problem);
        missed += problem == NULL;
    }
    EXPECT_INT(0, missed);
}
