-- SPDX-License-Identifier: MIT
-- recall: which suspect was a worker of this name running when it died? Told
-- once. And are there schedules, whose ticks may have been lost?
--
-- KEYS  wait run started cron
-- ARGV  worker
-- Reply { node, schedules }; the node is '' when there is none, or the run
--       ended in peace
--#include node
--#include number
--#include suspect
--#include args
local wrong = too_few(4, 1)
if wrong then return wrong end
local wait, run, started = unpack(KEYS)
local schedules = redis.pcall('HLEN', KEYS[4])
if type(schedules) ~= 'number' then schedules = 0 end
local nobody = { '', schedules }
local noted = call('HGET', started, ARGV[1])
if not noted then return nobody end
call('HDEL', started, ARGV[1])
local node, before, token = string.match(noted, '^(.*) (%d+) (%d+)$')
if not node then return nobody end -- nothing that weir noted
local running = call('ZSCORE', run, node)
local score = running or call('ZSCORE', wait, node)
if not score then return nobody end
local is_same = running and floor(tonumber(score)) == tonumber(token)
if is_same or suspicion(score) > tonumber(before) then
  return { node, schedules }
end
return nobody -- it was given back, whoever has it now
