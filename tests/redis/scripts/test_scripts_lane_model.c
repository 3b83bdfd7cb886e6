/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/harness/fault_search.h"
#include "tests/redis/scripts/lane_model.h"

/* WEIR_SEED and WEIR_OPS say which operations and how many. */

static uint64_t number_of(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);

    return text == NULL ? fallback : strtoull(text, NULL, 10);
}

TEST(jobs_of_lanes_keep_their_rules_whatever_happens)
{
    uint64_t first = number_of("WEIR_SEED", 7);

    for (uint64_t seed = first; seed < first + 3; seed++) {
        const char *problem =
            lane_model_run(seed, (int)number_of("WEIR_OPS", 2000));

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
     "redis.pcall('ZADD', prefix .. 'on:' .. lane.key, '0', node)", ""},
    {"each lane has the places of its key", CLAIM, "keys[lane.key] = key\n",
     "keys[lane.name] = key\n"},
    {"one more of a key may run", CLAIM,
     "key.places = parallel - jobs_of(nodes)",
     "key.places = parallel - jobs_of(nodes) + 1"},
    {"a node of a key counts as one job", CLAIM,
     "jobs = jobs + (lo and hi - lo + 1 or 1)", "jobs = jobs + 1"},
    {"a blocked lane has no turn", CLAIM,
     "if key.places <= 0 then return BLOCKED * LEVEL + now + RECHECK_MS end",
     "if key.places <= 0 then return nil end"},
    {"a lane ends with its first job", CLAIM, "return tonumber(head[2])",
     "return nil"},
    {"a lane whose next job is known ends", CLAIM,
     "if known then return known[1] end", "if known then return nil end"},
    {"an ended lease leaves no lane", CLAIM,
     "lanes.leave(prefix, left[i], laned[seq], now)", ""},
    {"an ended lease leads out of the lane", CLAIM, "if laned[seq] then",
     "if false then"},
    {"what is given back leaves its lane", SETTLE,
     "lanes.enter(list, parts[i], due, ended / 128, laned[seq])",
     "list[#list + 1] = digits(due) list[#list + 1] = parts[i]"},
    {"a settled job keeps its place", SETTLE, "leave(node, kept[node])", ""},
    {"what is given back keeps its place", SETTLE, "leave(node, left)", ""},
    {"where a part of a node is settled the rest has no place", SETTLE,
     "leave(node, kept[node])", "leave(node)"},
    {"where a part of a node goes back the rest has no place", SETTLE,
     "leave(node, left)", "leave(node)"},
    {"a pack of which one job ended is of no lane", SETTLE,
     "if lanes then ended[#ended + 1] = sub(key, -12) end\n",
     "end if lanes then ended[#ended + 1] = sub(key, -12)\n"},
    {"a pack that ended is of a lane", SETTLE,
     "if lanes then ended[#ended + 1] = sub(key, -12) end", ""},
    {"what is given back is not counted as ready", SETTLE,
     "if due < laned_end then below = below + count end", ""},
    {"what comes back is not counted as ready", CLAIM,
     "if due < laned_end then early = early + size end", ""},
    {"what is taken is counted as ready", CLAIM,
     "if score < laned_end then ripe = ripe + size end", ""},
    {"what is deleted is counted as ready", SLOT,
     "if not job.runs and job.due < mark_end then",
     "if not job.runs and job.due < mark_end and job.region <= MIXED then"},
    {"what is purged is counted as ready", &weir__script_delay_purge,
     "laned_end) then", "0) then"},
    {"a freed key stays blocked", SETTLE,
     "redis.call('ZADD', turns, digits(level * LEVEL + now), level .. key)",
     ""},
    {"a deleted job keeps its place", SLOT,
     "if running and lane then leave(prefix, job.node, lane, now, left) end",
     ""},
    {"a deleted job takes its node's places along", SLOT,
     "leave(prefix, job.node, lane, now, left)",
     "leave(prefix, job.node, lane, now)"},
    {"a job that is put off leaves its lane", SLOT,
     "if is_laned and not lane then job.region = 0 end",
     "if is_laned then lane, job.region = nil, 0 end"},
    {"the rest of a node leaves its lane", SLOT, "if is_laned then -- the rest",
     "if false then -- the rest"},
    {"a pack of which one job was deleted is of no lane", SLOT,
     "if is_gone and lane then", "if lane then"},
    {"a pack of which a node was purged is of no lane",
     &weir__script_delay_purge,
     "if note_gone(key, pack, gone[key], due_key) then",
     "if note_gone(key, pack, gone[key], due_key) or true then"},
    {"a purged job keeps its place", &weir__script_delay_purge,
     "leave_lane(prefix, node, lane, time[1] * 1000 + floor(time[2] / 1000))",
     ""},
    {"the last job of a lane is deleted without it", SLOT,
     "leave_wait(prefix, { job.node }, { [seq] = lane })", ""},
    {"the last job of a lane is purged without it", &weir__script_delay_purge,
     "leave_wait(prefix, from_wait, lanes_of(prefix, from_wait))", ""},
    {"priorities count the other way round", CLAIM,
     "lane.ahead = (2 - (byte(name) - 48)) * ageing",
     "lane.ahead = ((byte(name) - 48) - 2) * ageing"},
    {"nothing ages", CLAIM, "lane.ahead = (2 - (byte(name) - 48)) * ageing",
     "lane.ahead = (2 - (byte(name) - 48)) * 2 ^ 40"},
    {"a key has its turn again at once", CLAIM,
     "lane.turn, lane.owes = now, size - 1", "lane.owes = size - 1"},
    {"jobs of a key start from the last one on", CLAIM,
     "lane.nodes, lane.next = nodes, 1",
     "lane.nodes, lane.next = nodes, math.max(#nodes, 1)"},
    {"a part that was not taken is in no lane", CLAIM,
     "call_list('ZADD', prefix .. 'lane:' .. lane.name, lane.parts)", ""},
    {"a part that was not taken does not wait", CLAIM,
     "if turns then turns.put_back() end",
     "if turns then local b = back back = {} turns.put_back() back = b end"},
    {"a part that was not taken comes last", CLAIM,
     "table.insert(lane.nodes, at + 1,", "table.insert(lane.nodes,"},
    {"a job takes no token of its key", CLAIM,
     "key.full, key.is_changed = key.full + size * step, true", ""},
    {"a node takes one token of its key", CLAIM,
     "key.full, key.is_changed = key.full + size * step, true",
     "key.full, key.is_changed = key.full + step, true"},
    {"tokens of a key are not kept", CLAIM,
     "call('HSET', prefix .. 'rates', name, digits(math.ceil(key.full)))", ""},
    {"a key that rested has more tokens than may gather", CLAIM,
     "min(math.max(full or 0, time_us), time_us + all)",
     "min(full or time_us, time_us + all)"},
    {"what is taken stays in `wait`", CLAIM,
     "lane.given[#lane.given + 1], gone[#gone + 1] = node, node",
     "lane.given[#lane.given + 1] = node"},
};

enum { FAULTS = sizeof(faults) / sizeof(faults[0]) };
enum { FAULT_OPS = 1000, FAULT_SEEDS = 40 }; /* one finds most of them */

static const char *name_of(size_t index)
{
    return faults[index].name;
}

static void run_seed(size_t index, uint64_t seed)
{
    const char *problem;

    lane_fault = &faults[index];
    problem = lane_model_run(seed, FAULT_OPS);
    if (problem == NULL)
        return;
    printf("%s\n", problem);
    (void)fflush(stdout);
    _exit(1);
}

TEST(planted_faults_of_lanes_show)
{
    struct fault_search search = {.model = "lanes",
                                  .count = FAULTS,
                                  .name = name_of,
                                  .seeds = FAULT_SEEDS,
                                  .run = run_seed};

    EXPECT_INT(0, faults_missed(&search));
}
