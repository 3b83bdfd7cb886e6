-- SPDX-License-Identifier: MIT
-- finish: verdicts on jobs that pull.lua gave, in one atomic step. What becomes
-- of a job is decided here: its next delay, its record, whether it is dead. A
-- verdict counts while its job is under the claim it came by, so that a repeat
-- of the call changes nothing.
--
-- KEYS  as of pull, the last one is absent
-- ARGV  1 worker; then for each job, 1,024 at most:
--       handle, verdict, delay in ms or '', why (text)
--       Verdicts: done; retry (after the delay, or else the step of its
--       ladder), timeout (the same, of a run that took too long), snooze
--       (after the delay, no failure), fail (it is dead), malformed (its body
--       cannot be read: it is dead), back (it was not started)
-- Reply { result, ... } of each job: 1, it counts; 0: the job is not under that
--       claim any more; 2: nothing was done, tell it again later: the server is
--       full, or there was too much to write
--#include node
--#include number
--#include suspect
--#include mixed
--#include topic_keys
local MOST_JOBS, MOST_BYTES = 1024, 4 * 1024 * 1024
local LOST, COUNTS, LATER = 0, 1, 2
local OUTCOMES = { retry = 0, timeout = 1, fail = 2 }
local KNOWN = { done = true, retry = true, timeout = true, snooze = true,
                fail = true, malformed = true, back = true }
local worker = ARGV[1]

-- Nodes under their claims: token, node, lo, hi; and of their jobs in this call
-- the parts `ending` and `back` (add_slot).
local claimed, closed, is_closed = {}, {}, {}

-- Such a node; its token is among `closed`. Nil: it is none.
local function claimed_node(token, node)
  local lo, hi = node_bounds(node)
  if not lo or not string.find(node, '^[%w_-]+[0-?]*$') or #token > 14 or
     not string.find(token, '^%d+$') then
    return nil
  end
  if not is_closed[token] then closed[#closed + 1] = tonumber(token) end
  is_closed[token] = true
  return { token = tonumber(token), node = node, lo = lo, hi = hi }
end

-- { of = its node, slot, due, ended, id = nil where weir made it }
local function read_handle(text)
  local at = string.find(text, ' ', 1, true) or 0
  local key = sub(text, 1, at + 16)
  local slot, due, ended, id = string.match(
    text, '^ (%d%d?%d?) (%d+) (%d%d?%d?) ([!-~]*)$', at + 17)
  local of = claimed[key]
  if not slot or #due > 14 or #id > 128 then return nil end
  if not of then
    of = claimed_node(sub(text, 1, at - 1), sub(text, at + 1, at + 16))
    if not of then return nil end
    claimed[key] = of
  end
  slot = tonumber(slot)
  if slot < of.lo or slot > of.hi then return nil end
  return { of = of, slot = slot, due = tonumber(due),
           ended = min(tonumber(ended), MOST_ENDED),
           id = id ~= '' and id or nil }
end

local wrong = wrong_call(worker)
if not wrong and (#ARGV % 4 ~= 1 or #ARGV > 4 * MOST_JOBS + 1) then
  wrong = 'the jobs are not at most 1024, with four arguments each'
end
local jobs = {}
for i = 2, #ARGV, 4 do
  if wrong then break end
  local job = read_handle(ARGV[i])
  local verdict, delay = ARGV[i + 1], ARGV[i + 2]
  if not job then
    wrong = 'the handle is none that pull gave'
  elseif not KNOWN[verdict] then
    wrong = 'the verdict is not done, retry, timeout, snooze, fail, ' ..
            'malformed or back'
  elseif delay == '' and verdict == 'snooze' or
         delay ~= '' and not (#delay < 14 and string.find(delay, '^%d+$')) then
    wrong = 'the delay is not ms of 13 digits at most'
  end
  if job then
    job.verdict, job.index = verdict, #jobs + 1
    if verdict ~= 'done' then job.delay, job.why = delay, ARGV[i + 3] end
    jobs[#jobs + 1] = job
  end
end
if wrong then return redis.error_reply('ERR ' .. wrong) end

local wait, absent = KEYS[1], KEYS[13]

-- Made when a job runs again or dies: what becomes of it.
local function fates()
  --#include duration
  --#include settings
  --#include record
  local time = call('TIME')
  local now = time[1] * 1000 + floor(time[2] / 1000)
  local settings = read_settings(KEYS[11])

  local packs = {}
  -- The record of a job; nil: it is gone, or none.
  local function record_of(job)
    local seq, slot = sub(job.of.node, 1, 12), job.slot
    packs[seq] = packs[seq] or open_pack(pack_key(seq), false)
    if packs[seq].state then return nil end
    local record = read_record(records_of(packs[seq], slot, slot)(slot))
    return type(record) == 'table' and record or nil
  end

  -- The delay of a retry, nil: there is none.
  local function delay_of(job, record)
    local own = record.options or {}
    local steps, repeats = read_ladder(own.retry or '')
    if not steps then steps, repeats = read_ladder(settings.retry) end
    if not steps then
      steps = read_ladder('15s 3m 10m 30m 30m 1h 2h 6h 15h')
    end
    local step = math.max(record[1] - (own.spent or 0), 0) + 1
    local ms = steps[step] or repeats and steps[#steps]
    if not ms or job.delay ~= '' then return ms and tonumber(job.delay) end
    local span = floor(ms * settings.jitter / 100)
    if span == 0 then return ms end
    math.randomseed(time[2] + job.index)
    return math.max(ms - span + floor(math.random() * (2 * span + 1)), 1)
  end

  -- The record to be written, and after how many ms it runs again (nil: it is
  -- dead).
  local function rewrite(job, record)
    local verdict, delay = job.verdict, nil
    local change = { outcome = OUTCOMES[verdict], error = job.why }
    if verdict == 'snooze' then
      change.snoozes, delay = 1, tonumber(job.delay)
    elseif verdict == 'malformed' then
      change.reason = verdict
    elseif verdict == 'fail' then
      change.reason = 'failed'
    else
      delay = delay_of(job, record)
      if not delay then change.reason = 'exhausted' end
    end
    --#include crashes
    local seq = sub(job.of.node, 1, 12)
    local crashes = crashes_of(KEYS[12], seq, job.slot, job.ended)
    return write_anew(record, seq, job.ended, crashes, change, now, worker),
           delay
  end
  return record_of, rewrite, settings.max_dead
end

-- The lists of a settle call.
local keys = settle_keys()
local places, moves, ends = {}, {}, {}
local parts = { ending = {}, back = {} } -- of nodes
local is_full, weight = nil, 0

-- The slot of a job goes to the others of its node that end or go back, as
-- `name` says. Returns the node's place.
local function add_slot(name, job)
  local list, of = parts[name], job.of
  local part = of[name]
  if not part then
    part = { of = of, due = job.due, slots = {}, at = #list, told = 8,
             results = {} }
    list[#list + 1], of[name] = part, part
  end
  if job.id and part.told == 8 then
    part.told = {}
    for i = 1, of.hi - of.lo + 1 do part.told[i] = false end
  end
  if job.id then part.told[job.slot - of.lo + 1] = job.id end
  part.slots[#part.slots + 1] = char(job.slot)
  part.results[job.slot] = job.index
  return part.at
end

local function slots_of(part)
  local is_whole = #part.slots == part.of.hi - part.of.lo + 1
  return is_whole and '' or table.concat(part.slots)
end

-- There is no room for a record, or this call has written much already.
local function must_wait()
  if is_full == nil then
    local answer = redis.pcall('SETRANGE', absent, '0', '')
    is_full = type(answer) == 'table' and
              string.find(answer.err, 'OOM', 1, true) ~= nil
  end
  return is_full or weight > MOST_BYTES
end

local record_of, rewrite, max_dead

-- When it runs again, in its lane where it has one (lanes.lua).
local function lane_of(record, when)
  local own = record.options or {}
  if not own.key and not own.priority then return when end
  local level = min(math.max(own.priority or 3, 1), 4) - 1
  return 'l' .. digits(level) .. when .. ' ' .. (own.key or '')
end

-- The job runs again, or is dead.
local function note_fate(job, record, source)
  local bytes, delay = rewrite(job, record)
  local id = job.id or
             '@' .. sub(job.of.node, 1, 12) .. string.format('%02x', job.slot)
  local list = delay and moves or ends
  local at = #list
  weight = weight + #bytes
  if delay then
    list[at + 1], list[at + 2], list[at + 3] = bytes, 1, id
    list[at + 4] = lane_of(record, 'r' .. digits(delay))
    list[at + 5] = job.verdict == 'snooze' and 0 or 1
    list[at + 6], list[at + 7] = { source }, ''
  else
    list[at + 1], list[at + 2], list[at + 3] = source, id, bytes
  end
end

local function is_in(part, job)
  return part and part.results[job.slot]
end

-- What is known of it before the settle call.
local function take(job)
  if is_in(job.of.ending, job) or is_in(job.of.back, job) then
    return LOST -- told twice: the first counts
  end
  if job.verdict == 'back' then
    add_slot('back', job)
    return COUNTS
  end
  local record
  if job.verdict ~= 'done' then
    if must_wait() then return LATER end
    if not rewrite then record_of, rewrite, max_dead = fates() end
    record = record_of(job)
    if not record then return LOST end
  end
  local at = add_slot('ending', job)
  if record then note_fate(job, record, at * 256 + job.slot) end
  return COUNTS
end

local result = {}
for i, job in ipairs(jobs) do result[i] = take(job) end

local nodes, back = {}, {}
for _, part in ipairs(parts.ending) do
  local of, at = part.of, #nodes
  local seq = sub(of.node, 1, 12)
  if not places[seq] then
    keys[#keys + 1] = pack_key(seq)
    places[seq] = #keys
  end
  nodes[at + 1] = places[seq] + (part.due >= MIXED and 65536 or 0)
  nodes[at + 2], nodes[at + 3], nodes[at + 4] = of.node, of.token, part.told
  nodes[at + 5] = slots_of(part)
end
for _, part in ipairs(parts.back) do
  local of, at = part.of, #back
  back[at + 1], back[at + 2], back[at + 3] = of.node, of.token, part.due
  back[at + 4] = slots_of(part)
end
keys[#keys + 1] = absent
local function settle(KEYS, ARGV)
  --#include held
  --#include due
  --#include outbox
  --#include delay/settle
end
local known = redis.call('HMGET', KEYS[5], 'limits', 'lanes')
local wakes = digits((known[1] and 2 or 0) + (known[2] and 4 or 0))
local lists = { string.match(wait, '{(.*)}'), nodes, back, closed, moves, ends,
                max_dead or 1, wakes }
if known[1] then
  local unstarted = {}
  for i, job in ipairs(jobs) do
    local source
    if result[i] == COUNTS and job.verdict == 'back' then
      source = 2 ^ 20 + job.of.back.at * 256
    elseif result[i] == COUNTS and job.verdict == 'malformed' then
      source = job.of.ending.at * 256
    end
    if source then unstarted[#unstarted + 1] = source + job.slot end
  end
  table.insert(lists, 8, unstarted)
end
local reply = settle(keys, lists)
for i = 2, #reply - 1, 2 do
  local part = parts.ending[reply[i] + 1]
  local index = part and reply[i] >= 0 and part.results[reply[i + 1]]
  if index then result[index] = LOST end
end
return result
