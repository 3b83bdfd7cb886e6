/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/redis/scripts/lane_model.h"

static char problem_text[256];

void lane_find_problem(const char *what, const char *more)
{
    if (lane_model.problem != NULL)
        return;
    (void)snprintf(problem_text, sizeof(problem_text), "%s: %.150s", what,
                   more);
    lane_model.problem = problem_text;
}

/* --- what must hold ------------------------------------------------------- */

#define LUA_CALL                                              \
    "local p, level = 'weir:{t}:', 2 ^ 45 "                   \
    "local function call(name, key, ...) "                    \
    "  return redis.call(name, p .. key, ...) end "           \
    "local t = redis.call('TIME') "                           \
    "local now = t[1] * 1000 + math.floor(t[2] / 1000) "      \
    "local function size_of(node) "                           \
    "  local a, b, c, d = node:byte(13, 16) "                 \
    "  return c * 16 + d - a * 16 - b + 1 end "               \
    "local function jobs_in(key) "                            \
    "  local sum = 0 "                                        \
    "  for _, node in ipairs(call('ZRANGE', key, 0, -1)) do " \
    "    sum = sum + size_of(node) end "                      \
    "  return sum end "

static const char walk[] = LUA_CALL
    "local marks, ready = call('HMGET', 'meta', 'mark', 'laned_mark', "
    "  'ready'), 0 "
    "local all = call('ZRANGE', 'wait', 0, -1, 'WITHSCORES') "
    "for i = 1, #all, 2 do "
    "  local seq, score = all[i]:sub(1, 12), tonumber(all[i + 1]) "
    "  if call('EXISTS', 'p:' .. seq) == 0 then return 'no pack ' .. seq end "
    "  local region = score >= 3 * 2 ^ 44 and 3 * 2 ^ 44 or 0 "
    "  if score - region < (marks[region > 0 and 2 or 1] or -1) + 1 then "
    "    ready = ready + size_of(all[i]) end "
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
    "      if ARGV[2] == '0' and jobs_in('on:' .. key) < ARGV[4] + 0 then "
    "        return 'blocked for nothing ' .. lane end "
    "    elseif turn % level > math.max(due, now + ARGV[3]) then "
    "      return 'turn too late ' .. lane "
    "    elseif math.floor(turn / level) ~= lane:byte() - 48 then "
    "      return 'turn of another level ' .. lane end "
    "  elseif call('HEXISTS', 'of', seq) == 1 then "
    "    return 'left its lane ' .. seq end "
    "end "
    "for _, lane in ipairs(call('ZRANGE', 'turns', 0, -1)) do "
    "  local waits = false "
    "  for _, node in ipairs(call('ZRANGE', 'lane:' .. lane, 0, -1)) do "
    "    waits = waits or call('ZSCORE', 'wait', node) end "
    "  if not waits then return 'a turn of nothing ' .. lane end end "
    "if ready ~= tonumber(marks[3] or 0) then "
    "  return 'ready: ' .. ready .. ', not ' .. marks[3] end "
    "local running = {} "
    "for _, node in ipairs(call('ZRANGE', 'run', 0, -1)) do "
    "  local lane = call('HGET', 'of', node:sub(1, 12)) "
    "  local key = lane and lane:sub(2) or '' "
    "  if key ~= '' then "
    "    running[key] = (running[key] or 0) + size_of(node) "
    "    if not call('ZSCORE', 'on:' .. key, node) then "
    "      return 'it runs unseen ' .. node end end "
    "end "
    "for key, count in pairs(running) do "
    "  if count > ARGV[4] + 0 then return 'too many run ' .. key end end "
    "for _, seq in ipairs(ARGV[2] == '0' and call('HKEYS', 'of') or {}) do "
    "  if call('EXISTS', 'p:' .. seq) == 0 then "
    "    return 'a lane of no pack ' .. seq end end "
    "local jobs = call('HLEN', 'ids') - 1 " /* and one for the topic */
    "if jobs ~= math.max(tonumber(ARGV[1]), 0) and jobs >= 0 then "
    "  return 'jobs there: ' .. jobs .. ' of ' .. ARGV[1] end "
    "if jobs_in('wait') + jobs_in('run') ~= tonumber(ARGV[1]) then "
    "  return 'jobs that wait or run: ' .. jobs_in('wait') .. ' + ' .. "
    "    jobs_in('run') .. ' of ' .. ARGV[1] end "
    "return ''";

void lane_check_all(void)
{
    const char *odd =
        redis_text(script_proc, "EVAL %s 0 %d %d %d %d", walk, lane_model.alive,
                   lane_model.has_older ? 1 : 0,
                   lane_model.has_rate ? LANE_SEEN_MS : 0, lane_model.parallel);

    if (odd[0] != '\0')
        lane_find_problem("state", odd);
}

/* --- whose turn it is ----------------------------------------------------- */

/* Names of the packs of which one comes first, of all that have a lane: those
 * whose lane counts no later than any other that is sure to have a turn, and of
 * each lane the job that is due first. '': that cannot be told, as leases end
 * in the same claim. */
static const char first_ones[] = LUA_CALL
    "if call('ZCOUNT', 'lease', '-inf', now) > 0 then return '' end "
    "local function head_of(lane) "
    "  for _, node in ipairs(call('ZRANGE', 'lane:' .. lane, 0, -1)) do "
    "    local at = tonumber(call('ZSCORE', 'wait', node) or 0) - 3 * 2 ^ 44 "
    "    if at >= 0 and at <= now then "
    "      return node:sub(1, 12), math.floor(at) end "
    "  end "
    "  return '', math.huge "
    "end "
    "local best, lanes, names = math.huge, {}, {} "
    "local turns = call('ZRANGE', 'turns', 0, -1, 'WITHSCORES') "
    "for i = 1, #turns, 2 do "
    "  local name, turn = turns[i], tonumber(turns[i + 1]) "
    "  local head, due = head_of(name) "
    "  local ahead = (2 - (name:byte() - 48)) * ARGV[1] "
    "  local is_blocked = turn >= 4 * level "
    "  turn = turn % level "
    "  if turn <= now then "
    "    local from = is_blocked and -math.huge or turn - ahead "
    "    lanes[#lanes + 1] = { from, head } "
    "    local is_free = #name == 1 or "
    "      jobs_in('on:' .. name:sub(2)) < ARGV[2] + 0 "
    "    if is_free and not is_blocked then "
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
        char seq[13];

        (void)snprintf(seq, sizeof(seq), "%.12s",
                       lane_held[lane_claimed[i]].node);
        if (redis_int(script_proc, "HEXISTS weir:{t}:of %s", seq) == 0)
            continue;
        if (strstr(names, seq) == NULL)
            lane_find_problem("not the first", seq);
        return;
    }
}

/* Of a key that was given a job others come first, from now on. */
static void check_turns(void)
{
    static const char odd[] =
        "local seq = ARGV[1]:sub(1, 12) "
        "local lane = redis.call('HGET', 'weir:{t}:of', seq) or '' "
        "local turn = redis.call('ZSCORE', 'weir:{t}:turns', lane) "
        "return #lane > 1 and turn and turn % 2 ^ 45 < ARGV[2] + 0 "
        "and lane or ''";

    for (int i = 0; i < lane_claimed_count; i++) {
        const char *lane = redis_text(script_proc, "EVAL %s 0 %s %lld", odd,
                                      lane_held[lane_claimed[i]].node,
                                      lane_reply->element[0]->integer / 1000);

        if (lane[0] != '\0')
            lane_find_problem("it has its turn again", lane);
    }
}

/* --- order ---------------------------------------------------------------- */

/* As it was claimed; "": it is of none. */
static const char *lane_of(int job)
{
    return redis_text(script_proc, "EVAL %s 0 %s",
                      "return redis.call('HGET', 'weir:{t}:of', "
                      "ARGV[1]:sub(1, 12)) or ''",
                      lane_held[job].node);
}

/* Those of a lane come in order of due times, and of their nodes. */
static void check_order(void)
{
    int last[LANE_LEVELS][LANE_KEYS] = {{0}};

    for (int i = 0; i < lane_claimed_count; i++) {
        int job = lane_claimed[i], before;
        const char *lane = lane_of(job);
        int order;

        if (lane[0] == '\0' || lane[1] == '\0')
            continue;
        before = last[lane[0] - '0'][lane[1] - 'a'];
        last[lane[0] - '0'][lane[1] - 'a'] = job;
        order = strcmp(lane_held[before].node, lane_held[job].node);
        if (before > 0 &&
            (lane_held[before].due > lane_held[job].due ||
             (lane_held[before].due == lane_held[job].due && order > 0)))
            lane_find_problem("behind a later one", lane_held[job].node);
    }
}

/* --- tokens of keys ------------------------------------------------------- */

/* LANE_KEYS: it has none. */
static size_t key_of(int job)
{
    const char *lane = lane_of(job);

    return lane[0] == '\0' || lane[1] == '\0' ? LANE_KEYS
                                              : (size_t)(lane[1] - 'a');
}

static void count_started(void)
{
    long long most =
        LANE_BURST + (lane_now_ms() - lane_model.begin_ms) / LANE_STEP_MS;

    for (int i = 0; i < lane_claimed_count && lane_model.has_rate; i++) {
        size_t key = key_of(lane_claimed[i]);

        if (key < LANE_KEYS && ++lane_model.started[key] > most)
            lane_find_problem("more than the key's rate",
                              lane_of(lane_claimed[i]));
    }
}

void lane_count_spared(int job)
{
    size_t key = key_of(job);

    if (key < LANE_KEYS)
        lane_model.started[key]--;
}

/* --- claims --------------------------------------------------------------- */

void lane_look_before(char ret_firsts[LANE_FIRSTS_CAP])
{
    (void)snprintf(ret_firsts, LANE_FIRSTS_CAP, "%s",
                   redis_text(script_proc, "EVAL %s 0 %d %d", first_ones,
                              lane_model.ageing_ms, lane_model.parallel));
}

void lane_check_claim(const char *firsts)
{
    check_first(firsts);
    check_turns();
    check_order();
    count_started();
}

/* --- what is ready -------------------------------------------------------- */

void lane_check_ready(void)
{
    static const char due[] =
        LUA_CALL "local ready = 0 "
                 "local all = call('ZRANGE', 'wait', 0, -1, 'WITHSCORES') "
                 "for i = 1, #all, 2 do "
                 "  local due = all[i + 1] % (3 * 2 ^ 44) "
                 "  if due < now - 5 then ready = ready + size_of(all[i]) end "
                 "end return ready";
    long long least = redis_int(script_proc, "EVAL %s 0", due);

    if (script_stat("ready") < least)
        lane_find_problem("ready", "fewer than are due");
}
