-- SPDX-License-Identifier: MIT
-- peek: look at the head. A worker that finds nothing due is registered
-- as idle until something is.
--
-- KEYS  fifo idle
-- ARGV  worker, 1 if it has messages in hand
-- Reply { time in us, message }, or { time in us } when there is none
--#include message
--#include number
--#include wake
if not (KEYS[2] and ARGV[2]) then
  return redis.error_reply('ERR there are fewer than 2 keys or 2 arguments')
end
local time = call('TIME')
local time_us = time[1] * 1000000 + time[2]
local now, head = floor(time_us / 1000), call('LINDEX', KEYS[1], 0)
local message = head or ''
--#include from_ahead
if message ~= (head or '') then
  --#include full
  needs_no_room(KEYS[2])
  call('LSET', KEYS[1], 0, message)
end
local due = head and due_of(message)
if not head or due * 1000 > time_us then
  fall_asleep(KEYS[2], ARGV[1], due or nil, ARGV[2] == '1')
end
return { time_us, head and message }
