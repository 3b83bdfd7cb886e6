-- SPDX-License-Identifier: MIT
-- stats: counts of a topic.
--
-- KEYS  fifo parked meta alive
-- Reply { name, value, ... } as delay/stats; those that are parked run
--#include message
--#include number
--#include ended
local fifo, parked, meta, alive = unpack(KEYS)
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local options = call('HMGET', meta, 'kind', 'paused')
local ripe = ripe_count(fifo, now)
local first = ripe > 0 and due_of(call('LINDEX', fifo, 0)) or 0
local running = call('HLEN', parked)
if running > 0 then
  --#include heal_parked
  heal_parked(parked, alive, now)
end
local waiting = call('LLEN', fifo)
local reply = {
  'time', now,
  'kind', options[1] or '',
  'paused', options[2] and 1 or 0,
  'waiting', waiting,
  'ready', ripe,
  'oldest', first > 0 and now - first or -1,
  'running', running,
}
local names = { 'added', 'done', 'retried', 'failed', 'expired', 'crashed' }
local count = {}
for i, value in ipairs(call('HMGET', meta, 'purged', unpack(names))) do
  count[i] = number_of(value)
end
for i, name in ipairs(names) do
  reply[#reply + 1], reply[#reply + 2] = name, count[i + 1]
end
-- A message that was added, has not ended and is nowhere was lost with `fifo`
-- or `parked`, or is between the two steps of `parking`.
local purged, added, done, _, failed, expired = unpack(count)
local lost = added - purged - done - failed - expired - waiting - running
if lost > 0 then reply[#reply + 1], reply[#reply + 2] = 'lost', lost end
tell_ended(reply, alive, running, now)
return reply
