-- SPDX-License-Identifier: MIT
-- lateness: add samples to the statistics of the current minute. `late` holds
-- six minutes in turn: field M is the number of the minute that slot M was
-- last used for, M:max the latest start in us, M:<bucket> a count.
--
-- KEYS  late
-- ARGV  latest in us, bucket, count, bucket, count, ...
local call = redis.call
--#include number
--#include args
local wrong = bad_number('the latest in us', ARGV[1], -1, MOST_STORED)
for i = 2, #ARGV, 2 do
  wrong = wrong or bad_number('a bucket', ARGV[i], 0, 4096) or
          bad_number('a count', ARGV[i + 1], 0, MOST_STORED)
end
if wrong then return wrong end
local minute = math.floor(call('TIME')[1] / 60)
local late, slot = KEYS[1], minute % 6
if number_of(call('HGET', late, slot), -1) ~= minute then
  local old, prefix = {}, slot .. ':'
  for _, field in ipairs(call('HKEYS', late)) do
    if string.sub(field, 1, 2) == prefix then old[#old + 1] = field end
  end
  call_list('HDEL', late, old)
  call('HSET', late, slot, minute)
end
local max = slot .. ':max'
if tonumber(ARGV[1]) > number_of(call('HGET', late, max), -1) then
  call('HSET', late, max, ARGV[1])
end
for i = 2, #ARGV, 2 do
  increment(late, slot .. ':' .. ARGV[i], tonumber(ARGV[i + 1]))
end
return 1
