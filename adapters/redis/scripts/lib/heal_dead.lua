-- SPDX-License-Identifier: MIT
-- `rec` has a record of each dead job. Those that `dead` lost are there again,
-- up to 256 at a time, as if they had died now.
local function heal_dead(dead, rec, now)
  local kept = redis.pcall('HLEN', rec)
  if type(kept) ~= 'number' or kept <= redis.call('ZCARD', dead) then return end
  for _, id in ipairs(redis.pcall('HRANDFIELD', rec, '256')) do
    redis.pcall('ZADD', dead, 'NX', string.format('%.0f', now), id)
  end
end
