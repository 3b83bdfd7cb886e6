-- SPDX-License-Identifier: MIT
-- park: park a message that was taken in a step of its own.
--
-- KEYS  parked alive meta
-- ARGV  consumer, lease ms, message
-- Reply { 1 }
local call = redis.call
--#include number
--#include longest
--#include full
--#include args
local wrong = too_few(3, 3) or
              bad_number('the lease in ms', ARGV[2], 0, HOUR_MS)
if wrong then return wrong end
local time = call('TIME')
needs_no_room(KEYS[2]) -- the message lies nowhere else
note_length(KEYS[3], tonumber(ARGV[2]))
call('HSET', KEYS[1], ARGV[1], ARGV[3])
call('ZADD', KEYS[2], time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2],
     ARGV[1])
return { 1 }
