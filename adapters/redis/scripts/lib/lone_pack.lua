-- SPDX-License-Identifier: MIT
-- A pack of one job that is made on the server, and its name. The key of the
-- pack is not declared: it is in the slot of the others, and `absent` keeps a
-- node whose slot moves from beginning.
--
-- 41 bits of the name are ms since 2020, 7 are eighths of the us, then come a
-- 0, the us in these, and 20 bits of `count`, which is another one where the
-- clock was set back. A producer makes no such name unless its number is like
-- these.
local function lone_name(now, us, count)
  us = us % 1000
  local eighth, name = us % 8, { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
  local rest = eighth * 2 ^ 20 + count % 2 ^ 20
  for i = 12, 1, -1 do -- a call for each letter would cost more than the rest
    if i == 8 then rest = (now - 1577836800000) * 128 + (us - eighth) / 8 end
    local bits = rest % 64
    name[i] = bits < 11 and (bits == 0 and 45 or bits + 47) or
              bits < 37 and bits + 54 or bits == 37 and 95 or bits + 59
    rest = (rest - bits) / 64
  end
  return string.char(unpack(name))
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
