-- SPDX-License-Identifier: MIT
-- Each consumer that has a message is in `alive`. If it was lost there, the
-- lease of its message ends as heal_leases.lua says.
--#include heal_leases
local function heal_parked(parked, alive, now)
  local owners = redis.pcall('HKEYS', parked)
  heal_lost_leases(alive, now, { unpack(owners, 1, math.min(#owners, 1000)) })
end
