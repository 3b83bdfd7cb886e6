-- SPDX-License-Identifier: MIT
-- undeliverable: entries in the outbox whose target cannot take them become
-- dead here, as if they had failed, and their pack and entry of `relay` go.
-- Where that was done before nothing happens.
-- If the pack is lost, its entries are counted instead.
--
-- KEYS  meta dead held past relay, pack
-- ARGV  name of the entry of `relay`, most dead entries, then for each: id,
--       bytes, past; or how many are lost
-- Reply { how many died, how many other dead entries went for them }; 0: it was
--       done before
--#include node
--#include number
--#include dead
local meta, dead, held, past, relay, pack = unpack(KEYS)
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
--#include args
local lost = not ARGV[4] and ARGV[3]
local wrong = too_few(6, lost and 3 or 3 * math.ceil((#ARGV - 2) / 3) + 2) or
              bad_number('the number of dead entries', ARGV[2], 0, 2 ^ 32) or
              lost and bad_number('the number of lost entries', lost, 1, 256)
if wrong then return wrong end
if call('HEXISTS', relay, ARGV[1]) == 0 then return 0 end
increment(meta, 'lost', lost and tonumber(lost) or 0)
for i = 3, lost and 0 or #ARGV, 3 do
  call('ZADD', dead, now, ARGV[i])
  call('HSET', held, ARGV[i], ARGV[i + 1])
  call('HSET', past, ARGV[i], ARGV[i + 2])
end
local evicted = drop_oldest(meta, dead, tonumber(ARGV[2]), held, past)
call('DEL', pack)
call('HDEL', relay, ARGV[1])
return { lost and 0 or (#ARGV - 2) / 3, evicted }
