-- SPDX-License-Identifier: MIT
-- forget: delete dead jobs, the oldest first, some in each call.
--
-- KEYS  ids meta dead rec
-- ARGV  latest time of death ('' = now), most jobs
-- Reply { deleted, 1 if there are more: call again, latest time of death }
--       { -1 } when there is no such topic
--#include types
local call = redis.call
local ids, meta, dead, rec = unpack(KEYS)
--#include args
local latest, most = ARGV[1], tonumber(ARGV[2])
local wrong = too_few(4, 2) or
              latest ~= '' and
              bad_number('the time of death', latest, 0, 2 ^ 53) or
              bad_number('the number of jobs', ARGV[2], 1, 5000)
if wrong then return wrong end
if call('EXISTS', meta) == 0 then return { -1 } end
if latest == '' then
  local time = call('TIME')
  latest = time[1] * 1000 + math.floor(time[2] / 1000)
  local last = call('ZRANGE', dead, -1, -1, 'WITHSCORES') -- the clock was ahead
  latest = math.max(latest, math.min(tonumber(last[2] or 0), 2 ^ 53))
  latest = string.format('%.0f', latest)
end
local names = call('ZRANGEBYSCORE', dead, '-inf', latest, 'LIMIT', 0, most)
if #names > 0 then
  needs_hashes(ids, rec)
  call('ZREM', dead, unpack(names))
  call('HDEL', ids, unpack(names))
  call('HDEL', rec, unpack(names))
end
return { #names, #names == most and 1 or 0, tonumber(latest) }
