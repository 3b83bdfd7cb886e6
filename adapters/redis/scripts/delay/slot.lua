-- SPDX-License-Identifier: MIT
-- slot: look at one job, delete it in whatever state it is, or give it another
-- due time while it waits. The caller has read where the index says that the
-- job is, and names that pack.
--
-- KEYS  wait run ids meta pack dead rec, idle (to reschedule, and to wake
--       somebody where a job is deleted that kept others waiting), due (only
--       where mixed packs are met, mixed.lua), absent, and to be told who runs
--       a job: lease held
-- ARGV  show|delete|reschedule, id, place (12 characters, or D for dead), slot
--       ('' = by the pack's id block; else the id is a made one and not in the
--       index); and to reschedule: topic, r<ms> from now or a<ms> server time
-- Reply { 'none' } no such job | { 'moved' } the index has changed, ask again |
--       { 'tick' } it is to stay, while its schedule goes on (cron.lua) |
--       { scheduled|ready|running|dead, due ms or -1, leases that
--       ended and count (suspect.lua), slot }, of a running one, where these
--       keys are given, behind that ms until its lease ends, when it was
--       claimed (0: not known) and by whom (held.lua; '': not known); to show a
--       suspect, { ms and worker of each crash... } in the eighth place; of a
--       rescheduled job the state before and the new due time. An error where
--       that is no time of at most 13 digits, the slot none, or the job waits
--       in a mixed pack and `due` is not given: nothing was done
--#include node
--#include number
--#include mixed
--#include pack
--#include suspect
--#include slot
--#include wake
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local wait, run, ids, meta, pack_key, dead, rec = unpack(KEYS)
local due_key = KEYS[9]
local verb, id, seq, slot = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local deletes, reschedules = verb == 'delete', verb == 'reschedule'
local by_index = slot == ''
local prefix = sub(wait, 1, -5)
--#include args
local wrong = too_few(7, reschedules and 6 or 4)
if wrong then return wrong end
if reschedules and not (#ARGV[6] < 15 and
                        string.find(ARGV[6], '^[ra]%-?%d+$')) then
  return redis.error_reply('ERR the time is neither r<ms> nor a<ms>')
end

if not string.find(slot, '^%d?%d?%d?$') then
  return redis.error_reply('ERR the slot is neither empty nor 0 to 255')
end
local place = call('HGET', ids, id)
if by_index and place ~= seq or not by_index and place then
  return { place and 'moved' or 'none' }
end
if seq == 'D' then
  local died = call('ZSCORE', dead, id)
  if deletes then
    call('HDEL', ids, id)
    call('ZREM', dead, id)
    call('HDEL', rec, id)
  end
  return { 'dead', number_of(died, -1), 0, -1 }
end

local pack = read_pack(pack_key)
local slots = {}
if by_index then
  slots = slots_with(pack, id)
elseif not pack.ids and tonumber(slot) <= pack.last then
  slots[1] = tonumber(slot)
end
local job = find_slot(wait, run, seq, pack.last, slots, due_key)
if not job then -- it is lost: its id is free
  if deletes and by_index then call('HDEL', ids, id) end
  return { 'none' }
end
local is_laned = job.region > MIXED
if job.region == MIXED and not due_key then
  return redis.error_reply('ERR the job is in a mixed pack: give the key ' ..
                           'due behind idle')
end
local running, number = job.runs, job.number
local state = running and 'running' or job.due <= now and 'ready' or
              'scheduled'
local reply = { state, running and -1 or job.due, suspicion(number), job.slot }
local function tell_lease(lease, held)
  local token = digits(floor(number))
  local deadline = number_of(redis.pcall('ZSCORE', lease, token), now)
  local bytes = redis.pcall('HGET', held, token)
  local flat = type(bytes) == 'string' and table_of(bytes) or {}
  local worker, since, most = unpack(flat, math.max(#flat - 2, 1))
  worker, since = tostring(worker), number_of(since)
  reply[5], reply[6], reply[7] = math.max(deadline - now, 0), 0, ''
  if tonumber(most) then reply[5] = min(reply[5], most) end
  if sub(worker, 1, 1) == '@' then
    reply[6], reply[7] = since, sub(worker, 2)
  end
end
if running and KEYS[12] and not deletes then tell_lease(KEYS[11], KEYS[12]) end
if verb == 'show' and reply[3] > 0 then
  --#include crashes
  local told = {}
  for _, crash in ipairs(crashes_of(prefix .. 'started', seq, job.slot,
                                    reply[3])) do
    local last = #told
    told[last + 1], told[last + 2], told[last + 3] = crash[1], crash[4],
                                                     crash[3]
  end
  for i = 5, 7 do reply[i] = reply[i] or '' end
  reply[8] = told
end
if not deletes and not (reschedules and not running) then return reply end
if sub(id, -5) == '@next' then -- one that rests has none
  local value = redis.pcall('HGET', prefix .. 'cron', sub(id, 1, -6))
  if type(value) == 'string' and sub(value, 1, 1) == 'A' then
    return { 'tick' }
  end
end

local lane = (is_laned or running) and redis.pcall('HGET', prefix .. 'of', seq)
lane = type(lane) == 'string' and lane
local enter, leave, forget -- of lanes.lua
if lane then
  --#include lanes
  look_at_lanes(prefix)
  enter, leave = lane_entrance(prefix, meta, now), leave_lane
  forget = forget_lanes
end
local left, mark_end = take_out(meta, seq, job)
if is_laned and not lane then job.region = 0 end
-- The node of a job that waited is gone, unless it was a node of its own that
-- waits again.
local function leave_lane_of(job)
  local is_anew = not deletes and job.lo == job.hi
  if not lane or not is_laned or is_anew then return end
  --#include lane_left
  leave_wait(prefix, { job.node }, { [seq] = lane })
end
local function put(node, at) -- a suspect stays one
  local fraction = number - floor(number)
  if job.region == MIXED and fraction == LOST_DUE then fraction = 0 end
  if lane then
    enter(left, node, at, fraction, lane)
  else
    left[#left + 1] = job.region + at + fraction
    left[#left + 1] = node
  end
end
if is_laned then -- the rest of its node stays
  local rest = left
  left = {}
  for i = 2, #rest, 2 do put(rest[i], job.due) end
end
if reschedules then
  local ms = tonumber(sub(ARGV[6], 2))
  local at = math.max(now, sub(ARGV[6], 1, 1) == 'a' and ms or now + ms)
  put(node_name(seq, job.slot, job.slot), at)
  if at < mark_end then increment(meta, 'ready', 1) end
  call('ZADD', wait, unpack(left))
  leave_lane_of(job)
  wake_one(KEYS[8], ARGV[5], at)
  reply[2] = at
  return reply
end
if #left > 0 then call('ZADD', job.key, unpack(left)) end
leave_lane_of(job)
if by_index then call('HDEL', ids, id) end
if running and lane then leave(prefix, job.node, lane, now, left) end
local is_gone = note_gone(pack_key, pack, 1, due_key)
if is_gone and lane then forget(prefix, { seq }) end
increment(meta, running and 'delrun' or 'delwait', 1)
if running and call('HEXISTS', meta, 'limits') == 1 then
  --#include held
  --#include tokens
  --#include deleted
  local node, token = node_name(seq, job.slot, job.slot), floor(number)
  local ended, started = suspicion(number)
  if ended > 0 and not started then -- it will not
    local spared, sleepers = { { node, token, 1, lane } }, prefix .. 'idle'
    for _, sleeper in ipairs(give_tokens(meta, prefix .. 'held', sleepers,
                                         spared, time)) do
      call('ZREM', sleepers, sleeper)
      publish(sleeper, string.match(wait, '{(.*)}'))
    end
  else
    note_deleted(prefix .. 'held', digits(token), { node }, { [seq] = lane })
  end
end
if running and KEYS[8] then
  --#include ready
  if has_ready(wait, now) then
    wake_one(KEYS[8], string.match(wait, '{(.*)}'), now)
  end
end
return reply
