-- SPDX-License-Identifier: MIT
-- When an event was added: its name begins with a flag and its time in
-- characters of six bits, 1/128 ms since 2020.
local function added_ms(event)
  local number = 0
  for i = 2, 9 do
    local at = string.byte(event, i)
    local bits = at == 45 and 0 or at < 65 and at - 47 or at < 95 and at - 54 or
                 at == 95 and 37 or at - 59
    number = number * 64 + bits
  end
  return floor(number / 128) + 1577836800000
end
