-- SPDX-License-Identifier: MIT
-- Tell a worker. A server that does not let us publish must not stop a script
-- that has written: the worker then looks by itself. Returns who received it.
local function publish(worker, topic)
  local received = redis.pcall('PUBLISH', 'weir:wake:' .. worker, topic)
  return type(received) == 'number' and received or 0
end

-- Wake one sleeping worker if all of them would come too late for something
-- due at `due`: the one that would sleep longest, and the next one when nobody
-- received the message (its worker is gone).
local function wake_one(idle, topic, due)
  for _ = 1, 16 do
    local last = call('ZRANGE', idle, -1, -1, 'WITHSCORES')
    if not last[1] or tonumber(last[2]) <= due then return end
    call('ZREM', idle, last[1])
    if publish(last[1], topic) > 0 then return end
  end
end
