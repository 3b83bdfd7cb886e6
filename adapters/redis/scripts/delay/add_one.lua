-- SPDX-License-Identifier: MIT
-- add_one: what add.lua does for one pack, where that has one job and comes as
-- an argument: nothing is staged. A server that rests between two jobs spends
-- more on the memory of a script than on the commands: the usual way calls no
-- function, and those for the rest are made when they are needed.
--
-- KEYS  wait ids meta idle seen pack
-- ARGV  topic, kind, call slot, number, when (due.lua: r or a), id ('': weir
--       made it), pack
-- Reply as of add
local call = redis.call
local function rare()
  --#include number
  --#include call_slot
  --#include room
  --#include topic
  --#include wake
  return { number_of = number_of, increment = increment,
           said_before = said_before, note_said = note_said,
           room_left = room_left, topic_kind = topic_kind,
           wake_one = wake_one }
end

local wait, ids, meta, idle, seen, key = unpack(KEYS)
local topic, kind, call_slot, number, when, id, pack = unpack(ARGV)
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local known = call('HMGET', meta, 'kind', 'max_pending', 'revision')
local revision = known[3] and (tonumber(known[3]) or 0)
if revision and not (revision > -2 ^ 45 and revision < 2 ^ 45) then
  revision = 0
end

local last = call('HGET', seen, call_slot)
if last and
   tonumber(string.match(last, '^%d+') or -1) >= tonumber(number) then
  local reply = { 0, unpack(rare().said_before(seen, call_slot, number)) }
  reply[#reply + 1] = revision or nil
  return reply
end

call('ZCARD', wait) -- as types.lua says
if known[1] ~= kind then
  if known[1] then return { -1, known[1] } end
  rare().topic_kind(meta, ids, kind)
end
local due = tonumber(string.sub(when, 2))
if string.byte(when) == 114 then due = due + now end
if due < now then due = now end
local is_full = false
if known[2] then
  local lib = rare()
  is_full = lib.room_left(meta, lib.number_of(known[2], math.huge)) < 1
end

local seq, refused = string.sub(key, -12), nil
if id ~= '' and call('HSETNX', ids, id, seq) == 0 then
  refused = 0
elseif is_full then
  refused = 256
elseif not call('SET', key, pack, 'NX') then
  refused = -1
end
if refused and refused ~= 0 and id ~= '' then call('HDEL', ids, id) end
if last and not refused then
  call('HSET', seen, call_slot, number)
else
  rare().note_said(seen, call_slot, number, { refused and 0, refused }, now)
end
if refused then return { 0, 0, refused, revision or nil } end

-- As digits() of number.lua has it.
call('ZADD', wait, string.format('%d%07d', due / 1e7, due % 1e7), seq .. '0000')
local added = redis.pcall('HINCRBY', meta, 'added', '1')
if type(added) ~= 'number' or not (added > -2 ^ 45 and added < 2 ^ 45) then
  rare().increment(meta, 'added', 1)
end

-- The worker that would sleep longest, where it has nothing in hand.
local sleeper = redis.pcall('ZRANGE', idle, '-1', '-1', 'WITHSCORES')
local at = tonumber(sleeper[2] or '-inf')
local is_woken = false
if at > due then
  local channel = string.match(wait, '^[^{]*') .. 'wake:' .. sleeper[1]
  call('ZREM', idle, sleeper[1])
  local received = redis.pcall('PUBLISH', channel,
                               due > now and topic or topic .. ' ' .. seq)
  is_woken = type(received) == 'number' and received > 0
end
if not is_woken and at + 2 ^ 45 > due then -- another one, see wake.lua
  rare().wake_one(idle, topic, due, due <= now and seq)
end
return { 1, revision or nil }
