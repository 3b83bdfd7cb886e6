-- SPDX-License-Identifier: MIT
-- beat: a worker tells that it is there. `workers` has what each told last, the
-- time in ms in 13 digits and a blank in front of it. Few of the others are
-- looked at, so that those that are dead go as fast as they may come.
--
-- KEYS  workers
-- ARGV  the worker, what it tells (adapters/msgpack/worker.h)
-- Reply 1
--#include number
--#include alive
local now = now_ms()
redis.call('HSET', KEYS[1], ARGV[1], string.format('%013.0f ', now) .. ARGV[2])
local some = redis.call('HRANDFIELD', KEYS[1], '4', 'WITHVALUES')
local gone = {}
for i = 1, #some, 2 do
  if not told_at(some[i + 1], now) then gone[#gone + 1] = some[i] end
end
call_list('HDEL', KEYS[1], gone)
return 1
