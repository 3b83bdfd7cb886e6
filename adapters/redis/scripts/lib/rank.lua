-- SPDX-License-Identifier: MIT
-- As the server compares members; `<` follows its locale.
local function is_before(a, b)
  for i = 1, math.min(#a, #b) do
    local left, right = string.byte(a, i), string.byte(b, i)
    if left ~= right then return left < right end
  end
  return #a < #b
end

-- The rank of a place in a sorted set, be somebody at it or not: by score, and
-- of one score in the order of the members' bytes ('' = the first of them). So
-- what leaves or comes meanwhile moves nothing.
local function rank_of(key, score, member)
  local from = redis.call('ZCOUNT', key, '-inf', '(' .. score)
  if member == '' then return from end
  local to = from + redis.call('ZCOUNT', key, score, score)
  while from < to do
    local middle = math.floor((from + to) / 2)
    if is_before(redis.call('ZRANGE', key, middle, middle)[1], member) then
      from = middle + 1
    else
      to = middle
    end
  end
  return from
end
