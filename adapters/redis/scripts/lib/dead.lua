-- SPDX-License-Identifier: MIT
-- Dead jobs are kept here, the latest ones, in the order in which they died.

-- Beyond `most` the oldest go, 1,000 at a time, with what two hashes have of
-- them. Returns how many went.
local function drop_oldest(meta, dead, most, one, other)
  local over = call('ZCARD', dead) - most
  if over <= 0 then return 0 end
  local oldest, dropped = call('ZPOPMIN', dead, min(over, 1000)), {}
  for i = 1, #oldest, 2 do dropped[#dropped + 1] = oldest[i] end
  call('HDEL', one, unpack(dropped))
  call('HDEL', other, unpack(dropped))
  increment(meta, 'dropped', #dropped)
  return #dropped
end

-- Jobs that die now: { id, record, ... }. Returns how many others went.
local function keep_dead(ids, meta, dead, rec, now, jobs, most)
  local places, deaths = {}, {}
  for i = 1, #jobs, 2 do
    places[i], places[i + 1] = jobs[i], 'D'
    deaths[i], deaths[i + 1] = now, jobs[i]
  end
  call_list('HSET', ids, places)
  call_list('ZADD', dead, deaths)
  call_list('HSET', rec, jobs)
  return #jobs > 0 and drop_oldest(meta, dead, most, ids, rec) or 0
end
