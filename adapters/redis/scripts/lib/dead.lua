-- SPDX-License-Identifier: MIT
-- Dead jobs are kept here, the latest ones, in the order in which they died.

-- Jobs that die now: { id, record, ... }. Beyond `most` the oldest go, 1,000 at
-- a time.
local function keep_dead(ids, meta, dead, rec, now, jobs, most)
  local places, deaths = {}, {}
  for i = 1, #jobs, 2 do
    places[i], places[i + 1] = jobs[i], 'D'
    deaths[i], deaths[i + 1] = now, jobs[i]
  end
  call_list('HSET', ids, places)
  call_list('ZADD', dead, deaths)
  call_list('HSET', rec, jobs)
  local over = #jobs > 0 and call('ZCARD', dead) - most or 0
  if over <= 0 then return end
  local oldest, dropped = call('ZPOPMIN', dead, min(over, 1000)), {}
  for i = 1, #oldest, 2 do dropped[#dropped + 1] = oldest[i] end
  call('HDEL', ids, unpack(dropped))
  call('HDEL', rec, unpack(dropped))
  tally(meta, 'dropped', #dropped)
end
