-- SPDX-License-Identifier: MIT
-- release: give back what is left of a claim at once. Who had started a suspect
-- did not die with it.
--
-- KEYS  wait run lease meta idle
-- ARGV  token, topic
-- Reply { jobs given back, 1 if there is more: call again }
--#include node
--#include suspect
--#include wake
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local wait, run, lease, meta, idle = unpack(KEYS)
local token, topic = ARGV[1], ARGV[2]
local number = tonumber(token)

local held = call('ZRANGEBYSCORE', run, token, '(' .. digits(number + 1),
                  'WITHSCORES', 'LIMIT', 0, 500)
local entries, names, jobs = {}, {}, 0
for i = 1, #held, 2 do
  local lo, hi = node_bounds(held[i])
  local ended = suspicion(held[i + 1])
  entries[i], entries[i + 1] = suspect_score(now, ended), held[i]
  names[#names + 1] = held[i]
  jobs = jobs + hi - lo + 1
end
if jobs > 0 then
  call('ZREM', run, unpack(names))
  call('ZADD', wait, unpack(entries))
  call('HINCRBY', meta, 'returned', jobs)
  local mark_end = tonumber(call('HGET', meta, 'mark') or -1) + 1
  if now < mark_end then call('HINCRBY', meta, 'ready', jobs) end
  wake_one(idle, topic, now)
end
if #held == 1000 then return { jobs, 1 } end
call('ZREM', lease, token)
return { jobs, 0 }
