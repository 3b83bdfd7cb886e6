-- SPDX-License-Identifier: MIT
-- list: read events of groups, and name the next groups.
--
-- KEYS  meta rot hot lease, then for each group the list that is looked at
-- ARGV  kind, most events, how many groups were named so far, events to pass
--       over, from the first group on, 1 for leased events only, groups
-- Reply { 0, groups that were read to their end, events to pass over in the
--         those behind them, groups named by now, next groups (once all given
--         ones were read), (group, events)..., until it is full }; { -1 } when
--         there is no such topic, { -2, kind } when it is of another kind.
--#include fit
local call = redis.call
local meta, rot, hot, lease = unpack(KEYS, 1, 4)
local most, named, skip = tonumber(ARGV[2]), tonumber(ARGV[3]),
                          tonumber(ARGV[4])
local MOST_NAMES = 100

local stored = call('HGET', meta, 'kind')
if not stored then return { -1 } end
if stored ~= ARGV[1] then return { -2, stored } end

local names = {}
local function name_some()
  local at = named
  for _, key in ipairs(ARGV[5] == '1' and { lease } or { rot, hot, lease }) do
    local want = MOST_NAMES - #names
    if want > 0 then
      for _, group in ipairs(call('ZRANGE', key, at, at + want - 1)) do
        names[#names + 1] = group
      end
    end
    at = math.max(at - call('ZCARD', key), 0)
  end
  named = named + #names
end

local done, lists = 0, {}
for i = 6, #ARGV do
  local key = KEYS[i - 1]
  local length = skip > 0 and call('LLEN', key) or 1
  if skip >= length then
    done, skip = done + 1, skip - length
  else
    local events, given = read_fitting(key, skip, most)
    lists[#lists + 1] = ARGV[i]
    lists[#lists + 1] = given
    most = most - #events
    if most == 0 or is_full() then -- it may have more
      skip = skip + #events
      break
    end
    done, skip = done + 1, 0
  end
end
if done == #ARGV - 5 then name_some() end
return { 0, done, skip, named, names, unpack(lists) }
