-- SPDX-License-Identifier: MIT
-- Jobs with a key or a priority; all of a pack have the same. Nodes of such
-- packs wait in `wait` at their due time and LANED, where no claim looks for
-- what is due, and in a lane of all that have the same priority and key. A
-- lane's name is the digit of the priority (0 urgent, 1 high, 2 normal, 3 low)
-- and the key. `ready` counts those below `laned_mark` of `meta`.
--   of         hash: of a pack's name its lane, until its jobs have ended
--   lane:NAME  zset: nodes that wait, by due time. What `wait` has not there is
--              not in it any more: who looks removes it
--   turns      zset: lanes by LEVEL * priority + ms of their next turn; those
--              whose key may not run another job by LEVEL * BLOCKED
--   on:KEY     zset: nodes of a key that run, where `key_parallel` bounds how
--              many jobs do; what `run` has not does not
--   rates      hash: of a key when all tokens of its `key_rate` will be back
-- `lanes` in `meta` is 1 from the first such job on, and 2 while claims find
-- turns of a clock that was ahead. These keys begin as `wait` does and are not
-- declared, as packs of push.lua.
--#include laned

-- A function that puts a node into its lane and appends its score in `wait`
-- and its name to `list`. `state` as in suspect.lua.
local function lane_entrance(prefix, meta, now)
  local of, turns = prefix .. 'of', prefix .. 'turns'
  return function(list, node, due, state, name)
    local at = tonumber(redis.call('ZSCORE', turns, name) or 'nan')
    local turn = (string.byte(name) - 48) * LEVEL + math.max(due, now)
    if at ~= at then redis.call('HSET', meta, 'lanes', '1') end
    if at ~= at or at < BLOCKED * LEVEL and turn < at then
      redis.call('ZADD', turns, digits(turn), name)
    end
    redis.call('HSET', of, string.sub(node, 1, 12), name)
    local lane = prefix .. 'lane:' .. name
    local added = redis.pcall('ZADD', lane, digits(due), node)
    if type(added) ~= 'number' then -- somebody else's key, or an error again
      if string.find(added.err, 'WRONGTYPE', 1, true) then
        redis.call('UNLINK', lane)
      end
      redis.call('ZADD', lane, digits(due), node)
    end
    list[#list + 1] = state == 0 and digits(LANED + due) or LANED + due + state
    list[#list + 1] = node
  end
end

-- The lanes of these nodes, by the names of their packs.
local function lanes_of(prefix, nodes)
  local seqs, lanes = {}, {}
  for _, node in ipairs(nodes) do
    local seq = string.sub(node, 1, 12)
    if seqs[#seqs] ~= seq then seqs[#seqs + 1] = seq end
  end
  for from = 1, #seqs, 1000 do
    local to = math.min(from + 999, #seqs)
    local names = redis.pcall('HMGET', prefix .. 'of', unpack(seqs, from, to))
    for i = from, to do lanes[seqs[i]] = names[i - from + 1] or nil end
  end
  return lanes
end

-- A node of a lane does not run any more, but for the parts of it in `rest`
-- (score, name, ...; nil: none). Returns whether another job of its key may
-- start that could not before.
local function leave_lane(prefix, node, name, now, rest)
  local key, is_freed = string.sub(name, 2), false
  local on = prefix .. 'on:' .. key
  if key == '' or redis.pcall('ZREM', on, node) ~= 1 then return false end
  for i = 2, #(rest or {}), 2 do redis.pcall('ZADD', on, '0', rest[i]) end
  local turns = prefix .. 'turns'
  local scores = redis.pcall('ZMSCORE', turns, '0' .. key, '1' .. key,
                             '2' .. key, '3' .. key)
  for level = 0, 3 do
    local at = scores[level + 1]
    if at and tonumber(at) >= BLOCKED * LEVEL then
      redis.call('ZADD', turns, digits(level * LEVEL + now), level .. key)
      is_freed = true
    end
  end
  return is_freed
end

-- Jobs of these packs are gone, wherever they were.
local function forget_lanes(prefix, seqs)
  for _, seq in ipairs(seqs) do redis.pcall('HDEL', prefix .. 'of', seq) end
end

-- As types.lua says.
local function look_at_lanes(prefix)
  redis.call('ZCARD', prefix .. 'turns')
  redis.call('HLEN', prefix .. 'of')
end
