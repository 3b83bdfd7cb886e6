-- SPDX-License-Identifier: MIT
-- add_one: what add.lua does for one pack, where that has one job and comes as
-- an argument: nothing is staged. A server that rests between two jobs spends
-- more on the memory of a script than on the commands: the usual way calls no
-- function, and those for the rest are made when they are needed.
--
-- Where a worker offered itself (claim.lua) and the job is what a claim would
-- take first, the worker is handed it: the job runs at once, under a lease, and
-- the worker is told TOPIC NODE TOKEN DUE_MS TIME_US AGE_US NUMBER REVISION
-- SERVER PACK, with blanks in between: the age and the number of its offer. An
-- offer is good for one job. Where nobody hears of it the token is burnt, so
-- that no claim has it again.
--
-- KEYS  wait ids meta idle seen run lease held pack
-- ARGV  topic, kind, call slot, number, when (due.lua: r or a), id ('': weir
--       made it), pack, which server answers (server.lua; '': nobody is
--       handed it)
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

local wait, ids, meta, idle, seen, run, lease, held, key = unpack(KEYS)
local topic, kind, call_slot, number, when, id, pack, own = unpack(ARGV)
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local known = call('HMGET', meta, 'kind', 'max_pending', 'revision', 'offer',
                   'paused', 'server', 'claimed', 'mixed')
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

local added = redis.pcall('HINCRBY', meta, 'added', '1')
if type(added) ~= 'number' or not (added > -2 ^ 45 and added < 2 ^ 45) then
  rare().increment(meta, 'added', 1)
end

local node, channel = seq .. '0000', string.match(wait, '^[^{]*') .. 'wake:'
local lease_ms, offer, since, worker
if known[4] and own ~= '' and known[6] == own and not known[5] and
   due <= now and #(known[7] or '') < 14 and
   string.find(known[7] or '', '^[1-9]%d*$') then
  lease_ms, offer, since, worker = string.match(known[4],
                                                '^(%d+) (%d+) (%d+) (.+)$')
end
if worker then
  local head = call('ZRANGE', wait, '0', '0', 'WITHSCORES')
  local mixed = known[8] == '2' and
                call('ZRANGEBYSCORE', wait, '35184372088832',
                     string.format('%.0f', 2 ^ 45 + now), 'LIMIT', '0', '1')
  if tonumber(head[2] or 'inf') <= now or mixed and mixed[1] or
     type(redis.pcall('ZCARD', run)) ~= 'number' or
     type(redis.pcall('ZCARD', lease)) ~= 'number' then
    worker = nil
  end
end
if worker then
  local time_us = time[1] * 1000000 + time[2]
  local token = string.format('%.0f', call('HINCRBY', meta, 'claimed', '1'))
  local told = string.format('%s %s %s %.0f %.0f %.0f %s %.0f %s ', topic, node,
                             token, due, time_us, time_us - since, offer,
                             revision or 0, own)
  call('HDEL', meta, 'offer')
  local received = redis.pcall('PUBLISH', channel .. worker, told .. pack)
  if type(received) == 'number' and received > 0 then
    call('ZADD', run, token, node)
    call('ZADD', lease, string.format('%.0f', now + lease_ms), token)
    local taken = cmsgpack.pack({ node, due, '@' .. worker, now })
    redis.pcall('HSET', held, token, taken) -- held.lua
    redis.pcall('ZREM', idle, worker)
    return { 1, revision or nil }
  end
  rare().increment(meta, 'returned', 1)
end

-- As digits() of number.lua has it.
call('ZADD', wait, string.format('%d%07d', due / 1e7, due % 1e7), node)

-- The worker that would sleep longest, where it has nothing in hand.
local sleeper = redis.pcall('ZRANGE', idle, '-1', '-1', 'WITHSCORES')
local at = tonumber(sleeper[2] or '-inf')
local is_woken = false
if at > due then
  call('ZREM', idle, sleeper[1])
  local received = redis.pcall('PUBLISH', channel .. sleeper[1],
                               due > now and topic or topic .. ' ' .. seq)
  is_woken = type(received) == 'number' and received > 0
end
if not is_woken and at + 2 ^ 45 > due then -- another one, see wake.lua
  rare().wake_one(idle, topic, due, due <= now and seq)
end
return { 1, revision or nil }
