-- SPDX-License-Identifier: MIT
-- The name of a pack of one job that is made on the server. The key of the pack
-- is not declared: it is in the slot of the others, and `absent` keeps a node
-- whose slot moves from beginning.
--
-- Makes `seq` of `now` and `serial`. 41 bits of the name are ms since 2020,
-- seven are 1, one is 0, and 23 are of `serial`, which tells apart what is made
-- in one ms, or again where the clock was set back. It is FIRST_TICK, which is
-- 8,192,000, or more for ticks only (left_ticks.lua). A producer makes such a
-- name only as its 128th of a ms, and if its number is this one. The letters
-- are -, 0-9, A-Z, _ and a-z: a loop, a table or a call for each of them would
-- cost more than the rest. `i` is 31 at most, and written as the others.
do
  local high, low = (now - 1577836800000) * 2 + 1, serial % 2 ^ 23
  local g = high % 64 high = (high - g) / 64
  local f = high % 64 high = (high - f) / 64
  local e = high % 64 high = (high - e) / 64
  local d = high % 64 high = (high - d) / 64
  local c = high % 64 high = (high - c) / 64
  local b = high % 64 local a = (high - b) / 64
  local l = low % 64 low = (low - l) / 64
  local k = low % 64 low = (low - k) / 64
  local j = low % 64 local i = (low - j) / 64
  seq = string.char(
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
    122,
    i > 37 and i + 59 or i == 37 and 95 or i > 10 and i + 54 or
      i > 0 and i + 47 or 45,
    j > 37 and j + 59 or j == 37 and 95 or j > 10 and j + 54 or
      j > 0 and j + 47 or 45,
    k > 37 and k + 59 or k == 37 and 95 or k > 10 and k + 54 or
      k > 0 and k + 47 or 45,
    l > 37 and l + 59 or l == 37 and 95 or l > 10 and l + 54 or
      l > 0 and l + 47 or 45)
end
