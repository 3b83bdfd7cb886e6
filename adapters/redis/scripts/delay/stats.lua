-- SPDX-License-Identifier: MIT
-- stats: counts of a topic. Nothing is counted by scanning, except `ready`:
-- `mark` is the time up to which due nodes are counted in it, each node passes
-- the mark once, and every transition of a node below it adjusts `ready`. One
-- call looks at a bounded number of nodes. `mixed_mark` is the same for mixed
-- packs (mixed.lua), whose nodes are split where it lies between their slots,
-- and `laned_mark` for nodes of lanes (lanes.lua).
-- Topics of other kinds keep something else there, and are left as they are.
--
-- KEYS  wait meta dead, relay or nothing, due or nothing (then what is due of
--       mixed packs is not counted as ready), lease or nothing (then none is
--       told that ended)
-- ARGV  most nodes to look at
-- Reply { name, value, ... }: time in ms, kind ('' = no such topic), paused (1
--         or 0), waiting (ready or not), ready, running, dead, relaying, exact
--         (1 if ready is complete), oldest (for how many ms the first that is
--         ready has been so, -1: none is), totals; ended where a lease
--         ended (ended.lua), lost where jobs were lost with their packs, ticks
--         of schedules where there are (tick.lua),
--         limited where ready jobs wait for a token (1), until others end (2),
--         or each for a bound of its key (3); aside comes last where something
--         was set aside (number.lua)
--#include node
--#include number
--#include mixed
--#include ended
--#include args
local wrong = too_few(3, 1)
if wrong then return wrong end
local time = call('TIME')
-- The current millisecond is still being written to.
local now = time[1] * 1000 + floor(time[2] / 1000) - 1
local wait, meta, dead, relay, due_key, lease = unpack(KEYS)
local most_nodes = tonumber(ARGV[1])
if not (most_nodes and most_nodes >= 1 and most_nodes <= 1e6 and
        most_nodes % 1 == 0) then
  return redis.error_reply('ERR the number of nodes is not 1 to 1000000')
end

local total = {}
local fields = { 'added', 'claimed', 'settled', 'retried', 'snoozed', 'failed',
                 'expired', 'returned', 'crashed', 'dropped', 'delwait',
                 'delrun', 'ready', 'requeued', 'mark', 'mixed_mark', 'kind',
                 'paused', 'mixed', 'ticks', 'limits', 'lanes', 'laned_mark',
                 'lost', 'restored' }
local values = call('HMGET', meta, unpack(fields))
if not values[17] then
  --#include topic
  if pcall(topic_kind, meta, sub(wait, 1, -5) .. 'ids') then -- no replica
    values = call('HMGET', meta, unpack(fields))
  end
end
for i = 1, 16 do
  total[fields[i]] = number_of(values[i], i > 14 and -1 or 0)
end
total.laned_mark = number_of(values[23], -1)
local kind, is_paused, has_mixed = values[17], values[18], values[19] == '2'
local complete, ready = 1, total.ready

local oldest = -1
local function see_head(due)
  if due and floor(due) <= now then
    oldest = math.max(oldest, now + 1 - floor(due))
  end
end
if kind == 'delay' then
  see_head(tonumber(call('ZRANGE', wait, 0, 0, 'WITHSCORES')[2]))
end
if kind == 'delay' and has_mixed then
  local head = call('ZRANGEBYSCORE', wait, digits(MIXED), '+inf', 'WITHSCORES',
                    'LIMIT', 0, 1)
  if head[2] then see_head(head[2] - MIXED) end
end

--#include laned
local has_lanes = kind == 'delay' and values[22]
local has_turn = oldest >= 0 -- as far as the last claims looked
if has_lanes then
  local first = call('ZRANGEBYSCORE', wait, digits(LANED), '+inf', 'WITHSCORES',
                     'LIMIT', 0, 1)
  if first[2] then
    --#include heal_lanes
    see_head(first[2] - LANED)
    pcall(heal_lanes, sub(wait, 1, -5)) -- a full server, or a replica
  end
  local turns = sub(wait, 1, -5) .. 'turns'
  for level = 0, BLOCKED - 1 do -- up to the current ms, which others write
    has_turn = has_turn or
               call('ZCOUNT', turns, digits(level * LEVEL),
                    '(' .. digits(level * LEVEL + now + 2)) > 0
  end
end
local limited = oldest >= 0 and not has_turn and 3 or nil

-- The nodes that are due and not below the mark, and up to which ms these are
-- all; `region` is what their scores have on top.
local function find_due(region, mark, most_nodes)
  local from, stop = digits(region + mark + 1), now
  local due = call('ZRANGEBYSCORE', wait, from, '(' .. digits(region + now + 1),
                   'WITHSCORES', 'LIMIT', 0, most_nodes)
  if #due == 2 * most_nodes then -- up to the last ms that was seen whole
    local last = floor(tonumber(due[#due]) - region)
    complete, stop = 0, last - 1
    if stop <= mark then -- one ms holds more: take all of it
      stop = last
      due = call('ZRANGEBYSCORE', wait, from,
                 '(' .. digits(region + stop + 1), 'WITHSCORES')
    end
  end
  local nodes, foreign = {}, {}
  for i = 1, #due, 2 do
    local score = tonumber(due[i + 1]) - region
    if score < stop + 1 then
      local list = node_bounds(due[i]) and nodes or foreign
      list[#list + 1] = due[i]
      list[#list + 1] = list == nodes and score or nil
    end
  end
  return nodes, stop, foreign
end

-- A server that is full or a replica keeps no mark, and tells all the same.
local function keep_mark(field, stop, jobs, foreign)
  ready = ready + jobs
  if type(redis.pcall('HSET', meta, field, digits(stop))) ~= 'number' then
    return false
  end
  increment(meta, 'ready', jobs)
  call_list('ZREM', wait, foreign)
  set_aside = set_aside + #foreign
  return true
end

local function pass_plain(region, field)
  if now <= total[field] then return end
  local nodes, stop, foreign = find_due(region, total[field], most_nodes)
  local jobs = 0
  for i = 1, #nodes, 2 do
    local lo, hi = node_bounds(nodes[i])
    jobs = jobs + hi - lo + 1
  end
  keep_mark(field, stop, jobs, foreign)
end
if kind == 'delay' then pass_plain(0, 'mark') end
if has_lanes then pass_plain(LANED, 'laned_mark') end

local MOST_MIXED = 400 -- their tables are read
local function pass_mixed()
  local nodes, stop, foreign = find_due(MIXED, total.mixed_mark,
                                        min(most_nodes, MOST_MIXED))
  local jobs, names, parts, split = 0, {}, {}, {}
  for i = 1, #nodes, 2 do names[#names + 1] = nodes[i] end
  local tables = tables_of(due_key, names)
  for i = 1, #nodes, 2 do
    local name, score = nodes[i], nodes[i + 1]
    local lo, hi = node_bounds(name)
    local seq = sub(name, 1, 12)
    local entry = lo < hi and read_table(tables[seq], hi)
    if entry and due_at(entry, hi) > stop then
      split[#split + 1] = name
      jobs = jobs + spread(parts, entry, seq, lo, hi, nil, score - floor(score),
                           stop + 1)
    else
      jobs = jobs + hi - lo + 1
    end
  end
  if keep_mark('mixed_mark', stop, jobs, foreign) then
    -- In this order: a key that is emptied is not there any more for a script
    -- while its slot moves to another node.
    call_list('ZADD', wait, parts)
    call_list('ZREM', wait, split)
  end
end
if kind == 'delay' and has_mixed and now > total.mixed_mark then
  if due_key then pass_mixed() else complete = 0 end
end

local moved = total.retried + total.snoozed
local waiting = total.added + moved + total.returned + total.requeued -
                total.claimed - total.delwait
local running = total.claimed - total.settled - total.returned - total.delrun
if values[25] then -- restore.lua counts so many nodes at most
  waiting = math.max(waiting, call('ZCARD', wait))
  running = math.max(running, call('ZCARD', sub(wait, 1, -5) .. 'run'))
end
local lost = number_of(values[24])

-- What is counted where nothing is was lost with the key. Returns whether that
-- could be noted.
local function lose(jobs, key)
  if kind ~= 'delay' or jobs <= 0 or redis.pcall('EXISTS', key) ~= 0 or
     type(redis.pcall('HSET', meta, 'lost', digits(lost + jobs))) ~= 'number'
  then
    return false
  end
  lost, total.settled = lost + jobs, total.settled + jobs
  increment(meta, 'settled', jobs)
  return true
end
if lose(waiting, wait) then
  increment(meta, 'claimed', waiting)
  increment(meta, 'ready', -ready)
  waiting, ready = 0, 0
end
local prefix = sub(wait, 1, -5)
if lose(running, prefix .. 'run') then running = 0 end

if kind == 'delay' then
  --#include heal_dead
  heal_dead(dead, prefix .. 'rec', now)
end
if kind == 'delay' and running > 0 then
  --#include heal_leases
  heal_lost_leases(prefix .. 'lease', now, some_claims(prefix .. 'run'))
end
local done = total.settled - moved - total.failed - total.expired - lost
local reply = {
  'time', now + 1,
  'kind', kind or '',
  'paused', is_paused and 1 or 0,
  'waiting', waiting,
  'ready', ready,
  'running', running,
  'dead', call('ZCARD', dead),
  'relaying', relay and call('HLEN', relay) or 0,
  'exact', complete,
  'oldest', oldest,
  'added', total.added,
  'done', done,
  'retried', total.retried,
  'failed', total.failed,
  'expired', total.expired,
  'crashed', total.crashed,
  'dropped', total.dropped + set_aside,
}
tell_ended(reply, lease, running, now + 1)
local function tell_some(name, count)
  if count == 0 then return end
  reply[#reply + 1], reply[#reply + 2] = name, count
end
tell_some('lost', lost)
tell_some('ticks', number_of(values[20]))
if values[21] and oldest >= 0 then
  --#include limits
  local limit = read_limits(meta, values[21], time[1] * 1000000 + time[2],
                            function() return running end)
  if limit.room <= 0 then limited = limit.places <= 0 and 2 or 1 end
end
if limited then
  reply[#reply + 1] = 'limited'
  reply[#reply + 1] = limited
end
if set_aside > 0 then reply[#reply + 1] = 'aside' end
tell_aside(meta, reply)
return reply
