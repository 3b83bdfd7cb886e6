-- SPDX-License-Identifier: MIT
-- fifo_stats: counts of a topic.
--
-- KEYS  fifo parked meta
-- Reply { time in ms, kind ('' = no such topic), 1 if paused, scheduled, ready,
--         parked, 0 dead, 1 (ready is exact), added, done, retried, failed,
--         expired, crashed, 0 dropped }
--#include message
--#include number
local fifo, parked, meta = unpack(KEYS)
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local of = call('HMGET', meta, 'kind', 'paused', 'added', 'done', 'retried',
                'failed', 'expired', 'crashed')
local ready = ripe_count(fifo, now)
local reply = { now, of[1] or '', of[2] and 1 or 0, call('LLEN', fifo) - ready,
                ready, call('HLEN', parked), 0, 1 }
for i = 3, 8 do reply[#reply + 1] = number_of(of[i]) end
reply[15] = 0
return reply
