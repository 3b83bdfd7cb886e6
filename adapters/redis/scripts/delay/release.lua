-- SPDX-License-Identifier: MIT
-- release: give back what is left of a claim at once. Who had started a suspect
-- did not die with it.
--
-- KEYS  wait run lease meta idle
-- ARGV  token, topic
-- Reply { jobs given back, 1 if there is more: call again; and what was set
--         aside, if anything (number.lua) }
--#include node
--#include number
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
  names[#names + 1] = held[i]
  if lo then
    entries[#entries + 1] = suspect_score(now, suspicion(held[i + 1]))
    entries[#entries + 1] = held[i]
    jobs = jobs + hi - lo + 1
  else
    set_aside = set_aside + 1
  end
end
if #names > 0 then call('ZREM', run, unpack(names)) end
if jobs > 0 then
  call('ZADD', wait, unpack(entries))
  tally(meta, 'returned', jobs)
  local mark_end = number_of(call('HGET', meta, 'mark'), -1) + 1
  if now < mark_end then tally(meta, 'ready', jobs) end
  wake_one(idle, topic, now)
end
local reply = { jobs, #held == 1000 and 1 or 0 }
if #held < 1000 then call('ZREM', lease, token) end
tell_aside(meta, reply)
return reply
