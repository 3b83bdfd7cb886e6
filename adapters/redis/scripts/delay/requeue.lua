-- SPDX-License-Identifier: MIT
-- requeue: dead jobs become ready again in a new pack, staged as for add. Those
-- that are not dead since the time given are left out.
--
-- KEYS  wait ids meta dead rec idle pack absent
-- ARGV  topic, jobs, header length, [ time of death, ... ] as msgpack, when
--       (due.lua; default: now), the last 16 bytes of the pack
-- Reply { requeued }, or { -1 } when the pack was not staged, or is another
--       producer's: nothing was done
--#include node
--#include number
--#include due
--#include wake
--#include args
--#include when
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local wait, ids, meta, dead, rec, idle, pack = unpack(KEYS)
local topic, jobs, header_len = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local died = cmsgpack.unpack(ARGV[4])
local wrong = too_few(7, 4) or
              bad_number('the number of jobs', ARGV[2], 1, 256) or
              bad_number('the header length', ARGV[3], 8, 2 ^ 24)
if wrong then return wrong end
local are_times = type(died) == 'table' and is_when(ARGV[5] or 'r0', jobs)
for i = 1, are_times and jobs or 0 do
  are_times = are_times and not bad_number('', died[i], 0, 2 ^ 53)
end
if not are_times then
  return redis.error_reply('ERR the times of death or the time are none')
end

if ARGV[6] and call('GETRANGE', pack, '-16', '-1') ~= ARGV[6] then
  return { -1 }
end
local is_repeat = call('PERSIST', pack) == 0
if is_repeat and call('EXISTS', pack) == 0 then return { -1 } end

local seq = sub(pack, -12)
local names = table_of(call('GETRANGE', pack, 8, header_len - 1))
for i = 1, jobs do
  if type(names[i]) ~= 'string' then names[i] = '' end -- nobody's id
end
local scores = call('ZMSCORE', dead, unpack(names, 1, jobs))
local gone, count, fields, moved = {}, 0, {}, {}
for slot = 0, jobs - 1 do
  local name, score = names[slot + 1], scores[slot + 1]
  if score and math.max(floor(tonumber(score)), 0) == died[slot + 1] then
    fields[#fields + 1] = name
    fields[#fields + 1] = seq
    moved[#moved + 1] = name
  else
    gone[slot] = true
    count = count + 1
  end
end
if count == jobs then
  if is_repeat then
    return { jobs - (byte(call('GETRANGE', pack, 3, 3)) or 0) }
  end
  call('DEL', pack)
  return { 0 }
end

-- Jobs leave the dead when they wait: should this end in between, a repeat
-- finds them still dead and does it again.
call('HSET', ids, unpack(fields))
if count > 0 then call('SETRANGE', pack, 3, char(count)) end
local entries = {}
enter(entries, seq, jobs, ARGV[5] or 'r0', now, count > 0 and gone or nil)
call_list('ZADD', wait, entries)
call('ZREM', dead, unpack(moved))
call('HDEL', rec, unpack(moved))
increment(meta, 'requeued', #moved)
wake_one(idle, topic, now)
return { #moved }
