-- SPDX-License-Identifier: MIT
-- mend: groups that lost their turn (stray_groups.lua) have one again, for weir
-- doctor, which has read their names.
--
-- KEYS  meta rot hot out idle options, then for each group its list
-- ARGV  topic, 1 to mend, 0 to count, groups
-- Reply { 0, how many groups were lost }; { -1, kind } when the topic is of
--       another kind
--#include number
--#include group
--#include bounds
--#include wake
--#include parts
local meta, rot, hot, out, idle, options = unpack(KEYS, 1, 6)
--#include args
local wrong = bad_word('whether it mends', ARGV[2], '0 1') or
              #ARGV > 1002 and
              redis.error_reply('ERR there are more than 1000 groups')
if wrong then return wrong end
local now = now_ms()
local known = call('HMGET', meta, 'kind', 'bounds', 'parts')
if known[1] ~= 'bounded' then return { -1, known[1] or '' } end
local bounds = read_bounds(options, known[2])
parts = known[3] and parts_of(known[3])
local groups = {}
for i = 3, #ARGV do
  local events = redis.pcall('LLEN', KEYS[4 + i])
  if type(events) == 'number' and events > 0 then
    groups[#groups + 1] = { ARGV[i], events }
  end
end
--#include stray_groups
local count = put_strays(groups, ARGV[2] == '0')
if ARGV[2] == '1' and count > 0 then
  if parts then parts.wake(idle, ARGV[1]) else wake_one(idle, ARGV[1], now) end
end
local reply = { 0, count }
tell_aside(meta, reply)
return reply
