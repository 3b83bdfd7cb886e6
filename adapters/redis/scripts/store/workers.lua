-- SPDX-License-Identifier: MIT
-- workers: who is there, by what each told last (beat.lua). Those that are dead
-- are removed.
--
-- KEYS  workers
-- Reply worker, when it told that in ms, what it told, worker, ...
--#include number
--#include alive
local now, all = now_ms(), redis.call('HGETALL', KEYS[1])
local reply, gone = {}, {}
for i = 1, #all, 2 do
  local at = told_at(all[i + 1], now)
  if at then
    local last = #reply
    reply[last + 1], reply[last + 2] = all[i], at
    reply[last + 3] = string.sub(all[i + 1],
                                 string.find(all[i + 1], ' ', 1, true) + 1)
  else
    gone[#gone + 1] = all[i]
  end
end
call_list('HDEL', KEYS[1], gone)
return reply
