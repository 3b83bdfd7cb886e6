-- SPDX-License-Identifier: MIT
-- lock: take the lock of a sync topic, or ask to be woken when it is free.
--
-- KEYS  lock lockers
-- ARGV  consumer, worker, ms after which the lock is free by itself
-- Reply { 1 }, or { 0, ms until it is free by itself }
local call = redis.call
--#include wake
--#include full
local lock, lockers = KEYS[1], KEYS[2]
needs_no_room(lockers)
if call('SET', lock, ARGV[1], 'NX', 'PX', ARGV[3]) then return { 1 } end
local free_ms = call('PTTL', lock)
if free_ms == -1 then -- nobody's: those of consumers end by themselves
  call('SET', lock, ARGV[1], 'PX', ARGV[3])
  return { 1 }
end
if not call('ZSCORE', lockers, ARGV[2]) then
  fall_asleep(lockers, ARGV[2], call('TIME')[1])
end
return { 0, free_ms }
