-- SPDX-License-Identifier: MIT
-- Where `lease` was lost, what runs would do so for ever: these claims end when
-- the longest default lease (core/options.h) is over. `claims` are up to 256
-- members of `lease`. A full server or a replica keeps none.
local function heal_lost_leases(lease, now, claims)
  local DEFAULT_MS = 5000
  if redis.pcall('EXISTS', lease) ~= 0 then return end
  for _, claim in ipairs(claims()) do
    redis.pcall('ZADD', lease, string.format('%.0f', now + DEFAULT_MS), claim)
  end
end
