-- SPDX-License-Identifier: MIT
-- renew: prolong claims of one worker, all in one call.
--
-- KEYS  lease
-- ARGV  lease ms, token...
-- Reply { token, ... } of the claims that are lost: expired and given back
local call = redis.call
local time = call('TIME')
local deadline = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1]
local found = call('ZMSCORE', KEYS[1], unpack(ARGV, 2))
local entries, lost = {}, {}
for i = 1, #found do
  local token = ARGV[i + 1]
  if found[i] then
    entries[#entries + 1] = deadline
    entries[#entries + 1] = token
  else
    lost[#lost + 1] = token
  end
end
for from = 1, #entries, 1000 do
  local to = math.min(from + 999, #entries)
  call('ZADD', KEYS[1], 'XX', unpack(entries, from, to))
end
return lost
