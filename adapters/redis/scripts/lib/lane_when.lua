-- SPDX-License-Identifier: MIT
-- The time, and the name of the lane, that form l of due.lua says; nil: it is
-- none.
local function lane_when(when, now)
  local level, form, ms, key = string.match(when,
                                            '^l([0-3])([ra])(%-?%d+) (.*)$')
  if not level or #ms > 13 or #key > 2048 then return nil end
  local due = tonumber(ms) + (form == 'r' and now or 0)
  return math.max(due, now), level .. key
end
