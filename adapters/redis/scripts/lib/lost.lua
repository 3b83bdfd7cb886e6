-- SPDX-License-Identifier: MIT
-- A server may lose keys one by one: evicted, cut off with the end of a file, or
-- deleted by hand. The index then has the id of a job that is nowhere.

-- Is the pack gone to which the index points? Such an id is free. An error, as
-- while a slot moves to another node, tells nothing.
local function is_lost(prefix, place)
  return #place == 12 and redis.pcall('EXISTS', prefix .. 'p:' .. place) == 0
end
