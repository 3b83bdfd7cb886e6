-- SPDX-License-Identifier: MIT
-- requeue: dead entries become ready again, or are forgotten.
--
-- KEYS  meta wait held past dead absent
-- ARGV  id ('': the 500 oldest), '1' to forget it
-- Reply { kind ('' = no such topic), entries, 1 if there may be more }
--#include types
local call = redis.call
--#include args
local wrong = too_few(5, 2)
if wrong then return wrong end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local meta, wait, held, past, dead = unpack(KEYS)
local kind = call('HGET', meta, 'kind') or ''
local ids = { ARGV[1] }
if ARGV[1] == '' then
  ids = call('ZRANGE', dead, 0, 499)
end
needs_zsets(wait)
needs_hashes(held, past)
local count = 0
for _, id in ipairs(ids) do
  if call('ZREM', dead, id) == 1 then
    count = count + 1
    call('HDEL', past, id)
    if ARGV[2] == '1' then
      call('HDEL', held, id)
    else
      call('ZADD', wait, now, id)
    end
  end
end
return { kind, count, #ids == 500 and 1 or 0 }
