-- SPDX-License-Identifier: MIT
-- purge: delete every message, the parked ones too.
--
-- KEYS  fifo parked alive meta
-- Reply { how many }, or { -1 } when there is no such topic
local call = redis.call
--#include number
local fifo, parked, alive, meta = unpack(KEYS)
if call('EXISTS', meta) == 0 then return { -1 } end
local count = call('LLEN', fifo) + call('HLEN', parked)
call('UNLINK', fifo, parked, alive)
increment(meta, 'purged', count)
return { count }
