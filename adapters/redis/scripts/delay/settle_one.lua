-- SPDX-License-Identifier: MIT
-- settle_one: what settle.lua does for one run that is done, where its node is
-- that one slot. It makes no function, as add_one.lua has it.
--
-- KEYS  run lease ids meta held pack; due where the pack is mixed (mixed.lua)
-- ARGV  node, token, slot, id ('': it is not in the index), slots of the pack,
--       1: the claim ends if nothing is left of it
-- Reply as of settle
local call = redis.call
local run, lease, ids, meta, held, key, due_key = unpack(KEYS)
local node, token, slot, id, slots, closes = unpack(ARGV)
local reply = { 0, 0, tonumber(slot) }
local score = call('ZSCORE', run, node)
-- Asked first: a key that this script empties cannot be asked while its slot
-- moves to another node.
local left = closes == '1' and
             call('ZCOUNT', run, token,
                  string.format('(%.0f', tonumber(token) + 1))
-- That of a suspect has a fraction.
if score == token or
   score and math.floor(tonumber(score)) == tonumber(token) then
  local gone = slots ~= '1' and string.byte(call('GETRANGE', key, '3', '3'))
  call('ZREM', run, node)
  if id ~= '' then call('HDEL', ids, id) end
  if gone and gone + 1 < tonumber(slots) then
    call('SETRANGE', key, '3', string.char(gone + 1))
  else
    call('DEL', key)
    if due_key then
      redis.pcall('HDEL', due_key, string.sub(key, -12))
    end
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
return reply
