-- SPDX-License-Identifier: MIT
-- The most bytes that a body of the topic may have, as its option says.
local function max_body(text)
  local units = { [''] = 1, KiB = 1024, MiB = 1048576, GiB = 1073741824 }
  local digits, unit = string.match(text or '', '^(%d+)(%a*)$')
  return digits and units[unit] and digits * units[unit] or 1048576
end
