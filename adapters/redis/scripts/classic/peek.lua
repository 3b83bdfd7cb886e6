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
local time = call('TIME')
local time_us = time[1] * 1000000 + time[2]
local message = call('LINDEX', KEYS[1], 0)
local due = message and due_of(message) or nil
if not message or due * 1000 > time_us then
  fall_asleep(KEYS[2], ARGV[1], due, ARGV[2] == '1')
end
return { time_us, message }
