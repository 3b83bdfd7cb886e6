-- SPDX-License-Identifier: MIT
-- A pack of one job that is made on the server, and its name. The key of the
-- pack is not declared: it is in the slot of the others, and `absent` keeps a
-- node whose slot moves from beginning.
--
-- 41 bits of the name are ms since 2020, 7 are eighths of the us, then come a
-- 0, the us in these, and 20 bits of `count`, which is another one where the
-- clock was set back. A producer makes no such name unless its number is like
-- these.
local function lone_name(time, count)
  local ALPHABET =
    '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz'
  local byte, floor, letters = string.byte, math.floor, {}
  local ms, us = time[1] * 1000 + floor(time[2] / 1000), time[2] % 1000
  local high = (ms - 1577836800000) * 128 + floor(us / 8)
  local low = us % 8 * 2 ^ 20 + count % 2 ^ 20
  for i = 12, 9, -1 do
    letters[i] = byte(ALPHABET, low % 64 + 1)
    low = floor(low / 64)
  end
  for i = 8, 1, -1 do
    letters[i] = byte(ALPHABET, high % 64 + 1)
    high = floor(high / 64)
  end
  return string.char(unpack(letters))
end

-- The bytes in front of the record, and how many are in front of the offsets.
local function lone_head(id, record_len)
  local char, head, len = string.char, 'W1\0\0\0\8\0\0', 8
  if id ~= '' then
    local str = #id < 32 and char(160 + #id) or char(217, #id)
    len = 9 + #str + #id
    head = 'W1\0\0\1' .. char(len) .. '\0\0\145' .. str .. id
  end
  return head .. struct.pack('<I4I4', 0, record_len), len
end
