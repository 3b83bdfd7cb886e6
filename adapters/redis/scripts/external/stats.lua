-- SPDX-License-Identifier: MIT
-- feed_stats: counts of a topic that is a list or a stream.
--
-- KEYS  meta wait run dead auto, the list or stream
-- ARGV  group ('': a list)
-- Reply { time in ms, kind ('' = no such topic), 1 if paused, scheduled, ready,
--         running, dead, 1 if ready is exact, added, done, retried, failed,
--         expired, crashed, dropped }
--#include lag
--#include number
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local meta, wait, run, dead, auto, source = unpack(KEYS)
local names = { 'taken', 'purged', 'done', 'retried', 'failed', 'expired',
                'crashed', 'dropped', 'lost' }
local count = {}
for i, value in ipairs(call('HMGET', meta, unpack(names))) do
  count[names[i]] = number_of(value)
end
local options = call('HMGET', meta, 'kind', 'paused')

local left, exact = feed_left(source, ARGV[1])
local due = call('ZCOUNT', wait, '-inf', now)
local running = call('ZCARD', run)
for _, jobs in ipairs(call('HVALS', auto)) do
  running = running + number_of(jobs)
end
return { now, options[1] or '', options[2] and 1 or 0,
         call('ZCARD', wait) - due, left + due, running, call('ZCARD', dead),
         exact, count.taken + count.purged + left, count.done, count.retried,
         count.failed, count.expired, count.crashed,
         count.dropped + count.lost }
