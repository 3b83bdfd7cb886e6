-- SPDX-License-Identifier: MIT
-- Does a node belong to the pack of a tick (tick.lua)? The number of its
-- producer is FIRST_TICK or more, and its counter is 127 (lone_name.lua). 122
-- is `z`, 85 and 70 are the first letters of FIRST_TICK, `U` and `F`.
local function is_tick(name)
  return byte(name, 9) == 85 and byte(name, 10) >= 70 and byte(name, 8) == 122
end
