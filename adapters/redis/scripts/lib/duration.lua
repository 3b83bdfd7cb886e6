-- SPDX-License-Identifier: MIT
-- Durations and ladders as people write them (core/ladder.h).
local UNITS = { w = { 6, 604800000 }, d = { 5, 86400000 }, h = { 4, 3600000 },
                m = { 3, 60000 }, s = { 2, 1000 }, ms = { 1, 1 } }

-- Of 15s or 1h30m, in ms; nil: it is none.
local function read_ms(text)
  local sum, rank, at = 0, 7, 1
  while at <= #text do
    local digits, name = string.match(text, '^(%d+)(%a+)', at)
    local unit = UNITS[name or '']
    if not unit or #digits > 12 or unit[1] >= rank then return nil end
    sum, rank, at = sum + digits * unit[2], unit[1], at + #digits + #name
  end
  return at > 1 and sum or nil
end

-- The steps in ms, and whether the last one repeats; nil: it is no ladder.
local function read_ladder(text)
  local words, dots = string.match(text, '^[ \t]*(.-)[ \t]*(%.?%.?%.?)[ \t]*$')
  if words == 'none' and dots == '' then return {} end
  if dots ~= '' and dots ~= '...' then return nil end
  local steps = {}
  for word in string.gmatch(words, '[^ \t]+') do
    local ms = read_ms(word)
    if not ms or ms < 1 or ms > 365 * 86400000 or #steps == 64 then
      return nil
    end
    steps[#steps + 1] = ms
  end
  if not steps[1] then return nil end
  return steps, dots == '...'
end
