-- SPDX-License-Identifier: MIT
-- stats: counts of a topic that is a list or a stream.
--
-- KEYS  meta wait run dead auto relay lease, the list or stream
-- ARGV  group ('': a list)
-- Reply { name, value, ... } as delay/stats
--#include lag
--#include number
--#include ended
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local meta, wait, run, dead, auto, relay, lease, source = unpack(KEYS)
local names = { 'taken', 'purged', 'done', 'retried', 'failed', 'expired',
                'crashed', 'dropped', 'lost' }
local count = {}
for i, value in ipairs(call('HMGET', meta, unpack(names))) do
  count[names[i]] = number_of(value)
end
local options = call('HMGET', meta, 'kind', 'paused')

--#include heal_entries
if ARGV[1] == '' then heal_entries(string.sub(meta, 1, -5)) end
local left, exact, added = external_left(source, ARGV[1])
local due = call('ZCOUNT', wait, '-inf', now)
local head = call('ZRANGE', wait, 0, 0, 'WITHSCORES')[2]
local since = math.min(added or math.huge, head and tonumber(head) or math.huge)
local running = call('ZCARD', run)
for _, jobs in ipairs(call('HVALS', auto)) do
  running = running + number_of(jobs)
end
if running > 0 then
  --#include heal_leases
  heal_lost_leases(lease, now, some_claims(run))
  local tokens = redis.pcall('HKEYS', auto)
  heal_lost_leases(lease, now, { unpack(tokens, 1, math.min(#tokens, 1000)) })
end
local reply = {
  'time', now,
  'kind', options[1] or '',
  'paused', options[2] and 1 or 0,
  'waiting', call('ZCARD', wait) + left,
  'ready', left + due,
  'running', running,
  'dead', call('ZCARD', dead),
  'relaying', call('HLEN', relay),
  'exact', exact,
  'oldest', since <= now and now - math.floor(since) or -1,
  'added', count.taken + count.purged + left,
  'done', count.done,
  'retried', count.retried,
  'failed', count.failed,
  'expired', count.expired,
  'crashed', count.crashed,
  'dropped', count.dropped,
}
if count.lost > 0 then
  reply[#reply + 1], reply[#reply + 2] = 'lost', count.lost
end
tell_ended(reply, lease, running, now)
return reply
