-- SPDX-License-Identifier: MIT
-- A pack of one job that is made on the server, and its name. The key of the
-- pack is not declared: it is in the slot of the others, and `absent` keeps a
-- node whose slot moves from beginning.
--
-- 41 bits of the name are ms since 2020, 7 are eighths of the us, then come a
-- 0, the us in these, and 20 bits of `count`, which is another one where the
-- clock was set back. A producer makes no such name unless its number is like
-- these. A letter is one of -, 0-9, A-Z, _, a-z. A loop, a table or a call for
-- each letter would cost more than the rest of a push.
local function lone_name(now, us, count)
  us = us % 1000
  local eighth = us % 8
  local low = eighth * 2 ^ 20 + count % 2 ^ 20
  local high = (now - 1577836800000) * 128 + (us - eighth) / 8
  local h = high % 64 high = (high - h) / 64
  local g = high % 64 high = (high - g) / 64
  local f = high % 64 high = (high - f) / 64
  local e = high % 64 high = (high - e) / 64
  local d = high % 64 high = (high - d) / 64
  local c = high % 64 high = (high - c) / 64
  local b = high % 64 local a = (high - b) / 64
  local l = low % 64 low = (low - l) / 64
  local k = low % 64 low = (low - k) / 64
  local j = low % 64 local i = (low - j) / 64
  return string.char(
    a > 37 and a + 59 or a == 37 and 95 or a > 10 and a + 54 or
      a > 0 and a + 47 or 45,
    b > 37 and b + 59 or b == 37 and 95 or b > 10 and b + 54 or
      b > 0 and b + 47 or 45,
    c > 37 and c + 59 or c == 37 and 95 or c > 10 and c + 54 or
      c > 0 and c + 47 or 45,
    d > 37 and d + 59 or d == 37 and 95 or d > 10 and d + 54 or
      d > 0 and d + 47 or 45,
    e > 37 and e + 59 or e == 37 and 95 or e > 10 and e + 54 or
      e > 0 and e + 47 or 45,
    f > 37 and f + 59 or f == 37 and 95 or f > 10 and f + 54 or
      f > 0 and f + 47 or 45,
    g > 37 and g + 59 or g == 37 and 95 or g > 10 and g + 54 or
      g > 0 and g + 47 or 45,
    h > 37 and h + 59 or h == 37 and 95 or h > 10 and h + 54 or
      h > 0 and h + 47 or 45,
    i > 37 and i + 59 or i == 37 and 95 or i > 10 and i + 54 or
      i > 0 and i + 47 or 45,
    j > 37 and j + 59 or j == 37 and 95 or j > 10 and j + 54 or
      j > 0 and j + 47 or 45,
    k > 37 and k + 59 or k == 37 and 95 or k > 10 and k + 54 or
      k > 0 and k + 47 or 45,
    l > 37 and l + 59 or l == 37 and 95 or l > 10 and l + 54 or
      l > 0 and l + 47 or 45)
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
