-- SPDX-License-Identifier: MIT
-- renew: what consumers of a worker have parked lives on.
--
-- KEYS  alive meta
-- ARGV  lease ms, then name of a consumer, token, ...
-- Reply { token, ... } of what is somebody else's by now
local call = redis.call
--#include number
--#include longest
--#include full
--#include args
local wrong = too_few(2, 2 * math.floor(#ARGV / 2) + 1) or
              bad_number('the lease in ms', ARGV[1], 0, HOUR_MS)
if wrong then return wrong end
local time = call('TIME')
local till = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1]
local lost, parked = {}, string.sub(KEYS[1], 1, -6) .. 'parked'
note_length(KEYS[2], tonumber(ARGV[1]))
for i = 2, #ARGV, 2 do
  if call('ZSCORE', KEYS[1], ARGV[i]) or -- it was lost there
     redis.pcall('HEXISTS', parked, ARGV[i]) == 1 then
    needs_no_room(KEYS[1])
    call('ZADD', KEYS[1], till, ARGV[i])
  else
    lost[#lost + 1] = ARGV[i + 1]
  end
end
return lost
