-- SPDX-License-Identifier: MIT
-- A rate, as one writes it.
local UNITS = { ms = 1000, s = 1e6, m = 6e7, h = 3.6e9, d = 8.64e10,
                w = 6.048e11 }

-- us between two tokens, and how many gather; nil: it is no rate.
local function read_rate(text)
  local count, every, unit, rest = string.match(text, '^(%d+)/(%d*)(%a+)(.*)$')
  count = count and number_of(count)
  if not count or count < 1 or not UNITS[unit] then return end
  local step = math.max(number_of(every, 1), 1) * UNITS[unit] / count
  local burst = number_of(string.match(rest, '^ burst (%d+)$'),
                          math.ceil(1e5 / step))
  return step, math.max(burst, 1)
end
