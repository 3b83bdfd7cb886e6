-- SPDX-License-Identifier: MIT
-- When a pack got its name, in ms since 1970 (docs/packs.md): so its jobs were
-- added, unless they moved into it.
local function named_ms(seq)
  local ALPHABET =
    '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz'
  local bits = 0
  for i = 1, 7 do
    local place = string.find(ALPHABET, string.sub(seq, i, i), 1, true) or 1
    bits = bits * 64 + place - 1
  end
  return math.floor(bits / 2) + 1577836800000
end
