-- SPDX-License-Identifier: MIT
-- What lies on the server may have been written by somebody else. A number that
-- is none may spoil what is counted; it must not stop a script, least of all
-- behind the first write. Nor may a member that is nothing of weir's: it is
-- removed and counted as dropped, and the reply tells how many as one more
-- number at its end.
local MOST_STORED = 2 ^ 45 -- a double holds that and the state of a node
local set_aside = 0

-- What is no number, or beyond all that is counted, is `otherwise` (0).
local function number_of(value, otherwise)
  local number = value and tonumber(value)
  if number and number > -MOST_STORED and number < MOST_STORED then
    return math.floor(number)
  end
  return otherwise or 0
end

-- A whole number as text. `..` loses what is beyond 14 digits; redis.call
-- writes 17 digits of a number, which is slow, and %.0f is no faster. %d takes
-- what fits into a long, which has 32 bits on some servers.
local function digits(number)
  if number > -1e9 and number < 1e9 then return string.format('%d', number) end
  if number > 0 and number < 2 * MOST_STORED then
    return string.format('%d%07d', number / 1e7, number % 1e7)
  end
  return string.format('%.0f', number)
end

-- What msgpack bytes hold as a table, `from` so many on; an empty one where
-- they hold none.
local function table_of(bytes, from)
  local is_sound, _, value = pcall(cmsgpack.unpack_one, bytes, from or 0)
  return is_sound and type(value) == 'table' and value or {}
end

-- redis.call(command, key, ...) with a list of any length, 1,000 elements at a
-- time.
local function call_list(command, key, list)
  for from = 1, #list, 1000 do
    redis.call(command, key, unpack(list, from, math.min(from + 999, #list)))
  end
end

-- HINCRBY. A field that is no number begins again with 0; or with `first` where
-- it must grow, as tokens do, and be above 0.
local function increment(key, field, by, first)
  if by == 0 then return end
  local sum = redis.pcall('HINCRBY', key, field, digits(by))
  if type(sum) == 'number' then
    if sum < MOST_STORED and sum > (first and 0 or -MOST_STORED) then
      return sum
    end
  elseif not string.find(sum.err, 'integer', 1, true) and
         not string.find(sum.err, 'overflow', 1, true) then
    return redis.call('HINCRBY', key, field, digits(by)) -- ends the script
  end
  set_aside = set_aside + 1
  sum = (first or 0) + by
  redis.call('HSET', key, field, digits(sum))
  return sum
end

local function tell_aside(meta, reply)
  if set_aside == 0 then return end
  increment(meta, 'dropped', set_aside)
  reply[#reply + 1] = set_aside
end

-- A member of `lease`, as a number; nil: it is no token.
local function token_number(token)
  return #token < 15 and string.find(token, '^%d+$') and tonumber(token) or nil
end

-- Microseconds until `ms`, where the replies that tell them can hold that.
local function us_until(ms, time_us)
  return math.min(math.max(ms * 1000 - time_us, 0), 2 ^ 53)
end
