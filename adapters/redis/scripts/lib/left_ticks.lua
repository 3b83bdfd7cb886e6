-- SPDX-License-Identifier: MIT
-- Ticks of schedules (tick.lua) are for weir's own workers. A claim of pull.lua
-- leaves them where they are, looks past them, and wakes a worker of weir if
-- none comes in time.
--
-- If more are due than a claim looks past for next to nothing, and no worker of
-- weir is there, each claim puts some off by LEFT_MS. In scope is what
-- claim.lua has.
local SPARE, MOST_TICKS, LEFT_MS, GONE_MS = 32, 1024, 5000, 30000
local first_tick = math.huge -- when one that waits is due

--#include is_tick

-- Where the first job is in a list of nodes and scores.
local function job_in(nodes)
  for i = 1, #nodes, 2 do
    if not is_tick(nodes[i]) then return i end
  end
end

-- The first job that waits, and its score, in this part of `wait`.
local function first_job(from)
  local at, most = 0, SPARE
  repeat
    local nodes = call('ZRANGEBYSCORE', wait, digits(from),
                       '(' .. digits(from + MIXED / 2), 'WITHSCORES', 'LIMIT',
                       digits(at), digits(most))
    for i = 1, #nodes, 2 do
      if is_tick(nodes[i]) then
        first_tick = min(first_tick, floor(nodes[i + 1] - from))
        break
      end
    end
    local i = job_in(nodes)
    if i then return { nodes[i], nodes[i + 1] } end
    at, most = SPARE, MOST_TICKS
  until #nodes ~= 2 * SPARE
  return {}
end

-- Idle workers of weir, the last to be woken first, and when the first of them
-- comes. Those that pull have half a ms in their scores (wake.lua).
local function own_sleepers()
  local all = redis.pcall('ZRANGE', idle, '0', '-1', 'WITHSCORES')
  local own, first = {}, math.huge
  for i = #all - 1, 1, -2 do
    local at = tonumber(all[i + 1])
    local comes = at < 0 and at + BUSY or at
    if comes == math.huge or comes >= 0 and comes % 1 == 0 then
      own[#own + 1], first = all[i], min(first, comes)
    end
  end
  return own, first
end

-- Others that wait for the same moment may come MOST_BEHIND later.
local function wake_own(topic)
  if first_tick == math.huge then return end
  local own, first = own_sleepers()
  if first <= math.max(first_tick, now) + MOST_BEHIND then return end
  for _, worker in ipairs(own) do
    call('ZREM', idle, worker)
    if publish(worker, topic) > 0 then return end
  end
end

local function put_off(nodes)
  local ready, entries = 0, {}
  for i = 1, #nodes, 2 do
    local lo, hi = node_bounds(nodes[i])
    if lo and tonumber(nodes[i + 1]) < mark_end then
      ready = ready + hi - lo + 1
    end
    entries[i], entries[i + 1] = digits(now + LEFT_MS), nodes[i]
  end
  if redis.pcall('ZADD', wait, unpack(entries)) == 0 then -- it is not full
    increment(meta, 'ready', -ready)
  end
end

-- The nodes that are due, and how many the search went through.
local function due_jobs(most)
  most = most + SPARE
  local nodes = due_nodes(most)
  if #nodes < 2 * most or job_in(nodes) then return nodes, most end
  local mended = number_of(call('HGET', meta, 'mended'))
  if math.abs(now - mended) > GONE_MS and not own_sleepers()[1] then
    put_off({ unpack(nodes, 1, 4 * SPARE) })
    return {}, most
  end
  return due_nodes(most + MOST_TICKS), most + MOST_TICKS
end
return { has = is_tick, due_jobs = due_jobs, first_job = first_job,
         wake_own = wake_own }
