-- SPDX-License-Identifier: MIT
-- A group with waiting events is on a rotation (`rot`, or `hot`), scored by
-- when its turn may come, or leased. `out` says more of some groups:
--   'TOKEN ENDED LEFT STARTED'  leased; its batch is in the list l:GROUP
--   '~ ENDED LEFT UNTIL'        on a rotation, not to be touched before UNTIL
-- ENDED counts leases that ended without a verdict; the first LEFT events are
-- suspects for that, and given out one by one.
local call = redis.call
local floor, min, max = math.floor, math.min, math.max

-- Numbers beyond 14 digits lose their end in `..`.
local function digits(number) return string.format('%.0f', number) end

local function read_state(text)
  if not text then return nil, 0, 0, 0 end
  local token, ended, left, last = string.match(text, '^(%S+) (%d+) (%d+) (%d+)')
  return token, tonumber(ended), tonumber(left), tonumber(last)
end

local function now_ms()
  local time = call('TIME')
  return time[1] * 1000 + floor(time[2] / 1000),
         time[1] * 1000000 + time[2]
end

local function kind_of(meta, kind)
  local stored = call('HGET', meta, 'kind')
  if not stored then call('HSET', meta, 'kind', kind) end
  return stored or kind
end

local function count(meta, field, by)
  if by ~= 0 then call('HINCRBY', meta, field, by) end
end

-- Put events back to the head of a list, in their order.
local function push_back(list, events)
  for last = #events, 1, -500 do
    local some = {}
    for i = last, max(last - 499, 1), -1 do some[#some + 1] = events[i] end
    call('LPUSH', list, unpack(some))
  end
end
