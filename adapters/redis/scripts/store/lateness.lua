-- SPDX-License-Identifier: MIT
-- lateness: add samples to the statistics of the current minute. `late` holds
-- six minutes in turn: field M is the number of the minute that slot M was
-- last used for, M:max the latest start in us, M:<bucket> a count.
--
-- KEYS  late
-- ARGV  latest in us, bucket, count, bucket, count, ...
local call = redis.call
--#include number
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
