-- SPDX-License-Identifier: MIT
-- Whether the server takes a name for the id of an entry of a stream.
local function is_entry(id)
  local ms, seq = string.match(id, '^(%d+)%-(%d+)$')
  local most = '18446744073709551615'
  return ms ~= nil and (#ms < 20 or #ms == 20 and ms <= most) and
         (#seq < 20 or #seq == 20 and seq <= most)
end
