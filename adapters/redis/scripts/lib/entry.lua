-- SPDX-License-Identifier: MIT
-- Whether the server takes a name for the id of an entry of a stream.
local function is_entry(id)
  local ms, seq = string.match(id, '^(%d+)%-(%d+)$')
  return ms ~= nil and #ms < 20 and #seq < 20
end
