-- SPDX-License-Identifier: MIT
-- The keys of pull.lua and finish.lua, which are the same, and who calls.
local TOPIC_KEYS = 'the keys are not wait run lease ids meta idle held due ' ..
                   'dead rec options started absent of a topic'

-- What is wrong with the call, nil: nothing is.
local function wrong_call(worker)
  if #KEYS ~= 13 or not string.find(
    table.concat(KEYS, ' '), '^([^ ]*{[%w._:-]+}:)wait %1run %1lease %1ids ' ..
    '%1meta %1idle %1held %1due %1dead %1rec %1options %1started %1absent$'
  ) then
    return TOPIC_KEYS
  elseif not worker or #worker > 50 or
         not string.find(worker, '^[%w._:@-]*$') then
    return 'the worker is not 1 to 50 of A-Z a-z 0-9 . _ : @ -, or empty'
  end
end

local function pack_key(seq)
  return string.sub(KEYS[1], 1, -5) .. 'p:' .. seq
end

-- Those of settle.lua, before the packs.
local function settle_keys()
  local keys = { unpack(KEYS, 2, 5) } -- run lease ids meta
  keys[5], keys[6], keys[7], keys[8] = KEYS[1], KEYS[9], KEYS[10], KEYS[6]
  keys[9], keys[10] = KEYS[7], KEYS[8]
  return keys
end
