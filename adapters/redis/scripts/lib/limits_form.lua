-- SPDX-License-Identifier: MIT
-- An error unless `limits` is what limits.lua reads.
local function bad_limits(limits)
  --#include rate
  local rate, key_rate = string.match(
    limits .. '|', '^([^|]*)|?%d*|?([^|]*)|?%d*|?%d*|$')
  if rate and (rate == '' or read_rate(rate)) and
     (key_rate == '' or read_rate(key_rate)) then
    return nil
  end
  return redis.error_reply('ERR the limits are not rate|parallel|key_rate|' ..
                           'key_parallel|ageing')
end
