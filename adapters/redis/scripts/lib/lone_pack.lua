-- SPDX-License-Identifier: MIT
-- The bytes in front of the record, and how many are in front of the offsets.
local function lone_head(id, record_len)
  local char, ends = string.char, nil
  if record_len < 256 then
    ends = char(0, 0, 0, 0, record_len, 0, 0, 0)
  else
    ends = struct.pack('<I4I4', 0, record_len)
  end
  if id == '' then return 'W1\0\0\0\8\0\0' .. ends, 8 end
  local len, str = 10 + #id, char(160 + #id % 32)
  if #id > 31 then len, str = 11 + #id, char(217, #id) end
  return 'W1\0\0\1' .. char(len) .. '\0\0\145' .. str .. id .. ends, len
end
