-- SPDX-License-Identifier: MIT
-- drop: delete a topic that holds no jobs and that nobody serves. Should it be
-- made again its tokens begin at the time of then (first_token): what a worker
-- still has from before is refused.
--
-- KEYS  ids, what holds jobs of whatever kind, all else but idle, idle
-- ARGV  topic, how many keys hold jobs
-- Reply { 1 } deleted, { 0 } there was none; { -1 } it holds jobs, or
--       { -2, worker } that one sleeps there: nothing was done
local call = redis.call
--#include number
--#include wake
--#include unlink_keys
--#include args
local wrong = bad_number('how many keys hold jobs', ARGV[2], 1, #KEYS - 2)
if wrong then return wrong end
if call('EXISTS', unpack(KEYS)) == 0 then return { 0 } end
if call('EXISTS', unpack(KEYS, 2, 1 + tonumber(ARGV[2]))) > 0 then
  return { -1 }
end
for _, worker in ipairs(call('ZRANGE', KEYS[#KEYS], 0, MOST_IDLE - 1)) do
  if publish(worker, ARGV[1]) > 0 then return { -2, worker } end
end
call('UNLINK', unpack(KEYS))
unlink_keys(string.sub(KEYS[1], 1, -4))
return { 1 }
