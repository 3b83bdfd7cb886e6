-- SPDX-License-Identifier: MIT
-- slot: look at one job, delete it in whatever state it is, or give it another
-- due time while it waits. The caller has read where the index says that the
-- job is, and names that pack.
--
-- KEYS  wait run ids meta pack dead rec, idle (only to reschedule), due (only
--       where mixed packs are met, mixed.lua), absent, and to be told who runs
--       a job: lease held
-- ARGV  show|delete|reschedule, id, place (12 characters, or D for dead), slot
--       ('' = by the pack's id block; else the id is a made one and not in the
--       index); and to reschedule: topic, r<ms> from now or a<ms> server time
-- Reply { 'none' } no such job | { 'moved' } the index has changed, ask again |
--       { scheduled|ready|running|dead, due ms or -1, leases that
--       ended and count (suspect.lua), slot }, of a running one, where these
--       keys are given, behind that ms until its lease ends, when it was
--       claimed (0: not known) and by whom (held.lua; '': not known); of a
--       rescheduled job the state before and the new due time. An error where
--       that is no time of at most 13 digits, the slot none, or the job waits
--       in a mixed pack and `due` is not given: nothing was done
--#include node
--#include number
--#include mixed
--#include pack
--#include suspect
--#include wake
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local wait, run, ids, meta, pack_key, dead, rec = unpack(KEYS)
local due_key = KEYS[9]
local verb, id, seq, slot = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local deletes, reschedules = verb == 'delete', verb == 'reschedule'
local by_index = slot == ''
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
if pack.last < 0 then -- it is lost: do not hold its ids for ever
  if deletes and by_index then call('HDEL', ids, id) end
  return { 'none' }
end

-- The slots that may hold the job. An id is in a pack twice when one of them
-- was refused by add.
local candidates = {}
if by_index then
  for i, name in ipairs(pack.ids or {}) do
    if name == id then candidates[#candidates + 1] = i - 1 end
  end
elseif not pack.ids and tonumber(slot) <= pack.last then
  candidates[1] = tonumber(slot)
end

-- The at most nine nodes that can hold a slot, from the root down.
local function nodes_above(target)
  local path, lo, hi = {}, 0, pack.last
  while true do
    path[#path + 1] = node_name(seq, lo, hi)
    if lo == hi then return path end
    local half = left_size(lo, hi)
    if target < lo + half then hi = lo + half - 1 else lo = lo + half end
  end
end

local function find(target)
  local path = nodes_above(target)
  for _, key in ipairs({ wait, run }) do
    local scores = call('ZMSCORE', key, unpack(path))
    for i = 1, #path do
      if scores[i] then return key, path[i], scores[i] end
    end
  end
end

local where, node, score, found
for _, candidate in ipairs(candidates) do
  where, node, score = find(candidate)
  if where then
    found = candidate
    break
  end
end
if not where then return { 'none' } end

local running = where == run
local region = not running and tonumber(score) >= MIXED and MIXED or 0
if region > 0 and not due_key then
  return redis.error_reply('ERR the job is in a mixed pack: give the key ' ..
                           'due behind idle')
end
local lo, hi = node_bounds(node)
local entry = region > 0 and lo < hi and
              read_table(call('HGET', due_key, seq), hi)
local number = bounded_score(score - region)
local due = entry and due_at(entry, found) or floor(number)
local state = running and 'running' or due <= now and 'ready' or 'scheduled'
local reply = { state, running and -1 or due, suspicion(number), found }
local function tell_lease(lease, held)
  local token = digits(floor(number))
  local deadline = number_of(redis.pcall('ZSCORE', lease, token), now)
  local bytes = redis.pcall('HGET', held, token)
  local flat = type(bytes) == 'string' and table_of(bytes) or {}
  local worker, since = tostring(flat[#flat - 1]), number_of(flat[#flat])
  reply[5], reply[6], reply[7] = math.max(deadline - now, 0), 0, ''
  if sub(worker, 1, 1) == '@' then
    reply[6], reply[7] = since, sub(worker, 2)
  end
end
if running and KEYS[12] and not deletes then tell_lease(KEYS[11], KEYS[12]) end
if not deletes and not (reschedules and not running) then return reply end

-- Take the slot out of its node; what is left of the node goes back.
local entries, own = {}, { [found] = true }
local marks = call('HMGET', meta, 'mark', 'mixed_mark')
local mark_end = number_of(marks[region > 0 and 2 or 1], -1) + 1
if entry then
  spread(entries, entry, seq, lo, hi, own, number - floor(number), mark_end)
else
  carve(entries, score, seq, lo, hi, own)
end
call('ZREM', where, node)
if not running and due < mark_end then
  increment(meta, 'ready', -1)
end
if reschedules then -- it stays a suspect
  local ms = tonumber(sub(ARGV[6], 2))
  local at = math.max(now, sub(ARGV[6], 1, 1) == 'a' and ms or now + ms)
  entries[#entries + 1] = region + at + number - floor(number)
  entries[#entries + 1] = node_name(seq, found, found)
  call('ZADD', wait, unpack(entries))
  if at < mark_end then increment(meta, 'ready', 1) end
  wake_one(KEYS[8], ARGV[5], at)
  reply[2] = at
  return reply
end
if #entries > 0 then call('ZADD', where, unpack(entries)) end
if by_index then call('HDEL', ids, id) end
note_gone(pack_key, pack, 1, due_key)
increment(meta, running and 'delrun' or 'delwait', 1)
return reply
