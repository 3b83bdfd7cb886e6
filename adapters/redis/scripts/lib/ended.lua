-- SPDX-License-Identifier: MIT
-- `ended` of a reply of stats: for how many ms the lease has been over that
-- ended first, where one is. Whoever claims next gives back its jobs, so that
-- this grows where nobody serves the topic. It needs number.lua.
local function tell_ended(reply, lease, running, now)
  local head = lease and running > 0 and
               redis.pcall('ZRANGE', lease, '0', '0', 'WITHSCORES')
  local ended = head and now - number_of(head[2], now) or 0
  if ended > 0 then
    reply[#reply + 1] = 'ended'
    reply[#reply + 1] = ended
  end
end
