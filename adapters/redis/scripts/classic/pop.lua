-- SPDX-License-Identifier: MIT
-- pop: take the message at the head, and park it in the same step where
-- that is wanted. A worker that finds nothing is registered as idle.
--
-- KEYS  fifo parked alive meta idle lock absent
-- ARGV  consumer, worker, lease ms, what to do with it: park (until it is
--       settled), done (it counts as done) or none (it is parked later),
--       1 if the consumer must hold the lock, 1 if the worker has messages in
--       hand, which server answers (server.lua)
-- Reply { time in us, token, message }, { time in us, 0 } when there is none,
--       { time in us, -1 } when the lock is lost
local call = redis.call
--#include number
--#include longest
--#include server
--#include wake
--#include types
local fifo, parked, alive, meta, idle, lock = unpack(KEYS)
local consumer, todo = ARGV[1], ARGV[4]
--#include args
local wrong = too_few(6, 7) or
              bad_number('the lease in ms', ARGV[3], 0, HOUR_MS) or
              bad_word('what to do', todo, 'park done none') or
              bad_server(ARGV[7])
if wrong then return wrong end
local time = call('TIME')
local time_us = time[1] * 1000000 + time[2]
if ARGV[5] == '1' and call('GET', lock) ~= consumer then
  return { time_us, -1 }
end
if todo == 'park' then
  needs_hashes(parked)
  needs_zsets(alive)
else
  needs_hashes(meta)
end
local message = call('LPOP', fifo)
if not message then
  fall_asleep(idle, ARGV[2], nil, ARGV[6] == '1')
  return { time_us, 0 }
end
local now = math.floor(time_us / 1000)
--#include from_ahead
if todo == 'park' then
  call('HSET', parked, consumer, message)
  note_length(meta, tonumber(ARGV[3]))
  call('ZADD', alive, now + ARGV[3], consumer)
elseif todo == 'done' then
  increment(meta, 'done', 1)
end
if ARGV[7] ~= '' then
  meet_server(meta, alive, 'claimed', nil, ARGV[7], tonumber(ARGV[3]), now)
end
return { time_us, increment(meta, 'claimed', 1, first_token(now)), message }
