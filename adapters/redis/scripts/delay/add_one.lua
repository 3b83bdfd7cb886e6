-- SPDX-License-Identifier: MIT
-- add_one: what add.lua does for one pack, where that has one job and comes as
-- an argument: nothing is staged.
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
--#include lone_rare

local wait, ids, meta, idle, seen, run, lease, held, key = unpack(KEYS)
local topic, kind, call_slot, number, when, id, pack, own = unpack(ARGV)
local time = call('TIME')
local now_text = time[1] .. string.sub('00000' .. time[2], -6, -4)
local now = tonumber(now_text)
local known = call('HMGET', meta, 'kind', 'max_pending', 'revision', 'offer',
                   'paused', 'server', 'claimed', 'mixed')
local revision = known[3] and (tonumber(known[3]) or 0)
if revision and not (revision > -2 ^ 45 and revision < 2 ^ 45) then
  revision = 0
end

local last = call('HGET', seen, call_slot)
-- The first call of a call slot checks the text behind the digits.
local whole = string.match(number, last and '^%d+' or '^(%d+)%.?%d*$')
if kind ~= 'delay' or not whole or #whole > 15 or #number > 31 or not own or
   when ~= 'r0' and
   (#when > 14 or not string.find(when, '^[ra]%-?%d+$')) then
  if known[1] and known[1] ~= kind then return { -1, known[1] } end
  return redis.error_reply('ERR the kind is not delay, the number or the ' ..
                           'time is none, or there are fewer than 8 arguments')
end
if last and (string.match(last, '^%d+') or -1) - whole >= 0 then
  local said = rare().said_before(seen, call_slot, number, whole)
  local reply = { 0, unpack(said) }
  reply[#reply + 1] = revision or nil
  return reply
end

local seq, refused, next_added = string.sub(key, -12), nil, nil
repeat
  --#include lone
until true
if not refused then return { 1, revision or nil } end
if type(refused) == 'string' then return { -1, refused } end
return { 0, 0, refused, revision or nil }
