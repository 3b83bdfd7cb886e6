-- SPDX-License-Identifier: MIT
-- page: members of a sorted set, from a place on: by score, and of one score in
-- the order of their bytes. So what leaves or comes meanwhile moves nothing.
--
-- KEYS  wait, run or dead
-- ARGV  score and member of the place ('' = the first of that score), most
-- Reply { score of the last member of all ('' = there is none), then of those
--         that are at the place or behind it: member, score, ... }
local call = redis.call
local byte, floor, min = string.byte, math.floor, math.min
local key, score, member, most = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])

-- As the server compares them; `<` follows its locale.
local function is_before(a, b)
  for i = 1, min(#a, #b) do
    local left, right = byte(a, i), byte(b, i)
    if left ~= right then return left < right end
  end
  return #a < #b
end

local from = call('ZCOUNT', key, '-inf', '(' .. score)
if member ~= '' then
  local to = from + call('ZCOUNT', key, score, score)
  while from < to do
    local middle = floor((from + to) / 2)
    if is_before(call('ZRANGE', key, middle, middle)[1], member) then
      from = middle + 1
    else
      to = middle
    end
  end
end
local last = call('ZRANGE', key, -1, -1, 'WITHSCORES')
local page = call('ZRANGE', key, from, from + most - 1, 'WITHSCORES')
return { last[2] or '', unpack(page) }
