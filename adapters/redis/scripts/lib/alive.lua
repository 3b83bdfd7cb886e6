-- SPDX-License-Identifier: MIT
-- Who told nothing for so long is dead. A clock that was put back does not make
-- anybody immortal.
local SILENT_MS = 15000

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- When a worker told this, in ms; nil: it is dead, or nobody told that.
local function told_at(told, now)
  local at = tonumber(string.match(told, '^(%d+) '))
  return at and math.abs(now - at) < SILENT_MS and at or nil
end
