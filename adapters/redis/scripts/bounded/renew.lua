-- SPDX-License-Identifier: MIT
-- renew: prolong the leases of batches, or note that the suspect in one
-- of them is about to run.
--
-- KEYS  lease out
-- ARGV  lease ms (0: note a start), then group, token, ...
-- Reply { token, ... } of the batches that are somebody else's.
--#include number
--#include group
--#include full
local lease, out = unpack(KEYS)
local lease_ms, lost = tonumber(ARGV[1]), {}
local now = now_ms()
needs_no_room(lease)
for i = 2, #ARGV, 2 do
  local token, ended, left = read_state(call('HGET', out, ARGV[i]))
  if token ~= ARGV[i + 1] then
    lost[#lost + 1] = ARGV[i + 1]
  elseif lease_ms > 0 then
    call('ZADD', lease, digits(now + lease_ms), ARGV[i])
  else
    call('HSET', out, ARGV[i], table.concat({ token, ended, left, 1 }, ' '))
  end
end
return lost
