-- SPDX-License-Identifier: MIT
-- The keys of pull.lua and finish.lua, which are the same; and who calls.
local function wrong_keys()
  local names = 'wait run lease ids meta idle held due dead rec options ' ..
                'started absent'
  local prefix = string.match(KEYS[1] or '', '^(.*{[%w._:-]+}:)wait$')
  local count = 0
  for name in string.gmatch(names, '%a+') do
    count = count + 1
    if not prefix or KEYS[count] ~= prefix .. name then
      return 'the keys are not those of a topic: ' .. names
    end
  end
  return KEYS[count + 1] and 'the keys are more than 13' or nil
end

local function is_worker(name)
  return name and #name <= 50 and string.find(name, '^[%w._:@-]*$')
end

local function pack_key(seq) return string.sub(KEYS[1], 1, -5) .. 'p:' .. seq end
