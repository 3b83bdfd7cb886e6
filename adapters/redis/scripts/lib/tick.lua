-- SPDX-License-Identifier: MIT
-- The tick of a schedule is a job with the id NAME@next. The hash `cron` has
-- for each NAME `A FROM AT RECORD`, or P in front where it is paused and has no
-- tick: RECORD is the tick's, in which from byte AT on stand five times of 13
-- digits: FROM, since when the schedule counts, up to when its times are over,
-- the time of the last job it made, and between which two no job was made
-- (core/schedule.h). `ticks` in `meta` counts the first ones.

-- WEIR__AHEAD_MS of core/schedule.h.
local AHEAD_MS = 40

-- Have the tick of a schedule come at once. Its times are over up to now, and
-- those for which the tick before may have made a job ahead. None before `from`
-- had a job.
-- False: a job has its id. Ticks of one call have names of their own: since 7.2
-- the time stands still meanwhile.
local names_tried = 0
local function add_tick(topic, name, from, at, record, now)
  --#include lone_rare
  --#include lone_pack
  local wait, ids, meta, idle = KEYS[1], KEYS[3], KEYS[4], KEYS[5]
  local kind, own, revision, last = 'delay', '', false, nil
  local seen, call_slot, number, run, lease, held -- no repeat, no hand-over
  local now_text = string.format('%.0f', now)
  local id, when = name .. '@next', 'a' .. now_text
  local time = call('TIME')
  local known = { call('HGET', meta, 'kind') } -- max_pending is for jobs
  record = string.sub(record, 1, at) ..
           string.format('%013.0f %013.0f %013d %013d %013.0f ', from,
                         now + AHEAD_MS, 0, 0, from) ..
           string.sub(record, at + 71)
  local pack = lone_head(id, #record) .. record
  for _ = 0, 9 do
    names_tried = names_tried + 1
    local seq, serial = nil, 8192000 + time[2] % 1000 * 192 + names_tried
    --#include lone_name
    local key = string.sub(wait, 1, -5) .. 'p:' .. seq
    local refused, next_added
    repeat
      --#include lone
    until true
    if refused ~= -1 then return not refused end
  end
  return redis.error_reply('ERR no name is free, ask again')
end

-- A, FROM, AT and RECORD, or nothing where that is none.
local function read_schedule(value)
  local state, from, at, rest = string.match(value or '',
                                             '^([AP]) (%d+) (%d+) ()')
  if not rest then return nil end
  return state, tonumber(from), tonumber(at), string.sub(value, rest)
end

-- If the server lost `ids`, ticks among the first 1,024 nodes that wait or run
-- are entered there again: each schedule would get a second tick. Others end
-- with their next verdict (settle.lua).
local function find_lost_ticks(cron)
  --#include is_tick
  local wait, ids = KEYS[1], KEYS[3]
  if call('HEXISTS', ids, '!') == 1 or call('EXISTS', cron) == 0 then return end
  for _, key in ipairs({ wait, KEYS[2] }) do
    for _, node in ipairs(redis.pcall('ZRANGE', key, '0', '1023')) do
      local seq, lo, hi = string.sub(node, 1, 12), node_bounds(node)
      local pack = lo and is_tick(node) and
                   read_pack(string.sub(wait, 1, -5) .. 'p:' .. seq)
      for slot = lo or 0, pack and pack.ids and hi or -1 do
        call('HSETNX', ids, pack.ids[slot + 1], seq)
      end
    end
  end
  call('HSET', ids, '!', 'delay' .. string.rep('-', 60)) -- topic.lua
end

-- Where the tick of a schedule stands, as find_slot tells; nil: it is nowhere,
-- whatever the index says of its id. False: the id is of another job.
local function find_tick(name)
  local id = name .. '@next'
  local seq = call('HGET', KEYS[3], id)
  if not seq then return nil end
  if seq == 'D' then return false end
  local key = string.sub(KEYS[1], 1, -5) .. 'p:' .. seq
  local pack = read_pack(key)
  local job = find_slot(KEYS[1], KEYS[2], seq, pack.last, slots_with(pack, id),
                        KEYS[6])
  if not job then return nil end
  local lo, mid, hi = byte(call('GETRANGE', key, 5, 7), 1, 3)
  local head = lo + mid * 256 + hi * 65536
  local at = call('GETRANGE', key, head + 4 * job.slot, head + 4 * job.slot + 7)
  local from, to = struct.unpack('<I4I4', at)
  head = head + 4 * (pack.last + 2)
  local record = call('GETRANGE', key, head + from, head + to - 1)
  if not string.find(record, '\164cron', 1, true) then return false end
  job.seq = seq
  return job
end

-- A tick that waits comes at once. If nothing is due then, it is put off again
-- to its next time.
local function hasten_tick(topic, job, now)
  if job.runs or job.due <= now then return end
  --#include wake
  local left, mark_end = take_out(KEYS[4], job.seq, job)
  left[#left + 1] = job.region + now + job.number - floor(job.number)
  left[#left + 1] = node_name(job.seq, job.slot, job.slot)
  if now < mark_end then increment(KEYS[4], 'ready', 1) end
  redis.call('ZADD', KEYS[1], unpack(left))
  wake_one(KEYS[5], topic, now)
end

-- Can a tick be due then? Of a schedule with --at only its next plan knows.
local SLACK_MS = 5000 -- ticks are put off by that (core/tick.c)
local function is_honest(due, record, at, now)
  local every = tonumber(string.sub(record, at + 71, at + 83)) or 0
  return every == 0 or due <= now + every + SLACK_MS
end

-- Each schedule has its tick again. Those that cannot be due when they are, or
-- all if `hastens_all`, come at once. Returns how many there were none of, and
-- what `cron` has, in which N, not A, says that there can be no tick now.
local function mend_ticks(topic, cron, now, hastens_all)
  local all, count = redis.pcall('HGETALL', cron), 0
  for i = 1, #all, 2 do
    local state, from, at, record = read_schedule(all[i + 1])
    local job = state == 'A' and find_tick(all[i])
    local is_made = job ~= false
    if job == nil then
      redis.call('HDEL', KEYS[3], all[i] .. '@next')
      is_made = add_tick(topic, all[i], from, at, record, now) == true
      count = count + (is_made and 1 or 0)
    end
    if state == 'A' and not is_made then
      all[i + 1] = 'N' .. string.sub(all[i + 1], 2)
    elseif job and (hastens_all or not is_honest(job.due, record, at, now)) then
      hasten_tick(topic, job, now)
    end
  end
  return count, all
end
