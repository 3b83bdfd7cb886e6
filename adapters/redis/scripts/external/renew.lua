-- SPDX-License-Identifier: MIT
-- renew: prolong claims of one worker. Entries of a stream are claimed
-- anew in their group, too, so that they do not look abandoned there.
--
-- KEYS  lease run, the list or stream, meta
-- ARGV  lease ms, group ('': a list), consumer, token...
-- Reply { token, ... } of the claims that are lost
local call = redis.call
--#include entry
--#include number
--#include longest
--#include full
--#include args
local wrong = bad_number('the lease in ms', ARGV[1], 0, HOUR_MS)
if wrong then return wrong end
local time = call('TIME')
local deadline = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1]
local lease, run, source = KEYS[1], KEYS[2], KEYS[3]
local lost = {}
note_length(KEYS[4], tonumber(ARGV[1]))
for i = 4, #ARGV do
  local token = ARGV[i]
  if not call('ZSCORE', lease, token) then
    lost[#lost + 1] = token
  else
    needs_no_room(lease)
    call('ZADD', lease, deadline, token)
    local ids = {}
    for _, id in ipairs(ARGV[2] == '' and {} or
                        call('ZRANGEBYSCORE', run, token, token, 'LIMIT', 0,
                             1024)) do
      if is_entry(id) then ids[#ids + 1] = id end
    end
    if #ids > 0 then
      ids[#ids + 1] = 'JUSTID'
      -- Somebody may have removed the group, or the stream.
      redis.pcall('XCLAIM', source, ARGV[2], ARGV[3], 0, unpack(ids))
    end
  end
end
return lost
