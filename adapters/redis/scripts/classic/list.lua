-- SPDX-License-Identifier: MIT
-- list: messages in one state.
--
-- KEYS  fifo parked meta
-- ARGV  state: scheduled, ready or running; most messages
-- Reply { 1, message, ... } until the reply is full, or { 0 } when there is no
--         such topic
--#include message
--#include fit
local fifo, parked, meta = unpack(KEYS)
local state, most = ARGV[1], tonumber(ARGV[2])
if call('EXISTS', meta) == 0 then return { 0 } end
ask_bodies(most)
local found
if state == 'running' then
  found = call('HVALS', parked)
else
  local time = call('TIME')
  local ripe = ripe_count(fifo, time[1] * 1000 + floor(time[2] / 1000))
  local from = state == 'ready' and 0 or ripe
  local to = state == 'ready' and math.min(ripe, most) - 1 or from + most - 1
  found = to < from and {} or call('LRANGE', fifo, from, to)
end
local reply = { 1 }
for i = 1, math.min(#found, most) do
  if is_full() then break end
  reply[i + 1] = fit(found[i])
end
return reply
