-- SPDX-License-Identifier: MIT
-- finish: verdicts on jobs that pull.lua gave, in one atomic step. What becomes
-- of a job is decided here: its next delay, its record, whether it is dead. A
-- verdict counts while its job is under the claim it came by, so that a repeat
-- of the call changes nothing.
--
-- KEYS  as of pull
-- ARGV  1 worker; then for each job, 1,024 at most:
--       handle, verdict, delay in ms or '', why (text)
--       Verdicts: done; retry (after the delay, or else the step of its ladder),
--       timeout (the same, of a run that took too long), snooze (after the
--       delay, no failure), fail (it is dead), malformed (its body cannot be
--       read: it is dead), back (it was not started)
-- Reply { result, ... } of each job: 1, it counts; 0: the job is not under that
--       claim any more; 2: nothing was done, tell it again later: the server is
--       full, or there was too much to write
--#include node
--#include number
--#include suspect
--#include mixed
--#include held
--#include due
--#include duration
--#include settings
--#include record
--#include topic_keys
local MOST_JOBS, MOST_BYTES = 1024, 4 * 1024 * 1024
local LOST, COUNTS, LATER = 0, 1, 2
local OUTCOMES = { retry = 0, timeout = 1, fail = 2 }
local KNOWN = { done = true, retry = true, timeout = true, snooze = true,
                fail = true, malformed = true, back = true }
local worker = ARGV[1]

-- { token, node, slot, due, ended, id = nil where weir made it, lo, hi }
local function read_handle(text)
  local token, node, slot, due, ended, id = string.match(
    text, '^(%d+) ([%w_-]+[0-?]*) (%d+) (%d+) (%d+) ([!-~]*)$')
  if not node or #token > 14 or #slot > 3 or #due > 14 or #ended > 3 or
     #node ~= 16 or #id > 128 then
    return nil
  end
  local lo, hi = node_bounds(node)
  slot = tonumber(slot)
  if not lo or slot < lo or slot > hi then return nil end
  return { token = tonumber(token), node = node, slot = slot, lo = lo, hi = hi,
           due = tonumber(due), ended = min(tonumber(ended), MOST_ENDED),
           id = id ~= '' and id or nil }
end

local wrong = wrong_keys()
if not wrong and not is_worker(worker) then
  wrong = 'the worker is not 1 to 50 of A-Z a-z 0-9 . _ : @ -, or empty'
elseif not wrong and (#ARGV % 4 ~= 1 or #ARGV > 4 * MOST_JOBS + 1) then
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
  elseif #delay > 13 or not string.find(delay, '^%d*$') or
         verdict == 'snooze' and delay == '' then
    wrong = 'the delay is not ms of 13 digits at most'
  end
  if job then
    job.verdict, job.delay, job.why = verdict, delay, ARGV[i + 3]
    jobs[#jobs + 1] = job
  end
end
if wrong then return redis.error_reply('ERR ' .. wrong) end

local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local settings

local wait, run, _, _, _, _, _, _, dead, rec, options = unpack(KEYS)
local absent = KEYS[13]

local function settle(KEYS, ARGV)
  --#include outbox
  --#include delay/settle
end

-- The record of a job; nil: it is gone, or none.
local headers = {}
local function record_of(job)
  local seq = sub(job.node, 1, 12)
  local key = pack_key(seq)
  if headers[seq] == nil then
    local head = call('GETRANGE', key, '0', '7')
    local header = #head == 8 and
                   read_header(sub(head, 1, 4) .. '\0' .. sub(head, 6))
    headers[seq] = type(header) == 'table' and header
  end
  local header = headers[seq]
  if not header or job.slot > header.last then return nil end
  local at = header.header_len + 4 * job.slot
  local bytes = call('GETRANGE', key, at, at + 7)
  if #bytes < 8 then return nil end
  local first = header.header_len + 4 * (header.last + 2)
  local from, to = struct.unpack('<I4I4', bytes)
  bytes = call('GETRANGE', key, first + from, first + to - 1)
  local record = to > from and read_record(bytes)
  return type(record) == 'table' and record or nil
end

-- The delay of a retry, nil: there is none.
local function step_of(job, record)
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
  math.randomseed(time[2] + job.slot)
  return math.max(ms - span + floor(math.random() * (2 * span + 1)), 1)
end

-- The lists of a settle call.
local keys = { unpack(KEYS, 2, 5) } -- run lease ids meta
keys[5], keys[6], keys[7], keys[8] = wait, dead, rec, KEYS[6]
keys[9], keys[10] = KEYS[7], KEYS[8]
local places, moves, ends = {}, {}, {}
local ending, backs = { by_name = {} }, { by_name = {} } -- parts of nodes
local is_full, weight = nil, 0

-- The slot of a job goes to the others of its node. Returns the node's place.
local function add_slot(list, job)
  local name = job.node .. digits(job.token)
  local part = list.by_name[name]
  if not part then
    part = { first = job, slots = {}, at = #list, told = 8, results = {} }
    list[#list + 1], list.by_name[name] = part, part
  end
  if job.id and part.told == 8 then
    part.told = {}
    for i = 1, job.hi - job.lo + 1 do part.told[i] = false end
  end
  if job.id then part.told[job.slot - job.lo + 1] = job.id end
  part.slots[#part.slots + 1] = char(job.slot)
  part.results[job.slot] = job.index
  return part.at
end

local function slots_of(part)
  local is_whole = #part.slots == part.first.hi - part.first.lo + 1
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

-- The job runs again, or is dead.
local function note_fate(job, record, source)
  settings = settings or read_settings(options)
  local verdict, form, delay = job.verdict, 1, nil
  local change = { outcome = OUTCOMES[verdict], error = job.why }
  local seq = sub(job.node, 1, 12)
  local id = job.id or '~' .. seq .. string.format('%02x', job.slot)
  if verdict == 'snooze' then
    change.snoozes, form, delay = 1, 0, tonumber(job.delay)
  elseif verdict == 'fail' then
    change.reason = 'failed'
  elseif verdict == 'malformed' then
    change.reason = verdict
  else
    delay = step_of(job, record)
    if not delay then change.reason = 'exhausted' end
  end
  local bytes = write_anew(record, seq, job.ended, change, now, worker)
  weight = weight + #bytes
  if change.reason then
    ends[#ends + 1] = source
    ends[#ends + 1], ends[#ends + 2] = id, bytes
  else
    local at = #moves
    moves[at + 1], moves[at + 2], moves[at + 3] = bytes, 1, id
    moves[at + 4], moves[at + 5] = 'r' .. digits(delay), form
    moves[at + 6], moves[at + 7] = { source }, ''
  end
end

-- What is known of it before the settle call.
local known = {}
local function take(job)
  local name = digits(job.token) .. job.node .. job.slot
  if known[name] then return LOST end -- told twice: the first counts
  known[name] = true
  if job.verdict == 'back' then
    add_slot(backs, job)
    return COUNTS
  end
  local record
  if job.verdict ~= 'done' then
    if must_wait() then return LATER end
    record = record_of(job)
    if not record then return LOST end
  end
  local at = add_slot(ending, job)
  if record then note_fate(job, record, at * 256 + job.slot) end
  return COUNTS
end

local result, closed, tokens = {}, {}, {}
for i, job in ipairs(jobs) do
  job.index = i
  result[i] = take(job)
  if not tokens[job.token] then
    tokens[job.token] = true
    closed[#closed + 1] = job.token
  end
end

local nodes, back = {}, {}
for _, part in ipairs(ending) do
  local job, at = part.first, #nodes
  local seq = sub(job.node, 1, 12)
  if not places[seq] then
    keys[#keys + 1] = pack_key(seq)
    places[seq] = #keys
  end
  nodes[at + 1] = places[seq] + (job.due >= MIXED and 65536 or 0)
  nodes[at + 2], nodes[at + 3], nodes[at + 4] = job.node, job.token, part.told
  nodes[at + 5] = slots_of(part)
end
for _, part in ipairs(backs) do
  local job, at = part.first, #back
  back[at + 1], back[at + 2], back[at + 3] = job.node, job.token, job.due
  back[at + 4] = slots_of(part)
end
keys[#keys + 1] = absent
local reply = settle(keys, {
  string.match(wait, '{(.*)}'), nodes, back, closed, moves, ends,
  settings and settings.max_dead or 1, '0'
})
for i = 2, #reply - 1, 2 do
  local part = ending[reply[i] + 1]
  local index = part and reply[i] >= 0 and part.results[reply[i + 1]]
  if index then result[index] = LOST end
end
return result
