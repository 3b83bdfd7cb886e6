-- SPDX-License-Identifier: MIT
-- lock: take the lock of a sync topic, or ask to be woken when it is free.
--
-- KEYS  lock lockers meta
-- ARGV  consumer, worker, ms after which the lock is free by itself
-- Reply { 1 }, or { 0, ms until it is free by itself }
local call = redis.call
--#include wake
--#include full
--#include number
--#include longest
local lock, lockers, own_ms = KEYS[1], KEYS[2], tonumber(ARGV[3])
--#include args
local wrong = too_few(3, 3) or
              bad_number('the lease in ms', ARGV[3], 1, HOUR_MS)
if wrong then return wrong end
needs_no_room(lockers)
local free_ms
if not call('SET', lock, ARGV[1], 'NX', 'PX', digits(own_ms)) then
  free_ms = call('PTTL', lock)
end
if free_ms == -1 then -- nobody's: those of consumers end by themselves
  call('SET', lock, ARGV[1], 'PX', digits(own_ms))
  free_ms = nil
end
if not free_ms then
  note_length(KEYS[3], own_ms)
  return { 1 }
end
local SLACK_MS = 1000 -- for small steps of the clock
if free_ms > own_ms + SLACK_MS then -- it may be of a clock that was ahead
  local most = math.max(longest(KEYS[3]), own_ms)
  if free_ms > most + SLACK_MS then
    call('SET', lock, call('GET', lock), 'PX', digits(most))
    free_ms = most
  end
end
if not call('ZSCORE', lockers, ARGV[2]) then
  fall_asleep(lockers, ARGV[2], call('TIME')[1])
end
return { 0, free_ms }
