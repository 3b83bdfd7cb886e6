-- SPDX-License-Identifier: MIT
-- The counters of an entry (feed.lua). What somebody else wrote there counts as
-- nothing.
local function read_past(packed)
  local fields, past = table_of(packed or ''), {}
  for i = 1, 7 do past[i] = number_of(fields[i]) end
  for i = 8, 9 do past[i] = type(fields[i]) == 'string' and fields[i] or '' end
  return past
end
