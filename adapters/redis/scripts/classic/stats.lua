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
  --#include heal_leases
  local owners = redis.pcall('HKEYS', parked)
  heal_lost_leases(alive, now, { unpack(owners, 1, math.min(#owners, 1000)) })
end
local reply = {
  'time', now,
  'kind', options[1] or '',
  'paused', options[2] and 1 or 0,
  'waiting', call('LLEN', fifo),
  'ready', ripe,
  'oldest', first > 0 and now - first or -1,
  'running', running,
}
local names = { 'added', 'done', 'retried', 'failed', 'expired', 'crashed' }
for i, value in ipairs(call('HMGET', meta, unpack(names))) do
  reply[#reply + 1] = names[i]
  reply[#reply + 1] = number_of(value)
end
tell_ended(reply, alive, running, now)
return reply
