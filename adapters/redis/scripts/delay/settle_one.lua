-- SPDX-License-Identifier: MIT
-- settle_one: what settle.lua does for one run that is done, where its node is
-- that one slot. It makes no function, as add_one.lua has it.
--
-- A worker that was handed the job may offer itself again (claim.lua), unless
-- there is something for it to claim.
--
-- KEYS  run lease ids meta held pack; due where the pack is mixed (mixed.lua),
--       wait and idle where the worker offers itself
-- ARGV  node, token, slot, id ('': it is not in the index), slots of the pack;
--       lease ms, number, worker, which server answers (server.lua) where it
--       offers itself; 1: the claim ends if nothing is left of it, 2: and the
--       worker offers itself
-- Reply as of settle; of a run that is done behind that, where its worker
--       offers itself: us until there is more to do (0: now, it offers itself
--       with a claim, -1: nothing waits)
local call = redis.call
local run, lease, ids, meta, held, key, wait, idle = unpack(KEYS)
local node, token, slot, id, slots, lease_ms, number, worker, own, ends =
  unpack(ARGV)
ends = ends or lease_ms
local due_key = not idle and wait
if slots ~= '1' or ends ~= '1' or not key then -- else nothing can be wrong
  local size = tonumber(slots) or 0
  local own_ms = ends == '2' and (idle and tonumber(lease_ms) or -1) or 0
  if not (key and size >= 1 and size <= 256 and size % 1 == 0 and
          own_ms >= 0 and own_ms <= 3600000 and own_ms % 1 == 0 and
          (ends == '1' or ends == '2' or ends == '0')) then
    return redis.error_reply('ERR the slots are not 1 to 256, the lease is ' ..
                             'none, the last argument is not 0, 1 or 2, or ' ..
                             'there are too few keys')
  end
end
local reply = { 0, 0, tonumber(slot) }
local score = call('ZSCORE', run, node)
-- Asked first: a key that this script empties cannot be asked while its slot
-- moves to another node.
local left = ends ~= '0' and
             call('ZCOUNT', run, token,
                  string.format('(%.0f', tonumber(token) + 1))
-- That of a suspect has a fraction.
if score == token or
   score and math.floor(tonumber(score)) == tonumber(token) then
  local gone = slots ~= '1' and string.byte(call('GETRANGE', key, '3', '3'))
  call('ZREM', run, node)
  local was_there = 1
  if gone and gone + 1 < tonumber(slots) then
    call('SETRANGE', key, '3', string.char(gone + 1))
  else
    was_there = call('DEL', key)
    if due_key then
      redis.pcall('HDEL', due_key, string.sub(key, -12))
    end
  end
  if id ~= '' and (was_there == 1 or -- else another job may have it (lost.lua)
                   call('HGET', ids, id) == string.sub(node, 1, 12)) then
    call('HDEL', ids, id)
  end
  local settled = redis.pcall('HINCRBY', meta, 'settled', '1')
  if type(settled) ~= 'number' or
     not (settled > -2 ^ 45 and settled < 2 ^ 45) then
    --#include number
    increment(meta, 'settled', 1)
  end
  reply = { 1 }
end
if left == reply[1] then
  call('ZREM', lease, token)
  redis.pcall('HDEL', held, token) -- held.lua
end
if ends ~= '2' or reply[1] == 0 then return reply end

local known = redis.pcall('HMGET', meta, 'paused', 'server', 'mixed', 'limits')
local head = redis.pcall('ZRANGE', wait, '0', '0', 'WITHSCORES')
local expiry = call('ZRANGE', lease, '0', '0', 'WITHSCORES')
local idlers = redis.pcall('ZCARD', idle)
reply[2] = 0
if known[1] or known[2] ~= own or known[4] or head.err or
   type(idlers) ~= 'number' or idlers >= 1000 then -- MOST_IDLE of wake.lua
  return reply
end
local at = math.floor(tonumber(head[2] or 'inf'))
if known[3] == '2' then
  local mixed = call('ZRANGEBYSCORE', wait, '35184372088832', '+inf',
                     'WITHSCORES', 'LIMIT', '0', '1')
  at = math.min(at, math.floor(tonumber(mixed[2] or 'inf') - 2 ^ 45))
end
at = math.min(at, tonumber(expiry[2] or 'inf') + 1)
local time = call('TIME')
local time_us = time[1] * 1000000 + time[2]
if at * 1000 > time_us then
  call('ZADD', idle, at < math.huge and string.format('%.0f', at) or '+inf',
       worker)
  call('HSET', meta, 'offer', string.format('%s %s %.0f %s', lease_ms, number,
                                            time_us, worker))
  reply[2] = at < math.huge and math.min(at * 1000 - time_us, 2 ^ 53) or -1
end
return reply
