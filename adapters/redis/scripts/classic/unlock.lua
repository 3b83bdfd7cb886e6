-- SPDX-License-Identifier: MIT
-- unlock: release the lock if it is still the consumer's, and wake one of
-- the workers that wait for it.
--
-- KEYS  lock lockers absent
-- ARGV  consumer, topic
-- Reply { 1 }, or { 0 } when the lock was lost before
local call = redis.call
--#include wake
--#include args
local wrong = too_few(2, 2)
if wrong then return wrong end
local lock, lockers = KEYS[1], KEYS[2]
if call('GET', lock) ~= ARGV[1] then return { 0 } end
call('DEL', lock)
for _ = 1, MOST_IDLE do
  local first = call('ZRANGE', lockers, 0, 0)[1]
  if not first then break end
  call('ZREM', lockers, first)
  if publish(first, ARGV[2]) > 0 then break end
end
return { 1 }
