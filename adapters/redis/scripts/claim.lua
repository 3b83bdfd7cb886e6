-- SPDX-License-Identifier: MIT
-- claim: take due nodes under a new lease, oldest first, until `room` jobs are
-- covered. Claims whose lease ran out go back first, as suspects.
--
-- The token is the number of jobs claimed so far, this claim included: it
-- grows and never repeats. In `run` it is the score, with the node's suspicion
-- as its fraction; in `lease` there is one deadline for the whole claim.
--
-- KEYS  wait run lease ids meta idle
-- ARGV  room (0: only look), lease ms, most nodes, worker ('' = do not
--       register as idle),
--       1 if the worker is registered as idle, kind
-- Reply { time in us, token, us until there is more to do (0: now, -1: nothing
--         waits), jobs, revision of the stored options * 2 (+ 1 if paused),
--         node, due ms * 256 + state (suspect.lua), node, ... }
--       { -1, kind } when the topic is of another kind: nothing was done.
--#include node
--#include suspect
--#include topic
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local wait, run, lease, ids, meta, idle = unpack(KEYS)
local room, most_nodes = tonumber(ARGV[1]), tonumber(ARGV[3])
local worker, registered = ARGV[4], ARGV[5] == '1'

local stored = topic_kind(meta, ids, ARGV[6])
if stored ~= ARGV[6] then return { -1, stored } end
local options = call('HMGET', meta, 'paused', 'mark', 'revision')
local mark_end = tonumber(options[2] or -1) + 1

-- Give back up to 256 nodes of an expired claim.
local function expire(token)
  local number = tonumber(token)
  local held = call('ZRANGEBYSCORE', run, token, '(' .. digits(number + 1),
                    'WITHSCORES', 'LIMIT', 0, 256)
  local entries, names, jobs, crashed = {}, {}, 0, 0
  for i = 1, #held, 2 do
    local lo, hi = node_bounds(held[i])
    local ended, started = suspicion(held[i + 1])
    jobs = jobs + hi - lo + 1
    if ended == 0 or started then -- else nobody knows that it did anything
      ended = min(ended + 1, MOST_ENDED)
      crashed = crashed + hi - lo + 1
    end
    entries[i], entries[i + 1] = suspect_score(now, ended), held[i]
    names[#names + 1] = held[i]
  end
  if jobs > 0 then
    call('ZREM', run, unpack(names))
    call('ZADD', wait, unpack(entries))
    call('HINCRBY', meta, 'returned', jobs)
    call('HINCRBY', meta, 'crashed', crashed)
    if now < mark_end then call('HINCRBY', meta, 'ready', jobs) end
  end
  if #held < 512 then call('ZREM', lease, token) end
end

-- Two claims at most: this call must stay short, and the next one goes on.
local expired = call('ZRANGEBYSCORE', lease, '-inf', '(' .. digits(now),
                     'LIMIT', 0, 2)
for i = 1, #expired do expire(expired[i]) end

local time_us = time[1] * 1000000 + time[2]
local state = tonumber(options[3] or 0) * 2
if options[1] then -- asleep until it is resumed, whatever is added
  if worker ~= '' then call('ZADD', idle, '-inf', worker) end
  return { time_us, 0, -1, 0, state + 1 }
end

local due = call('ZRANGEBYSCORE', wait, '-inf', '(' .. digits(now + 1),
                 'WITHSCORES', 'LIMIT', 0, most_nodes)
local reply, entries, back = { time_us, 0, -1, 0, state }, {}, {}
local jobs, used, ripe = 0, 0, 0

-- `entries` gets the token added to its scores once that is known.
local function take(score, name, size)
  local due_ms = floor(score)
  reply[#reply + 1] = name
  reply[#reply + 1] = score * 256
  entries[#entries + 1] = score - due_ms
  entries[#entries + 1] = name
  jobs = jobs + size
end

-- A suspect is given out job by job.
local function take_singles(score, seq, lo, hi)
  local taken = {}
  for slot = lo, min(hi, lo + room - jobs - 1) do
    take(score, node_name(seq, slot, slot), 1)
    taken[slot] = true
  end
  carve(back, score, seq, lo, hi, taken)
end

-- Fill the room that is left with children of lo..hi, from the left.
local function take_part(score, seq, lo, hi)
  while jobs < room do
    local half = left_size(lo, hi)
    if half > room - jobs then
      back[#back + 1] = score
      back[#back + 1] = node_name(seq, lo + half, hi)
      hi = lo + half - 1
    else
      take(score, node_name(seq, lo, lo + half - 1), half)
      lo = lo + half
    end
  end
  back[#back + 1] = score
  back[#back + 1] = node_name(seq, lo, hi)
end

for i = 1, #due, 2 do
  local name, score, had = due[i], tonumber(due[i + 1]), jobs
  local lo, hi = node_bounds(name)
  local size = hi - lo + 1
  if size > 1 and score > floor(score) then
    take_singles(score, sub(name, 1, 12), lo, hi)
  elseif size <= room - jobs then
    take(score, name, size)
  elseif jobs * 2 < room then
    take_part(score, sub(name, 1, 12), lo, hi)
  else
    break -- not worth a split: the next claim takes it whole
  end
  used = used + 1
  if score < mark_end then ripe = ripe + jobs - had end
  if jobs == room then break end
end

if jobs > 0 then
  call('ZREMRANGEBYRANK', wait, 0, used - 1)
  call_list('ZADD', wait, back)
  local token = call('HINCRBY', meta, 'claimed', jobs)
  for i = 1, #entries, 2 do entries[i] = token + entries[i] end
  call_list('ZADD', run, entries)
  call('ZADD', lease, now + ARGV[2], digits(token))
  if ripe > 0 then call('HINCRBY', meta, 'ready', -ripe) end
  reply[2] = token
  reply[4] = jobs
end

-- The next thing to happen here: something is due, or a lease runs out.
local head = call('ZRANGE', wait, 0, 0, 'WITHSCORES')
local expiry = call('ZRANGE', lease, 0, 0, 'WITHSCORES')
local wake_at
if head[1] then wake_at = floor(tonumber(head[2])) end
if expiry[1] then
  wake_at = min(wake_at or math.huge, tonumber(expiry[2]) + 1)
end
if wake_at then reply[3] = math.max(wake_at * 1000 - time_us, 0) end
if jobs == 0 and worker ~= '' then
  -- Sleepers that are overdue are awake or gone; nobody would wake them.
  call('ZREMRANGEBYSCORE', idle, '-inf', '(' .. digits(now))
  call('ZADD', idle, wake_at or '+inf', worker)
elseif jobs > 0 and registered then
  call('ZREM', idle, worker)
end
return reply
