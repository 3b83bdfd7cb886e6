-- SPDX-License-Identifier: MIT
-- stats: counts of a topic.
--
-- KEYS  fifo parked meta
-- Reply { name, value, ... } as delay/stats; those that are parked run
--#include message
--#include number
local fifo, parked, meta = unpack(KEYS)
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local options = call('HMGET', meta, 'kind', 'paused')
local ripe = ripe_count(fifo, now)
local first = ripe > 0 and due_of(call('LINDEX', fifo, 0)) or 0
local reply = {
  'time', now,
  'kind', options[1] or '',
  'paused', options[2] and 1 or 0,
  'waiting', call('LLEN', fifo),
  'ready', ripe,
  'oldest', first > 0 and now - first or -1,
  'running', call('HLEN', parked),
}
local names = { 'added', 'done', 'retried', 'failed', 'expired', 'crashed' }
for i, value in ipairs(call('HMGET', meta, unpack(names))) do
  reply[#reply + 1] = names[i]
  reply[#reply + 1] = number_of(value)
end
return reply
