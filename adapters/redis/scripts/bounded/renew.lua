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
--#include args
local wrong = too_few(2, 2 * floor(#ARGV / 2) + 1) or
              bad_number('the lease in ms', ARGV[1], 0, HOUR_MS)
if wrong then return wrong end
local now = now_ms()
needs_no_room(lease)
for i = 2, #ARGV, 2 do
  local state = call('HGET', out, ARGV[i])
  local token, ended, left, started, length = read_state(state)
  if token ~= ARGV[i + 1] then
    lost[#lost + 1] = ARGV[i + 1]
  else
    if lease_ms > 0 then
      call('ZADD', lease, digits(now + lease_ms), ARGV[i])
      length = digits(lease_ms)
    else
      started = 1
    end
    local text = table.concat({ token, ended, left, started, length }, ' ')
    if text ~= state then call('HSET', out, ARGV[i], text) end
  end
end
return lost
