-- SPDX-License-Identifier: MIT
-- stats: counts of a topic.
--
-- KEYS  meta lease rot hot
-- ARGV  patterns of `groups` where whoever asks serves only some
-- Reply { name, value, ... } as delay/stats; what was dropped by reason, too;
--       elsewhere: is nothing in the groups of those patterns; groups as
--       group_heads.lua says
--#include number
--#include group
--#include bounds
--#include event
--#include ended
--#include parts
local meta = KEYS[1]
local options = call('HMGET', meta, 'kind', 'paused', 'parts', 'bounds')
local reply, count = {}, {}
local function tell(name, value)
  reply[#reply + 1] = name
  reply[#reply + 1] = value
end
local now = now_ms()
tell('time', now)
tell('kind', options[1] or '')
tell('paused', options[2] and 1 or 0)
local names = { 'waiting', 'running', 'added', 'done', 'retried', 'failed',
                'crashed', 'overflow', 'age', 'ttl' }
for i, value in ipairs(call('HMGET', meta, unpack(names))) do
  count[names[i]] = max(number_of(value), 0)
end
--#include lost_groups
lose_groups()
for _, name in ipairs(names) do tell(name, count[name]) end
if count.lost > 0 then tell('lost', count.lost) end
tell('ready', count.waiting)
tell('dropped', count.overflow + count.age + count.ttl)
parts = options[3] and parts_of(options[3])
if ARGV[1] and parts then
  tell('elsewhere',
       parts.has_any(ARGV[1], { KEYS[3], KEYS[4] }, KEYS[2]) and 0 or 1)
end
if count.waiting > 0 then
  --#include group_heads
end
tell_ended(reply, KEYS[2], count.running, now)
return reply
