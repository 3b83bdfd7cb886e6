-- SPDX-License-Identifier: MIT
-- The first of these times can be, and none is before the last one.
local function is_rising(when, jobs)
  if #when ~= 7 + 4 * jobs then return false end
  local low, high = struct.unpack('<I4I2', when, 2)
  if low + high * 4294967296 >= 1e13 then return false end
  local rest = { struct.unpack('<' .. string.rep('I4', jobs), when, 8) }
  for i = 2, jobs do
    if rest[i] < rest[i - 1] then return false end
  end
  return true
end

-- Is it what due.lua reads? Times are whole numbers that a score can hold.
local function is_when(when, jobs)
  if #when < 15 and string.find(when, '^[ra]%-?%d+$') then return true end
  if string.byte(when) == 108 then return lane_when(when, 0) end -- 'l'
  if string.find(when, '^[st]') then return is_rising(when, jobs) end
  if not string.find(when, '^[pq]') then return false end
  local ok, times = pcall(cmsgpack.unpack, string.sub(when, 2))
  ok = ok and type(times) == 'table' and #times == jobs
  for i = 1, ok and jobs or 0 do
    local ms = times[i]
    ok = ok and type(ms) == 'number' and ms > -1e13 and ms < 1e13
         and ms % 1 == 0
  end
  return ok
end
