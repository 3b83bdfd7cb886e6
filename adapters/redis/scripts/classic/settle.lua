-- SPDX-License-Identifier: MIT
-- settle: what becomes of a message that was taken. One that was parked
-- must still be; others were counted as done when they were taken.
--
-- KEYS  fifo parked alive meta options idle absent
-- ARGV  topic, consumer ('' = not parked), what: done, retry or snooze (to the
--       tail, due anew), back (to the head as it is), fail or expire (gone);
--       own delay in ms (-1: none), id, record; of back: '', message
-- Reply { 1 }, or { 0 } when it was not parked any more
--#include message
--#include number
--#include wake
--#include queue
--#include full
local fifo, parked, alive, meta, options, idle = unpack(KEYS)
local topic, consumer, what = ARGV[1], ARGV[2], ARGV[3]
--#include args
local wrong = too_few(6, 6) or
              bad_word('what', what, 'done retry snooze back fail expire') or
              bad_number('the delay in ms', ARGV[4], -1, MOST_MS) or
              #ARGV[5] > 128 and redis.error_reply('ERR the id is too long')
if wrong then return wrong end
local delay
if what ~= 'done' then
  delay = delay_of(options, meta, ARGV[4])
  call('LLEN', fifo) -- an error where it is of another type
  needs_no_room(alive) -- nobody else may have it
end
if consumer ~= '' then
  if call('HDEL', parked, consumer) == 0 then return { 0 } end
  call('ZREM', alive, consumer)
  if what == 'done' then increment(meta, 'done', 1) end
elseif what ~= 'done' then
  increment(meta, 'done', -1)
end
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
if what == 'retry' or what == 'snooze' then
  local due = now + delay
  call('RPUSH', fifo, message_of(ARGV[5], due, now, ARGV[6]))
  if what == 'retry' then increment(meta, 'retried', 1) end
  wake_one(idle, topic, due)
elseif what == 'back' then
  call('LPUSH', fifo, ARGV[6])
  wake_one(idle, topic, due_of(ARGV[6]))
elseif what == 'fail' then
  increment(meta, 'failed', 1)
elseif what == 'expire' then
  increment(meta, 'expired', 1)
end
return { 1 }
